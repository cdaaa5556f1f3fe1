"""Models of many terms fitted from tables in chunks that need not fit into memory together."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.functional.curves import Curves
from fdadp.functional.records import Records, Seen
from fdadp.privacy import Privacy
from fdadp.regression.afresh import afresh
from fdadp.regression.chunked_records import ChunkedRecords
from fdadp.regression.completion import Completion, treatments
from fdadp.regression.formula import ParsedFormula
from fdadp.regression.learned_errors import LearnedErrors
from fdadp.regression.person_rows import ByPerson, check_max_rows, check_person_rows, warn_of_rows
from fdadp.regression.private_terms import say_of_public_inputs
from fdadp.regression.table import Grids
from fdadp.regression.tables import read_records
from fdadp.regression.training import Asked, Covariates, beside, check_responses, units_of, weights_beside
from fdadp.solve.additive_fit import AdditiveFit
from fdadp.solve.chunked_observations import ChunkedObservations
from fdadp.solve.chunks import is_dask
from fdadp.solve.curve_errors import LEVERAGES, ChangeSums, ClusterErrors, cluster_errors, left_out, of_many
from fdadp.solve.curve_residuals import Residuals
from fdadp.solve.families import Family
from fdadp.solve.long_form import LongForm
from fdadp.solve.observations import Observations
from fdadp.solve.residual_variance import ResidualVariance
from fdadp.terms.spec import TermSpec

__all__ = ["TermsFromChunks"]

Model = TypeVar("Model", bound="TermsFromChunks")


class TermsFromChunks(LearnedErrors):
    """Part of every model of many terms: :meth:`fit_chunks`."""

    missing: str | Mapping[str, str]
    privacy: Privacy | None
    smoothing: str | ArrayLike
    progress: bool | str
    loglik_: float
    _parsed: ParsedFormula
    _fit: AdditiveFit
    _covariates: Covariates
    joined_: str | None
    _clusters: Mapping[str, ClusterErrors]
    _prior_weights: FloatArray | None
    _n_unpenalized: int | None
    person_rows: str | None
    max_rows: int | None
    _of_curves: ClassVar[bool]
    """Whether responses are curves, or numbers."""

    @property
    def _family(self) -> Family:
        raise NotImplementedError

    def _asked(self, data: Any, y: Any, grids: Grids | None, **beside: Any) -> Asked:
        raise NotImplementedError

    def _designs(self, specs: Sequence[TermSpec], seen: Seen, t: FloatArray | None) -> LongForm:
        raise NotImplementedError

    def _adopt(self, fit: AdditiveFit, null_deviance: float) -> None:
        raise NotImplementedError

    def _estimated(self, form: LongForm, observed: Observations | ChunkedObservations) -> AdditiveFit:
        raise NotImplementedError

    if TYPE_CHECKING:

        def _learned_variance(self, own: Residuals, changes: FloatArray, kind: str) -> ResidualVariance: ...

        def _fit_private(self, data: Any, y: Any, grids: Any, groups: Any, **settings: Any) -> tuple[str, ...]: ...

    def _adopt_response(self, response: Curves | None) -> None:
        """Keep what predictions come as."""
        raise NotImplementedError

    def fit_chunks(
        self: Model,
        chunks: Sequence[Any] | Callable[[], Iterable[Any]],
        *,
        grids: Mapping[str, ArrayLike] | None = None,
        weights: str | None = None,
        offset: str | None = None,
        groups: str | None = None,
    ) -> Model:
        """Fit the model from chunks that need not fit into memory together; the answer is that of :meth:`fit`.

        Parameters
        ----------
        chunks : sequence of tables, function returning an iterator over tables, or one table of dask's
            Each as :meth:`fit` takes them, the response a column among them. They are read four times, and a look is
            taken at the first: for ranges and levels, for errors along curves, for sums, for residuals; responses with
            gaps once more, families other than the Gaussian once for each step. Columns of numbers are kept, and of few
            rows residuals.
            A table in Dask's partitions, or a sequence of ``dask.delayed`` tables, is read where Dask's active
            scheduler computes it (docs/cluster.md): sums come here and columns of numbers, never curves.
            A private fit does not look at them (:class:`fdadp.regression.private_chunks.DeclaredTable`): the kernel
            reads them once, and keeps up to 256 MiB, or else again for every release, with the same result bit for
            bit as :meth:`fit` for the same noise, whatever the chunks. Predictions are then arrays.
        grids : mapping of str to array_like, optional
            Grids of plain arrays, by column; of a private fit those of all columns of curves.
        weights, offset, groups : str, optional
            Columns that :meth:`fit` has as well: numbers, or curves on the grid of the response; whose each row is. The
            rows of a person may be spread over chunks.

        Returns
        -------
        self
            Without `fitted_values_` and `residuals_`.

        Raises
        ------
        InputError
            As :meth:`fit`; chunks that differ in the kinds or grids of their columns, or from one pass to the next;
            `missing` other than ``"raise"``, ``"linear"`` and ``"smooth"``, which need a row alone; `errors` other than
            ``"iid"``; responses at points of each row's own.
        PrivacyError
            Of a private fit: as :meth:`fit`; also a source that fails while it is read: the budget is then spent.
        """
        if self.privacy is not None:
            with afresh(self):
                warned = self._fit_private_chunks(chunks, grids, groups, weights=weights, offset=offset)
            say_of_public_inputs(warned)
            return self
        if getattr(self, "errors", "iid") != "iid":
            raise InputError("errors must be 'iid' when fitting from chunks, got 'curve'")
        with afresh(self):
            if getattr(self, "se", None) == "cluster" and groups is None:
                raise InputError("se='cluster' needs groups: fit_chunks(chunks, groups=...)")
            check_person_rows(self.person_rows, grouped=groups is not None)
            columns = {"weights": weights, "offset": offset, "groups": groups}
            for argument, name in columns.items():
                if name is not None and not isinstance(name, str):
                    raise InputError(f"{argument} must be the name of a column when fitting from chunks, got {name!r}")
            looked = ChunkedRecords(chunks, (), grids=grids).of_first(partial(_looked, self, grids, offset))
            vars(self).update(looked.attributes)
            columns["offset"] = offset = looked.offset
            names = tuple(dict.fromkeys((*looked.columns, *(name for name in columns.values() if name is not None))))
            source = ChunkedRecords(chunks, names, looked.response, grids, self.progress, looked.completion)
            head = source.head
            response = head[f"the response {looked.response}"]
            t = response.grid if isinstance(response, Curves) else None
            read = _Responses(source, _How(self._family, self._of_curves, looked.response, weights, offset))
            with one_blas_thread():
                read = self._of_persons(read, groups)
                observed, seen = ChunkedObservations.seen(read, t)
                form = self._designs(self._parsed.terms, seen, t)
                fit = self._estimated(form, observed)
                self._adopt(fit, observed.null_deviance(self._family))
                known = {name: c for name, c in head.items() if isinstance(c, Curves) and c is not response}
                points = {name: c.grid for name, c in known.items()}
                self._covariates = Covariates(points, looked.completion, units_of(known))
                self._learn_errors_of(observed, groups)
            self._prior_weights = None
            self._adopt_response(response if isinstance(response, Curves) else None)
        return self

    def _fit_partitions(self: Model, data: Any, not_columns: Mapping[str, Any], **settings: Any) -> Model | None:
        """The fit to a table in Dask's partitions; None where it is none."""
        if not (is_dask(data) or (isinstance(data, Mapping) and any(map(is_dask, data.values())))):
            return None
        odd = next((name for name, value in not_columns.items() if value is not None), None)
        if odd is not None:
            raise InputError(f"{odd} must be None where data are Dask's: the response is one of their columns")
        return self.fit_chunks(data, **settings)

    def _fit_private_chunks(
        self: Any, chunks: Any, grids: Grids | None, groups: Any, *, weights: Any, offset: Any
    ) -> tuple[str, ...]:
        """Fit from noisy releases about chunks, which nothing but the kernel reads."""
        from fdadp.regression.private_chunks import DeclaredTable

        for argument, name in {"groups": groups, "offset": offset}.items():
            if name is not None and not isinstance(name, str):
                raise InputError(
                    f"{argument} must be the name of a column when fitting from chunks, got {type(name).__name__}"
                )
        table = DeclaredTable(chunks, grids, self._public_bounds())
        warned: tuple[str, ...] = self._fit_private(
            table, None, None, groups, curves=self._of_curves, weights=weights, offset=offset
        )
        return warned

    def _of_persons(self, read: _Responses, groups: str | None) -> _Responses:
        """The same with weights that let each person count once, unless each row is to."""
        if groups is None:
            check_max_rows(self.person_rows, self.max_rows, 1)
        if groups is None or (self.person_rows == "sum" and self.max_rows is None):
            return read
        counts: Counter[Any] = read.over(partial(_rows_of_persons, groups), _together)
        check_max_rows(self.person_rows, self.max_rows, max(counts.values()))
        if len(set(counts.values())) == 1:
            return read
        warn_of_rows(self.person_rows, self._family.name)
        if self.person_rows == "sum":
            return read
        return replace(read, how=replace(read.how, persons=ByPerson(groups, counts)))

    def _learn_errors_of(self, observed: ChunkedObservations, groups: str | None) -> None:
        """Go through the chunks once more for what the fit leaves of them."""
        along = len(self._fit.form.t) if self._precision is None else self._precision.rank
        small = observed.n * along * self._fit.form.size <= LEVERAGES
        left = _left if small else _summed
        self.loglik_, self._clusters, self._variances = observed.over(
            partial(left, self, observed.n, groups), _Left.merge, partial(_learned, self, groups is not None)
        )


