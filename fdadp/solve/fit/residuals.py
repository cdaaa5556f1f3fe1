"""What a fit of scores leaves: the residual covariance, and what the features explain outside the kept components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.fpca import Eigenbasis, face_smooth
from fdadp.functional.tables.records import Records
from fdadp.solve.form.sums import TrainingSums
from fdadp.solve.smoothing.penalized import Solution


@dataclass(frozen=True)
class PointwiseVariance:
    """Variance of responses about their means at points of the grid, with the law of what is divided by its root.

    Attributes
    ----------
    grid : ndarray of shape (T,)
    values : ndarray of shape (T,)
    scale, inverse_dof : float
        Standardised errors are `scale` times a t law with ``1 / inverse_dof`` degrees of freedom.
    """

    grid: FloatArray
    values: FloatArray
    scale: float = 1.0
    inverse_dof: float = 0.0

    def of_records(self, records: Records, t: FloatArray) -> FloatArray:
        """Variances of records at points, shape (1, T') or (n, T')."""
        return np.interp(t, self.grid, self.values)[None]

    def quantile(self, level: float) -> float:
        """Standard deviations that an interval of this level reaches to either side."""
        from scipy.stats import norm
        from scipy.stats import t as student

        tail = (1 + level) / 2
        return float(self.scale * (student.ppf(tail, 1 / self.inverse_dof) if self.inverse_dof else norm.ppf(tail)))


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


def unexplained(sums: TrainingSums, basis: Eigenbasis, solutions: Sequence[Solution]) -> Unexplained:
    """What K fitted components leave.

    Parameters
    ----------
    sums : TrainingSums
    basis : Eigenbasis
        K functions.
    solutions : sequence of Solution
    """
    n, gram, cross, scatter = sums.n, sums.gram, sums.cross, sums.y.scatter
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


def r2_of(sums: TrainingSums, left: Unexplained, basis: Eigenbasis) -> float:
    """Share of the variance of the responses that is explained."""
    return float(1 - (np.diag(left.sums) @ basis.weights) / (np.diag(sums.y.scatter) @ basis.weights))


def white_part(left: Unexplained, t: FloatArray) -> float:
    """White part of the residual variance."""
    return float(face_smooth(left.covariance, t)[1] if t.size >= 12 else left.variance.min())


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
