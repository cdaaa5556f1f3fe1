"""The search for smoothing parameters: criteria and their derivatives, starts, Newton's method, jumps, a judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import combinations, product

import numpy as np

from fdadp._common.typing import BoolArray, FloatArray, IntArray
from fdadp.solve.smoothing.normal_equations import NormalEquations, blocks_among, components

NEAR = 1.0
"""A search that comes closer to the way of another, in every log λ, is taken to end where that one does."""

LONGEST = 4.0
"""Longest step in a log λ, but towards infinity."""

FARTHEST = 15.0
"""Length of steps towards infinity."""

SURE = 1e-4
"""A step of Newton's method shorter than this leaves an error of its square: what it leads to is not looked at."""

Values = tuple[FloatArray, FloatArray, FloatArray]
"""Of a function of log λ at b points: values (b,), gradients (b, M) and Hessians (b, M, M)."""

Score = Callable[[FloatArray, IntArray], Values]
"""Points (b, M), and of which function each is (b,) -> values (b,), gradients (b, M), Hessians (b, M, M)."""

Beyond = Callable[[FloatArray, int, tuple[FloatArray, FloatArray]], tuple[FloatArray, FloatArray]]
"""A point (M,), a function k and bounds -> this point and others, (b, M), and values of k there (b,)."""

ValuesAbout = Callable[[FloatArray, FloatArray], FloatArray]
"""Points (b, M), which differ in little from another one (M,) -> values of K functions, (b, K)."""

HALVINGS = 30
"""Of a step along which the function does not fall."""

_TINY = float(np.finfo(float).tiny)


def minima(
    score: Score,
    starts: list[list[FloatArray]],
    bounds: tuple[FloatArray, FloatArray],
    tolerance: float,
    alike: float = 0.0,
) -> list[list[FloatArray]]:
    """Minima (M,) of each of K functions that :func:`newton` finds from its starts; the lowest first, no two near.

    Those whose values differ by less than `alike` are taken for one.
    """
    of = np.repeat(np.arange(len(starts)), [len(points) for points in starts])
    values, ends = newton(score, np.array([point for points in starts for point in points]), of, bounds, tolerance)
    found: list[list[FloatArray]] = [[] for _ in starts]
    last = np.full(len(starts), -np.inf)
    for i in np.argsort(values, kind="stable"):
        kept, higher = found[of[i]], last[of[i]] + alike <= values[i] < np.inf
        if not kept or (higher and all(abs(ends[i] - end).max(initial=0.0) >= NEAR for end in kept)):
            kept.append(ends[i])
            last[of[i]] = values[i]
    return found


