"""Curves of a private fit: only their shape, grid and kind are looked at here; the kernel reads the values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from fdadp._common.typing import ArrayLike, CurveData
from fdadp.errors import InputError, PrivacyError
from fdadp.functional.containers.open import opened
from fdadp.functional.containers.opened import OpenedCurves, on_grid
from fdadp.functional.curves import as_curves
from fdadp.functional.kinds import Given
from fdadp.functional.sample import Curves, as_grid
from fdadp.privacy.boundary import RAGGED, Table, check_ids, table
from fdadp.private.irregular import is_irregular, table_of_irregular
from fdadp.private.opened import public_head

LEAST_POINTS = 3


def private_curves(
    data: CurveData, grid: ArrayLike | None, name: str, *, empty: bool = False, streamed: bool = False
) -> Curves:
    """Take curves as they are, without looking at their values.

    Parameters
    ----------
    data : FDataGrid, DataFrame, array_like, or anything with ``shape`` and slices, of shape (n, S)
        What is not in memory (memory maps, Dask, HDF5, xarray) is read in slabs, by the kernel. Lists want a grid: a
        row that has not its length is a curve without values.
    grid : array_like of shape (S,), optional
    name : str
    empty : bool
        Whether there may be no curve at all: a refusal would tell a private n of 0 from 1.
    streamed : bool
        Whether the caller hands the kernel chunks (:func:`fdadp.private.opened.chunks_of`) of curves whose number of
        rows only reading would tell. No values stand for them here.

    Returns
    -------
    Curves
        Whose `values` are a :class:`~fdadp.privacy.boundary.Table`.

    Raises
    ------
    InputError
        Not curves on one grid, a grid that does not fit, or an unknown number of rows: all of it public.
    """
    values: Any
    if isinstance(data, Curves):
        values = _checked(table(data.values, name), name, empty)
        return replace(data, values=values, index=None)
    data = opened(data, name)
    if isinstance(data, OpenedCurves):
        public = on_grid(public_head(data), grid, name)
        if data.n is None and streamed:
            return public
        if data.n is None:
            raise InputError(
                f"{name} must have a known number of rows, got {data!r}: hand over the table that was opened, with all "
                "of its columns, or read the file first, read_curves(path)"
            )
        values = _checked(table(data, name), name, empty)
        return replace(public, values=values)
    if type(data).__module__.split(".")[0] == "skfda":
        return _of_fdatagrid(data, grid, name, empty)
    several = type(data).__name__ == "Dataset"  # of xarray
    if isinstance(data, list | tuple) and grid is None:
        raise InputError(f"{name} must be an array or a data frame, or come with its grid, {RAGGED}")
    values = _checked(None if several else table(data, name, None if grid is None else np.size(grid)), name, empty)
    size = values.shape[1]
    labels = _column_labels(data)
    if labels is None:
        return Curves(values, as_grid(grid, size, f"grid of {name}"))
    # The grid may be in the column labels; a public row, the numbers of the columns, stands for the private ones.
    public = as_curves(pd.DataFrame([range(size)], columns=labels), grid, name=name)
    turned = public.values[0, 0] > 0  # where the labels decrease
    values = values.turned() if turned else values
    if isinstance(data, pd.DataFrame):
        return replace(public, values=values, index=None, kind="frame")
    given = Given(None if data.name is None else str(data.name), row_name=str(data.dims[0]))
    return replace(public, values=values, index=None, kind="dataarray", given=given)


def _of_fdatagrid(data: Any, grid: ArrayLike | None, name: str, empty: bool) -> Curves:
    values: Any
    if is_irregular(data) and grid is not None:
        points = as_grid(grid, np.size(grid), f"grid of {name}")
        if data.dim_domain != 1 or data.dim_codomain != 1:
            raise InputError(f"{name} must hold real functions of one variable")
        values = _checked(table_of_irregular(data, points), name, empty)
        return Curves(values, points, "fdatagrid", gridded=True)
    if type(data).__name__ != "FDataGrid":
        raise InputError(
            f"{name} must be an FDataGrid, a DataFrame or an array in a private fit, got {type(data).__name__}: "
            "declare a grid for FDataIrregular, as by grids={...}; put others on a common grid first, each by itself "
            "and by a public rule"
        )
    if data.dim_domain != 1 or data.dim_codomain != 1:
        raise InputError(f"{name} must hold real functions of one variable")
    values = _checked(table(data.data_matrix[..., 0], name), name, empty)
    zeros = np.zeros((1, values.shape[1], 1))
    public = as_curves(data[:1].copy(data_matrix=zeros, sample_names=(None,)), grid, name=name)
    return replace(public, values=values, index=None)


def check_groups(groups: Any, n: int) -> None:
    """Refuse groups that are not one id a curve, by their shape alone.

    Raises
    ------
    InputError
        Another length, or more dimensions; the text tells no length.
    """
    try:
        check_ids(groups, n)
    except PrivacyError as exc:
        raise InputError("groups must have one entry per curve: an id, or a tuple of its parts") from exc


def _column_labels(data: Any) -> pd.Index[Any] | None:
    """Labels of the points in a data frame or an xarray.DataArray."""
    if isinstance(data, pd.DataFrame):
        return data.columns
    if type(data).__module__.split(".")[0] == "xarray":
        labels: pd.Index[Any] = data.indexes.get(data.dims[1], pd.RangeIndex(data.shape[1]))
        return labels.rename(data.dims[1])
    return None


def _checked(found: Table | None, name: str, empty: bool) -> Table:
    none = found is not None and found.shape[0] == 0 and not empty
    if found is None or len(found.shape) != 2 or none or found.shape[1] < LEAST_POINTS:
        raise InputError(f"{name} must be two-dimensional (curves, points), of at least {LEAST_POINTS} points a curve")
    return found
