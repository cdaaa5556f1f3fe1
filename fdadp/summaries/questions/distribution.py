"""Quantiles of a column of numbers, from private cumulative counts in public cells.

Proof, and what the intervals hold: ``docs/theory/summaries.md#cumulative``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from sklearn.isotonic import isotonic_regression

from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.summaries.questions.laws import NoisyEstimate
from fdadp.summaries.questions.questions import Question
from fdadp.summaries.questions.strategies import strategy

CELLS, PURE_CELLS = 1024, 512
"""Of the public range, by default."""
MOST_CELLS = 2048
WHOLE = 1e-9
"""How far from a whole number the number of steps in a range may be."""
LEAST = 1.0
ATOM, MANY, SURE = 0.1, 5.0, 3.0
"""Share of all in a cell at an end of the range, and multiple of its neighbours', from which all of it is taken to be
at that end; and sds of noise beyond that."""
NEAR = 16
"""Cells beside it whose mean is compared with it: it has less noise than one of them."""


def cell_edges(bounds: tuple[float, float], step: float | None, *, pure: bool) -> FloatArray:
    """Edges of the public cells: of equal width, or one about each multiple of `step` from the lower bound on.

    Raises
    ------
    InputError
        `step` is no number above 0 that divides the range into 1 to 2047 steps.
    """
    low, high = bounds
    if step is None:
        return np.linspace(low, high, (PURE_CELLS if pure else CELLS) + 1)
    steps = (high - low) / step if isinstance(step, (int, float, np.number)) and step > 0 else math.nan
    if not (1 <= steps < MOST_CELLS and abs(steps - round(steps)) < WHOLE * max(steps, 1.0)):
        raise InputError(
            f"step must divide the bounds ({low:g}, {high:g}) into 1 to {MOST_CELLS - 1} whole steps, got {step!r}"
        )
    return np.asarray(low + (high - low) / round(steps) * (np.arange(round(steps) + 2) - 0.5))


class AskDistribution(Question["Distribution"]):
    """Cumulative counts of numbers in cells.

    Where n is declared the first cell of all is of the missing ones; else a missing number adds nothing.

    Parameters
    ----------
    edges : ndarray of shape (K + 1,)
        Numbers beyond are in the first and last cell.
    n : float or None
        Declared number of persons.
    pure : bool
    values : ndarray of shape (K,), optional
        The one value of each cell, where numbers have no others.
    """

    nonnegative = True

    def __init__(self, edges: FloatArray, n: float | None, *, pure: bool, values: FloatArray | None = None) -> None:
        self.edges, self.n, self.pure, self.values = edges, n, pure, values
        self.strategy = strategy(len(edges), pure=pure)
        self.size, self.clip = self.strategy.columns.shape[1], self.strategy.clip
        self.cumulate = self.strategy.cumulate(total=n is not None)
        matrix = self.cumulate[0]
        self._products = (matrix**2).sum(axis=1), matrix @ matrix[0], matrix @ matrix[-1]
        self.typical = float(np.sqrt(self._products[0]).mean())
        """Mean sd of the noise in a cumulative count, over that of the noise drawn."""

    def noise_of_excess(self, q: float) -> FloatArray:
        """Sd, over that of the noise drawn, of cumulative counts less (1 - q) times the first and q times the last."""
        own, first, last = self._products
        ends = (1 - q) ** 2 * first[0] + 2 * q * (1 - q) * first[-1] + q**2 * last[-1]
        return np.asarray(np.sqrt(np.maximum(own - 2 * (1 - q) * first - 2 * q * last + ends, 0.0)))

    def rows(self, values: FloatArray) -> FloatArray:
        """The column of the strategy for the cell of each number; of several (m, k) their mean."""
        if values.ndim == 1:
            values = values[:, None]
        total = np.zeros((len(values), self.size))
        for j in range(values.shape[1]):  # one after the other: each row in the same order wherever it stands
            total += self.strategy.columns[self._cell(values[:, j])]
        total /= values.shape[1]
        if self.n is None:
            total[~np.isfinite(values).any(axis=1)] = np.nan
        return total

    def _cell(self, values: FloatArray) -> IntArray:
        there = np.isfinite(values)
        cell = np.searchsorted(self.edges[1:-1], np.where(there, values, 0.0), side="right") + 1
        return np.where(there, cell, 0).astype(np.int64)

    def answer(self, noisy: FloatArray, sd: float, copies: int) -> Distribution:
        """Cumulative counts with their noise."""
        return Distribution(noisy, sd * math.sqrt(copies), self)


@dataclass(frozen=True)
class Distribution:
    """Released answers (p,) of a strategy, the sd of the noise in each, and what was asked."""

    noisy: FloatArray
    sd: float
    asked: AskDistribution

    def _excess(self, q: float) -> tuple[FloatArray, FloatArray, float]:
        """Persons at or below each edge (K + 1,) less q times all, increasing; sd of the noise in it; all persons."""
        known = self.asked.n
        matrix, pull = self.asked.cumulate
        counts = matrix @ self.noisy + pull * (known or 0.0)
        raw = counts - (1 - q) * counts[0] - q * counts[-1]
        n = max(float(counts[-1] - counts[0]), LEAST)
        raw[0], raw[-1] = -q * n, (1 - q) * n  # nobody is below the first cell, or above the last
        sd = self.sd * self.asked.noise_of_excess(q)
        sd[0] = sd[-1] = 0.0
        return np.asarray(isotonic_regression(raw)), sd, n

    @property
    def persons(self) -> float:
        """Who have a number, with noise."""
        return self._excess(0.0)[2]

    def shares_below(self, values: FloatArray) -> FloatArray:
        """Shares of numbers at or below some values, with noise, in [0, 1]; increasing."""
        excess, _, n = self._excess(0.0)
        return np.asarray(np.interp(values, self.asked.edges, np.clip(excess / n, 0.0, 1.0)))

    def quantile(self, q: float, level: float, *, sampling: bool = True) -> NoisyEstimate:
        """The q-quantile, the least value that a share q of all is at or below.

        The interval holds the cells in which the share at or below is not surely another than q: whole cells, as all
        numbers of one may be the same. Within a cell the estimate is interpolated; where the cell at an end of the
        range surely holds far more than its neighbour, it is that end: zeros of numbers that are mostly zero.
        """
        from scipy.special import ndtri

        excess, sd, n = self._excess(q)
        inside = (np.arange(sd.size) > 0) & (np.arange(sd.size) < sd.size - 1)
        reach = float(ndtri((1 + level) / 2)) * np.sqrt(sd**2 + inside * (n * q * (1 - q) if sampling else 0.0))
        edges, values = self.asked.edges, self.asked.values
        at, cell = _crossing(edges, excess)
        first = min(_crossing(edges, np.maximum.accumulate(excess + reach))[1], cell)
        beyond = _crossing(-edges[::-1], np.maximum.accumulate((reach - excess)[::-1]))[1]
        last = max(len(edges) - 2 - beyond, cell)
        slope = self._noise_in_value(sd, excess, cell)
        if values is not None:
            return NoisyEstimate(float(values[cell]), float(values[first]), float(values[last]), slope)
        return NoisyEstimate(self._end(excess, sd, cell, at), float(edges[first]), float(edges[last + 1]), slope)

    def _end(self, excess: FloatArray, sd: FloatArray, cell: int, at: float) -> float:
        """The end of the range, where nearly all of its cell must be there; else `at`."""
        held, last = np.diff(excess), len(excess) - 2
        if cell not in (0, last) or last < NEAR:
            return at
        beside = held[1 : 1 + NEAR] if cell == 0 else held[-2 : -2 - NEAR : -1]
        noise = SURE * float(sd.max())
        sure = held[cell] - noise > max(ATOM * held.sum(), MANY * (float(beside.mean()) + 2 * noise / NEAR))
        if sure and held[cell] > MANY * beside[0]:
            return float(self.asked.edges[0 if cell == 0 else -1])
        return at

    def _noise_in_value(self, sd: FloatArray, excess: FloatArray, cell: int) -> float:
        """Sd of the noise in a quantile: that of the count over the slope of the counts about it."""
        edges = self.asked.edges
        a = int(np.searchsorted(excess, -sd[cell : cell + 2].max(), side="right")) - 1
        b = int(np.searchsorted(excess, sd[cell : cell + 2].max(), side="left"))
        return float(edges[min(b, edges.size - 1)] - edges[max(a, 0)]) / 2


def _crossing(edges: FloatArray, increasing: FloatArray) -> tuple[float, int]:
    """Where a line through increasing values first reaches 0, and in which cell that is."""
    k = int(np.searchsorted(increasing, 0.0, side="left"))
    if k == 0 or k >= increasing.size:
        return float(edges[0] if k == 0 else edges[-1]), 0 if k == 0 else edges.size - 2
    part = -increasing[k - 1] / (increasing[k] - increasing[k - 1])
    return float(edges[k - 1] + part * (edges[k] - edges[k - 1])), k - 1
