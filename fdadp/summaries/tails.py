"""How far out curves lie: released shares of persons beyond a few sizes, and what clipping at some size then costs.

A clip that follows the typical size of curves is right for Gaussian ones and cuts a skewed sample on one side, by an
amount that no number of persons makes smaller. So the shares of persons beyond a few multiples of the typical size are
released, and from them alone follow the clip, what it may take off, and the variance of what lies beyond.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from fdadp._typing import FloatArray

__all__ = ["EDGES", "Tail"]

EDGES = 1.6 ** np.arange(1.0, 5.0)
"""Multiples of the typical size beyond which persons are counted: 1.6, 2.6, 4.1, 6.6."""
SIZES = np.geomspace(0.05, 2000.0, 400)
"""Where the laws are tabulated, in units of the typical size."""
SURE = 2.5
LIGHT = 0.7
"""Prior probability of a tail as light as that of Gaussian curves."""


@functools.cache
def _laws() -> tuple[FloatArray, FloatArray]:
    """Shares beyond SIZES, (L, 400), of laws with a Weibull tail from the first edge on; and their log prior (L,).

    ``S(x) = p exp(-d ((x / e)^b - 1) / b)`` beyond e = 1.6: share p beyond it, decline d there, and b = 2 for Gaussian,
    1 for exponential, less for log-normal sizes, towards 0 for powers. Below, S falls from 1 as ``1 - (1 - p) (x/e)²``.
    """
    p, d, b = (
        a.ravel()
        for a in np.meshgrid(
            np.geomspace(0.02, 0.6, 18), np.geomspace(0.5, 12.0, 16), np.linspace(0.1, 2.5, 13), indexing="ij"
        )
    )
    ratio = SIZES / EDGES[0]
    with np.errstate(over="ignore"):
        above = p[:, None] * np.exp(-d[:, None] * (ratio ** b[:, None] - 1) / b[:, None])
    below = 1 - (1 - p[:, None]) * ratio**2
    light = b > 1.5
    log_prior = np.log(np.where(light, LIGHT / light.sum(), (1 - LIGHT) / (~light).sum()))
    log_prior = log_prior - 0.5 * (np.log(p / 0.2) / 0.7) ** 2 - 0.5 * (np.log(d / 2) / 0.7) ** 2
    return np.where(ratio > 1, above, below), log_prior


@dataclass(frozen=True)
class Tail:
    """Laws of the size of curves, weighted by how well they agree with released shares.

    Attributes
    ----------
    typical : float
        Geometric mean of the sizes, as released.
    largest : float
        Size that no curve exceeds, from public bounds.
    weight : ndarray of shape (L,)
        Posterior weights of the laws, which sum to one.
    shares : ndarray of shape (4,)
        Of persons that are surely beyond each of EDGES: as released, less 2.5 sds of the noise.
    """

    typical: float
    largest: float
    weight: FloatArray
    shares: FloatArray

    @classmethod
    def fit(cls, shares: FloatArray, sd: float, typical: float, largest: float, n: float) -> Tail:
        """Weigh the laws.

        Parameters
        ----------
        shares : ndarray of shape (4,)
            Released shares of persons beyond ``typical * EDGES``.
        sd : float
            Of the noise in each.
        n : float
            Number of persons, for the sampling error of the shares.
        """
        beyond, log_prior = _laws()
        at = np.where(EDGES * typical < largest, beyond[:, np.searchsorted(SIZES, EDGES)], 0.0)
        variance = sd**2 + at * (1 - at) / n
        log_weight = log_prior - 0.5 * ((shares - at) ** 2 / variance + np.log(variance)).sum(axis=1)
        weight = np.exp(log_weight - log_weight.max())
        return cls(typical, largest, weight / weight.sum(), np.clip(np.asarray(shares) - SURE * sd, 0.0, 1.0))

    def excess(self, clip: float, power: int = 1) -> float:
        """Mean of ``size^p - clip^p`` over persons, 0 for those within the clip: what a clip takes off, at most.

        The expectation over the laws, or what the shares surely are beyond the clip where that is more.
        """
        c, most = clip / self.typical, self.largest / self.typical
        inside = np.clip(SIZES, c, most)
        mean = self.weight @ _laws()[0]
        total = float((mean[:-1] + mean[1:]) / 2 @ np.diff(inside**power))
        steps = np.diff(np.maximum(np.minimum(np.append(EDGES, EDGES[-1] * 1.6), most), c) ** power)
        return max(total, float(self.shares @ steps)) * self.typical**power

    @property
    def mean_square(self) -> float:
        """Mean of the squared sizes."""
        return self.excess(float(SIZES[0]) * self.typical, 2)

    @property
    def candidates(self) -> FloatArray:
        """Clips to choose from, (60,), from a little above the typical size to the largest."""
        return np.asarray(np.geomspace(1.2 * self.typical, max(self.largest, 1.3 * self.typical), 60))

    def clip(self, cost: FloatArray, power: int = 1) -> float:
        """Candidate of the least cost (60,) and excess together."""
        candidates = self.candidates
        return float(candidates[np.argmin(cost + [self.excess(float(c), power) for c in candidates])])
