"""A precision along the response that knows a few functions only, and what leaving out clusters changes under it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.functional.tables.records import Records
from fdadp.solve.form.long_form import LongForm

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


def left_out_of_few(
    loads: Callable[[IntArray], tuple[FloatArray, FloatArray]],
    inverse: FloatArray,
    rank: int,
    clusters: IntArray,
    pulls: FloatArray | None = None,
) -> FloatArray:
    """By how much coefficients change when a cluster is left out, where a curve shows few functions, shape (G, p).

    Parameters
    ----------
    loads : callable
        Of the numbers of some records (k,) what they know of coefficients, U of shape (k, r, p), and what the fit left
        of that, e of shape (k, r): their products of the long form are ``U'U`` and their scores ``U'e``.
    inverse : ndarray of shape (p, p)
    rank : int
        r.
    clusters : ndarray of shape (n,)
        Numbers of clusters, from 0.
    pulls : ndarray of shape (G, p), optional
        By how much scores of all others change as well.

    Notes
    -----
    ``A⁻¹ U' (I - U A⁻¹ U')⁻¹ e``, U and e those of all records of a cluster: matrices of the size of what is seen of a
    cluster, not of the coefficients. Pulls v add ``-(I + A⁻¹U'(I - UA⁻¹U')⁻¹U) A⁻¹ v``.
    """
    out = np.zeros((int(clusters.max()) + 1, len(inverse)))
    drawn = out if pulls is None else pulls @ inverse
    order = np.argsort(clusters, kind="stable")
    each = np.split(order, np.flatnonzero(np.diff(clusters[order])) + 1)
    if len(each) < len(order):
        for own in each:
            u, e = loads(own)
            u, place = u.reshape(-1, len(inverse)), clusters[own[0]]
            out[place] = _of_one(u, inverse, e.ravel() - u @ drawn[place])
        return out if pulls is None else out - drawn
    step = max(AT_A_TIME // (rank * len(inverse)), 1)
    unit = (1 + ROUNDING) * np.eye(rank)
    for start in range(0, len(order), step):
        part = order[start : start + step]
        u, e = loads(part)
        moved = (u.reshape(-1, len(inverse)) @ inverse).reshape(u.shape)
        place = clusters[part]
        e = e if pulls is None else e - np.einsum("nrp,np->nr", u, drawn[place])
        left = np.linalg.solve(unit - moved @ u.swapaxes(1, 2), e[:, :, None])
        out[place] = np.einsum("nrp,nr->np", moved, left[:, :, 0])
    return out if pulls is None else out - drawn


def _of_one(loads: FloatArray, inverse: FloatArray, seen: FloatArray) -> FloatArray:
    moved = loads @ inverse
    if len(loads) <= len(inverse):
        unit = (1 + ROUNDING) * np.eye(len(loads))
        return np.asarray(np.linalg.solve(unit - moved @ loads.T, seen) @ moved)
    unit = (1 + ROUNDING) * np.eye(len(inverse))
    return np.asarray(np.linalg.solve(unit - loads.T @ moved, loads.T @ seen) @ inverse)