@dataclass(frozen=True)
class _Looked:
    """What the first chunk says: columns and response, how gaps are filled in, and what `_asked` found."""

    columns: Sequence[str]
    response: str
    offset: Any
    completion: Completion
    attributes: Mapping[str, Any]


def _looked(model: TermsFromChunks, grids: Grids | None, offset: str | None, table: Any) -> _Looked:
    trial, before = copy.copy(model), dict(vars(model))
    asked = trial._asked(table, None, grids, offset=offset)
    found = {name: value for name, value in vars(trial).items() if before.get(name, trial) is not value}
    if trial.joined_ is not None:  # counts of this chunk say nothing of the others
        found["joined_"] = f"joined by {trial.joined_.partition(' by ')[2]}, chunk by chunk"
    return _Looked(asked.columns, asked.response, asked.offset, _row_by_row(asked), found)


@dataclass(frozen=True)
class _How:
    """How the responses of chunks are read: as numbers that the family may have."""

    family: Family
    curves: bool
    name: str
    weights: str | None
    offset: str | None
    persons: ByPerson | None = None

    def __call__(self, records: Records, response: Any) -> Observations:
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
class _Responses:
    """The chunks with their responses."""

    source: ChunkedRecords
    how: _How

    def over(self, function: Callable[[Observations], Any], merge: Any, finish: Any = None) -> Any:
        """As :meth:`ChunkedRecords.over`."""
        return self.source.over(partial(self.how.then, function), merge, finish=finish)

    def here(self) -> Iterator[Observations] | None:
        """The chunks, where they are in this process."""
        return None if self.source.elsewhere else (self.how(*rows) for rows in self.source.read())


