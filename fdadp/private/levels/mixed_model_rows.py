"""What a private mixed model computes from rows, from the rows of a person, and from the means of a person.

Each function sees rows and released values, nothing else, and gives the same bits for a row, or a person, wherever it
stands. What is not finite is a gap: curves count where they were observed, a missing number is the middle of its range,
a label that is no public level has no effect. A row without a point of its curve is left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fdadp._common.typing import BoolArray, FloatArray
from fdadp.privacy import Exchangeable, rowwise_matmul, rowwise_norm
from fdadp.private.levels.between_within_covariances import PersonRows, rows_there
from fdadp.private.levels.observed_counts import Block, ObservedCurves
from fdadp.private.public.column_ranges import REACH, Column, LabelColumn, NumberColumn, Range, Scalars
from fdadp.private.rows.projected_responses import Projection, observed_mean
from fdadp.private.whitened.of_labels_and_numbers import WhiteLevels, WhiteNumbers
from fdadp.private.whitened.white_term import WhiteTerm

LEAST_SHARE, POWER = 1e-3, -0.25
"""Prior share of a function over the first one's, at least; power of it that scales are."""
CENTRED = Exchangeable(float("inf"))
"""Products of rows about the means of their person, each row once."""


@dataclass(frozen=True)
class MixedCoordinates:
    """Public coordinates of a mixed model: bounded features, and orthonormal functions of t.

    Attributes
    ----------
    columns : tuple of Column
        Numbers at their places on [-1, 1], and labels, in the order of a block of rows; the response comes after them.
    terms : tuple of WhiteTerm
        Linear in numbers, factors, or bounded functions of numbers and labels.
    within : tuple of bool
        Of each term, whether it varies within persons.
    response : ndarray of shape (T, K)
        Orthonormal under `weights`, which sum to one.
    shares : ndarray of shape (K,)
        Prior shares of variance of its functions.
    weights : ndarray of shape (T,)
    y_bounds : (float, float)
    pooled : bool
        Whether rows of a person are weighed by the working covariance I + 11'; else each person counts once, and what
        varies within persons is compared within them alone.
    max_rows : int
    """

    columns: tuple[Column, ...]
    terms: tuple[WhiteTerm, ...]
    within: tuple[bool, ...]
    response: FloatArray
    shares: FloatArray
    weights: FloatArray
    y_bounds: Range
    pooled: bool
    max_rows: int

    @property
    def counts(self) -> tuple[int, ...]:
        """Features of each term."""
        return tuple(term.shares.size for term in self.terms)

    @property
    def squares(self) -> FloatArray:
        """Largest sum of squares of each term's features, (q,)."""
        return np.array([_largest(term) for term in self.terms])

    @property
    def varying(self) -> BoolArray:
        """Which features, the constant first, vary within persons; shape (p,)."""
        return np.concatenate([[False], np.repeat(self.within, self.counts)]).astype(bool)

    @property
    def usual(self) -> FloatArray:
        """Mean squares of the features that the prior expects, the constant first; shape (p,)."""
        of = [np.full(count, 0.5 if isinstance(t, WhiteNumbers) else 1.0) for t, count in self._counted]
        return np.concatenate([[1.0], *of])

    @property
    def _counted(self) -> Sequence[tuple[WhiteTerm, int]]:
        return tuple(zip(self.terms, self.counts, strict=True))

    @property
    def scales(self) -> FloatArray:
        """What coefficients of residuals are multiplied with in the equations, (K,).

        The variances of the noise have the least sum where squared scales are one over the roots of the prior shares.
        """
        return np.asarray((np.maximum(self.shares / self.shares[0], LEAST_SHARE)) ** POWER)

    @property
    def sum_of_sizes(self) -> float:
        """Sum of the sizes of a person's scaled equations within persons over their norm, as the prior expects it."""
        sds = self.scales * np.sqrt(self.shares)
        of_features = max(1.0, math.sqrt(2 * int(self.varying.sum()) / math.pi))
        return of_features * math.sqrt(2 / math.pi) * float(sds.sum() / np.linalg.norm(sds))

    def weight_of(self, n: FloatArray) -> FloatArray:
        """What the mean of n rows counts."""
        return np.asarray(n / (1 + n) if self.pooled else np.minimum(n, 1.0))

    @property
    def most_of_means(self) -> float:
        """Bound on a person's product of means of features: its largest weight times their largest squared norm."""
        return float(self.weight_of(np.array(float(self.max_rows)))) * (1 + float(self.squares.sum()))

    @property
    def most_within(self) -> float:
        """Bound on the trace of a person's products about its means: rows times the largest squared norm.

        ``Σ |x - x̄|² = Σ |x|² - n |x̄|²`` is at most that, and is that of rows at opposite ends.
        """
        return float(self.max_rows * self.squares[np.array(self.within, dtype=bool)].sum())


