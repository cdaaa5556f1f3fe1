"""A raw covariance smoothed by a tensor product of cubic regression splines, without its noisy diagonal."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.interpolate import CubicSpline
from scipy.linalg import eigh

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.fpca._gcv import GcvFit, gcv_fit

BoolArray = npt.NDArray[np.bool_]


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


def cubic_regression_spline(points: FloatArray, knots: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Natural cubic spline with its values at the knots as coefficients: mgcv's ``bs="cr"``.

    Returns
    -------
    design : ndarray of shape (T, k)
        At `points`; linear beyond the knots.
    penalty : ndarray of shape (k, k)
        Integral of the squared second derivative, exact.

    References
    ----------
    Wood (2017), *Generalized Additive Models*, 2nd ed., section 5.3.1.
    """
    spline = CubicSpline(knots, np.eye(knots.size), bc_type="natural")
    inside = np.clip(points, knots[0], knots[-1])
    design = spline(inside) + (points - inside)[:, None] * spline(inside, 1)
    bend = spline(knots, 2)
    bend[[0, -1]] = 0.0
    h = np.diff(knots)[:, None]
    # The second derivative is linear between knots.
    left, right = bend[:-1], bend[1:]
    penalty = left.T @ (h / 3 * left) + right.T @ (h / 3 * right) + left.T @ (h / 6 * right) + right.T @ (h / 6 * left)
    return np.asarray(design), np.asarray(penalty)


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
    design, penalty = cubic_regression_spline(grid, knots)
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


_MAX_KNOTS = 500


def thin_plate_basis(grid: FloatArray, n_basis: int = 10) -> tuple[FloatArray, FloatArray]:
    """Thin plate regression spline in one variable, as ``s(t, bs="tp", k=n_basis)`` of mgcv.

    Of the radial functions ``|t − t_j|³ / 12`` the `n_basis` combinations of largest absolute eigenvalue are
    kept, then two constraints imposed and ``1, t`` added. Up to a rotation of its columns this is mgcv's basis;
    with more than 500 points every so many of them serve as knots (mgcv: a random 2000).

    Returns
    -------
    design : ndarray of shape (T, n_basis)
        At the points of `grid`.
    penalty : ndarray of shape (n_basis, n_basis)
        Integral of the squared second derivative, zero for the last two columns.

    References
    ----------
    Wood (2003), Thin plate regression splines, JRSS B 65, doi:10.1111/1467-9868.00374.
    """
    x = (grid - grid.mean()) / (grid[-1] - grid[0])  # the scale only multiplies the penalty
    knots = x
    if x.size > _MAX_KNOTS:
        knots = x[np.linspace(0, x.size - 1, _MAX_KNOTS).round().astype(int)]
    values, vectors = eigh(np.abs(knots[:, None] - knots) ** 3 / 12)
    largest = np.argsort(-np.abs(values), kind="stable")[:n_basis]
    values, vectors = values[largest], vectors[:, largest]
    polynomial = np.column_stack((np.ones_like(knots), knots))
    free = np.linalg.qr((polynomial.T @ vectors).T, mode="complete")[0][:, 2:]
    radial = np.abs(x[:, None] - knots) ** 3 / 12 @ (vectors @ free)
    penalty = np.zeros((n_basis, n_basis))
    penalty[:-2, :-2] = free.T @ (values[:, None] * free)
    return np.column_stack((radial, np.ones_like(x), x)), (penalty + penalty.T) / 2


def smooth_mean(values: FloatArray, grid: FloatArray, n_basis: int = 10) -> tuple[FloatArray, GcvFit]:
    """Mean (T,) of curves (n, T) with NaN, all observations weighing the same.

    The first step of ``refund::fpca.sc``: ``gam(y ~ s(t, k = n_basis))``.
    """
    observed = ~np.isnan(values)
    level = float(values[observed].mean())
    centred = np.where(observed, values - level, 0.0)
    count = observed.sum(axis=0).astype(np.float64)
    design, penalty = thin_plate_basis(grid, n_basis)
    rhs = design.T @ centred.sum(axis=0)
    fit = gcv_fit((design.T * count) @ design, penalty, rhs, float((centred**2).sum()), int(count.sum()))
    return level + design @ fit.coefficients, fit
