"""What a sample of curves is: values ``(n, S)`` on one grid ``(S,)``, and the kind of object it came as.

Users pass an ``FDataGrid`` (or another scikit-fda object), a ``DataFrame`` (one curve a row) or an array
``(n, S)``; they get back the kind they gave.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from fdadp._typing import ArrayLike, CurveData, FloatArray
from fdadp.errors import InputError

__all__ = ["Curves", "as_curves", "as_grid", "check_finite"]

Kind = Literal["array", "frame", "fdatagrid"]


@dataclass(frozen=True)
class Curves:
    """A sample of curves on a common grid.

    Attributes
    ----------
    values : ndarray of shape (n, S)
    grid : ndarray of shape (S,)
        Strictly increasing.
    kind : {"array", "frame", "fdatagrid"}
        The kind of object the user gave.
    index, columns : pandas.Index or None
        Row and column labels of a data frame.
    """

    values: FloatArray
    grid: FloatArray
    kind: Kind = "array"
    index: pd.Index[Any] | None = None
    columns: pd.Index[Any] | None = None

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def wrap(self, values: FloatArray, grid: FloatArray, index: pd.Index[Any] | None = None) -> Any:
        """Return `values` on `grid` as the kind of object that this sample came as."""
        return wrap(values, grid, kind=self.kind, columns=self.columns, index=index, own_grid=self.grid)


def wrap(
    values: FloatArray,
    grid: FloatArray,
    *,
    kind: Kind,
    columns: pd.Index[Any] | None = None,
    index: pd.Index[Any] | None = None,
    own_grid: FloatArray | None = None,
) -> Any:
    """Return curve values as an array, a data frame or an ``FDataGrid``."""
    if kind == "fdatagrid":
        from skfda import FDataGrid

        return FDataGrid(values, grid_points=grid)
    if kind == "frame":
        keep = columns is not None and own_grid is not None and np.array_equal(grid, own_grid)
        return pd.DataFrame(values, index=index, columns=columns if keep else pd.Index(grid))
    return values


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
        )
    return points


def as_curves(
    data: CurveData, grid: ArrayLike | None = None, *, name: str = "X", default: FloatArray | None = None
) -> Curves:
    """Read what the user gave as curves; values may still be missing (see :func:`check_finite`).

    Parameters
    ----------
    data : FDataGrid, FDataBasis, FDataIrregular, DataFrame, or array_like of shape (n, S)
        One curve a row; masked values and pandas' missing values become NaN. Irregular curves come out on
        `grid`, which must hold all their points (default: the union of their points), with NaN between.
        An ``FDataBasis`` is evaluated on `grid` (default: 101 points, as scikit-fda does not store one).
    grid : array_like of shape (S,), optional
        Evaluation points. Default: those of the scikit-fda object, numeric column labels of a data
        frame, else an even grid on [0, 1].
    name : str
        The argument's name in error messages.
    default : ndarray, optional
        A known grid for data without one: taken as it is if the length fits, else an even grid on its domain.

    Raises
    ------
    InputError
        Not numeric or not real, not two-dimensional, empty, vector-valued curves, an irregular curve with two
        values at one point, or a grid that does not fit.
    """
    if isinstance(data, Curves):
        return data
    if type(data).__module__.split(".")[0] == "skfda":
        return _from_skfda(data, grid, name)
    index = columns = None
    kind: Kind = "array"
    if isinstance(data, pd.DataFrame):
        kind, index, columns = "frame", data.index, data.columns
        if grid is None and _has_numeric_labels(columns):
            grid = np.asarray(columns, dtype=np.float64)
    try:
        values = _real_array(data)
    except (TypeError, ValueError) as exc:
        raise InputError(f"{name} must be numeric with one curve per row, got {type(data).__name__}: {exc}") from exc
    if values.ndim != 2:
        raise InputError(f"{name} must be two-dimensional (curves, points), got shape {values.shape}")
    if 0 in values.shape:
        raise InputError(f"{name} must not be empty, got shape {values.shape}")
    if grid is None and default is not None:
        same = default.size == values.shape[1]
        grid = default if same else np.linspace(default[0], default[-1], values.shape[1])
    return Curves(values, as_grid(grid, values.shape[1], f"grid of {name}"), kind, index, columns)


def _real_array(data: Any) -> FloatArray:
    if isinstance(data, pd.DataFrame):
        return data.to_numpy(dtype=np.float64, na_value=np.nan)
    if np.iscomplexobj(data):
        raise TypeError("complex values")
    if isinstance(data, np.ma.MaskedArray):
        return np.asarray(np.ma.filled(np.ma.asarray(data, dtype=np.float64), np.nan))
    return np.asarray(data, dtype=np.float64)


def _has_numeric_labels(columns: pd.Index[Any]) -> bool:
    if isinstance(columns, pd.RangeIndex):  # pandas' default labels say nothing about the grid
        return False
    try:
        points = np.asarray(columns, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return bool((np.diff(points) > 0).all())


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
        return Curves(np.asarray(data(points)[..., 0]), points, "fdatagrid")
    if isinstance(data, FDataGrid):
        values = np.asarray(data.data_matrix[..., 0], dtype=np.float64)
        own = np.asarray(data.grid_points[0], dtype=np.float64)
        if grid is not None and not np.array_equal(as_grid(grid, np.size(grid), f"grid of {name}"), own):
            raise InputError(f"grid of {name} must be left out or equal the FDataGrid's own grid_points")
        if 0 in values.shape:
            raise InputError(f"{name} must not be empty, got shape {values.shape}")
        return Curves(values, as_grid(own, own.size, f"grid of {name}"), "fdatagrid")
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
    return Curves(values, points, "fdatagrid")


def check_finite(curves: Curves, name: str = "X", first: int = 0) -> None:
    """Refuse NaN and infinite values, naming the curve (counted from `first`) and the position.

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
            f"(grid point {curves.grid[j]:g}); {len(bad)} such value(s) in all. "
            "Choose a treatment with missing='smooth' or missing='fpca', or mend the data"
        )
