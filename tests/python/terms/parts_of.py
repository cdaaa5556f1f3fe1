"""A term of a user's own, by docs/extend/term.md alone: ``∫ X(s) β(s, t) ds``, β constant on parts of the domain."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fdadp.functional.quadrature import quadrature_weights
from fdadp.privacy import rowwise_matmul
from fdadp.terms.spec import TermDesign, TermSpec, along_response, no_penalties


@dataclass(frozen=True)
class PartsOf(TermSpec):
    """Integrals of a curve over equal parts of its domain, each times a function of t."""

    column: str
    parts: int = 3

    function = "parts_of"

    def fixed(self, seen, t):
        grid = seen.curves_of(self.column).grid
        along = along_response(t, k=5, m=(2, 1))
        penalties = no_penalties(self.parts)
        return PartsDesign(name=self.name, columns=self.columns, own_penalties=penalties, grid=grid, **along)


@dataclass(frozen=True, kw_only=True)
class PartsDesign(TermDesign):
    grid: Any

    def _inside(self, s):
        start, end = self.grid[0], self.grid[-1]
        part = np.floor((s - start) / (end - start) * self.n_features).clip(0, self.n_features - 1)
        return (part[:, None] == np.arange(self.n_features)).astype(float)

    def features(self, records, t=None):
        x = records.curves(self.columns[0], self.grid)
        return rowwise_matmul(x.values, self._inside(x.grid) * quadrature_weights(x.grid)[:, None])

    @property
    def axes(self):
        return {"s": np.linspace(self.grid[0], self.grid[-1], 30)}

    def effect(self, *points):
        return self._inside(np.asarray(points[0], dtype=float))
