"""What a private fit of many terms would be worth: cohorts drawn from the public prior, fitted as a user's would be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fdadp._common.argument_checks import is_number, numbers, one_of, whole
from fdadp._common.calling_language import bounds_as
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.functional.tables.curve_sample import as_grid
from fdadp.planner.forecast_display import FormulaForecast, Shown
from fdadp.planner.forecast_settings import Cohorts, Spread
from fdadp.planner.simulated_fit_of_terms import (
    EFFECTS,
    EXPLAINABLE,
    OF_THE_REST,
    CurvesOfPilot,
    OfTerms,
    Responses,
    Said,
    outcome,
    outcome_of_family,
    planned,
)
from fdadp.privacy import Budget, Privacy
from fdadp.privacy.account.epsilon_mu_rho import noise_multiplier
from fdadp.privacy.rows._person_row_caps import MEAN, Law
from fdadp.private.plan.budget_sharing import expected_left
from fdadp.private.plan.private_design import PrivateDesign, curves_column
from fdadp.private.public.column_ranges import Column, CurvesColumn, LabelColumn, NumberColumn, public_range
from fdadp.private.public.gaussian_process_prior import FEWEST_PILOTS, PublicPrior
from fdadp.private.release.mechanisms import DPAFF
from fdadp.private.whitened.term_registry import white_term
from fdadp.regression.formula import ParsedFormula, parse
from fdadp.regression.private.chunked_tables import DeclaredTable
from fdadp.regression.private.columns_read_privately import (
    OF_ANCHOR,
    PublicResponse,
    about,
    check_family,
    factor_columns,
    persistence,
    public_response,
)
from fdadp.regression.private.private_table import is_pair, levels_of
from fdadp.regression.reading.computed_columns import bounds_of, expression
from fdadp.solve.form.families_by_name import family_of
from fdadp.solve.form.response_families import Family
from fdadp.terms.curves.functional_additive import AdditiveFunctional, FunctionalAdditive
from fdadp.terms.curves.functional_concurrent import Concurrent
from fdadp.terms.curves.functional_linear import FunctionalLinear, LinearFunctional
from fdadp.terms.spec import TermSpec

MOST, POINTS, ROWS = 10_000, 51, 8
"""Rows simulated at most, points of a grid, and rows of a simulated person at most."""
COHORTS = Cohorts(16, 128, 0.01)
"""Simulated. At .0125 for any number a forecast stopped at .931, standard error .007; a hundred cohorts give .90."""
ERRORS = ("normal", "skewed")
"""Laws of what the terms leave unexplained."""
EVEN, OF_RANGE = 0.5, 0.1
"""Share of ones, and mean count over the public range, where nothing else is expected."""
OF_CURVES = (FunctionalLinear, FunctionalAdditive, Concurrent)
OF_NUMBERS = (LinearFunctional, AdditiveFunctional)
"""Terms that tell whether the response is a curve or a number."""


@dataclass(frozen=True)
class TermsForecast(FormulaForecast, Shown):
    """Predicted accuracy of a private fit of many terms; ``print`` shows it.

    Attributes
    ----------
    formula : str
    n : int
    epsilon, delta, adjacency
        As asked for; the number of persons is private under ``"add-remove"``.
    share : float
        Explained share of the explainable variance (of that of the means, where the family is not the Gaussian): mean
        of the simulated cohorts.
    worst_share, best_share : float
        What the worst tenth of the cohorts has at most, and the best tenth at least: eight of ten lie between.
    error : float
        Standard error of the mean share: it is of so many cohorts, not of all.
    cohorts : int
        How many were simulated.
    explained : float
        Share of the variance of the responses that the terms explain: as was told, else about which it was drawn.
    untold : tuple of str
        Arguments of :func:`fdadp.plan` that were not told: what they would say was drawn for each cohort.
    coverage : float
        Of nominal 95 % prediction intervals; of other families, of 95 % intervals of the mean.
    importances : dict of str to float
        Share of the explained variance that each term was found to have, where they have what the prior says: labels
        and numbers half as much as curves on average, those that vary more have more; 0 of a term that the budget
        cannot carry.
    left_out : tuple of str
        Terms that the plan affords no feature of.
    plan : Plan
        How the budget would be shared out.
    offset : str or None
        What the response is fitted less of, computed within each row at no cost; then shares are of what it leaves.
    less : (float, float) or None
        Public range of the response less it, where bounds say both.
    family : str
    rate : float or None
        Mean of zeros and ones, or of counts, that was simulated.
    max_rows : int or None
        Rows of a person that count at most, where each row counts once; simulated persons have one to :data:`ROWS`.
    mostly_zero : tuple of str
        Numbers that were simulated as zero for most persons.
    effects : str or None
        Whether effects were simulated as ``"rough"`` as fits are prepared for, ``"smooth"``, or of the ``"level"``;
        None between the first two.
    numbers : dict of str to (float, float)
        Means and standard deviations of numbers that were said; others were drawn.
    said_importances : dict of str to float
        Shares of the explained variance that terms have in these cohorts, where they were said.
    """

    formula: str
    share: float
    worst_share: float
    best_share: float
    error: float
    cohorts: int
    explained: float
    coverage: float
    importances: Mapping[str, float]
    left_out: tuple[str, ...]
    offset: str | None = None
    less: tuple[float, float] | None = None
    family: str = "gaussian"
    rate: float | None = None
    max_rows: int | None = None
    mostly_zero: tuple[str, ...] = ()
    effects: str | None = None
    untold: tuple[str, ...] = ()
    numbers: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    said_importances: Mapping[str, float] = field(default_factory=dict)

    @property
    def _simulated(self) -> str:
        terms = "was said" if self.said_importances else "it says"
        return f"under the public prior, terms as important as {terms}"

    def _facts(self) -> list[tuple[str, str]]:
        other, about = self.family != "gaussian", "about " if "explained" in self.untold else ""
        facts = [
            *Spread(self.share, self.worst_share, self.best_share, self.error).facts(
                f"explained share of the {'variance of means' if other else 'explainable variance'}", self.cohorts
            ),
            ("assumed: variance of responses that terms explain", f"{about}{self.explained:.2f}"),
            (f"coverage of 95 % {'intervals of means' if other else 'prediction intervals'}", f"{self.coverage:.2f}"),
        ]
        if other:
            facts.insert(0, (f"simulated {self.family} responses have the mean", f"{self.rate:.3g}"))
        if self.max_rows is not None:
            facts.insert(0, ("each row counts once; rows of a person at most", f"{self.max_rows}"))
        if self.mostly_zero:
            facts.insert(0, ("simulated as zero for most persons", ", ".join(self.mostly_zero)))
        told = [(f"simulated {name}: mean, sd", f" {mean:g}, {sd:g}") for name, (mean, sd) in self.numbers.items()]
        told += [(f"simulated importance of {name}", f"{value:.2f}") for name, value in self.said_importances.items()]
        facts[:0] = told
        if self.effects is not None:
            facts.insert(0, ("simulated effects are", f" {self.effects}"))
        if self.offset is not None:
            less = "" if self.less is None else f", within {self.less[0]:g} to {self.less[1]:g}"
            facts.insert(0, ("the response is fitted less, at no cost", f" {self.offset}{less}"))
        facts += [(f"found importance of {name}", f"{value:.2f}") for name, value in self.importances.items()]
        return facts + [("not afforded", name) for name in self.left_out]


def plan_formula(
    formula: str,
    n: int,
    epsilon: float,
    delta: float | None,
    adjacency: str,
    bounds: Mapping[str, Any] | None,
    grids: Mapping[str, ArrayLike | int] | None,
    prior: PublicPrior | str,
    offset: str | None = None,
    family: str = "gaussian",
    rate: float | None = None,
    errors: str = "normal",
    mostly_zero: Sequence[str] = (),
    explained: float | None = None,
    effects: str | None = None,
    numbers: Mapping[str, Sequence[float]] | None = None,
    importances: Mapping[str, float] | None = None,
    curves: Mapping[str, ArrayLike] | None = None,
    law: Law = MEAN,
) -> TermsForecast:
    """Simulate fits of a formula; arguments as of :func:`fdadp.plan`."""
    mechanism = DPAFF(prior=prior)
    parsed = _parsed(formula, bounds)
    of, offset = family_of(family), parsed.one_offset(offset)
    laws = _laws(errors, of)
    assert bounds is not None
    told = told_curves(curves)
    points, inner = grids_of(told, grids), mechanism.public_prior
    columns, functional = _columns(parsed, bounds, points, inner, numbers=of.name != "gaussian")
    response = parsed.response or ("Y" if functional else "y")
    check_family(of, curves=functional)
    asked = None if of.name == "gaussian" else _asked(of, bounds, response, mechanism.anchor or offset)
    responses = _responses(asked, rate)
    t = _grid(response, points.get(response, POINTS)) if functional else None
    design = _design(parsed, columns, inner, t)
    offset, less = _offset(offset, mechanism, bounds, columns, response, curves=functional)
    noise, left = _noise(n, epsilon, delta, adjacency, law, mechanism)
    pure, spending = delta is None, mechanism if asked is None else asked.spending(mechanism)
    plan = planned(spending, n, noise, design, law.usual_rows, pure=pure, law=law)
    usual = EXPLAINABLE if mechanism.anchor is None else OF_THE_REST
    said = _said(mostly_zero, explained, effects, numbers, importances, told, design, usual=usual)
    cohorts = _simulated(design, mechanism, responses, n, noise, law, pure=pure, said=said, **laws)
    return TermsForecast(
        formula=formula,
        n=n,
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,
        **_averages(cohorts, design.groups.terms),
        **_repeated(said, design),
        left_out=design.groups.left_out(plan.weights),
        plan=plan.scaled(left),
        offset=offset,
        less=less,
        family=of.name,
        rate=None if responses is None else responses.rate,
        max_rows=law.max_rows,
    )


def _repeated(said: Said, design: PrivateDesign) -> dict[str, Any]:
    """What a forecast repeats of what was said."""
    return {
        "explained": said.usual if said.explained is None else said.explained,
        "untold": said.untold(design),
        "mostly_zero": said.mostly_zero,
        "effects": said.effects,
        "numbers": said.numbers,
        "said_importances": said.importances,
    }


def _parsed(formula: str, bounds: Mapping[str, Any] | None) -> ParsedFormula:
    """The formula, with kinds of columns as bounds say; raises InputError without any."""
    if not isinstance(bounds, Mapping):
        raise InputError(f"bounds must say what is public of each column, as of a private fit, got {bounds!r}")
    kinds = {str(name): "numbers" if is_pair(own) else "labels" for name, own in bounds.items()}
    return parse(formula, {formula.split("~")[0].strip(): "numbers"} | kinds, "bounds")


def _laws(errors: str, family: Family) -> dict[str, Any]:
    """Settings of simulated cohorts by what is said of errors."""
    skewed = one_of(errors, "errors", ERRORS) == "skewed"
    if family.name == "gaussian":
        return {"skewed": skewed}
    if skewed:
        raise InputError(f"errors must be left out with family={family.name!r}, got {errors!r}")
    return {}


def _noise(
    n: int, epsilon: float, delta: float | None, adjacency: str, law: Law, mechanism: DPAFF
) -> tuple[float, float]:
    """Noise of a sum at what the fit has left of the budget, and the share that is left; refuses too small an n."""
    declared = None if adjacency == "add-remove" else n
    privacy = Privacy(epsilon, delta, n=declared, adjacency=adjacency)
    privacy.check()
    rows = law.usual_rows
    mechanism.check_n(privacy, n * rows / law.most)
    pure = delta is None
    noise = noise_multiplier(Budget(epsilon, delta).total, adjacency, pure=pure)
    counted = adjacency == "add-remove" or law.name == "sum"
    left = expected_left(n * rows, noise * law.most, pure=pure) if counted else 1.0
    return noise / (left if pure else math.sqrt(left)), left


def _simulated(
    design: PrivateDesign,
    mechanism: DPAFF,
    responses: Responses | None,
    n: int,
    noise: float,
    law: Law,
    **settings: Any,
) -> list[OfTerms]:
    """Cohorts of n persons, :data:`MOST` rows at most, as many as it takes; settings as of :func:`outcome`."""
    simulated = law if law.name == "mean" else Law("sum", min(law.most, ROWS))
    few = min(n, int(MOST / simulated.usual_rows))
    eta = noise / n * few
    found: list[OfTerms] = []
    while not COHORTS.enough([one.share for one in found]):
        seed = len(found)
        if responses is None:
            found.append(outcome(design, mechanism, few, eta, seed, law=simulated, **settings))
        else:
            found.append(outcome_of_family(design, mechanism, responses, few, eta, seed, law=simulated, **settings))
    return found


def _averages(cohorts: Sequence[OfTerms], terms: Sequence[Any]) -> dict[str, Any]:
    """What a forecast says of all simulated cohorts together."""
    shares = np.array([one.share for one in cohorts])
    importances = {term.name: float(np.mean([one.importances[term.name] for one in cohorts])) for term in terms}
    share = Spread.of(shares)
    return {
        "share": share.mean,
        "worst_share": share.worst,
        "best_share": share.best,
        "error": share.error,
        "cohorts": len(cohorts),
        "coverage": float(np.mean([one.coverage for one in cohorts])),
        "importances": importances,
    }


def _said(
    mostly_zero: Sequence[str],
    explained: Any,
    effects: Any,
    numbers: Any,
    importances: Any,
    curves: Mapping[str, FloatArray],
    design: PrivateDesign,
    *,
    usual: float = EXPLAINABLE,
) -> Said:
    """What is said of the persons to simulate, checked."""
    if explained is not None and (not is_number(explained) or not 0 < explained < 1):
        raise InputError(f"explained must be a share between 0 and 1, got {explained!r}")
    zeros = _mostly_zero(mostly_zero, design.columns)
    _check_curves(curves, {column.name: column.grid for column in design.columns if isinstance(column, CurvesColumn)})
    return Said(
        mostly_zero=zeros,
        numbers=_numbers(numbers, design.columns, zeros),
        importances=_importances(importances, [term.name for term in design.groups.terms]),
        effects=None if effects is None else one_of(effects, "effects", tuple(EFFECTS)),
        explained=None if explained is None else float(explained),
        usual=usual,
        curves={name: CurvesOfPilot.of(own) for name, own in curves.items()},
    )


def told_curves(curves: Any) -> dict[str, FloatArray]:
    """Curves of an earlier study by column, each of its persons and points; raises InputError for others."""
    if curves is not None and not isinstance(curves, Mapping):
        raise InputError(f"curves must be arrays by name of column, got {type(curves).__name__}")
    told = {str(name): np.asarray(numbers(own, f"curves of {name}")) for name, own in (curves or {}).items()}
    for name, own in told.items():
        if own.ndim != 2 or len(own) < FEWEST_PILOTS or not np.isfinite(own).all():
            least = f"at least {FEWEST_PILOTS} persons, (m, S), without gaps"
            raise InputError(f"curves of {name} must be of {least}, got {own.shape}")
    return told


def grids_of(told: Mapping[str, FloatArray], grids: Mapping[str, Any] | None) -> dict[str, Any]:
    """Grids by column; of curves that were told, as many points as they have where nothing else is said."""
    return {name: own.shape[1] for name, own in told.items()} | dict(grids or {})


def _check_curves(told: Mapping[str, FloatArray], grids: Mapping[str, FloatArray]) -> None:
    """Refuse curves of other columns, or with other points."""
    if not set(told) <= set(grids):
        raise InputError(f"curves must be of columns of curves of the formula, of {list(grids)}, got {list(told)}")
    for name, own in told.items():
        if own.shape[1] != grids[name].size:
            raise InputError(f"curves of {name} must have the {grids[name].size} points of grids, got {own.shape[1]}")


def _mostly_zero(names: Sequence[str], columns: Sequence[Column]) -> tuple[str, ...]:
    """Names of numbers that are mostly zero."""
    own = (names,) if isinstance(names, str) else tuple(names)
    numbers = [column.name for column in columns if isinstance(column, NumberColumn)]
    if not set(own) <= set(numbers):
        raise InputError(f"mostly_zero must be names of numbers of the formula, of {numbers}, got {names!r}")
    return own


def _numbers(said: Any, columns: Sequence[Column], mostly_zero: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Means and standard deviations of numbers."""
    said = {} if said is None else said
    free = {c.name: c.bounds for c in columns if isinstance(c, NumberColumn) and c.name not in mostly_zero}
    if not isinstance(said, Mapping) or not set(said) <= set(free):
        raise InputError(
            f"numbers must be (mean, sd) by name of numbers that are not mostly zero, of {list(free)}, got {said!r}"
        )
    found = {}
    for name, own in said.items():
        low, high = free[name]
        mean, sd = own if np.shape(own) == (2,) and all(map(is_number, own)) else (math.nan, math.nan)
        if not (low < mean < high and 0 < sd <= (high - low) / 2):
            raise InputError(
                f"numbers of {name} must be a mean between {low:g} and {high:g}, its bounds, and a standard deviation "
                f"of at most {(high - low) / 2:g}, got {own!r}"
            )
        found[name] = (float(mean), float(sd))
    return found


