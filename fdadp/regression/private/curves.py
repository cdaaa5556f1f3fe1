"""Curves of a private fit: only their shape, grid and kind are looked at here.

Values go to the kernel as they are, which reads them entry by entry: what is no number becomes NaN there, and NaN a
public constant. A conversion of the whole table would let one person's text change how others' numbers are read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from fdadp._typing import ArrayLike, CurveData
from fdadp.curves import Curves, Kind, as_curves, as_grid
from fdadp.errors import InputError

__all__ = ["private_curves"]

LEAST_POINTS = 3


def private_curves(data: CurveData, grid: ArrayLike | None, name: str) -> Curves:
    """Take curves as they are, without looking at their values.

    Parameters
    ----------
    data : FDataGrid, DataFrame, array_like, or anything with ``shape``, ``dtype`` and slices, of shape (n, S)
        What is not in memory (memory maps, HDF5) is read in slabs, by the kernel.
    grid : array_like of shape (S,), optional
    name : str

    Raises
    ------
    InputError
        Not curves on one grid, or a grid that does not fit: all of it public.
    """
    if type(data).__module__.split(".")[0] == "skfda":
        if type(data).__name__ != "FDataGrid":
            raise InputError(
                f"{name} must be an FDataGrid, a DataFrame or an array in a private fit, got {type(data).__name__}: "
                "put the curves on a common grid first, each by itself and by a public rule"
            )
        curves = as_curves(data, grid, name=name)
        _check_shape(curves.values, name)
        return curves
    values = _table(data)
    _check_shape(values, name)
    size = int(values.shape[1])
    labels = _column_labels(data)
    if labels is not None:
        # The grid may be in the column labels; a public row, the numbers of the columns, stands for the private ones.
        public = as_curves(pd.DataFrame([range(size)], columns=labels), grid, name=name)
        turned = public.values[0, 0] > 0  # where the labels decrease
        kind: Kind = "frame" if isinstance(data, pd.DataFrame) else "dataarray"
        return replace(public, values=values[:, ::-1] if turned else values, index=None, kind=kind)
    return Curves(values, as_grid(grid, size, f"grid of {name}"))


def _column_labels(data: Any) -> pd.Index[Any] | None:
    """Labels of the points in a data frame or an xarray.DataArray."""
    if isinstance(data, pd.DataFrame):
        return data.columns
    if type(data).__module__.split(".")[0] == "xarray":
        labels: pd.Index[Any] = data.indexes.get(data.dims[1], pd.RangeIndex(data.shape[1]))
        return labels.rename(data.dims[1])
    return None


def _table(data: Any) -> Any:
    if isinstance(data, pd.DataFrame):
        return data.to_numpy()
    if type(data).__module__.split(".")[0] == "xarray":
        data = getattr(data, "data", np.empty(0))  # a Dataset has none
    if all(hasattr(data, attribute) for attribute in ("shape", "dtype", "__getitem__")):
        return data
    try:
        return np.array(data, dtype=object)
    except ValueError:  # ragged
        return np.empty(0)


def _check_shape(values: Any, name: str) -> None:
    if any(size != size for size in values.shape):  # of a dask array
        raise InputError(f"{name} must have a known number of curves: use .compute_chunk_sizes() of a dask array")
    if len(values.shape) != 2 or values.shape[0] == 0 or values.shape[1] < LEAST_POINTS:
        raise InputError(f"{name} must be two-dimensional (curves, points), of at least {LEAST_POINTS} points a curve")
