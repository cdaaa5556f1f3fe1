"""Normal equations of responses at points of their own, without building the rows of the observations.

With the raw B-splines ``b(t)`` of all terms side by side, the Gram matrix ``Σ_ij (a_i ⊗ b(t_ij))(a_i ⊗ b(t_ij))'`` is
``Σ_i (a_i a_i') ⊗ V_i`` with ``V_i = Σ_j b(t_ij) b(t_ij)'``, of which few numbers are not zero. For many curves at once
that is one product of matrices; the sums are turned into the coordinates of the terms at the end. Terms whose features
vary with t are taken observation by observation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import njit

from fdadp._common.typing import FloatArray, IntArray
from fdadp.functional.splines.bsplines import BSplines
from fdadp.functional.splines.margins import Basis, Constant
from fdadp.functional.tables.records import Records
from fdadp.responses import PointwiseResponse
from fdadp.solve.form.long_form import LongForm, System
from fdadp.solve.form.weighted import LongRows, Observed, weighted_system

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
    gram, right = _turned(form, raw, wide, cross)
    return System(gram, right, float(weights @ y**2), int(np.count_nonzero(weights)))


def _turned(form: LongForm, raw: _Raw, wide: FloatArray, cross: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gram matrix (p, p) and cross products (p,) of the terms from those of features and raw B-splines."""
    ends = np.cumsum([0, *(design.n_features for design in form.designs)])
    gram, right = np.empty((form.size, form.size)), np.empty(form.size)
    upper = np.triu_indices(raw.size)
    for i, (first, rows) in enumerate(zip(form.designs, form.slices, strict=True)):
        at = slice(ends[i], ends[i + 1])
        right[rows] = (cross[at] @ raw.turns[i]).ravel()[first.kept]
        for j, (second, columns) in enumerate(zip(form.designs[: i + 1], form.slices[: i + 1], strict=True)):
            own = wide[at, ends[j] : ends[j + 1]]
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
        squares, sums = _products(
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


@njit(cache=True, nogil=True)
def _products(bounds, places, widths, values, weights, y, triangle):  # type: ignore[no-untyped-def]
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
