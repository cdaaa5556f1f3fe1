"""From what a user asks to a fitted model: the specification, terms on bases, the estimate, fits to rows in memory."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.calling_language import warn
from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import IdentificationWarning, InputError
from fdadp.regression.fitted.coefficient_errors import CoefficientErrors
from fdadp.regression.fitted.fitted_model import Fitted, FittedResponse, TrainedRows
from fdadp.regression.formula import ParsedFormula, parse, words
from fdadp.regression.mixed_models.mixed_model_fit import MixedFit, fit_by_person, large_effect, person_terms
from fdadp.regression.model_settings import ModelSettings
from fdadp.regression.reading.label_joins import positioned
from fdadp.regression.reading.missing_entries import CompletedAgain
from fdadp.regression.reading.table_columns import ColumnTable, Grids, check_grids, columns_of, read_together
from fdadp.regression.reading.training_rows import Training, TrainingSpec, is_expression, read_rows
from fdadp.responses import Functional
from fdadp.solve.eigen.fit_to_scores import ComponentsFit, ComponentsOfGaps, fit_components, fit_components_of_gaps
from fdadp.solve.errors.gls import ErrorCovariance, fit_along_curves, judging_system
from fdadp.solve.errors.leave_one_curve_out import fit_by_curves
from fdadp.solve.errors.leave_one_out_residuals import Residuals, independent_share
from fdadp.solve.fit.additive_fit import AdditiveFit
from fdadp.solve.fit.observations import ChunkedObservations, Observations, fit_terms, log_likelihood, shares_explained
from fdadp.solve.form.long_form_design import LongForm
from fdadp.solve.form.ordered_categories import classes_of
from fdadp.terms.curves.functional_linear import Integral
from fdadp.terms.numbers.factors_and_random_effects import Factor, RandomEffect, levels_of
from fdadp.terms.numbers.scalar_linear import Intercept, Linear, MeanCurve
from fdadp.terms.on_response_functions import in_scalar_form
from fdadp.terms.records import Records, TrainingSummary
from fdadp.terms.spec import TermDesign, TermSpec
from fdadp.terms.times_column import multiplier_of, without_repeats

if TYPE_CHECKING:
    from fdadp.functional.fpca import Eigenbasis
    from fdadp.solve.errors.curve_precisions import LowRankPrecision


# The specification of a model: its terms, the names of its columns, and the terms on their bases.


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """Specification of a model. It is public and made before any row is read.

    Attributes
    ----------
    settings : ModelSettings
    parsed : ParsedFormula
        Terms, and whether the model has a constant and a mean curve.
    response : str
        Name of the response.
    offset : str or None
        A column, or an expression of columns, that the model adds to its predictions.
    grids : tuple of str
        Columns whose grids the user gave. New rows need such a column only if a term reads it.
    joined : str or None
        Number of rows that were joined, and the key. None if rows belong together by position.
    """

    settings: ModelSettings
    parsed: ParsedFormula
    response: str
    offset: str | None = None
    grids: tuple[str, ...] = ()
    joined: str | None = None


def read_terms(settings: ModelSettings, kinds: Callable[[], Mapping[str, str]]) -> ParsedFormula:
    """Read the terms, and whether the model has a constant and a mean curve.

    Parameters
    ----------
    settings : ModelSettings
    kinds : callable
        Returns the kind of each column, for formulas.
    """
    if isinstance(settings.formula, str):
        return parse(settings.formula, kinds())
    wanted = "a formula, or a sequence of terms such as [terms.ff('X')]"
    specs: tuple[Any, ...] = tuple(settings.formula) if isinstance(settings.formula, Sequence) else (None,)
    if not all(isinstance(spec, TermSpec) for spec in specs):
        raise InputError(f"formula must be {wanted}, got {settings.formula!r}")
    odd = next((name for name in columns_of(specs) if not isinstance(name, str)), None)
    if odd is not None:
        raise InputError(f"columns of terms must be named by text, got {odd!r}")
    return ParsedFormula(None, specs, settings.intercept, settings.intercept)


def read_spec(
    settings: ModelSettings, data: Any, y: Any, grids: Grids | None, *, by: str | None = None, **beside: Any
) -> tuple[ModelSpec, TrainingSpec]:
    """Read the specification of a model, and the rows to train on.

    Raises
    ------
    InputError
        Terms or settings that are unknown, or columns that are not there.
    """
    if by == "position":
        data = positioned(data)
    table = None
    if isinstance(settings.formula, str):
        table = ColumnTable(read_together(data, words(settings.formula)), grids)
    parsed = read_terms(settings, lambda: {} if table is None else table.kinds())
    if settings.as_refund:
        parsed = parsed._replace(terms=tuple(term.with_refund_sizes() for term in parsed.terms))
    if settings.response is not None and parsed.response not in (None, settings.response):
        raise InputError(f"response must be left out where a formula has one, got {settings.response!r}")
    response = parsed.response or settings.response or settings.default_response
    columns = columns_of(parsed.terms)
    now = [term for term in parsed.terms if getattr(term, "limits", None) is None]
    if y is None and not isinstance(settings.formula, str) and response in columns_of(now):  # not its past
        raise InputError(
            f"formula must not explain {response} by itself; if that is meant, copy the column under another name"
        )
    if grids is not None:
        check_grids(grids, data, response)
    given = parsed.one_offset(beside.get("offset"))
    computed = parsed.offset is not None or (isinstance(given, str) and is_expression(given, data))
    offset = f"I({given})" if computed else None
    if offset is not None:
        beside["offset"], columns = offset, (*columns, offset)
    asked = TrainingSpec(data, y, response, columns, grids, missing=settings.gaps, table=table, **beside)
    asked, joined = asked.joined(by)
    named = tuple(grids or ())
    spec = ModelSpec(settings=settings, parsed=parsed, response=response, offset=offset, grids=named, joined=joined)
    return spec, asked


def designs(spec: ModelSpec, terms: Sequence[TermSpec], seen: TrainingSummary, t: FloatArray | None) -> LongForm:
    """Terms on bases that suit the training records.

    With ``response_basis="eigen"`` they are the terms of a number. The fit finds the functions along the response.
    Means are subtracted from curves and numbers where the model has a constant, and of curves a mean curve, to absorb
    them. The fit then does not depend on the zero of the units. A penalised mean curve could not absorb a change of it.
    """
    parsed, of_numbers = spec.parsed, spec.settings.on_eigenfunctions
    if of_numbers and not (parsed.intercept and parsed.mean_curve):
        raise InputError("formula must have an intercept and a mean curve with response_basis='eigen'")
    if of_numbers and not terms:
        raise InputError("formula must have at least one term with response_basis='eigen', got none")
    fixed: Iterator[TermDesign]
    if of_numbers:
        assert t is not None
        fixed = (in_scalar_form(term, seen, t) for term in terms)
    else:
        mean: list[TermSpec] = [Intercept()] if parsed.intercept else []
        if t is not None and parsed.mean_curve and not any(isinstance(term, MeanCurve) for term in terms):
            mean.append(MeanCurve())
        on_circle = replace(seen, t_cycle=spec.settings.t_cycle)
        fixed = (term.fixed(on_circle, t) for term in (*mean, *terms))
    numbers = {term.column for term in terms if isinstance(term, Linear)}
    made = tuple(without_repeats(design, numbers) for design in fixed)
    if spec.settings.t_period is not None:
        refuse_open_ends(made)
    of_numbers = of_numbers or t is None
    if not spec.settings.as_refund and parsed.intercept and (of_numbers or parsed.mean_curve):
        # A product with a column is centred only if that column is a term by itself: its effect absorbs the change.
        alone = {s.column for s in terms if isinstance(s, Linear | Factor) and (of_numbers or not s.constant)}
        means = seen.means()
        made = tuple(d.about(means) if multiplier_of(d) in (None, *alone) else d for d in made)
    if not made:
        raise InputError("formula must have at least one term, or an intercept, got none")
    refuse_same_names(made)
    form = LongForm(made, np.zeros(1) if t is None else t)
    if not spec.settings.on_eigenfunctions:
        refuse_too_large(form)
    return form


def refuse_open_ends(made: Sequence[TermDesign]) -> None:
    """Raise an error if a term has functions along a circle that do not meet."""
    odd = next((design.name for design in made if design.along.size > 1 and design.along.period is None), None)
    if odd is not None:
        raise InputError(f"t_period must be None with {odd}, whose functions of t do not go round a circle")


def refuse_same_names(made: Sequence[TermDesign]) -> None:
    """Raise an error if two terms have one name."""
    names = [design.name for design in made]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"terms must be different, got {twice} twice")


def check_axes(form: LongForm, units: Mapping[str, str], unit: str | None, response: str) -> None:
    """Refuse curves that act at the response's t, and are dated from another day or in another unit."""
    for design in form.designs:
        for name in () if design.separable else design.columns:
            if unit is not None and units.get(name, unit) != unit:
                raise InputError(
                    f"{name} must be on the axis of {response} in {design.name}, got {units[name]} and {unit}; label "
                    "their points with numbers on one axis"
                )


