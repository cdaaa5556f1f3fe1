"""A precision along curves that was learned from the curves: what it would be without some, and what that changes.

Weights that are learned from errors fit these errors: estimates vary by more than with known weights, and residuals
look smaller than they are. To first order one pass over the curves tells by how much.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.solve.linear.curve_precision import CurvePrecision


@dataclass(frozen=True)
class LearnedPrecision:
    """A precision, and what it was learned from.

    Attributes
    ----------
    precision : CurvePrecision
        Of K smooth components, at N observations.
    functions : ndarray of shape (N, q)
        Functions B in whose span the smooth part was looked for; 0 where nothing was observed.
    inside : ndarray of shape (q, K)
        Orthonormal coefficients of the components.
    residuals : ndarray of shape (N,)
        e, of variance ``(B Θ B' + σ² I)`` for each curve; 0 where nothing was observed.
    left : float
        Curves that say something, less those that the means of the residuals used up.
    """

    precision: CurvePrecision
    functions: FloatArray
    inside: FloatArray
    residuals: FloatArray
    left: float

    def changes(self) -> FloatArray:
        """By how much ``Θ / σ²`` changes as each curve is left out, to first order, shape (n, q, q).

        A step of Fisher's scoring: with ``s_i = B'V_i⁻¹e_i``, ``C_i = B'V_i⁻¹B`` and C their mean, Θ moves by
        ``-C⁻¹(s_i s_i' - C_i)C⁻¹`` over the number of the others, and σ² by ``-(e_i'V_i⁻²e_i - tr V_i⁻¹)`` over
        ``Σ tr V_j⁻²``. Their number of components stays: a component turns out of its place, none is born.
        """
        own, white = self._plain, self.precision.white
        solved, left = own.times(self.functions), own.times(self.residuals[:, None])[:, 0]
        scores = own.summed(solved * self.residuals[:, None]) / white
        each = own.summed(self.functions[:, :, None] * solved[:, None, :]) / white
        seen = own.summed(own.weights) > 0
        inverse = np.linalg.pinv(each[seen].mean(axis=0), hermitian=True)
        moved = -inverse @ (scores[:, :, None] * scores[:, None, :] - each) @ inverse / max(self.left - 1, 1.0)
        outside = np.eye(len(self.inside)) - self.inside @ self.inside.T
        moved = moved - outside @ moved @ outside

        squares = own.summed(own.loadings[:, :, None] * own.loadings[:, None, :])
        kept = np.einsum("nab,nbc->nac", own.inner, squares)
        first, points = np.trace(kept, axis1=1, axis2=2), own.summed(own.weights)
        second = points - 2 * first + np.einsum("nab,nba->n", kept, kept)
        of_white = -(own.summed(left**2) / white - (points - first)) / second.sum()  # over σ²
        ratio = (self.inside * (self.precision.sizes / white)) @ self.inside.T
        changes = moved / white - of_white[:, None, None] * ratio
        return np.asarray(np.where(seen[:, None, None], changes, 0.0))

    def pulls(self, scores: Callable[[FloatArray], FloatArray], values: FloatArray, clusters: IntArray) -> FloatArray:
        """By how much the scores of all others change as the precision is learned without a cluster, shape (G, p).

        ``Σ_j D_j' (W_g - W) r_j`` over the curves j outside of cluster g, where σ² is the unit of W: with another one
        smoothing parameters would be others, and estimates the same.

        Parameters
        ----------
        scores : callable
            ``D_j' v_j`` of each curve, shape (n, p), from values v at the observations, shape (N,).
        values : ndarray of shape (N,)
            Residuals r of the fit.
        clusters : ndarray of shape (n,)
            Numbers of clusters, from 0.

        References
        ----------
        Kackar & Harville (1984), Approximations for standard errors of estimators of fixed and random effects in mixed
        linear models, doi:10.1080/01621459.1984.10477102, on what learned weights add; Hansen (2022), Jackknife
        standard errors for clustered regression, on leaving out.
        """
        solved = self._plain.times(self.functions) * np.sqrt(self.precision.weights)[:, None]
        loads = np.stack([scores(column) for column in solved.T], axis=1)  # (n, q, p)
        seen = self.precision.summed(solved * values[:, None])
        count, size = int(clusters.max()) + 1, solved.shape[1]
        changes = np.zeros((count, size, size))
        np.add.at(changes, clusters, self.changes())
        out = -np.einsum("gab,abp->gp", changes, np.einsum("nap,nb->abp", loads, seen, optimize=True), optimize=True)
        turned = np.einsum("nab,nb->na", changes[clusters], seen)
        np.add.at(out, clusters, np.einsum("na,nap->np", turned, loads))
        return np.asarray(self.precision.factor * out)

    @property
    def _plain(self) -> CurvePrecision:
        """``σ² V⁻¹`` of residuals that have their weights in them already."""
        seen = (self.precision.weights > 0).astype(np.float64)
        return replace(self.precision, weights=seen, variance=self.precision.white)
