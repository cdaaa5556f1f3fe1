"""Errors of curves left out of the fit, by which models of curves are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.functional.quadrature import quadrature_weights
from fdadp.solve.errors.leave_one_out import Residuals

if TYPE_CHECKING:
    import pandas as pd

    from fdadp.regression.fitted.errors import CoefficientErrors


def errors_left_out(errors: CoefficientErrors) -> tuple[FloatArray, FloatArray]:
    """Mean squared error of each curve or person in the fit without it, integrated along t, and its weight, (G,).

    A fit with groups leaves out all curves of a person. By `person_rows` a person counts once, or as often as it has
    curves. The mean square of a curve with gaps is taken over its observed points.

    Raises
    ------
    InputError
        Of families other than the Gaussian, and of models without their training rows.
    """
    own, form, settings = errors.residuals, errors.fit.form, errors.settings
    if settings.family.name != "gaussian":
        raise InputError(f"loo_ is there for family='gaussian', got {settings.family.name!r}; hold curves out instead")
    if not isinstance(own, Residuals) or errors.fit.n < 2:
        raise InputError(
            "loo_ needs two training rows or more, of which private fits and models from files and chunks keep none"
        )
    groups = errors.groups
    changes = errors.left_out("curve" if groups is None else "cluster")
    left = own.without(form, changes if groups is None else changes[groups])
    each = _mean_square(own, left, form.t, along=settings.of_curves)
    if groups is None:
        return each, np.ones(len(each))
    counts = np.bincount(groups).astype(np.float64)
    return np.bincount(groups, each) / counts, counts if settings.person_rows == "sum" else np.ones(len(counts))


def _mean_square(own: Residuals, left: FloatArray, t: FloatArray, *, along: bool) -> FloatArray:
    """Of each record, integrated over the domain of t."""
    if own.points is not None:
        record: IntArray = own.points.record
        seen = np.ones(len(left)) if own.weights is None else (own.weights > 0).astype(np.float64)
        total, counts = np.bincount(record, seen * left**2, own.n), np.bincount(record, seen, own.n)
        return np.asarray(total / np.maximum(counts, 1.0) * np.ptp(t))
    weights = quadrature_weights(t) if along and t.size > 1 else np.ones(left.shape[1])
    seen = weights if own.weights is None else np.where(own.weights > 0, weights, 0.0)
    total = (np.where(seen > 0, left, 0.0) ** 2 * seen).sum(axis=1)
    return np.asarray(total / np.maximum(np.sum(np.broadcast_to(seen, left.shape), axis=1), 1e-300) * weights.sum())


def mean_and_se(values: FloatArray, counts: FloatArray) -> tuple[float, float]:
    """Weighted mean over curves or persons, and its standard error."""
    mean = float(counts @ values / counts.sum())
    away = counts * (values - mean) / counts.sum()
    return mean, float(np.sqrt(len(values) / (len(values) - 1) * (away @ away)))


def compared(one: CoefficientErrors, other: CoefficientErrors) -> pd.DataFrame:
    """Two models of the same curves by their errors of curves left out, as a row each, the smaller one first."""
    import pandas as pd

    (small, own), (large, theirs) = sorted(
        ((m, errors_left_out(m)) for m in (one, other)), key=lambda pair: pair[0].fit.edf_total
    )
    if len(own[0]) != len(theirs[0]) or not np.array_equal(own[1], theirs[1]) or not _same_responses(small, large):
        raise InputError("other must be fitted to the same responses and groups, got others")
    gain, se = mean_and_se(own[0] - theirs[0], own[1])
    table = pd.DataFrame(
        [(m.fit.edf_total, *mean_and_se(*found)) for m, found in ((small, own), (large, theirs))],
        columns=["edf", "loo", "se"],
        index=["smaller", "larger"],
    )
    table["gain"], table["gain_se"] = [np.nan, gain], [np.nan, se]
    table["preferred"] = [gain <= se, gain > se]
    return table


def _same_responses(one: CoefficientErrors, two: CoefficientErrors) -> bool:
    """Whether two fits had the same responses, by means and residuals of the training rows."""
    own = [m.residuals for m in (one, two) if isinstance(m.residuals, Residuals)]
    found = [m.fit.form.predictor(r.records, m.fit.coefficients) for m, r in zip((one, two), own, strict=True)]
    if any(r.points is not None for r in own) or found[0].shape != found[1].shape:
        return bool(one.fit.n_rows == two.fit.n_rows)
    y = [f + r.values for f, r in zip(found, own, strict=True)]
    seen = [np.ones(v.shape) if r.weights is None else r.weights > 0 for v, r in zip(y, own, strict=True)]
    both = (seen[0] > 0) & (seen[1] > 0)
    size = float(np.abs(y[0][both]).max(initial=0.0))
    return np.array_equal(seen[0] > 0, seen[1] > 0) and np.allclose(y[0][both], y[1][both], atol=1e-8 * size)
