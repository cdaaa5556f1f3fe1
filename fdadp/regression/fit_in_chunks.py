"""Fits of many terms to tables in chunks, which need not fit into memory together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.tables.curve_sample import Curves
from fdadp.regression.fit_in_memory import Estimate, ModelSpec, designs, estimated, read_spec, warn_of_unidentified
from fdadp.regression.fitted.coefficient_errors import CoefficientErrors, variance_from
from fdadp.regression.fitted.fitted_model import Fitted, FittedResponse
from fdadp.regression.mixed_models.mixed_model_fit import fit_by_person, person_terms
from fdadp.regression.model_settings import ModelSettings
from fdadp.regression.reading.chunked_records import ChunkedRecords
from fdadp.regression.reading.missing_entries import Completion, treatments
from fdadp.regression.reading.table_columns import Covariates, Grids, read_records, units_of
from fdadp.regression.reading.training_rows import (
    ByPerson,
    TrainingSpec,
    beside,
    check_max_rows,
    check_person_rows,
    check_responses,
    warn_of_rows,
    weights_beside,
)
from fdadp.solve.errors.leave_one_out_residuals import Residuals
from fdadp.solve.errors.sandwich import LEVERAGES, ChangeSums, cluster_errors, left_out, of_many
from fdadp.solve.fit.observations import ChunkedObservations, Observations, log_likelihood
from fdadp.solve.form.long_form_design import LongForm
from fdadp.solve.form.ordered_categories import classes_of
from fdadp.solve.form.response_families import Family
from fdadp.terms.numbers.factors_and_random_effects import RandomEffect
from fdadp.terms.records import Records, TrainingSummary


def fit_chunks(settings: ModelSettings, chunks: Any, grids: Grids | None, columns: dict[str, Any]) -> Fitted:
    """Fit a model in a few passes over chunks.

    Parameters
    ----------
    settings : ModelSettings
    chunks, grids
        As :meth:`fdadp.FunctionalRegression.fit_chunks` takes them.
    columns : dict
        Names of the columns of ``weights``, ``offset`` and ``groups``, or None.
    """
    settings.refuse_variance_terms("fit_chunks")
    if settings.errors != "iid":
        raise InputError("errors must be 'iid' when fitting from chunks, got 'curve'")
    settings.check_groups(columns["groups"], "fit_chunks(chunks, groups=...)")
    check_person_rows(settings.person_rows, grouped=columns["groups"] is not None)
    for argument, name in columns.items():
        if name is not None and not isinstance(name, str):
            raise InputError(f"{argument} must be the name of a column when fitting from chunks, got {name!r}")
    look = ChunkedRecords(chunks, (), grids=grids).of_first(partial(_looked, settings, grids, columns["offset"]))
    spec, given = look.spec, columns | {"offset": look.offset}
    names = tuple(dict.fromkeys((*look.columns, *(name for name in given.values() if name is not None))))
    source = ChunkedRecords(chunks, names, spec.response, grids, settings.progress, look.completion)
    head = source.head
    response = head[f"the response {spec.response}"]
    curves = response if isinstance(response, Curves) else None
    how = ResponseReader(settings.family, settings.of_curves, spec.response, given["weights"], given["offset"])
    own, groups = person_terms(spec.parsed.terms, settings), given["groups"]
    with one_blas_thread():
        read = _of_persons(settings, ChunkedResponses(source, how), None if own else groups)
        t = None if curves is None else curves.grid
        observed, seen = ChunkedObservations.seen(read, t)
        form = designs(spec, [term for term in spec.parsed.terms if term not in own], seen, t)
        estimate = _mixed(own, settings, form, observed, seen, groups) if own else estimated(spec, form, observed)
        settings = settings.with_family_of(estimate.fit)
        null_deviance = observed.null_deviance(settings.family)
        if estimate.mixed is not None:
            errors = CoefficientErrors.by_persons(settings, estimate.mixed)
        else:
            errors = _errors(settings, estimate, observed, groups)
    warn_of_unidentified(errors.fit)
    known = {name: c for name, c in head.items() if isinstance(c, Curves) and c is not response}
    points = {name: c.grid for name, c in known.items()}
    return Fitted(
        response=FittedResponse(
            name=spec.response,
            curves=curves,
            classes=None if settings.of_curves else classes_of(settings.family),
            periodic=settings.t_period is not None,
        ),
        errors=errors,
        covariates=Covariates(points, look.completion, units_of(known)),
        null_deviance=null_deviance,
        offset=spec.offset,
        grids=spec.grids,
        joined=spec.joined,
        basis=estimate.basis,
    )


def _mixed(
    own: Sequence[RandomEffect],
    settings: ModelSettings,
    form: LongForm,
    observed: ChunkedObservations,
    seen: TrainingSummary,
    groups: str | None,
) -> Estimate:
    """Random functions of persons, whose rows may be in several chunks."""
    mixed = fit_by_person(own, settings, form, observed, seen, by_person=groups is not None)
    outer = mixed.persons.columns[-1 if mixed.persons.sites else 0]
    if groups not in (None, outer):
        raise InputError(f"groups must be the levels of re({outer}), got {groups!r}")
    return Estimate(fit=mixed.fit, mixed=mixed)


# --- the first chunk ---


@dataclass(frozen=True)
class _Look:
    """Read from the first chunk: the model, its columns, the offset, and how gaps are filled."""

    spec: ModelSpec
    columns: tuple[str, ...]
    offset: str | None
    completion: Completion


def _looked(settings: ModelSettings, grids: Grids | None, offset: str | None, table: Any) -> _Look:
    spec, asked = read_spec(settings, table, None, grids, offset=offset)
    if spec.joined is not None:  # other chunks have other counts
        spec = replace(spec, joined=f"joined by {spec.joined.partition(' by ')[2]}, chunk by chunk")
    return _Look(spec, tuple(asked.columns), asked.offset, _row_by_row(asked))


def _row_by_row(asked: TrainingSpec) -> Completion:
    """Treatments of missing entries that need no other row."""
    if asked.missing == "raise":
        return Completion({}, {}, {}, {})
    loose, _ = read_records(asked.data, asked.columns, asked.grids, missing=asked.columns)
    how = treatments(asked.missing, {name: loose.kind(name) for name in asked.columns})
    odd = next((what for what in how.values() if what not in ("linear", "smooth")), None)
    if odd is not None:
        raise InputError(f"missing must be 'raise', 'linear' or 'smooth' when fitting from chunks, got {odd!r}")
    return Completion(how, {}, {}, {})


# --- responses ---


@dataclass(frozen=True)
class ResponseReader:
    """How responses of chunks are read: as numbers that the family allows."""

    family: Family
    curves: bool
    name: str
    weights: str | None = None
    offset: str | None = None
    persons: ByPerson | None = None

    def __call__(self, records: Records, response: Any) -> Observations:
        """The observations of a chunk."""
        y = _numbers(response, self.name, self.curves)
        w = weights_beside(_column(records, self.weights), {}, y.shape, first=records.first)
        added = beside(_column(records, self.offset), "offset", {}, y.shape, first=records.first)
        check_responses(self.family, y, w, added, self.name, records.first)
        if self.persons is not None:
            own = np.broadcast_to(self.persons.weights(records.labels(self.persons.groups).tolist()), y.shape)
            w = own if w is None else w * own
        return Observations(records, y, w, added)

    def then(self, function: Callable[[Observations], Any], records: Records, response: Any) -> Any:
        """A function of them."""
        return function(self(records, response))


@dataclass(frozen=True)
class ChunkedResponses:
    """The chunks with their responses."""

    source: ChunkedRecords
    how: ResponseReader

    def over(self, function: Callable[[Observations], Any], merge: Any, finish: Any = None) -> Any:
        """As :meth:`ChunkedRecords.over`."""
        return self.source.over(partial(self.how.then, function), merge, finish=finish)

    def here(self) -> Iterator[Observations] | None:
        """The chunks, where they are in this process."""
        return None if self.source.elsewhere else (self.how(*rows) for rows in self.source.read())


def _of_persons(settings: ModelSettings, read: ChunkedResponses, groups: str | None) -> ChunkedResponses:
    """The same with weights by which each person counts once, unless ``person_rows="sum"``."""
    if groups is None:
        check_max_rows(settings.person_rows, settings.max_rows, 1)
    if groups is None or (settings.person_rows == "sum" and settings.max_rows is None):
        return read
    counts: Counter[Any] = read.over(partial(_rows_of_persons, groups), _together)
    check_max_rows(settings.person_rows, settings.max_rows, max(counts.values()))
    if len(set(counts.values())) == 1:
        return read
    warn_of_rows(settings.person_rows, settings.family.name)
    if settings.person_rows == "sum":
        return read
    return replace(read, how=replace(read.how, persons=ByPerson(groups, counts)))


def _rows_of_persons(groups: str, chunk: Observations) -> Counter[Any]:
    return Counter(chunk.records.ids(groups).tolist())


def _together(one: Counter[Any], other: Counter[Any]) -> Counter[Any]:
    return one + other


def _numbers(response: Any, name: str, curves: bool) -> FloatArray:
    """Responses of a chunk, shape (n, T) or (n, 1)."""
    if isinstance(response, Curves) and not curves:
        raise InputError(f"{name} must hold one number a row, got curves; use FunctionalRegression")
    if isinstance(response, Curves):
        return response.values
    if curves:
        raise InputError(f"{name} must hold curves (an FDataGrid, or an array of shape (n, T)); use ScalarRegression")
    if response.dtype.kind != "f":
        raise InputError(
            f"{name} must hold numbers in chunks (0 and 1 for two classes, 1 to R for ordered), got {response[0]!r}"
        )
    return np.asarray(response)[:, None]


def _column(records: Records, name: str | None) -> Any:
    """Numbers of a column, or of its curves; None where there is none."""
    column = None if name is None else records.columns[name]
    return column.values if isinstance(column, Curves) else column


# --- errors ---


@dataclass
class _Left:
    """Log-likelihood and residuals of some rows, or sums of the changes without each row, and scores by group."""

    loglik: float
    residuals: list[Residuals]
    changes: ChangeSums | None
    groups: list[Any]
    scores: dict[Any, FloatArray]

    def merge(self, other: _Left) -> _Left:
        """With those of the rows after these."""
        self.loglik += other.loglik
        self.residuals += other.residuals
        self.groups += other.groups
        if self.changes is not None and other.changes is not None:
            self.changes = self.changes.merge(other.changes)
        for label, scores in other.scores.items():
            self.scores[label] = self.scores[label] + scores if label in self.scores else scores
        return self


def _errors(
    settings: ModelSettings, estimate: Estimate, observed: ChunkedObservations, groups: str | None
) -> CoefficientErrors:
    """Compute residuals in one more pass over the chunks."""
    fit = estimate.fit
    along = len(fit.form.t) if estimate.precision is None else estimate.precision.rank
    small = observed.n * along * fit.form.size <= LEVERAGES
    left = _left if small else _summed
    found: CoefficientErrors = observed.over(
        partial(left, settings, estimate, observed.n, groups),
        _Left.merge,
        partial(_learned, settings, estimate, groups is not None),
    )
    return replace(found, fit=fit)


def _left(settings: ModelSettings, estimate: Estimate, n: int, groups: str | None, chunk: Observations) -> _Left:
    """All residuals, if the rows are few."""
    fit, family = estimate.fit, settings.family
    eta = chunk.predictor(fit.form, fit.coefficients)
    loglik = log_likelihood(chunk, family, eta, fit)
    labels = [] if groups is None else chunk.records.labels(groups).tolist()
    return _Left(loglik, [Residuals.of(chunk, eta, family, estimate.precision)], None, labels, {})


def _summed(settings: ModelSettings, estimate: Estimate, n: int, groups: str | None, chunk: Observations) -> _Left:
    """Sums of the changes without each row, and the scores of groups, if the rows are many."""
    fit = estimate.fit
    found = _left(settings, estimate, n, groups, chunk)
    (own,) = found.residuals
    scores = own.scores(fit.form)
    found.changes = ChangeSums.of(fit, of_many(scores, fit.inverse, n))
    numbers: dict[Any, int] = {}
    which = np.array([numbers.setdefault(label, len(numbers)) for label in found.groups], dtype=np.int64)
    if numbers:
        by_group = np.zeros((len(numbers), scores.shape[1]))
        np.add.at(by_group, which, scores)
        found.scores = dict(zip(numbers, by_group, strict=True))
    found.residuals, found.groups = [], []
    return found


def _learned(settings: ModelSettings, estimate: Estimate, grouped: bool, left: _Left) -> CoefficientErrors:
    """Covariances and variances from the residuals, computed where the rows are."""
    fit = estimate.fit
    errors = CoefficientErrors(settings=settings, fit=fit, loglik=left.loglik, beyond=estimate.beyond)
    form, inverse = fit.form, fit.inverse
    labels = list(left.scores) if left.changes is not None else list(dict.fromkeys(left.groups))
    if grouped and len(labels) < 2:
        raise InputError(f"groups must be two or more, got {labels[0]!r} in all rows")
    if left.changes is not None:
        errors.clusters["curve"] = left.changes.errors(fit)
        if grouped:
            scores = np.stack(list(left.scores.values()))
            errors.clusters["cluster"] = cluster_errors(fit, of_many(scores, inverse, len(scores)))
        return errors
    with one_blas_thread():
        whole = Residuals.together(left.residuals)
        changes = left_out(form, inverse, whole)
        errors.clusters["curve"] = cluster_errors(fit, changes)
        which = None
        if grouped:
            numbers = {label: i for i, label in enumerate(labels)}
            which = np.array([numbers[label] for label in left.groups], dtype=np.int64)
            changes = left_out(form, inverse, whole, which)
            errors.clusters["cluster"] = cluster_errors(fit, changes)
        if whole.n > 1 and settings.of_curves and settings.family.name == "gaussian":
            found = {kind: variance_from(fit, whole, changes, kind, which) for kind in ("t", "model")}
            errors.variances.update(found)
    return errors
