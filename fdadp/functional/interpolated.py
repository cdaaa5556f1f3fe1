"""Functions that are known on a grid, between its points by straight lines or by cubic splines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.functional.smooths import SmoothMargin


@dataclass(frozen=True)
class Interpolated:
    """A basis of K functions.

    Attributes
    ----------
    grid : ndarray of shape (T,)
        Increasing.
    functions : ndarray of shape (T, K)
    smooth : bool
        By cubic splines, of points within the grid; else by straight lines, beyond the grid as at its ends.
    """

    grid: FloatArray
    functions: FloatArray
    smooth: bool = False

    def design(self, x: ArrayLike) -> FloatArray:
        """All functions at points (n,), shape (n, K)."""
        points = np.asarray(x, dtype=np.float64)
        if np.array_equal(points, self.grid):
            return self.functions
        if self.smooth:
            from scipy.interpolate import CubicSpline

            return np.asarray(CubicSpline(self.grid, self.functions)(points), dtype=np.float64)
        return np.stack([np.interp(points, self.grid, f) for f in self.functions.T], axis=1)


def margin_of(grid: FloatArray, functions: FloatArray, *, smooth: bool = False) -> SmoothMargin:
    """Functions (T, K) on a grid, which may be smooth between its points, as a margin without a penalty."""
    k = functions.shape[1]
    return SmoothMargin(Interpolated(grid, functions, smooth), np.eye(k), np.zeros((k, k)), np.eye(k), np.zeros(k))
