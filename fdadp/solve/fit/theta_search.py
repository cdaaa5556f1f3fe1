"""θ of negative binomial responses by REML, together with smoothing parameters: a search in one dimension about those.

At each θ the smoothing parameters are those of :func:`fdadp.solve.fit.family_fit.optimum`, where V does not change with
them. So the slope of V's minimum along log θ is the partial one, which is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.solve.fit.additive_fit import AdditiveFit
from fdadp.solve.fit.family_fit import APART, Laplace, Optimum, first_problem, fit_family, given, optimum
from fdadp.solve.form.long_form_design import LongForm
from fdadp.solve.form.response_families import LEAST_THETA, MOST_THETA, Family, NegativeBinomial
from fdadp.solve.form.weighted_least_squares import Blocks, Observed, over_blocks

TRIED = (0.1, 1.0, 10.0, 100.0, MOST_THETA)
"""Values of θ, of which the two with the lowest V are starts of the search."""

STEP = 0.5
"""First step of the search along log θ; further ones are longer."""

LONGEST = 2.0
"""Of these steps."""

SURE = 1e-8
"""Error of log θ."""

LOWER = 1e-7
"""By how much V must be lower at other smoothing parameters for these to be another minimum, as a share of V."""

AWAY = 8.0
"""By how much a log λ is above the size of the information where its term has hardly any degrees of freedom left."""


def fit_with_theta(
    form: LongForm,
    blocks: Blocks,
    family: Family,
    smoothing: str | ArrayLike,
    n: int,
    n_unpenalized: int | None = None,
) -> AdditiveFit:
    """Fit negative binomial responses with the θ at which V, minimal in the smoothing parameters, is lowest.

    Where responses do not vary more than Poisson's, V falls for ever: θ is then :data:`MOST_THETA`.

    Parameters
    ----------
    form, blocks, smoothing, n, n_unpenalized
        As of :func:`fdadp.solve.fit.family_fit.fit_family`.
    family : NegativeBinomial
        Its θ is not used.

    Returns
    -------
    AdditiveFit
        With its :attr:`~fdadp.solve.fit.additive_fit.AdditiveFit.family`.
    """
    with one_blas_thread():
        log_sp = given(smoothing, form)
        best = _Along(*first_problem(form, blocks, NegativeBinomial(1.0), n_unpenalized), log_sp).lowest()
    chosen = replace(_family(best.log_theta), chosen=True)
    near = best.found.log_sp if log_sp is None else None
    fit = fit_family(form, blocks, chosen, smoothing, n, n_unpenalized, near=near)
    return replace(fit, family=chosen)


def _family(log_theta: float) -> NegativeBinomial:
    return NegativeBinomial(float(np.clip(np.exp(log_theta), LEAST_THETA, MOST_THETA)))


class _Point(NamedTuple):
    """A θ, the minimum of V there, its value and its slope along log θ."""

    log_theta: float
    found: Optimum
    value: float
    slope: float


@dataclass(frozen=True)
class _Along:
    """V along log θ.

    Attributes
    ----------
    problem : Laplace
    beta : ndarray
        Coefficients of one mean.
    log_sp : ndarray or None
        Smoothing parameters that were given.
    """

    problem: Laplace
    beta: FloatArray
    log_sp: FloatArray | None

    def lowest(self) -> _Point:
        """The lowest minimum that is found from the best points tried, and from any lower one at the same θ."""
        points = sorted((self.at(float(np.log(theta))) for theta in TRIED), key=lambda point: point.value)
        best = self.descended(points[0])
        if self.apart(points[0], points[1]):
            best = min(best, self.descended(points[1]), key=lambda point: point.value)
        for _ in range(len(TRIED)):
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
        yield self.at(best.log_theta)
        centre = self.problem.centre
        for j in np.flatnonzero(best.found.log_sp > centre + AWAY) if self.log_sp is None else ():
            for start in (centre[j], centre[j] + AWAY / 2):
                log_sp = best.found.log_sp.copy()
                log_sp[j] = start
                yield self.at(best.log_theta, best, log_sp)

    def at(self, log_theta: float, near: _Point | None = None, log_sp: FloatArray | None = None) -> _Point:
        """The minimum at a θ; the search for it starts at `near`, or from its coefficients at `log_sp`."""
        problem = replace(self.problem, family=_family(log_theta))
        if near is None:
            found = optimum(problem, self.beta, self.log_sp)
        else:
            start = near.found.log_sp if log_sp is None else log_sp
            found = optimum(problem, near.found.at.beta, self.log_sp, start)
        value = found.problem.criterion(found.log_sp, found.at)
        return _Point(log_theta, found, value, slope_along_theta(found.problem, found))

    def descended(self, start: _Point) -> _Point:
        """The minimum next to a point: between the last θ at which V fell and the first at which it rose."""
        from scipy.optimize import brentq

        low, high = np.log(LEAST_THETA), np.log(MOST_THETA)
        step, fell, point = -np.sign(start.slope) * STEP, start, start
        while point.slope * start.slope > 0:
            if point.log_theta == np.clip(point.log_theta + step, low, high):
                return point
            fell, point = point, self.at(float(np.clip(point.log_theta + step, low, high)), point)
            step = np.sign(step) * min(2 * abs(step), LONGEST)
        seen = {fell.log_theta: fell, point.log_theta: point}

        def slope(log_theta: float) -> float:
            if log_theta not in seen:
                near = min(seen, key=lambda other: abs(other - log_theta))
                seen[log_theta] = self.at(log_theta, seen[near])
            return seen[log_theta].slope

        root = point.log_theta
        if fell.slope * point.slope < 0:
            root = float(brentq(slope, fell.log_theta, point.log_theta, xtol=SURE, rtol=1e-12))
            slope(root)
        return seen[root]


class _Moved(NamedTuple):
    """Sums over observations: how V's parts move with log θ."""

    loss: float
    residual: FloatArray
    determinant: float

    def plus(self, other: _Moved) -> _Moved:
        return _Moved(self.loss + other.loss, self.residual + other.residual, self.determinant + other.determinant)


def slope_along_theta(problem: Laplace, found: Optimum) -> float:
    """Derivative of V in log θ at the same smoothing parameters, with the coefficients that follow, in two passes."""
    keep, at = problem.keep, found.at
    inverse = at.root.T @ at.root
    full = np.zeros((keep.size, keep.size))
    full[np.ix_(keep, keep)] = inverse
    assert isinstance(problem.family, NegativeBinomial)
    move = partial(_moved, problem.family, problem.whole(at.beta), full)
    moved: _Moved = over_blocks(problem.blocks, move, _Moved.plus)
    pull = problem.pull_of_weights(at.beta, inverse) @ inverse @ moved.residual[keep]
    return float(moved.loss + (moved.determinant + pull) / 2)


def _moved(family: NegativeBinomial, coefficients: FloatArray, inverse: FloatArray, block: Observed) -> _Moved:
    slopes = family.slopes(block.y, block.rows.predictor(coefficients) + block.offset)
    weights = block.weights
    levers = block.rows.leverages(inverse)
    return _Moved(
        float((weights * slopes.loss).sum()),
        block.rows.cross(weights * slopes.residual),
        float((weights * levers * slopes.weight).sum()),
    )
