"""The published scheme applied to a fitted additive model: leave-one-out sensitivities, then Laplace noise.

This reads the training curves once more, and un-noised, which is one of the reasons why the result is not private.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from fdadp._typing import FloatArray, IntArray
from fdadp.errors import InputError, NotPrivateWarning
from fdadp.privacy.published import perturb_coefficients
from fdadp.regression.sums import Chunks, TrainingSums

if TYPE_CHECKING:
    from fdadp.regression.additive import AdditiveFunctionOnFunction

__all__ = ["leave_one_out", "perturb"]


def perturb(
    model: AdditiveFunctionOnFunction, chunks: Chunks, sums: TrainingSums, persons: IntArray | None = None
) -> None:
    """Add the published noise to ``model.coef_`` in place, and the ledger that says what it is worth."""
    assert model.privacy is not None
    l1, largest, n = leave_one_out(model, chunks, sums, persons)
    flat = model.coef_.reshape(len(model.coef_), -1)
    noisy, scales, model.ledger_ = perturb_coefficients(flat, l1, largest, n, model.privacy)
    model.coef_ = noisy.reshape(model.coef_.shape)
    # The coordinates are orthonormal, so the noise adds the same variance to each of them.
    model._covariance = model._covariance + 2 * scales[:, None, None] ** 2 * np.eye(model._covariance.shape[1])
    warnings.warn(
        "mechanism 'published' is not differentially private end to end; see ledger_", NotPrivateWarning, stacklevel=4
    )


def leave_one_out(
    model: AdditiveFunctionOnFunction, chunks: Chunks, sums: TrainingSums, persons: IntArray | None = None
) -> tuple[FloatArray, FloatArray, int]:
    """Largest change of each component's coefficients when one person is left out.

    Basis, mean curve and smoothing parameters stay as they are. With Z the centred features of a person and r the
    residuals, the change is ``A⁻¹ Z' (I - H)⁻¹ r``, ``H = 1/n + Z A⁻¹ Z'``: exact, no refitting.

    Returns
    -------
    l1, largest : ndarray of shape (K,)
        In L1 norm, and of a single coefficient.
    n : int
        Number of persons.
    """
    rotation = sums.smooth.rotation
    projection = (model.eigenfunctions_ * model._basis.weights).T
    coefficients = model._coefficients()
    inverses = model._covariance / model._unit_variance[:, None, None]
    parts = [
        (
            (sums.features.rows(x.values) - model._feature_mean) @ model._rotation,
            (y.values - model.mean_) @ projection,
        )
        for x, y in chunks.read("leave-one-out")
    ]
    z, scores = np.vstack([a for a, _ in parts]), np.vstack([b for _, b in parts])
    n = len(z)
    residuals = scores - z @ coefficients
    l1, largest = np.zeros(len(inverses)), np.zeros(len(inverses))
    order = np.arange(n) if persons is None else np.argsort(persons, kind="stable")
    cuts = np.arange(1, n) if persons is None else np.flatnonzero(np.diff(persons[order])) + 1
    for k, inverse in enumerate(inverses):
        pull = z @ inverse  # (n, p)
        if persons is None:
            leverage = 1 / n + np.einsum("ij,ij->i", pull, z)
            if (leverage >= 1 - 1e-9).any():
                raise InputError(
                    "the model interpolates a curve, so leaving it out has no limit: use fewer basis functions"
                )
            changes = pull * (residuals[:, k] / (1 - leverage))[:, None]
        else:
            changes = np.stack(
                [
                    pull[rows].T
                    @ np.linalg.solve(np.eye(len(rows)) - 1 / n - pull[rows] @ z[rows].T, residuals[rows, k])
                    for rows in np.split(order, cuts)
                ]
            )
        values = np.abs(changes @ rotation.T)
        l1[k], largest[k] = values.sum(axis=1).max(), values.max()
    return l1, largest, len(cuts) + 1
