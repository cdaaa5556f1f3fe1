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
from fdadp.functional.tables.axis import axis_of

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


# Names that curves carry: those by which they are known in public, and those of their axes.


def names_of(data: Any, argument: str) -> tuple[str, ...]:
    """Name of the argument, and that of scikit-fda's curves (``coordinate_names``) or of a labelled array (``name``).

    Parameters
    ----------
    data : curves
        Of which no value is looked at.
    argument : str

    Examples
    --------
    >>> from skfda import FDataGrid
    >>> names_of(FDataGrid([[60.0, 70.0]], coordinate_names=("heart rate",)), "Y")
    ('Y', 'heart rate')
    >>> names_of([[60.0, 70.0]], "Y")
    ('Y',)
    """
    found = getattr(data, "coordinate_names", None)
    own = found if isinstance(found, tuple) else (getattr(data, "name", None),)
    return tuple(dict.fromkeys((argument, *(name for name in own if isinstance(name, str) and name))))


def axis_names(data: Any) -> tuple[str | None, str | None]:
    """Names of a curve's argument and of its values, where the object has them.

    Of scikit-fda's curves ``argument_names`` and ``coordinate_names``, of a data frame the name of its columns, of a
    labelled array its last dimension and its name.

    Examples
    --------
    >>> from skfda import FDataGrid
    >>> axis_names(FDataGrid([[60.0, 70.0]], argument_names=("hour",), coordinate_names=("heart rate",)))
    ('hour', 'heart rate')
    >>> axis_names([[60.0, 70.0]])
    (None, None)
    """
    own = names_of(data, "")[1:]
    found: Any = getattr(data, "argument_names", None) or getattr(data, "dims", None)
    argument = found[-1] if found else getattr(getattr(data, "columns", None), "name", None)
    return argument if isinstance(argument, str) else None, own[0] if own else None
