"""Private fits of many terms: what is public of them, checked before anything is read; then releases, and the fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fdadp._common.argument_checks import one_of, whole
from fdadp._common.calling_language import warn
from fdadp._common.guarantee_in_words import promised
from fdadp._common.loaded_later import pd
from fdadp._common.threads import one_blas_thread
from fdadp.errors import InputError, PublicInputWarning
from fdadp.functional.containers.open_curves import is_foreign, opened_table
from fdadp.functional.containers.opened_tables import OpenedTable
from fdadp.functional.gap_filling import GAPS
from fdadp.functional.tables.curve_sample import Curves
from fdadp.privacy import Privacy
from fdadp.privacy.rows._person_row_caps import MEAN, Law
from fdadp.private.input_advice import advise, beyond_scale, describe_ranges
from fdadp.private.model_from_releases import as_terms, importances, released_variance, unexplained_variance
from fdadp.private.public.column_ranges import CurvesColumn, LabelColumn, NumberColumn
from fdadp.private.release.mechanisms import EndToEnd, Mechanism, mechanism_of
from fdadp.private.release.plan_and_spend import planned, refuse_unaffordable, spend
from fdadp.regression.fit_in_memory import read_terms
from fdadp.regression.fitted.coefficient_errors import CoefficientErrors
from fdadp.regression.fitted.fitted_model import Fitted, FittedResponse, Released
from fdadp.regression.model_settings import ModelSettings
from fdadp.regression.private.chunked_tables import DeclaredTable
from fdadp.regression.private.columns_read_privately import (
    OF_ANCHOR,
    ColumnReader,
    PrivateColumns,
    PublicColumns,
    PublicResponse,
    about,
    check_family,
    persistence,
    public_response,
)
from fdadp.regression.private.private_table import PrivateTable
from fdadp.regression.reading.label_joins import refuse_several
from fdadp.regression.reading.training_rows import along, private_law, warn_of_rows
from fdadp.terms.numbers.factors_and_random_effects import RandomEffect
from fdadp.terms.records import Records

if TYPE_CHECKING:
    from fdadp._common.typing import ArrayLike, FloatArray
    from fdadp.privacy.noise.sources import Noise
    from fdadp.private.levels.mixed_model_rows import MixedCoordinates
    from fdadp.private.plan.budget_plan import Plan
    from fdadp.private.plan.private_design import PrivateDesign
    from fdadp.private.public.column_ranges import Column, Range
    from fdadp.private.release.plan_and_spend import Spent
    from fdadp.regression.private.columns_read_privately import Made
    from fdadp.regression.private.mixed_model import PersonsAsked
    from fdadp.regression.reading.table_columns import Grids


# What a private fit of many terms is before its first read: settings, terms and columns, by public things only.


class Prepared(NamedTuple):
    """What is public of a private fit, before the first read.

    Attributes
    ----------
    mechanism : EndToEnd
    name : str
        Of the response.
    reading : PublicColumns
    asked : PublicResponse
    response : Curves or None
        Where it is a curve: its grid and kind, without its rows.
    y_bounds : (float, float)
        Of the response, less the offset.
    offset : str or None
    less : str, Made or None
        The same, as it is read.
    law : Law
        How the rows of a person are combined.
    public : dict
        For the ledger.
    design : callable
        Returns the public coordinates.
    mixed : (PersonsAsked, MixedCoordinates) or None
        Of a mixed model, ``re(id, covariance="free")``, which takes the place of `design`.
    """

    mechanism: EndToEnd[Any]
    name: str
    reading: PublicColumns
    asked: PublicResponse
    response: Curves | None
    y_bounds: Range
    offset: str | None
    less: str | Made | None
    law: Law
    public: dict[str, Any]
    design: Callable[[], PrivateDesign]
    mixed: tuple[PersonsAsked, MixedCoordinates] | None = None

    def spending(self, privacy: Privacy) -> dict[str, Any]:
        """What is public of the fit, as :func:`fdadp.private.release.plan_and_spend.spend` takes it."""
        return {
            "design": self.design,
            "y_bounds": self.y_bounds,
            "privacy": privacy,
            "mechanism": self.asked.spending(self.mechanism),
            "public": self.public,
            "prepare": self.reading.prepared(self.less),
            "law": self.law,
        }


@dataclass(frozen=True, kw_only=True)
class PrivateSettings:
    """Settings of a private fit: those of the model, the guarantee, and what is public.

    Attributes
    ----------
    model : ModelSettings
    privacy : Privacy
    bounds : mapping or None
        As the user gave it.
    mechanism : str or Mechanism
    only : str or None
        Name of the one mechanism that the estimator has; None: all.
    """

    model: ModelSettings
    privacy: Privacy
    bounds: Any
    mechanism: str | Mechanism
    only: str | None = "dp-aff"

    @classmethod
    def of(cls, model: Any) -> PrivateSettings:
        """Read the settings of an estimator."""
        settings = ModelSettings.of(model)
        return cls(model=settings, privacy=model.privacy, bounds=model.bounds, mechanism=model.mechanism)

    def public_bounds(self) -> Mapping[str, Any]:
        """What is public of columns: what was given, and what a study has fixed; wrong kinds are refused elsewhere."""
        given = self.bounds if isinstance(self.bounds, Mapping) else {}
        return self.privacy.bounds_with(given) if isinstance(self.privacy, Privacy) else given

    def check(self, **not_yet: Any) -> EndToEnd[Any]:
        """Public validation of settings, before any column is looked at; returns the mechanism."""
        if not isinstance(self.privacy, Privacy):
            raise InputError(f"privacy must be a Privacy or None, got {type(self.privacy).__name__}")
        if self.bounds is not None and not isinstance(self.bounds, Mapping):
            raise InputError(f"bounds must be a mapping of columns to ranges or levels, got {self.bounds!r}")
        self.privacy.check()
        mechanism = mechanism_of(self.mechanism)
        if not isinstance(mechanism, EndToEnd) or self.only not in (None, mechanism.name):
            raise InputError(f"mechanism must be 'dp-aff' or a DPAFF, got {self.mechanism!r}")
        if self.privacy.n is not None:
            mechanism.check_n(self.privacy, self.privacy.n)
        given = [name for name, value in not_yet.items() if value is not None]
        if given:
            raise InputError(f"{given[0]} must be None in a private fit, got {type(not_yet[given[0]]).__name__}")
        check_family(self.model.family, curves=self.model.of_curves)
        return mechanism

    def gaps_of(self, name: str) -> str:
        """How gaps of a column of curves are filled, each within its row."""
        missing = self.model.missing
        how = missing if isinstance(missing, str) else missing.get(name, "auto")
        how = "linear" if how == "auto" or (how == "indicator" and missing == how) else how
        one_of(how, f"missing in a private fit ({name}; 'auto' is 'linear')", tuple(GAPS))
        return how


def prepared(
    private: PrivateSettings, table: PrivateTable, *, given: Any = None, offset: Any = None, **not_yet: Any
) -> Prepared:
    """All that is public of a fit, checked; nothing is read.

    Parameters
    ----------
    private : PrivateSettings
    table : PrivateTable
    given : object, optional
        The response, where it is no column of the table.
    offset : str, optional
        A column, or an expression of columns, that the response is less of.
    **not_yet
        Arguments that a private fit does not take.

    Raises
    ------
    PrivacyError, InputError
        Settings, terms or columns that a private fit cannot have.
    """
    from fdadp.private.plan.private_design import PrivateDesign
    from fdadp.private.whitened.term_registry import white_term

    settings = private.model
    parsed = read_terms(settings, lambda: table.kinds)
    mechanism = private.check(**not_yet)
    persons = None
    if settings.within or any(isinstance(term, RandomEffect) for term in parsed.terms):
        from fdadp.regression.private.mixed_model import coordinates, mixed_inputs, persons_asked

        persons = persons_asked(parsed.terms, settings, mechanism)
    law = private_law(settings.person_rows, settings.max_rows) if persons is None else MEAN
    prior = mechanism.public_prior if persons is None else persons.prior(mechanism)
    if not parsed.intercept or (settings.of_curves and not parsed.mean_curve):
        raise InputError("formula must have an intercept (and a mean curve) in a private fit: the mean is released")
    offset = parsed.one_offset(offset)
    name = parsed.response or settings.response or settings.default_response
    if not parsed.terms:
        raise InputError("formula must have at least one term in a private fit, got none")
    reading = ColumnReader(table, prior, private.gaps_of)
    fixed = [term for term in parsed.terms if persons is None or term is not persons.term]
    terms = reading.terms(fixed, settings.missing)
    found = reading.public
    columns = found.columns
    asked = public_response(table.bounds, name, settings.family, curves=settings.of_curves)
    response = reading.response(name, given, curves=settings.of_curves, classes=asked.classes)
    if response is not None:
        response = replace(response, values=np.empty((0, response.grid.size)), index=None)
    t = None if response is None else response.grid
    y_bounds = asked.bounds
    asked.check_offset(mechanism.anchor if offset is None else offset)
    if mechanism.anchor is not None:
        offset = _anchor(columns, found.made, offset, name, y_bounds)
    less = None
    of_offset: dict[str, Any] = {}
    if offset is not None:
        less, bounds = reading.offset(offset, name, t)
        y_bounds = about(y_bounds, bounds, 1.0 if mechanism.anchor is None else OF_ANCHOR)
        of_offset = {"offset": f"{offset}, bounds {bounds}", "bounds of the response less it": y_bounds}
    by_name = {column.name: column for column in columns}
    names = [term.name for term in terms]
    of_curves = settings.of_curves
    whitened = [white_term(term, by_name, prior, curves=of_curves, t=t, beside=names) for term in terms]

    design = partial(PrivateDesign.of, prior, columns, whitened, t)
    public = {"model": " + ".join(names)} | _public(columns, found.made, asked, name, t, prior.describe()) | of_offset
    mixed = None
    if persons is not None:
        assert t is not None
        mixed = persons, coordinates(persons, columns, whitened, prior, t, y_bounds)
        public |= mixed_inputs(persons, columns)
    return Prepared(mechanism, name, found, asked, response, y_bounds, offset, less, law, public, design, mixed)


def _anchor(columns: Sequence[Column], made: Mapping[str, Made], offset: Any, response: str, y_bounds: Any) -> str:
    """The offset that stands for ``prior="persistence"``."""
    if offset is not None:
        raise InputError(f"offset must be None with prior='persistence', which is one, got {offset!r}")
    curves = [column for column in columns if isinstance(column, CurvesColumn)]
    if len(curves) != 1 or curves[0].name in made:
        raise InputError(
            "prior='persistence' needs one column of curves among the terms, of the quantity that is forecast, got "
            f"{', '.join(column.name for column in curves) or 'none'}; say which by offset="
        )
    low, high = curves[0].bounds
    if low >= y_bounds[1] or high <= y_bounds[0]:
        raise InputError(
            f"bounds of {curves[0].name} and {response} must overlap with prior='persistence', as they are of one "
            f"quantity, got {curves[0].bounds} and {y_bounds}"
        )
    return persistence(curves[0].name)


def _public(
    columns: Sequence[Column],
    made: Mapping[str, Made],
    asked: PublicResponse,
    response: str,
    t: FloatArray | None,
    prior: str,
) -> dict[str, Any]:
    """Public inputs, for the ledger."""
    from fdadp.private.release.plan_and_spend import describe_grid

    public: dict[str, Any] = {}
    for column in columns:
        if column.name in made:
            public[column.name] = "computed within each row"
        if isinstance(column, LabelColumn):
            public[f"levels of {column.name}"] = ", ".join(map(str, column.levels))
        else:
            public[f"bounds of {column.name}"] = column.bounds
        if isinstance(column, CurvesColumn):
            public[f"grid of {column.name}"] = describe_grid(column.grid)
            public[f"gaps of {column.name}"] = GAPS[column.missing] + ", within each row"
        if isinstance(column, NumberColumn):
            public[f"missing {column.name}"] = "taken to be its released mean"
    public |= asked.public
    if t is not None:
        public[f"grid of {response}"] = describe_grid(t)
        public[f"gaps of {response}"] = "a row counts where it was observed"
    return public | {"prior": prior}


# The fit, from tables and from chunks; its plan; synthetic cohorts.


def plan_private(
    private: PrivateSettings, grids: Mapping[str, ArrayLike | int] | None, groups: Any, offset: str | None, n: Any
) -> Plan:
    """The plan of a fit, from public values alone."""
    privacy = private.privacy
    if isinstance(privacy, Privacy):
        privacy.check_unit(groups)
    points = {name: np.linspace(0, 1, g) if isinstance(g, int) else g for name, g in (grids or {}).items()}
    found = prepared(private, DeclaredTable([], points, private.public_bounds()), offset=offset)
    if found.mixed is not None:
        from fdadp.regression.private.mixed_model import planned_mixed

        return planned_mixed(privacy, found.mechanism, found.mixed[1], n)
    with one_blas_thread():
        design = found.design()
    plan, _ = planned(privacy, found.asked.spending(found.mechanism), lambda: design, n, found.law)
    if privacy.n is not None and found.law.name == "mean" and not found.mechanism.allow_useless:
        refuse_unaffordable(design, plan)
    return plan


def fit_private(
    model: Any,
    private: PrivateSettings,
    data: Any,
    y: Any,
    grids: Grids | None,
    groups: Any,
    *,
    offset: Any = None,
    by: str | None = None,
    noise: Noise | None = None,
    **not_yet: Any,
) -> Fitted:
    """Fit from noisy releases; only names, shapes and grids of the columns are looked at here.

    Parameters
    ----------
    model : estimator
        That is fitted; only known to be counted (:mod:`fdadp.privacy._unaccounted_fits`).
    private : PrivateSettings
    data, y, grids, groups, offset, by
        As :meth:`fdadp.FunctionalRegression.fit` takes them.
    noise : Noise, optional
        For audits.
    **not_yet
        Arguments that must be None in a private fit.
    """
    data = opened_table(data) if is_foreign(type(data)) else data
    if isinstance(data, OpenedTable) and y is None:
        data = DeclaredTable(data, grids, private.public_bounds())
    table = data if isinstance(data, PrivateTable) else PrivateTable(data, grids, private.public_bounds(), y)
    found = prepared(private, table, given=y, offset=offset, **not_yet)
    if found.mixed is not None:
        groups = found.mixed[0].groups(groups)
    elif groups is not None:
        warn_of_rows(private.model.person_rows, private.model.family.name)
    given = tuple(found.reading.given.values())
    values, groups = table.handed(given, groups, found.name, privacy=private.privacy, by=by)
    if not isinstance(table, DeclaredTable):  # whose rows may be made of a person's only row, as periods are
        refuse_several(values, private.model.max_rows)
    if found.mixed is not None:
        return _fit_mixed(model, private, found, values, groups, noise)
    spent = spend(model, values, groups, **found.spending(private.privacy), noise=noise)
    return _fitted(private, found, spent)


def _fit_mixed(
    model: Any, private: PrivateSettings, found: Prepared, values: Any, groups: Any, noise: Noise | None
) -> Fitted:
    """A mixed model, from what is asked of persons."""
    from fdadp.regression.private.mixed_model import mixed_model, spend_mixed

    assert found.mixed is not None and found.response is not None
    asked, public = found.mixed
    privacy, t = private.privacy, found.response.grid
    cohort = privacy.cohort(
        values, groups=groups, mechanism="mixed model", noise=noise, estimator=model, public=found.public
    )
    prepare = found.reading.prepared(found.less)
    seen, plan = spend_mixed(cohort, privacy, found.mechanism, public, prepare)
    with one_blas_thread():
        mixed = mixed_model(asked, public, seen, t, plan.n * privacy.epsilon)
    ledger = seen.ledger
    released = Released(
        notes=mixed.warned + mixed.notes,
        warned=mixed.warned,
        importances=mixed.importances,
        curve_prior=found.mechanism.public_prior.x,
        columns=mixed.columns,
        ledger=ledger,
        privacy=replace(privacy) if ledger.private else None,
        plan=plan,
        persons=mixed.persons,
    )
    reading = found.reading
    return Fitted(
        response=FittedResponse(name=found.name, curves=_without_rows(found.response), classes=None),
        errors=CoefficientErrors(settings=private.model, fit=mixed.fit, variances={"released": mixed.variance}),
        covariates=PrivateColumns(reading.axes, reading.made, reading.numbers, reading.units),
        null_deviance=float("nan"),
        offset=found.offset,
        shares=(mixed.explained, mixed.explained),
        released=released,
    )


def fit_private_chunks(
    model: Any,
    private: PrivateSettings,
    chunks: Any,
    grids: Grids | None,
    columns: Mapping[str, Any],
    noise: Noise | None = None,
) -> Fitted:
    """Fit from noisy releases about chunks, which nothing but the kernel reads."""
    for argument in ("groups", "offset"):
        name = columns[argument]
        if name is not None and not isinstance(name, str):
            raise InputError(
                f"{argument} must be the name of a column when fitting from chunks, got {type(name).__name__}"
            )
    table = DeclaredTable(chunks, grids, private.public_bounds())
    beside = {"offset": columns["offset"], "weights": columns["weights"]}
    return fit_private(model, private, table, None, None, columns["groups"], noise=noise, **beside)


def _fitted(private: PrivateSettings, found: Prepared, spent: Spent[Any]) -> Fitted:
    """The model that releases make; nothing of the training rows is kept."""
    with one_blas_thread():
        fit = as_terms(spent.fit, spent.design, spent.plan)
    errors = CoefficientErrors(settings=private.model, fit=fit)
    shares, warned, notes = _said(found, spent, errors)
    names = {design.name for design in fit.form.designs}
    own = importances(spent.fit, spent.design)
    left_out = [name for name in own if name not in names]
    notes = warned + notes + tuple(f"{name} was not afforded by the plan and left out" for name in left_out)
    if getattr(spent.fit, "dropped", False):
        notes += ("the releases let expect no gain of the fit over its anchor, which alone is left of it",)
    ledger = spent.cohort.ledger
    released = Released(
        notes=notes,
        warned=warned,
        importances=own,
        curve_prior=found.mechanism.public_prior.x,
        columns=spent.fit.columns,
        ledger=ledger,
        privacy=replace(private.privacy) if ledger.private else None,
        plan=spent.plan,
    )
    classes = None if found.asked.classes is None else list(found.asked.classes)
    reading = found.reading
    return Fitted(
        response=FittedResponse(name=found.name, curves=_without_rows(found.response), classes=classes),
        errors=errors,
        covariates=PrivateColumns(reading.axes, reading.made, reading.numbers, reading.units),
        null_deviance=float("nan"),
        offset=found.offset,
        shares=shares,
        released=released,
    )


def _said(
    found: Prepared, spent: Spent[Any], errors: CoefficientErrors
) -> tuple[tuple[float, float], tuple[str, ...], tuple[str, ...]]:
    """What releases say: shares explained, warnings of the public inputs, and notes. Keeps the law of the errors."""
    if found.asked.bounded is not None:  # what such responses vary about their means follows from the means
        warned = beyond_scale(spent.fit.columns, pure=spent.plan.pure)
        return (np.nan, np.nan), warned, describe_ranges(spent.fit.columns)
    spread = released_variance(spent.fit, spent.design)
    explained = 1 - unexplained_variance(spent.fit) / max(spread.total, 1e-300)
    errors.variances["released"] = spread
    name = found.name
    rest = (name,) if found.offset is None else (f"{name} - offset", "its offset and a mean curve")
    warned, notes = advise(spent.fit, spent.plan, spent.rows, explained, *rest)
    return (explained, explained), warned, notes


def _without_rows(response: Curves | None) -> Curves | None:
    return None if response is None else replace(response, values=np.zeros((0, response.grid.size)), index=None)


def say_of_public_inputs(warned: tuple[str, ...]) -> None:
    """Warn of what releases say of bounds and n, at the end of ``fit``: where warnings are errors the ledger is there.

    Warns
    -----
    PublicInputWarning
    """
    for text in warned:
        warn(text, PublicInputWarning)


# Synthetic cohorts from what a private fit released; post-processing, which costs no privacy.


def synthetic_cohort(fitted: Fitted, n: int, random_state: int | None) -> pd.DataFrame:
    """Draw rows: columns by their released locations and scales, and a response by the fit.

    Raises
    ------
    InputError
        A fit without privacy, or of another family than the Gaussian.
    """
    from skfda import FDataGrid

    from fdadp.private.model_from_releases import draw_column

    released, covariates = fitted.released, fitted.covariates
    if released is None or released.ledger is None or released.ledger.epsilon is None:
        raise InputError("privacy must have been given to draw a cohort: a fit without it is not safe to sample")
    assert isinstance(covariates, PrivateColumns)
    fitted.settings.refuse_other_families("sample")
    rng = np.random.default_rng(random_state)
    count = whole(n, "n")
    own = [column for column in released.columns if column.name not in covariates.made]
    columns = {column.name: draw_column(column, released.curve_prior, count, rng) for column in own}
    law = fitted.errors.variances["released"]
    records = covariates.completed(Records(count, columns), fitted.offset)
    y = fitted.fit.form.predictor(records, fitted.fit.coefficients) + law.draw(count, rng)
    y = y if fitted.offset is None else y + along(records.columns[fitted.offset], law.grid)
    out = pd.DataFrame(index=range(count))
    for name, values in columns.items():
        out[name] = FDataGrid(values.values, values.grid) if isinstance(values, Curves) else values
    out[fitted.response.name] = FDataGrid(y, law.grid) if law.grid.size > 1 else y[:, 0]
    known = promised(released.ledger.epsilon, released.ledger.delta)
    out.attrs["synthetic"] = f"drawn from a private fit ({known}); no row is a person's"
    return out
