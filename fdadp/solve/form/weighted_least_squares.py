"""Weighted least squares of the long form, whose rows are never built where responses share a grid.

Weights vary with record and point: gaps (0), weights of the user, working weights of families. With the features
``a_i`` of all terms, ``Σ_it w_it (a_i ⊗ b(t))(a_i ⊗ b(t))' = Σ_t (A' diag(w_t) A) ⊗ b(t)b(t)'``, and all
``A' diag(w_t) A`` at once are one product of matrices, of the row-wise products of A with w.

References
----------
Currie, Durban & Eilers (2006), Generalized linear array models with applications to multidimensional smoothing,
JRSS-B 68(2), doi:10.1111/j.1467-9868.2006.00543.x.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, Protocol, TypeVar

import numpy as np

from fdadp._common.loaded_later import kernel
from fdadp._common.typing import FloatArray, IntArray
from fdadp.functional.splines.bsplines import BSplines
from fdadp.functional.splines.diagonal_margins import Basis, Constant
from fdadp.responses import PointwiseResponse
from fdadp.solve.form.long_form_design import LongForm, System, feature_slices
from fdadp.terms.records import Records
from fdadp.terms.spec import TermDesign

A = TypeVar("A")


AT_A_TIME = 2**21
"""Numbers of row-wise products that are held at once."""

REMEMBERED = 2**26
"""Numbers of features and responses that are kept between passes; of larger data they are computed in each pass."""


class FormRows(Protocol):
    """Rows of the long form of some records."""

    @property
    def size(self) -> int:
        """How many numbers it holds."""

    def predictor(self, coefficients: FloatArray) -> FloatArray:
        """Rows times coefficients (p,), in the shape of the response."""

    def gram(self, weights: FloatArray) -> FloatArray:
        """Weighted products of the columns, shape (p, p)."""

    def cross(self, residuals: FloatArray) -> FloatArray:
        """Products of the columns with numbers in the shape of the response, shape (p,)."""

    def leverages(self, matrix: FloatArray) -> FloatArray:
        """``row' M row`` of each row for a symmetric matrix (p, p), in the shape of the response."""


@dataclass(frozen=True)
class Observed:
    """A block of responses with what belongs to them; all arrays are of one shape.

    Attributes
    ----------
    rows : FormRows
    y : ndarray
        Where the weight is 0, any number.
    weights : ndarray
        Not negative.
    offset : ndarray
        What is added to the linear predictor.
    """

    rows: FormRows
    y: FloatArray
    weights: FloatArray
    offset: FloatArray


@dataclass
class Remembered:
    """Blocks that can be gone through again, kept in memory where they fit into it.

    Attributes
    ----------
    read : callable
        Returns a fresh iterator over the blocks.
    """

    read: Callable[[], Iterator[Observed]]
    kept: list[Observed] | None = None

    def __iter__(self) -> Iterator[Observed]:
        """Go through all blocks once."""
        if self.kept is not None:
            yield from self.kept
            return
        kept, size = [], 0
        for block in self.read():
            size += block.rows.size + 3 * block.y.size
            if size <= REMEMBERED:
                kept.append(block)
            yield block
        if size <= REMEMBERED:
            self.kept = kept


@dataclass(frozen=True)
class Elsewhere:
    """Blocks that are made where their rows are; only what is made of them comes here.

    Attributes
    ----------
    over : callable
        ``over(function, merge)`` merges what a function makes of each block.
    """

    over: Callable[[Callable[[Observed], Any], Callable[[Any, Any], Any]], Any]


Blocks = Iterable[Observed] | Elsewhere
"""That a fit goes through several times."""


def over_blocks(blocks: Blocks, function: Callable[[Observed], A], merge: Callable[[A, A], A]) -> A:
    """Merge what a function makes of each block."""
    if isinstance(blocks, Elsewhere):
        found: A = blocks.over(function, merge)
        return found
    return reduce(merge, map(function, blocks))


