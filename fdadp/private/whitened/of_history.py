"""White features of a curve that acts through an integral up to t, ``∫ X(s) β(s, t) ds``: private ``ff(limits=)``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fdadp._common.typing import BoolArray, FloatArray
from fdadp.errors import InputError
from fdadp.functional.quadrature import quadrature_weights
from fdadp.functional.splines.bsplines import BSplines
from fdadp.functional.tables.sample import Curves
from fdadp.private.public.columns import Column, CurvesColumn, unit_grid
from fdadp.private.public.prior import PublicPrior
from fdadp.private.whitened.base import column_of, white_directions
from fdadp.private.whitened.of_curves import FUNCTIONS, MOST, WhiteIntegral
from fdadp.terms._windows import windowed
from fdadp.terms.curves.functional_linear import Limits, limits_of


@dataclass(frozen=True, kw_only=True)
class WhiteHistory(WhiteIntegral):
    """Features ``∫ x(s) B_l(s) ds`` over the points s that act on t, times a whitening matrix: white on average over t.

    Attributes
    ----------
    limits : str or callable
        Which points s act on t, in units of both grids.
    grid : ndarray of shape (S,)
        Of the column of curves, which are seen on [0, 1].
    t : ndarray of shape (T,)
        Points of the response.
    """

    limits: str | Limits
    grid: FloatArray
    t: FloatArray

    @classmethod
    def within(
        cls,
        name: str,
        column: CurvesColumn,
        prior: PublicPrior,
        t: FloatArray,
        limits: str | Limits,
        k: int = FUNCTIONS,
    ) -> WhiteHistory:
        """Whiten under the prior's curves, and a Gaussian process for β in s, over all t."""
        over_s = BSplines.uniform(0.0, 1.0, k, margin=0.0)
        white = cls(
            name=name,
            columns=(column.name,),
            shares=np.ones(k),
            over_s=over_s,
            centre=np.zeros(k),
            whitening=np.eye(k),
            limits=limits,
            grid=column.grid,
            t=t,
        )
        acting = white._inside(column.grid).any(axis=0)
        if acting.sum() < 2:
            raise InputError(f"limits of {name} must leave points of {column.name} for some t, got {int(acting.sum())}")
        rows = white.drawn(prior, k)
        square = np.einsum("nat,nbt,t->ab", rows, rows, quadrature_weights(unit_grid(t)), optimize=True) / len(rows)
        whitening, variances = white_directions(square, prior.slope.covariance(k), MOST)
        return replace(white, shares=variances / variances.sum(), whitening=whitening)

    @property
    def separable(self) -> bool:
        """Features differ between points."""
        return False

    def at(self, t: FloatArray) -> WhiteHistory:
        """The integrals up to other points."""
        return replace(self, t=t)

    def _inside(self, s: FloatArray) -> BoolArray:
        """Where a point s acts on a point t, shape (T, S)."""
        acts = np.asarray(limits_of(self.limits)(s[None, :], self.t[:, None]), dtype=bool)
        return np.broadcast_to(acts, (self.t.size, s.size))

    def features(self, seen: Mapping[str, Any], count: int) -> FloatArray:
        """Integrals of the standardised curves against white functions at each t, shape (m, count, T)."""
        x: Curves = seen[self.columns[0]]
        start, end = self.grid[0], self.grid[-1]
        functions = (self.over_s.design(x.grid) @ self.whitening)[:, :count]
        weighted = functions * quadrature_weights(x.grid)[:, None]
        inside = self._inside(start + x.grid * (end - start))
        return windowed(x.values, weighted, inside)

    def drawn(self, prior: PublicPrior, count: int) -> FloatArray:
        """Integrals of the prior's curves."""
        unit = unit_grid(self.grid)
        return self.features({self.columns[0]: Curves(prior.x.standard(unit), unit)}, count)

    def acts(self, columns: Mapping[str, Column], axes: Mapping[str, Any]) -> BoolArray | None:
        """Where s acts on t."""
        column_of(columns, self.columns[0], CurvesColumn)
        return np.asarray(limits_of(self.limits)(axes["s"][:, None], axes["t"][None, :]), dtype=bool)
