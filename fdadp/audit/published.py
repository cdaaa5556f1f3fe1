"""Audit of the published scheme in its best case: only the noisy coefficients are seen.

The eigenfunctions, the range of X and the smoothing parameters, which the scheme takes from the data and releases
without noise, are handed over as public constants here, and the mean is not shown. With them the question would not
arise: an output that differs without noise identifies the person with certainty.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.audit.canaries import X_BOUNDS, simulated
from fdadp.privacy import Privacy
from fdadp.published.regression import leave_one_out
from fdadp.published.scheme import perturb_coefficients
from fdadp.regression.additive.estimator import AdditiveFunctionOnFunction
from fdadp.regression.reading.chunked_records import CurvePairs

COMPONENTS = 3
Law = tuple[FloatArray, FloatArray]
Laws = tuple[Law, Law]
"""Centre (K, p) and scale (K,) of the Laplace noise, with the canary and without."""


def published_laws(n: int, *, epsilon: float, sensitivity: str = "local", seed: int = 0) -> Laws:
    """Centre (K, p) and scale (K,) of the Laplace noise, with the canary and without.

    The canary is X = 4.3 everywhere, Y = its mean + 4: extreme, and within the bounds.

    Parameters
    ----------
    n : int
        Persons, the canary among them.
    epsilon : float
        Of each component.
    sensitivity : {"local", "coefficient", "scaled"}
        The reading of the sensitivity, see :class:`fdadp.published.PublishedNoise`.
    seed : int
        Of the simulated curves.
    """
    x, y, mean = simulated(2, n, seed, n_points=51)
    settings: dict[str, Any] = {"n_basis_x": 7, "n_basis_s": 7, "n_components": COMPONENTS, "progress": False}
    public = AdditiveFunctionOnFunction(**settings).fit(x, y)
    x[-1], y[-1] = 4.3, mean.mean(axis=0) + 4.0
    laws = []
    for size in (n, n - 1):
        given = settings | {"n_components": public.eigenbasis_, "smoothing": public.smoothing_parameters_}
        model = AdditiveFunctionOnFunction(**given)
        chunks = [(x[:size], y[:size])]
        model.fit_chunks(chunks, x_range=X_BOUNDS)
        held = CurvePairs(chunks, progress=False)
        changes = leave_one_out(model.fitted_.surface, held.read)
        flat = model.coef_.reshape(COMPONENTS, -1)
        _, scales, _ = perturb_coefficients(flat, changes.l1, changes.largest, changes.n, Privacy(epsilon), sensitivity)
        laws.append((flat, scales))
    return laws[0], laws[1]


def published_scores(
    n: int, *, epsilon: float, draws: int = 20_000, sensitivity: str = "local", data_sets: int = 8, seed: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Log-likelihood ratio of outputs with the canary and of outputs without; `draws` of each.

    A privacy claim is one about all data sets, so the auditor may choose: of several simulated ones the most telling
    is taken, by the mean ratio of 200 draws that are used for nothing else.

    Parameters
    ----------
    n, epsilon, sensitivity, seed
        See :func:`published_laws`.
    draws : int
    data_sets : int

    Returns
    -------
    present, absent : ndarray of shape (draws,)
    """
    rng = np.random.default_rng([seed, n])
    choice = [published_laws(n, epsilon=epsilon, sensitivity=sensitivity, seed=seed + i) for i in range(data_sets)]
    worth = []
    for laws in choice:
        present, absent = (_ratios(laws, side, 200, rng).mean() for side in (0, 1))
        worth.append(min(present, -absent))
    laws = choice[int(np.argmax(worth))]
    return _ratios(laws, 0, draws, rng), _ratios(laws, 1, draws, rng)


def _ratios(laws: Laws, side: int, draws: int, rng: np.random.Generator) -> FloatArray:
    """Log-likelihood ratios of outputs from one side."""
    centre, scale = laws[side]
    parts = []
    for start in range(0, draws, 2000):
        output = centre + rng.laplace(size=(min(2000, draws - start), *centre.shape)) * scale[:, None]
        parts.append(_log_density(output, *laws[0]) - _log_density(output, *laws[1]))
    return np.concatenate(parts)


def _log_density(output: FloatArray, centre: FloatArray, scale: FloatArray) -> FloatArray:
    away = np.abs(output - centre).sum(axis=2) / scale
    return np.asarray(-(away + centre.shape[1] * np.log(2 * scale)).sum(axis=1))
