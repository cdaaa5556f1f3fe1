"""What private survival curves and private hazards would be worth, before there are data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fdadp._common.argument_checks import is_number, numbers, whole
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.functional.tables.curve_sample import Curves
from fdadp.planner.forecast_display import AnyForecast, FormulaForecast
from fdadp.planner.forecast_of_formulas import _columns, _said, grids_of, told_curves
from fdadp.planner.forecast_settings import Asked, Cohorts, Spread, quietly
from fdadp.planner.simulated_fit_of_terms import TINY, Said, _drawn, _records
from fdadp.private.plan.private_design import PrivateDesign
from fdadp.private.public.column_ranges import CurvesColumn
from fdadp.private.public.gaussian_process_prior import PublicPrior
from fdadp.private.release.mechanisms import DPAFF
from fdadp.private.whitened.term_registry import white_term
from fdadp.regression.formula import parse
from fdadp.regression.private.private_table import is_pair
from fdadp.regression.reading.person_periods import PERIOD, Periods
from fdadp.regression.survival import SurvivalFormula, SurvivalRegression
from fdadp.summaries.cohort_of_columns import check
from fdadp.summaries.questions.column_questions import AskCells
from fdadp.summaries.survival_curves import SurvivalCounts, difference, survival_edges

DRAWS, PARTS = 200, 32
"""Tables of counts that are drawn, and parts of an interval in which nobody is lost before the event."""
COHORTS, MOST_PERSON_PERIODS = Cohorts(32, 64, 0.03), 80_000
"""Cohorts of hazards that are fitted, and their person-periods at most. Errors vary by a third: of 12, means by .1."""
JUDGED = 3
"""Share and both errors of hazards: whether enough cohorts are simulated is judged by them."""
LEAST, FAR = 1e-9, 60.0
"""Probability of the event in a period, at least, and level of a linear predictor at most."""
SPREAD = 0.8
"""Sd over persons of the log-odds of the event, or of the logarithm of its hazard."""


@dataclass(frozen=True)
class Course:
    """How many persons are expected to be without the event, and how many to be lost before the last time.

    Attributes
    ----------
    edges : ndarray of shape (K + 1,)
    survival : ndarray of shape (K,)
        Expected at the end of each interval, decreasing within (0, 1].
    lost : ndarray of shape (K,)
        Share of persons whose censoring comes before each end, at any time of an interval alike.
    by_end : bool
        Whether survival was told at all ends; else the hazard is constant.
    """

    edges: FloatArray
    survival: FloatArray
    lost: FloatArray
    by_end: bool = True

    @classmethod
    def of(cls, survival: float | Sequence[float], lost: float | Sequence[float], edges: FloatArray) -> Course:
        """From shares at the last end, with a constant hazard, and losses alike, until then; or at all ends.

        Raises
        ------
        InputError
            No shares, survival that increases, or losses that decrease.
        """
        given, gone = np.atleast_1d(numbers(survival, "survival")), np.atleast_1d(numbers(lost, "lost"))
        part = (edges[1:] - edges[0]) / (edges[-1] - edges[0])
        by_end = given.size > 1
        if not by_end:
            given = np.where(given > 0, given, math.nan) ** part
        falling = given.shape == edges[1:].shape and (np.diff(np.append(1.0, given)) <= 0).all()
        if not falling or not (given > 0).all() or given[-1] == 1:
            raise InputError(
                f"survival must be the expected share without the event at the last time, or {edges.size - 1} shares "
                f"that decrease, above 0 and below 1, got {survival!r}"
            )
        gone = gone * part if gone.size == 1 else gone
        if gone.shape != part.shape or not (np.diff(np.append(0.0, gone)) >= 0).all() or not gone[-1] < 1:
            raise InputError(
                f"lost must be a share of at least 0 and below 1, or {part.size} such shares that do not decrease, "
                f"got {lost!r}"
            )
        return cls(edges, given, gone, by_end)

    @property
    def hazards(self) -> FloatArray:
        """Probability of the event in each interval, (K,)."""
        return np.asarray(1 - self.survival / np.append(1.0, self.survival[:-1]))

    def cells(self) -> FloatArray:
        """Probabilities of an event in each of K intervals, of being censored there, and of being seen to the end."""
        K, start = self.survival.size, self.edges[:-1, None]
        within = np.linspace(0, 1, PARTS + 1)  # of an interval, where the hazard is constant
        alive = np.append(1.0, self.survival[:-1])[:, None] * (1 - self.hazards[:, None]) ** within
        seen = 1 - np.interp(start + np.diff(self.edges)[:, None] * within, self.edges, np.append(0.0, self.lost))
        events = (-np.diff(alive) * (seen[:, :-1] + seen[:, 1:]) / 2).sum(axis=1)
        censored = (-np.diff(seen) * (alive[:, :-1] + alive[:, 1:]) / 2).sum(axis=1)
        return np.concatenate((events, censored, [alive[K - 1, -1] * seen[K - 1, -1]]))

    def times(self, hazards: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """How long persons were seen, and 1 where that ended with the event, both (n,); of their hazards (n, K)."""
        n, K = hazards.shape
        there = rng.random((n, K)) < hazards
        at = np.where(there.any(axis=1), there.argmax(axis=1), K - 1)
        chance = hazards[np.arange(n), at].clip(LEAST, 1 - LEAST)  # the hazard is constant within an interval
        end = self.edges[at] + np.diff(self.edges)[at] * np.log1p(-chance * (1 - rng.random(n))) / np.log1p(-chance)
        end = np.where(there.any(axis=1), end, math.inf)
        lost = np.interp(rng.random(n), np.append(0.0, self.lost), self.edges)  # beyond the last share it is the end
        return np.minimum(end, lost), np.asarray(end <= lost, dtype=np.float64)


@dataclass(frozen=True)
class SurvivalForecast(AnyForecast):
    """Predicted limits of :func:`~fdadp.summaries.private_survival`; ``print`` shows them.

    Attributes
    ----------
    n, epsilon, delta, adjacency
        As asked for.
    ends : tuple of float
        Ends of the intervals.
    survival : tuple of float
        That was simulated at them.
    widths, exact_widths : tuple of float
        Mean width of the limits at each end, and of the same without noise.
    coverage : float
        Share of limits that hold what was simulated.
    level : float
    difference_widths : tuple of float
        Of two equally large classes, the width of the limits of their difference; else empty.

    Examples
    --------
    >>> from fdadp.planner import plan_survival
    >>> forecast = plan_survival(2000, 1.0, 1e-6, edges=range(13), survival=0.3)
    >>> forecast.exact_widths[-1] < forecast.widths[-1]
    True
    """

    ends: tuple[float, ...]
    survival: tuple[float, ...]
    widths: tuple[float, ...]
    exact_widths: tuple[float, ...]
    coverage: float
    level: float
    difference_widths: tuple[float, ...] = ()

    mechanism = "private survival"
    _subject = " of survival"
    _closing = "From drawn counts of the survival and the losses that were said: no promise about your data."

    def width(self, time: float) -> float:
        """Width of the limits at a time: at the last end that is not after it."""
        at = int(np.searchsorted(self.ends, time, side="right")) - 1
        if at < 0:
            raise InputError(f"time must be at least {self.ends[0]:g}, the end of the first interval, got {time!r}")
        return self.widths[at]

    def _facts(self) -> list[tuple[str, str]]:
        percent = f"{100 * self.level:g} %"
        apart = self.difference_widths or (None,) * len(self.ends)
        facts = []
        for t, s, width, exact, gap in zip(
            self.ends, self.survival, self.widths, self.exact_widths, apart, strict=True
        ):
            facts.append((f"at {t:g}, survival {s:.2f}: width of {percent} limits", f"{width:.3f}"))
            facts.append(("  the same without privacy", f"{exact:.3f}"))
            if gap is not None:
                facts.append(("  of the difference of two classes", f"{gap:.3f}"))
        return [*facts, (f"coverage of {percent} limits", f"{self.coverage:.2f}")]


def plan_survival(
    n: int,
    epsilon: float = 1.0,
    delta: float | None = None,
    *,
    edges: Sequence[float],
    survival: float | Sequence[float] = 0.5,
    lost: float | Sequence[float] = 0.2,
    classes: int = 1,
    level: float = 0.95,
    adjacency: str | None = None,
) -> SurvivalForecast:
    """Predict how wide the limits of a private survival curve will be, before any data are touched.

    Parameters
    ----------
    n : int
        Number of persons, of all classes together.
    epsilon : float
    delta : float, optional
        None means pure ε.
    edges : sequence of float
        As of :func:`~fdadp.summaries.private_survival`.
    survival : float or sequence of float
        Expected share of persons without the event at the last edge, where the hazard is constant; or at the end of
        each interval.
    lost : float or sequence of float
        Share of persons whose censoring comes before the last edge, at any time alike; or before the end of each
        interval.
    classes : int
        Number of classes of ``by=``, of n / classes persons each.
    level : float
        Of the limits.
    adjacency : {"zero-out", "add-remove", "replace"}, optional

    Returns
    -------
    SurvivalForecast

    Raises
    ------
    InputError, PrivacyError
        A setting out of range.

    Notes
    -----
    The noise is that of the release, and the counts are drawn: exact for the survival that was said.

    Examples
    --------
    >>> from fdadp.planner import plan_survival
    >>> forecast = plan_survival(2000, 1.0, 1e-6, edges=range(13), survival=0.3)
    >>> 0.03 < forecast.width(6) < 0.15
    True
    """
    asked = Asked.of(n, epsilon, delta, adjacency)
    check(asked.privacy(asked.n, 0), level)
    cuts = survival_edges(edges)
    course = Course.of(survival, lost, cuts)
    several = whole(classes, "classes", most=100)
    rng = np.random.default_rng(0)
    sd = _noise_of_counts(asked, several * (2 * cuts.size - 1))
    widths, held, apart, exact = [], [], [], []
    for _ in range(DRAWS):
        own = [_drawn_counts(course, asked, several, sd, rng) for _ in range(min(several, 2))]
        without, _ = _width(_drawn_counts(course, asked, several, 0.0, rng), course, level)
        width, holds = _width(own[0], course, level)
        widths.append(width)
        held.append(holds)
        exact.append(without)
        if several == 2:
            apart.append([row.high - row.low for row in difference(own[0], own[1], level)])
    return SurvivalForecast(
        **vars(asked),
        ends=tuple(cuts[1:].tolist()),
        survival=tuple(course.survival.tolist()),
        widths=tuple(np.mean(widths, axis=0).tolist()),
        exact_widths=tuple(np.mean(exact, axis=0).tolist()),
        coverage=float(np.mean(held)),
        level=float(level),
        difference_widths=tuple(np.mean(apart, axis=0).tolist()) if apart else (),
    )


def _noise_of_counts(asked: Asked, cells: int) -> float:
    """Sd of the noise in each count of a release that takes the whole budget."""
    question = AskCells(cells, None, pure=asked.pure)
    return question.planned_sd(asked.amount, asked.adjacency, pure=asked.pure)


def _drawn_counts(course: Course, asked: Asked, classes: int, sd: float, rng: np.random.Generator) -> SurvivalCounts:
    """Counts of one class, with noise of this sd."""
    persons = max(asked.n // classes, 1)
    counts = rng.multinomial(persons, course.cells()).astype(np.float64)
    drawn = rng.laplace if asked.pure else rng.normal
    scale = sd / math.sqrt(2) if asked.pure else sd
    total = None
    if classes == 1 and asked.adjacency != "add-remove":
        total = persons + float(drawn(0.0, scale)) if sd else float(persons)
    return SurvivalCounts.of(counts + (drawn(0.0, scale, counts.size) if sd else 0.0), sd, total)


def _width(counts: SurvivalCounts, course: Course, level: float) -> tuple[FloatArray, float]:
    """Widths of the limits at the ends, and the share of them that holds the truth."""
    low, high = np.array([(row.low, row.high) for row in counts.limits(level)]).T
    return high - low, float(((low <= course.survival) & (course.survival <= high)).mean())


# Hazards by terms.


@dataclass(frozen=True)
class HazardsForecast(FormulaForecast, AnyForecast):
    """Predicted accuracy of a private :class:`~fdadp.SurvivalRegression`; ``print`` shows it.

    Attributes
    ----------
    n, epsilon, delta, adjacency
        As asked for.
    formula : str
    share : Spread
        Explained share of the variance of hazards over persons, within periods: its mean over cohorts, what the worst
        tenth has at most and the best at least, and the standard error.
    error : Spread
        Root mean square error of a person's hazard in a period, over the mean hazard.
    mean_error : Spread
        The same of the mean hazard of all persons, by period.
    survival_error : Spread
        Root mean square error of a person's survival until the last time.
    spread : float
        That was simulated: sd over persons of the log-odds, or logarithm, of hazards.
    survival : float
        That was simulated until the last time.
    cohorts : int
    untold : tuple of str
        Arguments of :func:`plan_hazards` that were not told: what they would say was drawn for each cohort.

    Examples
    --------
    >>> from fdadp.planner import plan_hazards
    >>> public = {"age": (18, 90)}
    >>> forecast = plan_hazards("Surv(months, died) ~ age", 2000, 1.0, 1e-6, times=range(5), bounds=public)
    >>> forecast.mean_error.mean < forecast.error.mean
    True
    """

    formula: str
    share: Spread
    error: Spread
    mean_error: Spread
    survival_error: Spread
    spread: float
    survival: float
    cohorts: int
    untold: tuple[str, ...] = ()

    mechanism = "dp-aff"

    def _facts(self) -> list[tuple[str, str]]:
        return [
            *self.share.facts("explained share of the variance of hazards", self.cohorts),
            *self.error.in_short("error of a person's hazard, over the mean hazard"),
            *self.mean_error.in_short("error of the mean hazard of a period, over itself"),
            *self.survival_error.in_short("error of a person's survival until the last time"),
            ("assumed: sd of log hazards over persons", f"{self.spread:.2f}"),
            ("assumed: survival until the last time", f"{self.survival:.2f}"),
        ]


class OfHazards(NamedTuple):
    """Of one simulated fit, as attributes of :class:`HazardsForecast`."""

    share: float
    error: float
    mean_error: float
    survival_error: float


def plan_hazards(
    formula: str,
    n: int,
    epsilon: float = 1.0,
    delta: float | None = None,
    *,
    times: ArrayLike,
    bounds: Mapping[str, Any],
    grids: Mapping[str, ArrayLike | int] | None = None,
    survival: float | Sequence[float] = 0.5,
    lost: float | Sequence[float] = 0.2,
    spread: float = SPREAD,
    effects: str | None = None,
    numbers: Mapping[str, Sequence[float]] | None = None,
    importances: Mapping[str, float] | None = None,
    curves: Mapping[str, ArrayLike] | None = None,
    family: str = "binomial",
    baseline: str = "auto",
    adjacency: str | None = None,
    prior: PublicPrior | None = None,
) -> HazardsForecast:
    """Predict what a private regression of times to an event will explain, before any data are touched.

    Cohorts are drawn from the public prior and fitted as :class:`fdadp.SurvivalRegression` would be: 32 to 64 of them,
    fewer where they agree, which takes up to a minute.

    Parameters
    ----------
    formula : str
        As of the fit, ``"Surv(months, died) ~ lf(X) + age"``.
    n : int
        Number of persons.
    epsilon : float
    delta : float, optional
        None means pure ε.
    times : array_like of shape (K + 1,)
        Public: where time begins, and the ends of the periods.
    bounds : mapping of str
        What is public of each covariate, as of the fit.
    grids : mapping of str to array_like or int, optional
        Grids of curves, or their numbers of points; default 51.
    survival, lost
        As of :func:`plan_survival`. Told survival at the last time alone, each person's hazard is constant; at the end
        of each period, errors are forecast better.
    spread : float
        Sd over persons of the log-odds of the event in a period (``"binomial"``), or of the logarithm of its hazard.
        Terms of the period itself are fitted, and have no effect in the simulation.
    effects, numbers, importances
        As of :func:`fdadp.plan`. What is not told is drawn anew for each cohort.
    curves : mapping of str to array_like of shape (m, S), optional
        Public curves of at least 20 persons, as of an earlier study, by column: persons have curves of their mean
        and covariance, normal ones as far as these look so.
        Default: drawn from the prior, which has rougher ones than most; they have more directions to learn.
    family, baseline
        As of the fit.
    adjacency : {"zero-out", "add-remove", "replace"}, optional
    prior : PublicPrior, optional
        Of the fit.

    Returns
    -------
    HazardsForecast

    Raises
    ------
    InputError, PrivacyError
        A setting out of range, or too few persons or too small a budget for any fit; the text says what it takes.

    Notes
    -----
    Where there are more than 80,000 person-periods, fewer persons with the same noise a person are simulated. Then the
    sampling error is overstated, which is cautious.

    Examples
    --------
    >>> from fdadp.planner import plan_hazards
    >>> public = {"age": (18, 90)}
    >>> plan_hazards("Surv(months, died) ~ age", 2000, 1.0, 1e-6, times=range(5), bounds=public).share.mean > 0.5
    True
    """
    asked = Asked.of(n, epsilon, delta, adjacency)
    names = SurvivalFormula.read(formula)
    if names.entry is not None:
        raise InputError(f"formula must be of persons seen from the beginning, Surv(time, event), got {formula!r}")
    edges = Periods.given(times, "half").edges
    course = Course.of(survival, lost, edges)
    if not is_number(spread) or not 0 < spread < math.inf:
        raise InputError(f"spread must be a number above 0, got {spread!r}")
    prior = PublicPrior() if prior is None else prior
    told = told_curves(curves)
    design, grid_of = _covariates(names, bounds, grids_of(told, grids), prior)
    few = min(asked.n, MOST_PERSON_PERIODS // (edges.size - 1))

    def fit(table: Mapping[str, Any], seed: int) -> SurvivalRegression:
        how: dict[str, Any] = {"times": edges, "family": family, "baseline": baseline, "bounds": bounds}
        how |= {"privacy": asked.privacy(few, seed), "mechanism": DPAFF(prior=prior)}
        with quietly():
            return SurvivalRegression(formula, progress=False, **how).fit(table, grids=grid_of)

    said = _said((), None, effects, numbers, importances, told, design)
    law = _Hazards(design, course, float(spread), family == "poisson", said, names)
    found: list[OfHazards] = []
    while not COHORTS.enough(*([one[i] for one in found] for i in range(JUDGED))):
        found.append(law.one_cohort(few, fit, grid_of, len(found)))
    share, error, mean_error, survival_error = np.array(found).T
    return HazardsForecast(
        **vars(asked),
        formula=formula,
        share=Spread.of(share),
        error=Spread.of(error, least_is_best=True),
        mean_error=Spread.of(mean_error, least_is_best=True),
        survival_error=Spread.of(survival_error, least_is_best=True),
        spread=float(spread),
        survival=float(course.survival[-1]),
        cohorts=len(found),
        untold=tuple(name for name in said.untold(design) if name != "explained"),
    )


def _covariates(
    names: SurvivalFormula, bounds: Any, grids: Mapping[str, Any] | None, prior: PublicPrior
) -> tuple[PrivateDesign, dict[str, FloatArray]]:
    """Public coordinates of the terms that are not of the period, and the grids of curves."""
    if not isinstance(bounds, Mapping):
        raise InputError(f"bounds must say what is public of each column, as of a private fit, got {bounds!r}")
    kinds = {str(name): "numbers" if is_pair(own) else "labels" for name, own in bounds.items()}
    parsed = parse(f"{names.event} ~ {names.right}", kinds | {names.event: "numbers", PERIOD: "numbers"})
    parsed = parsed._replace(terms=tuple(spec for spec in parsed.terms if PERIOD not in spec.columns))
    columns, _ = _columns(parsed, bounds, grids or {}, prior, numbers=True)
    if not parsed.terms:
        raise InputError(f"formula must have a term of a covariate, got {names.right!r}")
    by_name = {column.name: column for column in columns}
    made = [white_term(spec, by_name, prior, curves=False, t=None) for spec in parsed.terms]
    curves = {column.name: column.grid for column in columns if isinstance(column, CurvesColumn)}
    return PrivateDesign.of(prior, columns, made, None), curves


@dataclass(frozen=True)
class _Hazards:
    """Persons whose hazards hang on covariates."""

    design: PrivateDesign
    course: Course
    spread: float
    proportional: bool
    said: Said
    names: SurvivalFormula

    def of_predictor(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Hazards, and probabilities of the event in a period: the same, but where hazards are proportional rates."""
        if self.proportional:
            rates = np.exp(eta)
            return rates, -np.expm1(-rates)
        chances = 1 / (1 + np.exp(-eta))
        return chances, chances

    def levels(self, signal: FloatArray) -> FloatArray:
        """Levels (K,) of linear predictors at which persons of these signals together survive as was said.

        Those of high hazards are gone first: at one level the hazard of those who are left falls. Told the last end
        alone, each person's hazard is constant.
        """
        from scipy.optimize import brentq

        if not self.course.by_end:
            length = np.diff(self.course.edges)
            apart = np.log(length / length.mean())
            last = float(self.course.survival[-1])

            def left(level: float) -> float:
                chance = self.of_predictor(signal[:, None] + level + apart)[1]
                return float(np.prod(1 - chance, axis=1).mean()) - last

            return np.asarray(brentq(left, -FAR, FAR, xtol=1e-6) + apart)
        alive, found = np.ones(signal.size), []
        for p in np.maximum(self.course.hazards, LEAST):

            def gap(level: float, p: float = p, alive: FloatArray = alive) -> float:
                return float(alive @ self.of_predictor(signal + level)[1]) - p * float(alive.sum())

            found.append(brentq(gap, -FAR, FAR, xtol=1e-6))
            alive = alive * (1 - self.of_predictor(signal + found[-1])[1])
        return np.array(found)

    def one_cohort(
        self, n: int, fit: Callable[[Mapping[str, Any], int], SurvivalRegression], grids: Any, seed: int
    ) -> OfHazards:
        """Fit n persons, and judge the hazards of others."""
        rng = np.random.default_rng([seed, n])
        block, signal = _drawn(self.design, (0.0, 1.0), n, rng, self.said, self.said.people(seed).power)
        signal = (signal - signal.mean()) * (self.spread / max(float(signal.std()), TINY))
        hazards, chance = self.of_predictor(signal + self.levels(signal[:, 0]))
        time, event = self.course.times(chance[:n], rng)
        columns = _records(self.design, block).columns
        table = {name: own.values if isinstance(own, Curves) else own for name, own in columns.items()}
        train = {name: own[:n] for name, own in table.items()} | {self.names.time: time, self.names.event: event}
        model = fit(train, seed)
        new, truth = {name: own[n:] for name, own in table.items()}, hazards[n:]
        found = np.asarray(model.predict(new, type="hazard", grids=grids))
        lived, alive = np.asarray(model.predict_survival(new, grids=grids))[:, -1], np.prod(1 - chance[n:], axis=1)
        mean = truth.mean(axis=0)
        off = found - truth
        return OfHazards(
            1 - float((off**2).mean() / ((truth - mean) ** 2).mean()),
            math.sqrt(float((off**2).mean())) / float(mean.mean()),
            math.sqrt(float(((off.mean(axis=0) / mean) ** 2).mean())),
            math.sqrt(float(((lived - alive) ** 2).mean())),
        )
