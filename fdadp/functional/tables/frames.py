"""Numbers and labels of tables with one curve a row: arrays, data frames, xarray; what is no such table is refused.

Long tables (id, point, value) and those with one curve a column would be fitted without a word, as curves of three
points or as points for curves. What gives them away is not likely in real curves: a column of ids in runs beside one
that increases within each run; or rows labelled by a grid, columns labelled by words, and values that change less from
row to row than from column to column.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd

from fdadp._common.door import advice
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.functional.tables.axis import Axis, axis_of, is_only_numbered
from fdadp.functional.tables.sample import Given, plain_attributes


def axis_of_frame(data: pd.DataFrame, grid: ArrayLike | None, name: str) -> Axis | None:
    """Return what column labels say; where a grid is given they need not say anything, but not the opposite."""
    if not data.shape[1]:
        return None
    if grid is None:
        try:
            return axis_of(data.columns, name)
        except InputError as exc:
            if len(data.columns) <= MOST_COLUMNS and is_long([data.iloc[:, j] for j in range(data.shape[1])]):
                raise InputError(f"{name} must have one curve a row; {long_hint()}") from exc
            raise
    try:
        axis = axis_of(data.columns, name, numbered=False)
    except InputError:
        return None
    if axis is not None and axis.backwards:
        raise InputError(
            f"grid of {name} must be left out where column labels decrease, from {data.columns[0]} to "
            f"{data.columns[-1]}: they are the grid, and are turned round with the values"
        )
    return axis


def values_of(data: Any, name: str) -> FloatArray:
    """Values (n, S) as float64, what is missing NaN; raises InputError for all that is no table of numbers."""
    try:
        values = np.asarray(_real_array(data), order="C")  # sums over curves are the same, however they lay in memory
    except (TypeError, ValueError) as exc:
        if isinstance(data, pd.DataFrame) and is_long([data.iloc[:, j] for j in range(data.shape[1])]):
            raise InputError(f"{name} must have one curve a row; {long_hint()}") from exc
        raise InputError(f"{name} must be numeric with one curve per row, got {type(data).__name__}: {exc}") from exc
    if values.ndim != 2:
        raise InputError(f"{name} must be two-dimensional (curves, points), got shape {values.shape}")
    if 0 in values.shape:
        raise InputError(f"{name} must not be empty, got shape {values.shape}")
    return values


def refuse_layout(values: FloatArray, index: pd.Index[Any] | None, columns: pd.Index[Any] | None, name: str) -> None:
    """Refuse long tables and those with curves in columns; raises InputError."""
    if is_long(list(values.T)):
        raise InputError(f"{name} must have one curve a row; {long_hint()}")
    if is_transposed(values, index, columns):
        raise InputError(f"{name} must have one curve a row; {TRANSPOSED_HINT}")


def frame_of_dataarray(data: Any, name: str) -> tuple[pd.DataFrame, Given]:
    """Values of an xarray.DataArray with its coordinates as labels, and what else it says."""
    if getattr(data, "ndim", None) != 2:
        raise InputError(
            f"{name} must be a two-dimensional DataArray (curves, points), got {type(data).__name__} "
            f"with dimensions {tuple(getattr(data, 'dims', ()))}"
        )
    labels = [data.indexes.get(d, pd.RangeIndex(n)).rename(d) for d, n in zip(data.dims, data.shape, strict=True)]
    frame = pd.DataFrame(data.to_numpy(), index=labels[0], columns=labels[1])
    own = None if data.name is None else str(data.name)
    return frame, Given(own, plain_attributes(data.attrs), row_coordinates(data, data.dims[0]))


def row_coordinates(data: Any, rows: Any) -> dict[str, Any]:
    """Coordinates of an xarray object along its rows alone, but for their labels."""
    others = [name for name in data.coords if name != rows and data.coords[name].dims == (rows,)]
    return {str(name): data.coords[name].to_numpy() for name in others if name not in data.indexes}


def _real_array(data: Any) -> FloatArray:
    if isinstance(data, pd.DataFrame):
        return data.to_numpy(dtype=np.float64, na_value=np.nan)
    if np.iscomplexobj(data):
        raise TypeError("complex values")
    if isinstance(data, np.ma.MaskedArray):
        return np.asarray(np.ma.filled(np.ma.asarray(data, dtype=np.float64), np.nan))
    return np.asarray(data, dtype=np.float64)


# Tables that are not one curve a row.

TRANSPOSED_HINT = "it looks like one curve a column: transpose it, as by .T"

MOST_COLUMNS = 6
LEAST_ROWS = 8
SEEN = 2000
"""Rows by which a table is judged to be transposed."""


def long_hint() -> str:
    """What to do with a table that looks like a long one."""
    return f"it looks like a long table, one value a row. {of_long()}"


def of_long() -> str:
    """How long tables are read, at the open door."""
    return advice(
        'Of a long table fdadp.read_curves(table, long=("id", "s", "value")) makes curves: name its own columns',
        r="Of a long table stats::reshape() makes one curve a row",
        shell="Of a long table --long id,s,value makes curves: name its own columns",
    )


def is_long(columns: list[Any]) -> bool:
    """Whether a table, given column by column, has an id in runs and a point that increases within each run.

    Parameters
    ----------
    columns : list of array_like of shape (n,)
        Numbers or text.
    """
    if not 3 <= len(columns) <= MOST_COLUMNS or len(columns[0]) < LEAST_ROWS:
        return False
    return any(_runs(ids, points) for ids, points in permutations(columns, 2))


def _runs(ids: Any, points: Any) -> bool:
    ids, points = np.asarray(ids), np.asarray(points)
    changes = np.flatnonzero(ids[1:] != ids[:-1]) + 1
    if not 0 < changes.size < ids.size // 2:
        return False
    if points.dtype.kind not in "iuf":  # the table is sorted by points, and ids come in one order in each
        points = pd.factorize(points)[0]
    if len(pd.unique(ids)) != changes.size + 1:  # an id comes back
        return False
    starts = changes
    steps = np.diff(points.astype(np.float64))
    within = np.ones(steps.size, dtype=bool)
    within[starts - 1] = False
    falls = steps[starts - 1] <= 0  # a next curve starts over
    return bool((steps[within] > 0).all() and falls.any())


def is_transposed(values: FloatArray, index: pd.Index[Any] | None, columns: pd.Index[Any] | None) -> bool:
    """Whether rows of a table without a grid look like points of one, and columns like curves.

    Parameters
    ----------
    values : ndarray of shape (n, S)
    index, columns : pandas.Index or None
        Its labels. The grid may also be the first column, in even steps.
    """
    if index is None or columns is None or len(values) < LEAST_ROWS or values.shape[1] < 2:
        return False
    values = values[:SEEN]
    if _is_grid(index) and not (is_only_numbered(index) and is_only_numbered(columns)):
        return roughness(values.T) < 0.25 * roughness(values)
    if isinstance(columns, pd.RangeIndex) or len(set(map(_stem, columns))) == 1:
        return False
    steps, others = np.diff(values[:, 0]), values[:, 1:]
    even = np.isfinite(steps).all() and steps[0] != 0 and np.allclose(steps, steps[0], rtol=1e-6, atol=0)
    return bool(even) and roughness(others.T) < 0.25 * roughness(others)


def _stem(label: Any) -> str:
    return str(label).rstrip("0123456789.")


def _is_grid(index: pd.Index[Any]) -> bool:
    if isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1:
        return False
    if index.inferred_type not in ("integer", "floating", "datetime64", "timedelta64", "period", "date"):
        return False
    return bool(index.is_unique and (index.is_monotonic_increasing or index.is_monotonic_decreasing))


def roughness(values: FloatArray) -> float:
    """Mean square of the steps along rows."""
    with np.errstate(all="ignore"):
        steps = np.diff(values, axis=1) ** 2
        seen = np.isfinite(steps)
        return float(steps[seen].mean()) if seen.any() else np.inf
