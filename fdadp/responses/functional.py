"""A response that is a curve, described by its scores on a few eigenfunctions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.fpca import Eigenbasis, dense_eigenbasis, face_eigenbasis


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

    def fixed(self, n: int, mean: FloatArray, scatter: FloatArray, t: FloatArray) -> Eigenbasis:
        """Mean and eigenfunctions of the training curves.

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
            return replace(given, mean=mean)
        cap = min(n - 1, t.size)  # more components than n - 1 have no scores to regress
        if isinstance(given, (int, np.integer)) and given > cap:
            raise InputError(f"n_components must be at most {cap} for {n} curves, got {given}")
        estimate = face_eigenbasis if self.fpca == "face" and t.size >= 12 else dense_eigenbasis
        return estimate(mean, scatter / n, t, n_components=given, max_components=cap)
