"""Eigenbasis of sparsely or incompletely observed curves (conditional expectation)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh

from fdadp._common.argument_checks import one_of, whole
from fdadp._common.typing import ArrayLike, BoolArray, FloatArray
from fdadp.errors import InputError, NoiseVarianceWarning
from fdadp.functional.fpca.eigenbasis import (
    Eigenbasis,
    check_mean,
    check_observed,
    grid_weights,
    minimum_near,
    spectral,
)
from fdadp.functional.quadrature import quadrature_weights
from fdadp.functional.splines.mgcv_bases import CubicSplines, ThinPlate
from fdadp.functional.tables.curve_sample import as_grid


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

    The steps of ``refund::fpca.sc``: the mean comes from a penalised spline over all observations. The covariance comes
    from smoothing the mean products off the diagonal, weighted by their counts. Then come its eigenfunctions. The noise
    variance is then estimated by maximum likelihood, given all these. Refund takes what the raw diagonal has more than
    the kept components, over the middle half of the domain. That is a small difference of large numbers. It is 0 in one
    of a few samples of sparse curves, whose scores are then far too large.

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
        The noise variance is not distinguishable from 0. A ten-thousandth of the curves' variance is taken.

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
    whole(n_basis, "n_basis", least=4)
    one_of(noise, "noise", ("likelihood", "diagonal"))
    if len(values) < 2 or points.size < 4:
        raise InputError(f"curves must be at least 2, at 4 points or more, got shape {values.shape}")
    seen = int((~np.isnan(values)).any(axis=0).sum())
    size = min(int(n_basis), seen)
    mu = smooth_mean(values, points, size)[0] if mean is None else check_mean(mean, points.size)
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


# A raw covariance smoothed by a tensor product of cubic regression splines, without its noisy diagonal.


def raw_covariance(centred: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean products over the curves seen at both points, and how many there are.

    Parameters
    ----------
    centred : ndarray of shape (n, T)
        Curves less their mean, NaN where not observed.

    Returns
    -------
    covariance : ndarray of shape (T, T)
        NaN where no curve was seen at both points.
    count : ndarray of shape (T, T)
    """
    observed = (~np.isnan(centred)).astype(np.float64)
    filled = np.nan_to_num(centred)
    count = observed.T @ observed
    with np.errstate(invalid="ignore"):
        return (filled.T @ filled) / count, count


def smooth_covariance(
    covariance: FloatArray, count: FloatArray, grid: FloatArray, *, n_basis: int = 10, smoothing: float | None = None
) -> tuple[FloatArray, GcvFit]:
    """Smooth a raw covariance as ``fpca.sc`` does: ``gam(G ~ te(s, t, k), weights = count)`` off the diagonal.

    The two directions share one λ: the data are symmetric, and so is mgcv's optimum. With that all sums over
    the T² products are sums over T, and λ is found on diagonalised k² × k² matrices.

    Parameters
    ----------
    covariance, count : ndarray of shape (T, T)
        From :func:`raw_covariance`.
    grid : ndarray of shape (T,)
    n_basis : int
        Knots in each direction, at quantiles of the points with any product.
    smoothing : float, optional
        λ in mgcv's scale (its ``sp``), default by GCV.

    Returns
    -------
    smooth : ndarray of shape (T, T)
        Symmetric.
    fit : GcvFit

    Raises
    ------
    InputError
        Products at fewer points than knots.
    """
    weights = count.copy()
    np.fill_diagonal(weights, 0.0)
    seen = weights.any(axis=0)
    if seen.sum() < n_basis:
        raise InputError(
            f"n_basis must be at most the number of points that share a curve with another, {int(seen.sum())}, "
            f"got {n_basis}"
        )
    knots = np.quantile(grid[seen], np.linspace(0, 1, n_basis))
    splines = CubicSplines(knots)
    design, penalty = splines.design(grid), splines.penalty
    penalty = penalty / np.linalg.eigvalsh(penalty)[-1]
    penalty = penalty / _penalty_scale(design, penalty, weights > 0)
    data = np.where(weights > 0, covariance, 0.0)
    level = float((weights * data).sum() / weights.sum())  # the basis holds the constants
    data = np.where(weights > 0, data - level, 0.0)

    k = n_basis
    squares = (design[:, :, None] * design[:, None, :]).reshape(-1, k * k)
    # [a a', b b'] -> [a b, a' b']: X'WX of the row-wise Kronecker design
    gram = (squares.T @ weights @ squares).reshape(k, k, k, k).transpose(0, 2, 1, 3).reshape(k * k, k * k)
    rhs = design.T @ (weights * data) @ design
    identity = np.eye(k)
    both = np.kron(penalty, identity) + np.kron(identity, penalty)
    fit = gcv_fit(gram, both, rhs.ravel(), float((weights * data**2).sum()), int((weights > 0).sum()), smoothing)
    smooth = design @ fit.coefficients.reshape(k, k) @ design.T
    return level + (smooth + smooth.T) / 2, fit


