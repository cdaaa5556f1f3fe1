"""White features of a curve that acts through a surface, ``∫ F{X(s), s, t} ds``: private ``sff`` and ``af``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.splines.diagonal_margins import SmoothMargin
from fdadp.functional.tables.curve_sample import Curves
from fdadp.privacy import rowwise_matmul
from fdadp.private.public.column_ranges import HALF_WIDTH, Column, CurvesColumn, unit_grid
from fdadp.private.whitened.white_term import WhiteTerm, column_of, white_axes
from fdadp.terms.additive_surface import Surface

if TYPE_CHECKING:
    from fdadp.private.public.gaussian_process_prior import PublicPrior

POINTS = 20


@dataclass(frozen=True, kw_only=True)
class WhiteSurface(WhiteTerm):
    """Features ``(z(x) - centre) @ whitening`` of a standardised curve x, z those of the additive term.

    Attributes
    ----------
    term : Surface
        For curves on [0, 1] with values in ±4.
    grid : ndarray of shape (S,)
    centre : ndarray of shape (q,)
        Prior mean of the feature rows z.
    whitening : ndarray of shape (q, d)
        White under (prior of the curves) x (prior of the surface), the most telling direction first.
    """

    term: Surface
    grid: FloatArray
    centre: FloatArray
    whitening: FloatArray

    @classmethod
    def on(cls, name: str, column: str, grid: FloatArray, prior: PublicPrior) -> WhiteSurface:
        """Whiten under the prior's curves, and a Gaussian process for F, on splines as many as the prior says.

        Parameters
        ----------
        name, column : str
            Of the term, and of the curves.
        grid : ndarray of shape (S,)
            Of the curves.
        prior : PublicPrior
        """
        unit = unit_grid(grid)
        curves = prior.x.standard(unit)
        reach = (-HALF_WIDTH, HALF_WIDTH)
        term = _on_splines(name, column, reach, unit, (prior.n_basis_x, prior.n_basis_s))
        rows, seen = term.integrals(Curves(curves, unit))
        term = term.learned(seen, len(curves))
        law = prior.surface_covariance(*term.shape)
        centre, whitening, variances = white_axes(rows, law, prior.max_features)
        return cls(
            name=name,
            columns=(column,),
            shares=variances / variances.sum(),
            term=term,
            grid=unit,
            centre=centre,
            whitening=whitening,
        )

    def rows(self, x: Curves) -> FloatArray:
        """Integrals of standardised curves about the prior's mean, shape (m, q)."""
        return np.asarray(self.term.rows(x) - self.centre)

    def features(self, seen: Mapping[str, Any], count: int) -> FloatArray:
        """First white features of standardised curves without gaps, each row by itself; shape (m, count)."""
        return rowwise_matmul(self.rows(seen[self.columns[0]]), np.ascontiguousarray(self.whitening[:, :count]))

    def in_units(self, column: CurvesColumn, grid: FloatArray) -> Surface:
        """The surface of curves as they are: splines of the same shape over their own units."""
        low, high = (column.location + column.scale * end for end in self.term.x_range)
        own = _on_splines(self.name, self.columns[0], (low, high), grid, self.term.shape, continuation="constant")
        return replace(own, mean_basis=self.term.mean_basis)

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
        assert term.mean_basis is not None
        length = column.grid[-1] - column.grid[0]
        at_s = (np.asarray(points[0], dtype=np.float64) - column.grid[0]) / length
        at_x = (np.asarray(points[1], dtype=np.float64) - column.location) / column.scale
        over_x = term.over_x.basis.design(np.clip(at_x, -HALF_WIDTH, HALF_WIDTH))
        mean = np.stack([np.interp(at_s, self.grid, one) for one in term.mean_basis.T], axis=1)
        away = over_x[None] - mean[:, None]  # (s, x, kx)
        rows = np.einsum("sb,sxa->sxab", term.over_s.basis.design(at_s), away).reshape(at_s.size * at_x.size, -1)
        return np.asarray(rows @ self.whitening[:, :count] / length)


def _on_splines(
    name: str, column: str, reach: tuple[float, float], grid: FloatArray, shape: tuple[int, int], **fields: Any
) -> Surface:
    over_x = SmoothMargin.pspline(reach, shape[0], (2, 2), values=True, margin=0.0)
    over_s = SmoothMargin.pspline(grid, shape[1], (2, 2), values=True, margin=0.0)
    return Surface.on(name, column, over_x, over_s, grid=grid, x_range=reach, centred=True, **fields)
