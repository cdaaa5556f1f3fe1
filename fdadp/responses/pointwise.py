"""Responses at points of their own: each record's curve where it was observed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError

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
