"""Variance of new responses about their means: over t, and by what a record's curves look like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.functional.splines.bsplines import BSplines
from fdadp.functional.tables.curve_sample import Curves
from fdadp.terms.numbers.factors_and_random_effects import is_factor, levels_of
from fdadp.terms.records import Records
from fdadp.terms.spec import TermDesign

SPLINES = 8
"""Cubic B-splines of the logarithm of the variance over t; fewer where there are few points."""

MOST = 400_000
"""Observations that the model is fitted to; of more, those of one record in k."""

REACH = 3.0
"""Standard deviations from their mean beyond which the looks of a record say no more."""

FEWEST, FOLDS = 20, 10
"""Records from which a variance by looks is asked for; parts in which their scales are fitted without them."""

RIDGES = np.exp(np.arange(-8.0, 4.0))
"""Penalties of standardised looks, for each record."""

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
    largest : ndarray
        Of the largest absolute value along a curve, at the same levels; infinite where there are too few curves.
    """

    low: float
    high: float
    over_t: FloatArray
    over_looks: FloatArray
    centre: FloatArray
    spread: FloatArray
    quantiles: FloatArray
    largest: FloatArray

    def variance(self, seen: FloatArray, t: FloatArray) -> FloatArray:
        """Of records with looks (n, q') at points (T,), shape (n, T)."""
        along = _along(t, self.low, self.high, self.over_t.size) @ self.over_t
        of_record = _shapes((seen - self.centre) / self.spread) @ self.over_looks
        return np.asarray(np.exp(along[None, :] + of_record[:, None]))

    def quantile(self, level: float) -> float:
        """Of the absolute value of a standardised residual."""
        return float(np.interp(level, LEVELS, self.quantiles))

    def whole_curve_quantile(self, level: float) -> float:
        """Of the largest absolute value along a curve, at the next level that is kept.

        Raises
        ------
        InputError
            Too few curves, or persons, to know it.
        """
        found = float(self.largest[np.searchsorted(LEVELS, level - 1e-12)])
        if not np.isfinite(found):
            known = LEVELS[np.isfinite(self.largest)]
            most = float(known[-1]) if known.size else 0.0
            raise InputError(
                f"level must be at most {most:g} with simultaneous=True in a fit to so few curves or persons, got "
                f"{level:g}. It takes level / (1 - level) of them"
            )
        return found


def looks(records: Records, mean: FloatArray, designs: Sequence[TermDesign]) -> FloatArray:
    """What the variance of a record may depend on, (n, q'): its numbers, levels, curves and mean (n, T).

    Of curves the level, and the logarithm of the roughness: the mean absolute difference of neighbouring values. Of
    factors an indicator of each level that their term has. Codes of random effects are labels, whatever their numbers.
    """
    columns = [mean.mean(axis=1)]
    random = [int(levels_of(_innermost(design)) is not None) for design in designs]
    numbers = {name for design, first in zip(designs, random, strict=True) for name in design.columns[first:]}
    codes = {name for design, first in zip(designs, random, strict=True) for name in design.columns[:first]} - numbers
    for name, column in records.columns.items():
        if name in codes:
            continue
        if isinstance(column, Curves):
            rough = np.abs(np.diff(column.values, axis=1)).mean(axis=1)
            columns += [column.values.mean(axis=1), np.log(rough + 1e-3 * (rough.mean() or 1.0))]
        elif column.dtype.kind == "f":
            columns.append(column)
    levels = [design.features(records) for design in designs if is_factor(design)]
    return np.hstack([np.stack(columns, axis=1), *levels])


def _innermost(design: TermDesign) -> TermDesign:
    """The term that a column multiplies, or that is written in functions of the response."""
    while (of := getattr(design, "of", None)) is not None:
        design = of
    return design


