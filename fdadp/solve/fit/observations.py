"""Observations of a response, on a grid or at points of their own, and the fit of many terms to them by any family."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, Protocol, TypeVar

import numpy as np

from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import ArrayLike, FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.responses import PointwiseResponse
from fdadp.solve.fit.additive_fit import AdditiveFit, Triangle, fit_gaussian
from fdadp.solve.fit.family_fit import fit_family
from fdadp.solve.fit.theta_search import fit_with_theta
from fdadp.solve.form.families_with_theta import FamilyWithTheta
from fdadp.solve.form.long_form_design import LongForm, LongSums, System, added_up
from fdadp.solve.form.ordered_categories import Ordered, one_constant
from fdadp.solve.form.response_families import Family
from fdadp.solve.form.weighted_least_squares import (
    Blocks,
    Elsewhere,
    Observed,
    Remembered,
    add_systems,
    observed_at_points,
    pointwise_system,
    rows_on_grid,
    weighted_system,
)
from fdadp.terms.records import Records, SeenRows, TrainingSummary, row_blocks

A = TypeVar("A")

FEATURES = 2**24
"""Numbers of features that are kept during a fit, 128 MiB; of larger data they are computed where they are used."""

MEANS = 100
"""Of the search for the one mean of responses whose family is not log-concave."""

AT_A_TIME = 2**18
"""Observations that shares explained are summed over together, to bound memory."""


class Summable(Protocol):
    """Observations that a fit goes through, all at hand or in chunks."""

    @property
    def n(self) -> int:
        """Number of records."""

    @property
    def level(self) -> float:
        """Mean of the responses less their offsets."""

    @property
    def weighted(self) -> bool:
        """Whether they have weights."""

    def below(self, level: float) -> Summable:
        """The same with lower responses."""

    def over(self, function: Callable[[Observations], Any], merge: Callable[[Any, Any], Any]) -> Any:
        """What a function makes of each chunk of them, merged."""

    def in_blocks(self, form: LongForm, placeholder: float) -> Blocks:
        """Rows of the long form with their responses, to be gone through several times."""

    def system(self, form: LongForm) -> System:
        """Normal equations of least squares."""


@dataclass(frozen=True)
class Observations:
    """Responses of records.

    Attributes
    ----------
    records : Records
    y : ndarray of shape (n, T) or (N,)
        On the grid of the model (one point where the response is a number), NaN where nothing was observed; or one by
        one.
    weights : ndarray of the same shape, or None
        Not negative; None: 1.
    offset : ndarray of the same shape, or None
        What is added to the linear predictor.
    points : PointwiseResponse or None
        Where observations were made that do not share a grid.
    features : sequence of ndarray, or None
        Of the terms of the fit, shapes (n, q) or (n, T, q), where they are kept (:meth:`with_features`).
    """

    records: Records
    y: FloatArray
    weights: FloatArray | None = None
    offset: FloatArray | None = None
    points: PointwiseResponse | None = None
    features: Sequence[FloatArray] | None = None

    def with_features(self, form: LongForm) -> Observations:
        """The same with the features of all terms, which a fit uses several times; not where they take much memory."""
        size = sum(design.n_features * (1 if design.separable else form.t.size) for design in form.designs)
        if self.points is not None or self.n * size > FEATURES:
            return self
        return replace(self, features=form.features(self.records))

    def of_terms(self, form: LongForm) -> Iterator[tuple[Sequence[FloatArray], FloatArray]]:
        """Features of all terms, and responses less offsets on the grid, of some thousands of records at a time."""
        y, kept = self.without_offset().y, self.features
        for rows in row_blocks(self.n):
            yield form.features(self.records[rows]) if kept is None else [own[rows] for own in kept], y[rows]

    @property
    def n(self) -> int:
        """Number of records."""
        return self.records.n

    @property
    def weighted(self) -> bool:
        """Whether they have weights."""
        return self.weights is not None

    @property
    def whole(self) -> bool:
        """Whether all responses on the grid were observed, with the same weight."""
        return self.points is None and self.weights is None and bool(np.isfinite(self.y.sum()))

    @property
    def used(self) -> FloatArray:
        """Weights, 0 where nothing was observed."""
        return _used(self, slice(None))

    @property
    def of_records(self) -> FloatArray | None:
        """Weight of each record, (n,): the mean over the grid, 0 where nothing was observed; None where all are 1."""
        if self.whole:
            return None
        if self.points is not None:
            return np.asarray(np.bincount(self.points.record, self.used, self.n), dtype=np.float64)
        return np.asarray(self.used.mean(axis=1))

    def summary(self, t: FloatArray | None) -> TrainingSummary:
        """What one pass over the records sees, of responses on the grid t or at points of their own."""
        records, weights, made = self.records, self.of_records, None
        if self.points is not None:
            made = self.points.record, self.points.t
        elif t is not None and not np.isfinite(self.y.sum()):
            record, at = np.nonzero(~np.isnan(self.y))
            made = record, t[at]
        return TrainingSummary.of([records[rows] for rows in records.blocks()], made, weights)

    def added(self) -> FloatArray:
        """Offsets, in the shape of the response."""
        return np.zeros_like(self.y) if self.offset is None else self.offset

    def over(
        self,
        function: Callable[[Observations], A],
        merge: Callable[[A, A], A],
        finish: Callable[[A], Any] | None = None,
    ) -> Any:
        """What a function makes of them, as of chunks whose values are merged."""
        value = function(self)
        return value if finish is None else finish(value)

    def blocks(self, form: LongForm, placeholder: float) -> Iterator[Observed]:
        """Rows of the long form with their responses; `placeholder` stands where none was observed."""
        weights, offset = self.used, self.added()
        if self.points is not None:
            yield from observed_at_points(form, self.records, self.points, weights, offset)
            return
        y = np.where(weights > 0, self.y, placeholder)
        for part, (features, _) in zip(row_blocks(self.n), self.of_terms(form), strict=True):
            yield Observed(rows_on_grid(form, features), y[part], weights[part], offset[part])

    def in_blocks(self, form: LongForm, placeholder: float) -> Blocks:
        """The same, to be gone through several times."""
        return Remembered(lambda: self.blocks(form, placeholder))

    def of_some(self, rows: IntArray, function: Callable[[Observations], A]) -> A:
        """What a function makes of those of some records, in order."""
        return function(self.some(rows))

    def system(self, form: LongForm) -> System:
        """Normal equations of (weighted) least squares."""
        if self.points is not None:
            return pointwise_system(form, self.records, self.points, self.used, self.added())
        if not self.whole:
            return weighted_system(self.blocks(form, 0.0))
        return LongSums.over(form, self.of_terms(form)).system(form)

    def triangle(self, form: LongForm) -> Triangle:
        """Triangle of the rows, where observations are :attr:`whole` and features the same at all t."""
        return reduce(Triangle.merge, (Triangle.of(form, *part) for part in self.of_terms(form)))

    def without_offset(self) -> Observations:
        """The same less their offsets."""
        return self if self.offset is None else replace(self, y=self.y - self.offset, offset=None)

    def entries(self, rows: slice) -> slice:
        """Where the responses of some records stand among all, one by one."""
        if self.points is None:
            size = self.y.shape[1]
            return slice(rows.start * size, min(rows.stop, self.n) * size)
        low, high = np.searchsorted(self.points.record, (rows.start, min(rows.stop, self.n)))
        return slice(int(low), int(high))

    def part(self, rows: slice) -> Observations:
        """Those of some records."""
        own = rows if self.points is None else self.entries(rows)
        at = self.points
        if at is not None:
            size = min(rows.stop, self.n) - rows.start
            at = PointwiseResponse(at.record[own] - rows.start, at.t[own], at.y[own], size)
        weights, offset = (None if v is None else v[own] for v in (self.weights, self.offset))
        return Observations(self.records[rows], self.y[own], weights, offset, at)

    def some(self, rows: IntArray) -> Observations:
        """Those of some records, in order."""
        if len(rows) == self.n:
            return self
        at, entries = self.points, rows
        if at is not None:
            place = np.full(self.n, -1)
            place[rows] = np.arange(len(rows))
            entries = np.flatnonzero(place[at.record] >= 0)
            at = PointwiseResponse(place[at.record[entries]], at.t[entries], at.y[entries], len(rows))
        weights, offset = (None if v is None else v[entries] for v in (self.weights, self.offset))
        features = None if self.features is None else [own[rows] for own in self.features]
        return Observations(self.records[rows], self.y[entries], weights, offset, at, features)

    @classmethod
    def together(cls, parts: Sequence[Observations]) -> Observations:
        """Those of all records of several blocks, on a grid."""
        y = np.concatenate([part.y for part in parts])
        weights = np.concatenate([part.used for part in parts]) if any(part.weighted for part in parts) else None
        offset = np.concatenate([part.added() for part in parts])
        return cls(Records.together([part.records for part in parts]), y, weights, offset)

    def at(self, points: IntArray) -> Observations:
        """Those at some points of the grid."""
        weights, offset = (None if v is None else v[:, points] for v in (self.weights, self.offset))
        own = self.features
        features = None if own is None else [f if f.ndim == 2 else f[:, points] for f in own]
        return replace(self, y=self.y[:, points], weights=weights, offset=offset, features=features)

    @property
    def level(self) -> float:
        """Mean of the responses less their offsets."""
        total = weight = 0.0
        for y, weights, *offset in _seen(self, *(() if self.offset is None else (self.offset,))):
            total, weight = total + float(weights @ (y - offset[0] if offset else y)), weight + float(weights.sum())
        return total / weight

    def below(self, level: float | FloatArray) -> Observations:
        """The same with lower responses: sums of squares about zero lose the digits of what lies far from it.

        `level` is one number, or has the shape of the response.
        """
        points = None if self.points is None else replace(self.points, y=self.points.y - level)
        return replace(self, y=self.y - level, points=points)

    def null_deviance(self, family: Family) -> float:
        """Deviance of a model that is one mean; 0 where responses are all equal."""
        low, high = zip(*[(y.min(), y.max()) for y, _ in _seen(self) if y.size], strict=True)
        if min(low) == max(high):
            return 0.0
        total, weight = np.sum([(w @ y, w.sum()) for y, w in _seen(self)], axis=0)
        about = family.predictor(np.array(likeliest_mean(self, family, float(total / weight))))
        return 2 * sum(float(w @ family.half_deviance(y, np.full(y.size, about))) for y, w in _seen(self))

    def predictor(self, form: LongForm, coefficients: FloatArray) -> FloatArray:
        """The linear predictor with its offset, in the shape of the response."""
        if (at := self.points) is not None:
            return form.predictor_at(self.records, at.record, at.t, coefficients) + self.added()
        out = np.empty(self.y.shape)
        for rows, (features, _) in zip(row_blocks(self.n), self.of_terms(form), strict=True):
            out[rows] = added_up(form, features, coefficients)
        if self.offset is not None:
            out += self.offset
        return out


def likeliest_mean(observed: Summable, family: Family, mean: float) -> float:
    """The one mean that suits all responses best; of log-concave families their `mean`, and of others one near it.

    Of ordered categories the likeliest mean depends on more than the mean of their numbers.
    """
    if isinstance(family, Ordered):
        tally = observed.over(partial(_tally, family), operator.add)
        constant = one_constant(family, np.flatnonzero(tally).astype(np.float64), tally[tally > 0])
        return float(family.mean(np.array(constant)))
    for _ in range(0 if family.log_concave else MEANS):
        total, weight = observed.over(partial(_pulled, family, mean), operator.add)
        last, mean = mean, float(total / weight)
        if abs(mean - last) <= 1e-9 * float(np.sqrt(family.variance(np.array(mean)))):
            break
    return mean


def _pulled(family: Family, mean: float, chunk: Observations) -> FloatArray:
    here = chunk.used > 0
    y, weights = chunk.y[here], chunk.used[here]
    bound = family.working(y, np.full(y.size, mean)).bound
    assert bound is not None  # the family is not log-concave
    weights = weights * bound
    return np.array([weights @ y, weights.sum()])


def log_likelihood(observed: Observations, family: Family, eta: FloatArray, fit: AdditiveFit) -> float:
    """Log-likelihood of observations with a linear predictor, at the likeliest scale of a fit to all of them."""
    scale = 1.0 if family.known_scale else max(fit.rss / fit.n_rows, 1e-300)
    return sum(family.log_likelihood(y, own, weights, scale) for y, weights, own in _seen(observed, eta))


def shares_explained(
    observed: Observations, family: Family, mean: FloatArray, edf: float, null: float
) -> tuple[float, float]:
    """Adjusted R² on the response's scale, mgcv's ``r.sq``, and the share of `null`, the deviance about one mean.

    NaN where one is not defined: responses are all equal, or no degrees of freedom are left.
    """
    total = roots = 0.0
    for y, _, root in _beside(observed, mean):
        total, roots = total + float((root * y).sum()), roots + float(np.sum(root) if np.ndim(root) else y.size)
    sums, squares, below, n = np.zeros(2), np.zeros(2), 0.0, 0
    for y, fitted, root in _beside(observed, mean):
        for i, away in enumerate((y - fitted, y - total / roots)):
            away *= root
            sums[i], squares[i] = sums[i] + away.sum(), squares[i] + away @ away
        n += y.size
        if family.name != "gaussian":
            found = root * family.deviance_residuals(y, fitted, None)
            below += float(found @ found)
    below = float(squares[0]) if family.name == "gaussian" else below
    left, about = squares - sums**2 / n
    free = n - edf
    r2 = 1 - float(left / about) * (n - 1) / free if about > 0 and free > 0 and null > 0 else float("nan")
    return r2, 1 - below / null if null > 0 else float("nan")


def _beside(observed: Observations, mean: FloatArray) -> Iterator[tuple[FloatArray, FloatArray, FloatArray | float]]:
    """Responses, means and roots of weights of what was observed, some at a time."""
    whole = observed.whole
    for y, weights, fitted in _seen(observed, mean):
        yield y, fitted, 1.0 if whole else np.sqrt(weights)


def _used(observed: Observations, rows: slice) -> FloatArray:
    """Weights of some of the responses, 0 where nothing was observed."""
    y = observed.y[rows]
    return np.where(np.isnan(y), 0.0, 1.0 if observed.weights is None else observed.weights[rows])


def _seen(observed: Observations, *beside: FloatArray) -> Iterator[tuple[FloatArray, ...]]:
    """Responses that were observed, their weights, and what has the same shape, one by one and some at a time."""
    step = max(AT_A_TIME // max(math.prod(observed.y.shape[1:]), 1), 1)
    whole = observed.whole
    for start in range(0, len(observed.y), step):
        rows = slice(start, start + step)
        if whole:
            y, *others = (each[rows].ravel() for each in (observed.y, *beside))
            yield y, np.ones(y.size), *others
        else:
            weights = _used(observed, rows)
            seen = weights > 0
            yield observed.y[rows][seen], weights[seen], *(each[rows][seen] for each in beside)


def fit_terms(
    form: LongForm,
    observed: Summable,
    family: Family,
    smoothing: str | ArrayLike,
    n_unpenalized: int | None = None,
    believed: System | None = None,
) -> AdditiveFit:
    """Fit all terms to the observations.

    Parameters
    ----------
    form : LongForm
    observed : Observations or ChunkedObservations
    family : Family
    smoothing : {"reml", "gcv"} or array_like of shape (M,)
        GCV is there for the Gaussian family only.
    n_unpenalized : int, optional
        Dimension that REML counts as unpenalised, where another program counts more than what is identified.
    believed : System, optional
        Normal equations under a working covariance of Gaussian errors, which decides between minima of REML.

    Raises
    ------
    InputError
        As :func:`fdadp.solve.fit.additive_fit.fit_gaussian` and :func:`fdadp.solve.fit.family_fit.fit_family`.
    """
    n = observed.n
    with one_blas_thread():
        level = _middle(observed, family) if form.has_intercept and family.link == "identity" else 0.0
        below = observed.below(level) if level else observed
        if family.name != "gaussian":
            blocks = below.in_blocks(form, family.placeholder)
            if isinstance(family, FamilyWithTheta) and family.unknown:
                fit = fit_with_theta(form, blocks, family, smoothing, n, n_unpenalized)
            else:
                fit = fit_family(form, blocks, family, smoothing, n, n_unpenalized)
            fit.coefficients[0] += level
            return fit
        triangle = None
        if isinstance(below, Observations) and below.whole and form.separable:
            triangle = partial(below.triangle, form)
        fit = fit_gaussian(form, below.system(form), smoothing, n, n_unpenalized, triangle, believed)
    fit.coefficients[0] += level
    if not observed.weighted:
        return fit
    means, logs = observed.over(partial(_means_and_logs, form), _sums)
    added = 0.0 if isinstance(smoothing, str) and smoothing == "gcv" else logs / 2
    return replace(fit, criterion=fit.criterion - added, column_means=means / fit.n_rows)


def _middle(observed: Summable, family: Family) -> float:
    """Mean of the responses less offsets; where errors may be long-tailed, and all are at hand, their median."""
    if family.name == "gaussian" or not isinstance(observed, Observations):
        return observed.level
    return float(np.median((observed.y - observed.added())[observed.used > 0]))


def _means_and_logs(form: LongForm, chunk: Observations) -> tuple[FloatArray, float]:
    """Sums of the columns where responses were observed, and of the logarithms of weights."""
    means, logs = np.zeros(form.size), 0.0
    for block in chunk.blocks(form, 0.0):
        here = block.weights > 0
        means += block.rows.cross(here.astype(np.float64))
        logs += float(np.log(block.weights[here]).sum())
    return means, logs


def _sums(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
    return a[0] + b[0], a[1] + b[1]


# Observations that come in chunks: the fit of many terms to them goes through the chunks, and keeps sums.


class ChunkedSource(Protocol):
    """Chunks of observations that can be gone through more than once."""

    def over(
        self,
        function: Callable[[Observations], A],
        merge: Callable[[A, A], A],
        finish: Callable[[A], Any] | None = None,
    ) -> Any:
        """Merge what a function makes of each chunk; `finish` is of their sum, computed where the rows are."""

    def here(self) -> Iterator[Observations] | None:
        """The chunks, where they are in this process."""


@dataclass(frozen=True)
class ChunkedObservations:
    """What :class:`fdadp.solve.fit.observations.Observations` is, for responses on a grid that are read in chunks.

    Attributes
    ----------
    source : Chunks
        Responses on the grid, NaN where nothing was observed.
    n : int
        Number of records.
    level : float
        Mean of the responses less their offsets.
    mean : float
        Mean of the responses themselves.
    squares : float
        Sum of their squares about it.
    whole : bool
        Whether all of them were observed, with the same weight.
    weighted : bool
        Whether they have weights.
    subtracted : float
        What is taken away from responses.
    """

    source: ChunkedSource
    n: int
    level: float
    mean: float
    squares: float
    whole: bool
    weighted: bool
    subtracted: float = 0.0

    @classmethod
    def seen(cls, source: ChunkedSource, t: FloatArray | None) -> tuple[ChunkedObservations, TrainingSummary]:
        """Look at all chunks once: at the responses, and at what fixes the bases of terms.

        Parameters
        ----------
        source : Chunks
        t : ndarray of shape (T,) or None
            Points of the responses; None: numbers.

        Notes
        -----
        Where responses have gaps, the chunks are read once more, and the record and the point of each observation are
        kept: 16 bytes for each.

        Raises
        ------
        InputError
            No response that was observed with a positive weight.
        """
        found: _Found
        rows: SeenRows
        found, rows = source.over(_looked_at, _both)
        if found.weight <= 0:
            raise InputError("weights must not all be 0" if found.weighted else "responses must not all be missing")
        observed = None
        if found.gaps and t is not None:
            made = source.over(partial(_made, t), operator.add)
            record, at = zip(*made, strict=True)
            observed = np.concatenate(record), np.concatenate(at)
        seen = rows.all_of(partial(_over_records, source), observed)
        whole = not (found.gaps or found.weighted)
        return cls(source, seen.n, found.level, found.mean, found.squares, whole, found.weighted), seen

    def over(
        self,
        function: Callable[[Observations], A],
        merge: Callable[[A, A], A],
        finish: Callable[[A], Any] | None = None,
    ) -> Any:
        """Merge what a function makes of each chunk."""
        return self.source.over(partial(_of_lower, self.subtracted, function), merge, finish)

    def in_blocks(self, form: LongForm, placeholder: float) -> Blocks:
        """Rows of the long form with their responses; `placeholder` stands where none was observed."""
        if self.source.here() is None:
            return Elsewhere(partial(_over_blocks, self, form, placeholder))
        return Remembered(partial(_blocks_here, self, form, placeholder))

    def below(self, level: float) -> ChunkedObservations:
        """The same with lower responses."""
        return replace(self, level=self.level - level, subtracted=self.subtracted + level)

    def system(self, form: LongForm) -> System:
        """Normal equations of least squares."""
        if not self.whole:
            found: System = self.over(partial(_weighted, form), add_systems)
            return found
        sums: LongSums = self.over(partial(_long_sums, form), LongSums.merge)
        return sums.system(form)

    def of_some(self, rows: IntArray, function: Callable[[Observations], Any]) -> Any:
        """What a function makes of those of some records, in order; computed where these are."""
        return self.over(partial(_some, rows), operator.add, partial(_together, function))

    def null_deviance(self, family: Family) -> float:
        """Deviance of a model that is one mean; 0 where responses are all equal."""
        if family.name == "gaussian" or not self.squares:
            return self.squares
        about = float(family.predictor(np.array(likeliest_mean(self, family, self.mean))))
        return float(2 * self.over(partial(_half_deviance, family, about), operator.add))


@dataclass
class _Found:
    """Of the responses of some rows: weight, mean, sum of squares about it, and mean less offsets."""

    gaps: bool = False
    weighted: bool = False
    weight: float = 0.0
    mean: float = 0.0
    level: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, chunk: Observations) -> _Found:
        """Of a chunk."""
        weights = chunk.used
        here = weights > 0
        found = cls(bool(np.isnan(chunk.y).any()), chunk.weighted)
        if here.any():
            y, w = chunk.y[here], weights[here]
            found.weight, found.level = float(w.sum()), chunk.level
            found.mean = float(w @ y) / found.weight if y.min() < y.max() else float(y[0])
            found.squares = float(w @ (y - found.mean) ** 2)
        return found

    def merge(self, other: _Found) -> _Found:
        """By parts as in Chan, Golub & LeVeque (1983), doi:10.1080/00031305.1983.10483115."""
        self.gaps |= other.gaps
        self.weighted |= other.weighted
        total = self.weight + other.weight
        if other.weight > 0:
            share = other.weight / total
            self.squares += other.squares + (other.mean - self.mean) ** 2 * self.weight * share
            self.mean += (other.mean - self.mean) * share
            self.level += (other.level - self.level) * share
            self.weight = total
        return self


def _looked_at(chunk: Observations) -> tuple[_Found, SeenRows]:
    return _Found.of(chunk), SeenRows.of(chunk.records, chunk.of_records)


def _both(a: tuple[_Found, SeenRows], b: tuple[_Found, SeenRows]) -> tuple[_Found, SeenRows]:
    return a[0].merge(b[0]), a[1].merge(b[1])


def _made(t: FloatArray, chunk: Observations) -> list[tuple[IntArray, FloatArray]]:
    record, at = np.nonzero(~np.isnan(chunk.y))
    return [(record + chunk.records.first, t[at])]


def _over_records(
    source: ChunkedSource, function: Callable[[Records], A], merge: Callable[[A, A], A], finish: Any = None
) -> Any:
    return source.over(partial(_of_records, function), merge, finish)


def _of_records(function: Callable[[Records], A], chunk: Observations) -> A:
    return function(chunk.records)


def _of_lower(level: float, function: Callable[[Observations], A], chunk: Observations) -> A:
    return function(chunk.below(level))


def _over_blocks(
    chunks: ChunkedObservations,
    form: LongForm,
    placeholder: float,
    function: Callable[[Observed], A],
    merge: Callable[[A, A], A],
) -> A:
    found: A = chunks.over(partial(_of_blocks, form, placeholder, function, merge), merge)
    return found


def _of_blocks(
    form: LongForm,
    placeholder: float,
    function: Callable[[Observed], A],
    merge: Callable[[A, A], A],
    chunk: Observations,
) -> A:
    return reduce(merge, map(function, chunk.blocks(form, placeholder)))


def _blocks_here(chunks: ChunkedObservations, form: LongForm, placeholder: float) -> Iterator[Observed]:
    for chunk in chunks.source.here() or ():
        yield from chunk.below(chunks.subtracted).blocks(form, placeholder)


def _weighted(form: LongForm, chunk: Observations) -> System:
    return weighted_system(chunk.blocks(form, 0.0))


def _long_sums(form: LongForm, chunk: Observations) -> LongSums:
    return LongSums.over(form, chunk.of_terms(form))


def _some(rows: IntArray, chunk: Observations) -> list[Observations]:
    own = rows - chunk.records.first
    own = own[(own >= 0) & (own < chunk.n)]
    return [chunk.some(own)] if own.size else []


def _together(function: Callable[[Observations], A], parts: list[Observations]) -> A:
    return function(Observations.together(parts))


def _tally(family: Ordered, chunk: Observations) -> FloatArray:
    here = chunk.used > 0
    return family.tally(chunk.y[here], chunk.used[here])


def _half_deviance(family: Family, about: float, chunk: Observations) -> float:
    here = chunk.used > 0
    y = chunk.y[here]
    return float(chunk.used[here] @ family.half_deviance(y, np.full(y.size, about)))
