"""Which of several minima of REML is taken, where errors depend along curves and REML takes them as independent.

REML counts every point of a smooth error as evidence, so that the lowest of its minima may be one whose surface is
rough because the errors look like one. REML of the same smoothing parameters under a working covariance of the errors
knows better (docs/decisions/0036-minima-of-reml-under-dependence.md).
"""

from __future__ import annotations

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.solve.criteria import Criteria
from fdadp.solve.search import NEAR, minima, newton
from fdadp.solve.starts import DIAGONAL

DECISIVE = 1.0
"""Logarithm of a ratio of likelihoods below which a judge leaves minima in the order of REML itself."""


def judged(
    of: Criteria,
    judge: Criteria,
    found: list[list[FloatArray]],
    centre: FloatArray,
    bounds: tuple[FloatArray, FloatArray],
) -> list[list[FloatArray]]:
    """Put first, of the minima of REML for each of K responses, the one that a judge likes best.

    Minima are added that Newton's search finds from the judge's own, and from the middle, as other programs start. What
    is higher than the latter is not taken, whatever the judge says: where a model lacks something, a working covariance
    takes that for correlated errors.

    Parameters
    ----------
    of, judge : Criteria
        REML with errors as independent, and under a working covariance; of the same responses and penalties.
    found : list of K lists of ndarray of shape (M,)
        Minima, the lowest first.
    centre : ndarray of shape (M,)
        Where penalties and data weigh the same.
    bounds
        As for :func:`~fdadp.solve.search.newton`.
    """
    every, tolerance = np.arange(len(found)), 1e-9 * of.dof
    starts = [[*known, *(centre + shift for shift in (DIAGONAL, 0.0, -DIAGONAL))] for known in found]
    liked = [best for best, *_ in minima(judge.reml, starts, bounds, 1e-4 * judge.dof)]
    usual, middle = newton(of.reml, np.tile(centre, (every.size, 1)), every, bounds, tolerance)
    _, below = newton(of.reml, np.clip(liked, *bounds), every, bounds, tolerance)
    out = []
    for k, known in enumerate(found):
        points = list(known)
        for end in (middle[k], below[k]):
            if min(abs(end - other).max(initial=0.0) for other in points) >= NEAR:
                points.append(end)
        here = np.array(points)
        values, liking = of.reml_values(here)[:, k], judge.reml_values(here)[:, k]
        lowest = int(values.argmin())
        allowed = (values <= usual[k] + 1e-6 * (1 + abs(usual[k]))) & (liking < liking[lowest] - DECISIVE)
        first = int(np.where(allowed, liking, np.inf).argmin()) if allowed.any() else lowest
        out.append([points[first], *(point for i, point in enumerate(points) if i != first)])
    return out
