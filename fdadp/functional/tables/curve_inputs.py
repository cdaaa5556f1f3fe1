"""What users have, read: samples of curves, and columns of curves, numbers or labels.

They pass an ``FDataGrid`` (or another scikit-fda object), a ``DataFrame`` (one curve a row), a two-dimensional
``xarray.DataArray``, an array ``(n, S)`` or what :func:`fdadp.open_curves` takes; they get back the kind they gave.

A column of a table is of whatever kind they have it: curves are scikit-fda's objects (an FDataGrid is a pandas
extension array, so a data frame holds it as it is), data frames and arrays of shape (n, S), R's matrix columns among
them. Numbers are any numbers, also nullable ones and booleans (1 and 0). All else with one entry a row is labels; a
categorical says the order of its levels, and levels that no row has are none.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from fdadp._common.loaded_later import pd
from fdadp._common.typing import ArrayLike, CurveData, FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.functional.containers.open_curves import is_foreign, opened
from fdadp.functional.containers.opened_tables import OpenedColumn, OpenedCurves, OpenedTable
from fdadp.functional.tables.curve_sample import (
    Curves,
    Given,
    Kind,
    as_grid,
    axis_of_frame,
    frame_of_dataarray,
    refuse_layout,
    values_of,
)
from fdadp.functional.tables.grid_from_labels import ONLY_NUMBERED, axis_of, float_of, is_only_numbered

Labels = npt.NDArray[Any]
"""Entries of a column that are names, not numbers, shape (n,)."""

Column = Curves | FloatArray | Labels
"""Curves; numbers (n,) of float64; or labels (n,) of dtype object."""


def as_curves(
    data: CurveData,
    grid: ArrayLike | None = None,
    *,
    name: str = "X",
    default: FloatArray | None = None,
    any_layout: bool = False,
) -> Curves:
    """Read what the user gave as curves; values may still be missing (see :func:`check_finite`).

    Parameters
    ----------
    data : FDataGrid, FDataBasis, FDataIrregular, DataFrame, xarray.DataArray, or array_like of shape (n, S)
        One curve a row; masked values and pandas' missing values become NaN. Irregular curves come out on
        `grid`, which must hold all their points (default: the union of their points), with NaN between.
        An ``FDataBasis`` is evaluated on `grid` (default: 101 points, as scikit-fda does not store one).
    grid : array_like of shape (S,), optional
        Evaluation points. Default: those of the scikit-fda object; column labels of a data frame, or the coordinate
        of a DataArray, that are numbers, dates or times (:mod:`fdadp.functional.tables.grid_from_labels`), turned round
        with the values where they decrease; else, and where labels are 0, 1, ..., S-1, an even grid on [0, 1].
    name : str
        The argument's name in error messages.
    default : ndarray, optional
        A known grid for data without one, of the same length.
    any_layout : bool
        Do not look for long and transposed tables: where curves are sure to be rows, as predictions are.

    Raises
    ------
    InputError
        Not numeric or not real, not two-dimensional, empty, vector-valued curves, an irregular curve with two
        values at one point, a grid that does not fit, column labels that are no grid, a long or a transposed table.
    """
    if isinstance(data, Curves):
        return data
    if isinstance(data, OpenedTable) or is_foreign(type(data)):
        data = opened(data, name)
    if isinstance(data, OpenedCurves):
        return data.read(grid, name)
    module = type(data).__module__.split(".")[0]
    if module == "skfda":
        return _from_skfda(data, grid, name)
    kind: Kind = "array"
    given: Given | None = None
    if module == "xarray":
        kind, (data, given) = "dataarray", frame_of_dataarray(data, name)
    elif isinstance(data, pd.DataFrame):
        kind = "frame"
    index = columns = axis = None
    if isinstance(data, pd.DataFrame):
        index, columns = data.index, data.columns
        axis = axis_of_frame(data, grid, name)
    values = values_of(data, name)
    if grid is None and not any_layout and (columns is None or axis_of(columns, name, numbered=False) is None):
        refuse_layout(values, index, columns, name)
    if grid is None and axis is None:
        if default is not None and default.size != values.shape[1]:
            raise InputError(
                f"{name} must have {default.size} points a curve, as the fit had, or come with its grid, got "
                f"{values.shape[1]} points. An FDataGrid has a grid, as has a data frame whose column labels are the "
                "points; else give it as an argument"
            )
        points = as_grid(default, values.shape[1], f"grid of {name}")
        counted = default is None and columns is not None and is_only_numbered(columns)
        unit = ONLY_NUMBERED if counted else None
        return Curves(values, points, kind, index, columns, unit=unit, given=given)
    if axis is not None and grid is None:
        values = values[:, ::-1] if axis.backwards else values
        return Curves(values, axis.points, kind, index, columns, gridded=True, unit=axis.unit, given=given)
    points = as_grid(grid, values.shape[1], f"grid of {name}")
    return Curves(values, points, kind, index, columns, gridded=True, given=given)


def _from_skfda(data: Any, grid: ArrayLike | None, name: str) -> Curves:
    from skfda import FDataBasis, FDataGrid, FDataIrregular

    if data.dim_domain != 1 or data.dim_codomain != 1:
        raise InputError(
            f"{name} must hold real functions of one variable, got dim_domain={data.dim_domain}, "
            f"dim_codomain={data.dim_codomain}"
        )
    if isinstance(data, FDataIrregular):
        return _from_irregular(data, grid, name)
    if isinstance(data, FDataBasis):
        low, high = data.domain_range[0]
        wanted = np.linspace(low, high, 101) if grid is None else grid
        points = as_grid(wanted, np.size(wanted), f"grid of {name}")
        if points[0] < low or points[-1] > high:
            raise InputError(
                f"grid of {name} must lie in the curves' domain [{low:g}, {high:g}], "
                f"got [{points[0]:g}, {points[-1]:g}]"
            )
        return Curves(np.asarray(data(points)[..., 0]), points, "fdatagrid", row_labels(data), gridded=True)
    if isinstance(data, FDataGrid):
        if data.data_matrix.dtype.kind not in "biuf":
            raise InputError(f"{name} must hold real numbers, got an FDataGrid of {data.data_matrix.dtype}")
        values = np.asarray(data.data_matrix[..., 0], dtype=np.float64)
        own = np.asarray(data.grid_points[0], dtype=np.float64)
        if grid is not None and not np.array_equal(as_grid(grid, np.size(grid), f"grid of {name}"), own):
            raise InputError(f"grid of {name} must be left out or equal the FDataGrid's own grid_points")
        if 0 in values.shape:
            raise InputError(f"{name} must not be empty, got shape {values.shape}")
        return Curves(values, as_grid(own, own.size, f"grid of {name}"), "fdatagrid", row_labels(data), gridded=True)
    raise InputError(f"{name} must be an FDataGrid, FDataBasis or FDataIrregular, got {type(data).__name__}")


def _from_irregular(data: Any, grid: ArrayLike | None, name: str) -> Curves:
    row, at, observed = _observations(data)
    wanted = np.unique(at) if grid is None else grid
    points = as_grid(wanted, np.size(wanted), f"grid of {name}")
    position = np.searchsorted(points, at).clip(max=points.size - 1)
    off = np.flatnonzero(points[position] != at)
    if off.size:
        raise InputError(
            f"grid of {name} must hold every point of the irregular curves, got curve {row[off[0]]} at {at[off[0]]:g}"
        )
    cells = row * points.size + position
    _, first = np.unique(cells, return_index=True)
    if first.size < cells.size:
        k = int(np.setdiff1d(np.arange(cells.size), first)[0])
        raise InputError(f"{name} must have one value a point, got two for curve {row[k]} at {at[k]:g}")
    values = np.full((data.n_samples, points.size), np.nan)
    values[row, position] = observed
    return Curves(values, points, "fdatagrid", row_labels(data), gridded=True)


def _observations(data: Any) -> tuple[IntArray, FloatArray, FloatArray]:
    """Row, point and value of each observation of irregular curves."""
    at, values = (np.asarray(own[:, 0], dtype=np.float64) for own in (data.points, data.values))
    return np.repeat(np.arange(data.n_samples), np.diff(np.append(data.start_indices, at.size))), at, values


def row_labels(data: Any) -> pd.Index[Any] | None:
    """Labels that a table carries for its rows, or None; no value of it is read."""
    if isinstance(data, pd.DataFrame | pd.Series):
        return data.index
    module = type(data).__module__.split(".")[0]
    if module == "skfda":
        names = tuple(data.sample_names) if hasattr(data, "sample_names") else ()
        return pd.Index(names, dtype=object) if names.count(None) < len(names) else None
    dims = getattr(data, "dims", ())
    if module == "xarray" and isinstance(dims, tuple) and dims and dims[0] in data.coords:  # a Dataset's are no tuple
        return data.indexes.get(data.dims[0])  # type: ignore[no-any-return]
    return data.index if isinstance(data, Curves) else None


def refuse_other_axis(grid: FloatArray, t: FloatArray, name: str) -> None:
    """Refuse points of the response that are a small part of a curve's domain, where both are meant to be one axis.

    A grid of hours beside columns that are only numbered, hence on [0, 1], would be taken for the first hour.

    Raises
    ------
    InputError
        The response covers less than half of the curves.
    """
    if t.max() - t.min() < (grid[-1] - grid[0]) / 2:
        raise InputError(
            f"{name} and the response must have one axis: {name} covers [{grid[0]:g}, {grid[-1]:g}], the response only "
            f"[{t.min():g}, {t.max():g}]; say its points by grids=, or cut {name} to the part that is meant"
        )


def check_finite(curves: Curves, name: str = "X", first: int = 0, cure: str = "") -> None:
    """Refuse NaN and infinite values, naming the curve (counted from `first`), the position, and of gaps the `cure`.

    Raises
    ------
    InputError
        At the first value that is not finite.
    """
    if not np.isfinite(curves.values.sum()):  # cheap; a sum that overflows is looked at too
        bad = np.argwhere(~np.isfinite(curves.values))
        if not len(bad):
            return
        i, j = (int(b) for b in bad[0])
        label = f" (label {curves.index.tolist()[i]!r})" if curves.index is not None else ""
        raise InputError(
            f"{name} must be finite, got {curves.values[i, j]} in curve {first + i}{label} at position {j} "
            f"(grid point {curves.grid[j]:g}); {len(bad)} such value(s) in all"
            + (f". {cure}" if cure and np.isnan(curves.values[i, j]) else "")
        )


# Many curves with points of their own, put on one grid that is small enough to hold.


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
    row, at, observed = _observations(data)
    if np.unique(at).size * data.n_samples <= CELLS:
        return None
    grid = np.linspace(at.min(), at.max(), POINTS)
    cell = row * POINTS + np.rint((at - grid[0]) / (grid[1] - grid[0])).astype(np.int64)
    size = data.n_samples * POINTS
    count = np.bincount(cell, minlength=size)
    total = np.bincount(cell, weights=observed, minlength=size)
    values = np.divide(total, count, out=np.full(size, np.nan), where=count > 0)
    return Curves(values.reshape(data.n_samples, POINTS), grid, "fdatagrid", row_labels(data), gridded=True)


@dataclass(frozen=True)
class TableColumn:
    """A column that was read.

    Attributes
    ----------
    values : Column
        Curves, numbers (n,) with NaN, or labels (n,) with None, where an entry is missing.
    order : tuple or None
        All levels of a categorical, in its order.
    ordered : bool
        Whether that is the order of an ordered categorical.
    kind : str
        ``"curves"``, ``"numbers"`` or ``"labels"``.
    n : int
        Number of rows.
    """

    values: Column
    order: tuple[Any, ...] | None = None
    ordered: bool = False
    kind: str = field(init=False)
    n: int = field(init=False)

    def __post_init__(self) -> None:
        own = self.values
        kind = "curves" if isinstance(own, Curves) else "numbers" if own.dtype.kind == "f" else "labels"
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "n", len(own.values if isinstance(own, Curves) else own))


def read_column(data: Any, name: str, grid: ArrayLike | None = None, default: FloatArray | None = None) -> TableColumn:
    """Read one column of a table; entries may be missing.

    Parameters
    ----------
    data : Series, FDataGrid, FDataBasis, FDataIrregular, DataFrame, xarray.DataArray or array_like
        Of shape (n,), or (n, S) for curves; an array of shape (n, 1) is a column of numbers. Points of very many
        irregular curves are rounded (:func:`binned`).
    name : str
        For messages.
    grid : array_like of shape (S,), optional
        Of curves, as :func:`fdadp.functional.tables.curve_inputs.as_curves` reads them.
    default : ndarray of shape (S,), optional
        Grid of curves that come without one.

    Raises
    ------
    InputError
        Neither numbers nor labels nor curves: dates, complex numbers, rows of several dimensions, objects.
    """
    if isinstance(data, Curves):
        return TableColumn(data)
    if isinstance(data, OpenedColumn) and not isinstance(data, OpenedCurves):
        entries = data.values()
        return _one_entry_a_row(entries if isinstance(entries, pd.Series) else pd.Series(entries), name, None, None)
    if isinstance(data, OpenedCurves):
        return TableColumn(as_curves(data, grid, name=name, default=default))
    module = type(data).__module__.split(".")[0]
    if "pandas" in sys.modules and module != "skfda" and isinstance(data, pd.Index | pd.api.extensions.ExtensionArray):
        data = pd.Series(data)
    if isinstance(data, pd.Series):
        held = data.array
        if type(held).__module__.split(".")[0] != "skfda":
            return _one_entry_a_row(data, name, grid, default)
        return TableColumn(replace(_of_skfda(held, name, grid), index=data.index))
    if module == "skfda":
        return TableColumn(_of_skfda(data, name, grid))
    if module == "xarray" and getattr(data, "ndim", 0) == 1:
        return _one_entry_a_row(pd.Series(data.to_numpy()), name, grid, default)
    if isinstance(data, pd.DataFrame) or module == "xarray":
        return TableColumn(as_curves(data, grid, name=name, default=default))
    if not isinstance(data, list | tuple | range) and not hasattr(data, "__array__"):
        raise InputError(f"{name} must hold curves, or one entry a row, got {_shown(data)}")
    if not isinstance(data, np.ndarray):
        whole = hasattr(data, "__array__") or (len(data) > 0 and isinstance(data[0], list | tuple | np.ndarray))
        data = _rows_of_lists(data, name) if whole else _series(list(data)).array
    if data.ndim == 2 and (data.shape[1] > 1 or grid is not None):
        return TableColumn(as_curves(data, grid, name=name, default=default))
    if data.ndim not in (1, 2):
        raise InputError(f"{name} must have shape (n,), or (n, S) for curves, got {data.shape}")
    column = data if data.ndim == 1 else data[:, 0]
    if type(column) is np.ndarray and column.dtype.kind in "biuf":
        return TableColumn(column.astype(np.float64))
    return _one_entry_a_row(pd.Series(column), name, grid, default)


def _series(entries: list[Any]) -> pd.Series[Any]:
    try:
        return pd.Series(entries)
    except OverflowError:  # of integers beyond all floats, before pandas 3
        return pd.Series(entries, dtype=object)


def _rows_of_lists(data: Any, name: str) -> Any:
    try:
        return np.asarray(data)
    except ValueError as exc:  # which tells no row
        raise InputError(f"{name} must have rows of one length, got rows of several") from exc


def _of_skfda(data: Any, name: str, grid: ArrayLike | None) -> Curves:
    rounded = binned(data) if type(data).__name__ == "FDataIrregular" and grid is None else None
    return as_curves(data, grid, name=name) if rounded is None else rounded


def _one_entry_a_row(
    data: pd.Series[Any], name: str, grid: ArrayLike | None, default: FloatArray | None
) -> TableColumn:
    dtype = data.dtype
    if data.array.shape != (len(data),):  # what pandas makes of the values of a function
        raise InputError(f"{name} must hold one entry a row, got an array of {dtype} in each. {_assign_hint(name)}")
    if isinstance(dtype, pd.CategoricalDtype):
        order = tuple(map(_label, dtype.categories.tolist()))
        levels = np.array([*order, None], dtype=object)
        return TableColumn(levels[np.asarray(data.cat.codes)], order, bool(dtype.ordered))
    if pd.api.types.is_complex_dtype(dtype) or pd.api.types.is_datetime64_any_dtype(dtype) or dtype.kind == "m":
        hint = "" if dtype.kind == "c" else "; make them numbers, as days since a date"
        raise InputError(f"{name} must hold numbers, labels or curves, got {dtype}{hint}")
    if pd.api.types.is_numeric_dtype(dtype):  # booleans are, too
        return TableColumn(data.to_numpy(dtype=np.float64, na_value=np.nan))
    entries = data.tolist()
    odd = next((i for i, entry in enumerate(entries) if isinstance(entry, np.ndarray) or not _is_plain(entry)), None)
    if odd is not None:
        return TableColumn(_curves_of_cells(entries, odd, name, grid, default))
    gone = np.asarray(data.isna(), dtype=bool)
    present = [entry for entry, lost in zip(entries, gone, strict=True) if not lost]
    if present and all(isinstance(entry, Real | Decimal | np.bool_) for entry in present):
        values = np.full(len(entries), np.nan)
        values[~gone] = [float_of(entry) for entry in present]
        return TableColumn(values)
    labels: Labels = np.empty(len(entries), dtype=object)
    labels[~gone] = [_label(entry) for entry in present]
    return TableColumn(labels)


def _is_plain(entry: Any) -> bool:
    """Whether an entry may be a number or a label."""
    if isinstance(entry, np.generic):
        return True
    return not (isinstance(entry, list | tuple | dict | set) or callable(entry) or hasattr(entry, "__array__"))


def _curves_of_cells(
    entries: Sequence[Any], odd: int, name: str, grid: ArrayLike | None, default: FloatArray | None
) -> Curves:
    """Curves of a column with an array in each cell, as Parquet files hold them."""
    shapes = {np.shape(entry) if isinstance(entry, np.ndarray) else None for entry in entries}
    shape = shapes.pop()
    if not shapes and shape is not None and len(shape) == 1 and shape[0] > 1:
        return as_curves(np.stack(entries), grid, name=name, default=default)
    entry = entries[odd]
    raise InputError(
        f"{name} must hold one number, one label or one curve a row, got {_shown(entry)} in row {odd}. "
        + _assign_hint(name)
    )


def _assign_hint(name: str) -> str:
    return (
        f"A data frame takes an FDataGrid by data[{name!r}] = curves; data.assign({name}=curves) calls the curves as "
        "a function"
    )


def _label(entry: Any) -> Any:
    """Plain text, number or truth value; of all else, such as the intervals of ``pandas.cut``, the text."""
    entry = entry.item() if isinstance(entry, np.generic) else entry
    return entry if isinstance(entry, str | int | float) else str(entry)


def _shown(data: Any) -> str:
    text = repr(data)
    short = text if len(text) <= 40 and "\n" not in text else ""
    return f"{type(data).__name__} {short}".rstrip()
