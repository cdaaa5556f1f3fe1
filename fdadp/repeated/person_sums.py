"""Sums over the rows of each person: all that a model of repeated curves needs of them, in one pass.

A row is ``v = (x, c)``: features x and coefficients ``c = Φ'y`` of its curve on k orthonormal functions. In
``c_ij = B'x_ij + b_i + e_ij`` with ``b_i ~ N(0, G)`` and ``e_ij ~ N(0, R)`` these are sufficient, with what the curves
have outside Φ: the scatter of rows about their person's mean, and the scatter of means by the number of rows (turn the
rows of a person by a Helmert matrix: n - 1 contrasts of covariance R, independent of the mean).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from fdadp._common.argument_checks import numbers, whole
from fdadp._common.loaded_later import pd
from fdadp._common.typing import ArrayLike, FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.functional.fpca.face import FaceSmoother

LEAST_K = 4
"""Functions of the smallest basis: one cubic piece."""
CELLS = 2**22
"""Values of curves that are worked on at a time, 32 MB."""


def smooth_functions(grid: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """Orthonormal functions of cubic P-splines on a grid, from smooth to rough, and their roughness.

    Parameters
    ----------
    grid : ndarray of shape (T,)
    k : int
        From 4 to T - 1.

    Returns
    -------
    phi : ndarray of shape (T, k)
        Φ'Φ = I. The first m columns are the smoothest m functions of this space.
    penalty : ndarray of shape (k,)
        Second-difference penalty of each column, increasing; the first two are 0.

    References
    ----------
    Demmler & Reinsch (1975), doi:10.1007/BF01437407; the columns are those of FACE in the other order.
    """
    k = whole(k, "k", least=LEAST_K, most=grid.size - 1)
    smoother = FaceSmoother.on(grid, k - 3)
    phi = np.ascontiguousarray(smoother.basis[:, ::-1])
    if np.abs(phi.T @ phi - np.eye(k)).max() > 1e-12:  # splines between far points of an uneven grid
        phi = np.linalg.qr(phi)[0]
    return phi, np.maximum(smoother.penalty[::-1], 0.0)


@dataclass(frozen=True, eq=False)
class Loads:
    """What P coefficients do to a row where they act through covariates that vary with t: ``c = B'x + Dβ``.

    Attributes
    ----------
    shift : ndarray of shape (k, P)
        What was subtracted from D.
    gram : ndarray of shape (P, P)
        Products of the columns outside Φ, beside the features there.
    right : ndarray of shape (P,)
        Their products with the curves.
    """

    shift: FloatArray
    gram: FloatArray
    right: FloatArray

    @property
    def count(self) -> int:
        """P."""
        return int(self.right.size)

    def outside(self) -> tuple[float, int]:
        """Squares of curves that they explain outside Φ, and their rank there."""
        inverse, rank = scaled_inverse(self.gram)
        return float(self.right @ inverse @ self.right), rank


@dataclass(frozen=True, eq=False)
class MomentBlocks:
    """m moments of rows in blocks: of features x, of coefficients c on k functions, and of the loads D of P others.

    Mean curves are ``B'x + Dβ``. Their coefficients θ are B, feature by feature, and β: p k + P numbers.

    Attributes
    ----------
    xx, xc, cc : ndarray of shape (m, p, p), (m, p, k) and (m, k, k)
    xz : ndarray of shape (m, p, k, P)
    zc : ndarray of shape (m, k, P, k)
    zz : ndarray of shape (m, k, k, P, P)
        Of ``D[i, p] D[j, q]`` in the order i, j, p, q.
    """

    xx: FloatArray
    xc: FloatArray
    cc: FloatArray
    xz: FloatArray
    zc: FloatArray
    zz: FloatArray

    @classmethod
    def of(cls, moments: FloatArray, p: int, k: int) -> MomentBlocks:
        """From moments (m, d, d) of ``(x, c, D)``."""
        m, P = len(moments), (moments.shape[-1] - p - k) // k
        x, c, z = slice(p), slice(p, p + k), slice(p + k, None)
        zz = moments[:, z, z].reshape(m, k, P, k, P).transpose(0, 1, 3, 2, 4)
        return cls(
            moments[:, x, x],
            moments[:, x, c],
            moments[:, c, c],
            moments[:, x, z].reshape(m, p, k, P),
            moments[:, z, c].reshape(m, k, P, k),
            np.ascontiguousarray(zz),
        )

    def normal(self, weights: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Normal equations of θ where the moments have precisions (m, k, k): matrix, right side, squares of c."""
        m, _, k, P = self.xz.shape
        size = self.xx.shape[1] * k
        gram = np.empty((size + P, size + P))
        gram[:size, :size] = np.einsum("mab,mij->aibj", self.xx, weights, optimize=True).reshape(size, size)
        gram[:size, size:] = np.einsum("majq,mij->aiq", self.xz, weights, optimize=True).reshape(size, P)
        gram[size:, :size] = gram[:size, size:].T
        gram[size:, size:] = (weights.ravel() @ self.zz.reshape(m * k * k, P * P)).reshape(P, P)
        of_x = np.einsum("mal,mil->ai", self.xc, weights, optimize=True)
        of_z = np.einsum("mjpl,mjl->p", self.zc, weights, optimize=True)
        return gram, np.concatenate((of_x.ravel(), of_z)), float((weights * self.cc).sum())

    def left(self, theta: FloatArray, spread: FloatArray | None = None) -> FloatArray:
        """MomentBlocks (m, k, k) of c about its mean at θ; with a covariance of θ, what that adds is counted."""
        (m, p, k, P), size = self.xz.shape, self.xx.shape[1] * self.cc.shape[1]
        S = np.outer(theta, theta) if spread is None else np.outer(theta, theta) + spread
        crossed = np.einsum("ai,maj->mij", theta[:size].reshape(p, k), self.xc)
        crossed = crossed + np.einsum("mipj,p->mij", self.zc, theta[size:])
        S_xx, S_xz = S[:size, :size].reshape(p, k, p, k), S[:size, size:].reshape(p, k, P)
        both = np.einsum("majq,aiq->mij", self.xz, S_xz, optimize=True)
        means = np.einsum("mab,aibj->mij", self.xx, S_xx, optimize=True) + both + both.transpose(0, 2, 1)
        means += (self.zz.reshape(m * k * k, P * P) @ S[size:, size:].ravel()).reshape(m, k, k)
        return np.asarray(self.cc - crossed - crossed.transpose(0, 2, 1) + means)


