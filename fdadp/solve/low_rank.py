"""A precision along the response that knows a few functions only, and what leaving out clusters changes under it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.functional.records import Records
from fdadp.solve.long_form import LongForm

__all__ = ["ROUNDING", "LowRankPrecision", "left_out_on_functions"]

AT_A_TIME = 2**22
"""Numbers that are held at once."""

ROUNDING = 1e-8
"""What a cluster alone determines, it determines without residual: 1 less its leverage is not below this."""


@dataclass(frozen=True)
class LowRankPrecision:
    """The precision ``R R'`` on the grid of the response.

    Attributes
    ----------
    root : ndarray of shape (T, r)
        R.
    """

    root: FloatArray

    @property
    def rank(self) -> int:
        """Number r of functions."""
        return int(self.root.shape[1])

    def of_values(self, values: FloatArray) -> FloatArray:
        """The precision times values on the grid, shape (n, T)."""
        return np.asarray(values @ self.root @ self.root.T)

    def of_rows(self, rows: FloatArray) -> FloatArray:
        """The precision times rows of the long form, shape (n, T, p)."""
        return np.asarray(self.root @ (self.root.T @ rows))

    def loads(self, form: LongForm, records: Records) -> FloatArray:
        """``R' D_i`` of the long-form rows of each record, shape (n, r, p)."""
        flat = [form.scores(records, np.broadcast_to(column, (records.n, column.size))) for column in self.root.T]
        return np.stack(flat, axis=1)


def left_out_on_functions(
    form: LongForm,
    inverse: FloatArray,
    records: Records,
    residuals: FloatArray,
    precision: LowRankPrecision,
    clusters: IntArray | None = None,
) -> FloatArray:
    """By how much coefficients change when a cluster is left out, at the same smoothing parameters, shape (G, p).

    Parameters
    ----------
    form : LongForm
    inverse : ndarray of shape (p, p)
    records : Records
    residuals : ndarray of shape (n, T)
    precision : LowRankPrecision
    clusters : ndarray of shape (n,), optional
        Numbers of clusters; default: each record is one.

    Notes
    -----
    With ``U = R'D_g`` and ``e = R'r_g`` of a cluster, ``A⁻¹ U' (I - U A⁻¹ U')⁻¹ e``: matrices of the size of what is
    seen of a cluster, not of the coefficients.
    """
    seen = residuals @ precision.root
    if clusters is None:
        out = np.empty((records.n, form.size))
        step = max(AT_A_TIME // (precision.rank * form.size), 1)
        unit = (1 + ROUNDING) * np.eye(precision.rank)
        for start in range(0, records.n, step):
            rows = slice(start, min(start + step, records.n))
            loads = precision.loads(form, records[rows])
            moved = loads @ inverse
            left = np.linalg.solve(unit - moved @ loads.swapaxes(1, 2), seen[rows][:, :, None])
            out[rows] = (moved * left).sum(axis=1)
        return out
    out = np.zeros((int(clusters.max()) + 1, form.size))
    order = np.argsort(clusters, kind="stable")
    for own in np.split(order, np.flatnonzero(np.diff(clusters[order])) + 1):
        loads = precision.loads(form, records[own]).reshape(-1, form.size)
        out[clusters[own[0]]] = _of_one(loads, inverse, seen[own].ravel())
    return out


def _of_one(loads: FloatArray, inverse: FloatArray, seen: FloatArray) -> FloatArray:
    moved = loads @ inverse
    if len(loads) <= len(inverse):
        unit = (1 + ROUNDING) * np.eye(len(loads))
        return np.asarray(np.linalg.solve(unit - moved @ loads.T, seen) @ moved)
    unit = (1 + ROUNDING) * np.eye(len(inverse))
    return np.asarray(np.linalg.solve(unit - loads.T @ moved, loads.T @ seen) @ inverse)