def newton(
    score: Score,
    starts: FloatArray,
    of: IntArray,
    bounds: tuple[FloatArray, FloatArray],
    tolerance: float,
    known: tuple[FloatArray, FloatArray, int] | None = None,
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
    known : (ndarray of shape (m,), ndarray of shape (m, M), int), optional
        Values and points of minima of a function that are known: a search that comes near one ends, too.

    Returns
    -------
    values : ndarray of shape (b,)
        Infinite where a search ended because it met another, or came near a known minimum.
    points : ndarray of shape (b, M)
    """
    low, high = bounds
    count, at = len(of), np.arange(len(of))  # `at`: searches under way
    ways, ends, every = [starts.copy()], np.full(count, np.inf), of
    if known is not None:
        ways, ends = [np.vstack((starts, known[1]))], np.concatenate((ends, known[0]))
        every = np.concatenate((of, np.full(len(known[0]), known[2])))
    point, (value, gradient, hessian) = starts, score(starts, of)
    full, length, halved = np.zeros_like(point), np.ones(len(of)), np.zeros(len(of), dtype=np.int64)
    for _ in range(200):
        held = ((point <= low) & (gradient > 0)) | ((point >= high) & (gradient < 0))
        if held.any():
            gradient, hessian = _without(held, gradient, hessian)
        last, full = full, _newton_steps(gradient, hessian)
        size = abs(full).max(axis=1, initial=0.0)
        ends[at] = value
        met = _behind(np.array(ways), at, ends, every)
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
        again = (abs(full - last) < 0.1 * abs(full)) & (halved == 0)[:, None]
        again &= (again & (abs(full) == size[:, None])).any(axis=1)[:, None]
        step = full * np.where(again, FARTHEST / size[:, None], np.minimum(1.0, LONGEST / size)[:, None])
        length = np.where(halved, length / 2, 1.0)
        candidate = np.minimum(np.maximum(point + step * length[:, None], low), high)
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
    return ends[:count], ways[-1][:count]


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

LOWER = 1e-3
"""How much lower a point must be for a search from there to be worth while at once."""

MOST = 8
"""Minima in a row that jumps may lead down to."""


def with_jumps(
    score: Score,
    beyond: Beyond,
    found: list[list[FloatArray]],
    bounds: tuple[FloatArray, FloatArray],
    tolerance: float,
    at_once: bool = False,
) -> list[list[FloatArray]]:
    """Put before the minima of each of K functions a lower one, if jumps from the lowest lead there.

    Parameters
    ----------
    score : callable
        As for :func:`~fdadp.solve.smoothing.smoothing_search.newton`.
    beyond : callable
        Where jumps of single log λ from a point lead.
    found : list of K lists of ndarray of shape (M,)
        The lowest first (:func:`~fdadp.solve.smoothing.smoothing_search.minima`).
    bounds, tolerance
        As for :func:`~fdadp.solve.smoothing.smoothing_search.newton`.
    at_once : bool
        Only the lowest point is gone on from, and that only where it is lower.
    """
    out = []
    for k, ends in enumerate(found):
        lowest = ends[0]
        for _ in range(MOST):
            points, values = beyond(lowest, k, bounds)
            best = np.argsort(values, kind="stable")
            least = LOWER if at_once else 1e-6 * (1 + abs(values[0]))
            if at_once and not values[best[0]] < values[0] - least:
                break
            # Where the way leads back, the search ends.
            starts = points[best[:1]] if at_once else np.vstack((lowest, points[best[best > 0][:TRIED]]))
            reached, at = newton(score, starts, np.full(len(starts), k), bounds, tolerance)
            if not reached.min() < values[0] - least:
                break
            lowest = at[reached.argmin()]
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


MANY = 400
"""Coordinates from which on searches that start far away begin on the smoothest :data:`FEWEST` a term."""

FEWEST = 16
"""Of each term: where a search is in a narrow valley these show the way, but not the end."""

ALIKE = 0.1
"""Values that differ by less are of one minimum there."""

START_RANGE = 10.0
"""Of rehearsals, in log λ: beyond it the criteria are nearly flat, and no start is wanted there."""

DECISIVE = 1.0
"""Logarithm of a ratio of likelihoods below which a judge leaves minima in the order of REML itself."""


def judged(
    of: Criteria,
    judge: Criteria,
    found: list[list[FloatArray]],
    centre: FloatArray,
    bounds: tuple[FloatArray, FloatArray],
    few: tuple[Criteria, Criteria],
    rehearsed: list[list[FloatArray]],
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
        As for :func:`~fdadp.solve.smoothing.smoothing_search.newton`.
    few : (Criteria, Criteria)
        The same on the smoothest coordinates, from whose minima searches start.
    rehearsed : list of K lists of ndarray of shape (M,)
        From where the minima were found.
    """
    starts = [[*known, *(centre + shift for shift in (DIAGONAL, 0.0, -DIAGONAL))] for known in found]
    starts = few[1].nearer(starts, bounds)
    liked = [best for best, *_ in minima(few[1].reml, starts, bounds, 1e-4 * judge.dof)]
    out = []
    for k, known in enumerate(found):
        points, which = list(known), np.array([k])
        values = of.reml_values(np.array(points))[:, k]
        for start in (np.clip(liked[k], *bounds), centre):
            near = start[None]
            if few[0] is not of and len(few[0].normal.gram) > MANY:
                limits = centre - START_RANGE, centre + START_RANGE
                _, near = newton(few[0].reml, np.clip(near, *limits), which, limits, rough(of.dof))
                if len(points) == 1 and (abs(near - rehearsed[k]).max(axis=1) < NEAR).any():
                    value = values[0]
                    continue
            (value,), (end,) = newton(of.reml, near, which, bounds, 1e-9 * of.dof, (values, np.array(points), k))
            away = abs(np.array(points) - end).max(axis=1, initial=0.0)
            if value == np.inf:  # it came to one that is known
                value = values[away.argmin()]
            elif away.min() >= NEAR:
                points.append(end)
                values = np.append(values, value)
        if len(points) == 1:
            out.append(points)
            continue
        liking = judge.reml_values(np.array(points))[:, k]
        lowest = int(values.argmin())
        allowed = (values <= value + 1e-6 * (1 + abs(value))) & (liking < liking[lowest] - DECISIVE)
        first = int(np.where(allowed, liking, np.inf).argmin()) if allowed.any() else lowest
        out.append([points[first], *(point for i, point in enumerate(points) if i != first)])
    return out


def rough(dof: int) -> float:
    """Gradient at which a search ends that another one goes on from."""
    return min(1e-4 * dof, 0.1)


# Criteria of smoothing parameters.


LEAST = 1e-14
"""Of a response with y'y = 1, sums of squares below this are rounding."""

CACHE = 2**15
"""Numbers of several matrices that stay in a core's cache."""

AT_ONCE = 2**24
"""Numbers of matrices that are held at once."""


class Criteria:
    """Of K responses on the same coordinates, all of them identified.

    Parameters
    ----------
    normal : NormalEquations
        G and the products of features and responses, these divided by the norms of the responses.
    total : ndarray of shape (K,)
        y'y of the divided responses: 1, or 0 where a response is constant.
    penalties : ndarray of shape (M, p)
    n : int
        Number of observations.
    dof : int
        n less the number of unpenalised coefficients.
    intercept : bool
        Whether features are centred for one, which is a degree of freedom more.
    scale : ndarray of shape (K,), optional
        Known variances of the errors of the divided responses; profiled out where they are not.
    above : float
        What other terms, which are solved for, add to REML.
    """

    def __init__(
        self,
        normal: NormalEquations,
        total: FloatArray,
        penalties: FloatArray,
        n: int,
        dof: int,
        intercept: bool = True,
        scale: FloatArray | None = None,
        above: float = 0.0,
    ) -> None:
        self.normal, self.total, self.penalties, self.n, self.dof = normal, total, penalties, n, dof
        self.intercept, self.scale, self.above = intercept, scale, above
        self._by_term: tuple[FloatArray, list[tuple[BoolArray, Criteria | None]]] = np.zeros(0), []
        # With a 1 where no penalty is, the diagonal of S has no zeros, and its logarithms there are 0.
        self._free = (penalties == 0).all(axis=0).astype(np.float64)

    @cached_property
    def _together(self) -> IntArray:
        """A number for each penalty, the same where penalties are on some coordinate together, as those of a term."""
        on = (self.penalties > 0).astype(np.float64)
        return components(on @ on.T > 0)[1]

    def beyond(
        self, point: FloatArray, response: int, bounds: tuple[FloatArray, FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Where jumps of single log λ lead: the point itself (M,) and others (b, M), and REML of a response there.

        Where there are several terms, the search goes on from the lowest jumps of each in its own smoothing parameters,
        the other terms solved for once. What leads back is left out.
        """
        points, values = [point[None]], [self.reml_values(point[None])[:, response]]
        for own, alone in self.by_term(point):
            limits = bounds[0][own], bounds[1][own]
            to = _jumps(point[own], limits)
            if alone is None:
                every = np.tile(point, (len(to), 1))
                every[:, own] = to
                found = self.reml_values(every)[:, response]
            else:
                to = to[np.argsort(alone.reml_values(to)[:, response], kind="stable")[:TRIED]]
                starts, of = np.vstack((point[own], to)), np.full(len(to) + 1, response)
                reached, at = newton(alone.reml, starts, of, limits, 1e-4 * self.dof)
                left = (reached < np.inf) & (abs(at - point[own]).max(axis=1) >= NEAR)
                every, found = np.tile(point, (int(left.sum()), 1)), reached[left]
                every[:, own] = at[left]
            points.append(every)
            values.append(found)
        return np.vstack(points), np.concatenate(values)

    def by_term(self, about: FloatArray) -> list[tuple[BoolArray, Criteria | None]]:
        """Which smoothing parameters are a term's, and :meth:`of_some` of them: of half of the terms first."""
        if not np.array_equal(self._by_term[0], about):
            self._by_term = about, self._halved(about)
        return self._by_term[1]

    def _halved(self, about: FloatArray) -> list[tuple[BoolArray, Criteria | None]]:
        terms = self._together
        count = int(terms.max(initial=-1)) + 1
        if count < 2:
            return [(terms == term, None) for term in range(count)]
        out: list[tuple[BoolArray, Criteria | None]] = []
        for first, last in ((0, count // 2), (count // 2, count)):
            mine = (terms >= first) & (terms < last)
            half = self.of_some(mine, about)
            if last - first == 1:
                out.append((mine, half))
            elif half is None:
                out += [(own, self.of_some(own, about)) for own in (terms == term for term in range(first, last))]
            else:
                for theirs, alone in half._halved(about[mine]):
                    own = np.zeros(len(terms), dtype=bool)
                    own[mine] = theirs
                    out.append((own, alone))
        return out

    def of_some(self, mine: BoolArray, about: FloatArray) -> Criteria | None:
        """The criteria in some smoothing parameters, the others as at a point (M,), and their coordinates solved for.

        None where that is of no use (:meth:`NormalEquations.of_some`).
        """
        penalty = np.exp(about) @ self.penalties
        own = (self.penalties[mine] > 0).any(axis=0)
        found = self.normal.of_some(np.flatnonzero(own), penalty)
        if found is None:
            return None
        normal, others, log_det = found
        above = (log_det - float(np.log((penalty + self._free)[~own]).sum())) / 2
        penalties = self.penalties[mine][:, own]
        return Criteria(
            normal, self.total - others, penalties, self.n, self.dof, self.intercept, self.scale, self.above + above
        )

    def smoothest(self, count: int) -> Criteria:
        """Return the criteria of the same responses on the `count` coordinates that the penalties weigh least."""
        largest = self.penalties.max(axis=1, keepdims=True)
        rough = (self.penalties / np.where(largest > 0, largest, 1.0)).sum(axis=0)
        keep = np.sort(np.argsort(rough, kind="stable")[:count])
        of = self.normal
        blocks = blocks_among(of.blocks, keep)
        normal = NormalEquations(of.gram[np.ix_(keep, keep)], of.cross[keep], of.floor, blocks)
        return Criteria(normal, self.total, self.penalties[:, keep], self.n, self.dof, self.intercept, self.scale)

    def nearer(self, starts: list[list[FloatArray]], bounds: tuple[FloatArray, FloatArray]) -> list[list[FloatArray]]:
        """Where searches on the smoothest coordinates lead from the starts, if there are many; else the starts."""
        if len(self.normal.gram) <= MANY:
            return starts
        fewest = self.smoothest(FEWEST * int(self._together.max(initial=0) + 1))
        return minima(fewest.reml, starts, bounds, rough(self.dof), ALIKE)

    def reml_values(self, log_sp: FloatArray, about: FloatArray | None = None) -> FloatArray:
        """REML of all responses at points (b, M), shape (b, K).

        Points that differ in the penalties of one term from a point `about` (M,) are cheap where there are many terms:
        the others are solved for once.
        """
        values, left = np.empty((len(log_sp), len(self.total))), np.ones(len(log_sp), dtype=bool)
        if about is not None:
            moved = log_sp != about
            for own, alone in self.by_term(about):
                at = left & ~moved[:, ~own].any(axis=1)
                if alone is not None and at.any():
                    values[at] = alone.reml_values(log_sp[at][:, own])
                    left &= ~at
        every, step = np.arange(len(self.total)), max(AT_ONCE // max(self.normal.gram.size, 1), 1)
        for start in range(0, int(left.sum()), step):
            at = np.flatnonzero(left)[start : start + step]
            diagonal = np.exp(log_sp[at]) @ self.penalties
            explained, log_det = self.normal.explained(diagonal)
            values[at] = self.restricted(self.total - explained, log_det[:, None], diagonal[:, None], every)
        return values

    def restricted(
        self, deviance: FloatArray, log_det: FloatArray, diagonal: FloatArray, responses: IntArray | int
    ) -> FloatArray:
        """REML from penalised deviances of responses, log|A| and the diagonal of ``S = Σ λ_j D_j`` (last axis)."""
        log_s = np.log(diagonal + self._free).sum(axis=-1)  # log|S|₊
        if self.scale is None:
            likelihood = self.dof * (1 + np.log(np.maximum(deviance, LEAST) * (2 * np.pi / self.dof)))
        else:
            scale = self.scale[responses]
            likelihood = deviance / scale + self.dof * np.log(2 * np.pi * scale)
        return np.asarray((likelihood + log_det - log_s) / 2 + self.above)

    def reml(self, log_sp: FloatArray, responses: IntArray) -> Values:
        """Negative restricted log-likelihood (Wood 2011, equation 4), an unknown scale profiled out.

        Parameters
        ----------
        log_sp : ndarray of shape (b, M)
        responses : ndarray of shape (b,)
            Which response each point is of.
        """
        step = max(CACHE // self.normal.gram.size, 1)
        parts = [slice(start, start + step) for start in range(0, len(responses), step)]
        found = [self._reml(log_sp[part], responses[part]) for part in parts]
        values, gradients, hessians = (np.concatenate(each) for each in zip(*found, strict=True))
        return values, gradients, hessians

    def _reml(self, log_sp: FloatArray, responses: IntArray) -> Values:
        return self.values_of(log_sp, responses, self.solved(log_sp, responses))

    def solved(self, log_sp: FloatArray, responses: IntArray) -> list[tuple[slice, tuple[FloatArray, ...]]]:
        """Return what :meth:`NormalEquations.inverses` gives of each of its parts, and where these stand."""
        diagonal = np.exp(log_sp) @ self.penalties
        return [(own, normal.inverses(diagonal[:, own], responses)) for own, normal in self.normal.parts]

    def values_of(
        self, log_sp: FloatArray, responses: IntArray, solved: list[tuple[slice, tuple[FloatArray, ...]]]
    ) -> Values:
        """REML where the equations are :meth:`solved`."""
        weighted = np.exp(log_sp)[:, :, None] * self.penalties  # λ_j d_j
        diagonal = weighted.sum(axis=1)
        share = weighted / (diagonal + self._free)[:, None]
        d1, trace = np.zeros(log_sp.shape), -share.sum(axis=2)
        # Second derivatives: of -log|S| and of log|A|, and of the deviance.
        hessian, bent = share @ share.swapaxes(1, 2), np.zeros((*log_sp.shape, log_sp.shape[1]))
        explained = log_det = np.zeros(len(log_sp))
        for own, (beta, own_explained, own_log_det, inverse) in solved:
            explained, log_det = explained + own_explained, log_det + own_log_det
            light = weighted[:, :, own]
            pushed = light * beta[:, None]  # L_j β
            d1 += (pushed @ beta[:, :, None])[..., 0]
            trace += (light @ inverse.diagonal(axis1=1, axis2=2)[:, :, None])[..., 0]
            bent += pushed @ inverse @ pushed.swapaxes(1, 2)
            hessian -= light @ (inverse * inverse) @ light.swapaxes(1, 2)
        deviance = np.maximum(self.total[responses] - explained, LEAST)
        per = (self.dof / deviance if self.scale is None else 1 / self.scale[responses])[:, None]
        bent *= 2
        if self.scale is None:
            bent += d1[:, None] * (d1 / deviance[:, None])[..., None]
        hessian -= per[:, None] * bent
        gradient = per * d1 + trace
        np.einsum("bii->bi", hessian)[...] += gradient
        return self.restricted(deviance, log_det, diagonal, responses), gradient / 2, hessian / 2

    def gcv(self, log_sp: FloatArray, responses: IntArray) -> Values:
        """``n/2 log GCV``, with ``GCV = n RSS / (n - edf)²``: curved as a log-likelihood is, in any units."""
        every = [self._gcv(point, response) for point, response in zip(log_sp, responses, strict=True)]
        values, gradients, hessians = zip(*every, strict=True)
        return np.array(values), np.array(gradients), np.array(hessians)

    def _gcv(self, log_sp: FloatArray, response: int) -> tuple[float, FloatArray, FloatArray]:
        weighted = np.exp(log_sp)[:, None] * self.penalties
        diagonal = weighted.sum(axis=0)
        (root,), (half,), _ = self.normal.roots(diagonal[None], np.array([response]))
        inverse, beta = root.T @ root, half @ root
        cross, gram = self.normal.cross[:, response], self.normal.gram
        rss = max(float(self.total[response] - 2 * (beta @ cross) + beta @ gram @ beta), LEAST)
        left = max(self.n - self.intercept - float((1 - diagonal * inverse.diagonal()).sum()), 1e-9 * self.n)
        middle = inverse - (inverse * diagonal) @ inverse  # A⁻¹ G A⁻¹
        pull = diagonal * beta  # S β = Z'(y - Zβ)
        slopes = -(weighted * beta) @ inverse  # dβ/dlog λ_j in rows
        rss1 = -2 * slopes @ pull
        curved = -((weighted[:, None] * slopes[None]) + (weighted[None] * slopes[:, None])) @ inverse
        curved[np.arange(len(weighted)), np.arange(len(weighted))] += slopes
        rss2 = 2 * slopes @ gram @ slopes.T - 2 * curved @ pull
        left1 = weighted @ middle.diagonal()
        left2 = np.diag(left1) - 2 * weighted @ (inverse * middle) @ weighted.T
        log1 = rss1 / rss - 2 * left1 / left
        log2 = rss2 / rss - np.outer(rss1, rss1) / rss**2 - 2 * left2 / left + 2 * np.outer(left1, left1) / left**2
        value = float(np.log(self.n * rss / left**2))
        return self.n / 2 * value, self.n / 2 * log1, self.n / 2 * log2


# Where the search for smoothing parameters starts: REML may have several local minima.


STEP = 5.0
"""Distance of neighbouring grid points, in log λ."""

KEEP = 3
"""Best points of a grid that are started from."""

DIAGONAL = 6.0
"""Distance of the other starts from the centre where a model has several terms, in every log λ."""


def starts_of(
    values: ValuesAbout, k: int, centre: FloatArray, n_penalties: Sequence[int], flat: float
) -> list[list[FloatArray]]:
    """Where to start the search for each of K functions, which may have several local minima.

    A grid over the penalties of each term, or of each part of one (:func:`apart`), in turn, the others at the centre.
    For one term the three best points that are no neighbours. For several, the best points of all terms taken together,
    the second and the third ones, and points on the diagonal through the centre, where all penalties are light,
    middling or heavy.

    Parameters
    ----------
    values : callable
        Points (b, M), which differ in little from another one (M,) -> values of the functions, shape (b, K).
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
    of_grids = [values(centre + grid, centre) for grid in grids]
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
