"""White features of numbers that act linearly, ``x β(t)``: private columns of numbers and ``fosr``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.private.public.columns import Column, NumberColumn
from fdadp.private.whitened.base import OF_NUMBERS, WhiteTerm, column_of


@dataclass(frozen=True, kw_only=True)
class WhiteNumbers(WhiteTerm):
    """Features: numbers about their released locations, in released standard deviations."""

    @classmethod
    def of(cls, name: str, *columns: str) -> WhiteNumbers:
        """Of equal prior shares; not correlated, as far as is known in public."""
        return cls(name=name, columns=columns, shares=np.full(len(columns), OF_NUMBERS / len(columns)))

    def features(self, seen: Mapping[str, Any], count: int) -> FloatArray:
        """Standardised numbers."""
        return np.column_stack([seen[name].standard for name in self.columns])[:, :count]

    def axes(self, columns: Mapping[str, Column]) -> dict[str, FloatArray | tuple[Any, ...]]:
        """None of one number, whose β varies with t alone; of several which one it is."""
        return {} if len(self.columns) == 1 else {"number": self.columns}

    def effect(self, columns: Mapping[str, Column], count: int, *points: Any) -> FloatArray:
        """What stands for β: feature for a unit of the number."""
        slopes = []
        for name in self.columns:
            column = column_of(columns, name, NumberColumn)
            slopes.append(2 / (column.scale * (column.bounds[1] - column.bounds[0])))
        wanted = points[0] if points else self.columns
        return np.diag(slopes)[[self.columns.index(name) for name in wanted], :count]
