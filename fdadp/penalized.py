"""Penalised least squares from moments, with smoothing parameters by REML or GCV.

The penalties are diagonal (see :mod:`fdadp.tensor`): ``A(λ) = G + Σ_j λ_j diag(d_j)`` with G the scatter of
the features. One Cholesky factor of a p×p matrix a step is all the work; neither n nor the grid enters.

References
----------
Wood (2011), Fast stable REML and marginal likelihood estimation of semiparametric generalized linear models,
JRSS-B 73(1), doi:10.1111/j.1467-9868.2010.00749.x; Craven & Wahba (1979), doi:10.1007/BF01404567.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import lapack

from fdadp._typing import ArrayLike, FloatArray
from fdadp.errors import InputError

__all__ = ["PenalizedLeastSquares", "Solution"]

# Penalties beyond these multiples of the data's own scale change nothing any more.
_LOG_RANGE = 40.0


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
        free = int((self.penalties == 0).all(axis=0).sum())
        self.n_unpenalized = free + 1 if n_unpenalized is None else int(n_unpenalized)
        if self.n <= self.n_unpenalized:
            raise InputError(
                f"n must be above the {self.n_unpenalized} unpenalised coefficients, got {self.n} observations"
            )
        self._gram_diagonal = self.gram.diagonal().copy()
        own = [float(self._gram_diagonal[d > 0].sum()) / max(float(d.sum()), 1e-300) for d in self.penalties]
        # Where the penalty weighs as much as the data: the middle of the search.
        self._centre = np.log(np.maximum(np.asarray(own), 1e-300))

    # --- one value of the smoothing parameters ---

    def _inverse(self, diagonal: FloatArray) -> tuple[FloatArray, float]:
        """Return A⁻¹ and log|A| for ``Σ λ_j d_j``, scaled to unit diagonal first so that extreme λ do no harm."""
        own = self._gram_diagonal + diagonal
        scale = 1 / np.sqrt(np.maximum(own, 1e-300))
        a = self.gram * (scale * scale[:, None])
        a.flat[:: len(a) + 1] = own * scale * scale
        factor, info = lapack.dpotrf(a, lower=1, clean=1)
        if info:
            # Not positive definite within rounding: a direction without data and without penalty.
            factor, _ = lapack.dpotrf(a + 1e-12 * np.eye(len(a)), lower=1, clean=1)
        root = lapack.dtrtri(factor, lower=1)[0] * scale
        log_det = 2 * np.log(factor.diagonal() / scale).sum()
        return root.T @ root, float(log_det)

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
        log_sp = np.log(sp)
        inverse, _ = self._inverse(sp @ self.penalties)
        cross, total = self.cross[:, response], float(self.total[response])
        beta = inverse @ cross
        rss = max(total - 2 * float(beta @ cross) + float(beta @ self.gram @ beta), 0.0)
        edf = np.einsum("ij,ji->i", inverse, self.gram)
        left = self.n - 1 - float(edf.sum())
        deviance = max(total - float(beta @ cross), 0.0)
        return Solution(
            sp,
            beta,
            edf,
            rss,
            rss / left if left > 0 else np.nan,
            deviance / (self.n - self.n_unpenalized),
            self.reml(log_sp, response)[0],
            self.gcv(log_sp, response)[0],
            inverse,
        )

    def reml(self, log_sp: FloatArray, response: int = 0) -> tuple[float, FloatArray, FloatArray]:
        """Negative restricted log-likelihood with the scale profiled out, its gradient and Hessian in log λ.

        The intercept's ``log n / 2`` and mgcv's choice of coordinates are constants and left out
        (:meth:`fdadp.tensor.TensorProduct.mgcv_score_offset`).
        """
        weighted = np.exp(log_sp)[:, None] * self.penalties  # λ_j d_j
        diagonal = weighted.sum(axis=0)
        inverse, log_det = self._inverse(diagonal)
        cross, total = self.cross[:, response], float(self.total[response])
        beta = inverse @ cross
        deviance = max(total - float(beta @ cross), 1e-14 * total, 1e-300)
        share = weighted / np.where(diagonal > 0, diagonal, 1.0)
        dof = self.n - self.n_unpenalized
        value = self._reml_value(deviance, log_det, diagonal)
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
        weighted = np.exp(log_sp)[:, None] * self.penalties
        inverse, _ = self._inverse(weighted.sum(axis=0))
        cross = self.cross[:, response]
        beta = inverse @ cross
        rss = max(float(self.total[response]) - 2 * float(beta @ cross) + float(beta @ self.gram @ beta), 1e-300)
        middle = inverse @ self.gram @ inverse
        left = self.n - 1 - float(np.einsum("ij,ji->", inverse, self.gram))
        pull = weighted.sum(axis=0) * beta  # S β = Z'(y - Zβ)
        slopes = -(weighted * beta) @ inverse  # dβ/dlog λ_j in rows
        rss1 = -2 * slopes @ pull
        curved = -((weighted[:, None] * slopes[None]) + (weighted[None] * slopes[:, None])) @ inverse
        curved[np.arange(len(weighted)), np.arange(len(weighted))] += slopes
        rss2 = 2 * slopes @ self.gram @ slopes.T - 2 * curved @ pull
        left1 = weighted @ np.diag(middle)
        left2 = np.diag(left1) - 2 * weighted @ (inverse * middle) @ weighted.T
        value = self.n * rss / left**2
        log1 = rss1 / rss - 2 * left1 / left
        log2 = rss2 / rss - np.outer(rss1, rss1) / rss**2 - 2 * left2 / left + 2 * np.outer(left1, left1) / left**2
        return value, value * log1, value * (log2 + np.outer(log1, log1))

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
        solutions = []
        for k, points in enumerate(starts):
            score = partial(self.reml if criterion == "reml" else self.gcv, response=k)
            best = min((self._newton(score, point) for point in points), key=lambda end: end[0])
            solutions.append(self.solve(np.exp(best[1]), k))
        return solutions

    def _coarse_grid(self, step: float = 5.0, keep: int = 2) -> list[list[FloatArray]]:
        """Return, for each response, the best points of a grid around the centre, no two of them neighbours."""
        m = len(self.penalties)
        axis = np.arange(-2, 3) * step
        points = np.stack(np.meshgrid(*[axis] * m, indexing="ij"), axis=-1).reshape(-1, m) + self._centre
        values = np.empty((len(points), self.total.size))
        for row, point in enumerate(points):
            diagonal = np.exp(point) @ self.penalties
            inverse, log_det = self._inverse(diagonal)
            fitted = np.einsum("pk,pk->k", self.cross, inverse @ self.cross)
            deviance = np.maximum(self.total - fitted, np.maximum(1e-14 * self.total, 1e-300))
            values[row] = self._reml_value(deviance, log_det, diagonal)
        starts: list[list[FloatArray]] = []
        for k in range(self.total.size):
            kept: list[FloatArray] = []
            for index in np.argsort(values[:, k], kind="stable"):
                if all(np.abs(points[index] - start).max() > 1.5 * step for start in kept):
                    kept.append(points[index])
                if len(kept) == keep:
                    break
            starts.append(kept)
        return starts

    def _newton(
        self, score: Callable[[FloatArray], tuple[float, FloatArray, FloatArray]], start: FloatArray
    ) -> tuple[float, FloatArray]:
        point = start
        value, gradient, hessian = score(point)
        for _ in range(100):
            if np.abs(gradient).max() <= 1e-9 * (1 + abs(value)):
                break
            curvature, axes = np.linalg.eigh(hessian)
            floor = max(1e-7 * np.abs(curvature).max(), 1e-300)
            step = -axes @ ((axes.T @ gradient) / np.maximum(np.abs(curvature), floor))
            step *= min(1.0, 4.0 / np.abs(step).max())
            for _ in range(30):
                new = np.clip(point + step, self._centre - _LOG_RANGE, self._centre + _LOG_RANGE)
                candidate = score(new)
                if candidate[0] < value:
                    break
                step = step / 2
            else:
                break
            point, (value, gradient, hessian) = new, candidate
        return value, point
