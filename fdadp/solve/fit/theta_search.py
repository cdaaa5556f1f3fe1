"""Parameters θ of families by REML, together with smoothing parameters: a search about the one for those.

At each θ the smoothing parameters are those of :func:`fdadp.solve.fit.family_fit.optimum`, where V does not change with
them. So the slopes of V's minimum along θ are the partial ones, which are exact.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import ArrayLike, BoolArray, FloatArray
from fdadp.errors import InputError
from fdadp.solve.fit.additive_fit import AdditiveFit, ChosenSmoothing
from fdadp.solve.fit.family_fit import (
    APART,
    FORWARD,
    Inside,
    Laplace,
    Optimum,
    first_problem,
    fit_family,
    given,
    optimum,
)
from fdadp.solve.form.families_with_theta import FamilyWithTheta, ThetaSearch
from fdadp.solve.form.long_form_design import LongForm
from fdadp.solve.form.weighted_least_squares import Blocks, Observed, over_blocks

FIRST = 0.01
"""Step of differences of slopes, which say how V is curved where a search starts."""

LONGEST = 2.0
"""Of the steps along a coordinate of θ."""

FLAT = 1e-10
"""What a long step must gain, as a share of V, so that the search goes on: towards infinity it gains ever less."""

SURE = 1e-9
"""A step after which the search ends."""

NEAR = 1e-4
"""A step after which the search ends once steps stop to become shorter: what is left is rounding."""

ROUNDING = 1e-11
"""By how much V may rise in a step, as a share of V."""

STEPS, HALVINGS = 100, 20
"""Of a search, and of one of its steps."""

LOWER = 1e-7
"""By how much V must be lower at other smoothing parameters for these to be another minimum, as a share of V."""

AWAY = 8.0
"""By how much a log λ is above the size of the information where its term has hardly any degrees of freedom left."""


def fit_with_theta(
    form: LongForm,
    blocks: Blocks,
    family: FamilyWithTheta,
    smoothing: str | ArrayLike,
    n: int,
    n_unpenalized: int | None = None,
) -> AdditiveFit:
    """Fit responses with the θ at which V, minimal in the smoothing parameters, is lowest.

    Where V falls for ever, as of counts that do not vary more than Poisson's, θ is at an end of its search.

    Parameters
    ----------
    form, blocks, smoothing, n, n_unpenalized
        As of :func:`fdadp.solve.fit.family_fit.fit_family`.
    family : FamilyWithTheta
        Its θ is not used.

    Returns
    -------
    AdditiveFit
        With its :attr:`~fdadp.solve.fit.additive_fit.AdditiveFit.family`.
    """
    with one_blas_thread():
        log_sp = given(smoothing, form)
        search = family.search(over_blocks(blocks, partial(_tally, family), operator.add))
        first = first_problem(form, blocks, family.at(search.starts[0]), n_unpenalized)
        over = _OverTheta(*first, family, search, log_sp)
        best = over.lowest()
        chosen = family.at(best.theta, chosen=True)
        if log_sp is not None:
            return replace(fit_family(form, blocks, chosen, smoothing, n, n_unpenalized), family=chosen)
        fit = fit_family(form, blocks, chosen, smoothing, n, n_unpenalized, near=best.found.log_sp)
        return replace(fit, family=chosen, chosen=over.chosen(best))


def _tally(family: FamilyWithTheta, block: Observed) -> FloatArray:
    here = block.weights > 0
    return family.tally(block.y[here], block.weights[here])


class _Point(NamedTuple):
    """A θ (d,), the minimum of V there, its value and its slopes (d,) along θ."""

    theta: FloatArray
    found: Optimum
    value: float
    slopes: FloatArray


@dataclass(frozen=True)
class _OverTheta:
    """V over θ.

    Attributes
    ----------
    problem : Laplace
    beta : ndarray
        Coefficients of one mean.
    family : FamilyWithTheta
    search : ThetaSearch
    log_sp : ndarray or None
        Smoothing parameters that were given.
    """

    problem: Laplace
    beta: FloatArray
    family: FamilyWithTheta
    search: ThetaSearch
    log_sp: FloatArray | None

    def lowest(self) -> _Point:
        """The lowest minimum that is found from the best points tried, and from any lower one at the same θ."""
        points: list[_Point] = []
        for theta in self.search.starts:
            points.append(self.at(theta, beta=points[-1].found.at.beta if points else None))
        points.sort(key=lambda point: point.value)
        best = self.descended(points[0])
        if self.apart(points[0], points[min(1, len(points) - 1)]):
            best = min(best, self.descended(points[1]), key=lambda point: point.value)
        for _ in range(len(points)):
            other = min(self.others(best), key=lambda point: point.value)
            if other.value >= best.value - LOWER * (1 + abs(best.value)) or not self.apart(other, best):
                break
            best = self.descended(other)
        return best

    def apart(self, one: _Point, other: _Point) -> bool:
        """Whether two minima are at different smoothing parameters; terms that are smoothed away in both are alike."""
        most = self.problem.centre + AWAY
        away = np.minimum(one.found.log_sp, most) - np.minimum(other.found.log_sp, most)
        return bool((np.abs(away) >= APART).any())

    def others(self, best: _Point) -> Iterator[_Point]:
        """Minima at the same θ from other starts; from rougher ones where a term is smoothed away."""
        yield self.at(best.theta)
        centre = self.problem.centre
        for j in np.flatnonzero(best.found.log_sp > centre + AWAY) if self.log_sp is None else ():
            for start in (centre[j], centre[j] + AWAY / 2):
                log_sp = best.found.log_sp.copy()
                log_sp[j] = start
                yield self.at(best.theta, best, log_sp)

    def at(
        self,
        theta: FloatArray,
        near: _Point | None = None,
        log_sp: FloatArray | None = None,
        beta: FloatArray | None = None,
    ) -> _Point:
        """The minimum at a θ; the search for it starts at `near`, from its coefficients at `log_sp`, or from `beta`."""
        problem = replace(self.problem, family=self.family.at(theta))
        if near is None:
            found = optimum(problem, self.beta if beta is None else beta, self.log_sp)
        else:
            start = near.found.log_sp if log_sp is None else log_sp
            found = optimum(problem, near.found.at.beta, self.log_sp, start)
        value = found.problem.criterion(found.log_sp, found.at)
        return _Point(theta, found, value, along_theta(found.problem, found.at)[0])

    def descended(self, start: _Point) -> _Point:
        """The minimum next to a point, by Newton's method with the curvature that slopes have shown (BFGS)."""
        point, last = start, np.inf
        curvature = self.curvature(start) if self.free(start).any() else np.eye(start.theta.size)
        for _ in range(STEPS):
            step = self.step(point, curvature)
            size = float(np.abs(step).max())
            gain = -float(step @ point.slopes)
            if size < SURE or last / 2 < size < NEAR or (size > 0.1 and gain < FLAT * (1 + abs(point.value))):
                break
            trial = self.lower(point, step)
            if trial is None:
                break
            curvature = _updated(curvature, trial.theta - point.theta, trial.slopes - point.slopes)
            point, last = trial, size
            if self.search.unbounded and point.theta[-1] <= self.search.low[-1]:
                raise InputError(self.search.unbounded)
        return point

    def free(self, point: _Point) -> BoolArray:
        """Which coordinates of θ do not stand at an end beyond which V falls."""
        theta, low, high = point.theta, self.search.low, self.search.high
        return np.asarray(~(((theta <= low) & (point.slopes > 0)) | ((theta >= high) & (point.slopes < 0))))

    def curvature(self, point: _Point) -> FloatArray:
        """Second derivatives (d, d) of V's minimum by differences of slopes; their absolute values along each axis."""
        rows = []
        for axis in np.eye(point.theta.size):
            step = np.where(point.theta + FIRST > self.search.high, -FIRST, FIRST) * axis
            rows.append((self.at(point.theta + step, point).slopes - point.slopes) / step.sum())
        found = np.reshape(rows, (len(rows), len(rows)))
        values, axes = np.linalg.eigh((found + found.T) / 2)
        return np.asarray((axes * np.abs(values)) @ axes.T)

    def step(self, point: _Point, curvature: FloatArray) -> FloatArray:
        """Newton's step, not too long and within the ends."""
        free = self.free(point)
        step = np.zeros(free.size)
        own = curvature[np.ix_(free, free)] + 1e-12 * np.eye(int(free.sum()))
        step[free] = -np.linalg.solve(own, point.slopes[free])
        step *= min(1.0, LONGEST / max(float(np.abs(step).max()), 1e-300))
        return np.clip(point.theta + step, self.search.low, self.search.high) - point.theta

    def lower(self, point: _Point, step: FloatArray) -> _Point | None:
        """The point after a step, halved until V does not rise; None where it does so even then."""
        for halvings in range(HALVINGS):
            trial = self.at(point.theta + step / 2**halvings, point)
            if trial.value <= point.value + ROUNDING * (1 + abs(point.value)):
                return trial
        return None

    def chosen(self, best: _Point) -> ChosenSmoothing:
        """As :meth:`Laplace.chosen`, with θ after the smoothing parameters where it is not at an end."""
        problem, log_sp, at, _ = best.found
        slopes, moves = along_theta(problem, at)
        free, gradient, rows = self.free(best), problem.derivatives(log_sp, at)[0], []
        own = problem.chosen(log_sp, at)
        count, size = len(log_sp), len(log_sp) + int(free.sum())
        for axis, move in zip(np.eye(free.size)[free], moves[free], strict=True):
            there = replace(problem, family=self.family.at(best.theta + FORWARD * axis))
            near = there.inside(log_sp, at.beta + FORWARD * move)
            changed = there.derivatives(log_sp, near)[0] - gradient, (along_theta(there, near)[0] - slopes)[free]
            rows.append(np.concatenate(changed) / FORWARD)
        beside = np.reshape(rows, (size - count, size))
        hessian = np.block([[own.hessian, beside[:, :count].T], [beside]])
        hessian[count:, count:] = (hessian[count:, count:] + hessian[count:, count:].T) / 2
        whole = [problem.whole(move) for move in moves[free]]
        return ChosenSmoothing(hessian, np.reshape([*own.moves, *whole], (size, problem.keep.size)))


