"""Fits of many terms: the estimate from responses at hand or in chunks, and whole fits to rows in memory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from fdadp._common.door import warn
from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import IdentificationWarning, InputError
from fdadp.functional.tables.records import Records
from fdadp.regression.fitted.errors import CoefficientErrors
from fdadp.regression.fitted.fitted import Fitted, FittedResponse, TrainedRows
from fdadp.regression.reading.columns import Grids
from fdadp.regression.reading.completion import CompletedAgain
from fdadp.regression.reading.training import Training, read_rows
from fdadp.regression.settings import ModelSettings
from fdadp.regression.spec import ModelSpec, check_axes, designs, read_spec
from fdadp.responses import Functional
from fdadp.solve.eigen.components import ComponentsFit, ComponentsOfGaps, fit_components, fit_components_of_gaps
from fdadp.solve.errors.gls import ErrorCovariance, fit_along_curves, judging_system
from fdadp.solve.fit.additive_fit import AdditiveFit
from fdadp.solve.fit.observations import ChunkedObservations, Observations, fit_terms, shares_explained
from fdadp.solve.form.long_form import LongForm
from fdadp.terms.numbers.scalar_linear import Linear

if TYPE_CHECKING:
    from fdadp.functional.fpca import Eigenbasis
    from fdadp.solve.errors.precisions import LowRankPrecision


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


# Fits to rows in memory.


def fit_whole(settings: ModelSettings, data: Any, y: Any, grids: Grids | None, **beside: Any) -> Fitted:
    """Fit a model to a table.

    Parameters
    ----------
    settings : ModelSettings
    data, y, grids, **beside
        As :meth:`fdadp.FunctionalRegression.fit` takes them. `long` is a response as a long table.
    """
    spec, training, persons, estimate = estimate_whole(settings, data, y, grids, **beside)
    observed = training.observed
    eta = observed.predictor(estimate.fit.form, estimate.fit.coefficients)
    errors = CoefficientErrors.learned(settings, estimate, observed, eta, persons)
    again = None if training.loose is None else _completed_again(spec, training, training.loose, estimate.fit)
    if training.grid is not None:  # where responses have points of their own, predictions are made on another grid
        on_grid = LongForm(estimate.fit.form.designs, training.grid)
        errors = replace(errors, fit=replace(estimate.fit, form=on_grid))
    null_deviance = observed.null_deviance(settings.family)
    mean = settings.family.mean(eta)
    shares = shares_explained(observed, settings.family, mean, estimate.fit.edf_total, null_deviance)
    warn_of_unidentified(errors.fit)
    response, rows = _shown(spec, training, mean, estimate)
    return Fitted(
        response=response,
        errors=errors,
        covariates=training.covariates,
        null_deviance=null_deviance,
        offset=spec.offset,
        grids=spec.grids,
        joined=spec.joined,
        shares=shares,
        again=again,
        basis=estimate.basis,
        rows=rows,
    )


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
    training, persons = read_rows(asked, settings)
    observed = training.observed
    terms = (*spec.parsed.terms, *map(Linear, training.covariates.completion.indicators.values()))
    form = designs(spec, terms, observed.summary(training.points), training.points)
    if training.curves is not None:
        check_axes(form, observed.records, training.curves.unit, spec.response)
    return spec, training, persons, estimated(spec, form, observed)


def _completed_again(spec: ModelSpec, training: Training, loose: Records, fit: AdditiveFit) -> CompletedAgain | None:
    """How far the fit depends on the components that completed sparse curves."""
    completion = training.covariates.completion
    if "pace" in completion.how.values() and spec.settings.least_squares:
        with contextlib.suppress(InputError):  # too few curves: standard errors say so
            return CompletedAgain.of(loose, completion, training.observed, fit)
    return None


def _shown(
    spec: ModelSpec, training: Training, mean: FloatArray, estimate: Estimate
) -> tuple[FittedResponse, TrainedRows]:
    """What is known of the response; and means and residuals in the form in which it came."""
    observed, curves = training.observed, training.curves
    left = observed.y - mean
    weights = observed.weights if estimate.weighted else None
    if curves is None:
        classes = None if training.classes is None else training.classes.tolist()
        response = FittedResponse(name=spec.response, classes=classes)
        return response, TrainedRows(means=mean[:, 0], residuals=left[:, 0], weights=weights)
    response = FittedResponse(name=spec.response, curves=curves.without_rows(), observed_at=observed.points)
    if observed.points is not None:
        return response, TrainedRows(means=mean, residuals=left, weights=weights)
    means, residuals = (curves.wrap(values, curves.grid, rows=curves) for values in (mean, left))
    return response, TrainedRows(means=means, residuals=residuals, weights=weights)
