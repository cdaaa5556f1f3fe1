"""What a sample of curves is: values ``(n, S)`` on one grid ``(S,)``, and the kind of object it came as and becomes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.functional.tables.axis import axis_of

# Kinds of objects that curves come as, what such an object says of them, and the names that it gives them.


Kind = Literal["array", "frame", "fdatagrid", "dataarray", "polars", "arrow"]

KINDS = get_args(Kind)
"""To add a kind: its name above, and a function in :data:`MAKERS`."""

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


@dataclass(frozen=True)
class Curves:
    """A sample of curves on a common grid.

    Attributes
    ----------
    values : ndarray of shape (n, S)
    grid : ndarray of shape (S,)
        Strictly increasing.
    kind : {"array", "frame", "fdatagrid", "dataarray", "polars", "arrow"}
        The kind of object the user gave.
    index, columns : pandas.Index or None
        Labels of rows, and of columns as the user has them: where these decrease, `values` and `grid` are turned round.
    gridded : bool
        Whether the grid was given, by the object or beside it; else it is one that was assumed.
    unit : str or None
        Of the grid, where column labels are dates or times, as ``"days since 2020-01-01"``; that they are only
        numbers of the columns, where they are.
    given : Given or None
        What else the object said of them.
    """

    values: FloatArray
    grid: FloatArray
    kind: Kind = "array"
    index: pd.Index[Any] | None = None
    columns: pd.Index[Any] | None = None
    gridded: bool = False
    unit: str | None = None
    given: Given | None = None

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def without_rows(self) -> Curves:
        """Their grid, and what they came as."""
        given = None if self.given is None else self.given.without_rows()
        return replace(self, values=np.empty((0, self.grid.size)), index=None, given=given)

    def wrap(
        self, values: FloatArray, grid: FloatArray, index: pd.Index[Any] | None = None, *, rows: Curves | None = None
    ) -> Any:
        """Return `values` on `grid` as the kind of object that this sample came as, labelled as `index`, or `rows`."""
        index = index if rows is None else rows.index
        given = self.given or Given()
        if rows is not None and rows.given is not None:
            given = replace(given, rows=rows.given.rows, row_name=rows.given.row_name)
        kind, columns = self.kind, self.columns
        return wrap(values, grid, kind=kind, columns=columns, index=index, own_grid=self.grid, given=given)


def as_grid(grid: ArrayLike | None, size: int, name: str = "grid") -> FloatArray:
    """Check a grid of `size` points; ``None`` means an even grid on [0, 1].

    Raises
    ------
    InputError
        Wrong length, not finite or not strictly increasing.
    """
    if grid is None:
        return np.linspace(0.0, 1.0, size)
    try:
        points = np.asarray(grid, dtype=np.float64)
    except (TypeError, ValueError) as exc:
        raise InputError(f"{name} must be a sequence of numbers, got {grid!r}") from exc
    if points.ndim != 1 or points.size != size:
        raise InputError(f"{name} must have {size} points, one per column of the curves, got shape {points.shape}")
    if size == 0:
        raise InputError(f"{name} must have at least one point, got none")
    if not np.isfinite(points).all():
        raise InputError(f"{name} must be finite, got {points[~np.isfinite(points)][0]} among its points")
    if size > 1 and not (np.diff(points) > 0).all():
        j = int(np.flatnonzero(np.diff(points) <= 0)[0])
        raise InputError(
            f"{name} must be strictly increasing, got {points[j]:g} followed by {points[j + 1]:g} at position {j}"
            + ("; turn it round, and the columns with it: [::-1] and [:, ::-1]" if (np.diff(points) < 0).all() else "")
        )
    return points


# Values as the kind of object that curves came as.


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
