"""Shrinkage by known noise: what a noisy release says once the public prior has had its say. Costs no privacy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray

TINY = 1e-300
"""Keeps 0/0 from arising."""
LOG_SPREADS, LEVELS = np.linspace(-4.0, 1.5, 111), np.linspace(-3.0, 3.0, 241)
"""Where spreads and levels are looked for, over the root mean square; the first in logarithms."""
LEVEL_SCALE, LEVEL_DOF = 0.3, 2.0
"""Prior of a level over the spread: Student's t."""


def shrunk(value: Any, sd: Any, towards: Any, prior_sd: Any) -> Any:
    """Posterior mean of a number that was measured with noise of this sd; prior: Gaussian about `towards`."""
    return towards + (value - towards) * (prior_sd**2 / (prior_sd**2 + sd**2))


def shrunk_shift(shift: float, sd: float, size: float, reach: float) -> float:
    """Posterior mean of a shift with a prior of sd `size` about 0, within `reach` sizes of it."""
    return float(np.clip(shift * size**2 / (size**2 + sd**2), -reach * size, reach * size))


def shrunk_scale(value: float, error: float, guess: float, prior_variance: float) -> float:
    """Posterior of a scale with a log-normal prior about a guess; `error` is the sd of the noise in its logarithm."""
    return float(guess * (value / guess) ** (prior_variance / (prior_variance + error**2)))


def level_and_spread(
    rms: float, error: float, level: float, sd: float, guess: float, prior_variance: float
) -> tuple[float, float]:
    """Posterior mean of a level, and of the spread about it on a log scale, from releases with Laplace noise.

    The root mean square is that of level and spread together, so that a level which noise put far out is seen to be
    impossible, instead of leaving no spread at all. Sums over a grid; the prior of the spread is log-normal, that of
    the level over the spread Student's t, for a public range is about its middle or else anywhere.

    Parameters
    ----------
    rms, level : float
        As released.
    error, sd : float
        Of the noise in the logarithm of the one, and in the other.
    guess, prior_variance : float
        Of the spread: where it is guessed to be, and the variance of its logarithm about that.
    """
    spread = rms * np.exp(LOG_SPREADS)[:, None]
    at = rms * LEVELS
    log_density = -math.sqrt(2) * np.abs(np.log(np.hypot(at, spread) / rms)) / error
    log_density = log_density - math.sqrt(2) * np.abs(at - level) / sd
    log_density = log_density - np.log(spread / guess) ** 2 / (2 * prior_variance)
    t = at / (LEVEL_SCALE * spread)
    log_density = log_density - (LEVEL_DOF + 1) / 2 * np.log1p(t * t / LEVEL_DOF) - np.log(spread)
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    return float((density * at).sum()), float(rms * np.exp((density * LOG_SPREADS[:, None]).sum()))


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
