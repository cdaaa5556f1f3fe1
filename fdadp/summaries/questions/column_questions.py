"""Questions about a column that are one clipped sum each, for all persons or for the groups of a public list at once.

A row is in one group, so that what it adds to the blocks of all groups has the norm of one block: asking by group costs
what asking once does (``docs/theory/summaries.md#groups``).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.privacy import Cohort
from fdadp.privacy.account.epsilon_mu_rho import noise_multiplier
from fdadp.privacy.rows._rowwise_arithmetic import diameter_of

# Intervals for ratios with known noise: the law of a normal part plus Laplace noise, and Fieller's set.
#
# What is released has noise of a known law on numerator and denominator. An interval for their ratio is the set of
# values that a test does not reject (Fieller 1954), which needs no expansion and holds where the denominator is mostly
# noise: it is then the whole public range.


STEP, TURNS = 0.02, 3_000
"""Of the integral over the characteristic function of a law of sd 1."""
FARTHEST = 40.0
"""Quantiles are looked for below so many sds."""
TINY = 1e-300


class NoisyEstimate(NamedTuple):
    """What was released of one quantity.

    Attributes
    ----------
    value : float
    low, high : float
        Ends of the interval.
    noise_sd : float
        Of the privacy noise in the value, about.
    """

    value: float
    low: float
    high: float
    noise_sd: float

    @classmethod
    def about(cls, value: float, half: float, limits: tuple[float, float], noise_sd: float) -> NoisyEstimate:
        """A value with as much to both sides, all of it within public limits."""
        low, high = limits
        ends = [float(min(max(v, low), high)) for v in (value, value - half, value + half)]
        return cls(ends[0], ends[1], ends[2], float(noise_sd))

    def scaled(self, factor: float, shift: float = 0.0) -> NoisyEstimate:
        """In other units."""
        low, high = self.low * factor + shift, self.high * factor + shift
        return NoisyEstimate(self.value * factor + shift, low, high, self.noise_sd * abs(factor))


def half_width(level: float, normal: float, noise: Sequence[float], *, pure: bool, copies: int = 1) -> float:
    """What the absolute value of normal error plus noise exceeds with probability 1 - level.

    Parameters
    ----------
    level : float
    normal : float
        Sd of the normal part.
    noise : sequence of float
        Sds of independent parts of the noise; each is a sum of `copies` draws of this sd.
    pure : bool
        Laplace noise; else Gaussian.
    copies : int

    Notes
    -----
    P(|X| <= q) = (2/π) ∫ sin(q t)/t φ(t) dt with the characteristic function φ: e^{-s²t²/2} of the normal part,
    (1 + b²t²)^{-1} of Laplace noise of scale b.

    Examples
    --------
    >>> round(half_width(0.95, 1.0, [], pure=True), 3), round(half_width(0.95, 0.0, [2**0.5], pure=True), 3)
    (1.96, 2.996)
    """
    from scipy.optimize import brentq
    from scipy.special import ndtri

    parts = np.asarray(noise, dtype=np.float64)
    total = math.sqrt(normal**2 + copies * float((parts**2).sum()))
    if total == 0:
        return 0.0
    if not pure or not parts.any():
        return float(total * ndtri((1 + level) / 2))
    t = STEP * np.arange(1, TURNS + 1)
    law = np.exp(-0.5 * (normal / total * t) ** 2)
    for part in parts:
        law = law / (1 + 0.5 * (part / total * t) ** 2) ** copies

    def beyond(q: float) -> float:
        inner = STEP * (0.5 * q + float((np.sin(q * t) / t * law).sum()))
        return 2 / math.pi * inner - level

    low, high = TINY, FARTHEST
    return float(total * brentq(beyond, low, high)) if beyond(high) > 0 else total * high


def fieller(
    t: float, n: float, z: float, variance: tuple[float, float, float], limits: tuple[float, float]
) -> tuple[float, float]:
    """The values r within `limits` that (t - r n)² <= z² (v0 + v1 r + v2 r²) does not reject.

    Parameters
    ----------
    t, n : float
        Released numerator and denominator of the ratio.
    z : float
        Quantile over sd.
    variance : (float, float, float)
        v0, v1, v2.
    limits : (float, float)
        What the ratio can be in public; they are the interval where the denominator is mostly noise.

    References
    ----------
    Fieller (1954), Some problems in interval estimation, JRSS B 16, 175-185.
    """
    a = n * n - z * z * variance[2]
    b = -2 * t * n - z * z * variance[1]
    c = t * t - z * z * variance[0]
    root = b * b - 4 * a * c
    if n <= 0 or a <= 0:
        return limits
    middle, half = -b / (2 * a), math.sqrt(max(root, 0.0)) / (2 * a)
    low, high = limits
    return min(max(middle - half, low), high), max(min(middle + half, high), low)


def within(value: float, sd: float, low: float, high: float) -> float:
    """Mean of a normal law about a released value with its noise's sd, given that it lies in [low, high]."""
    from scipy.special import log_ndtr, logsumexp

    if high <= low:
        return low
    if sd <= 0:
        return min(max(value, low), high)
    a, b = (low - value) / sd, (high - value) / sd
    if a > 0:  # from the other side, where tails can be told apart
        return -within(-value, sd, -high, -low)
    mass = float(logsumexp([log_ndtr(b), log_ndtr(a)], b=[1, -1]))
    density = [math.exp(min(-0.5 * x * x - 0.5 * math.log(2 * math.pi) - mass, 700.0)) for x in (a, b)]
    return min(max(value + sd * (density[0] - density[1]), low), high)


