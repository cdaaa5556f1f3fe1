"""Coefficients of a likelihood from noisy gradients of it at several points, and a public law of the features.

The expected gradient at ``θ_t`` is ``G_t(θ) = E[ω_t f (m(f'θ) - m(f'θ_t))]``, θ the true coefficients, m the mean of a
response and ``ω_t`` the weight of a clipped row. White features are taken as standard Gaussians, of which public draws
give ``G_t`` and its slope: all gradients, near the solution or far from it, tell of one θ. What the features' law is
beyond that is ``Δ (θ - θ_t)``, with Δ of a known prior variance: a round counts the less the farther away it was
measured, and rounds have those errors in common. Gauss-Newton steps, each the posterior of
:func:`fdadp.private.denoise.empirical_bayes.posteriors`. Post-processing, which costs no privacy
(docs/theory/dp-aff.md#families).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.privacy import rowwise_matmul
from fdadp.private.denoise.empirical_bayes import (
    SIZES,
    SMALLER_SIZES,
    SPECTRA,
    WIDER_SPECTRA,
    Measurement,
    combine,
    posteriors,
    secant_update,
    steady,
)
from fdadp.private.rows.count_and_binary_rows import BoundedResponse

DRAWS, KEPT = 2000, 8
"""Public draws of the features; of so many sizes they are kept."""
LONGEST = 1.0
"""Largest change of linear predictors, as a root mean square, in one step."""
LEAST_NOISE = 1e-12
"""Variances of gradients are taken to be this at least, and the reciprocal at most."""


@dataclass(frozen=True)
class LikelihoodPosterior:
    """What is known of the coefficients.

    Attributes
    ----------
    mean : ndarray of shape (D, 1)
        0 of features that were not measured.
    covariance : ndarray of shape (1, D, D)
        Posterior; of features that were not measured what the prior expects, given how large the others are.
    edf : ndarray of shape (1,)
    """

    mean: FloatArray
    covariance: FloatArray
    edf: FloatArray


@dataclass(frozen=True)
class _Score:
    """A gradient over n, the variances of its noise, where it was measured, clip weights and means of the draws.

    `whole`: every entry was measured.
    """

    gradient: FloatArray
    variance: FloatArray
    theta: FloatArray
    weight: FloatArray
    mean: FloatArray
    whole: bool


@lru_cache(maxsize=KEPT)
def gaussian_draws(d: int) -> FloatArray:
    """Public draws of white features, the constant first: symmetric, of second moment exactly I; shape (DRAWS, d)."""
    half = np.random.default_rng(0).standard_normal((DRAWS // 2, d - 1))
    both = np.concatenate((half, -half))
    white = np.linalg.solve(np.linalg.cholesky(both.T @ both / len(both)), both.T).T if d > 1 else both
    out = np.hstack((np.ones((len(both), 1)), white))
    out.flags.writeable = False
    return out


class ReleasedGradients:
    """Gradients that were released, and what they say.

    Parameters
    ----------
    response : BoundedResponse
    n : float
        Number of persons.
    d : int
        Features that are measured, the constant among them.
    shares : ndarray of shape (D - 1,)
        Prior shares of all features but the constant, those that are not measured last.
    owner : ndarray of shape (D - 1,)
        Number of the term of each.
    energy : float
        Variance of linear predictors that the prior expects.
    variance : float
        Prior variance of an entry of Δ, relative to a person's information.
    norms : callable
        Of features (m, d), the norms (m,) at which rows are clipped.
    """

    def __init__(
        self,
        response: BoundedResponse,
        n: float,
        d: int,
        shares: FloatArray,
        owner: IntArray,
        energy: float,
        variance: float,
        norms: Callable[[FloatArray], FloatArray],
    ) -> None:
        self.response, self.n, self.location = response, n, 0.0
        self._shares, self._owner, self._energy, self._variance = shares, owner, energy, variance
        self._spectra: tuple[float, ...] = SPECTRA
        self._draws = gaussian_draws(d)
        self._norms = norms(self._draws)
        self._scores: list[_Score] = []
        size = shares.size + 1
        self.found = LikelihoodPosterior(np.zeros((size, 1)), np.zeros((1, size, size)), np.zeros(1))

    @property
    def theta(self) -> FloatArray:
        """Coefficients of the measured features as far as is known, (d, 1)."""
        return self.found.mean[: self._draws.shape[1]]

    def predictor(self, theta: FloatArray) -> FloatArray:
        """Linear predictors of the draws."""
        return self.location + rowwise_matmul(self._draws, theta)[:, 0]

    def add(self, gradient: FloatArray, sd: FloatArray, theta: FloatArray, largest: float | None = None) -> None:
        """Take one gradient in.

        Parameters
        ----------
        gradient, sd : ndarray of shape (d,)
            Sum over n of features times residuals; sd of the noise in it, infinite where not measured.
        theta : ndarray of shape (d, 1)
            Coefficients that it was measured at.
        largest : float, optional
            Bound on the product of features and residual; default none.
        """
        mean = self.response.mean(self.predictor(theta))
        weight = np.ones(len(mean))
        if largest is not None:
            weight = np.minimum(1.0, largest / (self.response.reach(mean) * self._norms))
        variance = np.clip(sd**2, LEAST_NOISE, 1 / LEAST_NOISE)
        self._scores.append(
            _Score(gradient, variance, theta, weight, mean / self.response.width, bool(np.isfinite(sd).all()))
        )

    def solve(self, steps: int) -> LikelihoodPosterior:
        """Gauss-Newton steps from where the last ones ended."""
        for _ in range(steps):
            start, found = self.found.mean, self._posterior(*self._seen())
            far = float(np.linalg.norm(found.mean - start))  # rms change of linear predictors, features being white
            mean = start + (found.mean - start) * min(1.0, LONGEST / max(far, LEAST_NOISE))
            self.found = LikelihoodPosterior(mean, found.covariance, found.edf)
        return self.found

    def covariance(self, wider: float) -> FloatArray:
        """Posterior covariance where the law of features is believed so many times less, shape (1, D, D).

        Effects may be rougher than predictions count on (:data:`fdadp.private.denoise.empirical_bayes.WIDER_SPECTRA`);
        and the square is added of how far shrinkage would pull the coefficients found, were they measured again
        (Tukey's twicing): by the posterior alone intervals hold on average, not where linear predictors are large.
        """
        believed, self._variance = self._variance, wider * self._variance
        self._spectra = WIDER_SPECTRA
        seen = self._seen()
        found = self._posterior(*seen)
        again = self._posterior(seen[2] @ found.mean[: len(seen[2])], *seen[1:])
        self._variance, self._spectra = believed, SPECTRA
        away = (found.mean - again.mean)[:, 0]
        return found.covariance + np.outer(away, away)

    def _seen(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """What all gradients say of the measured coefficients: y and the variances of its noise, A, sampling error."""
        f, theta, width = self._draws, self.theta, self.response.width
        eta = self.predictor(theta)
        mean, slope = self.response.mean(eta) / width, self.response.slope(eta) / width
        weight = next(score.weight for score in reversed(self._scores) if score.whole)
        unit = float(slope.mean())  # a person's information: all that follows is in units of it
        jacobian = _products(f, weight * slope) / unit
        sampling = _products(f, weight**2 * self.response.variance(eta)) / (self.n * (width * unit) ** 2)
        measured: list[Measurement] = [
            (
                (score.gradient[:, None] - _averages(f, (score.weight * (mean - score.mean))[:, None])) / unit,
                score.theta,
                score.variance[:, None] / unit**2,
            )
            for score in self._scores
        ]
        # How the features' law differs from Gaussian draws, by differences of gradients
        by_noise = sorted(measured, key=lambda one: float(one[2].max()))
        every, unknown = np.ones(theta.shape, dtype=bool), np.zeros_like(jacobian)
        moment = steady(jacobian + secant_update(unknown, self._variance, by_noise, every, least=-math.inf))
        target, noise = combine(measured, theta, moment - jacobian, self._variance)
        spread = float(np.trace(self.found.covariance[0][: len(theta), : len(theta)]))  # of the solution about `theta`
        return target + jacobian @ theta, noise + self._variance * spread, moment, sampling

    def _posterior(self, y: FloatArray, v: FloatArray, a: FloatArray, sampling: FloatArray) -> LikelihoodPosterior:
        """Posterior of all features; of those that were not measured ``0 θ + 1`` was seen, which says nothing."""
        d, rest = len(a), self._shares.size + 1 - len(a)
        return LikelihoodPosterior(
            *posteriors(
                np.concatenate((y, np.zeros((rest, 1)))),
                np.concatenate((v, np.ones((rest, 1)))),
                np.pad(a, (0, rest)),
                np.ones((d + rest, 1), dtype=bool),
                self._shares,
                np.array([self._energy]),
                self.n,
                self._owner,
                sampling=np.pad(sampling, (0, rest)),
                spectra=self._spectra,
                sizes=SIZES if self.response.counts else SMALLER_SIZES,
            )
        )


def _products(features: FloatArray, weight: FloatArray) -> FloatArray:
    """Mean of weighted outer products of features."""
    return _averages(features, features * weight[:, None])


def _averages(features: FloatArray, values: FloatArray) -> FloatArray:
    """Means of products of features (N, d) and values (N, k), (d, k): in a fixed order, the same bits in every fit."""
    return np.asarray(rowwise_matmul(features.T.copy(), values) / len(features))
