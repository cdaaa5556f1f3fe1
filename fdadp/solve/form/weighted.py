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

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, Protocol, TypeVar

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.tables.records import Records
from fdadp.solve.form.long_form import LongForm, System
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


def rows_on_grid(form: LongForm, records: Records) -> FormRows:
    """Rows of records with responses (n, T) on the grid of the form."""
    if len(form.t) == 1:
        return LongRows(form.rows(records).reshape(records.n, -1), (records.n, 1))
    return GridRows(form, form.features(records))


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
        return (self.matrix * weights.reshape(-1, 1)).T @ self.matrix

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
    features : list of ndarray
        Of each term, shape (n, q), or (n, T, q).
    """

    form: LongForm
    features: list[FloatArray]

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return sum(features.size for features in self.features)

    def predictor(self, coefficients: FloatArray) -> FloatArray:
        """As :meth:`FormRows.predictor`."""
        out = np.zeros((len(self.features[0]), len(self.form.t)))
        parts = zip(self.form.designs, self.form.slices, self.features, self.form.along, strict=True)
        for design, place, features, along in parts:
            values = self.form.functions(design, coefficients[place]) @ along.T  # (q, T)
            out += features @ values if features.ndim == 2 else np.einsum("ntq,qt->nt", features, values)
        return out

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
        ends = np.cumsum([0, *(design.n_features for design in self.form.designs)]).tolist()
        return [slice(a, b) for a, b in itertools.pairwise(ends)]

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
