"""What regressions of curves and of numbers on many terms share: terms, the fit, and what it says of its terms."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from fdadp._common.checks import one_of
from fdadp._common.parameters import NestedParameters
from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import IdentificationWarning, InputError
from fdadp.functional.curves import Curves, as_curves, check_finite
from fdadp.functional.records import Records, Seen
from fdadp.regression.term_views import TermViews
from fdadp.solve.additive_fit import AdditiveFit, fit_gaussian
from fdadp.solve.long_form import LongForm
from fdadp.solve.long_sums import LongSums
from fdadp.terms.intercept import Intercept, MeanCurve
from fdadp.terms.spec import TermDesign, TermSpec

__all__ = ["AdditiveModel"]

ROWS_PER_BLOCK = 4096
"""Records that are added up at once."""


class AdditiveModel(NestedParameters, TermViews, BaseEstimator):  # type: ignore[misc]
    """Base of :class:`fdadp.FunctionalRegression` and :class:`fdadp.ScalarRegression`."""

    model: str | Sequence[TermSpec]
    smoothing: str | ArrayLike
    intercept: bool
    response: str | None

    response_name_: str
    _default_response: str
    _fit: AdditiveFit
    _grids: dict[str, FloatArray]
    """Grids of the training curves, by column."""
    _n_unpenalized: int | None = None
    """Dimension that REML counts as unpenalised, for comparisons with programs that count otherwise."""

    def _check_settings(self) -> None:
        if isinstance(self.smoothing, str) and self.smoothing not in ("reml", "gcv"):
            raise InputError(f"smoothing must be 'reml', 'gcv' or smoothing parameters, got {self.smoothing!r}")

    def _specs(self) -> tuple[TermSpec, ...]:
        """The terms, without the constant and the mean curve."""
        if isinstance(self.model, str) or not all(isinstance(spec, TermSpec) for spec in self.model):
            raise InputError(f"model must be a sequence of terms, such as [terms.ff('X')], got {self.model!r}")
        return tuple(self.model)

    def _training_records(
        self, data: Any, y: Any, grids: Mapping[str, ArrayLike] | None, *, response_is_curve: bool
    ) -> tuple[Records, str]:
        """Training rows, the response among them, and its name."""
        self._check_settings()
        name = self.response or self._default_response
        source = dict(data) if y is None else {**dict(data), name: y}
        names = tuple(dict.fromkeys((name, *columns_of(self._specs()))))
        records = read(source, names, grids)
        if response_is_curve:
            records.curves(name)
        self.response_name_ = name
        self._grids = {n: c.grid for n, c in records.columns.items() if isinstance(c, Curves) and n != name}
        return records, name

    def _new(self, data: Any, grids: Mapping[str, ArrayLike] | None) -> Records:
        """New rows, read as the training rows were."""
        check_is_fitted(self, "_fit")
        return read(dict(data), columns_of(self._fit.form.designs), {**self._grids, **(grids or {})})

    def _designs(self, specs: Sequence[TermSpec], records: Records, t: FloatArray | None) -> LongForm:
        """Terms on bases that suit the training records."""
        seen = Seen.of(partial(_blocks, records))
        mean: list[TermSpec] = [Intercept()] if self.intercept else []
        if t is not None and self.intercept and not any(isinstance(spec, MeanCurve) for spec in specs):
            mean.append(MeanCurve())
        designs = tuple(spec.fixed(seen, t) for spec in [*mean, *specs])
        names = [design.name for design in designs]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"terms must be different, got {twice} twice")
        return LongForm(designs, np.zeros(1) if t is None else t)

    def _fit_gaussian(self, form: LongForm, records: Records, y: FloatArray) -> AdditiveFit:
        with one_blas_thread():
            sums = LongSums.over(form, _with_responses(records, y))
            return fit_gaussian(form, sums.system(form), self.smoothing, records.n, self._n_unpenalized)

    def _adopt(self, fit: AdditiveFit, null_deviance: float) -> None:
        """Publish a fit as attributes."""
        self._fit, self.null_deviance_ = fit, null_deviance
        self.smoothing_parameters_ = fit.smoothing_parameters
        self.smoothing_names_ = fit.form.penalty_names
        self.edf_ = fit.edf_total
        self.criterion_ = fit.criterion
        self.sigma2_, self.scale_ = fit.sigma2, fit.scale
        self.term_names_ = tuple(design.name for design in fit.form.designs)
        lost = fit.unidentified()
        if lost:
            warnings.warn(
                f"the data do not identify all of {', '.join(lost)}: what is not identified was set to 0",
                IdentificationWarning,
                stacklevel=4,
            )

    def _covariance_of(self, kind: str | None) -> FloatArray:
        """Covariance of all coefficients, by what is believed of the errors."""
        check_is_fitted(self, "_fit")
        one_of("iid" if kind is None else kind, "kind", ("iid",))
        return self._fit.bayesian_covariance


def _blocks(records: Records) -> Iterator[Records]:
    for start in range(0, records.n, ROWS_PER_BLOCK):
        yield records[start : start + ROWS_PER_BLOCK]


def _with_responses(records: Records, y: FloatArray) -> Iterator[tuple[Records, FloatArray]]:
    for start in range(0, records.n, ROWS_PER_BLOCK):
        rows = slice(start, start + ROWS_PER_BLOCK)
        yield records[rows], y[rows]


def columns_of(terms: Sequence[TermSpec] | Sequence[TermDesign]) -> tuple[str, ...]:
    """Columns that terms read, each once."""
    return tuple(dict.fromkeys(name for term in terms for name in term.columns))


def read(data: Mapping[str, Any], names: Sequence[str], grids: Mapping[str, ArrayLike] | None) -> Records:
    """Columns of a table by name."""
    lost = [name for name in names if name not in data]
    if lost:
        raise InputError(f"data must have the column {lost[0]!r}, got {', '.join(map(str, data)) or 'none'}")
    columns: dict[str, Any] = {}
    for name in names:
        value = data[name]
        if np.ndim(value) == 2 or hasattr(value, "data_matrix"):
            curves = as_curves(value, (grids or {}).get(name), name=name)
            check_finite(curves, name)
            columns[name] = curves
        else:
            array = np.asarray(value)
            columns[name] = array.astype(np.float64) if array.dtype.kind in "biuf" else array.astype(object)
    sizes = {name: len(column) for name, column in columns.items()}
    if len(set(sizes.values())) > 1:
        raise InputError(f"columns must be of the same length, got {sizes}")
    return Records(next(iter(sizes.values()), 0), columns)