def _importances(said: Any, terms: Sequence[str]) -> dict[str, float]:
    """Shares of the explained variance that terms have, which sum to one."""
    said = {} if said is None else said
    if not isinstance(said, Mapping) or set(said) - set(terms) or 0 < len(said) < len(terms):
        raise InputError(f"importances must be numbers by name of term, of all of {list(terms)}, got {said!r}")
    total = sum(value if is_number(value) and value >= 0 else math.nan for value in said.values())
    if said and not 0 < total < math.inf:
        raise InputError(f"importances must be numbers of at least 0, not all of them 0, got {said!r}")
    return {name: float(said[name]) / total for name in terms if said}


def _asked(family: Family, bounds: Mapping[str, Any], response: str, offset: str | None) -> PublicResponse:
    """A response of another family than the Gaussian by what is public of it, as the fit takes it."""
    asked = public_response(DeclaredTable([], {}, bounds).bounds, response, family, curves=False)
    asked.check_offset(offset)
    return asked


def _responses(asked: PublicResponse | None, rate: float | None) -> Responses | None:
    """Responses to simulate; None of the Gaussian family."""
    if asked is None or asked.bounded is None:
        if rate is not None:
            raise InputError(f"rate must be left out with family='gaussian', got {rate!r}")
        return None
    low, high = asked.bounded.bounds
    if rate is None:
        rate = EVEN if asked.classes is not None else low + OF_RANGE * (high - low)
    if not is_number(rate) or not low < rate < high:
        raise InputError(
            f"rate must be a number between {low:g} and {high:g}, the bounds of {asked.name}, got {rate!r}"
        )
    return Responses(asked.bounded, float(rate))


