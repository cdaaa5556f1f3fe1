"""White features of any term of one covariate's curves, by the protocol of :mod:`fdadp.terms.base`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.curves import Curves
from fdadp.privacy import rowwise_matmul
from fdadp.private.columns import Column
from fdadp.private.white.base import WhiteTerm, white_axes
from fdadp.terms.base import Term

if TYPE_CHECKING:
    from fdadp.private.prior import PublicPrior

__all__ = ["WhitenedTerm"]


@dataclass(frozen=True, kw_only=True)
class WhitenedTerm(WhiteTerm):
    """Features ``(z(x) - centre) @ whitening`` of a standardised curve x; of the prior's variance, each has a share.

    Attributes
    ----------
    term : Term
        For curves on [0, 1] with values in ±4.
    grid : ndarray of shape (S,)
    centre : ndarray of shape (q,)
        Prior mean of the feature rows z.
    whitening : ndarray of shape (q, d)
        White under (prior of the curves) x (prior of the coefficients), the most telling direction first.
    """

    term: Term
    grid: FloatArray
    centre: FloatArray
    whitening: FloatArray

    @classmethod
    def of(cls, term: Term, curves: FloatArray, grid: FloatArray, prior: PublicPrior, most: int) -> WhitenedTerm:
        """Whiten a term under the law that curves are drawn from.

        Parameters
        ----------
        term : Term
        curves : ndarray of shape (n, S)
            Of the prior, within ±4.
        grid : ndarray of shape (S,)
            On [0, 1].
        prior : PublicPrior
        most : int
            Directions kept at most.
        """
        rows = np.zeros((len(curves), term.n_features))
        term = term.learned(term.add_to(Curves(curves, grid), rows), len(curves))
        centre, whitening, variances = white_axes(rows, term.prior_covariance(prior), most)
        return cls(
            name=term.column,
            columns=(term.column,),
            shares=variances / variances.sum(),
            term=term,
            grid=grid,
            centre=centre,
            whitening=whitening,
        )

    def rows(self, x: Curves) -> FloatArray:
        """Feature rows of standardised curves about the prior's mean, shape (m, q)."""
        return np.asarray(self.term.rows(x) - self.centre)

    def features(self, seen: Mapping[str, Any], count: int) -> FloatArray:
        """First white features of standardised curves without gaps, each row by itself; shape (m, count)."""
        return rowwise_matmul(self.rows(seen[self.columns[0]]), np.ascontiguousarray(self.whitening[:, :count]))

    def effect(self, columns: Mapping[str, Column], count: int, *points: Any) -> FloatArray:
        """Not known of a term that anybody may define."""
        raise NotImplementedError
