"""What of a penalised problem the data identify, and the search for its smoothing parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, product

import numpy as np
from scipy.linalg import lapack

from fdadp._common.typing import BoolArray, FloatArray

__all__ = ["ROUNDING", "Score", "identified", "minimize", "newton", "starts_of", "term_grids"]

ROUNDING = 1e-12
"""A variance below this share of the largest is taken for rounding in the sums."""

STEP = 5.0
"""Distance of neighbouring grid points, in log λ."""

DIAGONAL = 6.0
"""Distance of the other starts from the centre where a model has several terms, in every log λ."""

NEAR = 0.5
"""Closer to a minimum than this, in every log λ, lies no other one."""

LONGEST = 4.0
"""Longest step of Newton's method in a log λ."""

Score = Callable[[FloatArray], tuple[float, FloatArray, FloatArray]]
"""Point -> value, gradient, Hessian."""

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


def minimize(
    scores: Sequence[Score], starts: Sequence[list[FloatArray]], bounds: tuple[FloatArray, FloatArray], tolerance: float
) -> list[FloatArray]:
    """Return the lowest minimum of each function that :func:`newton` finds from its starts."""
    lowest = []
    for score, points in zip(scores, starts, strict=True):
        ends: list[tuple[float, FloatArray]] = []
        for point in points:
            ends.append(newton(score, point, bounds, tolerance, ends))
        lowest.append(min(ends, key=lambda end: end[0])[1])
    return lowest


def newton(
    score: Score,
    start: FloatArray,
    bounds: tuple[FloatArray, FloatArray],
    tolerance: float,
    known: Sequence[tuple[float, FloatArray]] = (),
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
    known : sequence of (value, point), optional
        Minima found before: the search ends where it comes near to one.

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
        if abs(gradient).max(initial=0.0) <= tolerance:
            break
        for minimum in known:
            if abs(point - minimum[1]).max() < NEAR:
                return minimum
        curvature, axes, _ = lapack.dsyevd(hessian)
        curvature = abs(curvature)
        floor = max(1e-7 * float(curvature.max()), _TINY)
        step = -axes @ ((gradient @ axes) / np.maximum(curvature, floor))
        step *= min(1.0, LONGEST / float(abs(step).max()))
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


def starts_of(
    values: Callable[[FloatArray], FloatArray], k: int, centre: FloatArray, n_penalties: Sequence[int], flat: float
) -> list[list[FloatArray]]:
    """Where to start the search for each of K functions, which may have several local minima.

    A grid over the penalties of each term in turn, the others at the centre. For one term the two best points that are
    no neighbours. For several, the best points of all terms taken together, the second ones, and points on the diagonal
    through the centre, where all penalties are light, middling or heavy.

    Parameters
    ----------
    values : callable
        Point (M,) -> values of the functions, shape (K,).
    k : int
        Number K of functions.
    centre : ndarray of shape (M,)
    n_penalties : sequence of int
        Number of penalties of each term.
    flat : float
        Values that exceed the least by less than this are no worse.

    Returns
    -------
    list of K lists of ndarray of shape (M,)
    """
    grids = term_grids(n_penalties)
    of_grids = [np.stack([values(centre + step) for step in grid]) for grid in grids]
    diagonal = [centre + shift for shift in (0.0, -DIAGONAL, DIAGONAL)] if len(grids) != 1 else []
    starts = []
    for which in range(k):
        steps = [best_apart(grid, of_grid[:, which], flat) for grid, of_grid in zip(grids, of_grids, strict=True)]
        starts.append([centre + np.sum(together, axis=0) for together in zip(*steps, strict=True)] + diagonal)
    return starts


def term_grids(n_penalties: Sequence[int]) -> list[FloatArray]:
    """Grids over the smoothing parameters of one term at a time, as steps from a point.

    Two smoothing parameters of a term take 25 points, the only one of a term nine on a line. Three or more are taken
    two at a time. So the number of points grows with the number of terms, and not as a power of it.

    Parameters
    ----------
    n_penalties : sequence of int
        Number of penalties of each term.

    Returns
    -------
    list of ndarray of shape (points, M)
        For each term with penalties; the nearer to the point the earlier.
    """
    grids = []
    for first, count in zip(np.cumsum([0, *n_penalties]), n_penalties, strict=False):
        own = range(first, first + count)
        line = np.arange(-2, 3) * STEP if count > 1 else np.arange(-4, 5) * STEP / 2
        steps = []
        for axes in combinations(own, min(count, 2)) if count else ():
            grid = np.zeros((line.size ** len(axes), sum(n_penalties)))
            grid[:, axes] = list(product(line, repeat=len(axes)))
            steps.append(grid)
        if steps:
            every = np.concatenate(steps)
            grids.append(every[np.argsort(np.abs(every).sum(axis=1), kind="stable")])
    return grids


def best_apart(points: FloatArray, values: FloatArray, flat: float, keep: int = 2) -> list[FloatArray]:
    """Return the `keep` points of least value, no two of them neighbours on the grid.

    Where values differ by less than `flat` from the least they are one, and the point that stands first is taken.
    """
    kept: list[FloatArray] = []
    above = np.maximum(values - values.min(), flat)
    for index in np.argsort(above, kind="stable"):
        if all(np.abs(points[index] - other).max() > 1.5 * STEP for other in kept):
            kept.append(points[index])
        if len(kept) == keep:
            break
    return kept