# What a fit of many terms takes of the machine's memory, said before it is taken.


SQUARES = 11
"""Matrices with a row and a column for each coefficient that a fit holds at its peak."""

FEW = 2000
"""Coefficients that fit everywhere."""


def refuse_too_large(form: LongForm) -> None:
    """Refuse a model whose matrices of coefficients are larger than the memory that is free.

    Raises
    ------
    InputError
        Naming the largest term, what the fit would take, and what to do instead.
    """
    free = None if form.size <= FEW else free_memory()
    need = SQUARES * 8 * form.size**2
    if free is None or need <= free:
        return
    design = max(form.designs, key=lambda d: d.size)
    cure = "give its bases fewer functions, k"
    if levels_of(design) is not None:
        fewer = "leave out its k, which gives each level a number, or " if design.along.size > 1 else ""
        cure = f"{fewer}leave out the term and say fit(groups={design.columns[0]!r}): standard errors then allow for it"
    raise InputError(
        f"{design.name} must have fewer coefficients, got {design.size:,} of {form.size:,}: the fit would take about "
        f"{need / 1e9:,.0f} GB of memory, and {free / 1e9:,.1f} GB are free; {cure}"
    )


def free_memory() -> int | None:
    """Bytes that this process can take, within the limit of its container; None where the system does not say."""
    found = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found.append(int(line.split()[1]) * 1024)
    except OSError:
        names = getattr(os, "sysconf_names", {})
        if "SC_PHYS_PAGES" in names:
            found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with contextlib.suppress(OSError, ValueError):  # no container, or one without a limit
        found.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(found, default=None)


