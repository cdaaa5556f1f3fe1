"""Where the search for smoothing parameters starts: REML may have several local minima."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, product

import numpy as np

from fdadp._common.typing import FloatArray

STEP = 5.0
"""Distance of neighbouring grid points, in log λ."""

KEEP = 3
"""Best points of a grid that are started from."""

DIAGONAL = 6.0
"""Distance of the other starts from the centre where a model has several terms, in every log λ."""


def starts_of(
    values: Callable[[FloatArray], FloatArray], k: int, centre: FloatArray, n_penalties: Sequence[int], flat: float
) -> list[list[FloatArray]]:
    """Where to start the search for each of K functions, which may have several local minima.

    A grid over the penalties of each term, or of each part of one (:func:`apart`), in turn, the others at the centre.
    For one term the three best points that are no neighbours. For several, the best points of all terms taken together,
    the second and the third ones, and points on the diagonal through the centre, where all penalties are light,
    middling or heavy.

    Parameters
    ----------
    values : callable
        Points (b, M) -> values of the functions, shape (b, K).
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
    of_grids = [values(centre + grid) for grid in grids]
    diagonal = [centre + shift for shift in (0.0, -DIAGONAL, DIAGONAL)] if len(grids) != 1 else []
    starts = []
    for which in range(k):
        steps = [best_apart(grid, of_grid[:, which], flat, KEEP) for grid, of_grid in zip(grids, of_grids, strict=True)]
        starts.append([centre + np.sum(together, axis=0) for together in zip(*steps, strict=True)] + diagonal)
    return starts


def apart(penalties: FloatArray, n_penalties: Sequence[int]) -> list[int]:
    """Numbers of penalties of each term, and of parts of terms that no penalty is on together.

    A smooth function for each of twenty levels is one term with twenty parts. Over two penalties of different parts no
    grid is wanted.

    Parameters
    ----------
    penalties : ndarray of shape (M, p)
    n_penalties : sequence of int
        Number of penalties of each term.
    """
    out: list[int] = []
    on = (penalties > 0).astype(np.float64)
    shared = on @ on.T
    for first, count in zip(np.cumsum([0, *n_penalties]), n_penalties, strict=False):
        together = shared[first : first + count, first : first + count]
        ends = [i for i in range(1, count) if not together[:i, i:].any()]
        out += np.diff([0, *ends, count]).tolist()
    return out


def term_grids(n_penalties: Sequence[int]) -> list[FloatArray]:
    """Grids over the smoothing parameters of one term at a time, as steps from a point.

    Two smoothing parameters of a term take 25 points, the only one of a term seven on a line. Three or more are taken
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
        line = STEP * (np.arange(-2, 3) if count > 1 else np.arange(-3, 4))
        steps = []
        for axes in combinations(own, min(count, 2)) if count else ():
            grid = np.zeros((line.size ** len(axes), sum(n_penalties)))
            grid[:, axes] = list(product(line, repeat=len(axes)))
            steps.append(grid)
        if steps:
            every = np.concatenate(steps)
            grids.append(every[np.argsort(np.abs(every).sum(axis=1), kind="stable")])
    return grids


def best_apart(points: FloatArray, values: FloatArray, flat: float, keep: int) -> list[FloatArray]:
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
