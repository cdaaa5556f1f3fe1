"""Samples of curves from whatever users have.

They pass an ``FDataGrid`` (or another scikit-fda object), a ``DataFrame`` (one curve a row), a two-dimensional
``xarray.DataArray``, an array ``(n, S)`` or what :func:`fdadp.open_curves` takes; they get back the kind they gave.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from fdadp._common.typing import ArrayLike, CurveData, FloatArray
from fdadp.errors import InputError
from fdadp.functional.containers.open import is_foreign, opened
from fdadp.functional.containers.source_table import OpenedCurves, OpenedTable
from fdadp.functional.tables.axis import axis_of
from fdadp.functional.tables.frames import axis_of_frame, frame_of_dataarray, refuse_layout, values_of
from fdadp.functional.tables.kinds import Given, Kind
from fdadp.functional.tables.sample import Curves, as_grid, row_labels


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
        of a DataArray, that are numbers, dates or times (:mod:`fdadp.functional.tables.axis`), turned round with the
        values where they decrease; else an even grid on [0, 1].
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
                f"{name} must have {default.size} points a curve, as the fit had, or come with the grid that it is on "
                f"(an FDataGrid, a data frame whose column labels are the points, or as an argument beside them), got "
                f"{values.shape[1]} points"
            )
        points = as_grid(default, values.shape[1], f"grid of {name}")
        return Curves(values, points, kind, index, columns, given=given)
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
    at = np.asarray(data.points[:, 0], dtype=np.float64)
    wanted = np.unique(at) if grid is None else grid
    points = as_grid(wanted, np.size(wanted), f"grid of {name}")
    row = np.repeat(np.arange(data.n_samples), np.diff(np.append(data.start_indices, at.size)))
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
    values[row, position] = np.asarray(data.values[:, 0], dtype=np.float64)
    return Curves(values, points, "fdatagrid", row_labels(data), gridded=True)


def refuse_other_domain(curves: Curves, grid: FloatArray, name: str) -> None:
    """Refuse curves that do not lie on the domain of a grid.

    Raises
    ------
    InputError
        Naming the argument and both domains.
    """
    start, end = grid[0], grid[-1]
    if (np.abs(curves.grid[[0, -1]] - (start, end)) > 1e-6 * (end - start)).any():
        raise InputError(
            f"{name} must lie on the training domain [{start:g}, {end:g}], "
            f"got [{curves.grid[0]:g}, {curves.grid[-1]:g}]"
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
