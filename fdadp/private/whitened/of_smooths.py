"""White features of smooth functions of numbers, ``f(z, t)``, ``f(z₁, z₂, t)``: private ``s`` and ``te``.

Splines live where numbers are by what was released of them: within three released standard deviations of the released
location, linear beyond. As long as nothing is known numbers are taken to be uniform on the public range.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.splines.bsplines import BSplines
from fdadp.privacy import rowwise_matmul
from fdadp.private.public.columns import HALF_WIDTH, Column, NumberColumn, Scalars
from fdadp.private.whitened.base import OF_NUMBERS, WhiteTerm, column_of, white_directions

if TYPE_CHECKING:
    from fdadp.private.public.prior import PublicPrior

FUNCTIONS = {1: 14, 2: 8, 3: 6}
"""B-splines over each number, by how many there are."""
REACH = 3.0
"""Standard deviations within which they have knots."""
FINE, UNIFORM_WIDTH = 4001, math.sqrt(12)
"""Points of a grid; width of a uniform law of variance one."""
RARE = 0.05
"""Share of numbers that may be anywhere."""
MOST = 20
"""Features kept at most."""
N_LAW = 4000
"""Points that stand for the law of a number."""
POINTS = {1: 100, 2: 40, 3: 20}
MAIN = 1.0
"""Of functions of several numbers, prior variance of what each does by itself over that of what they do together."""


@dataclass(frozen=True, kw_only=True)
class WhiteSmooth(WhiteTerm):
    """Features ``(B(v) - centre) @ whitening``, B products of cubic B-splines of standardised numbers.

    Attributes
    ----------
    bases : tuple of BSplines
        On [-3, 3], of each number.
    centre : ndarray of shape (q,)
    whitening : ndarray of shape (q, d)
        White under :func:`law_of_numbers` and a Gaussian process for the function. The constant has no share.
    """

    bases: tuple[BSplines, ...]
    centre: FloatArray
    whitening: FloatArray

    @property
    def of_values(self) -> bool:
        """It is."""
        return True

    @classmethod
    def of(cls, name: str, columns: Sequence[str], prior: PublicPrior, sizes: Sequence[int]) -> WhiteSmooth:
        """Whiten under the prior's Gaussian process of functions of one variable, or under products of such.

        Parameters
        ----------
        name : str
        columns : sequence of str
            Columns of numbers: from one to three.
        prior : PublicPrior
        sizes : sequence of int
            Numbers of B-splines.
        """
        bases = tuple(BSplines.uniform(-REACH, REACH, k, margin=0.0) for k in sizes)
        length = prior.slope.length * math.sqrt(3) / REACH  # a share of the range of a uniform law
        own = replace(prior.slope, length=length, constant=MAIN)  # of one number alone the constant is centred away
        mean: FloatArray = np.ones(1)
        square: FloatArray = np.ones((1, 1))
        covariance: FloatArray = np.ones((1, 1))
        for basis in bases:  # numbers are independent, as far as is known
            design = basis.design(law_of_numbers(N_LAW))
            mean, square = (
                np.asarray(np.kron(mean, design.mean(axis=0))),
                np.asarray(np.kron(square, design.T @ design / N_LAW)),
            )
            covariance = np.asarray(np.kron(covariance, own.covariance(basis.n_basis)))
        whitening, variances = white_directions(square - np.outer(mean, mean), covariance, MOST)
        return cls(
            name=name,
            columns=tuple(columns),
            shares=OF_NUMBERS * variances / variances.sum(),
            bases=bases,
            centre=mean,
            whitening=whitening,
        )

    def features(self, seen: Mapping[str, Any], count: int) -> FloatArray:
        """Values of white functions."""
        return self._at([seen[name] for name in self.columns], count)

    def _at(self, seen: list[Scalars], count: int) -> FloatArray:
        rows = _products(self.bases, [number.standard for number in seen])
        return rowwise_matmul(rows - self.centre, np.ascontiguousarray(self.whitening[:, :count]))

    def axes(self, columns: Mapping[str, Column]) -> dict[str, FloatArray | tuple[Any, ...]]:
        """Points of each number on its public range."""
        points = POINTS[len(self.columns)]
        return {name: np.linspace(*column_of(columns, name, NumberColumn).bounds, points) for name in self.columns}

    def effect(self, columns: Mapping[str, Column], count: int, *points: Any) -> FloatArray:
        """Values of the functions; beyond the public ranges those at their ends."""
        own = [np.asarray(p, dtype=np.float64) for p in points]
        grid = [axis.ravel() for axis in np.meshgrid(*own, indexing="ij")]
        seen = [column_of(columns, name, NumberColumn).seen(z)[0] for name, z in zip(self.columns, grid, strict=True)]
        return self._at(seen, count)


def law_of_numbers(count: int) -> FloatArray:
    """Standardised numbers at even probabilities of a law: half uniform, half Gaussian, and some anywhere.

    The last part keeps features of rare numbers within bounds.
    """
    from scipy.special import ndtr

    at = (np.arange(count) + 0.5) / count
    grid = np.linspace(-HALF_WIDTH, HALF_WIDTH, FINE)
    inside = np.clip(grid / UNIFORM_WIDTH + 0.5, 0, 1)
    gaussian = ndtr(grid)
    anywhere = grid / (2 * HALF_WIDTH) + 0.5
    law = np.interp(at, (1 - RARE) * (inside + gaussian) / 2 + RARE * anywhere, grid)
    return np.asarray(law / law.std())


def _products(bases: Sequence[BSplines], at: Sequence[FloatArray]) -> FloatArray:
    """Products of a function of each basis, the first slowest, row by row; shape (m, k₁ k₂ ...)."""
    rows = bases[0].design(at[0])
    for basis, points in zip(bases[1:], at[1:], strict=True):
        rows = (rows[:, :, None] * basis.design(points)[:, None, :]).reshape(len(points), -1)
    return rows
