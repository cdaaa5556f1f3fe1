"""Regressions of curves on their eigenfunctions: each score of the response is a regression of numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from fdadp._common.checks import one_of
from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.functional.tables.records import TrainingSummary
from fdadp.regression.term_model import AdditiveModel, refuse_same_names
from fdadp.responses.functional import Functional
from fdadp.solve.eigen.components import fit_components
from fdadp.solve.eigen.components_of_gaps import fit_components_of_gaps
from fdadp.solve.fit.additive_fit import AdditiveFit
from fdadp.solve.fit.chunked_observations import ChunkedObservations
from fdadp.solve.fit.observations import Observations
from fdadp.solve.form.long_form import LongForm
from fdadp.terms.on_functions import OnFunctions, by_function, in_scalar_form
from fdadp.terms.spec import TermSpec

if TYPE_CHECKING:
    from fdadp.functional.fpca import Eigenbasis


class OnEigenfunctions(AdditiveModel):
    """Part of :class:`fdadp.FunctionalRegression`: ``response_basis="eigen"``."""

    response_basis: str
    n_components: float | Eigenbasis
    errors: str

    eigenbasis_: Eigenbasis | None = None

    @property
    def _on_eigenfunctions(self) -> bool:
        return self.response_basis == "eigen"

    def _check_settings(self) -> None:
        super()._check_settings()
        one_of(self.response_basis, "response_basis", ("splines", "eigen"))
        if not self._on_eigenfunctions or self.privacy is not None:
            return
        if self._family.name != "gaussian":
            raise InputError(f"response_basis='eigen' is there for family='gaussian', got {self._family.name!r}")
        if self.errors != "iid":
            raise InputError(
                "errors must be 'iid' with response_basis='eigen', whose scores have residual variances of their own, "
                f"got {self.errors!r}"
            )

    def _designs(self, specs: Sequence[TermSpec], seen: TrainingSummary, t: FloatArray | None) -> LongForm:
        """On eigenfunctions, terms as those of a number; functions along the response are found with the fit."""
        if not self._on_eigenfunctions:
            return super()._designs(specs, seen, t)
        assert t is not None
        if not (self._parsed.intercept and self._parsed.mean_curve):
            raise InputError("formula must have an intercept and a mean curve with response_basis='eigen'")
        if not specs:
            raise InputError("formula must have at least one term with response_basis='eigen', got none")
        designs = self._about_means([in_scalar_form(spec, seen, t) for spec in specs], specs, seen, None)
        refuse_same_names(designs)
        return LongForm(designs, t)

    def _fitted(self, form: LongForm, observed: Observations, groups: IntArray | None = None) -> None:
        if not self._on_eigenfunctions or observed.whole or observed.weighted:
            super()._fitted(form, observed, groups)
            return
        t = form.t if observed.points is None else observed.points.grid()
        own = Functional(self.n_components)
        found = fit_components_of_gaps(form.designs, observed, t, own, self.smoothing, self._n_unpenalized)
        self._beyond, self.eigenbasis_ = dict.fromkeys(("iid", "curve"), found.beyond), found.basis
        self._adopt(found.fit, observed.null_deviance(self._family))
        self._prior_weights = None
        self._learn_errors(found.fit.form, observed, groups, found.working)

    def _estimated(self, form: LongForm, observed: Observations | ChunkedObservations) -> AdditiveFit:
        if not self._on_eigenfunctions:
            return super()._estimated(form, observed)
        if observed.weighted:
            raise InputError("weights must be None with response_basis='eigen'")
        if not observed.whole:
            raise InputError(
                f"{self.response_name_} must be observed at all points of a common grid with response_basis='eigen' "
                "where it is read in chunks, got gaps"
            )
        with one_blas_thread():
            found = fit_components(
                form.designs,
                partial(_over_rows, observed),
                form.t,
                Functional(self.n_components),
                self.smoothing,
                self._n_unpenalized,
                self.response_name_,
            )
        self._beyond, self.eigenbasis_, self._precision = found.beyond, found.basis, found.precision
        return found.fit

    def _adopt(self, fit: AdditiveFit, null_deviance: float) -> None:
        super()._adopt(fit, null_deviance)
        terms = [design for design in fit.form.designs if isinstance(design, OnFunctions)]
        if terms:
            self.smoothing_parameters_ = by_function(terms, fit.smoothing_parameters)
            self.smoothing_names_ = tuple(name for design in terms for name in design.of.penalty_names)


def _over_rows(observed: Observations | ChunkedObservations, function: Callable[..., Any], merge: Any) -> Any:
    return observed.over(partial(_of_rows, function), merge)


def _of_rows(function: Callable[..., Any], chunk: Observations) -> Any:
    return function(chunk.records, chunk.without_offset().y)