@dataclass
class _Left:
    """What a fit left of some rows: log-likelihood, residuals or sums of what these change, and by group."""

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


def _rows_of_persons(groups: str, chunk: Observations) -> Counter[Any]:
    return Counter(chunk.records.labels(groups).tolist())


def _together(one: Counter[Any], other: Counter[Any]) -> Counter[Any]:
    return one + other


def _left(model: TermsFromChunks, n: int, groups: str | None, chunk: Observations) -> _Left:
    """All residuals: of few rows."""
    fit, family = model._fit, model._family
    scale = 1.0 if family.known_scale else max(fit.rss / fit.n_rows, 1e-300)
    eta, here = chunk.predictor(fit.form, fit.coefficients), chunk.used > 0
    loglik = family.log_likelihood(chunk.y[here], eta[here], chunk.used[here], scale)
    labels = [] if groups is None else chunk.records.labels(groups).tolist()
    return _Left(loglik, [Residuals.of(chunk, eta, family, model._precision)], None, labels, {})


def _summed(model: TermsFromChunks, n: int, groups: str | None, chunk: Observations) -> _Left:
    """Sums of what leaving out single rows changes, and the scores of groups: of many rows."""
    found = _left(model, n, groups, chunk)
    (own,) = found.residuals
    scores = own.scores(model._fit.form)
    found.changes = ChangeSums.of(model._fit, of_many(scores, model._fit.inverse, n))
    numbers: dict[Any, int] = {}
    which = np.array([numbers.setdefault(label, len(numbers)) for label in found.groups], dtype=np.int64)
    if numbers:
        by_group = np.zeros((len(numbers), scores.shape[1]))
        np.add.at(by_group, which, scores)
        found.scores = dict(zip(numbers, by_group, strict=True))
    found.residuals, found.groups = [], []
    return found


