"""Samples of curves: values ``(n, S)`` on one grid ``(S,)``; the objects that they come as, and become again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Any, Literal, get_args

import numpy as np

from fdadp._common.calling_language import advice
from fdadp._common.loaded_later import pd
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.files.dataclass_json import Later
from fdadp.functional.tables.grid_from_labels import Axis, axis_of, float_of, is_only_numbered

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


COLUMNS: Any = Later()


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
    columns: pd.Index[Any] | None = COLUMNS
    gridded: bool = False
    unit: str | None = None
    given: Given | None = None

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def without_rows(self) -> Curves:
        """Their grid, and what they came as."""
        given = None if self.given is None else self.given.without_rows()
        columns = COLUMNS.held(self)
        return replace(self, values=np.empty((0, self.grid.size)), index=None, columns=columns, given=given)

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

        names = None if index is None or isinstance(index, pd.RangeIndex) else tuple(index)
        return FDataGrid(values, grid_points=grid, sample_names=names)
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


# Tables with one curve a row: their numbers and labels. What is no such table is refused.
#
# Long tables (id, point, value) and those with one curve a column would be fitted without a word, as curves of three
# points or as points for curves. What gives them away is not likely in real curves: a column of ids in runs beside one
# that increases within each run; or rows labelled by a grid, columns labelled by words, and values that change less
# from row to row than from column to column.


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


def _first_text(data: Any, exc: Exception) -> str:
    """Where the first text stands that is no number, in words; what NumPy says where there is none."""
    entries = np.asarray(data, dtype=object)
    for row, point in np.ndindex(entries.shape if entries.ndim == 2 else (0, 0)):
        if isinstance(entry := entries[row, point], str):
            try:
                float_of(entry)
            except ValueError:
                named = data.index[row] if isinstance(data, pd.DataFrame) else row
                return f"{entry!r} in row {named}, at point {point} of its curve (counted from 0)"
    return f"{type(data).__name__}: {exc}"


def values_of(data: Any, name: str) -> FloatArray:
    """Values (n, S) as float64, what is missing NaN; raises InputError for all that is no table of numbers."""
    try:
        values = np.asarray(_real_array(data), order="C")  # sums over curves are the same, however they lay in memory
    except (TypeError, ValueError, OverflowError) as exc:
        if isinstance(data, pd.DataFrame) and is_long([data.iloc[:, j] for j in range(data.shape[1])]):
            raise InputError(f"{name} must have one curve a row; {long_hint()}") from exc
        raise InputError(f"{name} must be numeric with one curve per row, got {_first_text(data, exc)}") from exc
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
        kinds = {getattr(dtype, "kind", "O") for dtype in data.dtypes}
        if kinds & set("cmM"):
            raise TypeError("complex values" if "c" in kinds else "dates or times")
        if not kinds <= set("biuf"):
            _refuse_underscores(data)
        return data.to_numpy(dtype=np.float64, na_value=np.nan)
    if np.iscomplexobj(data):
        raise TypeError("complex values")
    if isinstance(data, np.ma.MaskedArray):
        return np.asarray(np.ma.filled(np.ma.asarray(data, dtype=np.float64), np.nan))
    data = np.asarray(data)
    if data.dtype.kind in "mM":  # whose numbers are those of a unit that nobody chose
        raise TypeError("dates or times")
    if data.dtype.kind not in "biuf":
        _refuse_underscores(data)
    return np.asarray(data, dtype=np.float64)


def _refuse_underscores(data: Any) -> None:
    """Refuse texts such as "1_0", which is a number for Python alone; raises ValueError."""
    if any(isinstance(entry, str) and "_" in entry for entry in np.asarray(data, dtype=object).flat):
        raise ValueError("a text has an underscore")


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
