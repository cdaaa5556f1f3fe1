"""Residuals of a model of many terms, by what they are measured in."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.checks import one_of
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.metrics import functional_r2
from fdadp.functional.quadrature import quadrature_weights
from fdadp.functional.tables.curves import as_curves
from fdadp.functional.tables.sample import Curves, as_grid
from fdadp.regression.reading.joined_columns import aligned_rows
from fdadp.regression.reading.records import read_response
from fdadp.responses.pointwise import PointwiseResponse
from fdadp.solve.fit.observations import Observations

if TYPE_CHECKING:
    from fdadp.solve.form.family import Family

AT_A_TIME = 2**18
"""Observations that are looked at together."""


def deviance_residuals(family: Family, y: FloatArray, mean: FloatArray, weights: FloatArray | None) -> FloatArray:
    """Signed square roots of the deviance of each observation; NaN where there was none."""
    seen = ~np.isnan(y)
    out = np.full(y.shape, np.nan)
    with np.errstate(divide="ignore"):
        eta = np.nan_to_num(family.predictor(mean[seen]), posinf=40.0, neginf=-700.0)
    below = family.half_deviance(y[seen], eta)
    out[seen] = np.sign(y[seen] - mean[seen]) * np.sqrt(2 * np.maximum(below, 0.0))
    return out if weights is None else out * np.sqrt(weights)


def shares_explained(
    family: Family, observed: Observations, mean: FloatArray, edf: float, null: float
) -> tuple[float, float]:
    """Adjusted R² on the scale of the response, mgcv's ``r.sq``, and the share of `null`, the deviance about one mean.

    NaN where one is not defined: responses are all equal, or no degrees of freedom are left.
    """
    total = roots = 0.0
    for y, _, root in _parts(observed, mean):
        total, roots = total + float((root * y).sum()), roots + float(np.sum(root) if np.ndim(root) else y.size)
    sums, squares, below, n = np.zeros(2), np.zeros(2), 0.0, 0
    for y, fitted, root in _parts(observed, mean):
        for i, away in enumerate((y - fitted, y - total / roots)):
            away *= root
            sums[i], squares[i] = sums[i] + away.sum(), squares[i] + away @ away
        n += y.size
        if family.name != "gaussian":
            found = root * deviance_residuals(family, y, fitted, None)
            below += float(found @ found)
    below = float(squares[0]) if family.name == "gaussian" else below
    left, about = squares - sums**2 / n
    free = n - edf
    r2 = 1 - float(left / about) * (n - 1) / free if about > 0 and free > 0 and null > 0 else float("nan")
    return r2, 1 - below / null if null > 0 else float("nan")


def _parts(observed: Observations, mean: FloatArray) -> Iterator[tuple[FloatArray, FloatArray, FloatArray | float]]:
    """Responses, means and roots of weights of what was observed, some at a time."""
    step = max(AT_A_TIME // max(math.prod(mean.shape[1:]), 1), 1)
    used = None if observed.whole else observed.used
    for start in range(0, len(mean), step):
        rows = slice(start, start + step)
        if used is None:
            yield observed.y[rows].ravel(), mean[rows].ravel(), 1.0
        else:
            seen = used[rows] > 0
            yield observed.y[rows][seen], mean[rows][seen], np.sqrt(used[rows][seen])


def residuals_of(model: Any, kind: str) -> Any:
    """Residuals of the training rows, in the form of the fitted values."""
    one_of(kind, "type", ("deviance", "pearson", "response"))
    if not hasattr(model, "residuals_"):
        raise InputError("residuals must be those of a fit, got a model without training rows: a file holds none")
    if kind == "response":
        return model.residuals_
    curves = hasattr(model, "t_") and model.observed_at_ is None
    mean, left = (
        as_curves(v, default=model.t_, any_layout=True) if curves else v
        for v in (model.fitted_values_, model.residuals_)
    )
    m, r = (mean.values, left.values) if curves else (np.asarray(mean), np.asarray(left))
    weights = model._prior_weights
    weights = None if weights is None else weights.reshape(m.shape)
    if kind == "deviance":
        found = deviance_residuals(model._family, m + r, m, weights)
    else:
        found = r / np.sqrt(model._family.variance(m)) * (1.0 if weights is None else np.sqrt(weights))
    return model._y.wrap(found, model.t_, rows=left) if curves else found


# How well a model of curves predicts new ones: the share of their variance that it explains.


def explained_share(model: Any, data: Any, y: Any) -> float:
    """Of new curves: a column of `data`, or `y`, in any form that `fit` takes."""
    name = model.response_name_
    data, y = aligned_rows(model, data, y)
    held = data if y is None else {name: getattr(y, "array", y)}  # an FDataGrid in a Series
    observed = read_response(held, name)
    if isinstance(observed, Curves) and not observed.gridded:  # they came without points
        observed = replace(observed, grid=as_grid(model.t_, observed.grid.size, f"grid of {name}"))
    records, fit = model._new(data, None), model._fit
    if isinstance(observed, PointwiseResponse):
        model._at(np.unique([observed.t.min(), observed.t.max()]))
        eta = Observations(records, observed.y, points=observed).predictor(fit.form, fit.coefficients)
        return float(model._deviance_explained(observed.y, eta))
    if not isinstance(observed, Curves):
        raise InputError(f"{name} must hold curves, got one entry a row")
    eta = model._predictor(records, data, None, model._at(observed.grid))
    if model._family.name != "gaussian":
        return float(model._deviance_explained(observed.values, eta))
    if observed.grid.size > 1 and np.isfinite(observed.values).all():
        return functional_r2(observed.values, eta, observed.grid)
    return _of_observed(observed, eta)


def _of_observed(observed: Curves, eta: FloatArray) -> float:
    """About the mean at each point of what was observed there."""
    weights = quadrature_weights(observed.grid) if observed.grid.size > 1 else np.ones(1)
    seen = ~np.isnan(observed.values)
    values, counts = np.where(seen, observed.values, 0.0), seen.sum(axis=0)
    about = np.where(seen, values - values.sum(axis=0) / np.maximum(counts, 1), 0.0)
    left = np.where(seen, values - eta, 0.0)
    return 1 - float(((left**2) @ weights).sum() / ((about**2) @ weights).sum())
