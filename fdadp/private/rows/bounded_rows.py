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
from fdadp.private.plan.design import PrivateDesign
from fdadp.private.public.columns import Range
from fdadp.private.rows.counts import CountTable, bins_of, count_table, interpolated
from fdadp.private.rows.rows import Block, RowFunctions, row_sums
from fdadp.solve.form.family import Family

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
        w = self.plan.weights
        if self.feature_norm == 1:
            return np.asarray(rowwise_matmul(np.abs(features), w)[:, 0])
        return np.sqrt(row_sums((features * w[:, 0]) ** 2))

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
