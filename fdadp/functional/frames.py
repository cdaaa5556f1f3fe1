"""Numbers and labels of tables with one curve a row: arrays, data frames, xarray; what is no such table is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.functional.axis import Axis, axis_of
from fdadp.functional.kinds import Given, plain_attributes
from fdadp.functional.layout import MOST_COLUMNS, TRANSPOSED_HINT, is_long, is_transposed, long_hint

__all__ = ["axis_of_frame", "frame_of_dataarray", "refuse_layout", "row_coordinates", "values_of"]


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
