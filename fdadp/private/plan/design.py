"""Public coordinates of a private fit: columns, white features of terms, and a basis of the response."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.quadrature import quadrature_weights
from fdadp.private.plan.groups import FeatureGroups
from fdadp.private.plan.plan import Located
from fdadp.private.public.columns import Column, CurvesColumn, NumberColumn, Range, unit_grid
from fdadp.private.whitened.base import WhiteTerm
from fdadp.private.whitened.of_surfaces import WhiteSurface

if TYPE_CHECKING:
    from fdadp.private.public.prior import PublicPrior


@dataclass(frozen=True)
class PrivateDesign:
    """Coordinates that are white under a public prior.

    Features of a row are the constant and those of `groups`; a response is described by its coefficients on
    `response`. Plans need `feature_shares` and `response_shares` alone, and how many columns are located.

    Attributes
    ----------
    prior : PublicPrior
    columns : tuple of Column
        Before anything was released, in the order of a block of rows; the response comes after them.
    groups : FeatureGroups
        White features.
    t : ndarray of shape (T,)
        Grid of the response; one point where it is a number.
    response : ndarray of shape (T, m)
        Orthonormal basis of Y, from its prior covariance.
    response_shares : ndarray of shape (m,)
        Prior shares of variance of its functions.
    """

    prior: PublicPrior
    columns: tuple[Column, ...]
    groups: FeatureGroups
    t: FloatArray
    response: FloatArray
    response_shares: FloatArray

    @classmethod
    def of(
        cls, prior: PublicPrior, columns: Sequence[Column], terms: Sequence[WhiteTerm], t: FloatArray | None
    ) -> PrivateDesign:
        """Coordinates of several terms.

        Parameters
        ----------
        prior : PublicPrior
        columns : sequence of Column
        terms : sequence of WhiteTerm
        t : ndarray of shape (T,) or None
            Grid of the response; None where it is a number.
        """
        groups = FeatureGroups.merged(terms, prior.max_features)
        if t is None:
            return cls(prior, tuple(columns), groups, np.zeros(1), np.ones((1, 1)), np.ones(1))
        unit = unit_grid(t)
        return cls(prior, tuple(columns), groups, t, *prior.y.functions(unit, quadrature_weights(unit)))

    @property
    def scalar(self) -> bool:
        """Whether the response is a number."""
        return self.t.size == 1

    @property
    def feature_shares(self) -> FloatArray:
        """Prior share of each feature in the variance that is explained, shape (d,)."""
        return self.groups.shares

    @cached_property
    def gradient_shares(self) -> FloatArray:
        """Energy of the product of a feature and a response in each response function, over all; shape (d + 1, m).

        The constant is the first feature. Those that are the same at all t leave the shares of the response as they
        are; others, such as rough curves, move energy from smooth functions to rough ones.
        """
        d = self.feature_shares.size
        out = np.tile(self.response_shares, (d + 1, 1))
        varying = self.groups.varying(d)
        if varying.size:
            mixed = np.einsum(
                "nqt,t,tk,tl->nqkl", self._drawn, self.t_weights, self.response, self.response, optimize=True
            )
            out[1 + varying] = np.einsum("nqkl,l->qk", mixed**2, self.response_shares) / len(mixed)
        return out

    @cached_property
    def second_moment(self) -> FloatArray:
        """Second moment of features that differ between points of the response, at each, by the prior; (q, q, T)."""
        return np.asarray(np.einsum("nit,njt->ijt", self._drawn, self._drawn, optimize=True) / len(self._drawn))

    @cached_property
    def _drawn(self) -> FloatArray:
        return self.groups.drawn(self.prior, self.feature_shares.size)

    @property
    def unit_t(self) -> FloatArray:
        """Grid of the response on [0, 1]."""
        return np.zeros(1) if self.scalar else unit_grid(self.t)

    @property
    def t_weights(self) -> FloatArray:
        """Quadrature weights of its points, which sum to one."""
        return np.ones(1) if self.scalar else quadrature_weights(self.unit_t)

    @property
    def curves(self) -> tuple[CurvesColumn, ...]:
        """Columns that are located by releases of their own."""
        return tuple(column for column in self.columns if isinstance(column, CurvesColumn))

    @property
    def numbers(self) -> tuple[NumberColumn, ...]:
        """Columns that are located together."""
        return tuple(column for column in self.columns if isinstance(column, NumberColumn))

    @property
    def located(self) -> Located:
        """Names of both."""
        return Located(tuple(c.name for c in self.curves), tuple(c.name for c in self.numbers))

    @property
    def n_numbers(self) -> int:
        """Number of columns of numbers."""
        return len(self.numbers)

    @property
    def only(self) -> WhiteSurface:
        """The only term, of the only column of curves."""
        (white,) = self.groups.terms
        assert isinstance(white, WhiteSurface)
        return white

    @property
    def s(self) -> FloatArray:
        """Grid of the only column of curves."""
        (column,) = self.curves
        return column.grid

    @property
    def unit_s(self) -> FloatArray:
        """The same on [0, 1]."""
        return unit_grid(self.s)


def curves_column(
    prior: PublicPrior, name: str, at: int, grid: FloatArray, bounds: Range, missing: str = "linear"
) -> CurvesColumn:
    """A column of curves as the prior sees it."""
    unit = unit_grid(grid)
    curves = prior.x.standard(unit)
    geometric = float(np.exp(np.log(np.sqrt((curves * curves) @ quadrature_weights(unit))).mean()))
    return CurvesColumn.guessed(name, at, grid, bounds, geometric, prior.x_scale, missing=missing)


def of_a_surface(
    prior: PublicPrior, s: FloatArray, t: FloatArray, bounds: Range, missing: str = "linear"
) -> PrivateDesign:
    """Coordinates of the additive term of one column of curves, X."""
    white = WhiteSurface.on("X", "X", s, prior)
    return PrivateDesign.of(prior, [curves_column(prior, "X", 0, s, bounds, missing)], [white], t)
