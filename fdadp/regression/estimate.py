"""The fit of terms to responses, all at hand or in chunks: with splines along the response, or on eigenfunctions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from fdadp._common.door import warn
from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import FloatArray
from fdadp.errors import IdentificationWarning, InputError
from fdadp.regression.spec import ModelSpec
from fdadp.responses import Functional
from fdadp.solve.eigen.components import ComponentsFit, ComponentsOfGaps, fit_components, fit_components_of_gaps
from fdadp.solve.errors.gls import ErrorCovariance, fit_along_curves, judging_system
from fdadp.solve.fit.additive_fit import AdditiveFit
from fdadp.solve.fit.observations import ChunkedObservations, Observations, fit_terms
from fdadp.solve.form.long_form import LongForm

if TYPE_CHECKING:
    from fdadp.functional.fpca import Eigenbasis
    from fdadp.solve.errors.precisions import LowRankPrecision


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
    """

    fit: AdditiveFit
    working: ErrorCovariance | None = None
    precision: LowRankPrecision | None = None
    beyond: Mapping[str, FloatArray] | None = None
    basis: Eigenbasis | None = None
    weighted: bool = True
    components: ComponentsFit | ComponentsOfGaps | None = None


def estimated(spec: ModelSpec, form: LongForm, observed: Observations | ChunkedObservations) -> Estimate:
    """Fit the terms as the settings say.

    Raises
    ------
    InputError
        Weights, or gaps of responses in chunks, with ``response_basis="eigen"``.
    """
    settings = spec.settings
    own = settings.smoothing, settings.n_unpenalized
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
            partial(_over_rows, observed),
            form.t,
            own,
            settings.smoothing,
            settings.n_unpenalized,
            spec.response,
        )
    return Estimate(fit=found.fit, precision=found.precision, beyond=found.beyond, basis=found.basis, components=found)


def _over_rows(observed: Observations | ChunkedObservations, function: Callable[..., Any], merge: Any) -> Any:
    return observed.over(partial(_of_rows, function), merge)


def _of_rows(function: Callable[..., Any], chunk: Observations) -> Any:
    return function(chunk.records, chunk.without_offset().y)


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
