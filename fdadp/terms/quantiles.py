"""X by its quantiles: ``X(s)`` becomes its rank among the training curves at s, so that knots lie where curves are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.tables.sample import Curves

MOST = 257
"""Quantiles kept at each point; with no more curves than that the transform is that of the ranks, exactly."""


@dataclass(frozen=True)
class QuantileTransform:
    """The pointwise empirical distribution function, ``(rank - 1)/(n - 1)`` on the training curves.

    Ties get their mean rank. Between training values it is linear; beyond them it is 0 or 1, as a distribution function
    is, so a surface goes on as a constant there.

    Attributes
    ----------
    grid : ndarray of shape (S,)
    table : ndarray of shape (S, Q)
        Quantiles of X(s) at Q even levels from 0 to 1.

    References
    ----------
    McLean, Hooker, Staicu, Scheipl & Ruppert (2014), Functional generalized additive models, JCGS 23(1), section 3.3,
    doi:10.1080/10618600.2012.729985; ``refund::af(Qtransform = TRUE)`` 0.1-38.
    """

    grid: FloatArray
    table: FloatArray

    @classmethod
    def of(cls, x: Curves) -> QuantileTransform:
        """Learn it from complete curves."""
        ranks = np.round(np.linspace(0, len(x) - 1, min(len(x), MOST))).astype(int)
        return cls(x.grid, np.ascontiguousarray(np.sort(x.values, axis=0)[ranks].T))

    def __call__(self, x: Curves) -> FloatArray:
        """Levels of complete curves on a grid over the same domain, shape (n, S')."""
        table = self._at(x.grid)
        levels = np.empty(x.values.shape)
        for j, quantiles in enumerate(table):
            values, first, count = np.unique(quantiles, return_index=True, return_counts=True)
            levels[:, j] = np.interp(x.values[:, j], values, (first + (count - 1) / 2) / max(quantiles.size - 1, 1))
        return levels

    def count_outside(self, x: Curves) -> int:
        """Number of values below or above all training values at their point."""
        table = self._at(x.grid)
        return int(((x.values < table[:, 0]) | (x.values > table[:, -1])).sum())

    def _at(self, grid: FloatArray) -> FloatArray:
        if np.array_equal(grid, self.grid):
            return self.table
        return np.stack([np.interp(grid, self.grid, quantile) for quantile in self.table.T], axis=1)
