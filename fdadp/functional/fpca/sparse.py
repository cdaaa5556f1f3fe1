"""Eigenbasis of sparsely or incompletely observed curves (conditional expectation)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.functional.fpca._covariance_smoother import raw_covariance, smooth_covariance, smooth_mean
from fdadp.functional.fpca._noise import diagonal_noise_variance, floored, likelihood_noise_variance
from fdadp.functional.fpca.basis import Eigenbasis, grid_weights
from fdadp.functional.fpca.dense import spectral
from fdadp.functional.tables.sample import as_grid


def sc_eigenbasis(
    curves: ArrayLike,
    grid: ArrayLike | None = None,
    *,
    n_components: float = 0.95,
    n_basis: int = 10,
    max_components: int | None = None,
    quadrature: str = "trapezoid",
    mean: ArrayLike | None = None,
    smoothing: float | None = None,
    noise: str = "likelihood",
) -> Eigenbasis:
    """Eigenbasis of curves with missing values; scores by :meth:`Eigenbasis.conditional_scores`.

    The steps of ``refund::fpca.sc``: the mean by a penalised spline over all observations; the covariance by
    smoothing the mean products off the diagonal, weighted by their counts; its eigenfunctions. The noise variance
    is then estimated by maximum likelihood, given all these. refund takes what the raw diagonal has more than the
    kept components, over the middle half of the domain: a small difference of large numbers, 0 in one of a few
    samples of sparse curves, where scores then explode.

    Parameters
    ----------
    curves : array_like of shape (n, T)
        NaN where a curve was not observed.
    grid : array_like of shape (T,), optional
        T >= 4 points, default even on [0, 1].
    n_components : int or float
        Number of components, or share of variance in (0, 1]. Negative eigenvalues are left out.
    n_basis : int
        Spline functions of the mean and, in each direction, of the covariance; at most T are used.
    max_components : int, optional
        Cap on the number found by share of variance.
    quadrature : {"trapezoid", "equal", "simpson", "riemann"}
        Rule of the inner products; refund uses the trapezoid too.
    mean : array_like of shape (T,), optional
        A mean to take as given.
    smoothing : float, optional
        λ of the covariance in mgcv's scale; default by GCV.
    noise : {"likelihood", "diagonal"}
        Estimator of the noise variance; ``"diagonal"`` is refund's.

    Returns
    -------
    Eigenbasis
        Its noise variance depends on the number of components, as in refund: what they leave out counts as noise.

    Raises
    ------
    InputError
        Infinite values, a curve without observations, fewer than 2 curves, a grid too short, or no two
        observations of one curve.

    Warns
    -----
    NoiseVarianceWarning
        The noise variance cannot be told from 0: a ten-thousandth of the curves' variance is taken.

    References
    ----------
    Yao, Müller & Wang (2005), Functional data analysis for sparse longitudinal data, JASA 100,
    doi:10.1198/016214504000001745; ``refund::fpca.sc`` 0.1-38.

    Examples
    --------
    >>> from fdadp import simulate_affr
    >>> from fdadp.functional.fpca import sc_eigenbasis
    >>> basis = sc_eigenbasis(simulate_affr(scenario=1, n=60, seed=0).Y.data_matrix[..., 0])
    >>> basis.functions.shape
    (3, 51)
    """
    values = np.asarray(curves, dtype=np.float64)
    if values.ndim != 2:
        raise InputError(f"curves must be two-dimensional (curves, points), got shape {values.shape}")
    points = as_grid(grid, values.shape[1])
    check_observed(values)
    if not isinstance(n_basis, (int, np.integer)) or isinstance(n_basis, bool) or n_basis < 4:
        raise InputError(f"n_basis must be an integer of at least 4, got {n_basis!r}")
    if noise not in ("likelihood", "diagonal"):
        raise InputError(f"noise must be 'likelihood' or 'diagonal', got {noise!r}")
    if len(values) < 2 or points.size < 4:
        raise InputError(f"curves must be at least 2, at 4 points or more, got shape {values.shape}")
    seen = int((~np.isnan(values)).any(axis=0).sum())
    size = min(int(n_basis), seen)
    if mean is None:
        mu = smooth_mean(values, points, size)[0]
    else:
        mu = np.asarray(mean, dtype=np.float64)
        if mu.shape != points.shape or not np.isfinite(mu).all():
            raise InputError(f"mean must be {points.size} finite numbers, one per grid point, got shape {mu.shape}")
    centred = values - mu
    raw, count = raw_covariance(centred)
    smooth, _ = smooth_covariance(raw, count, points, n_basis=size, smoothing=smoothing)
    weights = grid_weights(points, quadrature)
    basis = spectral(mu, smooth, points, weights, n_components, max_components)
    if noise == "likelihood":
        found = likelihood_noise_variance(basis, values)
    else:
        found = diagonal_noise_variance(np.diag(raw) - np.diag(basis.covariance()), points)
    return replace(basis, noise_variance=floored(found, centred))


def check_observed(values: FloatArray, name: str = "curves", at_least: int = 1) -> None:
    """Refuse infinite values and curves with fewer observed points than `at_least`.

    Raises
    ------
    InputError
        Naming the curve.
    """
    infinite = np.argwhere(np.isinf(values))
    if len(infinite):
        i, j = (int(b) for b in infinite[0])
        raise InputError(f"{name} must be finite or NaN (missing), got {values[i, j]} in curve {i} at position {j}")
    count = (~np.isnan(values)).sum(axis=1)
    if (count < at_least).any():
        i = int(np.flatnonzero(count < at_least)[0])
        raise InputError(f"{name} must have at least {at_least} observed point(s) each, got {count[i]} in curve {i}")
