"""White features of a curve that acts through a surface, ``∫ F{X(s), s, t} ds``: private ``sff`` and ``af``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.private.columns import Column, CurvesColumn, unit_grid
from fdadp.private.white.base import column_of
from fdadp.private.whiten import WhitenedTerm
from fdadp.terms.additive import Additive
from fdadp.terms.base import HALF_WIDTH, Covariate
from fdadp.terms.surface import AdditiveTerm

if TYPE_CHECKING:
    from fdadp.private.prior import PublicPrior

__all__ = ["WhiteSurface"]

POINTS = 20


@dataclass(frozen=True, kw_only=True)
class WhiteSurface(WhitenedTerm):
    """Features of the additive term (:class:`~fdadp.terms.surface.AdditiveTerm`) on standardised curves, whitened."""

    @classmethod
    def on(cls, name: str, column: CurvesColumn, prior: PublicPrior) -> WhiteSurface:
        """Whiten under the prior's curves, and a Gaussian process for F, on splines as many as the prior says."""
        unit = unit_grid(column.grid)
        term = Additive(column.name).standard(Covariate(unit, (-HALF_WIDTH, HALF_WIDTH)), prior)
        white = cls.of(term, prior.x.standard(unit), unit, prior, prior.max_features)
        assert isinstance(white, cls)
        return replace(white, name=name)

    def axes(self, columns: Mapping[str, Column]) -> dict[str, FloatArray | tuple[Any, ...]]:
        """Points of s, and values of X within ±4 standard deviations."""
        column = column_of(columns, self.columns[0], CurvesColumn)
        reach = HALF_WIDTH * column.scale
        return {
            "s": np.linspace(column.grid[0], column.grid[-1], POINTS),
            "x": np.linspace(column.location - reach, column.location + reach, POINTS),
        }

    def effect(self, columns: Mapping[str, Column], count: int, *points: Any) -> FloatArray:
        """F at points (s, x), s slowest, less its mean over the prior's curves at each s."""
        column, term = column_of(columns, self.columns[0], CurvesColumn), self.term
        assert isinstance(term, AdditiveTerm)
        assert term.mean_x_basis is not None
        length = column.grid[-1] - column.grid[0]
        at_s = (np.asarray(points[0], dtype=np.float64) - column.grid[0]) / length
        at_x = (np.asarray(points[1], dtype=np.float64) - column.location) / column.scale
        over_x = term.x.basis.design(np.clip(at_x, -HALF_WIDTH, HALF_WIDTH))
        mean = np.stack([np.interp(at_s, self.grid, one) for one in term.mean_x_basis.T], axis=1)
        away = over_x[None] - mean[:, None]  # (s, x, kx)
        rows = np.einsum("sb,sxa->sxab", term.s.basis.design(at_s), away).reshape(at_s.size * at_x.size, -1)
        return np.asarray(rows @ self.whitening[:, :count] / length)