def rows_on_grid(form: LongForm, features: Sequence[FloatArray]) -> FormRows:
    """Rows of records with responses (n, T) on the grid of the form, from their features."""
    if len(form.t) == 1:
        n = len(features[0])
        return LongRows(form.rows_of(features).reshape(n, -1), (n, 1))
    return GridRows(form, features)


@dataclass(frozen=True)
class LongRows:
    """Rows (N, p) as they are; responses of any shape with N numbers."""

    matrix: FloatArray
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return self.matrix.size

    def predictor(self, coefficients: FloatArray) -> FloatArray:
        """As :meth:`FormRows.predictor`."""
        return (self.matrix @ coefficients).reshape(self.shape)

    def gram(self, weights: FloatArray) -> FloatArray:
        """As :meth:`FormRows.gram`."""
        if weights.min(initial=0.0) < 0:
            return (self.matrix * weights.reshape(-1, 1)).T @ self.matrix
        half = self.matrix * np.sqrt(weights).reshape(-1, 1)
        return half.T @ half  # a matrix times itself: one triangle is computed

    def cross(self, residuals: FloatArray) -> FloatArray:
        """As :meth:`FormRows.cross`."""
        return self.matrix.T @ residuals.ravel()

    def leverages(self, matrix: FloatArray) -> FloatArray:
        """As :meth:`FormRows.leverages`."""
        return np.asarray(np.einsum("ij,ij->i", self.matrix @ matrix, self.matrix)).reshape(self.shape)


