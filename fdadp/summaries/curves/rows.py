"""What the private summaries compute from a curve: row-local functions of that curve and of released values."""

from __future__ import annotations

import math

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.gaps import fill_linear
from fdadp.privacy import rowwise_matmul, rowwise_norm

LEVELS = 16
"""Bins of the public range in which the level of curves is located."""
L1_OVER_L2 = 1.8
"""Of the coefficients of a curve, about: in pure form sizes are L1 norms over this."""
Block = tuple[FloatArray, ...]


class CurveRowFunctions:
    """Row functions; a block is (Y,), later what :meth:`coefficients` makes of it.

    Values beyond the range are clipped, and gaps are filled by straight lines within the curve. A curve without an
    observed point is NaN: it adds nothing to any release.
    """

    def __init__(
        self, functions: FloatArray, weights: FloatArray, bounds: tuple[float, float], grid: FloatArray
    ) -> None:
        self.weights, self.grid = weights, grid
        self.constant = functions.T @ weights
        self.weighted = np.ascontiguousarray(functions * weights[:, None])
        self.middle, self.half = sum(bounds) / 2, (bounds[1] - bounds[0]) / 2
        # Released values, filled in as they come.
        self.centre = np.zeros(functions.shape[1])
        self.reach, self.pure, self.leading = math.inf, False, functions.shape[1]
        self.edges: FloatArray = np.zeros(0)

    def coefficients(self, block: Block) -> Block:
        """Coefficients about the middle of the range (m, K); mean square outside the functions, share of t beyond the
        range, (m, 1) each."""
        filled = fill_linear(np.where(np.isfinite(block[0]), block[0], np.nan), self.grid)
        beyond = np.where(np.isnan(filled), np.nan, np.abs(filled - self.middle) > self.half)
        y = np.clip(filled, self.middle - self.half, self.middle + self.half) - self.middle
        c = rowwise_matmul(y, self.weighted)
        rest = rowwise_matmul(y * y, self.weights[:, None])[:, 0] - rowwise_norm(c) ** 2
        return c, np.maximum(rest, 0.0)[:, None], rowwise_matmul(beyond, self.weights[:, None])

    def observed(self, block: Block) -> FloatArray:
        """1 for each observed curve, shape (m, 1); NaN for the others."""
        return np.asarray(np.where(np.isnan(block[1]), np.nan, 1.0))

    def away(self, block: Block) -> FloatArray:
        """Coefficients about the released centre."""
        return block[0] - self.centre

    def level_bins(self, block: Block) -> FloatArray:
        """Which sixteenth of the range the mean over t is in, shape (m, 16)."""
        level = rowwise_matmul(block[0], self.constant[:, None])[:, 0] / self.half
        bin_of = np.clip(np.floor((level + 1) / 2 * LEVELS), 0, LEVELS - 1)[:, None]
        return np.where(np.isnan(bin_of), np.nan, bin_of == np.arange(LEVELS))

    def distance(self, block: Block) -> FloatArray:
        """Their norm, shape (m,)."""
        return rowwise_norm(self.away(block))

    def beyond(self, block: Block) -> FloatArray:
        """Whether the curve is larger than each of :attr:`edges`, shape (m, 4); in pure form by L1 norms."""
        r = self.away(block)
        size = rowwise_matmul(np.abs(r), np.ones((r.shape[1], 1)))[:, 0] / L1_OVER_L2 if self.pure else rowwise_norm(r)
        return np.where(np.isnan(size[:, None]), np.nan, size[:, None] > self.edges)

    def within_reach(self, block: Block) -> FloatArray:
        """Leading coefficients about the released centre, shrunk to a norm of at most :attr:`reach`; shape (m, d)."""
        r = np.ascontiguousarray(self.away(block)[:, : self.leading])
        return np.asarray(r * np.minimum(1.0, self.reach / np.maximum(rowwise_norm(r), 1e-300))[:, None])

    def rest(self, block: Block) -> FloatArray:
        """Mean square outside the functions, shape (m, 1)."""
        return np.asarray(block[1])

    def outside(self, block: Block) -> FloatArray:
        """Share of t at which the curve is beyond the public range, shape (m, 1)."""
        return np.asarray(block[2])