def _learned(
    model: TermsFromChunks, grouped: bool, left: _Left
) -> tuple[float, dict[str, ClusterErrors], dict[str, ResidualVariance]]:
    """Log-likelihood, and covariances and variances from what is left; computed where the rows are."""
    fit = model._fit
    clusters: dict[str, ClusterErrors] = {}
    variances: dict[str, ResidualVariance] = {}
    form, inverse = fit.form, fit.inverse
    labels = list(left.scores) if left.changes is not None else list(dict.fromkeys(left.groups))
    if grouped and len(labels) < 2:
        raise InputError(f"groups must be two or more, got {labels[0]!r} in all rows")
    if left.changes is not None:
        clusters["curve"] = left.changes.errors(fit)
        if grouped:
            scores = np.stack(list(left.scores.values()))
            clusters["cluster"] = cluster_errors(fit, of_many(scores, inverse, len(scores)))
        return left.loglik, clusters, variances
    with one_blas_thread():
        whole = Residuals.together(left.residuals)
        changes = left_out(form, inverse, whole)
        clusters["curve"] = cluster_errors(fit, changes)
        if grouped:
            numbers = {label: i for i, label in enumerate(labels)}
            which = np.array([numbers[label] for label in left.groups], dtype=np.int64)
            clusters["cluster"] = cluster_errors(fit, left_out(form, inverse, whole, which))
        if whole.n > 1 and model._of_curves and model._family.name == "gaussian":
            variances = {kind: model._learned_variance(whole, changes, kind) for kind in ("t", "model")}
    return left.loglik, clusters, variances


def _numbers(response: Any, name: str, curves: bool) -> FloatArray:
    """Responses of a chunk, shape (n, T) or (n, 1)."""
    if isinstance(response, Curves) and not curves:
        raise InputError(f"{name} must hold one number a row, got curves; use FunctionalRegression")
    if isinstance(response, Curves):
        return response.values
    if curves:
        raise InputError(f"{name} must hold curves (an FDataGrid, or an array of shape (n, T)); use ScalarRegression")
    if response.dtype.kind != "f":
        raise InputError(f"{name} must hold numbers in chunks (0 and 1 for two classes), got {response[0]!r}")
    return np.asarray(response)[:, None]


def _column(records: Records, name: str | None) -> Any:
    """Numbers of a column, or of its curves; None where there is none."""
    column = None if name is None else records.columns[name]
    return column.values if isinstance(column, Curves) else column


def _row_by_row(asked: Asked) -> Completion:
    """How entries that columns lack are filled in, where that needs no other row."""
    if asked.missing == "raise":
        return Completion({}, {}, {}, {})
    loose, _ = read_records(asked.data, asked.columns, asked.grids, missing=asked.columns)
    how = treatments(asked.missing, {name: loose.kind(name) for name in asked.columns})
    odd = next((what for what in how.values() if what not in ("linear", "smooth")), None)
    if odd is not None:
        raise InputError(f"missing must be 'raise', 'linear' or 'smooth' when fitting from chunks, got {odd!r}")
    return Completion(how, {}, {}, {})
