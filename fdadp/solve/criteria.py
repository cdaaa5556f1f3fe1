"""REML and GCV of a penalised fit as functions of log λ, with their gradients and Hessians.

``A(λ) = G + Σ_j λ_j diag(d_j)``. A step costs one Cholesky factor of a p×p matrix and its inverse; the derivatives
for M smoothing parameters cost O(M p²) more.

References
----------
Wood (2011), Fast stable REML and marginal likelihood estimation of semiparametric generalized linear models,
JRSS-B 73(1), doi:10.1111/j.1467-9868.2010.00749.x; Craven & Wahba (1979), doi:10.1007/BF01404567.
"""

from __future__ import annotations

import math

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.solve.normal_equations import NormalEquations

__all__ = ["Criteria", "Value"]

Value = tuple[float, FloatArray, FloatArray]
"""Of a function of log λ: value, gradient (M,) and Hessian (M, M)."""

LEAST = 1e-14
"""Of a response with y'y = 1, sums of squares below this are rounding."""


class Criteria:
    """Of K responses on the same coordinates, all of them identified.

    Parameters
    ----------
    normal : NormalEquations
        G and the products of features and responses, these divided by the norms of the responses.
    total : ndarray of shape (K,)
        y'y of the divided responses: 1, or 0 where a response is constant.
    penalties : ndarray of shape (M, p)
    n : int
        Number of observations.
    dof : int
        n less the number of unpenalised coefficients.
    """

    def __init__(self, normal: NormalEquations, total: FloatArray, penalties: FloatArray, n: int, dof: int) -> None:
        self.normal, self.total, self.penalties, self.n, self.dof = normal, total, penalties, n, dof
        # With a 1 where no penalty is, the diagonal of S has no zeros, and its logarithms there are 0.
        self._free = (penalties == 0).all(axis=0).astype(np.float64)

    def smoothest(self, count: int) -> Criteria:
        """Return the criteria of the same responses on the `count` coordinates that the penalties weigh least."""
        largest = self.penalties.max(axis=1, keepdims=True)
        rough = (self.penalties / np.where(largest > 0, largest, 1.0)).sum(axis=0)
        keep = np.sort(np.argsort(rough, kind="stable")[:count])
        normal = NormalEquations(self.normal.gram[np.ix_(keep, keep)], self.normal.cross[keep])
        return Criteria(normal, self.total, self.penalties[:, keep], self.n, self.dof)

    def reml_values(self, log_sp: FloatArray) -> FloatArray:
        """REML of all responses at the same λ, shape (K,)."""
        diagonal = np.exp(log_sp) @ self.penalties
        factor = self.normal.factor(diagonal)
        explained = np.einsum("pk,pk->k", self.normal.cross, factor.beta)
        likelihood = np.log(np.maximum(self.total - explained, LEAST) * (2 * np.pi / self.dof))
        return np.asarray((self.dof * (1 + likelihood) + factor.log_det - self._log_s(diagonal)) / 2)

    def restricted(self, deviance: float, log_det: float, diagonal: FloatArray) -> float:
        """REML of a response from its penalised deviance, log|A| and the diagonal of ``S = Σ λ_j D_j``."""
        likelihood = math.log(2 * math.pi * max(deviance, LEAST) / self.dof)
        return (self.dof * (1 + likelihood) + log_det - self._log_s(diagonal)) / 2

    def _log_s(self, diagonal: FloatArray) -> float:
        """log|S|₊."""
        return float(np.log(diagonal + self._free).sum())

    def reml(self, log_sp: FloatArray, response: int) -> Value:
        """Negative restricted log-likelihood with the scale profiled out (Wood 2011, equation 4)."""
        weighted = np.exp(log_sp)[:, None] * self.penalties  # λ_j d_j
        diagonal = weighted.sum(axis=0)
        factor = self.normal.factor(diagonal)
        inverse, beta = factor.inverse, factor.beta[:, response]
        deviance = max(float(self.total[response] - beta @ self.normal.cross[:, response]), LEAST)
        share = weighted / (diagonal + self._free)
        per = self.dof / deviance
        pushed = weighted * beta  # L_j β
        d1 = pushed @ beta
        trace = weighted @ inverse.diagonal() - share.sum(axis=1)
        # Second derivatives: of the deviance, of log|A|, of -log|S|.
        hessian = share @ share.T - weighted @ (inverse * inverse) @ weighted.T
        hessian -= per * (2 * pushed @ inverse @ pushed.T + d1 * (d1[:, None] / deviance))
        hessian.flat[:: len(hessian) + 1] += per * d1 + trace
        value = self.restricted(deviance, factor.log_det, diagonal)
        return value, (per * d1 + trace) / 2, hessian / 2

    def gcv(self, log_sp: FloatArray, response: int) -> Value:
        """``n/2 log GCV``, with ``GCV = n RSS / (n - edf)²``: curved as a log-likelihood is, in any units."""
        weighted = np.exp(log_sp)[:, None] * self.penalties
        diagonal = weighted.sum(axis=0)
        factor = self.normal.factor(diagonal)
        inverse, beta, gram = factor.inverse, factor.beta[:, response], self.normal.gram
        cross = self.normal.cross[:, response]
        rss = max(float(self.total[response] - 2 * (beta @ cross) + beta @ gram @ beta), LEAST)
        left = max(self.n - 1 - float((1 - diagonal * inverse.diagonal()).sum()), 1e-9 * self.n)
        middle = inverse - (inverse * diagonal) @ inverse  # A⁻¹ G A⁻¹
        pull = diagonal * beta  # S β = Z'(y - Zβ)
        slopes = -(weighted * beta) @ inverse  # dβ/dlog λ_j in rows
        rss1 = -2 * slopes @ pull
        curved = -((weighted[:, None] * slopes[None]) + (weighted[None] * slopes[:, None])) @ inverse
        curved[np.arange(len(weighted)), np.arange(len(weighted))] += slopes
        rss2 = 2 * slopes @ gram @ slopes.T - 2 * curved @ pull
        left1 = weighted @ middle.diagonal()
        left2 = np.diag(left1) - 2 * weighted @ (inverse * middle) @ weighted.T
        log1 = rss1 / rss - 2 * left1 / left
        log2 = rss2 / rss - np.outer(rss1, rss1) / rss**2 - 2 * left2 / left + 2 * np.outer(left1, left1) / left**2
        half = self.n / 2
        return half * float(np.log(self.n * rss / left**2)), half * log1, half * log2
