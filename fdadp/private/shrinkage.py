"""Shrinkage by known noise: what a noisy release says once the public prior has had its say. Costs no privacy."""

from __future__ import annotations

from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray

__all__ = ["gain", "shrunk", "shrunk_coefficients", "shrunk_scale", "shrunk_shift"]

TINY = 1e-300
"""Keeps 0/0 from arising."""


def shrunk(value: Any, sd: Any, towards: Any, prior_sd: Any) -> Any:
    """Posterior mean of a number that was measured with noise of this sd; prior: Gaussian about `towards`."""
    return towards + (value - towards) * (prior_sd**2 / (prior_sd**2 + sd**2))


def shrunk_shift(shift: float, sd: float, size: float, reach: float) -> float:
    """Posterior mean of a shift with a prior of sd `size` about 0, within `reach` sizes of it."""
    return float(np.clip(shift * size**2 / (size**2 + sd**2), -reach * size, reach * size))


def shrunk_scale(value: float, error: float, guess: float, prior_variance: float) -> float:
    """Posterior of a scale with a log-normal prior about a guess; `error` is the sd of the noise in its logarithm."""
    return float(guess * (value / guess) ** (prior_variance / (prior_variance + error**2)))


def shrunk_coefficients(noisy: FloatArray, sd: float, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Coefficients, and their variances, whose prior variances are in proportion to public shares.

    The size of the prior is what the squares of the coefficients are above their noise.

    Parameters
    ----------
    noisy, shares : ndarray of shape (m,)
    sd : float
        Of the noise in each.
    """
    variance = sd**2
    of_noise = gain(shares * max(float(noisy @ noisy) - noisy.size * variance, 0.0), variance)
    return noisy * of_noise, variance * of_noise


def gain(signal: Any, noise: float) -> Any:
    """Factor by which a measurement counts: variance of the signal over that of signal and noise."""
    return signal / (signal + noise + TINY)