MOST_FEATURES, KEPT = 6, 0.98
"""Features of a function of numbers at most, and the prior share of it that is enough."""
POINTS = {0: 1, 1: 2001, 2: 101}
"""Of each number, at which its features are looked for at their largest, by how many numbers there are."""
BETWEEN = 1.02
"""What features may be larger by between these points."""
UNIFORM = 3.0**-0.5
"""Standard deviation of a uniform law on [-1, 1], in which functions of numbers have their knots."""


@dataclass(frozen=True, kw_only=True)
class BoundedTerm(WhiteTerm):
    """First features of a function of numbers and labels, whose largest squared norm is known in public.

    Numbers stand at public places, so that no release changes the features.

    Attributes
    ----------
    of : WhiteTerm
    most : float
        Bound on the sum of squares of a row's features.
    """

    of: WhiteTerm
    most: float

    @classmethod
    def bounded(cls, term: WhiteTerm, columns: Mapping[str, Column]) -> BoundedTerm | None:
        """The term with its bound; None of curves, and of more than two numbers."""
        every = [columns[name] for name in dict.fromkeys(term.columns)]
        own = [column for column in every if isinstance(column, NumberColumn | LabelColumn)]
        count = sum(isinstance(column, NumberColumn) for column in own)
        if count not in POINTS or len(own) < len(every):
            return None
        kept = np.searchsorted(np.cumsum(term.shares) / term.shares.sum(), KEPT) + 1
        first = cls(
            name=term.name, columns=term.columns, shares=term.shares[: min(kept, MOST_FEATURES)], of=term, most=0.0
        )
        places = [
            np.linspace(-1, 1, POINTS[count]) if isinstance(column, NumberColumn) else np.arange(len(column.levels))
            for column in own
        ]
        grid = [axis.ravel().astype(np.float64) for axis in np.meshgrid(*places, indexing="ij")]
        seen = {
            column.name: Scalars(values, values) if isinstance(column, NumberColumn) else values
            for column, values in zip(own, grid, strict=True)
        }
        features = first.features(seen, first.shares.size)
        return replace(first, most=BETWEEN * float((features**2).sum(axis=1).max()))

    @property
    def of_values(self) -> bool:
        """Whether it is a function of numbers."""
        return self.of.of_values

    def features(self, seen: Mapping[str, Any], count: int) -> FloatArray:
        """Of numbers where they are on their public ranges, whatever was released of them."""
        placed = {
            name: Scalars(own.unit, own.unit / UNIFORM) if isinstance(own, Scalars) else own
            for name, own in seen.items()
        }
        return self.of.features(placed, count)

    def axes(self, columns: Mapping[str, Column]) -> dict[str, FloatArray | tuple[Any, ...]]:
        """Those of the term."""
        return self.of.axes(_in_place(columns))

    def effect(self, columns: Mapping[str, Column], count: int, *points: Any) -> FloatArray:
        """That of the term."""
        return self.of.effect(_in_place(columns), count, *points)


def _in_place(columns: Mapping[str, Column]) -> dict[str, Column]:
    return {name: own.placed(0.0, UNIFORM) if isinstance(own, NumberColumn) else own for name, own in columns.items()}


def _largest(term: WhiteTerm) -> float:
    """Largest sum of squares of a term's features: numbers are at most 1, levels rows of a table."""
    if isinstance(term, BoundedTerm):
        return term.most
    return float((term.table**2).sum(axis=1).max()) if isinstance(term, WhiteLevels) else float(term.shares.size)


