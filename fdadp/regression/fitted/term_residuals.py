"""Residuals of a model of many terms: deviance, Pearson and response residuals, and shares explained."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
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
from fdadp.regression.reading.training import numbers_of_classes
from fdadp.regression.spec import columns_of
from fdadp.responses import PointwiseResponse
from fdadp.solve.fit.observations import Observations

if TYPE_CHECKING:
    from fdadp.functional.tables.records import Labels
    from fdadp.regression.fitted.fitted import Fitted
    from fdadp.solve.form.family import Family

AT_A_TIME = 2**18
"""Observations that are processed together, to bound memory."""


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


def residuals_of(fitted: Fitted, kind: str) -> Any:
    """Residuals of the training rows, in the form of the fitted values."""
    one_of(kind, "type", ("deviance", "pearson", "response"))
    rows, response, family = fitted.rows, fitted.response, fitted.family
    if rows is None:
        raise InputError("residuals must be those of a fit, got a model without training rows: a file holds none")
    if kind == "response":
        return rows.residuals
    own = response.curves if response.observed_at is None else None
    mean, left = (
        as_curves(v, default=own.grid, any_layout=True) if own is not None else v for v in (rows.means, rows.residuals)
    )
    m, r = (np.asarray(v if own is None else v.values) for v in (mean, left))
    weights = None if rows.weights is None else rows.weights.reshape(m.shape)
    if kind == "deviance":
        found = deviance_residuals(family, m + r, m, weights)
    else:
        found = r / np.sqrt(family.variance(m)) * (1.0 if weights is None else np.sqrt(weights))
    return found if own is None else own.wrap(found, own.grid, rows=left)


# Share of the variance of new responses that a model explains.


def explained_share(fitted: Fitted, data: Any, y: Any) -> float:
    """Share explained of new curves: a column of `data`, or `y`, in any form that `fit` takes."""
    name, shape = fitted.response.name, fitted.response
    assert shape.curves is not None
    data, y = aligned_rows(columns_of(fitted.fit.form.designs), name, data, y)
    held = data if y is None else {name: getattr(y, "array", y)}  # an FDataGrid in a Series
    observed = read_response(held, name)
    if isinstance(observed, Curves) and not observed.gridded:  # they came without points
        observed = replace(observed, grid=as_grid(shape.curves.grid, observed.grid.size, f"grid of {name}"))
    records, fit = fitted.records(data, None), fitted.fit
    if isinstance(observed, PointwiseResponse):
        shape.points(np.unique([observed.t.min(), observed.t.max()]))
        eta = Observations(records, observed.y, points=observed).predictor(fit.form, fit.coefficients)
        return fitted.deviance_explained(observed.y, eta)
    if not isinstance(observed, Curves):
        raise InputError(f"{name} must hold curves, got one entry a row")
    eta = fitted.predictor(records, data, None, shape.points(observed.grid))
    if fitted.family.name != "gaussian":
        return fitted.deviance_explained(observed.values, eta)
    if observed.grid.size > 1 and np.isfinite(observed.values).all():
        return functional_r2(observed.values, eta, t=observed.grid)
    return _of_observed(observed, eta)


def explained_share_of_numbers(fitted: Fitted, data: Any, y: Any) -> float:
    """Share explained of new numbers: a column of `data`, or `y`. Other families use the deviance."""
    name, classes = fitted.response.name, fitted.response.classes
    data, y = aligned_rows(columns_of(fitted.fit.form.designs), name, data, y)
    observed = read_response(data if y is None else {name: y}, name)
    if isinstance(observed, Curves | PointwiseResponse):
        raise InputError(f"{name} must hold one number a row, got curves")
    if observed.dtype.kind != "f":
        refuse_without_classes(fitted.family, "a score of labels")
        observed = numbers_of_classes(observed, as_classes(classes), name)
    records = fitted.records(data, None)
    return fitted.deviance_explained(observed, fitted.predictor(records, data, None, fitted.fit.form.t)[:, 0])


def as_classes(classes: Sequence[Any]) -> Labels:
    """The two classes of binomial responses; means are probabilities of the second one."""
    return np.array(classes, dtype=None if isinstance(classes[0], int | str) else object)


def refuse_without_classes(family: Family, what: str) -> None:
    """Raise an error for families other than the binomial."""
    if family.name != "binomial":
        raise InputError(f"{what} is there for family='binomial', got {family.name!r}")


def _of_observed(observed: Curves, eta: FloatArray) -> float:
    """Share explained about the mean of the observed values at each point."""
    weights = quadrature_weights(observed.grid) if observed.grid.size > 1 else np.ones(1)
    seen = ~np.isnan(observed.values)
    values, counts = np.where(seen, observed.values, 0.0), seen.sum(axis=0)
    about = np.where(seen, values - values.sum(axis=0) / np.maximum(counts, 1), 0.0)
    left = np.where(seen, values - eta, 0.0)
    return 1 - float(((left**2) @ weights).sum() / ((about**2) @ weights).sum())
