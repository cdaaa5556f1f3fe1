"""Counts cut at a released bound: their means by Poisson's law, and what a histogram tells of where to cut.

A count is cut at c, and so is its mean: ``m(η) = E min(Y, c)`` for Y ~ Poisson(e^η), so that residuals are within ±c
and have mean 0 at the true η wherever c is. Without the cut they would be as large as the public bound, which most
counts are far below, and so would be the noise (docs/theory/dp-aff.md#families).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincc, logsumexp

from fdadp._common.typing import FloatArray

STEPS, LOWEST = 4096, -14.0
"""Of the table; linear predictors below the lowest count as it."""
FAR, MORE = 10.0, 60.0
"""The table ends where nobody is below the cut: at ``c + FAR √c + MORE`` expected counts."""
LOG_MEAN, LOG_MEAN_SD = 0.5, 2.0
"""Prior mean and sd of the logarithm of the expected count of a person as most."""
SPREADS, SPREAD, SPREAD_SD = np.linspace(0.1, 1.6, 16), 0.6, 0.5
"""Sds of the linear predictor between persons; prior mean of that sd, and the sd of its logarithm."""
NODES = 21
"""Of the quadrature over persons."""
PLACES, RAREST, SINGLE = 121, 0.01, 3
"""Logarithms of means that are looked at, and the least mean; bins of one count each."""
TINY = 1e-12
KEPT = 16
"""Tables that are kept."""


class CountTable(NamedTuple):
    """Mean and variance of cut counts on an even grid of linear predictors.

    Attributes
    ----------
    low, step : float
        Grid.
    mean, variance : ndarray of shape (STEPS,)
    """

    low: float
    step: float
    mean: FloatArray
    variance: FloatArray


class Level(NamedTuple):
    """What a histogram tells of expected counts.

    Attributes
    ----------
    location : float
        Mean of the linear predictor.
    energy : float
        Its variance.
    """

    location: float
    energy: float


def _below(k: float, mu: FloatArray) -> FloatArray:
    """P(Y < k)."""
    return np.asarray(gammaincc(k, mu)) if k > 0 else np.zeros_like(mu)


@lru_cache(maxsize=KEPT)
def count_table(low: float, high: float) -> CountTable:
    """Means and variances of Poisson counts that count as `low` where they are less and `high` where they are more."""
    eta = np.linspace(LOWEST, np.log(high + FAR * np.sqrt(high) + MORE), STEPS)
    mu = np.exp(eta)

    def moments(cut: float) -> tuple[FloatArray, FloatArray]:
        """Of ``min(Y, cut)``: by ``y p(y) = μ p(y - 1)``."""
        beyond = 1 - _below(cut, mu)
        first = mu * _below(cut - 1, mu)
        return first + cut * beyond, mu**2 * _below(cut - 2, mu) + first + cut**2 * beyond

    (one, two), (one_low, two_low) = moments(high), moments(low)
    mean = low + one - one_low  # max(min(Y, high), low) = low + min(Y, high) - min(Y, low), and squares alike
    square = low**2 + two - two_low
    mean = np.clip(mean, low, high)
    return CountTable(float(eta[0]), float(eta[1] - eta[0]), mean, np.maximum(square - mean**2, TINY))


def interpolated(table: CountTable, values: FloatArray, eta: FloatArray) -> FloatArray:
    """Values of the table at linear predictors, each by itself bit for bit; NaN of NaN."""
    lost = np.isnan(eta)
    place = np.clip((np.where(lost, table.low, eta) - table.low) / table.step, 0.0, values.size - 1.0)
    left = np.minimum(place.astype(np.int64), values.size - 2)
    out = values[left] + (place - left) * (values[left + 1] - values[left])
    return np.where(lost, np.nan, out)


def bins_of(low: float, high: float) -> FloatArray:
    """Left edges of public bins of counts: low, low + 1, low + 2, then twice as wide each; within the range."""
    edges = [low]
    width = 1.0
    while edges[-1] + width <= high:
        edges.append(edges[-1] + width)
        if len(edges) > SINGLE:
            width *= 2
    return np.array(edges)


def level_of(masses: FloatArray, sd: float, n: float, edges: FloatArray) -> Level:
    """Posterior means of level and variance of the linear predictor, from noisy numbers of persons in bins.

    Counts are Poisson given the linear predictor, which is normal between persons.
    """
    nodes, mass = np.polynomial.hermite_e.hermegauss(NODES)
    mass = mass / mass.sum()
    places = np.linspace(np.log(RAREST), np.log(max(edges[-1], 1.0) + 2) + 1, PLACES)
    mu = np.exp(places[:, None, None] + SPREADS[:, None] * nodes)
    below = [_below(edge, mu) @ mass for edge in edges[1:]]
    cumulated = np.stack([np.zeros_like(below[0]), *below, np.ones_like(below[0])])
    expected = np.diff(cumulated, axis=0).transpose(1, 2, 0)
    variance = sd**2 + n * expected * (1 - expected) + TINY
    log = -0.5 * ((masses - n * expected) ** 2 / variance + np.log(variance)).sum(axis=2)
    log = log - 0.5 * ((places[:, None] - LOG_MEAN) / LOG_MEAN_SD) ** 2
    log = log - 0.5 * (np.log(SPREADS / SPREAD) / SPREAD_SD) ** 2
    weight = np.exp(log - logsumexp(log))
    return Level(float(weight.sum(axis=1) @ places), float(weight.sum(axis=0) @ SPREADS**2))
