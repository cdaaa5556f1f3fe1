"""Fits of many terms to rows in memory."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.functional.tables.records import Records
from fdadp.regression.estimate import Estimate, estimated, warn_of_unidentified
from fdadp.regression.fitted.errors import CoefficientErrors
from fdadp.regression.fitted.fitted import Fitted, FittedResponse, TrainedRows
from fdadp.regression.fitted.term_residuals import shares_explained
from fdadp.regression.reading.columns import Grids
from fdadp.regression.reading.completion import CompletedAgain
from fdadp.regression.reading.training import Training, read_rows
from fdadp.regression.settings import ModelSettings
from fdadp.regression.spec import ModelSpec, check_axes, designs, read_spec
from fdadp.solve.fit.additive_fit import AdditiveFit
from fdadp.solve.form.long_form import LongForm
from fdadp.terms.numbers.scalar_linear import Linear


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
    errors = CoefficientErrors.learned(settings, estimate, observed, persons)
    again = None if training.loose is None else _completed_again(spec, training, training.loose, estimate.fit)
    if training.grid is not None:  # where responses have points of their own, predictions are made on another grid
        on_grid = LongForm(estimate.fit.form.designs, training.grid)
        errors = replace(errors, fit=replace(estimate.fit, form=on_grid))
    null_deviance = observed.null_deviance(settings.family)
    mean = settings.family.mean(observed.predictor(estimate.fit.form, estimate.fit.coefficients))
    shares = shares_explained(settings.family, observed, mean, estimate.fit.edf_total, null_deviance)
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
