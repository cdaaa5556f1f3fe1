"""Models of many terms fitted from tables in chunks that need not fit into memory together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import ArrayLike, FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.functional.curves import Curves
from fdadp.functional.records import Records, Seen
from fdadp.privacy import Privacy
from fdadp.regression.afresh import afresh
from fdadp.regression.chunked_records import ChunkedRecords
from fdadp.regression.completion import Completion, treatments
from fdadp.regression.formula import ParsedFormula
from fdadp.regression.learned_errors import LearnedErrors
from fdadp.regression.private_terms import say_of_public_inputs
from fdadp.regression.table import Grids
from fdadp.regression.tables import read_records
from fdadp.regression.training import Asked, Covariates, beside, check_responses, weights_beside
from fdadp.solve.additive_fit import AdditiveFit
from fdadp.solve.chunked_observations import ChunkedObservations
from fdadp.solve.chunks import without_curves
from fdadp.solve.curve_errors import LEVERAGES, ClusterErrors, cluster_errors, left_out
from fdadp.solve.curve_residuals import Residuals, Scores
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
    _clusters: Mapping[str, ClusterErrors]
    _prior_weights: FloatArray | None
    _n_unpenalized: int | None
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
            gaps once more, families other than the Gaussian once for each step. Columns of numbers are kept, and of
            each row as many numbers as the model has coefficients.
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
            columns = {"weights": weights, "offset": offset, "groups": groups}
            for argument, name in columns.items():
                if name is not None and not isinstance(name, str):
                    raise InputError(f"{argument} must be the name of a column when fitting from chunks, got {name!r}")
            first = ChunkedRecords(chunks, (), grids=grids).of_first(lambda table: table)
            asked = self._asked(first, None, grids, offset=offset)
            columns["offset"] = offset = asked.offset
            names = tuple(dict.fromkeys((*asked.columns, *(name for name in columns.values() if name is not None))))
            completion = _row_by_row(asked)
            source = ChunkedRecords(chunks, names, asked.response, grids, self.progress, completion)
            records, response = next(iter(source.read("first chunk")))
            t = response.grid if isinstance(response, Curves) else None
            read = self._responses_of(source, asked.response, weights, offset)
            with one_blas_thread():
                observed, seen = ChunkedObservations.seen(read, t)
                form = self._designs(self._parsed.terms, seen, t)
                fit = self._estimated(form, observed)
                self._adopt(fit, observed.null_deviance(self._family))
                known = {name: c.grid for name, c in records.columns.items() if isinstance(c, Curves)}
                self._covariates = Covariates(known, completion)
                self._learn_errors_of(observed, None if groups is None else _clusters(source, groups))
            self._prior_weights = None
            self._adopt_response(without_curves(response) if isinstance(response, Curves) else None)
        return self

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

    def _responses_of(
        self, source: ChunkedRecords, name: str, weights: str | None, offset: str | None
    ) -> Callable[[], Iterator[Observations]]:
        """The chunks, with their responses as numbers that the family may have."""

        def read() -> Iterator[Observations]:
            for records, response in source.read():
                y = _numbers(response, name, self._of_curves)
                w = weights_beside(_column(records, weights), {}, y.shape, first=records.first)
                added = beside(_column(records, offset), "offset", {}, y.shape, first=records.first)
                check_responses(self._family, y, w, added, name, records.first)
                yield Observations(records, y, w, added)

        return read

    def _learn_errors_of(self, observed: ChunkedObservations, groups: IntArray | None) -> None:
        """Go through the chunks once more for what the fit leaves of them."""
        fit, family = self._fit, self._family
        along = len(fit.form.t) if self._precision is None else self._precision.rank
        small = observed.n * along * fit.form.size <= LEVERAGES
        scale = 1.0 if family.known_scale else max(fit.rss / fit.n_rows, 1e-300)
        parts: list[Residuals] = []
        scores: list[FloatArray] = []
        self.loglik_ = 0.0
        for chunk in observed.chunks():
            eta, here = chunk.predictor(fit.form, fit.coefficients), chunk.used > 0
            self.loglik_ += family.log_likelihood(chunk.y[here], eta[here], chunk.used[here], scale)
            left = Residuals.of(chunk, eta, family, self._precision)
            if small:
                parts.append(left)
            else:
                scores.append(left.scores(fit.form))
        whole = Residuals.together(parts) if small else Scores(np.concatenate(scores))
        changes = left_out(fit.form, fit.inverse, whole)
        clusters = {"curve": cluster_errors(fit, changes)}
        if groups is not None:
            clusters["cluster"] = cluster_errors(fit, left_out(fit.form, fit.inverse, whole, groups))
        self._clusters = clusters
        self._variances = {}
        if isinstance(whole, Residuals) and whole.n > 1 and self._of_curves and family.name == "gaussian":
            self._variances = {kind: self._learned_variance(whole, changes, kind) for kind in ("t", "model")}


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


def _clusters(source: ChunkedRecords, groups: str) -> IntArray:
    """Numbers of the groups of all rows."""
    numbers: dict[Any, int] = {}
    found = [numbers.setdefault(label, len(numbers)) for r in source.records("groups") for label in r.labels(groups)]
    if len(numbers) < 2:
        raise InputError(f"groups must be two or more, got {next(iter(numbers))!r} in all rows")
    return np.array(found, dtype=np.int64)
