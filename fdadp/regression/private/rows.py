"""What a private fit computes within each row before all else: columns of others, and the response less an offset.

The kernel hands over blocks of the columns as they were given, and keeps what comes back to itself. Gaps of curves are
filled within the row, values stay within reach of public ranges, and each row's numbers depend on that row alone, bit
for bit (:mod:`fdadp.regression.reading.expressions`); what has no value is NaN, a missing entry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.tables.sample import Curves
from fdadp.private.public.columns import FILLERS, REACH, Range
from fdadp.regression.reading.expressions import expression


@dataclass(frozen=True)
class SourceColumn:
    """A column that others are computed from.

    Attributes
    ----------
    name : str
    grid : ndarray of shape (S,) or None
        Of curves; None: numbers.
    gaps : {"linear", "smooth"} or None
        How gaps of curves are filled; None: not at all.
    bounds : (float, float) or None
        Public range, beyond which values go by a few half-widths at most.
    """

    name: str
    grid: FloatArray | None = None
    gaps: str | None = None
    bounds: Range | None = None

    def read(self, values: FloatArray, grid: FloatArray | None = None) -> Curves | FloatArray:
        """The column as functions of it see it; `grid` where new curves have another one."""
        values = np.array(values, dtype=np.float64)
        points = self.grid if grid is None else grid
        if points is None:
            values = values.reshape(len(values))
        values = np.where(np.isfinite(values), values, np.nan)
        if points is not None and self.gaps is not None:
            values = FILLERS[self.gaps](values, points)
        if self.bounds is not None:
            middle, half = sum(self.bounds) / 2, (self.bounds[1] - self.bounds[0]) / 2
            values = np.clip(values, middle - REACH * half, middle + REACH * half)
        return values if points is None else Curves(values, points)


@dataclass(frozen=True)
class Made:
    """A column that is computed within each row.

    Attributes
    ----------
    text : str
        An expression of columns.
    sources : tuple of Source
    indicator : bool
        Instead of a value, whether there is none: 1, else 0.
    """

    text: str
    sources: tuple[SourceColumn, ...]
    indicator: bool = False

    def of(self, columns: Mapping[str, FloatArray], grids: Mapping[str, FloatArray] | None = None) -> FloatArray:
        """Entries of rows, shape (m,) or (m, S); NaN where there is no value."""
        grids = grids or {}
        read: dict[str, Any] = {
            source.name: source.read(columns[source.name], grids.get(source.name)) for source in self.sources
        }
        made = expression(self.text).by_rows(read)
        values = made.values if isinstance(made, Curves) else made
        finite = np.isfinite(values)
        return np.where(finite, 0.0, 1.0) if self.indicator else np.where(finite, values, np.nan)


@dataclass(frozen=True)
class PreparedRows:
    """Row function from blocks of the columns that were given to blocks of a design's columns and the response.

    Attributes
    ----------
    given : tuple of str
        Columns of a block.
    wanted : tuple of (str or Made)
        Those of the design, then the response: a column as it was given, or a computed one.
    offset : str, Made or None
        What the response is less of.
    """

    given: tuple[str, ...]
    wanted: tuple[str | Made, ...]
    offset: str | Made | None = None

    def __call__(self, block: Sequence[FloatArray]) -> tuple[FloatArray, ...]:
        """Columns of the rows of a block."""
        columns = dict(zip(self.given, block, strict=True))
        *out, y = (self._column(columns, wanted) for wanted in self.wanted)
        if self.offset is not None:
            y = y.reshape(len(y), -1) - self._column(columns, self.offset).reshape(len(y), -1)
        return (*out, y)

    @staticmethod
    def _column(columns: Mapping[str, FloatArray], wanted: str | Made) -> FloatArray:
        return columns[wanted] if isinstance(wanted, str) else wanted.of(columns)
