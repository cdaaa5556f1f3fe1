"""A response that is a curve, described by its scores on a few eigenfunctions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.functional.curves import as_grid
from fdadp.functional.fpca import Eigenbasis

__all__ = ["FunctionalResponse"]


@dataclass(frozen=True)
class FunctionalResponse:
    """Curves ``Y(t) = mean(t) + Σ_k score_k φ_k(t)``.

    Attributes
    ----------
    basis : Eigenbasis
        Mean curve and functions φ_k that predictions are made of (K).
    interval_functions : ndarray of shape (C, T)
        Functions whose coefficients the covariance of a fit is of: the same ones, or in a private fit those in which
        the posterior was computed.
    """

    basis: Eigenbasis
    interval_functions: FloatArray

    @property
    def grid(self) -> FloatArray:
        """That of the training curves, shape (T,)."""
        return self.basis.grid

    @property
    def weights(self) -> FloatArray:
        """Quadrature weights on the grid."""
        return self.basis.weights

    def at(self, t: ArrayLike | None = None) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Points, mean curve and functions at points `t`, by default those of the training grid.

        Raises
        ------
        InputError
            Points outside the training domain, or not increasing.
        """
        if t is None:
            return self.basis.grid, self.basis.mean, self.basis.functions
        points = as_grid(t, np.size(t), "t")
        return points, *self.basis.evaluate(points)

    def interval_functions_at(self, points: FloatArray) -> FloatArray:
        """Functions of the covariance at points, shape (C, T')."""
        from scipy.interpolate import CubicSpline

        if np.array_equal(points, self.grid):
            return self.interval_functions
        return np.asarray(CubicSpline(self.grid, self.interval_functions, axis=1)(points))