class MixedRows(ObservedCurves):
    """Row functions; a block is the columns and the response, then what :meth:`coordinates` makes of it.

    Parameters
    ----------
    public : MixedCoordinates
    """

    def __init__(self, public: MixedCoordinates, *, pure: bool = False) -> None:
        super().__init__(public.shares.size, pure=pure)
        self.public = public
        self.persons = PersonRows(pure=pure)
        low, high = public.y_bounds
        self.middle, self.half = (low + high) / 2, (high - low) / 2
        self.projection = Projection(public.response, public.weights, public.shares)
        self._functions = np.ascontiguousarray(public.response.T)
        self._scales = public.scales
        self.effects: FloatArray = np.zeros((public.varying.size, public.shares.size))  # as released

    # --- rows ---

    def coordinates(self, block: Block) -> Block:
        """Coefficients of the response about the middle of its range (m, K); mean square outside the functions and
        share of t beyond the range, (m, 1) each; features, the constant first, (m, p)."""
        y = block[-1].reshape(len(block[-1]), -1)
        y = np.where(np.isfinite(y), y, np.nan) - self.middle
        beyond = observed_mean(np.where(np.isnan(y), np.nan, np.abs(y) > self.half), self.public.weights)
        y = np.clip(y, -REACH * self.half, REACH * self.half)
        c = self.projection(y)
        away = y - rowwise_matmul(np.nan_to_num(c), self._functions)
        rest = observed_mean(away * away, self.public.weights)
        return c, rest[:, None], beyond[:, None], self.features(block)

    def features(self, block: Block) -> FloatArray:
        """Features of rows, the constant first, shape (m, p)."""
        seen = {column.name: column.seen(block[column.at])[0] for column in self.public.columns}
        own = [term.features(seen, count) for term, count in self.public._counted]
        return np.hstack((np.ones((len(block[-1]), 1)), *own))

    # --- persons; a block is what coordinates made of their rows, side by side ---

    def means(self, block: Block) -> Block:
        """Means over the rows of each person, and what they count (m, 1); NaN of who has none."""
        n = rows_there(block).sum(axis=1).astype(np.float64)
        return *self.persons.means(block), self.public.weight_of(n)[:, None]

    def varying(self, block: Block) -> FloatArray:
        """Features that vary within persons, (m, rows, p_w)."""
        _, _, _, x = block
        return np.ascontiguousarray(x[:, :, self.public.varying])

    def residuals(self, block: Block) -> Block:
        """Coefficients of rows less their effects, (m, rows, K)."""
        c, _, _, x = block
        m, rows, p = x.shape
        fitted = rowwise_matmul(np.ascontiguousarray(x).reshape(m * rows, p), self.effects)
        return (c - fitted.reshape(m, rows, -1),)

    def scaled(self, block: Block) -> FloatArray:
        """The same, scaled for the equations; (m, rows, K)."""
        return np.asarray(self.residuals(block)[0] * self._scales)

    def size_within(self, block: Block) -> FloatArray:
        """Root mean square of scaled rows about the mean of their person, (m,); NaN of who has one row."""
        return self.persons.size_within((self.scaled(block),))

    # --- means of persons; a block is what means made ---

    def of_means(self, block: Block) -> FloatArray:
        """Means of the features times the root of what they count, (m, p)."""
        _, _, _, x, weight = block
        return np.asarray(x * np.sqrt(weight))

    def left(self, block: Block) -> FloatArray:
        """Means of coefficients less their effects, (m, K)."""
        c, _, _, x, _ = block
        return np.asarray(c - rowwise_matmul(np.ascontiguousarray(x), self.effects))

    def equations(self, block: Block) -> tuple[FloatArray, FloatArray]:
        """Features (m, p) and residuals (m, K), whose product is a person's part of the equations of means."""
        _, _, _, _, weight = block
        return self.of_means(block), self.left(block) * self._scales * np.sqrt(weight)

    def size_of_equations(self, block: Block) -> FloatArray:
        """Norm of that product, (m,): of rank one, so that the nuclear norm is the same."""
        x, r = self.equations(block)
        return rowwise_norm(x) * rowwise_norm(r)
