"""What a private fit of counts or of zeros and ones computes from a person's rows, which is bounded by itself.

The gradient of the log-likelihood at a row is f (y - μ(η)). Both the response and its mean lie in a public range, so
that ``r = (y - μ)/(high - low)`` is within ±b(η), ``b = max(high - μ, μ - low)/(high - low) <= 1``, and it is the
*features* that are clipped, at a norm of C/b: a weight that depends on the covariates alone moves no solution of
``E w(f) f r = 0``. To clip the product f r instead would take from those whose r is large, as those with a rare outcome
are, and shift every probability (docs/theory/dp-aff.md#families).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.privacy import rowwise_exp, rowwise_matmul
from fdadp.private.design import PrivateDesign
from fdadp.private.ranges import Range
from fdadp.private.rows import Block, Rows, row_sums
from fdadp.solve.families import Family

__all__ = ["BoundedResponse", "BoundedRows"]

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
        return np.clip(rowwise_exp(eta, FARTHEST), *self.bounds)

    def reach(self, mean: FloatArray) -> FloatArray:
        """How far a response can be from a mean, over `width`: at most 1."""
        return np.maximum(self.bounds[1] - mean, mean - self.bounds[0]) / self.width

    def information(self, mean: float) -> float:
        """Slope of a mean in the linear predictor over `width`; of a mean between the ends it is above 0."""
        return float(self.family.variance(np.array(mean))) / self.width


class BoundedRows(Rows):
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

    def about_the_middle(self, block: Block) -> FloatArray:
        """Response less the middle of its range, over its width: within ±1/2; shape (m, 1)."""
        return ((self.bounded.clean(block[-1]) - self.y_mid) / self.bounded.width)[:, None]

    def derived(self, block: Block) -> Block:
        """Features (m, D), their weighted norm (m, 1), and the response (m, 1)."""
        f = self.features_of(block, self.plan.n_features)
        w = self.plan.weights
        norm = rowwise_matmul(np.abs(f), w)[:, 0] if self.feature_norm == 1 else np.sqrt(row_sums((f * w[:, 0]) ** 2))
        return f, norm[:, None], self.bounded.clean(block[-1])[:, None]

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

    def gradient(self, block: Block) -> FloatArray:
        """Clipped features times the residual, shape (m, D): of a norm of at most `largest`."""
        return self.clipped(block) * self.residual(block)