def _offset(
    offset: str | None,
    mechanism: DPAFF,
    bounds: Mapping[str, Any],
    columns: Sequence[Column],
    response: str,
    *,
    curves: bool,
) -> tuple[str | None, tuple[float, float] | None]:
    """What the response is less of, as the fit would have it, and the public range of what is left."""
    if mechanism.anchor is not None:
        own = [column.name for column in columns if isinstance(column, CurvesColumn)]
        if offset is not None or len(own) != 1 or not curves:
            raise InputError(
                "prior='persistence' needs no offset, a response of curves, and one column of curves among the terms, "
                f"got {offset!r} and {', '.join(own) or 'none'}"
            )
        offset = persistence(own[0])
    if offset is None:
        return None, None
    function = expression(offset)
    if response in function.sources:
        raise InputError(f"offset must not read the response, got {offset!r}")
    found = bounds.get(offset) or bounds_of(function, {name: own for name, own in bounds.items() if is_pair(own)})
    if found is None:
        raise InputError(f"bounds must give a public range for {offset}: it is unbounded, or a column of it is")
    if not is_pair(bounds.get(response)):
        return offset, None
    return offset, about(bounds[response], found, 1.0 if mechanism.anchor is None else OF_ANCHOR)


def _columns(
    parsed: ParsedFormula, bounds: Mapping[str, Any], grids: Mapping[str, Any], prior: PublicPrior, *, numbers: bool
) -> tuple[list[Column], bool]:
    """Covariates by what is public of them, and whether the response is a curve (not where `numbers` are wanted)."""
    inner = [getattr(spec, "term", spec) for spec in parsed.terms]
    of_curves = {spec.columns[0] for spec in inner if isinstance(spec, OF_CURVES + OF_NUMBERS)}
    factors = {name for spec in parsed.terms for name in factor_columns(spec)}
    columns: list[Column] = []
    for name in dict.fromkeys(c for spec in parsed.terms for c in spec.columns):
        at = len(columns)
        if name in of_curves or name in grids:
            own = public_range(bounds.get(name), f"bounds of {name}", of=name, example=bounds_as(name))
            columns.append(curves_column(prior, name, at, _grid(name, grids.get(name, POINTS)), own))
        elif name in factors or (name in bounds and not is_pair(bounds[name])):
            columns.append(LabelColumn(name, at, levels_of(bounds.get(name), name)))
        else:
            own = public_range(bounds.get(name), f"bounds of {name}", of=name, example=bounds_as(name))
            columns.append(NumberColumn(name, at, own))
    if numbers and not any(isinstance(spec, OF_CURVES) for spec in inner):
        return columns, False
    return columns, not _numbers_wanted(inner, parsed.response, grids)


def _numbers_wanted(specs: Sequence[TermSpec], response: str | None, grids: Mapping[str, Any]) -> bool:
    """Whether the response is a number: by its terms, else unless it is written in capitals or has a grid."""
    if any(isinstance(spec, OF_NUMBERS) for spec in specs):
        return True
    if any(isinstance(spec, OF_CURVES) for spec in specs) or response in grids:
        return False
    return response is not None and not response[0].isupper()


def _design(
    parsed: ParsedFormula, columns: Sequence[Column], prior: PublicPrior, t: FloatArray | None
) -> PrivateDesign:
    """Public coordinates of all terms; t is None of a response of numbers."""
    by_name = {column.name: column for column in columns}
    made = [white_term(spec, by_name, prior, curves=t is not None, t=t) for spec in parsed.terms]
    return PrivateDesign.of(prior, columns, made, t)


def _grid(name: str, grid: Any) -> FloatArray:
    if np.ndim(grid) == 0:
        return np.linspace(0, 1, whole(grid, f"grids of {name}", least=3, most=100_000))
    return as_grid(grid, np.size(grid), f"grid of {name}")