# The fit of terms to responses, all at hand or in chunks; and fits to rows in memory.


# The fit of terms to responses, all at hand or in chunks: with splines along the response, or on eigenfunctions.


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A fit of terms, and what came with it.

    Attributes
    ----------
    fit : AdditiveFit
    working : ErrorCovariance or None
        Assumed covariance of the errors along a curve, of generalised least squares.
    precision : LowRankPrecision or None
        Along the response, of a fit to the scores on eigenfunctions.
    beyond : mapping of ndarray, or None
        Variance of mean curves outside of the eigenfunctions.
    basis : Eigenbasis or None
        Mean and eigenfunctions of the responses.
    weighted : bool
        Whether observations had weights in the fit.
    components : ComponentsFit, ComponentsOfGaps or None
        The fits to the scores, on eigenfunctions.
    mixed : MixedFit or None
        Curves of persons, of a term with ``covariance="free"``.
    """

    fit: AdditiveFit
    working: ErrorCovariance | None = None
    precision: LowRankPrecision | None = None
    beyond: Mapping[str, FloatArray] | None = None
    basis: Eigenbasis | None = None
    weighted: bool = True
    components: ComponentsFit | ComponentsOfGaps | None = None
    mixed: MixedFit | None = None


def estimated(
    spec: ModelSpec, form: LongForm, observed: Observations | ChunkedObservations, persons: IntArray | None = None
) -> Estimate:
    """Fit the terms as the settings say; `persons` has the number of the group of each row.

    Raises
    ------
    InputError
        Weights, or gaps of responses in chunks, with ``response_basis="eigen"``; chunks, with smoothing by curves.
    """
    settings = spec.settings
    own = settings.smoothing, settings.n_unpenalized
    if settings.smooths_by_curves:
        settings.check_smoothing_by(persons)
        if not isinstance(observed, Observations):
            raise InputError(f"smoothing={settings.smoothing!r} needs all rows in memory, got chunks")
        believed = judging_system(form, observed, settings.family, "reml")
        return Estimate(fit=fit_by_curves(form, observed, persons, settings.n_unpenalized, believed))
    if settings.on_eigenfunctions:
        return _on_eigenfunctions(spec, form, observed)
    if settings.errors == "curve":
        assert isinstance(observed, Observations)
        fit, working = fit_along_curves(form, observed, *own)
        return Estimate(fit=fit, working=working)
    believed = judging_system(form, observed, settings.family, settings.smoothing)
    return Estimate(fit=fit_terms(form, observed, settings.family, *own, believed))


def _on_eigenfunctions(spec: ModelSpec, form: LongForm, observed: Observations | ChunkedObservations) -> Estimate:
    """Each score of the response is a regression of numbers; curves with gaps are fitted by their observed points."""
    settings = spec.settings
    own = Functional(settings.n_components, settings.fpca)
    if isinstance(observed, Observations) and not (observed.whole or observed.weighted):
        t = form.t if observed.points is None else observed.points.grid()
        gaps = fit_components_of_gaps(form.designs, observed, t, own, settings.smoothing, settings.n_unpenalized)
        beyond = dict.fromkeys(("iid", "curve"), gaps.beyond)
        return Estimate(
            fit=gaps.fit, working=gaps.working, beyond=beyond, basis=gaps.basis, weighted=False, components=gaps
        )
    if observed.weighted:
        raise InputError("weights must be None with response_basis='eigen'")
    if not observed.whole:
        raise InputError(
            f"{spec.response} must be observed at all points of a common grid with response_basis='eigen' where it is "
            "read in chunks, got gaps"
        )
    with one_blas_thread():
        found = fit_components(
            form.designs,
            observed,
            form.t,
            own,
            settings.smoothing,
            settings.n_unpenalized,
            spec.response,
        )
    return Estimate(fit=found.fit, precision=found.precision, beyond=found.beyond, basis=found.basis, components=found)


def warn_of_unidentified(fit: AdditiveFit) -> None:
    """Warn of terms that the data do not identify.

    Warns
    -----
    IdentificationWarning
        Naming them.
    """
    lost = fit.unidentified()
    if lost:
        warn(
            f"the data do not identify all of {', '.join(lost)}: what is not identified was set to 0. "
            + "; ".join(f"{name} {why}" for name, why in lost.items()),
            IdentificationWarning,
        )


# Fits to rows in memory.


def fit_whole(settings: ModelSettings, data: Any, y: Any, grids: Grids | None, **beside: Any) -> Fitted:
    """Fit a model to a table.

    Parameters
    ----------
    settings : ModelSettings
    data, y, grids, **beside
        As :meth:`fdadp.FunctionalRegression.fit` takes them. `long` is a response as a long table.
    """
    spec, training, groups, estimate = estimate_whole(settings, data, y, grids, **beside)
    observed, fit, mixed = training.observed, estimate.fit, estimate.mixed
    settings = settings.with_family_of(fit)
    family = settings.family
    eta, edf = observed.predictor(fit.form, fit.coefficients), fit.edf_total
    if mixed is not None:
        eta, edf = eta + mixed.persons.beside(observed), edf + mixed.persons.edf
    null_deviance, mean = observed.null_deviance(family), family.mean(eta)
    shares = shares_explained(observed, family, mean, edf, null_deviance)
    curves, numbers = training.curves, training.curves is None
    # Means of curves take as much memory as the curves: residuals overwrite them, and who asks has them computed again.
    gaussian = mixed is None and family.name == "gaussian" and observed.whole
    made_again = gaussian and observed.offset is None and not numbers
    errors = _errors_of(estimate, settings, observed, groups, eta, eta if made_again else None)
    again = None if training.loose is None else _completed_again(spec, training, training.loose, fit)
    if training.grid is not None:  # where responses have points of their own, predictions are made on another grid
        errors = replace(errors, fit=replace(fit, form=LongForm(fit.form.designs, training.grid)))
    warn_of_unidentified(errors.fit)
    kept = errors.residuals
    left = observed.y - mean if kept is None or kept.weights is not None else kept.values  # once in memory
    return Fitted(
        response=FittedResponse(
            name=spec.response,
            curves=None if curves is None else curves.without_rows(),
            periodic=settings.t_period is not None,
            classes=None
            if not numbers
            else classes_of(family)
            if training.classes is None
            else training.classes.tolist(),
            observed_at=observed.points,
        ),
        errors=errors,
        covariates=training.covariates,
        null_deviance=null_deviance,
        offset=spec.offset,
        grids=spec.grids,
        joined=spec.joined,
        shares=shares,
        advice=_advice(estimate, settings, observed, left),
        again=again,
        basis=estimate.basis,
        rows=TrainedRows(
            residuals=left[:, 0] if numbers else left,
            known=partial(_means, fit, observed.records) if made_again else mean[:, 0] if numbers else mean,
            weights=observed.weights if estimate.weighted else None,
            curves=curves if observed.points is None else None,
        ),
    )


def _errors_of(
    estimate: Estimate,
    settings: ModelSettings,
    observed: Observations,
    groups: IntArray | None,
    eta: FloatArray,
    into: FloatArray | None,
) -> CoefficientErrors:
    """What standard errors need of a fit; residuals are written into an array, which may be that of the predictors."""
    if estimate.mixed is not None:
        return CoefficientErrors.by_persons(settings, estimate.mixed)
    working, fit, family = estimate.working, estimate.fit, settings.family
    believed = (estimate.precision, None) if working is None else (working.precision, working.learned)
    return CoefficientErrors(
        settings=settings,
        fit=fit,
        loglik=log_likelihood(observed, family, eta, fit) if working is None else working.log_likelihood(fit),
        residuals=Residuals.of(observed, eta, family, believed[0], believed[1], into),
        groups=groups,
        beyond=estimate.beyond,
    )


def _means(fit: AdditiveFit, records: Records) -> FloatArray:
    """Mean curves of records, of some thousands at a time."""
    out = np.empty((records.n, fit.form.t.size))
    for rows in records.blocks():
        out[rows] = fit.form.predictor(records[rows], fit.coefficients)
    return out


ADVISED = range(30, 300)
"""Numbers of curves with which a working covariance of errors helps: fewer do not tell it, and more hardly need it."""

LEAST_POINTS = 10
"""Points of t that ``errors="curve"`` needs."""

SMOOTH_ERRORS = 1 / 3
"""Share of independent points below which errors along a curve are smooth (design: Box's effective number)."""

FOLLOWED = 1 / 2
"""Share of a curve's variance below which functions of s are too few: .25 of ``load_lip_emg``, .59 of ``load_dti2``."""

ALONG_T = "Errors depend along t: errors='curve' estimates effects with less error."
SHRUNK = "Variances that take points as independent shrink the levels of"


def _advice(estimate: Estimate, settings: ModelSettings, observed: Observations, left: FloatArray) -> tuple[str, ...]:
    """What may estimate effects or predict with less error than a fit that takes all points as independent.

    Curves with points of their own get no advice.
    """
    plain = settings.of_curves and settings.least_squares and estimate.mixed is None and observed.points is None
    if not plain or observed.y.shape[1] < LEAST_POINTS:
        return ()
    said, designs = [], estimate.fit.form.designs
    if observed.n in ADVISED:
        seen = observed.used > 0
        if independent_share(np.where(seen, left, 0.0), seen, estimate.fit.edf_total) < SMOOTH_ERRORS:
            random = ", ".join(design.name for design in designs if levels_of(design) is not None)
            said.append(ALONG_T + (f" {SHRUNK} {random} too little." if random else ""))
    for design in designs:
        if isinstance(design, Integral) and (share := design.followed(observed.records)) < FOLLOWED:
            name = design.columns[0]
            said.append(
                f"{design.name} has {design.own_margins[0].size} functions of s, which follow {share:.0%} of the "
                f"variance of {name}: try ff({name}, k=(20, 15)) with errors='curve' for predictions."
            )
    return tuple(said)


def estimate_whole(
    settings: ModelSettings, data: Any, y: Any, grids: Grids | None, **beside: Any
) -> tuple[ModelSpec, Training, IntArray | None, Estimate]:
    """Read a table once and fit the terms to it; arguments as of :func:`fit_whole`.

    Returns
    -------
    spec : ModelSpec
    training : Training
    persons : ndarray of shape (n,) or None
        Number of the group of each row.
    estimate : Estimate
    """
    spec, asked = read_spec(settings, data, y, grids, **beside)
    own = person_terms(spec.parsed.terms, settings)
    training, persons = read_rows(asked, settings, by_person=bool(own))
    observed, made = training.observed, map(Linear, training.covariates.completion.indicators.values())
    seen, every = observed.summary(training.points), (*spec.parsed.terms, *made)
    explained = len(every) > 1 or spec.parsed.intercept
    if not own and persons is None and explained and any(isinstance(term, RandomEffect) for term in every):
        own = large_effect(every, settings, seen, observed)
    random = {term.name for term in own}
    form = designs(spec, [term for term in every if term.name not in random], seen, training.points)
    if own and not form.separable and not person_terms(every, settings):  # stacked after all
        own, form = (), designs(spec, every, seen, training.points)
    if training.curves is not None:
        check_axes(form, training.covariates.units, training.curves.unit, spec.response)
    if own:
        mixed = fit_by_person(own, settings, form, observed, seen, groups=persons)
        return spec, training, persons, Estimate(fit=mixed.fit, mixed=mixed)
    if not settings.on_eigenfunctions:
        observed = observed.with_features(form)
    return spec, replace(training, observed=observed), persons, estimated(spec, form, observed, persons)


def _completed_again(spec: ModelSpec, training: Training, loose: Records, fit: AdditiveFit) -> CompletedAgain | None:
    """How far the fit depends on the components that completed sparse curves."""
    completion = training.covariates.completion
    if "pace" in completion.how.values() and spec.settings.least_squares:
        with contextlib.suppress(InputError):  # too few curves: standard errors say so
            return CompletedAgain.of(loose, completion, training.observed, fit)
    return None