def _penalty_scale(design: FloatArray, penalty: FloatArray, used: BoolArray) -> float:
    """mgcv's S.scale of a margin: ‖S‖₁ / ‖X‖∞² with X the tensor product design at the used pairs."""
    size = np.abs(design).sum(axis=1)
    largest = float((np.outer(size, size) * used).max())
    return float(np.abs(penalty).sum(axis=0).max()) / largest**2


# The mean of incompletely observed curves: a thin plate regression spline with GCV over all observations.


def smooth_mean(values: FloatArray, grid: FloatArray, n_basis: int = 10) -> tuple[FloatArray, GcvFit]:
    """Mean (T,) of curves (n, T) with NaN, all observations weighing the same.

    The first step of ``refund::fpca.sc``: ``gam(y ~ s(t, k = n_basis))``.
    """
    observed = ~np.isnan(values)
    level = float(values[observed].mean())
    centred = np.where(observed, values - level, 0.0)
    count = observed.sum(axis=0).astype(np.float64)
    splines = ThinPlate.of(grid, n_basis, name="n_basis")
    design = splines.design(grid)
    rhs = design.T @ centred.sum(axis=0)
    fit = gcv_fit((design.T * count) @ design, splines.penalty, rhs, float((centred**2).sum()), int(count.sum()))
    return level + design @ fit.coefficients, fit


# One-parameter penalised least squares with GCV, from normal equations, diagonalised once.


@dataclass(frozen=True)
class GcvFit:
    """A penalised fit: coefficients (p,), λ, GCV score ``n RSS / (n − edf)²`` and edf."""

    coefficients: FloatArray
    smoothing: float
    score: float
    edf: float


def gcv_fit(
    gram: FloatArray, penalty: FloatArray, rhs: FloatArray, total: float, n_rows: int, smoothing: float | None = None
) -> GcvFit:
    """Minimise ``(y − Xβ)'W(y − Xβ) + λ β'Sβ``, λ given or by GCV.

    Parameters
    ----------
    gram : ndarray of shape (p, p)
        X'WX, possibly singular where S is not.
    penalty : ndarray of shape (p, p)
        S.
    rhs : ndarray of shape (p,)
        X'Wy.
    total : float
        y'Wy. Centre y first if its mean is large beside its spread: the residual sum of squares is a difference.
    n_rows : int
        Rows of X.
    smoothing : float, optional
        λ.

    References
    ----------
    Wood (2017), *Generalized Additive Models*, 2nd ed., section 6.2; Demmler & Reinsch (1975),
    doi:10.1007/BF01437407.
    """
    if smoothing is not None and not (np.isfinite(smoothing) and smoothing >= 0):
        raise InputError(f"smoothing must be a finite number of at least 0, got {smoothing!r}")
    # In the eigenvectors of the pencil (S, X'WX + τS) both matrices are diagonal, and the second is
    # positive definite even where some coefficients are not seen by the data.
    tau = float(np.trace(gram) / np.trace(penalty))
    roughness, vectors = eigh(penalty, gram + tau * penalty)
    roughness = np.clip(roughness, 0.0, 1 / tau)
    seen = 1 - tau * roughness
    rotated = vectors.T @ rhs

    def at(value: float) -> tuple[FloatArray, float, float]:
        scale = seen + value * roughness
        beta = np.divide(rotated, scale, out=np.zeros_like(rotated), where=scale > 0)
        edf = float(np.divide(seen, scale, out=np.zeros_like(seen), where=scale > 0).sum())
        return beta, edf, max(total - float(beta @ (2 * rotated - seen * beta)), 0.0)

    def log_gcv(log_value: float) -> float:
        _, edf, residual = at(float(np.exp(log_value)))
        # kept finite where the fit interpolates
        return float(np.log(residual + np.finfo(float).tiny) - 2 * np.log(max(n_rows - edf, 1e-8 * n_rows)))

    if smoothing is None:
        logs = np.log(tau) + np.linspace(-23, 16, 118)
        smoothing = float(np.exp(minimum_near(log_gcv, logs)))
    beta, edf, residual = at(float(smoothing))
    score = n_rows * residual / (n_rows - edf) ** 2 if n_rows > edf else np.inf
    return GcvFit(vectors @ beta, float(smoothing), score, edf)


# The noise variance, by maximum likelihood of the mixed model that the eigenbasis is.


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

    return mean_square * float(np.exp(minimum_near(deviance, np.linspace(np.log(FLOOR), 0.0, STEPS))))


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
