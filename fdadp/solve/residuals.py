"""What an additive fit leaves: the residual covariance, and what the features explain outside the kept components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.fpca import Eigenbasis, face_smooth
from fdadp.solve.fitted import Fitted, Residual
from fdadp.solve.solution import Solution
from fdadp.solve.sums import TrainingSums

__all__ = ["Unexplained", "residual_of", "unexplained", "widened"]


@dataclass(frozen=True)
class Unexplained:
    """What components leave of the responses, by sums over curves.

    Attributes
    ----------
    sums : ndarray of shape (T, T)
        Products of residual curves, summed.
    covariance : ndarray of shape (T, T)
        Of residual curves, corrected for the degrees of freedom used.
    omitted : ndarray of shape (T,)
        Variance of the part of E[Y | X] outside the kept components; the covariance has it, too.
    degrees : float
        Residual degrees of freedom of a component, on average.
    """

    sums: FloatArray
    covariance: FloatArray
    omitted: FloatArray
    degrees: float

    @property
    def variance(self) -> FloatArray:
        """Pointwise variance of responses about their fitted means, shape (T,)."""
        return np.maximum(np.diag(self.covariance), 0.0)


def unexplained(
    n: int, gram: FloatArray, cross: FloatArray, scatter: FloatArray, basis: Eigenbasis, solutions: Sequence[Solution]
) -> Unexplained:
    """What K fitted components leave.

    Parameters
    ----------
    n : int
        Number of curves.
    gram : ndarray of shape (p, p)
        Scatter of the identified coordinates of the features.
    cross : ndarray of shape (p, T)
        Products of them and the response, both centred.
    scatter : ndarray of shape (T, T)
        Of the response.
    basis : Eigenbasis
        K functions.
    solutions : sequence of Solution
    """
    size = len(basis.grid)
    slopes = np.stack([f.coefficients for f in solutions], axis=1) @ basis.functions  # (p, T)
    explained = slopes.T @ cross
    residual = scatter - explained - explained.T + slopes.T @ gram @ slopes
    residual = (residual + residual.T) / 2
    edf = np.array([f.edf_total for f in solutions])
    degrees = np.maximum(n - edf, 1.0)
    inflate = np.sqrt((n - 1) / degrees) - 1
    widen = np.eye(size) + (basis.functions.T * inflate) @ (basis.functions * basis.weights)
    covariance = widen @ residual @ widen.T / (n - 1)
    # The directions of Y that no component stands for, regressed with the lightest smoothing that one of them has.
    outside = np.eye(size) - (basis.functions * basis.weights).T @ basis.functions
    total = (outside * (scatter @ outside)).sum(axis=0)
    omitted = _explained_variance(gram, cross @ outside, total, n, solutions[int(edf.argmax())])
    omitted = np.minimum(omitted, np.maximum(np.diag(covariance), 0.0))
    return Unexplained(residual, covariance, omitted, float(degrees.mean()))


def residual_of(sums: TrainingSums, basis: Eigenbasis, solutions: list[Solution]) -> Residual:
    """Residual statistics of components (K of them) fitted to sums over curves.

    The variance is corrected for the degrees of freedom used. The part of E[Y | X] outside the kept components is not
    in it, but in that of predicted mean curves.
    """
    yy = sums.y.scatter
    left = unexplained(sums.n, sums.gram, sums.cross, yy, basis, solutions)
    r2 = float(1 - (np.diag(left.sums) @ basis.weights) / (np.diag(yy) @ basis.weights))
    white = face_smooth(left.covariance, sums.t)[1] if sums.t.size >= 12 else float(left.variance.min())
    own = left.variance - left.omitted
    # Of predicted mean curves: of the mean, and what the kept components cannot follow.
    of_mean = (own + left.omitted) / sums.n + left.omitted
    return Residual(own, float(white), of_mean, r2, inverse_dof=1 / left.degrees)


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
