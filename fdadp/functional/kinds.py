"""Kinds of objects that curves come as, and how values become one of that kind again.

To add a kind: its name in :data:`Kind`, and a function in :data:`MAKERS`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from fdadp._common.typing import FloatArray
from fdadp.functional.axis import axis_of

Kind = Literal["array", "frame", "fdatagrid", "dataarray", "polars", "arrow"]

KINDS = get_args(Kind)

GRID = "grid"
"""Key of a list column's points in the metadata of an Arrow field."""


@dataclass(frozen=True)
class Given:
    """What an object said of curves besides values, grid and labels.

    Attributes
    ----------
    name : str or None
    attributes : mapping
        Plain ones of an xarray object. In a private fit there are none: they may tell of the values.
    rows : mapping of str to ndarray
        Coordinates of rows beside their labels.
    row_name : str or None
        What the axis of rows is called where they have no labels.
    """

    name: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    rows: Mapping[str, Any] = field(default_factory=dict)
    row_name: str | None = None

    def without_rows(self) -> Given:
        """What holds of other rows as well."""
        return replace(self, rows={})


def plain_attributes(attributes: Mapping[Any, Any]) -> dict[str, Any]:
    """Attributes that are text, truth values or finite numbers."""
    found = {str(k): v.item() if isinstance(v, np.generic) else v for k, v in attributes.items()}
    return {
        k: v for k, v in found.items() if isinstance(v, str | int) or (isinstance(v, float) and bool(np.isfinite(v)))
    }


def wrap(
    values: FloatArray,
    grid: FloatArray,
    *,
    kind: Kind,
    columns: pd.Index[Any] | None = None,
    index: pd.Index[Any] | None = None,
    own_grid: FloatArray | None = None,
    given: Given | None = None,
) -> Any:
    """Return curve values as the kind of object they came as; on their own grid also with its column labels.

    Parameters
    ----------
    values : ndarray of shape (n, S)
    grid : ndarray of shape (S,)
        Increasing.
    kind : {"array", "frame", "fdatagrid", "dataarray", "polars", "arrow"}
    columns : pandas.Index, optional
        Labels of the points of `own_grid`, as the user had them: perhaps decreasing.
    index : pandas.Index, optional
        Labels of the rows.
    own_grid : ndarray, optional
        The grid to which `columns` belong.
    given : Given, optional
        What else the object said.
    """
    if kind == "fdatagrid":
        from skfda import FDataGrid

        return FDataGrid(values, grid_points=grid)
    if kind == "array":
        return values
    keep = columns is not None and own_grid is not None and np.array_equal(grid, own_grid)
    if keep and columns is not None and (axis := axis_of(columns, "Y")) is not None and axis.backwards:
        values = values[:, ::-1]
    labels = columns if keep else pd.Index(grid, name=None if columns is None else columns.name)
    frame = pd.DataFrame(values, index=index, columns=labels)
    return MAKERS[kind](frame, grid, given or Given(), columns is None)


def _dataarray(frame: pd.DataFrame, grid: FloatArray, given: Given, unnamed: bool) -> Any:
    from xarray import DataArray

    dims: tuple[Any, Any] = (frame.index.name or given.row_name or "curve", frame.columns.name or "point")
    rows = {name: (dims[0], values) for name, values in given.rows.items() if np.shape(values) == (len(frame),)}
    labelled = not isinstance(frame.index, pd.RangeIndex) or given.row_name is None
    coords: dict[Any, Any] = {dims[0]: frame.index} if labelled else {}
    coords |= {dims[1]: frame.columns, **rows}
    return DataArray(frame.to_numpy(), dims=dims, coords=coords, name=given.name, attrs=dict(given.attributes))


def _arrow(frame: pd.DataFrame, grid: FloatArray, given: Given, unnamed: bool) -> Any:
    import pyarrow as pa

    fields, arrays = [], []
    for name, column in _columns(frame, given, unnamed).items():
        if column.ndim == 2:
            width = column.shape[1]
            array = pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(column).ravel()), width)
            fields.append(pa.field(name, array.type, metadata={GRID: json.dumps(grid.tolist())}))
        else:
            array = pa.array(column)
            fields.append(pa.field(name, array.type))
        arrays.append(array)
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _polars(frame: pd.DataFrame, grid: FloatArray, given: Given, unnamed: bool) -> Any:
    import polars as pl

    columns = _columns(frame, given, unnamed).items()
    return pl.DataFrame([pl.Series(name, c if c.dtype != object else c.tolist()) for name, c in columns])


def _columns(frame: pd.DataFrame, given: Given, unnamed: bool) -> dict[str, Any]:
    """Labels of the rows where there are any; and a column of lists where curves came as one, or one for each point."""
    labelled = not isinstance(frame.index, pd.RangeIndex)
    found: dict[str, Any] = {str(frame.index.name or "id"): np.asarray(frame.index)} if labelled else {}
    if unnamed:
        return found | {given.name or "Y": frame.to_numpy()}
    return found | {str(name): frame.iloc[:, j].to_numpy() for j, name in enumerate(frame.columns)}


Maker = Callable[[pd.DataFrame, FloatArray, Given, bool], Any]

MAKERS: Mapping[str, Maker] = {
    "frame": lambda frame, *_: frame,
    "dataarray": _dataarray,
    "polars": _polars,
    "arrow": _arrow,
}
"""From a data frame of values, their grid, what else is known, and whether the points have no labels of their own."""
