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
from fdadp.functional.records import Records, Seen
from fdadp.solve.additive_fit import AdditiveFit, fit_gaussian
from fdadp.solve.long_form import LongForm
from fdadp.solve.long_sums import LongSums
from fdadp.terms.intercept import Intercept, MeanCurve
from fdadp.terms.spec import TermSpec

__all__ = ["AdditiveModel"]

ROWS_PER_BLOCK = 4096
"""Records that are added up at once."""


class AdditiveModel(NestedParameters, BaseEstimator):  # type: ignore[misc]
    """Base of :class:`fdadp.FunctionalRegression` and :class:`fdadp.ScalarRegression`."""

    model: str | Sequence[TermSpec]
    smoothing: str | ArrayLike
    intercept: bool

    _fit: AdditiveFit
    _n_unpenalized: int | None = None
    """Dimension that REML counts as unpenalised, for comparisons with programs that count otherwise."""

    def _check_settings(self) -> None:
        if isinstance(self.smoothing, str) and self.smoothing not in ("reml", "gcv"):
            raise InputError(f"smoothing must be 'reml', 'gcv' or smoothing parameters, got {self.smoothing!r}")

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

    def _adopt(self, fit: AdditiveFit) -> None:
        """Publish a fit as attributes."""
        self._fit = fit
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


def columns_of(specs: Sequence[TermSpec]) -> tuple[str, ...]:
    """Columns that terms read, each once."""
    return tuple(dict.fromkeys(name for spec in specs for name in spec.columns))


def refuse_absent(data: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse data without one of the columns."""
    lost = [name for name in names if name not in data]
    if lost:
        raise InputError(f"data must have the column {lost[0]!r}, got {', '.join(map(str, data)) or 'none'}")
