"""What an additive fit leaves: the residual covariance, and what the features explain outside the kept components."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.fpca import Eigenbasis, face_smooth
from fdadp.solve.fitted import Fitted, Residual
from fdadp.solve.solution import Solution
from fdadp.solve.sums import TrainingSums

__all__ = ["residual_of", "widened"]


def residual_of(sums: TrainingSums, basis: Eigenbasis, solutions: list[Solution]) -> Residual:
    """Residual statistics of components (K of them) fitted to sums over curves.

    The variance is corrected for the degrees of freedom used. The part of E[Y | X] outside the kept components is not
    in it, but in that of predicted mean curves.
    """
    n, zz, zy, yy = sums.n, sums.gram, sums.cross, sums.y.scatter
    slopes = np.stack([f.coefficients for f in solutions], axis=1) @ basis.functions  # (p, T)
    explained = slopes.T @ zy
    residual = yy - explained - explained.T + slopes.T @ zz @ slopes
    residual = (residual + residual.T) / 2
    r2 = float(1 - (np.diag(residual) @ basis.weights) / (np.diag(yy) @ basis.weights))
    edf = np.array([f.edf_total for f in solutions])
    degrees = np.maximum(n - edf, 1.0)
    inflate = np.sqrt((n - 1) / degrees) - 1
    widen = np.eye(sums.t.size) + (basis.functions.T * inflate) @ (basis.functions * basis.weights)
    covariance = widen @ residual @ widen.T / (n - 1)
    variance = np.maximum(np.diag(covariance), 0.0)
    # The directions of Y that no component stands for, regressed with the lightest smoothing that one of them has.
    outside = np.eye(sums.t.size) - (basis.functions * basis.weights).T @ basis.functions
    omitted = _explained_variance(zz, zy @ outside, (outside * (yy @ outside)).sum(axis=0), n, solutions[edf.argmax()])
    omitted = np.minimum(omitted, variance)
    white = face_smooth(covariance, sums.t)[1] if sums.t.size >= 12 else float(variance.min())
    # Of predicted mean curves: of the mean, and what the kept components cannot follow.
    left = variance - omitted
    return Residual(left, float(white), (left + omitted) / n + omitted, r2, inverse_dof=1 / float(degrees.mean()))


def widened(fitted: Fitted, lost: FloatArray) -> Fitted:
    """Standard errors for the share of information about each component (K,) that gaps of Y took away."""
    more = lost / (1 - lost)
    functions = fitted.response.basis.functions
    mean_variance = fitted.residual.mean_variance + (more * fitted.unit_variance) @ functions**2 / fitted.n
    return replace(
        fitted,
        covariance=fitted.covariance * (1 + more)[:, None, None],
        residual=replace(fitted.residual, mean_variance=mean_variance),
    )


def _explained_variance(gram: FloatArray, cross: FloatArray, total: FloatArray, n: int, like: Solution) -> FloatArray:
    """Variance over curves of ``E[y | X]`` for responses (T of them), fitted with the smoothing of a solution.

    ``|Hy|²/n`` less what noise adds to it, ``σ² tr(H²)/n``.
    """
    beta = like.inverse @ cross
    fitted = (beta * (gram @ beta)).sum(axis=0)
    left = max(n - like.edf_total, 1.0)
    noise = np.maximum(total - 2 * (beta * cross).sum(axis=0) + fitted, 0.0) / left
    hat = like.inverse @ gram
    return np.asarray(np.maximum(fitted - noise * float((hat * hat.T).sum()), 0.0) / n)
