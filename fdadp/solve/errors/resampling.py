"""Bootstrap of curves, or of groups of them, from sums: no sample is ever built."""

from __future__ import annotations

import numpy as np

from fdadp._common.checks import generator
from fdadp._common.typing import FloatArray, IntArray
from fdadp.solve.errors.leave_one_out import Residuals
from fdadp.solve.fit.additive_fit import AdditiveFit

HELD = 1e-10
"""Share of its own variance by which a coefficient is held that a sample does not identify."""


def resampled(fit: AdditiveFit, residuals: Residuals, clusters: IntArray | None, count: int, seed: int) -> FloatArray:
    """Coefficients of fits to samples with replacement, at the smoothing parameters of `fit`, shape (count, p).

    A sample says how often each cluster was drawn, w_g; with ``G = Σ w D'WD`` its coefficients are
    ``(G + S)⁻¹ (Σ w D'Wr + G β)``. For families with a link that is one step of Newton's method.

    Parameters
    ----------
    fit : AdditiveFit
    residuals : Residuals
    clusters : ndarray of shape (n,) of int or None
        What is drawn as a whole; None: each record.
    count, seed : int
    """
    form, keep = fit.form, fit.identified
    numbers = np.arange(residuals.n) if clusters is None else clusters
    total = int(numbers.max()) + 1
    drawn = generator(seed).multinomial(total, np.full(total, 1 / total), size=count)[:, numbers].astype(np.float64)
    size = int(keep.sum())
    grams = np.zeros((count, size, size))
    for rows, own in residuals.grams(form, np.arange(residuals.n)):
        flat = own[:, keep][:, :, keep].reshape(len(rows), -1)
        grams += (drawn[:, rows] @ flat).reshape(grams.shape)
    right = drawn @ residuals.scores(form)[:, keep] + grams @ fit.coefficients[keep]
    penalty = (fit.smoothing_parameters @ form.stacked_penalties)[keep]
    spread = np.maximum(fit.gram.diagonal()[keep], 0.0)
    grams[:, np.arange(size), np.arange(size)] += penalty + HELD * spread
    out = np.zeros((count, form.size))
    out[:, keep] = np.linalg.solve(grams, right[:, :, None])[..., 0]
    return out
