"""Cox's regression: terms by the penalised partial likelihood with Breslow's ties, in time that is linear in persons.

The profile of the Poisson likelihood of person-periods, with a constant for each time of events, is the partial
likelihood. So the steps are those of :class:`fdadp.solve.fit.family_fit.Laplace` with other sums: over the persons at
risk at each time, which are sums cumulated from the last time to the first. No person-periods are made.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from fdadp._common.typing import ArrayLike, FloatArray, IntArray
from fdadp.solve.fit.additive_fit import AdditiveFit
from fdadp.solve.fit.family_fit import Laplace, PenalizedStep, fit_family
from fdadp.solve.form.families_by_name import FAMILIES
from fdadp.solve.form.long_form_design import LongForm
from fdadp.solve.form.response_families import Family
from fdadp.solve.form.weighted_least_squares import Blocks, LongRows, Observed, over_blocks
from fdadp.solve.smoothing.normal_equations import OWN_SCALE, identified


@dataclass(frozen=True)
class RiskSets:
    """Who was at risk at each of the K times of events.

    Attributes
    ----------
    times : ndarray of shape (K,)
        Times of events, increasing.
    deaths : ndarray of shape (K,)
        Events at each.
    order : ndarray of shape (n,)
        Persons by the time until which they were seen.
    first : ndarray of shape (K,)
        Place in this order of the first person at risk; those after it are at risk, too.
    until : ndarray of shape (n,)
        Number of times of events until the end of each person, in order.
    entered : ndarray of shape (n,)
        Number of times of events until the entry of each person, in order: of these it was not at risk.
    """

    times: FloatArray
    deaths: FloatArray
    order: IntArray
    first: IntArray
    until: IntArray
    entered: IntArray

    @classmethod
    def of(cls, time: FloatArray, event: FloatArray, entry: FloatArray) -> RiskSets:
        """Of the times from which and until which n persons were seen, and whether that ended with the event (1)."""
        order = np.argsort(time, kind="stable")
        times, deaths = np.unique(time[event == 1], return_counts=True)
        own = time[order]
        return cls(
            times,
            deaths.astype(np.float64),
            order,
            np.searchsorted(own, times, side="left"),
            np.searchsorted(times, own, side="right"),
            np.searchsorted(times, entry[order], side="right"),
        )

    @cached_property
    def _later(self) -> tuple[IntArray, IntArray]:
        """Persons who entered after some time of an event, by their entries; place of the first of them, by time."""
        late = np.flatnonzero(self.entered)
        late = late[np.argsort(self.entered[late], kind="stable")]
        return late, np.searchsorted(self.entered[late], np.arange(self.times.size), side="right")

    def at_risk(self, values: FloatArray) -> FloatArray:
        """Sums over the persons at risk at each time, (K, ...), of values (n, ...) of persons in order."""
        total = np.cumsum(values[::-1], axis=0)[::-1][self.first]
        late, after = self._later
        if not late.size:
            return np.asarray(total)
        waiting = np.cumsum(values[late[::-1]], axis=0)[::-1]
        return np.asarray(total - np.concatenate((waiting, np.zeros_like(values[:1])))[after])

    def until_end(self, values: FloatArray) -> FloatArray:
        """Sums of values (K, ...) over the times of events at which each person in order was at risk, (n, ...)."""
        passed = np.concatenate((np.zeros((1, *values.shape[1:])), np.cumsum(values, axis=0)))
        return np.asarray(passed[self.until] - passed[self.entered])

    def jumps(self, eta: FloatArray) -> FloatArray:
        """Breslow's estimate of the hazard at each time, (K,), where the linear predictor (n,) is 0."""
        top = float(eta.max())
        return np.asarray(self.deaths * np.exp(-top) / self.at_risk(np.exp(eta[self.order] - top)))


@dataclass(frozen=True)
class CoxFit:
    """Fitted terms, and the baseline.

    Attributes
    ----------
    fit : AdditiveFit
        The constant of the form is the logarithm of the cumulated hazard at the last time of events.
    shares : ndarray of shape (K,)
        Of this cumulated hazard, at each time of events.
    loglik, null_loglik : float
        Of the partial likelihood, here and without terms.
    """

    fit: AdditiveFit
    shares: FloatArray
    loglik: float
    null_loglik: float


