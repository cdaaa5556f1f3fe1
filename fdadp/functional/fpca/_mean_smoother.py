"""The mean of incompletely observed curves: a thin plate regression spline with GCV over all observations."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from fdadp._common.typing import FloatArray
from fdadp.functional.fpca._gcv import GcvFit, gcv_fit

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
