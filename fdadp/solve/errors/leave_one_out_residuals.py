"""What a fit left of each curve, and what a curve says of the coefficients: all that leaving curves out needs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fdadp._common.typing import BoolArray, FloatArray, IntArray
from fdadp.responses import PointwiseResponse
from fdadp.solve.errors.curve_precisions import CurvePrecision, LearnedPrecision, LowRankPrecision
from fdadp.solve.fit.observations import Observations
from fdadp.solve.form.long_form_design import LongForm
from fdadp.solve.form.response_families import Family
from fdadp.terms.records import Records

AT_A_TIME = 2**21
"""Numbers of long-form rows, and of products of them, that are held at once."""

Precision = FloatArray | LowRankPrecision | CurvePrecision


@dataclass(frozen=True)
class Residuals:
    """What a fit left of the observations, on the scale of its linear predictor.

    Attributes
    ----------
    records : Records
        Of the training rows.
    values : ndarray of shape (n, T) or (N,)
        On the grid of the response; or one by one, of observations at points of their own.
    weights : ndarray of the same shape, or None
        Of the fit; 0 where nothing was observed. None: 1.
    points : PointwiseResponse or None
        Records and points of such observations.
    precision : ndarray of shape (T, T), LowRankPrecision, CurvePrecision or None
        Working precision of the fit along a curve: on the grid, where there are no weights; or for each curve at its
        own points, with the weights.
    learned : LearnedPrecision or None
        What that was learned from, where it was from the curves.
    """

    records: Records
    values: FloatArray
    weights: FloatArray | None = None
    points: PointwiseResponse | None = None
    precision: Precision | None = None
    learned: LearnedPrecision | None = None

    @classmethod
    def of(
        cls,
        observed: Observations,
        eta: FloatArray,
        family: Family,
        precision: Precision | None = None,
        learned: LearnedPrecision | None = None,
        into: FloatArray | None = None,
    ) -> Residuals:
        """What linear predictors leave of observations: working residuals, where the family has a link.

        Of whole Gaussian responses they are written `into` an array, which may be that of the predictors.
        """
        if observed.whole and family.name == "gaussian":
            left = np.subtract(observed.y, eta, out=into)
            return cls(observed.records, left, None, observed.points, precision, learned)
        used = observed.used
        seen = used > 0
        working = family.working(np.where(seen, observed.y, family.placeholder), eta)
        left = np.where(seen, working.residual / np.maximum(working.fisher, 1e-300), 0.0)
        return cls(observed.records, left, used * working.fisher, observed.points, precision, learned)

    @classmethod
    def together(cls, parts: Sequence[Residuals]) -> Residuals:
        """Residuals on a grid of all records of several parts, of one fit."""
        weights = None
        if any(part.weights is not None for part in parts):
            weights = np.concatenate([np.ones_like(p.values) if p.weights is None else p.weights for p in parts])
        records = Records.together([part.records for part in parts])
        return cls(records, np.concatenate([part.values for part in parts]), weights, None, parts[0].precision)

    @property
    def n(self) -> int:
        """Number of records."""
        return self.records.n

    def scores(self, form: LongForm) -> FloatArray:
        """``D_i' W r_i`` of each record, D_i its long-form rows, shape (n, p)."""
        weighted = self._weighted()
        out = np.zeros((self.records.n, form.size))
        for part in self._parts(np.arange(self.records.n), form):
            if self.points is None:
                out[part] = form.scores(self.records[part], weighted[part])
            else:
                which, rows, own = self._rows_at(part, form)
                np.add.at(out, part[own], rows * weighted[which][:, None])
        return out

    def grams(self, form: LongForm, rows: IntArray) -> Iterator[tuple[IntArray, FloatArray]]:
        """``D_i' W D_i`` of some records, a part of them at a time: which, and the products (k, p, p)."""
        for part in self._parts(rows, form):
            if self.points is None:
                d = form.rows(self.records[part])
                yield part, np.ascontiguousarray(self._weighted_rows(part, d).swapaxes(1, 2)) @ d
                continue
            which, d, own = self._rows_at(part, form)
            if isinstance(self.precision, CurvePrecision):
                left = self.precision.times(d, which)
            else:
                left = d if self.weights is None else d * self.weights[which][:, None]
            out = np.zeros((len(part), form.size, form.size))
            for i in range(len(part)):
                out[i] = left[own == i].T @ d[own == i]
            yield part, out

    def rank(self, form: LongForm) -> int:
        """Numbers that the products of the long form of a record are made of; those of points of its own: all p."""
        if self.points is not None or (isinstance(self.precision, CurvePrecision) and not form.separable):
            return form.size
        if isinstance(self.precision, CurvePrecision):
            return int(form.directions.shape[1])
        if isinstance(self.precision, LowRankPrecision):
            return self.precision.rank
        return form.directions.shape[1] if form.separable else form.t.size

    def loads(self, form: LongForm) -> Callable[[IntArray], tuple[FloatArray, FloatArray]]:
        """U (k, r, p) and e (k, r) of some records, by their numbers: ``D_i'WD_i = U'U`` and ``D_i'Wr_i = U'e``."""
        own, weights = self.precision, self.weights
        if own is None and self.points is not None:
            return functools.partial(self._loads_at_points, form)
        if own is None and weights is not None:
            return functools.partial(self._weighted_loads, form, weights)
        if isinstance(own, CurvePrecision):
            return functools.partial(self._loads_of_curves, form, own)
        if not isinstance(own, LowRankPrecision):
            basis = form.directions if form.separable else np.eye(form.t.size)
            known = basis if own is None else own @ basis
            sizes, turn = np.linalg.eigh(basis.T @ known)
            sizes = np.sqrt(np.where(sizes > 1e-12 * sizes[-1], sizes, 0.0))
            own = LowRankPrecision(basis @ turn * sizes)
            seen = self.values @ known @ (turn * np.divide(1, sizes, out=np.zeros_like(sizes), where=sizes > 0))
        else:
            seen = self.values @ own.root
        functions = own

        def plain(part: IntArray) -> tuple[FloatArray, FloatArray]:
            some = self.records[part]
            if form.separable:
                return functions.loads(form, some), seen[part]
            return functions.root.T @ form.rows(some), seen[part]

        return plain

    def _weighted_loads(self, form: LongForm, weights: FloatArray, part: IntArray) -> tuple[FloatArray, FloatArray]:
        """:meth:`loads` of observations on the grid that have weights."""
        root, records = np.sqrt(weights[part]), self.records[part]
        left = np.where(root > 0, self.values[part], 0.0) * root
        if not form.separable:
            return form.rows(records) * root[:, :, None], left
        basis, own = np.linalg.qr(root[:, :, None] * form.directions)
        return own @ LowRankPrecision(form.directions).loads(form, records), (left[:, None] @ basis)[:, 0]

    def _loads_at_points(self, form: LongForm, part: IntArray) -> tuple[FloatArray, FloatArray]:
        """:meth:`loads` of curves at points of their own; zeros stand where a curve has fewer than others."""
        assert self.points is not None
        which, rows, own = self._rows_at(part, form)
        root = np.ones(len(which)) if self.weights is None else np.sqrt(self.weights[which])
        rows, left = rows * root[:, None], np.where(root > 0, self.values[which], 0.0) * root
        most = min(int(np.bincount(self.points.record).max()), form.size)
        u, e = np.zeros((len(part), most, form.size)), np.zeros((len(part), most))
        for i in range(len(part)):
            d, seen = rows[own == i], left[own == i]
            if len(d) > most:
                basis, d = np.linalg.qr(d)
                seen = seen @ basis
            u[i, : len(d)], e[i, : len(d)] = d, seen
        return u, e

    def _loads_of_curves(
        self, form: LongForm, precision: CurvePrecision, part: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """:meth:`loads` where each curve has a precision of its own, by the functions that all rows are made of."""
        basis, n_points = form.directions, form.t.size
        which = (part[:, None] * n_points + np.arange(n_points)).ravel()
        known = precision.times(np.tile(basis, (len(part), 1)), which).reshape(len(part), n_points, -1)
        sizes, turn = np.linalg.eigh(basis.T @ known)
        firm = sizes > 1e-12 * np.maximum(sizes[:, -1:], 1e-300)
        root = turn * np.sqrt(np.where(firm, sizes, 0.0))[:, None]
        seen = (np.einsum("ntr,nt->nr", known, self.values[part])[:, None] @ turn)[:, 0]
        rows = LowRankPrecision(basis).loads(form, self.records[part])
        return root.swapaxes(1, 2) @ rows, np.where(firm, seen / np.sqrt(np.where(firm, sizes, 1.0)), 0.0)

    def pulls(self, form: LongForm, clusters: IntArray) -> FloatArray | None:
        """What leaving out clusters does to the scores of all others through a precision that was learned, (G, p)."""
        if self.learned is None:
            return None
        plain = replace(self, weights=None, precision=None, learned=None)

        def scores(values: FloatArray) -> FloatArray:
            return replace(plain, values=values.reshape(self.values.shape)).scores(form)

        return self.learned.pulls(scores, self.values.ravel(), clusters)

    def without(self, form: LongForm, changes: FloatArray) -> FloatArray:
        """Residuals of a record under coefficients that do not know it, shape of the values; `changes` (n, p)."""
        out = self.values.copy()
        for part in self._parts(np.arange(self.records.n), form):
            if self.points is None:
                out[part] += np.einsum("ntp,np->nt", form.rows(self.records[part]), changes[part])
            else:
                which, rows, own = self._rows_at(part, form)
                out[which] += np.einsum("ij,ij->i", rows, changes[part][own])
        return out

    def _weighted(self) -> FloatArray:
        """The values times the weights, or the precision, of the fit."""
        if isinstance(self.precision, CurvePrecision):
            return self.precision.times(self.values.reshape(-1, 1)).reshape(self.values.shape)
        if isinstance(self.precision, LowRankPrecision):
            return self.precision.of_values(self.values)
        if self.precision is not None:
            return np.asarray(self.values @ self.precision)
        return self.values if self.weights is None else np.where(self.weights > 0, self.values, 0) * self.weights

    def _weighted_rows(self, part: IntArray, d: FloatArray) -> FloatArray:
        """The same of long-form rows on the grid of some records, shape (k, T, p)."""
        if isinstance(self.precision, CurvePrecision):
            size = d.shape[1]
            which = (part[:, None] * size + np.arange(size)).ravel()
            return self.precision.times(d.reshape(-1, d.shape[2]), which).reshape(d.shape)
        if isinstance(self.precision, LowRankPrecision):
            return self.precision.of_rows(d)
        if self.precision is not None:
            return np.asarray(np.matmul(self.precision, d))
        return d if self.weights is None else d * self.weights[part][:, :, None]

    def size(self, form: LongForm) -> int:
        """Numbers of the long-form rows of all observations, or of what a precision of low rank sees of them."""
        own = self.precision
        return (self.n * own.rank if isinstance(own, LowRankPrecision) else self.values.size) * form.size

    def _parts(self, rows: IntArray, form: LongForm) -> Iterator[IntArray]:
        step = max(AT_A_TIME // (max(self.values.size // self.records.n, form.size, 1) * form.size), 1)
        for start in range(0, len(rows), step):
            yield rows[start : start + step]

    def _rows_at(self, part: IntArray, form: LongForm) -> tuple[IntArray, FloatArray, IntArray]:
        """Numbers of the observations of some records, their long-form rows, and the place of the record in `part`."""
        assert self.points is not None
        bounds = np.searchsorted(self.points.record, np.stack((part, part + 1)))
        which = np.concatenate([np.arange(low, high) for low, high in bounds.T])
        own = np.repeat(np.arange(len(part)), bounds[1] - bounds[0])
        return which, form.rows_at(self.records[part], own, self.points.t[which]), own


def independent_share(left: FloatArray, seen: BoolArray, edf: float) -> float:
    """Return how many points along a curve its errors are worth, as a share of its points: 1 if they are independent.

    Box's effective number of points of a covariance K is ``tr(K)² / tr(K²)``. Both traces come from pairs of different
    curves, so that heavy tails of whole curves do no harm. Only points that both curves of a pair have count.

    Parameters
    ----------
    left : ndarray of shape (n, T)
        Residuals, 0 where nothing was observed.
    seen : ndarray of bool, shape (n, T)
    edf : float
        Effective degrees of freedom of the fit, which tie residuals of different curves together.

    Returns
    -------
    float
        NaN if it cannot be told: no pair of curves has points in common, or all residuals are 0.

    References
    ----------
    Box (1954), Some theorems on quadratic forms applied in the study of analysis of variance problems, II,
    doi:10.1214/aoms/1177728717.
    """
    n, used = len(left), seen.astype(np.float64)
    sizes, common, pairs = left**2 @ used.T, used @ used.T, ~np.eye(n, dtype=bool)
    traces = sizes * sizes.T
    tied = edf / ((n - 1) * (used.sum() - edf)) if used.sum() > edf and n > 1 else 0.0
    squares = (left @ left.T) ** 2 - tied * traces
    whole = float((squares * common)[pairs].sum())
    return float(traces[pairs].sum()) / whole if whole > 0 else float("nan")
