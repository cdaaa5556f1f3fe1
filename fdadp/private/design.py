"""Public coordinates of a private fit: white features of the covariate, and a basis of the response."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.quadrature import quadrature_weights
from fdadp.private.groups import FeatureGroups
from fdadp.private.whiten import WhitenedTerm
from fdadp.terms.base import HALF_WIDTH, Covariate, Unfixed

if TYPE_CHECKING:
    from fdadp.private.prior import PublicPrior

__all__ = ["WhitenedDesign"]


class WhitenedDesign:
    """Coordinates that are white under a public prior.

    Features of a curve are the constant and those of `groups`; a response is described by its coefficients on
    `response`. Plans need `feature_shares` and `response_shares` alone.

    Parameters
    ----------
    prior : PublicPrior
    s, t : ndarray
        Grids of X and Y.
    term : Unfixed
        What X contributes.

    Attributes
    ----------
    groups : FeatureGroups
        White features; of one term today.
    feature_shares : ndarray of shape (d,)
        Prior share of each feature in the variance that is explained.
    geometric_scale : float
        Geometric mean, under the prior, of a standardised curve's root mean square.
    response : ndarray of shape (T, m)
        Orthonormal basis of Y, from its prior covariance.
    response_shares : ndarray of shape (m,)
        Prior shares of variance of its functions.
    unit_s, unit_t : ndarray
        The grids on [0, 1].
    s_weights, t_weights : ndarray
        Quadrature weights that sum to one.
    """

    def __init__(self, prior: PublicPrior, s: FloatArray, t: FloatArray, term: Unfixed) -> None:
        self.prior, self.s, self.t = prior, s, t
        self.unit_s, self.unit_t = ((g - g[0]) / (g[-1] - g[0]) for g in (s, t))
        self.s_weights, self.t_weights = quadrature_weights(self.unit_s), quadrature_weights(self.unit_t)
        curves = np.clip(prior.x.curves(self.unit_s), -HALF_WIDTH, HALF_WIDTH)
        self.geometric_scale = float(np.exp(np.log(np.sqrt((curves * curves) @ self.s_weights)).mean()))
        fixed = term.standard(Covariate(self.unit_s, (-HALF_WIDTH, HALF_WIDTH)), prior)
        white = WhitenedTerm.of(fixed, curves, self.unit_s, prior, prior.max_features)
        self.groups = FeatureGroups.merged((white,), prior.max_features)
        self.feature_shares = self.groups.shares
        self.response, self.response_shares = prior.y.functions(self.unit_t, self.t_weights)

    @property
    def whitened(self) -> WhitenedTerm:
        """White features of the only term."""
        (white,) = self.groups.terms
        return white
