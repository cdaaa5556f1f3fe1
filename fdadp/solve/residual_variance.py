"""Variance of new responses about their means: over t, and by what a record's curves look like."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.functional.curves import Curves
from fdadp.functional.records import Records
from fdadp.functional.splines import BSplines

__all__ = ["ResidualVariance", "looks", "residual_variance"]

SPLINES = 8
"""Cubic B-splines of the logarithm of the variance over t; fewer where there are few points."""

MOST = 400_000
"""Observations that the model is fitted to; of more, those of every k-th record."""

REACH = 3.0
"""Standard deviations from their mean beyond which the looks of a record say no more."""

LEVELS = np.concatenate((np.linspace(0, 0.9, 91), np.linspace(0.905, 0.995, 19), [0.999, 1.0]))


@dataclass(frozen=True)
class ResidualVariance:
    """``σ²_i(t) = exp(b(t)'γ + u_i'δ)``, with the law of what is left when divided by it.

    Attributes
    ----------
    low, high : float
        Domain of t.
    over_t, over_looks : ndarray of shape (k,) and (q,)
        γ and δ.
    centre, spread : ndarray of shape (q',)
        Of the looks of the training records.
    quantiles : ndarray
        Of the absolute values of standardised residuals, at :data:`LEVELS`.
    """

    low: float
    high: float
    over_t: FloatArray
    over_looks: FloatArray
    centre: FloatArray
    spread: FloatArray
    quantiles: FloatArray

    def variance(self, seen: FloatArray, t: FloatArray) -> FloatArray:
        """Of records with looks (n, q') at points (T,), shape (n, T)."""
        along = _along(t, self.low, self.high, self.over_t.size) @ self.over_t
        of_record = _squared((seen - self.centre) / self.spread) @ self.over_looks
        return np.asarray(np.exp(along[None, :] + of_record[:, None]))

    def quantile(self, level: float) -> float:
        """Of the absolute value of a standardised residual."""
        return float(np.interp(level, LEVELS, self.quantiles))


def looks(records: Records, mean: FloatArray) -> FloatArray:
    """Level and logarithm of the roughness of every curve of a record, and the level of its mean (n, T); (n, q').

    The roughness is the mean absolute difference of neighbouring values.
    """
    columns = [mean.mean(axis=1)]
    for column in records.columns.values():
        if isinstance(column, Curves):
            rough = np.abs(np.diff(column.values, axis=1)).mean(axis=1)
            columns += [column.values.mean(axis=1), np.log(rough + 1e-3 * (rough.mean() or 1.0))]
    return np.stack(columns, axis=1)


def residual_variance(
    record: IntArray, t: FloatArray, residuals: FloatArray, seen: FloatArray | None
) -> ResidualVariance:
    """Fit by quasi-likelihood, as if squares were gamma variables with the logarithm as link.

    Parameters
    ----------
    record : ndarray of shape (N,) of int
        Record of each observation.
    t, residuals : ndarray of shape (N,)
        Without the record itself in the fit.
    seen : ndarray of shape (n, q') or None
        Looks of the records; None: the same variance for all.

    References
    ----------
    Davidian & Carroll (1987), Variance function estimation, doi:10.1080/01621459.1987.10478543.
    """
    if record.size > MOST:
        keep = record % (record.size // MOST + 1) == 0
        record, t, residuals = record[keep], t[keep], residuals[keep]
    low, high = float(t.min()), float(t.max())
    along = _along(t, low, high, min(SPLINES, max(np.unique(t).size // 3, 1)))
    used = np.zeros((int(record.max()) + 1, 0)) if seen is None else seen
    centre, spread = used.mean(axis=0), used.std(axis=0)
    spread = np.where(spread > 1e-12 * np.maximum(np.abs(centre), 1e-300), spread, np.inf)
    x = np.hstack((along, _squared((used - centre) / spread)[record]))
    squares = residuals**2
    floor = max(1e-8 * float(squares.mean()), 1e-300)
    gram = x.T @ x
    gram += 1e-8 * np.trace(gram) / len(gram) * np.eye(len(gram))
    eta = np.full(record.size, np.log(max(float(squares.mean()), floor)))
    for _ in range(50):
        mean = np.exp(eta)
        coefficients = np.linalg.solve(gram, x.T @ (eta + np.clip(squares / mean - 1, -1.0, 10.0)))
        new = np.maximum(x @ coefficients, np.log(floor))
        moved, eta = float(np.abs(new - eta).max()), new
        if moved < 1e-6:
            break
    k = along.shape[1]
    quantiles = np.quantile(np.abs(residuals) / np.exp(eta / 2), LEVELS)
    return ResidualVariance(low, high, coefficients[:k], coefficients[k:], centre, spread, quantiles)


def _along(t: FloatArray, low: float, high: float, size: int) -> FloatArray:
    if size < 4 or not high > low:
        return np.ones((t.size, 1))
    return BSplines.uniform(low, high, size).design(np.clip(t, low, high))


def _squared(u: FloatArray) -> FloatArray:
    """Looks within reach, and their squares."""
    inside = np.clip(u, -REACH, REACH)
    return np.hstack((inside, inside**2))
