"""White features of smooth functions of numbers, ``f(z, t)``, ``f(z₁, z₂, t)``: private ``s`` and ``te``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.splines import BSplines
from fdadp.privacy import rowwise_matmul
from fdadp.private.columns import Column, NumberColumn
from fdadp.private.white.base import OF_NUMBERS, WhiteTerm, column_of, white_axes

if TYPE_CHECKING:
    from fdadp.private.prior import PublicPrior

__all__ = ["FUNCTIONS", "WhiteSmooth"]

FUNCTIONS = {1: 12, 2: 7, 3: 5}
"""B-splines over each number, by how many there are."""
MOST = 20
"""Features kept at most."""
CELLS = {1: 400, 2: 40, 3: 16}
"""Parts that each public range is cut into for the uniform law."""
POINTS = {1: 100, 2: 40, 3: 20}
MAIN = 1.0
"""Of functions of several numbers, prior variance of what each does by itself over that of what they do together."""


@dataclass(frozen=True, kw_only=True)
class WhiteSmooth(WhiteTerm):
    """Features ``(B(z) - centre) @ whitening``, B products of cubic B-splines on the public ranges of numbers.

    Attributes
    ----------
    bases : tuple of BSplines
        On [-1, 1], of each number.
    centre : ndarray of shape (q,)
    whitening : ndarray of shape (q, d)
        White under numbers that are uniform on their public ranges, and a Gaussian process for the function. The
        constant function has no share.
    """

    bases: tuple[BSplines, ...]
    centre: FloatArray
    whitening: FloatArray

    centred: ClassVar[bool] = True

    @classmethod
    def of(cls, name: str, columns: Sequence[str], prior: PublicPrior, sizes: Sequence[int]) -> WhiteSmooth:
        """Whiten under uniform numbers, and the prior's Gaussian process of functions of one variable, or products.

        Parameters
        ----------
        name : str
        columns : sequence of str
            Columns of numbers: from one to three.
        prior : PublicPrior
        sizes : sequence of int
            Numbers of B-splines.
        """
        bases = tuple(BSplines.uniform(-1.0, 1.0, k, margin=0.0) for k in sizes)
        cells = CELLS[len(bases)]
        middles = (2 * np.arange(cells) + 1) / cells - 1
        rows = _products(bases, [axis.ravel() for axis in np.meshgrid(*[middles] * len(bases), indexing="ij")])
        own = replace(prior.slope, constant=MAIN)  # of one number alone the constant is centred away
        covariance = np.ones((1, 1))
        for k in sizes:
            covariance = np.asarray(np.kron(covariance, own.covariance(k)))
        centre, whitening, variances = white_axes(rows, covariance, MOST)
        return cls(
            name=name,
            columns=tuple(columns),
            shares=OF_NUMBERS * variances / variances.sum(),
            bases=bases,
            centre=centre,
            whitening=whitening,
        )

    def features(self, seen: Mapping[str, Any], count: int) -> FloatArray:
        """Values of white functions."""
        return self._at([seen[name].unit for name in self.columns], count)

    def _at(self, units: list[FloatArray], count: int) -> FloatArray:
        return rowwise_matmul(
            _products(self.bases, units) - self.centre, np.ascontiguousarray(self.whitening[:, :count])
        )

    def axes(self, columns: Mapping[str, Column]) -> dict[str, FloatArray | tuple[Any, ...]]:
        """Points of each number on its public range."""
        points = POINTS[len(self.columns)]
        return {name: np.linspace(*column_of(columns, name, NumberColumn).bounds, points) for name in self.columns}

    def effect(self, columns: Mapping[str, Column], count: int, *points: Any) -> FloatArray:
        """Values of the functions; beyond the public ranges those at their ends."""
        own = [np.asarray(p, dtype=np.float64) for p in points]
        grid = [axis.ravel() for axis in np.meshgrid(*own, indexing="ij")]
        units = [column_of(columns, name, NumberColumn).unit(z) for name, z in zip(self.columns, grid, strict=True)]
        return self._at(units, count)


def _products(bases: Sequence[BSplines], units: Sequence[FloatArray]) -> FloatArray:
    """Products of a function of each basis, the first slowest, row by row; shape (m, k₁ k₂ ...)."""
    rows = bases[0].design(units[0])
    for basis, unit in zip(bases[1:], units[1:], strict=True):
        rows = (rows[:, :, None] * basis.design(unit)[:, None, :]).reshape(len(unit), -1)
    return rows
