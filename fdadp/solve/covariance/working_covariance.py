"""Generalised least squares along curves: a working covariance of the errors, and normal equations with its inverse.

Errors of real curves are smooth. A covariance that is smooth plus white, estimated before any smoothing by least
squares at each point, weights observations by what they say together; one round is enough.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.splines.bsplines import BSplines
from fdadp.functional.tables.records import Records
from fdadp.solve.covariance.loo_precision import LearnedPrecision
from fdadp.solve.form.long_form import LongForm, LongSums, System
from fdadp.solve.linear.curve_precision import CurvePrecision

SMOOTH = 7
"""Cubic B-splines of the smooth part; 10 say the same."""

SHARE = 0.25
"""Of the number of curves: features that residuals are taken from; more features than that leave too few residuals."""

EDGE = 1.05
"""Above the largest eigenvalue that white noise alone has, a component is smooth error."""

LEAST = 0.05
"""Of 1 less the leverage of a curve, whose residual says nothing where the means follow it."""


@dataclass(frozen=True)
class WorkingCovariance:
    """Covariance of the errors of a curve, up to a scale.

    Attributes
    ----------
    precision : ndarray of shape (T, T)
        Its inverse, times the mean variance over t.
    variance : float
        That mean variance.
    n_smooth : int
        Components of its smooth part; with none, errors are white and the precision is the identity.
    learned : LearnedPrecision or None
        What it was learned from; None where errors are white.
    """

    precision: FloatArray
    variance: float
    n_smooth: int
    learned: LearnedPrecision | None = None

    @property
    def log_det(self) -> float:
        """Logarithm of the determinant of the precision."""
        return float(np.linalg.slogdet(self.precision)[1])


def working_covariance(form: LongForm, records: Records, y: FloatArray) -> WorkingCovariance:
    """Estimate it from responses (n, T).

    Residuals are those of least squares at each t, on the leading principal directions of the features (at most n/4 of
    them; every term counts alike, whatever its units), with exact degrees of freedom. Of their covariance the part in
    :data:`SMOOTH` B-splines is smooth; the rest is white. Components whose eigenvalue white noise explains are dropped,
    and the others' shrunk by what noise adds.

    Raises
    ------
    InputError
        Fewer than 10 points, or 8 curves.

    References
    ----------
    Baik & Silverstein (2006), Eigenvalues of large sample covariance matrices of spiked population models,
    doi:10.1016/j.jmva.2005.08.003; Reiss, Huang & Mennes (2010), Fast function-on-scalar regression with penalized
    basis expansions, doi:10.2202/1557-4679.1246, on generalised least squares of curves.
    """
    n, size = y.shape
    if size <= SMOOTH + 2 or n < 8:
        raise InputError(f"errors along curves need {SMOOTH + 3} points of t and 8 curves or more, got {size} and {n}")
    residuals, left, leverage = _residuals(form, records, y)
    covariance = residuals.T @ residuals / left
    splines = BSplines.uniform(float(form.t[0]), float(form.t[-1]), SMOOTH).design(form.t)
    smooth = np.linalg.qr(splines)[0]
    inner = smooth.T @ covariance @ smooth
    total = float(np.trace(covariance))
    white = max((total - float(np.trace(inner))) / (size - SMOOTH), 1e-6 * total / size)
    if not white > 0:
        return WorkingCovariance(np.eye(size), 0.0, 0)
    values, vectors = np.linalg.eigh(inner)
    values, vectors, ratio = values[::-1], vectors[:, ::-1], SMOOTH / left
    count = int((values > white * (1 + np.sqrt(ratio)) ** 2 * EDGE).sum())
    # An eigenvalue d of the covariance shows as d (1 + ratio white / (d - white)).
    middle = values[:count] + white - ratio * white
    sizes = (middle + np.sqrt(np.maximum(middle**2 - 4 * values[:count] * white, 0.0))) / 2
    loadings = smooth @ vectors[:, :count]
    sizes = np.maximum(sizes - white, 1e-6 * white)
    inverse = (np.eye(size) - (loadings * (sizes / (sizes + white))) @ loadings.T) / white
    variance = white + float(sizes.sum()) / size
    learned = None
    if count:
        record, weights = np.repeat(np.arange(n), size), np.ones(n * size)
        own = CurvePrecision(record, np.tile(loadings, (n, 1)), weights, sizes, white, variance, n)
        alone = residuals / np.sqrt(np.maximum(1 - leverage, LEAST))
        learned = LearnedPrecision(own, np.tile(smooth, (n, 1)), vectors[:, :count], alone.ravel(), left)
    return WorkingCovariance(variance * (inverse + inverse.T) / 2, variance, count, learned)


def _residuals(form: LongForm, records: Records, y: FloatArray) -> tuple[FloatArray, int, FloatArray]:
    """Residuals at each t (n, T), their degrees of freedom, and leverages of curves (n, T) or (n, 1)."""
    n = len(y)
    features = form.features(records)
    same = np.hstack([f / size_of(f) for f in features if f.ndim == 2] or [np.zeros((n, 0))])
    own = [f / size_of(f) for f in features if f.ndim == 3]
    varying = np.concatenate(own, axis=2) if own else np.zeros((n, y.shape[1], 0))
    most = max(int(SHARE * n) - varying.shape[2], 1)
    directions = _directions(same, most)
    left = n - 1 - directions.shape[1]
    residuals = y - y.mean(axis=0)
    residuals = residuals - directions @ (directions.T @ residuals)
    leverage = 1 / n + (directions**2).sum(axis=1)[:, None]
    if not varying.shape[2]:
        return residuals, left, leverage
    extra, leverage = 0, np.repeat(leverage, y.shape[1], axis=1)
    for j in range(y.shape[1]):
        z = varying[:, j] - varying[:, j].mean(axis=0)
        size = float(np.linalg.norm(z))
        z = _directions(z - directions @ (directions.T @ z), max(int(SHARE * n), 1), size)
        residuals[:, j] -= z @ (z.T @ residuals[:, j])
        leverage[:, j] += (z**2).sum(axis=1)
        extra = max(extra, z.shape[1])
    return residuals, max(left - extra, 1), leverage


TIE = 0.01
"""By how much features that are alike are told apart where not all of them are taken."""


def size_of(features: FloatArray) -> float:
    """Root of the variance of a term's features together; 1 where they are constant."""
    size = float(np.sqrt(features.var(axis=0).sum()))
    return size if 0 < size < np.inf else 1.0


