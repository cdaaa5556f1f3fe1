"""Moments of a column of numbers from one private sum: mean, variance, standard deviation, how many are missing.

A number is u in [-1, 1] on its public range; a person adds a flag and u, u² - ½, u³/2, (u⁴ - ½)/2, averaged over its
rows. Sensitivity and intervals: ``docs/theory/summaries.md#moments``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.summaries.questions.laws import NoisyEstimate, fieller, half_width, within
from fdadp.summaries.questions.questions import Question

WEIGHTS = np.array([1.0, 1.0, 1.0, 0.5, 0.5])
"""Of flag, u, u² - ½, u³, u⁴ - ½; third and fourth moments serve the intervals of variances alone."""
LARGEST = WEIGHTS * np.array([1.0, 1.0, 0.5, 1.0, 0.5])
"""What a person can add to each, all of it at once where u = ±1."""
LEAST = 1.0
"""A released number of persons is never taken below this."""


class AskMoments(Question["NumberMoments"]):
    """Moments of numbers on a public range.

    Parameters
    ----------
    bounds : (float, float)
    n : float or None
        Declared number of persons, of whom the missing ones are then counted; else those who are there are.
    pure : bool
        Whether what a person adds is bounded in L1.
    """

    size, nonnegative = 5, False

    def __init__(self, bounds: tuple[float, float], n: float | None, *, pure: bool) -> None:
        self.bounds, self.n, self.pure = bounds, n, pure
        kinds = [LARGEST] if n is None else [LARGEST[:1], LARGEST[1:]]  # who is missing adds the flag alone
        self.clip = max(float(kind.sum() if pure else math.sqrt((kind**2).sum())) for kind in kinds)

    def rows(self, values: FloatArray) -> FloatArray:
        """Flag and powers, (m, 5)."""
        low, high = self.bounds
        there = np.isfinite(values)
        u = np.where(there, (np.clip(values, low, high) - (low + high) / 2) / ((high - low) / 2), 0.0)
        u = np.clip(u, -1.0, 1.0)
        parts = (u, u * u - 0.5, u * u * u, u * u * u * u - 0.5)
        flag = there if self.n is None else ~there
        return np.asarray(np.stack([flag, *(np.where(there, part, 0.0) for part in parts)], axis=1) * WEIGHTS)

    def answer(self, noisy: FloatArray, sd: float, copies: int) -> NumberMoments:
        """Moments with their noise."""
        return NumberMoments(noisy / WEIGHTS, sd / WEIGHTS, copies, self.n, self.bounds, self.pure)


@dataclass(frozen=True)
class NumberMoments:
    """Released moments of numbers, and what follows from them.

    Attributes
    ----------
    sums : ndarray of shape (5,)
        Sums of flag, u, u² - ½, u³, u⁴ - ½ with their noise.
    sds : ndarray of shape (5,)
        Of one draw of the noise.
    copies : int
        Draws of noise in each sum: several where releases were added up.
    n : float or None
        Declared number of persons, where the flag counts the missing ones.
    bounds : (float, float)
    pure : bool
    """

    sums: FloatArray
    sds: FloatArray
    copies: int
    n: float | None
    bounds: tuple[float, float]
    pure: bool

    @property
    def middle(self) -> float:
        """Of the public range."""
        return (self.bounds[0] + self.bounds[1]) / 2

    @property
    def half(self) -> float:
        """Half of the width of the public range."""
        return (self.bounds[1] - self.bounds[0]) / 2

    @property
    def noise(self) -> FloatArray:
        """Sds of the noise in all (5,)."""
        return np.asarray(self.sds * math.sqrt(self.copies))

    @property
    def there(self) -> float:
        """Persons with a value, with noise."""
        return max(float(self.sums[0]) if self.n is None else self.n - float(self.sums[0]), LEAST)

    def count(self, level: float) -> NoisyEstimate:
        """How many persons have a value; the noise alone is in the interval."""
        half = half_width(level, 0.0, [float(self.sds[0])], pure=self.pure, copies=self.copies)
        value, most = (self.sums[0], math.inf) if self.n is None else (self.n - self.sums[0], self.n)
        return NoisyEstimate.about(float(value), half, (0.0, most), float(self.noise[0]))

    def mean(self, level: float, *, sampling: bool = True) -> NoisyEstimate:
        """Mean of the numbers within the bounds."""
        n, noise = self.there, self.noise
        at = min(max(float(self.sums[1]) / n, -1.0), 1.0)
        drawn = n * self._spread() if sampling else 0.0
        variance = (drawn + noise[1] ** 2, 0.0, noise[0] ** 2)
        parts = [self.sds[1], abs(at) * self.sds[0]]
        sd = math.sqrt(variance[0] + at * at * variance[2])
        z = half_width(level, math.sqrt(drawn), parts, pure=self.pure, copies=self.copies) / sd
        low, high = fieller(float(self.sums[1]), n, z, variance, (-1.0, 1.0))
        noise_sd = min(math.hypot(noise[1], at * noise[0]) / n, 1.0)
        return NoisyEstimate(at, min(low, at), max(high, at), noise_sd).scaled(self.half, self.middle)

    def variance(self, level: float, *, sampling: bool = True) -> NoisyEstimate:
        """Variance of the numbers within the bounds."""
        n, noise = self.there, self.noise
        mean, square, sd, parts = self._raw()
        raw = square - mean * mean + (noise[1] / n) ** 2  # less what the noise of the mean takes off
        drawn = math.sqrt(max(self._fourth() - self._spread() ** 2, 0.0) / n) if sampling else 0.0
        half = half_width(level, drawn, parts, pure=self.pure, copies=self.copies)
        return NoisyEstimate.about(raw, half, (0.0, 1.0), min(sd, 1.0)).scaled(self.half**2)

    def sd(self, level: float, *, sampling: bool = True) -> NoisyEstimate:
        """Standard deviation of the numbers within the bounds."""
        value, low, high, noise = self.variance(level, sampling=sampling)
        root = math.sqrt(value)
        return NoisyEstimate(
            root, math.sqrt(low), math.sqrt(high), min(noise / (2 * root), self.half) if root else self.half
        )

    def _raw(self) -> tuple[float, float, float, list[float]]:
        """Mean and mean square of u, and the sd of the noise in their variance; of one draw of each part of it."""
        n = self.there
        mean = min(max(float(self.sums[1]) / n, -1.0), 1.0)
        square = float(self.sums[2]) / n + 0.5
        slopes = (abs(square - 0.5 - 2 * mean**2), 2 * abs(mean), 1.0)  # flag, u, u²
        parts = [slope * float(sd) / n for slope, sd in zip(slopes, self.sds, strict=False)]
        return mean, square, math.sqrt(self.copies) * math.hypot(*parts), parts

    def _spread(self) -> float:
        """Variance of u, in [0, 1]: its posterior mean."""
        mean, square, sd, _ = self._raw()
        raw = square - mean * mean + (self.noise[1] / self.there) ** 2
        return within(raw, sd, 0.0, 1 - mean * mean)

    def _fourth(self) -> float:
        """Fourth central moment of u: its posterior mean between the least and the most it can be."""
        n, noise = self.there, self.noise
        mean, square, _, _ = self._raw()
        third, fourth = float(self.sums[3]) / n, float(self.sums[4]) / n + 0.5
        raw = fourth - 4 * mean * third + 6 * mean**2 * square - 3 * mean**4
        sd = math.hypot(noise[4], 4 * mean * noise[3], 6 * mean**2 * noise[2]) / n
        spread = self._spread()
        return within(raw, sd, spread**2, spread * (1 + abs(mean)) ** 2)