Answer = TypeVar("Answer")
Column = Callable[[tuple[Any, ...]], FloatArray]
"""From a block of rows to the values (m,) of one column; row-local."""


class Question(ABC, Generic[Answer]):
    """What is asked of a column.

    Attributes
    ----------
    size : int
        Numbers that a row gives.
    clip : float
        Largest norm of what a person can add: L2, in pure form L1.
    nonnegative : bool
        Whether nothing that is added is negative.
    table : ndarray of shape (K, size) or None
        Public rows of which each row adds one, or the mean of several; its values then say which.
    """

    size: int
    clip: float
    nonnegative: bool
    table: FloatArray | None = None

    def planned_sd(self, amount: float, adjacency: str, *, pure: bool, blocks: int = 1) -> float:
        """Sd of the noise in each sum, for an amount in the measure of the budget, asked for in so many groups."""
        sd = noise_multiplier(amount, adjacency, pure=pure) * self.clip
        if adjacency != "replace" or pure:
            return sd
        if self.table is not None:
            return sd * min(diameter_of(self.table, blocks) / self.clip, 2.0) / 2
        return sd / math.sqrt(2) if self.nonnegative else sd

    @abstractmethod
    def rows(self, values: FloatArray) -> FloatArray:
        """What rows add, (m, size), or which rows of the table; NaN for a row that adds nothing.

        From their values (m,) or (m, k); row-local.
        """

    @abstractmethod
    def answer(self, noisy: FloatArray, sd: float, copies: int) -> Answer:
        """What was released, from sums with so many draws of noise of this sd in each."""


def ask(
    cohort: Cohort,
    question: Question[Answer],
    column: Column,
    *,
    share: float,
    name: str,
    group: Column | None = None,
    groups: int = 0,
) -> tuple[FloatArray, float]:
    """Release the sums of a question, (1, size), or (groups + 1, size) where `group` gives the code of a row's group.

    The last block is of rows in none of the groups. Returns the sums and the sd of the noise in each.
    """

    def rows(block: tuple[Any, ...]) -> FloatArray | tuple[FloatArray, FloatArray]:
        added = question.rows(column(block))
        if group is None:
            return added
        code = group(block)
        return added, np.where(np.isfinite(code), code, float(groups))

    blocks = None if group is None else groups + 1
    size, positive = (blocks or 1) * question.size, question.nonnegative
    of: dict[str, Any] = {"nonnegative": positive, "blocks": blocks, "table": question.table}
    noisy, sd = cohort.sum(rows, clip=question.clip, size=size, share=share, name=name, **of)
    return np.asarray(noisy).reshape(-1, question.size), float(sd)


