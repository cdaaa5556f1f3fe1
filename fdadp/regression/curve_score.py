"""How well a model of curves predicts new ones: the share of their variance that it explains."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.curves import Curves, as_grid
from fdadp.functional.metrics import functional_r2
from fdadp.functional.quadrature import quadrature_weights
from fdadp.regression.joined_columns import aligned_rows
from fdadp.regression.tables import read_response
from fdadp.responses.pointwise import PointwiseResponse
from fdadp.solve.observations import Observations

__all__ = ["explained_share"]


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
        return functional_r2(observed.values, eta, t=observed.grid)
    return _of_observed(observed, eta)


def _of_observed(observed: Curves, eta: FloatArray) -> float:
    """About the mean at each point of what was observed there."""
    weights = quadrature_weights(observed.grid) if observed.grid.size > 1 else np.ones(1)
    seen = ~np.isnan(observed.values)
    values, counts = np.where(seen, observed.values, 0.0), seen.sum(axis=0)
    about = np.where(seen, values - values.sum(axis=0) / np.maximum(counts, 1), 0.0)
    left = np.where(seen, values - eta, 0.0)
    return 1 - float(((left**2) @ weights).sum() / ((about**2) @ weights).sum())
