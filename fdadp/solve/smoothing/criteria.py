"""REML and GCV of penalised fits as functions of log λ, with their gradients and Hessians.

``A(λ) = G + Σ_j λ_j diag(d_j)``. A value costs one Cholesky factor of a p×p matrix, its derivatives the inverse, and
O(M p²) for M smoothing parameters. Several points are taken at once: the matrices are small, so that most of the time
would go into calling numpy.

References
----------
Wood (2011), Fast stable REML and marginal likelihood estimation of semiparametric generalized linear models,
JRSS-B 73(1), doi:10.1111/j.1467-9868.2010.00749.x; Craven & Wahba (1979), doi:10.1007/BF01404567.
"""

from __future__ import annotations

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.solve.linear.bordered import worth
from fdadp.solve.linear.normal_equations import NormalEquations

Values = tuple[FloatArray, FloatArray, FloatArray]
"""Of a function of log λ at b points: values (b,), gradients (b, M) and Hessians (b, M, M)."""

LEAST = 1e-14
"""Of a response with y'y = 1, sums of squares below this are rounding."""

CACHE = 2**15
"""Numbers of several matrices that stay in a core's cache."""

AT_ONCE = 2**24
"""Numbers of matrices that are held at once."""


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
    intercept : bool
        Whether features are centred for one, which is a degree of freedom more.
    scale : ndarray of shape (K,), optional
        Known variances of the errors of the divided responses; profiled out where they are not.
    """

    def __init__(
        self,
        normal: NormalEquations,
        total: FloatArray,
        penalties: FloatArray,
        n: int,
        dof: int,
        intercept: bool = True,
        scale: FloatArray | None = None,
    ) -> None:
        self.normal, self.total, self.penalties, self.n, self.dof = normal, total, penalties, n, dof
        self.intercept, self.scale = intercept, scale
        # With a 1 where no penalty is, the diagonal of S has no zeros, and its logarithms there are 0.
        self._free = (penalties == 0).all(axis=0).astype(np.float64)

    def smoothest(self, count: int) -> Criteria:
        """Return the criteria of the same responses on the `count` coordinates that the penalties weigh least."""
        largest = self.penalties.max(axis=1, keepdims=True)
        rough = (self.penalties / np.where(largest > 0, largest, 1.0)).sum(axis=0)
        keep = np.sort(np.argsort(rough, kind="stable")[:count])
        of = self.normal
        ends = np.searchsorted(keep, [block.stop for block in of.blocks]).tolist()
        blocks = [slice(a, b) for a, b in zip([0, *ends], ends, strict=False) if a < b]
        if not worth(blocks, len(keep)):
            blocks = []
        normal = NormalEquations(of.gram[np.ix_(keep, keep)], of.cross[keep], of.floor, blocks)
        return Criteria(normal, self.total, self.penalties[:, keep], self.n, self.dof, self.intercept, self.scale)

    def reml_values(self, log_sp: FloatArray) -> FloatArray:
        """REML of all responses at points (b, M), shape (b, K)."""
        every, step = np.arange(len(self.total)), max(AT_ONCE // self.normal.gram.size, 1)
        values = np.empty((len(log_sp), len(every)))
        for start in range(0, len(log_sp), step):
            diagonal = np.exp(log_sp[start : start + step]) @ self.penalties
            explained, log_det = self.normal.explained(diagonal)
            values[start : start + step] = self.restricted(
                self.total - explained, log_det[:, None], diagonal[:, None], every
            )
        return values

    def restricted(
        self, deviance: FloatArray, log_det: FloatArray, diagonal: FloatArray, responses: IntArray | int
    ) -> FloatArray:
        """REML from penalised deviances of responses, log|A| and the diagonal of ``S = Σ λ_j D_j`` (last axis)."""
        log_s = np.log(diagonal + self._free).sum(axis=-1)  # log|S|₊
        if self.scale is None:
            likelihood = self.dof * (1 + np.log(np.maximum(deviance, LEAST) * (2 * np.pi / self.dof)))
        else:
            scale = self.scale[responses]
            likelihood = deviance / scale + self.dof * np.log(2 * np.pi * scale)
        return np.asarray((likelihood + log_det - log_s) / 2)

    def reml(self, log_sp: FloatArray, responses: IntArray) -> Values:
        """Negative restricted log-likelihood (Wood 2011, equation 4), an unknown scale profiled out.

        Parameters
        ----------
        log_sp : ndarray of shape (b, M)
        responses : ndarray of shape (b,)
            Which response each point is of.
        """
        step = max(CACHE // self.normal.gram.size, 1)
        parts = [slice(start, start + step) for start in range(0, len(responses), step)]
        found = [self._reml(log_sp[part], responses[part]) for part in parts]
        values, gradients, hessians = (np.concatenate(each) for each in zip(*found, strict=True))
        return values, gradients, hessians

    def _reml(self, log_sp: FloatArray, responses: IntArray) -> Values:
        weighted = np.exp(log_sp)[:, :, None] * self.penalties  # λ_j d_j
        diagonal = weighted.sum(axis=1)
        roots, half, log_det, inverse = self.normal.inverses(diagonal, responses)
        beta = (half[:, None] @ roots)[:, 0]
        deviance = np.maximum(self.total[responses] - (half * half).sum(axis=1), LEAST)
        per = (self.dof / deviance if self.scale is None else 1 / self.scale[responses])[:, None]
        share = weighted / (diagonal + self._free)[:, None]
        pushed = weighted * beta[:, None]  # L_j β
        d1 = (pushed @ beta[:, :, None])[..., 0]
        own = inverse.diagonal(axis1=1, axis2=2)
        trace = (weighted @ own[:, :, None])[..., 0] - share.sum(axis=2)
        # Second derivatives: of the deviance, of log|A|, of -log|S|.
        bent = pushed @ roots.swapaxes(1, 2)
        hessian = share @ share.swapaxes(1, 2) - weighted @ (inverse * inverse) @ weighted.swapaxes(1, 2)
        of_deviance = 2 * bent @ bent.swapaxes(1, 2)
        if self.scale is None:
            of_deviance += d1[:, None] * (d1 / deviance[:, None])[..., None]
        hessian -= per[:, None] * of_deviance
        np.einsum("bii->bi", hessian)[...] += per * d1 + trace
        value = self.restricted(deviance, log_det, diagonal, responses)
        return value, (per * d1 + trace) / 2, hessian / 2

    def gcv(self, log_sp: FloatArray, responses: IntArray) -> Values:
        """``n/2 log GCV``, with ``GCV = n RSS / (n - edf)²``: curved as a log-likelihood is, in any units."""
        every = [self._gcv(point, response) for point, response in zip(log_sp, responses, strict=True)]
        values, gradients, hessians = zip(*every, strict=True)
        return np.array(values), np.array(gradients), np.array(hessians)

    def _gcv(self, log_sp: FloatArray, response: int) -> tuple[float, FloatArray, FloatArray]:
        weighted = np.exp(log_sp)[:, None] * self.penalties
        diagonal = weighted.sum(axis=0)
        (root,), (half,), _ = self.normal.roots(diagonal[None], np.array([response]))
        inverse, beta = root.T @ root, half @ root
        cross, gram = self.normal.cross[:, response], self.normal.gram
        rss = max(float(self.total[response] - 2 * (beta @ cross) + beta @ gram @ beta), LEAST)
        left = max(self.n - self.intercept - float((1 - diagonal * inverse.diagonal()).sum()), 1e-9 * self.n)
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
        value = float(np.log(self.n * rss / left**2))
        return self.n / 2 * value, self.n / 2 * log1, self.n / 2 * log2
