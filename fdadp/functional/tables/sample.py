"""What a sample of curves is: values ``(n, S)`` on one grid ``(S,)``, and the kind of object it came as."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.functional.tables.kinds import Given, Kind, wrap


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
        Of the grid, where column labels are dates or times, as ``"days since 2020-01-01"``.
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
    if module == "fdadp":  # Curves
        return getattr(data, "index", None)
    return None


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
