"""Second moments of encoded rows and targets: their releases, and what is believed of coefficients after them.

Sources: Vu & Slavkovic (2009), doi:10.1109/ICDMW.2009.52 (sufficient statistics); Dwork et al. (2014),
doi:10.1145/2591796.2591883 (Gaussian noise on second moments).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fdadp._common.symmetric_matrices import positive_part
from fdadp._common.typing import FloatArray
from fdadp.privacy import Cohort
from fdadp.privacy.rows._sealed_row_functions import RowFunction
from fdadp.rounds.posterior_means import above_zero, empirical_bayes

_INTERCEPTS, _SLOPES = (0.01, 0.1, 1.0), np.geomspace(0.01, 30.0, 17)
"""Variances that are believed in evenly of the intercept and of slopes, for |t| <= 1 and vectors z of length 1."""
_LOOKS = 3
"""Times that the noise on the matrix is priced by the coefficients it is multiplied by."""
SQUARES = 0.3
"""Weight of the targets' squares in the release: they only tell the residual variance, roughly."""
CLIP, JOINT_CLIP = math.sqrt(2 + SQUARES**2), 2.0
"""Largest norm of what a person adds: of the upper triangle in L2, and of the whole matrix in the nuclear norm."""


class RowMoments(NamedTuple):
    """Noisy Σ zz' (p, p), Σ zt' (p, q), Σ t² (q,), and standard deviations of the noise on their entries: on the
    diagonal and off it of the first, of the second, and of the third."""

    gram: FloatArray
    cross: FloatArray
    squares: FloatArray
    sd: float
    sd_off: float
    sd_cross: float
    sd_squares: float

    @property
    def in_noise(self) -> FloatArray:
        """Entries of the first two, in units of their noise."""
        upper = self.gram[np.triu_indices(len(self.gram), 1)]
        parts = upper / self.sd_off, np.diag(self.gram) / self.sd, np.ravel(self.cross) / self.sd_cross
        return np.concatenate(parts)


NAME = "second moment of features and targets"


def release_moments(
    cohort: Cohort, pair: RowFunction, p: int, q: int, *, joint: bool = False, wishart: bool = False, share: float = 1.0
) -> RowMoments:
    """Release the joint second moment of features z and targets t, |z| <= 1 and |t| <= 1.

    Gaussian noise: of its upper triangle, scaled to a small sensitivity. `joint`, as in pure ε, or `wishart`: of all of
    it, with matrix Laplace or Wishart noise, which has its sd on the diagonal and 1/√2 of it elsewhere.
    """
    if joint or wishart or cohort.pure:
        if wishart:
            moment, sd = cohort.wishart_moment(pair, clip=math.sqrt(2.0), share=share, name=NAME)
        else:
            moment, sd = cohort.second_moment(pair, clip=JOINT_CLIP, share=share, name=NAME, norm="nuclear")
        of_rest = sd / math.sqrt(2)
        return RowMoments(moment[:p, :p], moment[:p, p:], np.diag(moment)[p:], sd, of_rest, of_rest, sd)
    off = math.sqrt(2.0)
    weights = np.zeros((p + q, p + q))
    weights[:p, :p] = np.triu(np.full((p, p), off), 1) + np.eye(p)
    weights[:p, p:] = 1.0
    weights[p:, p:] = SQUARES * np.eye(q)
    value, sd = cohort.sum_outer(
        lambda rows: (pair(rows), pair(rows)), clip=CLIP, weights=weights, share=share, name=NAME
    )
    moment = value / np.where(weights > 0, weights, 1.0)
    upper = np.triu(moment[:p, :p], 1)
    return RowMoments(
        gram=upper + upper.T + np.diag(np.diag(moment[:p, :p])),
        cross=moment[:p, p:],
        squares=np.diag(moment[p:, p:]),
        sd=sd,
        sd_off=sd / off,
        sd_cross=sd,
        sd_squares=sd / SQUARES,
    )


def posterior_coefficients(m: RowMoments, A: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """Posterior mean (p,) and covariance (p, p) of coefficients of target k, over priors as likely as they turn out.

    The model is in the notes of :class:`fdadp.learners.DPLinearRegression`. `A` is :func:`believed_moment`.
    """
    b, p = m.cross[:, k], len(A)
    residual = min(max(m.squares[k] / max(np.trace(A), 1.0), 1e-2), 1.0)
    evidence, means, spreads = [], [], []
    for intercept in _INTERCEPTS:
        for slope in _SLOPES:
            prior = np.append(np.full(p - 1, slope), intercept)
            size = prior.sum()  # |θ|², by which noise on the matrix counts
            for _ in range(_LOOKS):
                law = (A * prior) @ A + (m.sd_cross**2 + m.sd_off**2 * size) * np.eye(p)
                mean = prior * (A @ np.linalg.solve(law, b))
                size = min(prior.sum(), float(mean @ mean))
            factor = np.linalg.cholesky(law + residual * A)
            misfit = np.linalg.solve(factor, b)
            # A copy: NumPy 1.26 takes another logarithm for a view where the result happens to lie near it in memory
            evidence.append(-0.5 * misfit @ misfit - np.log(np.diag(factor).copy()).sum())
            means.append(mean)
            through = A * prior
            spreads.append(np.diag(prior) - through.T @ np.linalg.solve(law, through))
    weights = np.exp(np.array(evidence) - max(evidence))
    weights /= weights.sum()
    found = np.asarray(weights @ np.array(means))
    away = np.array(means) - found
    return found, np.asarray(np.tensordot(weights, np.array(spreads), 1) + (away * weights[:, None]).T @ away)


def believed_moment(m: RowMoments) -> FloatArray:
    """Posterior mean (p, p) of Σ zz', entry by entry, without negative eigenvalues.

    Of noise alone it is even, and has no directions of its own.
    """
    d = len(m.gram) - 1
    squares, upper = np.diag(m.gram)[:-1], np.triu_indices(d, 1)
    usual = float(above_zero(squares.mean(), m.sd**2 / d))
    size = float(above_zero(m.gram[-1, -1], m.sd**2))
    out = np.zeros((d + 1, d + 1))
    out[upper] = _about_common(m.gram[upper], m.sd_off**2, usual**2)
    out[:-1, -1] = _about_common(m.gram[:-1, -1], m.sd_off**2, usual * size)
    out += out.T
    out[np.diag_indices(d)] = np.maximum(empirical_bayes(squares, m.sd**2, usual, usual**2)[0], 0.0)
    out[-1, -1] = size
    return positive_part(out)


def _about_common(values: FloatArray, noise: float, scale: float) -> FloatArray:
    """Posterior means of values, with noise of this variance, about their common mean, itself about 0."""
    common = 0.0
    if len(values) > 1:
        mean, left = float(values.mean()), noise / len(values)
        common = float(empirical_bayes(mean, left, 0.0, scale)[0])
    return empirical_bayes(values, noise, common, scale)[0]
