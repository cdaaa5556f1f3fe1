"""Responses: how what is explained becomes numbers, and how predicted numbers become what they are of."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.functional.fpca import Eigenbasis, dense_eigenbasis, face_eigenbasis

# A curve, described by its scores on a few eigenfunctions.


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


# Observations at points of their own: each record's curve where it was observed.


POINTS = 101
"""Of the grid for predictions where responses have more points of their own."""


@dataclass(frozen=True)
class PointwiseResponse:
    """Observations ``y`` of record ``record`` at ``t``, one an entry.

    Attributes
    ----------
    record : ndarray of shape (N,)
        Row of the covariates, from 0; does not decrease.
    t, y : ndarray of shape (N,)
        Finite; t does not decrease within a record, and may repeat.
    n : int
        Number of records; some may have no observation.
    """

    record: IntArray
    t: FloatArray
    y: FloatArray
    n: int

    @classmethod
    def of(cls, record: IntArray, t: FloatArray, y: FloatArray, n: int, name: str = "Y") -> PointwiseResponse:
        """Observations in any order; those whose y is NaN were not made.

        Raises
        ------
        InputError
            A point that is not finite, an infinite value, or no observation at all.
        """
        seen = ~np.isnan(y)
        bad = np.flatnonzero(seen & ~(np.isfinite(t) & np.isfinite(y)))
        if bad.size:
            i = int(bad[0])
            raise InputError(f"{name} must be observed at finite t with finite values, got {y[i]:g} at {t[i]:g}")
        if not seen.any():
            raise InputError(f"{name} must have at least one observation, got none")
        order = np.lexsort((t[seen], record[seen]))
        return cls(record[seen][order].astype(np.int64), t[seen][order], y[seen][order], n)

    def grid(self, most: int = POINTS) -> FloatArray:
        """All points of t, or `most` even ones where there are more."""
        points = np.unique(self.t)
        return points if points.size <= most else np.linspace(points[0], points[-1], most)

    def __len__(self) -> int:
        return self.n
