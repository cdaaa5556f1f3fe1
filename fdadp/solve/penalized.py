"""Penalised least squares from moments, with smoothing parameters by REML or GCV.

The penalties are diagonal (see :mod:`fdadp.functional.margins`): ``A(λ) = G + Σ_j λ_j diag(d_j)`` with G the scatter of
the features. One Cholesky factor of a p×p matrix a step is all the work; neither n nor the grid enters.

References
----------
Wood (2011), Fast stable REML and marginal likelihood estimation of semiparametric generalized linear models,
JRSS-B 73(1), doi:10.1111/j.1467-9868.2010.00749.x; Craven & Wahba (1979), doi:10.1007/BF01404567.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.solve.normal_equations import NormalEquations
from fdadp.solve.search import identified, newton

__all__ = ["PenalizedLeastSquares", "Solution"]

# Penalties beyond e^25 times the data's own scale, or below e^-25, change nothing any more but the rounding.
LOG_RANGE = 25.0


@dataclass(frozen=True)
class Solution:
    """A penalised fit of one response.

    Attributes
    ----------
    smoothing_parameters : ndarray of shape (M,)
    coefficients : ndarray of shape (p,)
    edf : ndarray of shape (p,)
        Effective degrees of freedom of each coefficient, ``diag(A⁻¹ G)``; the intercept's 1 is not among them.
    rss : float
        Residual sum of squares.
    noise_variance : float
        ``rss / (n - 1 - Σ edf)``, mgcv's ``sig2``.
    scale : float
        REML's own estimate ``(rss + β'Sβ) / (n - n_unpenalized)``, mgcv's ``reml.scale``.
    reml, gcv : float
        The two criteria at these smoothing parameters.
    inverse : ndarray of shape (p, p)
        ``A⁻¹``; the Bayesian covariance of the coefficients (mgcv's ``Vp``) is ``noise_variance * inverse``.
    """

    smoothing_parameters: FloatArray
    coefficients: FloatArray
    edf: FloatArray
    rss: float
    noise_variance: float
    scale: float
    reml: float
    gcv: float
    inverse: FloatArray

    @property
    def edf_total(self) -> float:
        """Effective degrees of freedom, the intercept among them."""
        return float(self.edf.sum() + 1)

    @property
    def covariance(self) -> FloatArray:
        """Bayesian covariance of the coefficients, shape (p, p)."""
        return self.noise_variance * self.inverse


class PenalizedLeastSquares:
    """Least squares of K responses on the same centred features, each with smoothing parameters of its own.

    Parameters
    ----------
    gram : ndarray of shape (p, p)
        ``Z'Z`` of the centred features (centring stands for the intercept).
    cross : ndarray of shape (p,) or (p, K)
        ``Z'y`` of each response.
    total : float or ndarray of shape (K,)
        ``y'y`` of each centred response.
    n : int
        Number of observations.
    penalties : ndarray of shape (M, p)
        Non-negative diagonals.
    n_unpenalized : int, optional
        Dimension counted as unpenalised by REML (mgcv's Mp). Default: the intercept and the coordinates without
        a penalty. Set it to repeat mgcv where that also counts directions that are not identified.

    Raises
    ------
    InputError
        Shapes that do not fit, or fewer than n_unpenalized + 1 observations.
    """

    def __init__(
        self,
        gram: ArrayLike,
        cross: ArrayLike,
        total: ArrayLike,
        n: int,
        penalties: ArrayLike,
        *,
        n_unpenalized: int | None = None,
    ) -> None:
        self.gram = np.atleast_2d(np.asarray(gram, dtype=np.float64))
        self.cross = np.asarray(cross, dtype=np.float64)
        if self.cross.ndim == 1:
            self.cross = self.cross[:, None]
        self.total = np.atleast_1d(np.asarray(total, dtype=np.float64))
        self.n = int(n)
        self.penalties = np.atleast_2d(np.asarray(penalties, dtype=np.float64))
        p = len(self.cross)
        if self.gram.shape != (p, p) or self.penalties.shape[1] != p or self.cross.shape[1] != self.total.size:
            raise InputError(
                "gram (p, p), cross (p, K), total (K,) and penalties (M, p) must fit together, got "
                f"{self.gram.shape}, {self.cross.shape}, {self.total.shape} and {self.penalties.shape}"
            )
        self.identified = identified(self.gram, self.penalties)
        free = int((self.penalties[:, self.identified] == 0).all(axis=0).sum())
        self.n_unpenalized = free + 1 if n_unpenalized is None else int(n_unpenalized)
        if self.n <= self.n_unpenalized:
            raise InputError(
                f"n must be above the {self.n_unpenalized} unpenalised coefficients, got {self.n} observations"
            )
        # Everything below is of identified coordinates and of responses with y'y = 1: no result depends on units.
        self._penalties = self.penalties[:, self.identified]
        self._size = np.where(self.total > 0, self.total, 1.0)
        self._cross = self.cross[self.identified] / np.sqrt(self._size)
        self._total = self.total / self._size
        self._gram = self.gram[np.ix_(self.identified, self.identified)]
        self._normal = NormalEquations(self._gram, self._cross)
        own = self._normal.diagonal
        # Where the penalty weighs as much as the data: the middle of the search.
        least = 1e-16 * float(own.max(initial=0.0)) or 1.0
        weights = [max(float(own[d > 0].sum()), least) / (float(d.sum()) or 1.0) for d in self._penalties]
        self._centre = np.log(weights)

    # --- one value of the smoothing parameters ---

    def solve(self, smoothing_parameters: ArrayLike, response: int = 0) -> Solution:
        """Fit a response at given smoothing parameters, one for each penalty.

        Raises
        ------
        InputError
            Wrong number, or not positive and finite.
        """
        sp = np.asarray(smoothing_parameters, dtype=np.float64)
        if sp.shape != (len(self.penalties),) or not (np.isfinite(sp) & (sp > 0)).all():
            raise InputError(f"smoothing_parameters must be {len(self.penalties)} positive numbers, got {sp.tolist()}")
        # Lighter penalties than any that the search looks at leave nothing but rounding.
        log_sp = np.maximum(np.log(sp), self._centre - LOG_RANGE)
        diagonal = np.exp(log_sp) @ self._penalties
        factor = self._normal.factor(diagonal)
        cross, total, size = self._cross[:, response], float(self._total[response]), float(self._size[response])
        beta = factor.beta[:, response]
        fitted = float(beta @ cross)
        rss = min(max(total - 2 * fitted + float(beta @ self._gram @ beta), 0.0), total)
        scale = max(total - fitted, 0.0) / (self.n - self.n_unpenalized)
        edf = factor.hat(self._gram).diagonal().copy()
        edf *= min(max(float(edf.sum()), 0.0), float(edf.size)) / (float(edf.sum()) or 1.0)  # beyond it is rounding
        left = self.n - 1 - float(edf.sum())
        coefficients, all_edf, inverse = (
            np.zeros(shape) for shape in (len(self.gram), len(self.gram), self.gram.shape)
        )
        coefficients[self.identified], all_edf[self.identified] = beta * np.sqrt(size), edf
        inverse[np.ix_(self.identified, self.identified)] = factor.inverse
        return Solution(
            sp,
            coefficients,
            all_edf,
            rss * size,
            # An interpolation leaves no residuals to estimate from.
            size * (rss / left if left > 1e-6 * self.n else scale),
            scale * size,
            float(self._reml_value(max(total - fitted, 1e-14), factor.log_det, diagonal)) + self._reml_unit(response),
            self.n * max(rss, 1e-14) * size / max(left, 1e-9 * self.n) ** 2,
            inverse,
        )

    def reml(self, log_sp: FloatArray, response: int = 0) -> tuple[float, FloatArray, FloatArray]:
        """Negative restricted log-likelihood with the scale profiled out, its gradient and Hessian in log λ.

        The intercept's ``log n / 2`` and mgcv's choice of coordinates are constants and left out
        (:meth:`fdadp.functional.margins.TensorProduct.mgcv_score_offset`).
        """
        value, gradient, hessian = self._unit_reml(log_sp, response)
        return value + self._reml_unit(response), gradient, hessian

    def _reml_unit(self, response: int) -> float:
        """What the norm of a response adds to REML."""
        return (self.n - self.n_unpenalized) * float(np.log(self._size[response])) / 2

    def _unit_reml(self, log_sp: FloatArray, response: int) -> tuple[float, FloatArray, FloatArray]:
        """REML of a response divided by its norm."""
        weighted = np.exp(log_sp)[:, None] * self._penalties  # λ_j d_j
        diagonal = weighted.sum(axis=0)
        factor = self._normal.factor(diagonal)
        inverse, beta = factor.inverse, factor.beta[:, response]
        deviance = max(float(self._total[response] - beta @ self._cross[:, response]), 1e-14)
        share = weighted / np.where(diagonal > 0, diagonal, 1.0)
        dof = self.n - self.n_unpenalized
        value = float(self._reml_value(deviance, factor.log_det, diagonal))
        pushed = weighted * beta  # L_j β
        d1 = pushed @ beta
        trace = weighted @ inverse.diagonal() - share.sum(axis=1)
        gradient = (dof * d1 / deviance + trace) / 2
        # Second derivatives: of the deviance, of log|A|, of -log|S|.
        d2 = -2 * pushed @ inverse @ pushed.T - np.outer(d1, d1) / deviance
        hessian = dof / deviance * d2 - weighted @ (inverse * inverse) @ weighted.T + share @ share.T
        hessian.flat[:: len(hessian) + 1] += dof / deviance * d1 + trace
        return value, gradient, hessian / 2

    def _reml_value(self, deviance: Any, log_det: float, diagonal: FloatArray) -> Any:
        """REML of one or several responses from their penalised deviances, log|A| and the diagonal of Σ λ_j D_j."""
        dof = self.n - self.n_unpenalized
        log_s = np.log(diagonal[diagonal > 0]).sum()
        return (dof * (1 + np.log(2 * np.pi * deviance / dof)) + log_det - log_s) / 2

    def gcv(self, log_sp: FloatArray, response: int = 0) -> tuple[float, FloatArray, FloatArray]:
        """``n RSS / (n - edf)²`` with its gradient and Hessian in log λ."""
        half, gradient, hessian = self._unit_gcv(log_sp, response)
        value = float(np.exp(2 / self.n * half) * self._size[response])
        gradient = 2 / self.n * gradient
        return value, value * gradient, value * (2 / self.n * hessian + np.outer(gradient, gradient))

    def _unit_gcv(self, log_sp: FloatArray, response: int) -> tuple[float, FloatArray, FloatArray]:
        """``n/2 log GCV`` of a response divided by its norm: curved as a log-likelihood is, in any units."""
        weighted = np.exp(log_sp)[:, None] * self._penalties
        factor = self._normal.factor(weighted.sum(axis=0))
        cross, inverse, beta = self._cross[:, response], factor.inverse, factor.beta[:, response]
        rss = max(float(self._total[response] - 2 * (beta @ cross) + beta @ self._gram @ beta), 1e-14)
        hat = factor.hat(self._gram)
        middle = hat @ inverse
        left = max(self.n - 1 - float(hat.trace()), 1e-9 * self.n)
        pull = weighted.sum(axis=0) * beta  # S β = Z'(y - Zβ)
        slopes = -(weighted * beta) @ inverse  # dβ/dlog λ_j in rows
        rss1 = -2 * slopes @ pull
        curved = -((weighted[:, None] * slopes[None]) + (weighted[None] * slopes[:, None])) @ inverse
        curved[np.arange(len(weighted)), np.arange(len(weighted))] += slopes
        rss2 = 2 * slopes @ self._gram @ slopes.T - 2 * curved @ pull
        left1 = weighted @ np.diag(middle)
        left2 = np.diag(left1) - 2 * weighted @ (inverse * middle) @ weighted.T
        log1 = rss1 / rss - 2 * left1 / left
        log2 = rss2 / rss - np.outer(rss1, rss1) / rss**2 - 2 * left2 / left + 2 * np.outer(left1, left1) / left**2
        half = self.n / 2
        return half * float(np.log(self.n * rss / left**2)), half * log1, half * log2

    # --- search ---

    def optimize(self, criterion: str = "reml") -> list[Solution]:
        """Fit every response at the smoothing parameters that minimise ``"reml"`` or ``"gcv"``.

        Newton's method with exact derivatives, in log λ. REML starts from the best points of a coarse grid, which
        guards against local minima. GCV starts where penalties and data weigh the same, as mgcv does, and takes
        the minimum it comes to: the global one is often an interpolation.

        Raises
        ------
        InputError
            Unknown criterion.
        """
        if criterion not in ("reml", "gcv"):
            raise InputError(f"criterion must be 'reml' or 'gcv', got {criterion!r}")
        starts = self._coarse_grid() if criterion == "reml" else [[self._centre]] * self.total.size
        tolerance = 1e-9 * (self.n - self.n_unpenalized)  # both criteria are sums over the observations
        bounds = self._centre - LOG_RANGE, self._centre + LOG_RANGE
        solutions = []
        for k, points in enumerate(starts):
            score = partial(self._unit_reml if criterion == "reml" else self._unit_gcv, response=k)
            best = min((newton(score, point, bounds, tolerance) for point in points), key=lambda end: end[0])
            solutions.append(self.solve(np.exp(best[1]), k))
        return solutions

    def _coarse_grid(self, step: float = 5.0, keep: int = 2) -> list[list[FloatArray]]:
        """Return, for each response, the best points of a grid around the centre, no two of them neighbours."""
        m = len(self.penalties)
        axis = np.arange(-2, 3) * step
        grid = np.stack(np.meshgrid(*[axis] * m, indexing="ij"), axis=-1).reshape(-1, m)
        points = grid[np.argsort(np.abs(grid).sum(axis=1), kind="stable")] + self._centre
        values = np.empty((len(points), self.total.size))
        for row, point in enumerate(points):
            diagonal = np.exp(point) @ self._penalties
            factor = self._normal.factor(diagonal)
            deviance = np.maximum(self._total - np.einsum("pk,pk->k", self._cross, factor.beta), 1e-14)
            values[row] = self._reml_value(deviance, factor.log_det, diagonal)
        starts: list[list[FloatArray]] = []
        for k in range(self.total.size):
            kept: list[FloatArray] = []
            # Where the criterion is flat but for rounding, the point nearest to the centre comes first.
            above = np.maximum(values[:, k] - values[:, k].min(), 1e-7 * self.n)
            for index in np.argsort(above, kind="stable"):
                if all(np.abs(points[index] - start).max() > 1.5 * step for start in kept):
                    kept.append(points[index])
                if len(kept) == keep:
                    break
            starts.append(kept)
        return starts
