"""Intervals for ratios with known noise: the law of a normal part plus Laplace noise, and Fieller's set.

What is released has noise of a known law on numerator and denominator. An interval for their ratio is the set of values
that a test does not reject (Fieller 1954), which needs no expansion and holds where the denominator is mostly noise: it
is then the whole public range.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

STEP, TURNS = 0.02, 3_000
"""Of the integral over the characteristic function of a law of sd 1."""
FARTHEST = 40.0
"""Quantiles are looked for below so many sds."""
TINY = 1e-300


class NoisyEstimate(NamedTuple):
    """What was released of one quantity.

    Attributes
    ----------
    value : float
    low, high : float
        Ends of the interval.
    noise_sd : float
        Of the privacy noise in the value, about.
    """

    value: float
    low: float
    high: float
    noise_sd: float

    @classmethod
    def about(cls, value: float, half: float, limits: tuple[float, float], noise_sd: float) -> NoisyEstimate:
        """A value with as much to both sides, all of it within public limits."""
        low, high = limits
        ends = [float(min(max(v, low), high)) for v in (value, value - half, value + half)]
        return cls(ends[0], ends[1], ends[2], float(noise_sd))

    def scaled(self, factor: float, shift: float = 0.0) -> NoisyEstimate:
        """In other units."""
        low, high = self.low * factor + shift, self.high * factor + shift
        return NoisyEstimate(self.value * factor + shift, low, high, self.noise_sd * abs(factor))


def half_width(level: float, normal: float, noise: Sequence[float], *, pure: bool, copies: int = 1) -> float:
    """What the absolute value of normal error plus noise exceeds with probability 1 - level.

    Parameters
    ----------
    level : float
    normal : float
        Sd of the normal part.
    noise : sequence of float
        Sds of independent parts of the noise; each is a sum of `copies` draws of this sd.
    pure : bool
        Laplace noise; else Gaussian.
    copies : int

    Notes
    -----
    P(|X| <= q) = (2/π) ∫ sin(q t)/t φ(t) dt with the characteristic function φ: e^{-s²t²/2} of the normal part,
    (1 + b²t²)^{-1} of Laplace noise of scale b.

    Examples
    --------
    >>> round(half_width(0.95, 1.0, [], pure=True), 3), round(half_width(0.95, 0.0, [2**0.5], pure=True), 3)
    (1.96, 2.996)
    """
    from scipy.optimize import brentq
    from scipy.special import ndtri

    parts = np.asarray(noise, dtype=np.float64)
    total = math.sqrt(normal**2 + copies * float((parts**2).sum()))
    if total == 0:
        return 0.0
    if not pure or not parts.any():
        return float(total * ndtri((1 + level) / 2))
    t = STEP * np.arange(1, TURNS + 1)
    law = np.exp(-0.5 * (normal / total * t) ** 2)
    for part in parts:
        law = law / (1 + 0.5 * (part / total * t) ** 2) ** copies

    def beyond(q: float) -> float:
        inner = STEP * (0.5 * q + float((np.sin(q * t) / t * law).sum()))
        return 2 / math.pi * inner - level

    low, high = TINY, FARTHEST
    return float(total * brentq(beyond, low, high)) if beyond(high) > 0 else total * high


def fieller(
    t: float, n: float, z: float, variance: tuple[float, float, float], limits: tuple[float, float]
) -> tuple[float, float]:
    """The values r within `limits` that (t - r n)² <= z² (v0 + v1 r + v2 r²) does not reject.

    Parameters
    ----------
    t, n : float
        Released numerator and denominator of the ratio.
    z : float
        Quantile over sd.
    variance : (float, float, float)
        v0, v1, v2.
    limits : (float, float)
        What the ratio can be in public; they are the interval where the denominator is mostly noise.

    References
    ----------
    Fieller (1954), Some problems in interval estimation, JRSS B 16, 175-185.
    """
    a = n * n - z * z * variance[2]
    b = -2 * t * n - z * z * variance[1]
    c = t * t - z * z * variance[0]
    root = b * b - 4 * a * c
    if n <= 0 or a <= 0:
        return limits
    middle, half = -b / (2 * a), math.sqrt(max(root, 0.0)) / (2 * a)
    low, high = limits
    return min(max(middle - half, low), high), max(min(middle + half, high), low)


def within(value: float, sd: float, low: float, high: float) -> float:
    """Mean of a normal law about a released value with its noise's sd, given that it lies in [low, high]."""
    from scipy.special import log_ndtr, logsumexp

    if high <= low:
        return low
    if sd <= 0:
        return min(max(value, low), high)
    a, b = (low - value) / sd, (high - value) / sd
    if a > 0:  # from the other side, where tails can be told apart
        return -within(-value, sd, -high, -low)
    mass = float(logsumexp([log_ndtr(b), log_ndtr(a)], b=[1, -1]))
    density = [math.exp(min(-0.5 * x * x - 0.5 * math.log(2 * math.pi) - mass, 700.0)) for x in (a, b)]
    return min(max(value + sd * (density[0] - density[1]), low), high)
