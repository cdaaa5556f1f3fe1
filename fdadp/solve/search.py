"""Newton's method for smoothing parameters, from several starts at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fdadp._common.typing import BoolArray, FloatArray, IntArray
from fdadp.solve.criteria import Values

__all__ = ["Score", "minima", "newton"]

NEAR = 1.0
"""A search that comes closer to the way of another, in every log λ, is taken to end where that one does."""

LONGEST = 4.0
"""Longest step in a log λ, but towards infinity."""

FARTHEST = 15.0
"""Length of steps towards infinity."""

SURE = 1e-4
"""A step of Newton's method shorter than this leaves an error of its square: what it leads to is not looked at."""

Score = Callable[[FloatArray, IntArray], Values]
"""Points (b, M), and of which function each is (b,) -> values (b,), gradients (b, M), Hessians (b, M, M)."""

_TINY = float(np.finfo(float).tiny)


def minima(
    score: Score, starts: list[list[FloatArray]], bounds: tuple[FloatArray, FloatArray], tolerance: float
) -> list[list[FloatArray]]:
    """Minima (M,) of each of K functions that :func:`newton` finds from its starts; the lowest first, no two near."""
    of = np.repeat(np.arange(len(starts)), [len(points) for points in starts])
    values, ends = newton(score, np.array([point for points in starts for point in points]), of, bounds, tolerance)
    found: list[list[FloatArray]] = [[] for _ in starts]
    for i in np.argsort(values, kind="stable"):
        kept = found[of[i]]
        if not kept or (values[i] < np.inf and all(abs(ends[i] - end).max(initial=0.0) >= NEAR for end in kept)):
            kept.append(ends[i])
    return found


def newton(
    score: Score, starts: FloatArray, of: IntArray, bounds: tuple[FloatArray, FloatArray], tolerance: float
) -> tuple[FloatArray, FloatArray]:
    """Minimise functions by Newton's method with exact derivatives, within bounds.

    Parameters
    ----------
    score : callable
        It must not depend on units, so that the search does not either.
    starts : ndarray of shape (b, M)
    of : ndarray of shape (b,)
        The function that each start is of. Where two searches of a function meet, the one that is behind ends.
    bounds : (ndarray, ndarray)
        Smallest and largest point. A coordinate at a bound stays there while the function falls beyond it.
    tolerance : float
        Largest gradient of a stationary point.

    Returns
    -------
    values : ndarray of shape (b,)
        Infinite where a search ended because it met another.
    points : ndarray of shape (b, M)
    """
    low, high = bounds
    point = starts.copy()
    value, gradient, hessian = score(point, of)
    step, full = np.zeros_like(point), np.zeros_like(point)
    halvings = np.zeros(len(of), dtype=np.int64)
    running, arrived = np.ones(len(of), dtype=bool), np.ones(len(of), dtype=bool)
    ways = [point.copy()]
    for _ in range(200):
        held = ((point <= low) & (gradient > 0)) | ((point >= high) & (gradient < 0))
        gradient = np.where(held, 0.0, gradient)
        running &= ~arrived | (abs(gradient).max(axis=1, initial=0.0) > tolerance)
        met = running & arrived & _behind(np.array(ways), point, value, of)
        value[met], running[met] = np.inf, False
        new = np.flatnonzero(running & arrived)
        if new.size:
            step[new], full[new] = _steps(gradient[new], hessian[new], held[new], full[new])
            halvings[new] = 0
            last = new[abs(full[new]).max(axis=1) < SURE]
            point[last], running[last] = np.minimum(np.maximum(point[last] + full[last], low), high), False
        at = np.flatnonzero(running)
        if not at.size:
            break
        candidate = np.minimum(np.maximum(point[at] + step[at], low), high)
        values, gradients, hessians = score(candidate, of[at])
        lower = values < value[at]
        won, lost = at[lower], at[~lower]
        point[won], value[won], gradient[won], hessian[won] = (
            found[lower] for found in (candidate, values, gradients, hessians)
        )
        step[lost] /= 2
        halvings[lost] += 1
        running[halvings >= 30] = False
        arrived[:] = False
        arrived[won] = True
        ways.append(point.copy())
    return value, point


def _steps(
    gradient: FloatArray, hessian: FloatArray, held: BoolArray, last: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the steps to take (b, M), and Newton's own, for coordinates that are not held at a bound."""
    fixed = held[:, :, None] | held[:, None, :]
    if fixed.any():
        diagonal = np.abs(np.einsum("bii->bi", hessian))
        hessian = np.where(fixed, diagonal[:, None] * np.eye(len(gradient[0])), hessian)
    curvature, axes = np.linalg.eigh(hessian)
    curvature = abs(curvature)
    floor = np.maximum(1e-7 * curvature.max(axis=1, keepdims=True), _TINY)
    along = (gradient[:, None] @ axes)[:, 0] / np.maximum(curvature, floor)
    full = -(axes @ along[:, :, None])[..., 0]
    size = abs(full).max(axis=1, keepdims=True)
    # Towards a minimum at infinity a function falls as e^-x does: steps of length 1, one after the other.
    again = abs(full - last).max(axis=1, keepdims=True) < 0.1 * size
    return full * np.where(again, FARTHEST / size, np.minimum(1.0, LONGEST / size)), full


def _behind(ways: FloatArray, point: FloatArray, value: FloatArray, of: IntArray) -> BoolArray:
    """Which points (b, M) lie on the way (steps, b, M) of another search of the same function that is lower now."""
    near = (abs(ways[:, None] - point[:, None]).max(axis=3, initial=0.0) < NEAR).any(axis=0)
    index = np.arange(len(of))
    ahead = (value < value[:, None]) | ((value == value[:, None]) & (index < index[:, None]))
    return np.asarray((near & ahead & (of == of[:, None])).any(axis=1))