def _updated(curvature: FloatArray, step: FloatArray, change: FloatArray) -> FloatArray:
    """The curvature after slopes changed in a step (Broyden, Fletcher, Goldfarb & Shanno); positive along it."""
    own, seen = curvature @ step, float(step @ change)
    before = float(step @ own)
    if seen <= 0 or before <= 0:
        return curvature
    return np.asarray(curvature - np.outer(own, own) / before + np.outer(change, change) / seen)


class _Moved(NamedTuple):
    """Sums over observations: how V's parts move with θ, shapes (d,), (d, p) and (d,)."""

    loss: FloatArray
    residual: FloatArray
    determinant: FloatArray

    def plus(self, other: _Moved) -> _Moved:
        return _Moved(self.loss + other.loss, self.residual + other.residual, self.determinant + other.determinant)


def along_theta(problem: Laplace, at: Inside) -> tuple[FloatArray, FloatArray]:
    """Derivatives in θ at the same smoothing parameters, exact, in two passes: of V (d,) and of coefficients (d, p)."""
    keep = problem.keep
    inverse = at.root.T @ at.root
    full = np.zeros((keep.size, keep.size))
    full[np.ix_(keep, keep)] = inverse
    assert isinstance(problem.family, FamilyWithTheta)
    move = partial(_moved, problem.family, problem.whole(at.beta), full)
    moved: _Moved = over_blocks(problem.blocks, move, _Moved.plus)
    moves = moved.residual[:, keep] @ inverse
    pull = moves @ problem.pull_of_weights(at.beta, inverse)
    return moved.loss + (moved.determinant + pull) / 2, moves


def _moved(family: FamilyWithTheta, coefficients: FloatArray, inverse: FloatArray, block: Observed) -> _Moved:
    slopes = family.slopes(block.y, block.rows.predictor(coefficients) + block.offset)
    weights, levers = block.weights, block.rows.leverages(inverse)
    return _Moved(
        np.array([(weights * loss).sum() for loss in slopes.loss]),
        np.array([block.rows.cross(weights * residual) for residual in slopes.residual]),
        np.array([(weights * levers * weight).sum() for weight in slopes.weight]),
    )