@dataclass(frozen=True)
class GridRows:
    """Rows of records with responses (n, T) on a common grid, as the products that they are.

    Attributes
    ----------
    form : LongForm
    features : sequence of ndarray
        Of each term, shape (n, q), or (n, T, q).
    """

    form: LongForm
    features: Sequence[FloatArray]

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return sum(features.size for features in self.features)

    def predictor(self, coefficients: FloatArray) -> FloatArray:
        """As :meth:`FormRows.predictor`."""
        return np.asarray(sum(self.form.contributions(self.features, coefficients)))

    def cross(self, residuals: FloatArray) -> FloatArray:
        """As :meth:`FormRows.cross`."""
        out = np.empty(self.form.size)
        parts = zip(self.form.designs, self.form.slices, self.features, self.form.along, strict=True)
        for design, place, features, along in parts:
            by_t = features.T @ residuals if features.ndim == 2 else np.einsum("ntq,nt->qt", features, residuals)
            out[place] = (by_t @ along).ravel()[design.kept]
        return out

    def gram(self, weights: FloatArray) -> FloatArray:
        """As :meth:`FormRows.gram`."""
        by_t = self._by_t(weights).reshape(len(self.form.t), -1)
        q = self._places[-1].stop
        out = np.empty((self.form.size, self.form.size))
        for i, j, first, second in self._pairs:
            m = by_t.reshape(-1, q, q)[:, self._places[i], self._places[j]]
            products = self._products(i, j)
            block = (m.reshape(len(m), -1).T @ products).reshape(*m.shape[1:], first.along.size, second.along.size)
            whole = block.transpose(0, 2, 1, 3).reshape(first.kept.size, second.kept.size)
            rows, columns = self.form.slices[i], self.form.slices[j]
            out[rows, columns] = whole[np.ix_(first.kept, second.kept)]
            out[columns, rows] = out[rows, columns].T
        return out

    def leverages(self, matrix: FloatArray) -> FloatArray:
        """As :meth:`FormRows.leverages`."""
        size, q = len(self.form.t), self._places[-1].stop
        by_t = np.empty((size, q, q))
        for i, j, first, second in self._pairs:
            whole = np.zeros((first.kept.size, second.kept.size))
            whole[np.ix_(first.kept, second.kept)] = matrix[self.form.slices[i], self.form.slices[j]]
            shape = (first.n_features, first.along.size, second.n_features, second.along.size)
            turned = whole.reshape(shape).transpose(1, 3, 0, 2).reshape(-1, shape[0] * shape[2])
            block = (self._products(i, j) @ turned).reshape(size, shape[0], shape[2])
            by_t[:, self._places[i], self._places[j]] = block
            by_t[:, self._places[j], self._places[i]] = block.swapaxes(1, 2)
        if not self._same_at_all_t:
            return np.asarray(np.einsum("tnq,tnq->nt", self._wide @ by_t, self._wide))
        upper = np.triu_indices(q)
        twice = by_t[:, upper[0], upper[1]] * np.where(upper[0] == upper[1], 1.0, 2.0)
        out = np.empty((len(self._wide), size))
        for rows, products in self._row_products():
            out[rows] = products @ twice.T
        return out

    def _by_t(self, weights: FloatArray) -> FloatArray:
        """``Σ_i w_i(t) f_i(t) f_i(t)'`` of the features of all terms, shape (T, Q, Q)."""
        if not self._same_at_all_t:
            z = self._wide
            return np.asarray((z * weights.T[:, :, None]).swapaxes(1, 2) @ z)
        q = self._wide.shape[1]
        upper = np.triu_indices(q)
        flat = np.zeros((weights.shape[1], upper[0].size))
        for rows, products in self._row_products():
            flat += weights[rows].T @ products
        out = np.empty((weights.shape[1], q, q))
        out[:, upper[0], upper[1]] = flat
        out[:, upper[1], upper[0]] = flat
        return out

    def _row_products(self) -> Iterator[tuple[slice, FloatArray]]:
        """Products of all pairs of features of a record, upper triangles in rows; some records at a time."""
        a = self._wide
        first, second = np.triu_indices(a.shape[1])
        step = max(AT_A_TIME // first.size, 1)
        for start in range(0, len(a), step):
            rows = slice(start, min(start + step, len(a)))
            yield rows, a[rows][:, first] * a[rows][:, second]

    @cached_property
    def _same_at_all_t(self) -> bool:
        return all(features.ndim == 2 for features in self.features)

    @cached_property
    def _wide(self) -> FloatArray:
        """Features of all terms side by side, shape (n, Q), or (T, n, Q) where they vary with t."""
        if self._same_at_all_t:
            return np.hstack(self.features)
        shape = (len(self.features[0]), len(self.form.t))
        by_t = [f if f.ndim == 3 else np.broadcast_to(f[:, None], (*shape, f.shape[1])) for f in self.features]
        return np.ascontiguousarray(np.concatenate(by_t, axis=2).swapaxes(0, 1))

    @cached_property
    def _places(self) -> list[slice]:
        return feature_slices(self.form.designs)

    @property
    def _pairs(self) -> Iterator[tuple[int, int, TermDesign, TermDesign]]:
        for i, first in enumerate(self.form.designs):
            for j, second in enumerate(self.form.designs[: i + 1]):
                yield i, j, first, second

    def _products(self, i: int, j: int) -> FloatArray:
        """``b_i(t) ⊗ b_j(t)``, shape (T, p_i p_j)."""
        first, second = self.form.along[i], self.form.along[j]
        return np.asarray(first[:, :, None] * second[:, None, :]).reshape(len(first), -1)


def weighted_system(blocks: Iterable[Observed]) -> System:
    """Normal equations of weighted least squares; rows of weight 0 do not count."""
    return reduce(add_systems, map(_system, blocks))


def _system(block: Observed) -> System:
    y = np.where(block.weights > 0, block.y - block.offset, 0.0)
    weighted = block.weights * y
    gram, cross = block.rows.gram(block.weights), block.rows.cross(weighted)
    return System(gram, cross, float((weighted * y).sum()), int(np.count_nonzero(block.weights)))


def add_systems(a: System, b: System) -> System:
    """Normal equations of the rows of both."""
    return System(a.gram + b.gram, a.cross + b.cross, a.total + b.total, a.n_rows + b.n_rows)


# Normal equations of responses at points of their own, without building the rows of the observations.


CURVES_AT_A_TIME = 2000

NUMBERS_AT_A_TIME = 2**21
"""Of rows of observations."""


def observed_at_points(
    form: LongForm, records: Records, response: PointwiseResponse, weights: FloatArray, offset: FloatArray
) -> Iterator[Observed]:
    """Rows of observations in blocks; weights and offset are of shape (N,)."""
    step = max(NUMBERS_AT_A_TIME // max(form.size, 1), 1)
    for start in range(0, response.y.size, step):
        part = slice(start, min(start + step, response.y.size))
        record = response.record[part]
        own = records[int(record[0]) : int(record[-1]) + 1]
        rows = form.rows_at(own, record - record[0], response.t[part])
        yield Observed(LongRows(rows, (len(rows),)), response.y[part], weights[part], offset[part])


def pointwise_system(
    form: LongForm, records: Records, response: PointwiseResponse, weights: FloatArray, offset: FloatArray
) -> System:
    """Normal equations of weighted least squares.

    Parameters
    ----------
    form : LongForm
    records : Records
        All rows of covariates.
    response : PointwiseResponse
    weights, offset : ndarray of shape (N,)
        Of the observations; what is added to the linear predictor.
    """
    if not all(design.separable for design in form.designs):
        return weighted_system(observed_at_points(form, records, response, weights, offset))
    raw = _Raw.of(form)
    q = sum(design.n_features for design in form.designs)
    first, second = np.triu_indices(q)
    products, cross = np.zeros((first.size, raw.size * (raw.size + 1) // 2)), np.zeros((q, raw.size))
    y = response.y - offset
    bounds = np.searchsorted(response.record, np.arange(records.n + 1))
    for start in range(0, records.n, CURVES_AT_A_TIME):
        stop = min(start + CURVES_AT_A_TIME, records.n)
        part = slice(bounds[start], bounds[stop])
        own = bounds[start : stop + 1] - bounds[start]
        squares, sums = raw.products(response.t[part], own, weights[part], y[part])
        a = np.hstack(form.features(records[start:stop]))
        products += (a[:, first] * a[:, second]).T @ squares
        cross += a.T @ sums
    wide = np.empty((q, q, products.shape[1]))
    wide[first, second] = wide[second, first] = products
    gram, right = _of_terms(form, raw, wide, cross)
    return System(gram, right, float(weights @ y**2), int(np.count_nonzero(weights)))


def _of_terms(form: LongForm, raw: _Raw, wide: FloatArray, cross: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gram matrix (p, p) and cross products (p,) of the terms from those of features and raw B-splines."""
    gram, right = np.empty((form.size, form.size)), np.empty(form.size)
    places = feature_slices(form.designs)
    upper = np.triu_indices(raw.size)
    for i, (first, rows) in enumerate(zip(form.designs, form.slices, strict=True)):
        at = places[i]
        right[rows] = (cross[at] @ raw.turns[i]).ravel()[first.kept]
        for j, (second, columns) in enumerate(zip(form.designs[: i + 1], form.slices[: i + 1], strict=True)):
            own = wide[at, places[j]]
            block = np.empty((*own.shape[:2], raw.size, raw.size))
            block[:, :, upper[0], upper[1]] = block[:, :, upper[1], upper[0]] = own
            whole = (raw.turns[i].T @ block @ raw.turns[j]).transpose(0, 2, 1, 3)
            gram[rows, columns] = whole.reshape(first.kept.size, -1)[np.ix_(first.kept, second.kept)]
            gram[columns, rows] = gram[rows, columns].T
    return gram, right


@dataclass(frozen=True)
class _Raw:
    """The different bases along the response of all terms, a constant first.

    Attributes
    ----------
    bases : list of Basis
    starts : list of int
        Where the functions of each basis stand; the last entry is their number.
    turns : list of ndarray of shape (size, p_j)
        From all these functions to those of each term.
    """

    bases: list[Basis]
    starts: list[int]
    turns: list[FloatArray]

    @classmethod
    def of(cls, form: LongForm) -> _Raw:
        """Those of the terms of a model."""
        bases: dict[object, Basis] = {Constant: Constant()}
        sizes: dict[object, int] = {Constant: 1}
        keys: list[object] = []
        for design in form.designs:
            basis = design.along.basis
            key: object = id(basis)
            if isinstance(basis, Constant):
                key = Constant
            elif isinstance(basis, BSplines):
                key = (basis.knots.tobytes(), basis.degree)
            bases.setdefault(key, basis)
            sizes[key] = len(design.along.to_raw)
            keys.append(key)
        starts = dict(zip(bases, np.cumsum([0, *(sizes[key] for key in bases)]).tolist(), strict=False))
        turns = []
        for design, key in zip(form.designs, keys, strict=True):
            turn = np.zeros((sum(sizes.values()), design.along.size))
            turn[starts[key] : starts[key] + sizes[key]] = design.along.to_raw
            if design.along.shift is not None:
                turn[0] -= design.along.shift
            turns.append(turn)
        return cls(list(bases.values()), [*starts.values(), sum(sizes.values())], turns)

    @property
    def size(self) -> int:
        """Number P of functions."""
        return self.starts[-1]

    @cached_property
    def triangle(self) -> IntArray:
        """Position of each pair of functions in the upper triangle, shape (P, P)."""
        out = np.zeros((self.size, self.size), dtype=np.int64)
        out[np.triu_indices(self.size)] = np.arange(self.size * (self.size + 1) // 2)
        return out

    def products(
        self, t: FloatArray, bounds: IntArray, weights: FloatArray, y: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """``Σ w b b'`` of each curve, upper triangles in rows, and ``Σ w y b``; observations stand curve by curve."""
        designs = [basis.design(t) if t.size else np.zeros((0, 1)) for basis in self.bases]
        bands = [_band(design) for design in designs]
        values = np.zeros((t.size, len(bands), max(band.shape[1] for _, band in bands)))
        places = np.zeros((t.size, len(bands)), dtype=np.int64)
        for i, (start, band) in enumerate(bands):
            places[:, i] = self.starts[i] + start
            values[:, i, : band.shape[1]] = band
        widths = np.array([band.shape[1] for _, band in bands], dtype=np.int64)
        squares, sums = _curve_products(
            np.ascontiguousarray(bounds, dtype=np.int64), places, widths, values, weights, y, self.triangle
        )
        return squares, sums


def _band(design: FloatArray) -> tuple[IntArray, FloatArray]:
    """The part of each row of a design that is not zero: where it starts, and its numbers (N, width)."""
    nonzero = design != 0
    if not design.size:
        return np.zeros(len(design), dtype=np.int64), design[:, :1]
    first = nonzero.argmax(axis=1)
    last = design.shape[1] - 1 - nonzero[:, ::-1].argmax(axis=1)
    width = int((last - first).max()) + 1
    start = np.minimum(first, design.shape[1] - width)
    return start, np.take_along_axis(design, start[:, None] + np.arange(width), axis=1)


@kernel("i8[::1], i8[:,::1], i8[::1], f8[:,:,::1], f8[::1], f8[::1], i8[:,::1]")
def _curve_products(bounds, places, widths, values, weights, y, triangle):  # type: ignore[no-untyped-def]
    n, n_bases, size = len(bounds) - 1, places.shape[1], triangle.shape[0]
    squares = np.zeros((n, size * (size + 1) // 2))
    sums = np.zeros((n, size))
    for i in range(n):
        for j in range(bounds[i], bounds[i + 1]):
            for f in range(n_bases):
                for r in range(widths[f]):
                    a = places[j, f] + r
                    value = values[j, f, r] * weights[j]
                    sums[i, a] += value * y[j]
                    for q in range(r, widths[f]):
                        squares[i, triangle[a, places[j, f] + q]] += value * values[j, f, q]
                    for g in range(f + 1, n_bases):
                        for q in range(widths[g]):
                            squares[i, triangle[a, places[j, g] + q]] += value * values[j, g, q]
    return squares, sums
