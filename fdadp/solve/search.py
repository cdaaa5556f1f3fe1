"""What of a penalised problem the data identify, and Newton's method for its smoothing parameters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import lapack

from fdadp._common.typing import BoolArray, FloatArray

__all__ = ["ROUNDING", "identified", "newton"]

ROUNDING = 1e-12
"""A variance below this share of the largest is taken for rounding in the sums."""

_TINY = float(np.finfo(float).tiny)


def identified(gram: FloatArray, penalties: FloatArray, tolerance: float = 1e-10) -> BoolArray:
    """Which coordinates the data, or a penalty, identify.

    Only coordinates that no penalty touches can be unidentified. A pivoted Cholesky factor of their block of the
    scatter stops where what is left of a coordinate, given those before it, is below `tolerance` of its own variance
    or below `ROUNDING` of the largest variance of all. Among equals the first stay.

    Parameters
    ----------
    gram : ndarray of shape (p, p)
        Scatter of the features.
    penalties : ndarray of shape (M, p)
        Non-negative diagonals.
    tolerance : float

    Returns
    -------
    ndarray of shape (p,), bool

    References
    ----------
    Wood (2011), section 3.1 and appendix B, doi:10.1111/j.1467-9868.2010.00749.x, drops the same directions.
    """
    keep = np.ones(len(gram), dtype=bool)
    free = np.flatnonzero((penalties == 0).all(axis=0))
    if free.size:
        own = gram.diagonal()
        least = ROUNDING / tolerance * float(own.max()) or 1.0
        scale = np.sqrt(np.maximum(own[free], least))
        _, order, rank, _ = lapack.dpstrf(gram[np.ix_(free, free)] / scale / scale[:, None], tol=tolerance)
        keep[free[order[rank:] - 1]] = False
    return keep


def newton(
    score: Callable[[FloatArray], tuple[float, FloatArray, FloatArray]],
    start: FloatArray,
    bounds: tuple[FloatArray, FloatArray],
    tolerance: float,
) -> tuple[float, FloatArray]:
    """Minimise a function by Newton's method with exact derivatives, within bounds.

    Parameters
    ----------
    score : callable
        Point -> value, gradient, Hessian. It must not depend on units, so that the search does not either.
    start : ndarray of shape (M,)
    bounds : (ndarray, ndarray)
        Smallest and largest point. A coordinate at a bound stays there while the function falls beyond it.
    tolerance : float
        Largest gradient of a stationary point.

    Returns
    -------
    value : float
    point : ndarray of shape (M,)
    """
    low, high = bounds
    point = start
    value, gradient, hessian = score(point)
    for _ in range(100):
        held = ((point <= low) & (gradient > 0)) | ((point >= high) & (gradient < 0))
        if held.any():
            gradient = np.where(held, 0.0, gradient)
            hessian = np.where(held | held[:, None], np.diag(np.abs(np.diag(hessian))), hessian)
        if abs(gradient).max() <= tolerance:
            break
        curvature, axes = np.linalg.eigh(hessian)
        curvature = abs(curvature)
        floor = max(1e-7 * curvature.max(), _TINY)
        step = -axes @ ((axes.T @ gradient) / np.maximum(curvature, floor))
        step *= min(1.0, 4.0 / abs(step).max())
        for _ in range(30):
            new = np.minimum(np.maximum(point + step, low), high)
            candidate = score(new)
            if candidate[0] < value:
                break
            step = step / 2
        else:
            break
        point, (value, gradient, hessian) = new, candidate
    return value, point