def _directions(features: FloatArray, most: int, size: float = 0.0) -> FloatArray:
    """Orthonormal columns (n, r) that span the centred features, or most of them; `size` was theirs before others."""
    centred = features - features.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    count = int((sizes > 1e-8 * max(float(sizes.max(initial=0.0)), size, 1e-300)).sum())
    if count > most:  # levels of equally many rows are alike: which of them are left out follows from their order
        uneven = np.linspace(1 + TIE, 1, centred.shape[1])
        left = np.linalg.svd(centred * uneven, full_matrices=False)[0]
    return left[:, : min(count, most)]


def precision_system(form: LongForm, blocks: Iterable[tuple[Records, FloatArray]], precision: FloatArray) -> System:
    """Normal equations with a precision along curves, from blocks of records and their responses (n, T).

    From the same sums as without it where features do not vary with t; else a block's rows are built.
    """
    if all(design.separable for design in form.designs):
        total, sums = 0.0, None
        for records, y in blocks:
            part = LongSums.of(form, records, y)
            total += float(((y @ precision) * y).sum())
            sums = part if sums is None else sums.merge(part)
        assert sums is not None
        return sums.system(form, precision, total)
    out = System(np.zeros((form.size, form.size)), np.zeros(form.size), 0.0, 0)
    for records, y in blocks:
        weighted = y @ precision
        gram = np.zeros_like(out.gram)
        for few in form.blocks(records):
            rows = form.rows(few)
            left = np.matmul(precision, rows)
            gram += left.reshape(-1, form.size).T @ rows.reshape(-1, form.size)
        cross = form.scores(records, weighted).sum(axis=0)
        total = float((weighted * y).sum())
        out = System(out.gram + gram, out.cross + cross, out.total + total, out.n_rows + y.size)
    return out
