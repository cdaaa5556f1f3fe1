"""The long form of a model of many terms: a row for each record and point, ``features_i ⊗ along(t)`` of every term.

Here is what its rows are, where each term's coefficients stand, and what they predict. It is never built for training
rows: sums over records stand for it, whose sizes do not depend on n. With features ``a_i`` of the terms whose features
are the same at all t, and ``z_i(t)`` of the others, the sums are ``Σ a a'``, ``Σ a Y(t)``, ``Σ Y(t)²`` and for each t
``Σ z z'``, ``Σ z a'``, ``Σ z Y``. The Gram matrix of the long form is then ``(A_j'A_k) ⊗ (B_j'B_k)`` for two terms of
the first kind, and ``Σ_t (Σ_i z_i f_i') ⊗ b_j(t) b_k(t)'`` with others.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from fdadp._common.typing import BoolArray, FloatArray, IntArray
from fdadp.terms.records import Records, row_blocks
from fdadp.terms.spec import TermDesign

ROWS_AT_A_TIME = 2**22
"""Numbers of long-form rows that are held at once."""

ADDED_AT_A_TIME = 2**17
"""Numbers that a term adds to means at once, so that they stay in a core's cache."""


@dataclass(frozen=True)
class LongForm:
    """Terms side by side.

    Attributes
    ----------
    designs : tuple of TermDesign
    t : ndarray of shape (T,)
        Points of the response; one point where it is a number.
    """

    designs: tuple[TermDesign, ...]
    t: FloatArray

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Where the coefficients of each term stand."""
        return tuple(_ends([design.size for design in self.designs]))

    @property
    def has_intercept(self) -> bool:
        """Whether the first coefficient is a constant that nothing penalises."""
        return bool(self.designs) and self.designs[0].name == "(Intercept)"

    @property
    def size(self) -> int:
        """Number p of coefficients."""
        return sum(design.size for design in self.designs)

    @cached_property
    def penalties(self) -> list[FloatArray]:
        """Of each term, shapes (M_j, p_j)."""
        return [design.penalties for design in self.designs]

    @cached_property
    def stacked_penalties(self) -> FloatArray:
        """Of all terms, 0 beyond a term's own coefficients, shape (M, p)."""
        out, row = np.zeros((self.n_penalties, self.size)), 0
        for place, own in zip(self.slices, self.penalties, strict=True):
            out[row : row + len(own), place] = own
            row += len(own)
        return out

    @property
    def separable(self) -> bool:
        """Whether the features of all terms are the same at all t."""
        return all(design.separable for design in self.designs)

    @property
    def n_penalties(self) -> int:
        """Number M of smoothing parameters."""
        return sum(len(penalty) for penalty in self.penalties)

    @property
    def penalty_names(self) -> tuple[str, ...]:
        """Of the smoothing parameters, in order."""
        return tuple(name for design in self.designs for name in design.penalty_names)

    @cached_property
    def along(self) -> tuple[FloatArray, ...]:
        """Functions along the response of each term on the training points, shapes (T, p_j)."""
        return tuple(np.ascontiguousarray(design.along.design(self.t)) for design in self.designs)

    @cached_property
    def directions(self) -> FloatArray:
        """Orthonormal vectors on the training points in whose span all functions along the response lie, (T, m)."""
        return np.asarray(np.linalg.qr(np.hstack(self.along))[0])

    def along_at(self, t: FloatArray | None) -> tuple[FloatArray, ...]:
        """The same at other points."""
        if t is None or np.array_equal(t, self.t):
            return self.along
        return tuple(np.ascontiguousarray(design.along.design(t)) for design in self.designs)

    def features(self, records: Records, t: FloatArray | None = None) -> list[FloatArray]:
        """Of each term, shapes (n, q_j), or (n, T, q_j)."""
        points = self.t if t is None else t
        return [np.ascontiguousarray(design.features(records, points)) for design in self.designs]

    def contributions(
        self, features: Sequence[FloatArray], coefficients: FloatArray, t: FloatArray | None = None
    ) -> list[FloatArray]:
        """What each term adds to the mean, from its :meth:`features`; shapes (n, T)."""
        parts = zip(self.designs, self.slices, features, self.along_at(t), strict=True)
        out = []
        for design, place, own, along in parts:
            functions = self.functions(design, coefficients[place])  # (q, p)
            flat = own.ndim == 2
            out.append((own @ functions) @ along.T if flat else np.einsum("ntq,qt->nt", own, functions @ along.T))
        return out

    def mean(self, coefficients: FloatArray, t: FloatArray | None = None) -> FloatArray:
        """The intercept and the mean curve, shape (T,)."""
        parts = zip(self.designs, self.along_at(t), self.slices, strict=True)
        out = [along @ coefficients[place] for design, along, place in parts if not design.columns]
        return np.asarray(sum(out, np.zeros(len(self.t if t is None else t))))

    def predictor(self, records: Records, coefficients: FloatArray, t: FloatArray | None = None) -> FloatArray:
        """The linear predictor, shape (n, T)."""
        return added_up(self, self.features(records, t), coefficients, t)

    @staticmethod
    def functions(design: TermDesign, coefficients: FloatArray) -> FloatArray:
        """Coefficients of a term as (q, p_j), with zeros for those that are not kept."""
        full = np.zeros(design.kept.size)
        full[design.kept] = coefficients
        return full.reshape(design.n_features, design.along.size)

    def rows(self, records: Records, t: FloatArray | None = None) -> FloatArray:
        """Long-form rows, shape (n, T, p): for a few records at a time (:meth:`blocks`)."""
        return self.rows_of(self.features(records, t), t)

    def rows_of(self, features: Sequence[FloatArray], t: FloatArray | None = None) -> FloatArray:
        """The same from the features of the records."""
        return times_functions(self, features, self.along_at(t))

    def rows_at(self, records: Records, record: IntArray, t: FloatArray) -> FloatArray:
        """Long-form rows of single observations, of row ``record[j]`` at the point ``t[j]``: shape (N, p)."""
        out = np.empty((len(t), self.size))
        for design, place in zip(self.designs, self.slices, strict=True):
            features, along = design.features_at(records, record, t), design.along.design(t)
            out[:, place] = (features[:, :, None] * along[:, None, :]).reshape(len(t), -1)[:, design.kept]
        return out

    def predictor_at(self, records: Records, record: IntArray, t: FloatArray, coefficients: FloatArray) -> FloatArray:
        """The linear predictor of single observations, shape (N,)."""
        out = np.zeros(len(t))
        for design, place in zip(self.designs, self.slices, strict=True):
            values = design.along.design(t) @ self.functions(design, coefficients[place]).T  # (N, q)
            out += np.einsum("iq,iq->i", design.features_at(records, record, t), values)
        return out

    def blocks(self, records: Records, t: FloatArray | None = None) -> list[Records]:
        """Records in blocks whose long-form rows fit in memory."""
        step = ROWS_AT_A_TIME // (max(self.size, 1) * len(self.t if t is None else t))
        return [records[rows] for rows in records.blocks(step)]

    def scores(self, records: Records, residuals: FloatArray) -> FloatArray:
        """``D_i' r_i`` of each record, D_i its long-form rows and r (n, T): shape (n, p)."""
        out = np.empty((records.n, self.size))
        parts = zip(self.designs, self.slices, self.features(records), self.along, strict=True)
        for design, place, features, along in parts:
            if features.ndim == 2:
                whole = features[:, :, None] * (residuals @ along)[:, None, :]
            else:
                whole = np.einsum("ntq,nt,tp->nqp", features, residuals, along, optimize=True)
            out[:, place] = whole.reshape(records.n, -1)[:, design.kept]
        return out

    def mean_and_features(self, records: Records, c: int, t: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Functions of the first c coefficients, those of the mean curve, and features of all other terms.

        Returns
        -------
        mean : ndarray of shape (T, c)
        features : ndarray of shape (n, p)
        """
        along, points = self.along_at(t), self.t if t is None else t
        ahead = sum(place.stop <= c for place in self.slices)
        features = [design.features(records, points) for design in self.designs[ahead:]]
        features = features or [np.zeros((records.n, 0))]
        return np.hstack(along[:ahead]), features[0] if len(features) == 1 else np.hstack(features)

    def standard_errors(self, records: Records, covariance: FloatArray, t: FloatArray | None = None) -> FloatArray:
        """Of the linear predictor, from the covariance of all coefficients (p, p); shape (n, T)."""
        if self.separable:
            return self._separable_errors(records, covariance, t)
        found = []
        for block in self.blocks(records, t):
            rows = self.rows(block, t)
            found.append(np.einsum("ntp,ntp->nt", rows @ covariance, rows))
        return np.asarray(np.sqrt(np.maximum(np.concatenate(found), 0.0)))

    def _separable_errors(self, records: Records, covariance: FloatArray, t: FloatArray | None) -> FloatArray:
        """The same where features are the same at all t: each pair of terms adds its products of features.

        What they are multiplied by is at the points, or at products of functions of t where these are fewer.
        """
        along, points = self.along_at(t), len(self.t if t is None else t)
        kept = kept_of(self.designs)
        full = np.zeros((kept.size, kept.size))
        full[np.ix_(kept, kept)] = covariance
        places = _ends([design.kept.size for design in self.designs])
        pairs: list[tuple[int, int, FloatArray | None]] = []
        at_points = []
        for i, j in itertools.combinations_with_replacement(range(len(along)), 2):
            size = (self.designs[i].n_features, along[i].shape[1], self.designs[j].n_features, along[j].shape[1])
            own = full[places[i], places[j]].reshape(size).transpose(0, 2, 1, 3).reshape(*size[::2], -1)
            products = (1 + (i < j)) * (along[i][:, :, None] * along[j][:, None]).reshape(points, -1).T
            few = len(products) < min(points, size[0] * size[2])
            pairs.append((i, j, own if few else None))
            at_points.append(products if few else own.reshape(-1, len(products)) @ products)
        wide = np.vstack(at_points)
        out = np.empty((records.n, points))
        for rows in records.blocks(ROWS_AT_A_TIME // (len(wide) + points)):
            features = self.features(records[rows], t)
            found = [_quadratic(features[i], own, features[j]) for i, j, own in pairs]
            np.maximum(np.hstack(found) @ wide, 0.0, out=out[rows])
        return np.sqrt(out, out=out)


def _quadratic(left: FloatArray, middle: FloatArray | None, right: FloatArray) -> FloatArray:
    """``Σ_pq left_p middle_pqc right_q`` of each row, shape (n, c); without a middle all products, (n, pq)."""
    if middle is not None and middle.shape[2] < middle.shape[0]:
        p, q, c = middle.shape
        half = (left @ middle.reshape(p, -1)).reshape(len(left), q, c)
        return np.asarray((right[:, None] @ half)[:, 0])
    products = (left[:, :, None] * right[:, None]).reshape(len(left), -1)
    return products if middle is None else np.asarray(products @ middle.reshape(len(products.T), -1))


def times_functions(form: LongForm, features: Sequence[FloatArray], functions: Sequence[FloatArray]) -> FloatArray:
    """Features of records times functions of t of each term (r, p_j), shape (n, r, p)."""
    n, points = len(features[0]), len(functions[0])
    out = np.empty((n, points, form.size))
    for design, place, own, along in zip(form.designs, form.slices, features, functions, strict=True):
        wide = own[:, None, :, None] if own.ndim == 2 else own[..., None]
        if design.kept.all():
            np.multiply(wide, along[:, None], out=out[:, :, place].reshape(n, points, -1, along.shape[1]))
        else:
            out[:, :, place] = (wide * along[:, None]).reshape(n, points, -1)[:, :, design.kept]
    return out


def added_up(
    form: LongForm, features: Sequence[FloatArray], coefficients: FloatArray, t: FloatArray | None = None
) -> FloatArray:
    """Sum of the contributions of all terms, of some records at a time; shape (n, T)."""
    out = np.empty((len(features[0]), len(form.t if t is None else t)))
    for rows in row_blocks(len(out), ADDED_AT_A_TIME // out.shape[1]):
        first, *others = form.contributions([own[rows] for own in features], coefficients, t)
        out[rows] = first
        for part in others:
            out[rows] += part
    return out


def kept_of(designs: Sequence[TermDesign]) -> BoolArray:
    """Which products of a feature and a function of t have coefficients, of all terms one after another."""
    return np.concatenate([design.kept for design in designs])


def feature_slices(designs: Sequence[TermDesign]) -> list[slice]:
    """Where the features of each term stand."""
    return _ends([design.n_features for design in designs])


def _ends(sizes: list[int]) -> list[slice]:
    """Where parts of these sizes stand one after another."""
    return [slice(a, b) for a, b in itertools.pairwise(np.cumsum([0, *sizes]).tolist())]


# Sums over records, and the normal equations that follow from them.


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
    def of(cls, form: LongForm, features: Sequence[FloatArray], y: FloatArray) -> LongSums:
        """Of a block of records, from their features and responses (n, T)."""
        n = len(y)
        a = _side_by_side([f for f in features if f.ndim == 2], (n,))
        z = _side_by_side([f for f in features if f.ndim == 3], (n, len(form.t)))
        by_t = np.ascontiguousarray(z.transpose(1, 2, 0))  # (T, q, n)
        varies = by_t.shape[1] > 0
        return cls(
            n,
            a.T @ a,
            a.T @ y,
            y.sum(axis=0),
            np.einsum("nt,nt->t", y, y),
            by_t @ by_t.swapaxes(1, 2),
            by_t @ a if varies else np.zeros((len(form.t), 0, a.shape[1])),
            (by_t @ np.ascontiguousarray(y.T)[:, :, None])[..., 0] if varies else np.zeros((len(form.t), 0)),
        )

    @classmethod
    def over(cls, form: LongForm, blocks: Iterable[tuple[Sequence[FloatArray], FloatArray]]) -> LongSums:
        """Of all blocks."""
        return reduce(cls.merge, (cls.of(form, features, y) for features, y in blocks))

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
            return np.asarray(np.kron(self.same[at, to], _products(b, c)))
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


ORTHOGONAL = 1e-14
"""Share of the norms of two functions on a grid below which their product is rounding."""


def _products(b: FloatArray, c: FloatArray) -> FloatArray:
    """Products of functions on a grid, exactly 0 of such as an even one and an odd one."""
    products = b.T @ c
    least = ORTHOGONAL * np.outer(np.linalg.norm(b, axis=0), np.linalg.norm(c, axis=0))
    return np.where(np.abs(products) > least, products, 0.0)


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
