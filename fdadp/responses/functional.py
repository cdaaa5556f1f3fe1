"""A response that is a curve, described by its scores on a few eigenfunctions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.functional.curves import as_grid
from fdadp.functional.fpca import Eigenbasis, dense_eigenbasis, face_eigenbasis

__all__ = ["Functional", "FunctionalResponse"]


@dataclass(frozen=True)
class Functional:
    """A functional response before its basis is known.

    Parameters
    ----------
    basis : float, int or Eigenbasis
        Share of variance that the eigenfunctions must explain, their number, or the functions themselves; of these the
        mean is still that of the training curves.
    fpca : {"face", "dense"}
        Eigenfunctions with or without smoothing of the covariance; ``"dense"`` on fewer than 12 points.
    """

    basis: float | Eigenbasis = 0.95
    fpca: str = "face"

    def fixed(self, n: int, mean: FloatArray, scatter: FloatArray, t: FloatArray) -> FunctionalResponse:
        """The response on the eigenfunctions of the training curves.

        Parameters
        ----------
        n : int
            Number of curves.
        mean : ndarray of shape (T,)
        scatter : ndarray of shape (T, T)
            Their scatter about it.
        t : ndarray of shape (T,)

        Raises
        ------
        InputError
            More components than curves or points allow; a given basis on another grid.
        """
        given = self.basis
        if isinstance(given, Eigenbasis):
            if not np.array_equal(given.grid, t):
                raise InputError(
                    f"n_components must be a basis on the grid of Y, {t.size} points, got one on {given.grid.size}"
                )
            return FunctionalResponse(replace(given, mean=mean), given.functions)
        cap = min(n - 1, t.size)  # more components than n - 1 have no scores to regress
        if isinstance(given, (int, np.integer)) and given > cap:
            raise InputError(f"n_components must be at most {cap} for {n} curves, got {given}")
        estimate = face_eigenbasis if self.fpca == "face" and t.size >= 12 else dense_eigenbasis
        basis = estimate(mean, scatter / n, t, n_components=given, max_components=cap)
        return FunctionalResponse(basis, basis.functions)


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
    def n_outputs(self) -> int:
        """K, the number of functions."""
        return self.basis.n_components

    @property
    def projection(self) -> FloatArray:
        """Scores are ``(Y - mean) @ projection``; shape (T, K)."""
        return (self.basis.functions * self.basis.weights).T

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
