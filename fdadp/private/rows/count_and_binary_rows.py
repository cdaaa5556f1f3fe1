"""What a private fit of counts or of zeros and ones computes from a person's rows, which is bounded by itself.

The gradient of the log-likelihood at a row is f (y - μ(η)). Both the response and its mean lie in a public range, so
that ``r = (y - μ)/(high - low)`` is within ±b(η), ``b = max(high - μ, μ - low)/(high - low) <= 1``, and it is the
*features* that are clipped, at a norm of C/b: a weight that depends on the covariates alone moves no solution of
``E w(f) f r = 0``. To clip the product f r instead would take from those whose r is large, as those with a rare outcome
are, and shift every probability (docs/theory/dp-aff.md#families).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincc, logsumexp

from fdadp._common.typing import FloatArray
from fdadp.privacy import rowwise_exp, rowwise_matmul, rowwise_norm
from fdadp.private.plan.private_design import PrivateDesign
from fdadp.private.public.column_ranges import Range
from fdadp.private.rows.row_functions import Block, RowFunctions
from fdadp.solve.form.response_families import Family

# Counts cut at a released bound: their means by Poisson's law, and what a histogram tells of where to cut.
#
# A count is cut at c, and so is its mean: ``m(η) = E min(Y, c)`` for Y ~ Poisson(e^η), so that residuals are within ±c
# and have mean 0 at the true η wherever c is. Without the cut they would be as large as the public bound, which most
# counts are far below, and so would be the noise (docs/theory/dp-aff.md#families).


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


FARTHEST = 40.0
"""Linear predictors beyond it give the means of its ends, 0 or 1 to double precision."""


@dataclass(frozen=True)
class BoundedResponse:
    """Responses of a family within a public range.

    Attributes
    ----------
    family : Family
        Binomial or Poisson.
    bounds : (float, float)
        Public range of the responses; of binomial ones (0, 1).
    """

    family: Family
    bounds: Range

    @property
    def counts(self) -> bool:
        """Whether responses are counts, or else zeros and ones."""
        return self.family.name == "poisson"

    @property
    def width(self) -> float:
        """Largest distance of a response from a mean."""
        return self.bounds[1] - self.bounds[0]

    def clean(self, y: FloatArray) -> FloatArray:
        """Responses (m,): zeros and ones, or counts at most at the ends of the range; NaN of what is neither."""
        y = np.asarray(y, dtype=np.float64).reshape(len(y))
        if self.family.name == "binomial":
            return np.where((y == 0) | (y == 1), y, np.nan)
        return np.where((y >= 0) & (y == np.floor(y)) & np.isfinite(y), np.clip(y, *self.bounds), np.nan)

    def mean(self, eta: FloatArray) -> FloatArray:
        """Means of linear predictors within the public range, bit for bit by themselves."""
        if self.family.name == "binomial":
            return 1 / (1 + rowwise_exp(-eta, FARTHEST))
        return np.clip(interpolated(self._table, self._table.mean, eta), *self.bounds)

    def reach(self, mean: FloatArray) -> FloatArray:
        """How far a response can be from a mean, over `width`: at most 1."""
        return np.maximum(self.bounds[1] - mean, mean - self.bounds[0]) / self.width

    def slope(self, eta: FloatArray) -> FloatArray:
        """Derivative of the mean in the linear predictor."""
        if self.family.name == "binomial":
            return self.family.variance(self.mean(eta))
        return interpolated(self._table, np.gradient(self._table.mean, self._table.step), eta)

    def variance(self, eta: FloatArray) -> FloatArray:
        """Of responses about their means."""
        if self.family.name == "binomial":
            return self.family.variance(self.mean(eta))
        return interpolated(self._table, self._table.variance, eta)

    @property
    def _table(self) -> CountTable:
        return count_table(*self.bounds)


class BoundedRows(RowFunctions):
    """Row functions; a block is the columns and the response, later what :meth:`derived` makes of it.

    Parameters
    ----------
    design : PrivateDesign
    response : BoundedResponse
    """

    def __init__(self, design: PrivateDesign, response: BoundedResponse) -> None:
        super().__init__(design, response.bounds)
        self.bounded = response
        self.location = 0.0
        """Linear predictor of a row whose features are 0, the constant among them; then what was released."""
        self.feature_norm = 2
        self.largest = np.inf
        """Norm (the first or the second) at which the product of weighted features and residual is bounded."""

    def count_bins(self, block: Block) -> FloatArray:
        """In which public bin a count is: one in one of them, NaN of what is no count; shape (m, bins)."""
        y = self.bounded.clean(block[-1])[:, None]
        edges = bins_of(*self.bounded.bounds)
        inside = (y >= edges) & (y < np.append(edges[1:], np.inf))
        return np.where(np.isnan(y), np.nan, inside)

    def about_the_middle(self, block: Block) -> FloatArray:
        """Response less the middle of its range, over its width: within ±1/2; shape (m, 1)."""
        return ((self.bounded.clean(block[-1]) - self.y_mid) / self.bounded.width)[:, None]

    def derived(self, block: Block) -> Block:
        """Features (m, D), their weighted norm (m, 1), and the response (m, 1)."""
        f = self.features_of(block, self.plan.n_features)
        return f, self.norms(f)[:, None], self.bounded.clean(block[-1])[:, None]

    def norms(self, features: FloatArray) -> FloatArray:
        """Norms (m,) of weighted features (m, D)."""
        return rowwise_norm(features * self.plan.weights[:, 0], self.feature_norm)

    def _mean(self, block: Block) -> FloatArray:
        return self.bounded.mean(self.location + rowwise_matmul(block[0], self.coefficients))

    def residual(self, block: Block) -> FloatArray:
        """``(y - μ)/width`` at the present coefficients, within ±1; NaN of rows that do not count; shape (m, 1)."""
        return np.asarray((block[2] - self._mean(block)) / self.bounded.width)

    def clipped(self, block: Block) -> FloatArray:
        """Weighted features of a norm of at most `largest` over the residual's reach, shape (m, D)."""
        f, norm, _ = block
        limit = self.largest / self.bounded.reach(self._mean(block))
        return np.asarray(f * self.plan.weights[:, 0] * (limit / np.maximum(norm, limit)))

    def factors(self, block: Block) -> tuple[FloatArray, FloatArray]:
        """Clipped features (m, D) and the residual (m, 1)."""
        return self.clipped(block), self.residual(block)

    def gradient(self, block: Block) -> FloatArray:
        """Clipped features times the residual, shape (m, D): of a norm of at most `largest`."""
        return self.clipped(block) * self.residual(block)
