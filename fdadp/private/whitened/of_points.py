"""White features of a curve that acts at the same point, ``X(t) β(t)``: private ``concurrent``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.tables.sample import Curves
from fdadp.private.public.columns import Column, CurvesColumn, unit_grid
from fdadp.private.public.prior import PublicPrior
from fdadp.private.whitened.base import WhiteTerm, column_of
from fdadp.terms.curves.functional_concurrent import refuse_beyond, values_at


@dataclass(frozen=True, kw_only=True)
class WhiteConcurrent(WhiteTerm):
    """One feature, the value of the standardised curve at t: of variance one, and multiplied by white functions of t.

    Attributes
    ----------
    grid : ndarray of shape (S,)
        Of the column of curves, which are seen on [0, 1].
    t : ndarray of shape (T,)
        Points of the response.
    """

    grid: FloatArray
    t: FloatArray

    @classmethod
    def of(cls, name: str, column: CurvesColumn, t: FloatArray) -> WhiteConcurrent:
        """Of a column of curves on the domain of the response."""
        refuse_beyond(column.grid, t, column.name)
        return cls(name=name, columns=(column.name,), shares=np.ones(1), grid=column.grid, t=t)

    @property
    def separable(self) -> bool:
        """Features differ between points."""
        return False

    def at(self, t: FloatArray) -> WhiteConcurrent:
        """The values at other points; raises InputError beyond the domain of the curves."""
        refuse_beyond(self.grid, t, self.columns[0])
        return replace(self, t=t)

    def _values(self, x: Curves) -> FloatArray:
        start, end = self.grid[0], self.grid[-1]
        return values_at(x, np.clip((self.t - start) / (end - start), x.grid[0], x.grid[-1]))

    def features(self, seen: Mapping[str, Any], count: int) -> FloatArray:
        """Values of the standardised curves, shape (m, 1, T)."""
        return self._values(seen[self.columns[0]])[:, None, :]

    def drawn(self, prior: PublicPrior, count: int) -> FloatArray:
        """Values of the prior's curves."""
        unit = unit_grid(self.grid)
        return self.features({self.columns[0]: Curves(prior.x.standard(unit), unit)}, count)

    def effect(self, columns: Mapping[str, Column], count: int, *points: Any) -> FloatArray:
        """What stands for β, which varies with t alone."""
        return np.array([[1 / column_of(columns, self.columns[0], CurvesColumn).scale]])