# Counts of persons in classes, bins or cells of a table, and their shares, from one private histogram.
#
# Proof and intervals: ``docs/theory/summaries.md#cells``.


LEAST = 1.0


class AskCells(Question["CellCounts"]):
    """How many persons are in each of K cells, and in none: values are codes of cells, NaN for none.

    Parameters
    ----------
    cells : int
    n : float or None
        Declared number of persons.
    pure : bool
    """

    clip, nonnegative = 1.0, True

    def __init__(self, cells: int, n: float | None, *, pure: bool) -> None:
        self.cells, self.n, self.pure, self.size = cells, n, pure, cells + 1

    def rows(self, values: FloatArray) -> FloatArray:
        """A single 1 for each row, (m, K + 1)."""
        inside = values[:, None] == np.arange(self.cells)
        return np.hstack((inside, ~inside.any(axis=1, keepdims=True))).astype(np.float64)

    def answer(self, noisy: FloatArray, sd: float, copies: int) -> CellCounts:
        """Counts with their noise."""
        return CellCounts(noisy, sd, copies, self.n, self.pure)


@dataclass(frozen=True)
class CellCounts:
    """Released counts (K + 1,), the last of those who are in no cell.

    Attributes
    ----------
    counts : ndarray of shape (K + 1,)
    sd : float
        Of one draw of the noise.
    copies : int
    n : float or None
        Declared number of persons.
    pure : bool
    """

    counts: FloatArray
    sd: float
    copies: int
    n: float | None
    pure: bool

    def count(self, k: int, level: float) -> NoisyEstimate:
        """Persons in cell k; -1: in none. The noise alone is in the interval."""
        half = half_width(level, 0.0, [self.sd], pure=self.pure, copies=self.copies)
        value, most = float(self.counts[k]), math.inf if self.n is None else self.n
        return NoisyEstimate.about(value, half, (0.0, most), self.sd * math.sqrt(self.copies))

    def everybody(self, level: float) -> NoisyEstimate:
        """Persons in any cell or in none; the noise alone is in the interval."""
        copies = self.copies * self.counts.size
        half = half_width(level, 0.0, [self.sd], pure=self.pure, copies=copies)
        return NoisyEstimate.about(float(self.counts.sum()), half, (0.0, math.inf), self.sd * math.sqrt(copies))

    @property
    def there(self) -> float:
        """Persons in any cell, with noise."""
        return max(float(self.counts[:-1].sum()) if self.n is None else self.n - float(self.counts[-1]), LEAST)

    def share(self, k: int, level: float, *, sampling: bool = True) -> NoisyEstimate:
        """Share of cell k among the persons in any cell."""
        n, cells = self.there, self.counts.size - 1
        at = min(max(float(self.counts[k]) / n, 0.0), 1.0)
        drawn = n if sampling else 0.0
        square = self.sd**2 * self.copies
        own = (square, 0.0, square) if self.n is not None else (square, -2 * square, square * cells)
        variance = (own[0], own[1] + drawn, own[2] - drawn)
        # What noise is in count - share · total: of the cell, and of the others or of those in none.
        one = 1.0 if self.n is not None else 1 - at
        rest = at * math.sqrt(1 if self.n is not None else cells - 1)
        noise = self.sd * math.hypot(one, rest) * math.sqrt(self.copies)
        normal = math.sqrt(drawn * at * (1 - at))
        total = math.hypot(normal, noise)
        if self.pure:
            about_normal = math.hypot(normal, rest * self.sd * math.sqrt(self.copies))
            z = half_width(level, about_normal, [one * self.sd], pure=True, copies=self.copies)
        else:
            z = half_width(level, total, [], pure=False)
        low, high = fieller(float(self.counts[k]), n, z / total if total else 0.0, variance, (0.0, 1.0))
        return NoisyEstimate(at, min(low, at), max(high, at), min(noise / n, 1.0))
