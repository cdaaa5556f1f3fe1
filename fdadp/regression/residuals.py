"""What an additive fit leaves: the residual covariance, and what the features explain outside the kept components."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.fpca import Eigenbasis, face_smooth
from fdadp.solve.penalized import Solution
from fdadp.solve.sums import TrainingSums

__all__ = ["Residuals", "residuals_of"]


@dataclass(frozen=True)
class Residuals:
    """Of a fit, from the sums.

    Attributes
    ----------
    r2 : float
        Share of the variance of Y, integrated over t, that the fit explains.
    variance : ndarray of shape (T,)
        Of Y about E[Y | X], corrected for the degrees of freedom used.
    omitted : ndarray of shape (T,)
        Variance over curves of the part of E[Y | X] that lies outside the kept components.
    noise_variance : float
        White part of the residual variance.
    degrees : ndarray of shape (K,)
        Residual degrees of freedom of each component.
    """

    r2: float
    variance: FloatArray
    omitted: FloatArray
    noise_variance: float
    degrees: FloatArray


def residuals_of(sums: TrainingSums, basis: Eigenbasis, solutions: list[Solution]) -> Residuals:
    """Residual statistics of components (K of them) fitted to sums over curves."""
    p, n = sums.n_features, sums.moments.n
    rotation = sums.smooth.raw_rotation
    zz = rotation.T @ sums.moments.scatter[:p, :p] @ rotation
    zy, yy = rotation.T @ sums.moments.scatter[:p, p:], sums.y.scatter
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
    return Residuals(r2, variance - omitted, omitted, float(white), degrees)


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
