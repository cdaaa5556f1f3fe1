"""Moments of a column of numbers from one private sum: mean, variance, standard deviation, how many are missing.

A number is u in [-1, 1] on its public range; a person adds a flag and u, u² - ½, u³/2, (u⁴ - ½)/2, averaged over its
rows. Sensitivity and intervals: ``docs/theory/summaries.md#moments``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.summaries.questions.column_questions import NoisyEstimate, Question, fieller, half_width, within

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


# How counts in ordered cells are asked for, so that all cumulative counts have little noise at once.
#
# A person is in one cell k of K; asked for is Σ W[k] over persons for a public matrix W (a strategy), and the
# cumulative counts are a public linear map of the answer. The longest row bounds the sensitivity. Where the number of
# persons is public, the rows are taken about the centre of the smallest ball about them, for n centres can be added.
# Identity, trees and the square root of the summation matrix are compared by their noise, which is public, and the best
# is taken (``docs/theory/summaries.md#cumulative``).
#
# References ---------- Li, Miklau, Hay, McGregor & Rastogi (2015), The matrix mechanism, VLDB Journal 24, 757-781,
# doi:10.1007/s00778-015-0398-x. Henzinger, Upadhyay & Upadhyay (2023), Almost tight error bounds on differentially
# private continual counting, SODA, doi:10.1137/1.9781611977554.ch183: the square root. Qardaji, Yang & Li (2013),
# Understanding hierarchical methods for differentially private histograms, PVLDB 6, 1954-1965,
# doi:10.14778/2556549.2556576: wide trees. Badoiu & Clarkson (2003), Smaller core-sets for balls, SODA: the centre.


WIDTHS = (4, 8, 12, 16, 24, 32)
"""Of the blocks of a tree of two levels."""


STEPS = 4000
"""Towards the centre of the smallest ball; any number of them gives a valid centre, more a smaller ball."""
OUTWARD = 1 + 1e-12
"""Factor on a norm for its rounding."""


@dataclass(frozen=True)
class Strategy:
    """What is asked of counts in K cells.

    Attributes
    ----------
    rows : ndarray of shape (K, p)
        Row k: what a person in cell k adds.
    centre : ndarray of shape (p,)
        What was taken off each row: zeros, unless the number of persons is public.
    decode : ndarray of shape (K, p)
        From the sum of rows with nothing taken off to the cumulative counts.
    clip : float
        The largest norm of a row.
    total : bool
        Whether the number of persons is public.
    """

    rows: FloatArray
    centre: FloatArray
    decode: FloatArray
    clip: float
    total: bool

    def cumulate(self) -> tuple[FloatArray, FloatArray]:
        """A matrix (K, p) and a vector (K,): the cumulative counts are `matrix @ answer + vector * n`.

        Where n is public they are those expected given it, with less noise; else the vector is 0.
        """
        if not self.total:
            return self.decode, np.zeros(len(self.decode))
        last = self.decode[-1]
        pull = self.decode @ last / float(last @ last)
        matrix = self.decode - np.outer(pull, last)
        return matrix, pull + matrix @ self.centre

    @property
    def noise(self) -> float:
        """Mean sd of the cumulative counts over that of a single count for the same budget."""
        return float(self.clip * np.sqrt((self.cumulate()[0] ** 2).sum(axis=1)).mean())


@lru_cache(maxsize=16)
def strategy(cells: int, *, pure: bool, total: bool = False) -> Strategy:
    """The strategy of least noise for so many cells.

    Parameters
    ----------
    cells : int
        K.
    pure : bool
        Laplace noise, for which rows are bounded in L1; else Gaussian, L2.
    total : bool
        Whether the number of persons is public.

    Examples
    --------
    >>> round(strategy(1024, pure=False).noise, 2), round(strategy(512, pure=True).noise, 2)  # a histogram: 21, 15
    (3.1, 7.03)
    >>> round(strategy(1024, pure=False, total=True).noise, 2)
    2.55
    """
    found = []
    for rows, decode in _candidates(cells, pure=pure):
        centre = centre_of(rows) if total and not pure else np.zeros(rows.shape[1])
        about = rows - centre
        norms = np.abs(about).sum(axis=1) if pure else np.sqrt((about**2).sum(axis=1))
        found.append(Strategy(about, centre, decode, float(norms.max()) * OUTWARD, total))
    return min(found, key=lambda one: one.noise)


def centre_of(rows: FloatArray) -> FloatArray:
    """A mean of the rows about which the farthest of them is nearly as close as can be: towards the farthest, again."""
    products, weights = rows @ rows.T, np.full(len(rows), 1 / len(rows))
    squares, inner = np.diag(products), products @ weights
    for step in range(STEPS):
        far = int((squares - 2 * inner).argmax())
        part = 1 / (step + 2)
        weights *= 1 - part
        weights[far] += part
        inner = (1 - part) * inner + part * products[far]
    return np.asarray(weights @ rows)


def _candidates(cells: int, *, pure: bool) -> Iterator[tuple[FloatArray, FloatArray]]:
    identity, sums = np.eye(cells), np.tril(np.ones((cells, cells)))
    yield identity, sums
    if not pure:
        root = _root(cells)
        yield np.ascontiguousarray(root.T), root
        return
    for width in WIDTHS:
        blocks = math.ceil(cells / width)
        if blocks > 1:
            block = np.kron(np.eye(blocks), np.ones((width, 1)))[:cells]
            tree = np.hstack((identity, block))
            # pinv(tree') is (tree tree')⁻¹ tree, and tree tree' is 1 + 11' in each block (Sherman & Morrison).
            inverse = identity - (block / (1 + block.sum(axis=0))) @ block.T
            yield tree, sums @ inverse @ tree


def _root(cells: int) -> FloatArray:
    """The lower triangular Toeplitz matrix whose square is the summation matrix."""
    k = np.arange(1, cells)
    first = np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])
    at = np.subtract.outer(np.arange(cells), np.arange(cells))
    return np.where(at >= 0, first[np.maximum(at, 0)], 0.0)


# Quantiles of a column of numbers, from private cumulative counts in public cells.
#
# Proof, and what the intervals hold: ``docs/theory/summaries.md#cumulative``.


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

    nonnegative = False

    def __init__(self, edges: FloatArray, n: float | None, *, pure: bool, values: FloatArray | None = None) -> None:
        self.edges, self.n, self.pure, self.values = edges, n, pure, values
        self.strategy = strategy(len(edges), pure=pure, total=n is not None)
        self.table, self.clip = self.strategy.rows, self.strategy.clip
        self.size = self.table.shape[1]
        self.cumulate = self.strategy.cumulate()
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
        """Cell of each number, which is a row of the table; of several (m, k) each."""
        there = np.isfinite(values)
        cell = np.searchsorted(self.edges[1:-1], np.where(there, values, 0.0), side="right") + 1.0
        cell = np.where(there, cell, 0.0)
        if self.n is None:
            nothing = ~there if values.ndim == 1 else ~there.any(axis=1, keepdims=True)
            cell = np.where(nothing, np.nan, cell)
        return np.asarray(cell)

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
        from sklearn.isotonic import isotonic_regression

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
