"""Many curves with points of their own, put on one grid that is small enough to hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from fdadp.functional.alignment import row_labels
from fdadp.functional.sample import Curves

CELLS = 2**25
"""Most values of curves on the union of all points: 268 MB. Beyond, points are rounded."""
POINTS = 201
"""Of the even grid to which they are rounded: by a 400th of the domain at most."""


def binned(data: Any) -> Curves | None:
    """Irregular curves on an even grid, where the union of their points would be too large; else None.

    A value is that of the nearest grid point, several of one curve are averaged, and NaN is what was not observed.

    Parameters
    ----------
    data : FDataIrregular
        Others than real functions of one variable are left alone, too.

    Notes
    -----
    Time and memory grow with the number of observations and with n times :data:`POINTS`.
    """
    if data.dim_domain != 1 or data.dim_codomain != 1:
        return None
    at = np.asarray(data.points[:, 0], dtype=np.float64)
    if np.unique(at).size * data.n_samples <= CELLS:
        return None
    grid = np.linspace(at.min(), at.max(), POINTS)
    row = np.repeat(np.arange(data.n_samples), np.diff(np.append(data.start_indices, at.size)))
    cell = row * POINTS + np.rint((at - grid[0]) / (grid[1] - grid[0])).astype(np.int64)
    size = data.n_samples * POINTS
    count = np.bincount(cell, minlength=size)
    total = np.bincount(cell, weights=np.asarray(data.values[:, 0], dtype=np.float64), minlength=size)
    values = np.divide(total, count, out=np.full(size, np.nan), where=count > 0)
    return Curves(values.reshape(data.n_samples, POINTS), grid, "fdatagrid", row_labels(data), gridded=True)
