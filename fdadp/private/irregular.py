"""Curves at points of their own, put on a declared grid: each row by itself, by a public rule.

A value belongs to the nearest point of the grid; several of one curve at one point are averaged; where a curve has none
it is NaN, a gap. Values beyond the grid's ends, by more than half a step, are left out. So sparse and irregular curves
are curves with gaps, and a response counts in each row's own projection on the public response functions
(:mod:`fdadp.private.projection`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.privacy.boundary import Table


def is_irregular(data: Any) -> bool:
    """Whether curves are scikit-fda's at points of their own; its type is public."""
    return type(data).__module__.split(".")[0] == "skfda" and type(data).__name__ == "FDataIrregular"


class _Rows:
    """Rows of an FDataIrregular that can be sliced: points, values, and where each row begins."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __len__(self) -> int:
        return int(self._data.n_samples)

    def __getitem__(self, rows: slice) -> tuple[FloatArray, FloatArray, Any]:
        starts = np.append(self._data.start_indices, len(self._data.values))
        first, last, _ = rows.indices(len(self))
        part = slice(starts[first], starts[last])
        return self._data.points[part, 0], self._data.values[part, 0], starts[first : last + 1] - starts[first]


def table_of_irregular(data: Any, grid: FloatArray) -> Table:
    """A private table (n, S) of irregular curves, on a declared grid (S,)."""

    def convert(part: tuple[FloatArray, FloatArray, Any]) -> FloatArray:
        return rows_on_grid(*part, grid)

    return Table(_Rows(data), (int(data.n_samples), grid.size), convert, True, data)


def rows_on_grid(points: FloatArray, values: FloatArray, starts: Any, grid: FloatArray) -> FloatArray:
    """Values of curves at the nearest points of a grid, shape (m, S), NaN where there are none.

    Parameters
    ----------
    points, values : ndarray of shape (N,)
        Of all curves, one after the other.
    starts : ndarray of shape (m + 1,)
        Where each curve begins; and N.
    grid : ndarray of shape (S,)
        Increasing.
    """
    m, size = len(starts) - 1, grid.size
    at = np.asarray(points, dtype=np.float64)
    seen = np.asarray(values, dtype=np.float64)
    row = np.repeat(np.arange(m), np.diff(starts))
    middle = (grid[1:] + grid[:-1]) / 2
    low, high = grid[0] - (middle[0] - grid[0]), grid[-1] + (grid[-1] - middle[-1])
    used = np.isfinite(seen) & (at >= low) & (at <= high)
    cell = row[used] * size + np.searchsorted(middle, at[used])
    count = np.bincount(cell, minlength=m * size)
    total = np.bincount(cell, weights=seen[used], minlength=m * size)
    means = np.divide(total, count, out=np.full(m * size, np.nan), where=count > 0)
    return np.asarray(means.reshape(m, size))