def fit_cox(form: LongForm, blocks: Blocks, risk: RiskSets, smoothing: str | ArrayLike, n: int) -> CoxFit:
    """Fit terms by the partial likelihood, smoothing parameters by REML in Laplace's approximation, or given.

    Parameters
    ----------
    form : LongForm
        The first term is the constant.
    blocks : Blocks
        Of all persons: responses are their events, 0 or 1.
    risk : RiskSets
    smoothing : "reml" or array_like of shape (M,)
    n : int
        Number of persons.

    References
    ----------
    Breslow (1974), doi:10.2307/2529620; Wood, Pya & Säfken (2016), doi:10.1080/01621459.2016.1180986.
    """
    start = _Start(risk)
    fit = fit_family(form, blocks, FAMILIES["poisson"], smoothing, n, start=start)
    problem = start.problem
    eta = problem.everybody @ fit.coefficients + problem.offset
    baseline = _Baseline.of(risk, eta, problem.everybody)
    # The constant: it changes with the coefficients, and has an error of its own.
    pull = fit.inverse @ baseline.slope
    inverse = fit.inverse.copy()
    inverse[0], inverse[:, 0] = pull, pull
    inverse[0, 0] = baseline.variance + baseline.slope @ pull
    coefficients, edf, known = fit.coefficients.copy(), fit.edf.copy(), fit.identified.copy()
    coefficients[0], edf[0], known[0] = baseline.log_total, 1.0, True
    fit = replace(fit, coefficients=coefficients, spread=inverse, edf=edf, identified=known)
    return CoxFit(fit, baseline.shares, problem.log_partial(eta), problem.log_partial(problem.offset))


@dataclass(frozen=True)
class _Baseline:
    """Logarithm of the cumulated hazard, its derivative in all coefficients, its own variance, and shares by time."""

    log_total: float
    slope: FloatArray
    variance: float
    shares: FloatArray

    @classmethod
    def of(cls, risk: RiskSets, eta: FloatArray, rows: FloatArray) -> _Baseline:
        jumps = risk.jumps(eta)
        total = float(jumps.sum())
        weight = np.exp(eta[risk.order] - eta.max())
        means = risk.at_risk(weight[:, None] * rows[risk.order]) / risk.at_risk(weight)[:, None]
        slope = -(jumps @ means) / total
        slope[0] = 0.0
        return cls(float(np.log(total)), slope, float((jumps**2 / risk.deaths).sum()) / total**2, jumps / total)


@dataclass
class _Start:
    """Makes the problem, and keeps it."""

    risk: RiskSets
    problem: PartialLikelihood = field(init=False)

    def __call__(
        self, form: LongForm, blocks: Blocks, family: Family, n_unpenalized: int | None
    ) -> tuple[Laplace, FloatArray]:
        penalties = form.stacked_penalties
        every, none = np.ones(form.size, dtype=bool), np.zeros((form.size, form.size))
        whole = PartialLikelihood(blocks, family, penalties, every, 0, none, none[0], risk=self.risk)
        gram = whole.look(none[0]).gram
        keep = identified(gram, penalties, floor=OWN_SCALE)
        keep[0] = False
        own = gram[np.ix_(keep, keep)]
        free = int((penalties[:, keep] == 0).all(axis=0).sum())
        zero = np.zeros(len(own))
        self.problem = PartialLikelihood(blocks, family, penalties[:, keep], keep, free, own, zero, risk=self.risk)
        return self.problem, zero


