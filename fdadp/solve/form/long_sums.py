"""Sums over records from which the normal equations of the long form follow: sizes do not depend on n.

With features ``a_i`` of the terms whose features are the same at all t, and ``z_i(t)`` of the others, the sums are
``Σ a a'``, ``Σ a Y(t)``, ``Σ Y(t)²`` and for each t ``Σ z z'``, ``Σ z a'``, ``Σ z Y``. The Gram matrix of the long form
is then ``(A_j'A_k) ⊗ (B_j'B_k)`` for two terms of the first kind, and
``Σ_t (Σ_i z_i f_i') ⊗ b_j(t) b_k(t)'`` with others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.tables.records import Records
from fdadp.solve.form.long_form import LongForm


@dataclass(frozen=True)
class System:
    """Normal equations of the long form.

    Attributes
    ----------
    gram : ndarray of shape (p, p)
        Products of its columns.
    cross : ndarray of shape (p,)
        Products with the response.
    total : float
        Sum of squares of the response.
    n_rows : int
        Number of observations N.
    """

    gram: FloatArray
    cross: FloatArray
    total: float
    n_rows: int


@dataclass
class LongSums:
    """Sums over records of a long form on a common grid.

    Attributes
    ----------
    n : int
        Number of records.
    same : ndarray of shape (Q, Q)
        ``Σ a a'``.
    same_y : ndarray of shape (Q, T)
    y : ndarray of shape (T,)
        ``Σ Y(t)``.
    y_squares : ndarray of shape (T,)
    own, own_same, own_y : ndarray of shape (T, q, q), (T, q, Q) and (T, q)
        Of the features that differ between points; q may be 0.
    """

    n: int
    same: FloatArray
    same_y: FloatArray
    y: FloatArray
    y_squares: FloatArray
    own: FloatArray
    own_same: FloatArray
    own_y: FloatArray

    @classmethod
    def of(cls, form: LongForm, records: Records, y: FloatArray) -> LongSums:
        """Of a block of records with responses (n, T)."""
        features = form.features(records)
        a = _side_by_side([f for f in features if f.ndim == 2], (records.n,))
        z = _side_by_side([f for f in features if f.ndim == 3], (records.n, len(form.t)))
        by_t = np.ascontiguousarray(z.transpose(1, 2, 0))  # (T, q, n)
        return cls(
            records.n,
            a.T @ a,
            a.T @ y,
            y.sum(axis=0),
            np.einsum("nt,nt->t", y, y),
            by_t @ by_t.swapaxes(1, 2),
            by_t @ a if by_t.shape[1] else np.zeros((len(form.t), 0, a.shape[1])),
            (by_t @ np.ascontiguousarray(y.T)[:, :, None])[..., 0],
        )

    @classmethod
    def over(cls, form: LongForm, blocks: Iterable[tuple[Records, FloatArray]]) -> LongSums:
        """Of all blocks."""
        total: LongSums | None = None
        for records, y in blocks:
            part = cls.of(form, records, y)
            total = part if total is None else total.merge(part)
        assert total is not None
        return total

    def merge(self, other: LongSums) -> LongSums:
        """Add the sums over other records to these."""
        self.n += other.n
        for name in ("same", "same_y", "y", "y_squares", "own", "own_same", "own_y"):
            getattr(self, name).__iadd__(getattr(other, name))
        return self

    def system(self, form: LongForm, precision: FloatArray | None = None, total: float = 0.0) -> System:
        """Normal equations of the long form.

        With a `precision` (T, T) along the response, of terms whose features are the same at all t; `total` is then
        ``Σ Y'PY``, which these sums do not hold.
        """
        p = form.size
        gram, cross = np.empty((p, p)), np.empty(p)
        places = _places(form)
        for i, (design, rows) in enumerate(zip(form.designs, form.slices, strict=True)):
            b, at = form.along[i], places[i]
            b = b if precision is None else precision @ b
            c = self.same_y[at] @ b if design.separable else self.own_y[:, at].T @ b
            cross[rows] = c.ravel()[design.kept]
            for j in range(i + 1):
                other, columns = form.designs[j], form.slices[j]
                block = self._block(i, j, form, places, b)[np.ix_(design.kept, other.kept)]
                gram[rows, columns] = block
                gram[columns, rows] = block.T
        total = float(self.y_squares.sum()) if precision is None else total
        return System(gram, cross, total, self.n * len(form.t))

    def _block(self, i: int, j: int, form: LongForm, places: list[slice], b: FloatArray) -> FloatArray:
        first, second = form.designs[i], form.designs[j]
        c, at, to = form.along[j], places[i], places[j]
        size = (first.n_features * b.shape[1], second.n_features * c.shape[1])
        if first.separable and second.separable:
            return np.asarray(np.kron(self.same[at, to], b.T @ c))
        if first.separable:
            by_t = self.own_same[:, to, at].swapaxes(1, 2)
        elif second.separable:
            by_t = self.own_same[:, at, to]
        else:
            by_t = self.own[:, at, to]
        products = (b[:, :, None] * c[:, None, :]).reshape(len(b), -1)  # (T, p_i p_j)
        whole = by_t.reshape(len(b), -1).T @ products
        shape = (first.n_features, second.n_features, b.shape[1], c.shape[1])
        return np.ascontiguousarray(whole.reshape(shape).transpose(0, 2, 1, 3)).reshape(size)


def _side_by_side(parts: list[FloatArray], shape: tuple[int, ...]) -> FloatArray:
    return np.concatenate(parts, axis=-1) if parts else np.zeros((*shape, 0))


def _places(form: LongForm) -> list[slice]:
    """Where the features of each term stand among those of its kind."""
    ends = {True: 0, False: 0}
    out = []
    for design in form.designs:
        start = ends[design.separable]
        ends[design.separable] += design.n_features
        out.append(slice(start, ends[design.separable]))
    return out
