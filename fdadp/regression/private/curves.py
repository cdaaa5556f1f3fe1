"""Curves of a private fit: only their shape, grid and kind are looked at here.

What is no number becomes NaN, and NaN a public constant inside the kernel: no error may depend on a private value.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from fdadp._typing import ArrayLike, CurveData, FloatArray
from fdadp.curves import Curves, as_curves, as_grid
from fdadp.errors import InputError

__all__ = ["private_curves"]


def private_curves(data: CurveData, grid: ArrayLike | None, name: str) -> Curves:
    """Take curves as they are, without looking at their values.

    Raises
    ------
    InputError
        Not curves on one grid, or a grid that does not fit: all of it public.
    """
    if type(data).__module__.split(".")[0] == "skfda":
        if type(data).__name__ != "FDataGrid":
            raise InputError(
                f"{name} must be an FDataGrid, a DataFrame or an array in a private fit, got {type(data).__name__}: "
                "put the curves on a common grid first, each by itself and by a public rule"
            )
        return as_curves(data, grid, name=name)
    values = data.to_numpy() if isinstance(data, pd.DataFrame) else data
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.empty(0)
    if array.ndim != 2 or 0 in array.shape:
        raise InputError(f"{name} must be two-dimensional (curves, points) and not empty")
    if array.dtype.kind not in "fiub":
        numbers = pd.to_numeric(pd.Series(array.ravel().astype(object)), errors="coerce")
        array = numbers.to_numpy(dtype=np.float64, na_value=np.nan).reshape(array.shape)
    numeric: FloatArray = array.astype(np.float64, copy=False)  # a shared budget knows data by their place
    if isinstance(data, pd.DataFrame):
        return as_curves(pd.DataFrame(numeric, index=data.index, columns=data.columns), grid, name=name)
    return Curves(numeric, as_grid(grid, numeric.shape[1], f"grid of {name}"))
