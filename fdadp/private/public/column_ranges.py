"""Columns of a private fit: what is public of each, and how its private entries become standardised values.

Curves are located and scaled by what was released of them, numbers by their public bounds, labels by their public
levels. Each row's values depend on that row alone, bit for bit, and what is not there is replaced by what is known in
public or was released: a number by its location, a label by no level at all. Only a row without a single observation of
a curve is lost.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from fdadp._common.calling_language import bounds_as
from fdadp._common.typing import BoolArray, FloatArray
from fdadp.errors import PrivacyError
from fdadp.functional.gap_filling import fill_linear, fill_smooth
from fdadp.functional.quadrature import quadrature_weights
from fdadp.functional.tables.curve_sample import Curves
from fdadp.privacy import rowwise_matmul, rowwise_norm

# Public ranges of curves' values, which private fits require: ``bounds=``. Chosen without looking at the data.
#
# The regression takes them as hints of location and size, and clips at three half-widths (docs/bounds.md); summaries
# clip at them.


Range = tuple[float, float]
CLOSEST = 1e-9
"""Width of a range over the size of its ends, at least: numbers in it can be told apart."""
SMALLEST_WIDTH = 1e-30


def public_range(pair: Any, name: str = "bounds", *, of: str = "Y", example: str = "") -> Range:
    """Check one range.

    Parameters
    ----------
    pair : (float, float)
    name : str
        Of the argument, for errors.
    of, example : str
        Whose range is missing where it is None, and how it is given: by default that of one sample.

    Returns
    -------
    low, high : float

    Raises
    ------
    PrivacyError
        It is missing or not finite, does not increase, or has a width beyond what can be computed with.
    """
    if pair is None:
        raise PrivacyError(
            f"bounds must give a public range for {of}, as in {example or bounds_as()}, got None; a range taken "
            "from the data would not be private (docs/your-csv.md)"
        )
    try:
        low, high = (float(v) for v in pair)
    except (TypeError, ValueError) as exc:
        raise PrivacyError(f"{name} must be a pair (low, high) of numbers, got {pair!r}") from exc
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise PrivacyError(f"{name} must be finite with low < high, got ({low:g}, {high:g})")
    if not (SMALLEST_WIDTH <= high - low <= 1 / SMALLEST_WIDTH and high - low > CLOSEST * max(-low, high)):
        raise PrivacyError(
            f"{name} must have a width that can be computed with: from {SMALLEST_WIDTH:g} to {1 / SMALLEST_WIDTH:g}, "
            f"and above 1e-9 of the values, got ({low!r}, {high!r})"
        )
    return low, high


def public_ranges(bounds: Any, names: Sequence[str] = ("X", "Y"), *, required: bool = True) -> dict[str, Range]:
    """Check the ranges of several kinds of curves.

    Parameters
    ----------
    bounds : mapping from name to (float, float), or None
    names : sequence of str
        Which there are.
    required : bool
        Refuse where one is missing; else only what is given must be right.

    Returns
    -------
    dict from name to (low, high), in the order of `names`

    Raises
    ------
    PrivacyError
    """
    example = bounds_as(*names)
    given = {} if bounds is None else bounds
    if not isinstance(given, Mapping):
        raise PrivacyError(f"bounds must be a range for each of {', '.join(names)}, as in {example}, got {bounds!r}")
    for name in given:
        if name not in names:
            raise PrivacyError(f"bounds must be those of {', '.join(names)}, as in {example}, got one of {name!r}")
    return {
        name: public_range(given.get(name), f"bounds of {name}", of=name, example=example)
        for name in names
        if required or given.get(name) is not None
    }


HALF_WIDTH = 4.0
"""Standardised curves are clipped to ±4 of their standard deviations."""
NUMBERS_HALF_WIDTH = 10.0
"""Standardised numbers are clipped to ±10: those that are mostly zero go that far, within their public bounds."""
REACH = 3.0
"""Curves may go beyond their public range by this many half-widths: a range is a hint of size and location."""
UNIFORM_VARIANCE = 1 / 3
"""Of a uniform law on [-1, 1]."""
FILLERS = {"linear": fill_linear, "smooth": fill_smooth}
"""How gaps of curves are filled, each within its row."""


def unit_grid(grid: FloatArray) -> FloatArray:
    """The grid on [0, 1]."""
    return np.asarray((grid - grid[0]) / (grid[-1] - grid[0]))


class Scalars(NamedTuple):
    """Numbers of a block of rows.

    Attributes
    ----------
    unit : ndarray of shape (m,)
        On the public bounds, from -1 to 1.
    standard : ndarray of shape (m,)
        About the released location, in released standard deviations, within ±10.
    """

    unit: FloatArray
    standard: FloatArray


class Ranged:
    """What has a public range ``bounds``."""

    bounds: Range

    @property
    def mid(self) -> float:
        """Middle of the range."""
        return sum(self.bounds) / 2

    @property
    def half(self) -> float:
        """Half of its width."""
        return (self.bounds[1] - self.bounds[0]) / 2


@dataclass(frozen=True)
class CurvesColumn(Ranged):
    """A column of curves.

    Attributes
    ----------
    name : str
    at : int
        Place in a block of rows.
    grid : ndarray of shape (S,)
    bounds : (float, float)
        Public range: a hint of location and size.
    geometric_scale : float
        Geometric mean, under the public prior, of a standardised curve's root mean square.
    location, scale : float
        Curves are standardised by ``(X - location) / scale``: public guesses, then what was released.
    missing : {"linear", "smooth"}
        How gaps are filled.
    """

    name: str
    at: int
    grid: FloatArray
    bounds: Range
    geometric_scale: float
    location: float
    scale: float
    missing: str = "linear"

    @classmethod
    def guessed(
        cls,
        name: str,
        at: int,
        grid: FloatArray,
        bounds: Range,
        geometric_scale: float,
        scale: float | None,
        **how: Any,
    ) -> CurvesColumn:
        """The column before anything was released; `scale` is a public guess, by default an eighth of the range."""
        scale = scale or (bounds[1] - bounds[0]) / 2 / HALF_WIDTH
        return cls(name, at, grid, bounds, geometric_scale, sum(bounds) / 2, scale, **how)

    def placed(self, location: float, scale: float) -> CurvesColumn:
        """The column with a location and a scale that were released."""
        return replace(self, location=location, scale=scale)

    def clean(self, values: FloatArray, grid: FloatArray | None = None) -> FloatArray:
        """Without gaps, and within reach of the public range; NaN where a row has no observation."""
        low, high = self.mid - REACH * self.half, self.mid + REACH * self.half
        return np.asarray(np.clip(FILLERS[self.missing](values, self.grid if grid is None else grid), low, high))

    def seen(self, values: FloatArray, grid: FloatArray | None = None) -> tuple[Curves, BoolArray]:
        """Standardised curves within ±4 on [0, 1], and which rows were never observed (zero here)."""
        clean = self.clean(values, grid)
        never: BoolArray = np.asarray(np.isnan(clean).any(axis=1))
        clean[never] = self.location
        standard = np.clip((clean - self.location) / self.scale, -HALF_WIDTH, HALF_WIDTH)
        start, end = self.grid[0], self.grid[-1]
        return Curves(standard, unit_grid(self.grid) if grid is None else (grid - start) / (end - start)), never

    # --- row functions; a block of rows has the curves at its own place ---

    def rms(self, block: tuple[FloatArray, ...]) -> FloatArray:
        """Root mean square about the location, shape (m,)."""
        return rowwise_norm(self.clean(block[self.at]) - self.location, weights=self._weights[:, 0])

    def level(self, block: tuple[FloatArray, ...]) -> FloatArray:
        """Mean about the location, shape (m, 1)."""
        return rowwise_matmul(self.clean(block[self.at]) - self.location, self._weights)

    @property
    def _weights(self) -> FloatArray:
        return quadrature_weights(unit_grid(self.grid))[:, None]


@dataclass(frozen=True)
class NumberColumn(Ranged):
    """A column of numbers.

    Attributes
    ----------
    name : str
    at : int
        Place in a block of rows.
    bounds : (float, float)
        Public range; values beyond it count as its ends.
    location, scale : float
        Of the values on [-1, 1]: those of a uniform law, then what was released.
    beyond : (float, float) or None
        Share of the values more than ten scales away, as released, and the sd of its noise; None where not counted.
    error : float
        Of the logarithm of the scale; infinite where nothing was released.
    """

    name: str
    at: int
    bounds: Range
    location: float = 0.0
    scale: float = 3.0**-0.5
    beyond: tuple[float, float] | None = None
    error: float = math.inf

    def placed(self, location: float, scale: float, error: float = 0.0) -> NumberColumn:
        """The column with a location and a scale that were released, and the error of its logarithm."""
        return replace(self, location=location, scale=scale, error=error)

    def unit(self, values: FloatArray) -> FloatArray:
        """Values (m,) on [-1, 1]; what is not finite is NaN."""
        numbers = np.asarray(values, dtype=np.float64).reshape(len(values))
        return np.clip(np.where(np.isfinite(numbers), (numbers - self.mid) / self.half, np.nan), -1.0, 1.0)

    def seen(self, values: FloatArray) -> tuple[Scalars, BoolArray]:
        """Numbers of rows, missing ones at their location; no row is lost."""
        unit = self.unit(values)
        unit = np.where(np.isnan(unit), self.location, unit)
        standard = np.clip((unit - self.location) / self.scale, -NUMBERS_HALF_WIDTH, NUMBERS_HALF_WIDTH)
        return Scalars(unit, standard), np.zeros(len(unit), dtype=bool)


@dataclass(frozen=True)
class LabelColumn:
    """A column of labels.

    Attributes
    ----------
    name : str
    at : int
        Place in a block of rows.
    levels : tuple
        Public and distinct.
    """

    name: str
    at: int
    levels: tuple[Hashable, ...]

    def seen(self, values: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Codes (m,), NaN for what is no public level; no row is lost."""
        codes = np.asarray(values, dtype=np.float64).reshape(len(values))
        return codes, np.zeros(len(codes), dtype=bool)


Column = CurvesColumn | NumberColumn | LabelColumn