def residual_variance(
    record: IntArray, t: FloatArray, residuals: FloatArray, seen: FloatArray | None, person: IntArray | None = None
) -> ResidualVariance:
    """Fit over t by quasi-likelihood, as if squares were gamma variables with the logarithm as link.

    How it depends on looks is a ridge regression of the logarithm of the mean square of each record, whose penalty, or
    whether there is a regression at all, is what predicts a record left out best. The law of standardised residuals is
    of scales that do not know the record's tenth of all, with the n + 1 of conformal prediction: so intervals hold on
    average over records whatever the errors' law, if records are alike in what looks do not say.

    Where persons have several records a new person is what is new: persons count alike, however many records they have.
    The largest residual of a curve is divided by a variance over t that does not know the curve.

    Parameters
    ----------
    record : ndarray of shape (N,) of int
        Record of each observation.
    t, residuals : ndarray of shape (N,)
        Without the record itself in the fit.
    seen : ndarray of shape (n, q') or None
        Looks of the records; None: the same variance for all.
    person : ndarray of shape (n,) of int, optional
        Whose each record is; residuals are then without the person in the fit.

    References
    ----------
    Davidian & Carroll (1987), Variance function estimation, doi:10.1080/01621459.1987.10478543; Lei, G'Sell, Rinaldo,
    Tibshirani & Wasserman (2018), Distribution-free predictive inference for regression,
    doi:10.1080/01621459.2017.1307116; Dunn, Wasserman & Ramdas (2023), Distribution-free prediction sets for two-layer
    hierarchical models, doi:10.1080/01621459.2022.2060112, on persons.
    """
    if record.size > MOST:
        size = np.bincount(record, residuals**2, int(record.max()) + 1).astype(np.float64)
        keep = _shuffled(size)[record] % (record.size // MOST + 1) == 0
        record, t, residuals = record[keep], t[keep], residuals[keep]
    low, high = float(t.min()), float(t.max())
    along = _along(t, low, high, min(SPLINES, max(np.unique(t).size // 3, 1)))
    used = np.zeros((int(record.max()) + 1, 0)) if seen is None else seen
    centre, spread = used.mean(axis=0), used.std(axis=0)
    spread = np.where(spread > 1e-12 * np.maximum(np.abs(centre), 1e-300), spread, np.inf)
    over_looks, scales, middle = _over_looks(record, residuals, _shapes((used - centre) / spread))
    residuals, x = residuals / scales[record], along
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
    here, own = np.unique(record, return_inverse=True)
    standard, largest = np.abs(residuals) / np.exp(eta / 2), _largest(own, x, residuals, eta, gram)
    if person is None:
        quantiles = np.quantile(standard, np.minimum(LEVELS * (1 + 1 / here.size), 1.0))
        weights = np.full(here.size, 1 / (here.size + 1))
    else:
        persons, whose, records = np.unique(person[here], return_inverse=True, return_counts=True)
        weights = 1 / ((persons.size + 1) * records[whose])
        quantiles = _quantiles(standard, (weights / np.bincount(own))[own], last=float(standard.max()))
    coefficients = coefficients - middle  # splines add up to 1
    whole = _quantiles(largest, weights)
    return ResidualVariance(low, high, coefficients, over_looks, centre, spread, quantiles, whole)


def _largest(own: IntArray, x: FloatArray, residuals: FloatArray, eta: FloatArray, gram: FloatArray) -> FloatArray:
    """Largest absolute residual of each record by the variance over t without it, which is one step away, (n,)."""
    order = np.argsort(own, kind="stable")
    x, residuals, eta, own = x[order], residuals[order], eta[order], own[order]
    starts = np.searchsorted(own, np.arange(own[-1] + 1))
    pull = np.add.reduceat(x * (residuals**2 / np.exp(eta) - 1)[:, None], starts, axis=0)
    out = np.empty(starts.size)
    for i, (start, stop) in enumerate(zip(starts, [*starts[1:], own.size], strict=True)):
        here = slice(start, stop)
        rest = gram - x[here].T @ x[here]
        change = np.linalg.solve(rest + 1e-8 * np.trace(gram) / len(gram) * np.eye(len(gram)), pull[i])
        without = eta[here] - np.clip(x[here] @ change, -1.0, 1.0)
        out[i] = np.max(np.abs(residuals[here]) / np.exp(without / 2))
    return out


def _quantiles(values: FloatArray, weights: FloatArray, last: float = np.inf) -> FloatArray:
    """At :data:`LEVELS`, of values with weights; what is missing of 1 is `last`."""
    order = np.argsort(values, kind="stable")
    reached = np.searchsorted(np.cumsum(weights[order]), LEVELS - 1e-9)
    return np.append(values[order], last)[reached]


def _over_looks(record: IntArray, residuals: FloatArray, shapes: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Slopes of the log variance on shapes (n, q) of looks, scales of records without themselves, mean logarithm."""
    n, q = shapes.shape
    counts = np.bincount(record, minlength=n)
    squares = np.bincount(record, residuals**2, n) / np.maximum(counts, 1)
    here = np.flatnonzero(squares > 0)
    slopes, scales = np.zeros(q), np.ones(n)
    if not q or len(here) < FEWEST:
        return slopes, scales, 0.0
    logs, x = np.log(squares[here]), shapes[here]
    slopes = _ridge(x, logs)
    parts = _shuffled(squares[here]) % FOLDS
    for fold in range(FOLDS):
        own = parts == fold
        others = logs[~own] - logs.mean()  # no record's variance is thought to lie beyond theirs
        about = (x[own] - x.mean(axis=0)) @ _ridge(x[~own], logs[~own])
        scales[here[own]] = np.exp(np.clip(about, others.min(), others.max()) / 2)
    return slopes, scales, float(x.mean(axis=0) @ slopes)


def _shuffled(values: FloatArray) -> IntArray:
    """Places in an order that is random, but follows from the values: the order of rows is of no effect."""
    ranks = np.argsort(np.argsort(values, kind="stable"))
    return np.asarray(np.random.default_rng(0).permutation(len(values))[ranks])


def _ridge(x: FloatArray, y: FloatArray) -> FloatArray:
    """Slopes by the ridge that predicts rows left out best; zeros where none beats the mean."""
    n, centred = len(y), x - x.mean(axis=0)
    size = centred.std(axis=0)
    centred = centred[:, size > 0] / size[size > 0]
    left, values, right = np.linalg.svd(centred, full_matrices=False)
    own, y = left.T @ (y - y.mean()), y - y.mean()
    best, slopes = float(((y * n / (n - 1)) ** 2).sum()), np.zeros(centred.shape[1])
    for penalty in RIDGES * n:
        kept = values**2 / (values**2 + penalty)
        leverage = np.minimum((left**2) @ kept + 1 / n, 1 - 1e-6)
        error = float((((y - left @ (kept * own)) / (1 - leverage)) ** 2).sum())
        if error < best:
            best, slopes = error, right.T @ (own * values / (values**2 + penalty))
    out = np.zeros(len(size))
    out[size > 0] = slopes / size[size > 0]
    return out


def _along(t: FloatArray, low: float, high: float, size: int) -> FloatArray:
    if size < 4 or not high > low:
        return np.ones((t.size, 1))
    return BSplines.uniform(low, high, size).design(np.clip(t, low, high))


def _shapes(u: FloatArray) -> FloatArray:
    """Looks within reach, their squares and absolute values."""
    inside = np.clip(u, -REACH, REACH)
    return np.hstack((inside, inside**2, np.abs(inside)))