@dataclass
class PartialLikelihood(Laplace):
    """The problem of :class:`fdadp.solve.fit.family_fit.Laplace`, where persons at risk at one time belong together."""

    risk: RiskSets = field(kw_only=True)

    @cached_property
    def everybody(self) -> FloatArray:
        """Rows (n, p) of all persons."""
        parts: list[FloatArray] = over_blocks(self.blocks, _rows_of, operator.add)
        return np.vstack(parts)

    @cached_property
    def offset(self) -> FloatArray:
        """What is added to the linear predictor of each person, (n,)."""
        return np.concatenate(over_blocks(self.blocks, lambda block: [block.offset.ravel()], operator.add))

    @cached_property
    def _events(self) -> FloatArray:
        """Events (n,) of persons in the order of the risk sets."""
        events = np.concatenate(over_blocks(self.blocks, lambda block: [block.y.ravel()], operator.add))
        return np.asarray(events[self.risk.order])

    @cached_property
    def _rows(self) -> FloatArray:
        """Identified columns of rows about their means, in the order of the risk sets: a shift of all is no matter."""
        rows = self.everybody[self.risk.order][:, self.keep]
        return np.asarray(rows - rows.mean(axis=0))

    def _at(self, beta: FloatArray) -> _AtRisk:
        eta = self._rows @ beta + self.offset[self.risk.order]
        top = float(eta.max())
        return _AtRisk.of(self.risk, eta, np.exp(eta - top), top, self._rows)

    def log_partial(self, eta: FloatArray) -> float:
        """Logarithm of the partial likelihood at a linear predictor (n,) of persons."""
        top, own = float(eta.max()), eta[self.risk.order]
        total = np.log(self.risk.at_risk(np.exp(own - top))) + top
        return float(self._events @ own - self.risk.deaths @ total)

    def look(self, beta: FloatArray, weights: str = "weight") -> PenalizedStep:
        """Deviance of the Poisson likelihood that is profiled, information and score; all weights are the same."""
        self.passes += 1
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            at, rows = self._at(beta), self._rows
            residual = self._events - at.mean
            deviance = -2 * float(self._events @ at.eta + self.risk.deaths @ at.log_jumps)
            gram = (rows * at.mean[:, None]).T @ rows - (at.means.T * self.risk.deaths) @ at.means
            pearson = float((residual**2 / np.maximum(at.mean, 1e-100)).sum())
        if not np.isfinite(deviance):
            deviance = np.inf
        return PenalizedStep(deviance, gram, rows.T @ residual, pearson)

    def pull_of_weights(self, beta: FloatArray, inverse: FloatArray) -> FloatArray:
        """Gradient of log|A| in the coefficients: third moments over those at risk, about their means."""
        self.passes += 1
        at, rows, deaths = self._at(beta), self._rows, self.risk.deaths
        turned = rows @ inverse
        leverage = np.einsum("ij,ij->i", turned, rows)
        of_time = self.risk.at_risk(at.weight * leverage) / at.total
        first = rows.T @ (at.mean * leverage) - at.means.T @ (deaths * of_time)
        passed = self.risk.until_end(at.means * (deaths / at.total)[:, None])
        of_means = np.einsum("ij,ij->i", at.means @ inverse, at.means)
        second = rows.T @ (at.weight * np.einsum("ij,ij->i", turned, passed)) - at.means.T @ (deaths * of_means)
        return np.asarray(first - 2 * second)


@dataclass(frozen=True)
class _AtRisk:
    """At some coefficients, of persons in order and of times of events.

    Attributes
    ----------
    eta, weight, mean : ndarray of shape (n,)
        Linear predictor, ``exp(eta - top)``, and expected number of events.
    total, log_jumps : ndarray of shape (K,)
        Sum of the weights at risk, and logarithm of the hazard where the predictor is 0.
    means : ndarray of shape (K, p)
        Weighted mean row of those at risk.
    """

    eta: FloatArray
    weight: FloatArray
    mean: FloatArray
    total: FloatArray
    log_jumps: FloatArray
    means: FloatArray

    @classmethod
    def of(cls, risk: RiskSets, eta: FloatArray, weight: FloatArray, top: float, rows: FloatArray) -> _AtRisk:
        total = risk.at_risk(weight)
        mean = weight * risk.until_end(risk.deaths / total)
        means = risk.at_risk(weight[:, None] * rows) / total[:, None]
        return cls(eta, weight, mean, total, np.log(risk.deaths / total) - top, means)


def _rows_of(block: Observed) -> list[FloatArray]:
    assert isinstance(block.rows, LongRows)  # responses are numbers
    return [block.rows.matrix]
