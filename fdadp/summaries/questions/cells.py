"""Counts of persons in classes, bins or cells of a table, and their shares, from one private histogram.

Proof and intervals: ``docs/theory/summaries.md#cells``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.summaries.questions.laws import NoisyEstimate, fieller, half_width
from fdadp.summaries.questions.questions import Question

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
            z = half_width(
                level,
                math.hypot(normal, rest * self.sd * math.sqrt(self.copies)),
                [one * self.sd],
                pure=True,
                copies=self.copies,
            )
        else:
            z = half_width(level, total, [], pure=False)
        low, high = fieller(float(self.counts[k]), n, z / total if total else 0.0, variance, (0.0, 1.0))
        return NoisyEstimate(at, min(low, at), max(high, at), min(noise / n, 1.0))
