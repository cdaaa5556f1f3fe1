"""What a private mixed model would be worth, before there are data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fdadp._common.argument_checks import fraction
from fdadp._common.typing import ArrayLike, FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.planner.forecast_display import FormulaForecast, Shown
from fdadp.planner.forecast_of_formulas import POINTS, _columns, _design, _grid, _parsed, _said
from fdadp.planner.forecast_of_multilevel_fpca import HALF, ICC, WHITE, DrawnLevels, _row_shares, fewer, white_share
from fdadp.planner.forecast_settings import Asked, Cohorts, Spread, quietly
from fdadp.planner.simulated_fit_of_terms import TEST_ROWS, TINY, Said, _block, _records, signal_of
from fdadp.private.plan.private_design import PrivateDesign
from fdadp.private.public.column_ranges import NumberColumn
from fdadp.private.public.gaussian_process_prior import PublicPrior
from fdadp.private.rows.row_functions import RowFunctions
from fdadp.regression.formula import ParsedFormula, person_columns
from fdadp.terms.numbers.factors_and_random_effects import RandomEffect

COHORTS = Cohorts(12, 24, 0.03)
USUAL = 0.1
"""Share of the variance of curves that effects explain, about which it is drawn: persons have most of it."""


@dataclass(frozen=True)
class MixedForecast(FormulaForecast, Shown):
    """Predicted accuracy of a private fit with ``re(id, covariance="free")``; ``print`` shows it.

    Attributes
    ----------
    n, epsilon, delta, adjacency
        As asked for.
    plan : Plan
        How the budget would be shared out.
    formula : str
    share : Spread
        Explained share of the variance of the population's means over new rows: its mean over cohorts, what the worst
        tenth has at most and the best at least, and the standard error. Below 0 it is worse than the true mean curve;
        a cohort counts as -1 at least.
    standard_errors : dict of str to float
        Of each term: root mean square over t of the standard error of its effect, of one standard deviation of a
        number or of a level, in standard deviations of the response. Median of the cohorts.
    icc_width : Spread
        Width of 95 % intervals of the intraclass correlation.
    icc : float
        That was simulated.
    explained : float
        Share of the variance of curves that effects explain: as given, else the middle of what was drawn.
    cohorts : int
    untold : tuple of str
        Arguments that were not told: what they would say was drawn for each cohort.

    Examples
    --------
    >>> from fdadp.planner import plan_mixed
    >>> public = {"Y": (-6, 6), "age": (18, 90)}
    >>> told = {"bounds": public, "max_rows": 3, "grids": {"Y": 21}}
    >>> plan_mixed("Y ~ age + re(id, covariance='free')", 800, 1.0, 1e-6, **told).icc_width.mean < 1
    True
    """

    formula: str
    share: Spread
    standard_errors: Mapping[str, float]
    icc_width: Spread
    icc: float
    explained: float
    cohorts: int
    untold: tuple[str, ...] = ()

    mechanism = "dp-aff"

    _simulated = "of smooth curves"

    def _facts(self) -> list[tuple[str, str]]:
        about = "about " if "explained" in self.untold else ""
        errors = [
            (f"standard error of {name}, in sd of curves", f"{e:.3f}") for name, e in self.standard_errors.items()
        ]
        return [
            *self.share.facts("explained share of the variance of means", self.cohorts),
            *errors,
            *self.icc_width.in_short("width of the 95 % interval of the ICC"),
            ("assumed: ICC", f"{self.icc:.2f}"),
            ("assumed: variance of curves that effects explain", f"{about}{self.explained:.2f}"),
        ]


class OfMixed(NamedTuple):
    """Of one simulated fit, as attributes of :class:`MixedForecast`."""

    share: float
    standard_errors: dict[str, float]
    icc_width: float


def plan_mixed(
    formula: str,
    n: int,
    epsilon: float = 1.0,
    delta: float | None = None,
    *,
    bounds: Mapping[str, Any],
    max_rows: int,
    within: Sequence[str] = (),
    person_rows: str | None = None,
    grids: Mapping[str, ArrayLike | int] | None = None,
    rows: int | Sequence[float] | None = None,
    icc: float = ICC,
    white: float = WHITE,
    explained: float | None = None,
    effects: str | None = None,
    numbers: Mapping[str, Sequence[float]] | None = None,
    importances: Mapping[str, float] | None = None,
    adjacency: str | None = None,
) -> MixedForecast:
    """Predict what a private mixed model will explain, and its standard errors, before any data are touched.

    Cohorts of persons with several curves are drawn and fitted by :class:`fdadp.FunctionalRegression`: 12 to 24 of
    them, fewer where they agree, which takes up to half a minute.

    Parameters
    ----------
    formula : str
        As of the fit, ``"Y ~ age + weekend + re(id, covariance='free')"``.
    n : int
        Number of persons.
    epsilon : float
    delta : float, optional
        None means pure ε.
    bounds : mapping of str
        What is public of each column, as of the fit.
    max_rows, within, person_rows
        As of the fit. Simulated columns that vary within persons are drawn anew for each row.
    grids : mapping of str to array_like or int, optional
        Grid of the response, or its number of points; default 51.
    rows, icc, white
        As of :func:`plan_levels`.
    explained : float, optional
        Share of the variance of curves that effects explain. Default: drawn anew for each cohort, about a tenth.
    effects, numbers, importances
        As of :func:`fdadp.plan`; curves of persons are as rough as the effects. What is not told is drawn anew for each
        cohort.
    adjacency : {"zero-out", "add-remove", "replace"}, optional

    Returns
    -------
    MixedForecast

    Raises
    ------
    InputError, PrivacyError
        A setting out of range, or too few persons or too small a budget for any fit; the text says what it takes.

    Notes
    -----
    Of more than 100,000 curves fewer persons are simulated, as by :func:`plan_levels`. The public range of the response
    is taken to be six standard deviations to each side, whatever bounds say.

    Examples
    --------
    >>> from fdadp.planner import plan_mixed
    >>> public = {"Y": (-6, 6), "age": (18, 90)}
    >>> told = {"bounds": public, "max_rows": 3, "grids": {"Y": 21}}
    >>> plan_mixed("Y ~ age + re(id, covariance='free')", 800, 1.0, 1e-6, **told).standard_errors["age"] > 0
    True
    """
    from fdadp.regression.functional import FunctionalRegression

    asked = Asked.of(n, epsilon, delta, adjacency)
    parsed, response, person = _without_persons(formula, bounds)
    t = _grid(response, (grids or {}).get(response, POINTS))

    def model(few: int, seed: int) -> Any:
        how: dict[str, Any] = {"max_rows": max_rows, "within": within, "person_rows": person_rows}
        public = dict(bounds) | {response: (-HALF, HALF)}
        return FunctionalRegression(formula, privacy=asked.privacy(few, seed), bounds=public, progress=False, **how)

    plan = model(asked.n, 0).plan({response: t}, n=asked.n if asked.adjacency == "add-remove" else None)
    shares = _row_shares(rows, max_rows)
    few = fewer(asked, shares)
    columns, _ = _columns(parsed, bounds, {}, PublicPrior(), numbers=False)
    design = _design(parsed, columns, PublicPrior(), t)
    said = _said((), explained, effects, numbers, importances, {}, design, usual=USUAL)
    law = _Mixed(design, said, fraction(icc, "icc"), white_share(white), person, response, tuple(within))
    found: list[OfMixed] = []
    while not COHORTS.enough([one.share for one in found]):
        found.append(law.one_cohort(few, shares, model, len(found)))
    names = [term.name for term in design.groups.terms]
    return MixedForecast(
        **vars(asked),
        plan=plan,
        formula=formula,
        share=Spread.of([one.share for one in found]),
        standard_errors={name: float(np.median([one.standard_errors[name] for one in found])) for name in names},
        icc_width=Spread.of([one.icc_width for one in found], least_is_best=True),
        icc=law.icc,
        explained=USUAL if said.explained is None else said.explained,
        cohorts=len(found),
        untold=said.untold(design),
    )


def _without_persons(formula: Any, bounds: Any) -> tuple[ParsedFormula, str, str]:
    """The formula without the curves of persons, its response, and the column that says whose rows they are."""
    persons = person_columns(formula) if isinstance(formula, str) else []  # nothing is public of them
    kinds = dict.fromkeys(persons, ("any",)) | dict(bounds) if isinstance(bounds, Mapping) else bounds
    parsed = _parsed(formula, kinds)
    own = [spec for spec in parsed.terms if isinstance(spec, RandomEffect) and spec.by_person]
    others = tuple(spec for spec in parsed.terms if spec not in own)
    if len(own) != 1 or not others or parsed.response is None:
        raise InputError(
            f"formula must have re(id, covariance='free') and a term beside it, got {formula!r}. Use plan() for models "
            "without the first, and plan_levels() for those without the second"
        )
    return parsed._replace(terms=others), parsed.response, own[0].column


@dataclass(frozen=True)
class _Mixed:
    """Persons with several curves, whose means hang on columns."""

    design: PrivateDesign
    said: Said
    icc: float
    white: float
    id: str
    response: str
    within: tuple[str, ...]

    def one_cohort(self, n: int, shares: FloatArray, model: Any, seed: int) -> OfMixed:
        """Fit n persons, and judge the means of rows of others."""
        rng, (explained, power) = np.random.default_rng([seed, n]), self.said.people(seed)
        curves = DrawnLevels(rng, self.design.t, self.icc, self.white, power=power)
        ids = np.repeat(np.arange(n), rng.choice(np.arange(1, shares.size + 1), n, p=shares))
        everybody = np.append(ids, np.arange(n, n + TEST_ROWS))
        rows = RowFunctions(self.design, (-HALF, HALF))
        placed = {column.name: self.said.placed(column, rng) for column in self.design.numbers}
        rows.columns |= placed
        block = self._entries(rows, everybody, rng)
        signal = signal_of(rows, block, placed, rng, self.said, power)
        away = float(((signal - signal.mean(axis=0)) ** 2 @ self.design.t_weights).mean())
        truth = math.sqrt(1 - explained) * curves.mean + signal * math.sqrt(explained / max(away, TINY))
        train = slice(0, ids.size)
        Y = truth[train] + math.sqrt(1 - explained) * (curves.draw(ids, rng) - curves.mean)
        columns = _records(self.design, block).columns
        table = {name: np.asarray(own)[train] for name, own in columns.items()} | {self.id: ids, self.response: Y}
        new = {name: np.asarray(own)[ids.size :] for name, own in columns.items()}
        with quietly():
            fitted = model(n, seed).fit(table, grids={self.response: self.design.t})
            found = np.asarray(fitted.predict(new))
        off, means = found - truth[ids.size :], truth[ids.size :]
        share = 1 - float((off**2).mean() / ((means - means.mean(axis=0)) ** 2).mean())
        low, high = fitted.persons_.icc_interval()
        return OfMixed(max(share, -1.0), self._errors(fitted, table), high - low)

    def _entries(self, rows: RowFunctions, everybody: IntArray, rng: np.random.Generator) -> tuple[FloatArray, ...]:
        """Entries of all columns: of persons, or drawn for each row where they vary within persons."""
        columns, x = tuple(rows.columns.values()), self.design.prior.x
        persons = _block(columns, x, int(everybody[-1]) + 1, rng, self.said)
        own = _block(columns, x, everybody.size, rng, self.said)
        return tuple(
            values if column.name in self.within else of_person[everybody]
            for column, of_person, values in zip(columns, persons, own, strict=True)
        )

    def _errors(self, fitted: Any, table: Mapping[str, Any]) -> dict[str, float]:
        """Standard errors of terms, over the sd of curves (which is 1); of numbers, of one standard deviation."""
        numbers = {column.name for column in self.design.columns if isinstance(column, NumberColumn)}
        found = {}
        for term in self.design.groups.terms:
            se = np.asarray(fitted.coef(term.name, se=True)["se"])
            size = float(np.std(table[term.name])) if term.name in numbers else 1.0
            found[term.name] = size * math.sqrt(float((se**2).mean()))
        return found
