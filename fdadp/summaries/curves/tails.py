"""How far out curves lie: released shares of persons beyond a few sizes, and what clipping at some size then costs.

A clip that follows the typical size of curves is right for Gaussian ones and cuts a skewed sample on one side, by an
amount that no number of persons makes smaller. So the shares of persons beyond a few multiples of the typical size are
released, and from them alone follow the clip, what it may take off, and the variance of what lies beyond.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from fdadp._common.typing import FloatArray

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
    1 for exponential, less for log-normal sizes, towards 0 for powers. Below, S falls as ``1 - (1 - p) (x/e)^1.3``, as
    it does for Gaussian curves of one component and of many.
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
    below = 1 - (1 - p[:, None]) * ratio**1.3
    light = b > 1.5
    log_prior = np.log(np.where(light, LIGHT / light.sum(), (1 - LIGHT) / (~light).sum()))
    log_prior = log_prior - 0.5 * (np.log(p / 0.2) / 0.7) ** 2 - 0.5 * (np.log(d / 2) / 0.7) ** 2
    return np.where(ratio > 1, above, below), log_prior


@dataclass(frozen=True)
class Tail:
    """The law of the size of curves, as released shares and the prior's laws let expect it.

    Attributes
    ----------
    typical : float
        Geometric mean of the sizes, as released.
    largest : float
        Size that no curve exceeds, from public bounds.
    beyond : ndarray of shape (400,)
        Expected share of persons beyond ``typical * SIZES``.
    weight : ndarray of shape (L,)
        Posterior weights of the laws, which sum to one.
    surely : ndarray of shape (4,)
        Share of persons that surely are beyond each of EDGES: as released, less 2.5 sds of the noise.
    """

    typical: float
    largest: float
    beyond: FloatArray
    weight: FloatArray
    surely: FloatArray

    @classmethod
    def fit(
        cls, shares: FloatArray, sd: float, typical: float, largest: float, n: float, *, pure: bool = False
    ) -> Tail:
        """Weigh the laws by how well they agree with the release.

        Parameters
        ----------
        shares : ndarray of shape (4,)
            Released shares of persons beyond ``typical * EDGES``.
        sd : float
            Of the noise in each.
        typical, largest : float
        n : float
            Number of persons, for the sampling error of the shares.
        pure : bool
            Whether the noise is Laplace noise.
        """
        laws, log_prior = _laws()
        at = np.where(EDGES * typical < largest, laws[:, np.searchsorted(SIZES, EDGES)], 0.0)
        variance = sd**2 + at * (1 - at) / n
        off = (shares - at) ** 2 / variance
        log_weight = log_prior - (np.sqrt(2 * off) if pure else off / 2).sum(axis=1) - np.log(variance).sum(axis=1) / 2
        weight = np.exp(log_weight - log_weight.max())
        weight /= weight.sum()
        surely = np.minimum.accumulate(np.clip(np.asarray(shares) - SURE * sd, 0.0, 1.0))  # shares cannot grow
        return cls(typical, largest, weight @ laws, weight, surely)

    def excess(self, clip: float, power: int = 1) -> float:
        """Mean of ``size^p - clip^p`` over persons, 0 for those within the clip: what a clip takes off, at most.

        As expected, or :meth:`sure_excess` where that is more.
        """
        inside = np.clip(SIZES, clip / self.typical, self.largest / self.typical)
        expected = float((self.beyond[:-1] + self.beyond[1:]) / 2 @ np.diff(inside**power))
        return max(expected * self.typical**power, self.sure_excess(clip, power))

    def likely_excess(self, clip: float, level: float) -> float:
        """Size that the excess over a clip exceeds under laws of total weight 1 - `level` only."""
        inside = np.clip(SIZES, clip / self.typical, self.largest / self.typical)
        of_laws = _laws()[0][:, :-1] @ np.diff(inside) * self.typical
        order = np.argsort(of_laws)
        quantile = of_laws[order[np.searchsorted(np.cumsum(self.weight[order]), level * (1 - 1e-12))]]
        return max(float(quantile), self.sure_excess(clip))

    def sure_excess(self, clip: float, power: int = 1) -> float:
        """What it is at least by the shares that surely are beyond the edges: nobody farther out than an edge says."""
        steps = np.clip(np.append(0.0, EDGES), clip / self.typical, self.largest / self.typical)
        return float(self.surely @ np.diff(steps**power)) * self.typical**power

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
