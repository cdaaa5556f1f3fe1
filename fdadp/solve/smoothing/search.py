"""Newton's method for smoothing parameters, from several starts at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fdadp._common.typing import BoolArray, FloatArray, IntArray
from fdadp.solve.smoothing.criteria import Criteria, Values
from fdadp.solve.smoothing.starts import DIAGONAL

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

HALVINGS = 30
"""Of a step along which the function does not fall."""

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
    ways, ends, at = [starts.copy()], np.full(len(of), np.inf), np.arange(len(of))  # `at`: searches under way
    point, (value, gradient, hessian) = starts, score(starts, of)
    full, length, halved = np.zeros_like(point), np.ones(len(of)), np.zeros(len(of), dtype=np.int64)
    for _ in range(200):
        held = ((point <= low) & (gradient > 0)) | ((point >= high) & (gradient < 0))
        if held.any():
            gradient, hessian = _without(held, gradient, hessian)
        last, full = full, _newton_steps(gradient, hessian)
        size = abs(full).max(axis=1, initial=0.0)
        ends[at] = value
        met = _behind(np.array(ways), at, ends, of)
        ends[at[met]] = np.inf
        sure = size < SURE
        ways[-1][at[sure]] = np.minimum(np.maximum(point + full, low), high)[sure]
        going = ~(met | sure | (abs(gradient).max(axis=1, initial=0.0) <= tolerance) | (halved >= HALVINGS))
        if not going.all():
            at, point, value, gradient, hessian, full, last, size, length, halved = (
                of_all[going] for of_all in (at, point, value, gradient, hessian, full, last, size, length, halved)
            )
            if not at.size:
                break
        # Towards a minimum at infinity a function falls as e^-x does: steps of length 1, one after the other.
        again = abs(full - last).max(axis=1) < 0.1 * size
        fresh = np.where(again, FARTHEST / size, np.minimum(1.0, LONGEST / size))
        length = np.where(halved, length / 2, fresh)
        candidate = np.minimum(np.maximum(point + full * length[:, None], low), high)
        found = score(candidate, of[at])
        lower = found[0] < value
        halved = np.where(lower, 0, halved + 1)
        if lower.all():
            point, (value, gradient, hessian) = candidate, found
        else:
            point = np.where(lower[:, None], candidate, point)
            value, gradient = np.where(lower, found[0], value), np.where(lower[:, None], found[1], gradient)
            hessian = np.where(lower[:, None, None], found[2], hessian)
        ways.append(ways[-1].copy())
        ways[-1][at] = point
    return ends, ways[-1]


def _without(held: BoolArray, gradient: FloatArray, hessian: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gradient (b, M) and Hessian (b, M, M) in which nothing moves the coordinates that are held."""
    diagonal = np.abs(np.einsum("bii->bi", hessian))[:, None] * np.eye(held.shape[1])
    return np.where(held, 0.0, gradient), np.where(held[:, :, None] | held[:, None], diagonal, hessian)


def _newton_steps(gradient: FloatArray, hessian: FloatArray) -> FloatArray:
    """Newton's steps (b, M) with the absolute curvature along each axis, so that all of them go down."""
    curvature, axes = np.linalg.eigh(hessian)
    curvature = abs(curvature)
    floor = np.maximum(1e-7 * curvature.max(axis=1, keepdims=True, initial=0.0), _TINY)
    along = (gradient[:, None] @ axes)[:, 0] / np.maximum(curvature, floor)
    return np.asarray(-(axes @ along[:, :, None])[..., 0])


def _behind(ways: FloatArray, at: IntArray, value: FloatArray, of: IntArray) -> BoolArray:
    """Which searches under way stand where another search of the same function went that is lower now."""
    index = np.arange(len(of))
    ahead = (value < value[at, None]) | ((value == value[at, None]) & (index < at[:, None]))
    ahead &= of == of[at, None]
    if not ahead.any():
        return np.zeros(len(at), dtype=bool)
    near = (abs(ways[:, None] - ways[-1][at][:, None]).max(axis=3, initial=0.0) < NEAR).any(axis=0)
    return np.asarray((near & ahead).any(axis=1))


# From a minimum of REML over its walls: other minima differ from it most often in one smoothing parameter.


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
        As for :func:`~fdadp.solve.smoothing.search.newton`.
    values : callable
        Points (b, M) -> values of the functions, shape (b, K).
    found : list of K lists of ndarray of shape (M,)
        The lowest first (:func:`~fdadp.solve.smoothing.search.minima`).
    bounds, tolerance
        As for :func:`~fdadp.solve.smoothing.search.newton`.
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


# Which of several minima of REML is taken, where errors depend along curves and REML takes them as independent.
#
# REML counts every point of a smooth error as evidence, so that the lowest of its minima may be one whose surface is
# rough because the errors look like one. REML of the same smoothing parameters under a working covariance of the errors
# knows better (docs/decisions/0036-minima-of-reml-under-dependence.md).


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
        As for :func:`~fdadp.solve.smoothing.search.newton`.
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
