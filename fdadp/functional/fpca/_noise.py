"""The noise variance of sparse curves, by maximum likelihood of the mixed model that the eigenbasis is."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.optimize import minimize_scalar

from fdadp._common.typing import FloatArray
from fdadp.errors import NoiseVarianceWarning
from fdadp.functional.fpca.basis import Eigenbasis
from fdadp.functional.quadrature import quadrature_weights

FLOOR = 1e-4
"""Least noise variance, relative to the mean square of the centred observations: an sd of a hundredth of theirs."""
STEPS = 47


def likelihood_noise_variance(basis: Eigenbasis, curves: FloatArray) -> float:
    """Maximum likelihood estimate of σ² in ``y_i = μ + Φ_i ξ_i + e_i``, ``ξ_i ~ N(0, Λ)``, ``e_i ~ N(0, σ² I)``.

    Mean, eigenfunctions and eigenvalues are those of `basis`; what they leave out counts as noise, as it does in
    :meth:`Eigenbasis.conditional_scores`. With ``Λ½ Φ_i'Φ_i Λ½ = U D U'`` and ``c = U' Λ½ Φ_i'(y_i - μ)``, twice the
    negative log-likelihood of a curve of m points is, but for a constant,
    ``(m - K) log σ² + Σ_k log(σ² + d_k) + (|y_i - μ|² - Σ_k c_k² / (σ² + d_k)) / σ²``:
    one decomposition serves every σ². The least is looked for on a grid of :data:`STEPS` values of log σ², then between
    its neighbours, so the answer scales with the curves exactly as σ² does.

    Parameters
    ----------
    basis : Eigenbasis
    curves : ndarray of shape (n, T)
        NaN where not observed.

    Returns
    -------
    float
        Between :data:`FLOOR` times the mean square of the centred observations, and that mean square.

    References
    ----------
    Laird & Ware (1982), doi:10.2307/2529876; James, Hastie & Sugar (2000), doi:10.1093/biomet/87.3.587.
    """
    observed = ~np.isnan(curves)
    centred = np.where(observed, curves - basis.mean, 0.0)
    squares, count = (centred**2).sum(axis=1), observed.sum(axis=1)
    mean_square = float(squares.sum() / count.sum())
    root, k = np.sqrt(basis.values), basis.n_components
    d, turn = np.linalg.eigh(basis.gram(observed) * root[:, None] * root)
    d = np.maximum(d, 0.0) / mean_square
    c2 = np.einsum("nij,ni->nj", turn, (centred @ basis.functions.T) * root) ** 2 / mean_square**2
    rest = squares / mean_square

    def deviance(log_noise: float) -> float:
        noise = float(np.exp(log_noise))
        unexplained = np.maximum(rest - (c2 / (noise + d)).sum(axis=1), 0.0) / noise
        return float(((count - k) * log_noise + np.log(noise + d).sum(axis=1) + unexplained).sum())

    grid = np.linspace(np.log(FLOOR), 0.0, STEPS)
    best = int(np.argmin([deviance(x) for x in grid]))
    between = (grid[max(best - 1, 0)], grid[min(best + 1, STEPS - 1)])
    found = minimize_scalar(deviance, bounds=between, method="bounded", options={"xatol": 1e-8}).x
    return mean_square * float(np.exp(found))


def diagonal_noise_variance(excess: FloatArray, grid: FloatArray) -> float:
    """Mean of the excess of the raw diagonal (T,) over the middle half of the domain, at least 0: ``fpca.sc``'s."""
    quarter = (grid[-1] - grid[0]) / 4
    middle = (grid >= grid[0] + quarter) & (grid <= grid[-1] - quarter)
    if middle.sum() < 2:  # hardly any points there: use all
        middle[:] = True
    weights = quadrature_weights(grid[middle])
    known = ~np.isnan(excess[middle])
    if not known.any():
        return 0.0
    return max(float(np.average(excess[middle][known], weights=weights[known])), 0.0)


def floored(noise_variance: float, centred: FloatArray) -> float:
    """Keep an estimate off 0, where scores of few points are solutions of singular systems, and say so.

    Parameters
    ----------
    noise_variance : float
    centred : ndarray of shape (n, T)
        Curves less their mean, NaN where not observed.

    Warns
    -----
    NoiseVarianceWarning
        The estimate is at or below the floor.
    """
    floor = FLOOR * float(np.nanmean(centred**2))
    if noise_variance > floor * (1 + 1e-3):
        return noise_variance
    warnings.warn(
        f"the noise variance was estimated as {noise_variance:.3g} and is taken as {floor:.3g}, {FLOOR:g} of the "
        "variance of the curves: bands may be too narrow; fewer components leave more to the noise",
        NoiseVarianceWarning,
        stacklevel=3,
    )
    return floor
