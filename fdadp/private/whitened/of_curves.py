"""White features of a curve that acts through an integral, ``∫ X(s) β(s, t) ds``: private ``ff`` and ``lf``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.quadrature import quadrature_weights
from fdadp.functional.splines.bsplines import BSplines
from fdadp.functional.tables.sample import Curves
from fdadp.privacy import rowwise_matmul
from fdadp.private.public.columns import Column, CurvesColumn, unit_grid
from fdadp.private.whitened.base import WhiteTerm, white_axes

if TYPE_CHECKING:
    from fdadp.private.public.prior import PublicPrior

FUNCTIONS, MOST, POINTS = 10, 20, 40
"""B-splines over s, features kept at most, and points of s that effects are shown at."""


@dataclass(frozen=True, kw_only=True)
class WhiteIntegral(WhiteTerm):
    """Features ``(∫ x(s) B_l(s) ds - centre) @ whitening`` of a standardised curve x on [0, 1].

    Attributes
    ----------
    over_s : BSplines
        On [0, 1].
    centre : ndarray of shape (k,)
    whitening : ndarray of shape (k, d)
    """

    over_s: BSplines
    centre: FloatArray
    whitening: FloatArray

    @classmethod
    def of(cls, name: str, column: CurvesColumn, prior: PublicPrior, k: int = FUNCTIONS) -> WhiteIntegral:
        """Whiten under the prior's curves, and a Gaussian process for β in s."""
        unit, over_s = unit_grid(column.grid), BSplines.uniform(0.0, 1.0, k, margin=0.0)
        curves = prior.x.standard(unit)
        rows = curves @ (over_s.design(unit) * quadrature_weights(unit)[:, None])
        centre, whitening, variances = white_axes(rows, prior.slope.covariance(k), MOST)
        return cls(
            name=name,
            columns=(column.name,),
            shares=variances / variances.sum(),
            over_s=over_s,
            centre=centre,
            whitening=whitening,
        )

    def features(self, seen: Mapping[str, Any], count: int) -> FloatArray:
        """Integrals of the standardised curves against white functions."""
        x: Curves = seen[self.columns[0]]
        weighted = self.over_s.design(x.grid) * quadrature_weights(x.grid)[:, None]
        rows = rowwise_matmul(x.values, weighted) - self.centre
        return rowwise_matmul(rows, np.ascontiguousarray(self.whitening[:, :count]))

    def axes(self, columns: Mapping[str, Column]) -> dict[str, FloatArray | tuple[Any, ...]]:
        """Points of s."""
        column = columns[self.columns[0]]
        assert isinstance(column, CurvesColumn)
        return {"s": np.linspace(column.grid[0], column.grid[-1], POINTS)}

    def effect(self, columns: Mapping[str, Column], count: int, *points: Any) -> FloatArray:
        """What stands for β at points of s."""
        column = columns[self.columns[0]]
        assert isinstance(column, CurvesColumn)
        start, end = column.grid[0], column.grid[-1]
        at = (np.asarray(points[0], dtype=np.float64) - start) / (end - start)
        return np.asarray(self.over_s.design(at) @ self.whitening[:, :count] / (column.scale * (end - start)))
