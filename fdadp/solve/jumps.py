"""From a minimum of REML over its walls: other minima differ from it most often in one smoothing parameter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.solve.search import NEAR, Score, newton

JUMPS = (-20.0, -10.0, -5.0, 5.0, 10.0, 20.0)
"""Of one log λ at a time."""

TRIED = 4
"""Lowest points that jumps lead to, from which Newton's search goes on, lower than where it jumped off or not."""

MOST = 8
"""Minima in a row that jumps may lead down to."""


def with_jumps(
    score: Score,
    values: Callable[[FloatArray], FloatArray],
    found: list[list[FloatArray]],
    bounds: tuple[FloatArray, FloatArray],
    tolerance: float,
) -> list[list[FloatArray]]:
    """Put before the minima of each of K functions a lower one, if jumps from the lowest lead there.

    Parameters
    ----------
    score : callable
        As for :func:`~fdadp.solve.search.newton`.
    values : callable
        Points (b, M) -> values of the functions, shape (b, K).
    found : list of K lists of ndarray of shape (M,)
        The lowest first (:func:`~fdadp.solve.search.minima`).
    bounds, tolerance
        As for :func:`~fdadp.solve.search.newton`.
    """
    out = []
    for k, ends in enumerate(found):
        lowest, value = ends[0], float(values(ends[0][None])[0, k])
        for _ in range(MOST):
            points = _jumps(lowest, bounds)
            points = points[np.argsort(values(points)[:, k], kind="stable")[:TRIED]]
            starts = np.vstack((lowest, points))  # where the way leads back, the search ends
            reached, at = newton(score, starts, np.full(len(starts), k), bounds, tolerance)
            if not reached.min() < value - 1e-6 * (1 + abs(value)):
                break
            lowest, value = at[reached.argmin()], float(reached.min())
        out.append(ends if lowest is ends[0] else [lowest, *ends])
    return out


def _jumps(point: FloatArray, bounds: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Return the points that jumps lead to, within bounds; none so near that it is no jump."""
    every = np.clip(point + np.kron(np.eye(point.size), np.array(JUMPS)[:, None]), *bounds)
    return np.asarray(every[abs(every - point).max(axis=1) > NEAR])
