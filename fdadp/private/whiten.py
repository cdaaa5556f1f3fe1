"""White features of one term: coordinates of a covariate in which signals are alike large under a public prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.curves import Curves
from fdadp.privacy import rowwise_matmul
from fdadp.terms.base import Term

if TYPE_CHECKING:
    from fdadp.private.prior import PublicPrior

__all__ = ["WhitenedTerm"]

NEGLIGIBLE = 1e-12
"""Directions with less of the largest variance than this are left out."""


@dataclass(frozen=True)
class WhitenedTerm:
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
    variances : ndarray of shape (d,)
        Prior variance that each direction explains; falling.
    """

    term: Term
    grid: FloatArray
    centre: FloatArray
    whitening: FloatArray
    variances: FloatArray

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
        root = _symmetric_root(term.prior_covariance(prior))
        variances, axes = np.linalg.eigh(root @ np.atleast_2d(np.cov(rows.T)) @ root)
        order = np.argsort(-variances)[:most]
        order = order[variances[order] > NEGLIGIBLE * variances.max()]
        whitening = np.ascontiguousarray(root @ axes[:, order] / np.sqrt(variances[order]))
        return cls(term, grid, rows.mean(axis=0), whitening, variances[order])

    def rows(self, standard: FloatArray) -> FloatArray:
        """Feature rows of standardised curves (m, S) about the prior's mean, shape (m, q)."""
        return np.asarray(self.term.rows(Curves(standard, self.grid)) - self.centre)

    def features(self, standard: FloatArray, count: int) -> FloatArray:
        """First white features of standardised curves (m, S) without gaps, each row by itself; shape (m, count)."""
        return rowwise_matmul(self.rows(standard), np.ascontiguousarray(self.whitening[:, :count]))


def _symmetric_root(matrix: FloatArray) -> FloatArray:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T)