def scaled_inverse(gram: FloatArray) -> tuple[FloatArray, int]:
    """Generalised inverse of products of columns, whatever their sizes, and their rank."""
    size = np.sqrt(np.where(np.diag(gram) > 0, np.diag(gram), 1.0))
    values, vectors = np.linalg.eigh(gram / size / size[:, None])
    own = values > 1e-10 * max(float(values[-1]), 1e-300) if len(values) else np.zeros(0, dtype=bool)
    half = vectors[:, own] / size[:, None] / np.sqrt(values[own])
    return half @ half.T, int(own.sum())


@dataclass(frozen=True, eq=False)
class PersonSums:
    """What one pass over the rows of all persons leaves: I persons, N rows, p features, k functions, T points.

    With loads of P coefficients a row is ``v = (x, c, D)``, and d is p + k + k P; else ``v = (x, c)``.

    Attributes
    ----------
    phi : ndarray of shape (T, k)
    intercept : bool
        Whether the first feature is a constant; then the other features and the curves are about a shift.
    within : ndarray of shape (d, d)
        ``Σ_ij (v_ij - v̄_i)(v_ij - v̄_i)'``.
    sizes : ndarray of shape (D,)
        Distinct numbers of rows n of a person, increasing.
    between : ndarray of shape (D, d, d)
        ``Σ n v̄_i v̄_i'`` over persons with n rows.
    persons : ndarray of shape (D,)
        How many persons have n rows.
    energy : float
        Sum of squares of curves outside Φ.
    products : ndarray of shape (p, T)
        ``F'Y`` of features and curves.
    shift_x, shift_y : ndarray of shape (p,) and (T,)
        What was subtracted from features and curves.
    ids : pandas.Index of length I
    sums : ndarray of shape (I, d)
        Sum of v over a person's rows.
    counts : ndarray of shape (I,)
    cross : ndarray of shape (I, p, d), optional
        ``Σ_j x_ij v_ij'`` of each person, for standard errors by person.
    loads : Loads, optional
    """

    phi: FloatArray
    intercept: bool
    within: FloatArray
    sizes: IntArray
    between: FloatArray
    persons: IntArray
    energy: float
    products: FloatArray
    shift_x: FloatArray
    shift_y: FloatArray
    ids: pd.Index[Any]
    sums: FloatArray
    counts: IntArray
    cross: FloatArray | None = None
    loads: Loads | None = None

    @property
    def p(self) -> int:
        """Number of features, the constant among them."""
        return len(self.products)

    @property
    def k(self) -> int:
        """Number of functions."""
        return int(self.phi.shape[1])

    @property
    def n_rows(self) -> int:
        """N."""
        return int(self.counts.sum())

    @property
    def n_persons(self) -> int:
        """I."""
        return int(self.counts.size)

    @property
    def total(self) -> FloatArray:
        """``Σ_ij v_ij v_ij'``, shape (d, d)."""
        return np.asarray(self.within + self.between.sum(axis=0))

    @property
    def means(self) -> FloatArray:
        """Means of v of each person, shape (I, d)."""
        return np.asarray(self.sums / self.counts[:, None])

    @cached_property
    def moments(self) -> MomentBlocks:
        """Within persons, then between those of each number of rows."""
        return MomentBlocks.of(np.concatenate((self.within[None], self.between)), self.p, self.k)

    @cached_property
    def seen(self) -> FloatArray:
        """Directions of θ (p k + P, r) of which rows know something; the identity where that is all."""
        assert self.loads is not None
        gram, P = self.moments.normal(np.tile(np.eye(self.k), (1 + len(self.sizes), 1, 1)))[0], self.loads.count
        if self.noise_variance() > 0:
            gram[-P:, -P:] += self.loads.gram
        size = np.sqrt(np.where(np.diag(gram) > 0, np.diag(gram), 1.0))
        values, vectors = np.linalg.eigh(gram / size / size[:, None])
        own = values > 1e-10 * values[-1]
        return np.eye(len(gram)) if own.all() else vectors[:, own] / size[:, None]

    @property
    def rank_within(self) -> int:
        """Rank of the features' scatter within persons, and of what loads do along one direction of Φ."""
        p, k = self.p, self.k
        within, total = self.within[:p, :p], np.diag(self.total)[:p]
        if self.loads is not None:
            P, some = self.loads.count, np.cos(1.0 + np.arange(k))  # no direction is special
            onto = np.zeros((len(self.within), p + P))
            onto[:p, :p], onto[p + k :, p:] = np.eye(p), np.kron(some[:, None], np.eye(P))
            within, total = onto.T @ self.within @ onto, np.diag(onto.T @ self.total @ onto)
        return rank_of(within, total)

    @property
    def spare_rows(self) -> int:
        """``N - I - rank``: contrasts within persons that features leave for the covariance of rows."""
        return self.n_rows - self.n_persons - self.rank_within

    def split(self, moment: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Blocks xx, xc and cc of a moment (..., d, d)."""
        x, c = slice(self.p), slice(self.p, self.p + self.k)
        return moment[..., x, x], moment[..., x, c], moment[..., c, c]

    @property
    def rows_scatter(self) -> FloatArray:
        """Scatter of coefficients within persons about their regression on the features there, shape (k, k)."""
        return self.about_features(self.within)

    def about_features(self, moment: FloatArray) -> FloatArray:
        """A moment (d, d) of coefficients about their regression on features and loads in it, shape (k, k)."""
        if self.loads is not None:
            own = MomentBlocks.of(moment[None], self.p, self.k)
            gram, right, _ = own.normal(np.eye(self.k)[None])
            return np.asarray(own.left(scaled_inverse(gram)[0] @ right)[0])
        xx, xc, cc = self.split(moment)
        # Features may have equal means for all persons, as days of the week in whole weeks have.
        return np.asarray(cc - xc.T @ np.linalg.pinv(xx, rcond=1e-10) @ xc)

    def noise_variance(self) -> float:
        """Variance of white noise: what the regression on the features leaves outside Φ, a point and row."""
        return self._noise

    @cached_property
    def _noise(self) -> float:
        outside = self.products - self.products @ self.phi @ self.phi.T
        xx, _, cc = self.split(self.total)
        explained = float(np.einsum("at,at->", outside, np.linalg.lstsq(xx, outside, rcond=1e-12)[0]))
        by_loads, rank = (0.0, 0) if self.loads is None else self.loads.outside()
        left = (self.n_rows - self.p) * (len(self.phi) - self.k) - rank
        # Less than this is rounding of sums of squares: curves that were smoothed have no noise.
        least = 1e-13 * (self.energy + float(np.trace(cc)))
        found = self.energy - explained - by_loads
        return found / left if left > 0 and found > least else 0.0

    def loads_along(self, along: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Products of loads, and of loads and coefficients, along a projection (k, k) and beside the features."""
        own = MomentBlocks.of(self.total[None], self.p, self.k)
        gram, right, _ = own.normal(along[None])
        size, xz, P = self.p * self.k, own.xz[0], right.size - self.p * self.k
        inverse = scaled_inverse(own.xx[0])[0]
        turned = np.einsum("ij,ab,bjq->aiq", along, inverse, xz, optimize=True).reshape(size, P)
        beside = (inverse @ own.xc[0] @ along).ravel()
        flat = xz.reshape(size, P)
        return gram[size:, size:] - flat.T @ turned, right[size:] - flat.T @ beside

    def with_loads_on_all(self, gram: FloatArray, right: FloatArray) -> PersonSums:
        """With products of loads, and of loads and curves, over all T points and beside the features there."""
        assert self.loads is not None
        inside = self.loads_along(np.eye(self.k))
        return replace(self, loads=replace(self.loads, gram=gram - inside[0], right=right - inside[1]))

    def turned(self, turn: FloatArray) -> PersonSums:
        """The same sums on the functions ``Φ U``, U (k, m) of orthonormal columns; the rest counts as outside."""
        p, k, m, loads = self.p, self.k, turn.shape[1], self.loads
        P = 0 if loads is None else loads.count
        full = np.zeros((p + k + k * P, p + m + m * P))
        full[:p, :p], full[p : p + k, p : p + m], full[p + k :, p + m :] = np.eye(p), turn, np.kron(turn, np.eye(P))
        before = self.split(self.total)[2]
        if loads is not None:
            gram, right = self.loads_along(np.eye(k) - turn @ turn.T)
            loads = Loads(turn.T @ loads.shift, loads.gram + gram, loads.right + right)
        return replace(
            self,
            phi=self.phi @ turn,
            within=full.T @ self.within @ full,
            between=full.T @ self.between @ full,
            energy=self.energy + max(float(np.trace(before) - np.trace(turn.T @ before @ turn)), 0.0),
            sums=self.sums @ full,
            cross=None if self.cross is None else self.cross @ full,
            loads=loads,
        )

    def first(self, k: int) -> PersonSums:
        """The same sums on the first k functions."""
        return self if k == self.k else self.turned(np.eye(self.k)[:, :k])


def rank_of(gram: FloatArray, scale: FloatArray) -> int:
    """Rank of a scatter (p, p) beside the sums of squares (p,) that its columns had."""
    if not len(gram):
        return 0
    size = np.sqrt(np.where(scale > 0, scale, 1.0))
    return int((np.linalg.eigvalsh(gram / size / size[:, None]) > 1e-10).sum())


class PersonPass:
    """Adds chunks of rows in any order; a person's rows may lie in several chunks, of several passes that are merged.

    Parameters
    ----------
    phi : ndarray of shape (T, k)
        Orthonormal functions on the grid.
    n_features : int
        Columns of X, without the constant.
    intercept : bool
        Put a constant before them. The first chunk's means are then subtracted from the curves and columns of all
        chunks, which keeps digits. Without a constant nothing is subtracted: that would be another model.
    cross : bool or int
        Keep ``X_i'X_i`` and ``X_i'C_i`` of each person, I p (p + k) numbers; or only rows of the first features.

    Raises
    ------
    InputError
        Columns of phi that are not orthonormal.

    Examples
    --------
    >>> import numpy as np
    >>> phi, _ = smooth_functions(np.linspace(0, 1, 30), 5)
    >>> Y = np.random.default_rng(0).normal(size=(6, 30))
    >>> found = PersonPass(phi).add(None, Y, ["a", "b", "a", "b", "c", "a"]).sums()
    >>> found.counts.tolist(), found.ids.tolist(), found.sizes.tolist()
    ([3, 2, 1], ['a', 'b', 'c'], [1, 2, 3])
    """

    def __init__(
        self, phi: ArrayLike, n_features: int = 0, *, intercept: bool = True, cross: bool | int = False
    ) -> None:
        self.phi = numbers(phi, "phi")
        T, k = self.phi.shape
        if np.abs(self.phi.T @ self.phi - np.eye(k)).max() > 1e-10:
            raise InputError("phi must have orthonormal columns, got others")
        self.intercept, self.p = intercept, n_features + intercept
        self.crossed = self.p * cross if isinstance(cross, bool) else cross + intercept
        d = self.p + k
        self._places: dict[Any, int] = {}
        self._sums, self._counts = np.zeros((0, d)), np.zeros(0, dtype=np.int64)
        self._cross = np.zeros((0, self.crossed * d))
        self._total, self._energy, self._products = np.zeros((d, d)), 0.0, np.zeros((self.p, T))
        self._shift: tuple[FloatArray, FloatArray] | None = None

    def add(self, X: ArrayLike | None, Y: ArrayLike, ids: Sequence[Any] | Any) -> PersonPass:
        """Add rows.

        Parameters
        ----------
        X : array_like of shape (m, n_features) or None
        Y : array_like of shape (m, T)
        ids : sequence of length m
            Who each row is of; anything that can be hashed.

        Raises
        ------
        InputError
            Shapes that do not fit, values that are not finite, missing ids.
        """
        curves = np.asarray(Y)
        features = np.zeros((len(curves), 0)) if X is None else numbers(X, "X")
        if curves.ndim != 2 or curves.shape[1] != len(self.phi):
            raise InputError(f"Y must have shape (m, {len(self.phi)}), got {curves.shape}")
        if features.shape != (len(curves), self.p - self.intercept) or len(ids) != len(curves):
            raise InputError(
                f"X must have shape ({len(curves)}, {self.p - self.intercept}) and ids {len(curves)} entries, as Y has "
                f"rows, got {features.shape} and {len(ids)}"
            )
        if not len(curves):
            return self
        rows = self._rows_of(ids)
        step = max(CELLS // len(self.phi), 1)
        for at in range(0, len(curves), step):
            part = slice(at, at + step)
            self._add(features[part], curves[part], rows[part])
        return self

    def _rows_of(self, ids: Any) -> IntArray:
        """Place of each row's person; new persons get the next places."""
        codes, found = pd.factorize(ids if isinstance(ids, np.ndarray | pd.Index | pd.Series) else pd.Series(list(ids)))
        missing = int((codes < 0).sum())
        if missing:
            raise InputError(f"groups must say of each row whose it is: missing in {missing} rows")
        places = self._places
        at = np.array([places.setdefault(key, len(places)) for key in found.tolist()], dtype=np.int64)
        if len(places) > len(self._counts):
            more = max(len(places), 2 * len(self._counts)) - len(self._counts)
            self._sums = np.vstack((self._sums, np.zeros((more, self._sums.shape[1]))))
            self._counts = np.concatenate((self._counts, np.zeros(more, dtype=np.int64)))
            if self.crossed:
                self._cross = np.vstack((self._cross, np.zeros((more, self._cross.shape[1]))))
        return np.asarray(at[codes])

    def _add(self, features: FloatArray, curves: FloatArray, rows: IntArray) -> None:
        if self._shift is None:
            zero = np.zeros(self.p), np.zeros(len(self.phi))
            self._shift = self._means(features, curves) if self.intercept else zero
        shift_x, shift_y = self._shift
        values = curves - shift_y
        if self.intercept:
            features = np.column_stack((np.ones(len(features)), features))
        v = np.hstack((features - shift_x, values @ self.phi))
        energy = float(np.einsum("ij,ij->", values, values))
        if not (np.isfinite(energy) and np.isfinite(v).all()):
            raise InputError("X and Y must be finite, got values that are not")
        self._total += v.T @ v
        self._energy += energy - float(np.einsum("ij,ij->", v[:, self.p :], v[:, self.p :]))
        self._products += v[:, : self.p].T @ values
        own, local = np.unique(rows, return_inverse=True)
        adder = csr_array((np.ones(len(v)), local, np.arange(len(v) + 1)), shape=(len(v), own.size)).T
        self._sums[own] += adder @ v
        self._counts[own] += np.bincount(local, minlength=own.size)
        if self.crossed:
            self._cross[own] += adder @ (v[:, : self.crossed, None] * v[:, None, :]).reshape(len(v), -1)

    def _means(self, features: FloatArray, curves: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.concatenate(([0.0], features.mean(axis=0))), np.asarray(curves.mean(axis=0), dtype=np.float64)

    @property
    def n_rows(self) -> int:
        """Rows that were added."""
        return int(self._counts.sum())

    def merge(self, other: PersonPass) -> PersonPass:
        """Add what another pass over other rows found; the same person may be in both.

        Raises
        ------
        InputError
            A pass with other functions or features.
        """
        if (self.p, self.intercept, self.crossed) != (other.p, other.intercept, other.crossed) or not (
            self.phi.shape == other.phi.shape and np.array_equal(self.phi, other.phi)
        ):
            raise InputError("passes can be merged that have the same functions and features, got others")
        if other._shift is None:
            return self
        if self._shift is None:
            self._shift = other._shift
        moved = other._about(*self._shift)
        rows = self._rows_of(pd.Series(list(other._places), dtype=object))
        m = len(other._places)
        self._sums[rows] += moved._sums[:m]
        self._counts[rows] += moved._counts[:m]
        if self.crossed:
            self._cross[rows] += moved._cross[:m]
        self._total += moved._total
        self._energy += moved._energy
        self._products += moved._products
        return self

    def _about(self, shift_x: FloatArray, shift_y: FloatArray) -> PersonPass:
        """The same sums about another shift."""
        assert self._shift is not None
        out = PersonPass(self.phi, self.p - self.intercept, intercept=self.intercept)
        out.crossed = self.crossed
        dx, dy = self._shift[0] - shift_x, self._shift[1] - shift_y
        d = np.concatenate((dx, dy @ self.phi))
        n = self._counts[:, None]
        out._counts, out._shift, out._places = self._counts, (shift_x, shift_y), self._places
        out._sums = self._sums + n * d
        if not self.intercept:  # both shifts are 0
            out._total, out._energy, out._products, out._cross = self._total, self._energy, self._products, self._cross
            return out
        count, sum_v, sum_y = float(self._counts.sum()), self._total[0], self._products[0]
        out._total = self._total + np.outer(sum_v, d) + np.outer(d, sum_v) + count * np.outer(d, d)
        out._products = self._products + np.outer(dx, sum_y) + np.outer(sum_v[: self.p] + count * dx, dy)
        beyond = dy - self.phi @ (dy @ self.phi)
        out._energy = self._energy + float(2 * beyond @ sum_y + count * beyond @ beyond)
        if self.crossed:
            first = slice(self.crossed)
            own = self._sums[:, first, None] * d + dx[first, None] * self._sums[:, None, :]
            out._cross = self._cross + (own + n[:, :, None] * (dx[first, None] * d)).reshape(len(n), -1)
        return out

    def sums(self, features: IntArray | None = None, loads: int = 0) -> PersonSums:
        """All sums as one value.

        Parameters
        ----------
        features : ndarray of int, optional
            Columns of X that are kept; default all but loads.
        loads : int
            Number P of coefficients whose loads on Φ, (k, P) row by row, are the last columns of X. Their sums outside
            of Φ are 0 until :meth:`PersonSums.with_loads_on_all`.

        Raises
        ------
        InputError
            No row was added, or features that are linear functions of each other.
        """
        if self._shift is None:
            raise InputError("Y must have at least one row, got none")
        k = self.phi.shape[1]
        plain = self.p - k * loads
        own = np.arange(plain - self.intercept) if features is None else np.asarray(features)
        kept = np.concatenate((np.arange(int(self.intercept)), own + self.intercept)).astype(np.int64)
        loaded = np.arange(plain, self.p)
        v = np.concatenate((kept, np.arange(self.p, len(self._total)), loaded))
        m, p = len(self._places), kept.size
        sums, counts, total = self._sums[:m][:, v], self._counts[:m].copy(), self._total[np.ix_(v, v)]
        shift, of_loads = self._shift[0][kept], self._shift[0][loaded]
        sizes = np.unique(counts)
        between = np.stack([(own := sums[counts == n]).T @ own / n for n in sizes])
        xx = total[:p, :p]
        # A constant column differs from its mean by rounding.
        if rank_of(xx, np.maximum(np.diag(xx), 1e-14 * counts.sum() * shift**2)) < p:
            raise InputError("features must not be linear functions of each other (a constant is among them), got some")
        cross = self._cross[:m].reshape(m, self.crossed, -1)[:, kept[:, None], v] if self.crossed else None
        return PersonSums(
            phi=self.phi,
            intercept=self.intercept,
            within=total - between.sum(axis=0),
            sizes=sizes,
            between=between,
            persons=np.array([(counts == n).sum() for n in sizes]),
            energy=max(self._energy, 0.0),
            products=self._products[kept],
            shift_x=shift,
            shift_y=self._shift[1],
            ids=pd.Index(list(self._places), tupleize_cols=False),
            sums=sums,
            counts=counts,
            cross=cross,
            loads=Loads(of_loads.reshape(k, loads), np.zeros((loads, loads)), np.zeros(loads)) if loads else None,
        )
