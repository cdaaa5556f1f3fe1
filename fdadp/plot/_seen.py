"""Where the rows of a table are, in the plane of a heat map."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fdadp._common.typing import BoolArray, CurveData, FloatArray
from fdadp.errors import InputError
from fdadp.functional.tables.curves import as_curves

FAR = 0.1
"""How far, as a share of their ranges, two numbers may be from the nearest row: mgcv's ``too.far``."""


def where_curves_run(x: FloatArray, s: FloatArray, X: CurveData | None, grid: FloatArray) -> BoolArray:
    """Where curves run: mask of shape (len(x), len(s)); everywhere without curves."""
    if X is None:
        return np.ones((x.size, s.size), dtype=bool)
    curves = as_curves(X, name="X", default=grid)
    low = np.interp(s, curves.grid, np.nanmin(curves.values, axis=0))
    high = np.interp(s, curves.grid, np.nanmax(curves.values, axis=0))
    step = x[1] - x[0]  # half a cell on either side, so that narrow ranges do not vanish
    seen: BoolArray = (x[:, None] >= low - step / 2) & (x[:, None] <= high + step / 2)
    return seen


def where_seen(columns: tuple[str, ...], axes: Mapping[str, Any], data: Any) -> BoolArray | None:
    """Mask over the first two axes of an effect, where these are a curve's domain and its values, or two numbers.

    Parameters
    ----------
    columns : tuple of str
        That the term reads.
    axes : mapping of str to ndarray
        Of the effect, in order.
    data : DataFrame or mapping
        With these columns.
    """
    first, second = (*list(axes)[:2], "", "")[:2]
    if (first, second) == ("s", "x"):
        curves = column_of(data, columns[0])
        default = np.linspace(axes["s"][0], axes["s"][-1], np.shape(curves)[-1]) if np.ndim(curves) == 2 else None
        read = as_curves(curves, name=columns[0], default=default)
        return where_curves_run(axes["x"], axes["s"], read.values, read.grid).T
    if not {first, second} <= set(columns) or any(axes[name].dtype.kind != "f" for name in (first, second)):
        return None
    z = [np.asarray(column_of(data, name), dtype=np.float64) for name in (first, second)]
    spans = [np.ptp(axes[name]) or 1.0 for name in (first, second)]
    down, across = (axes[name] / span for name, span in zip((first, second), spans, strict=True))
    nearest = np.full((down.size, across.size), np.inf)
    for a, b in zip(*(one / span for one, span in zip(z, spans, strict=True)), strict=True):
        np.fmin(nearest, np.hypot(down[:, None] - a, across - b), out=nearest)
    found: BoolArray = nearest <= FAR
    return found


def column_of(data: Any, name: str) -> Any:
    """A column of a table.

    Raises
    ------
    InputError
        There is none of this name.
    """
    try:
        column = data[name]
    except (KeyError, IndexError, TypeError) as exc:
        raise InputError(f"data must have the column {name!r}, got none") from exc
    own = getattr(column, "array", None)
    return own if hasattr(own, "grid_points") else column
