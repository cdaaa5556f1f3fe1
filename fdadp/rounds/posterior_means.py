"""What is believed after a release: posterior means under a public prior and noise of a known standard deviation.

A release is the truth plus noise whose law is public. To take it at its word is to call noise a finding; the mean of
what is believed after it, given a prior, is post-processing and costs nothing. Where the noise is small it is the
release itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import erfcx

from fdadp._common.typing import ArrayLike, FloatArray

FACTORS = np.geomspace(0.003, 1.0, 16)
"""What :func:`spread` believes in evenly: variances of a prior as multiples of its scale, from hardly any to all."""

_FAR, _TINY = 1e3, 1e-300


def gain(signal: Any, noise: Any) -> Any:
    """Factor by which a measurement counts: variance of the signal over that of signal and noise."""
    return signal / np.maximum(signal + noise, _TINY)


def shrunk(value: Any, sd: Any, towards: Any, prior_sd: Any) -> Any:
    """Posterior mean of a number that was measured with noise of this sd; prior: Gaussian about `towards`."""
    return towards + (value - towards) * gain(prior_sd**2, sd**2)


def posterior(
    value: ArrayLike, noise: ArrayLike, mean: ArrayLike, variance: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Posterior mean and variance, broadcast, of what was released with normal noise.

    Parameters
    ----------
    value, noise : array_like
        Released values and the variances of their noise.
    mean, variance : array_like
        Of the prior.

    Examples
    --------
    >>> mean, variance = posterior(3.0, 1.0, 0.0, 2.0)
    >>> float(mean), round(float(variance), 3)
    (2.0, 0.667)
    """
    value, noise, mean, variance = np.broadcast_arrays(
        *(np.asarray(a, dtype=np.float64) for a in (value, noise, mean, variance))
    )
    kept = gain(variance, noise)
    return mean + kept * (value - mean), kept * noise


def above_zero(mean: ArrayLike, variance: ArrayLike) -> FloatArray:
    """Mean of a normal law given that what it describes is above 0: about its sd where the law has no more to say."""
    mean = np.asarray(mean, dtype=np.float64)
    sd = np.sqrt(np.maximum(np.asarray(variance, dtype=np.float64), _TINY))
    at = mean / sd
    usual = mean + sd * np.sqrt(2 / np.pi) / erfcx(-at / np.sqrt(2))
    far = np.maximum(-at, _FAR)  # where the usual way takes two numbers off each other that are nearly the same
    return np.where(at < -_FAR, sd / far * (1 - 2 / far**2), usual)


def spread(gaps: ArrayLike, noise: ArrayLike, scale: ArrayLike) -> float:
    """Multiple of `scale`, the prior's variance up to a factor, that released gaps from its mean make one expect.

    The mean over :data:`FACTORS` with their marginal likelihoods as weights: the most likely one alone would be the
    smallest wherever noise prevails.

    Parameters
    ----------
    gaps, noise, scale : array_like
        Released differences from the mean of the prior, variances of their noise, and scales; broadcast.

    Examples
    --------
    >>> near = spread([0.1, -0.1, 0.05, 0.0], 1e-4, 1.0)
    >>> far = spread([1.0, -2.0, 1.5, 0.5], 1e-4, 1.0)
    >>> round(near, 3), round(far, 1)
    (0.012, 0.9)
    """
    gaps, noise, scale = np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in (gaps, noise, scale)))
    laws = np.maximum(FACTORS[:, None] * scale.ravel() + noise.ravel(), _TINY)
    evidence = -0.5 * (np.log(laws) + gaps.ravel() ** 2 / laws).sum(axis=1)
    weights = np.exp(evidence - evidence.max())
    return float(weights @ FACTORS / weights.sum())


def empirical_bayes(
    value: ArrayLike, noise: ArrayLike, mean: ArrayLike, scale: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """:func:`posterior` under a prior whose variance is the multiple of `scale` that the values tell (:func:`spread`).

    Examples
    --------
    >>> kept, _ = empirical_bayes([0.1, -0.1, 0.05, 0.0], 1e-2, 0.0, 1.0)  # no more than the noise
    >>> kept.round(2)
    array([ 0.06, -0.06,  0.03,  0.  ])
    """
    gaps = np.asarray(value, dtype=np.float64) - np.asarray(mean, dtype=np.float64)
    return posterior(value, noise, mean, np.asarray(scale) * spread(gaps, noise, scale))


def class_shares(counts: FloatArray, sd: float) -> FloatArray:
    """Probabilities (K,) of classes, from counts with noise of this sd.

    Before the release: mean and variance of the Dirichlet law with parameters 2, for which no class is nearly empty.
    """
    K, n = len(counts), max(float(counts.sum()), sd, 1.0)
    shares = above_zero(*posterior(counts / n, (sd / n) ** 2, 1 / K, (K - 1) / (K**2 * (2 * K + 1))))
    return np.asarray(shares / shares.sum())


def gaussian_update(
    theta: FloatArray, covariance: FloatArray, gradient: FloatArray, moment: FloatArray, sd: float
) -> tuple[FloatArray, FloatArray]:
    """Posterior of coefficients θ* ~ N(theta, covariance) by gradient = moment (θ* - theta) + noise.

    Parameters
    ----------
    theta, gradient : ndarray of shape (p,)
    covariance, moment : ndarray of shape (p, p)
        The moment is symmetric.
    sd : float
        Of the noise on each entry of the gradient.

    Returns
    -------
    theta, covariance

    Examples
    --------
    >>> import numpy as np
    >>> theta, covariance = gaussian_update(np.zeros(1), np.eye(1), np.array([3.0]), np.eye(1), 1.0)
    >>> float(theta[0]), float(covariance[0, 0])
    (1.5, 0.5)
    """
    through = moment @ covariance
    gain = np.linalg.solve(through @ moment + sd**2 * np.eye(len(theta)), through).T
    return theta + gain @ gradient, covariance - gain @ through
