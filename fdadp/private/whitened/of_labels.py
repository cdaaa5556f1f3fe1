"""White features of labels with public levels, an effect for each: private factors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.privacy.boundary import codes_of, index_of
from fdadp.private.public.columns import Column, LabelColumn
from fdadp.private.whitened.base import OF_NUMBERS, WhiteTerm, column_of


@dataclass(frozen=True, kw_only=True)
class WhiteLevels(WhiteTerm):
    """Features: contrasts between levels, white where all levels are as frequent; zero of what is no public level.

    Attributes
    ----------
    table : ndarray of shape (L, L - 1)
        Features of each level.
    """

    table: FloatArray

    @classmethod
    def of(cls, name: str, column: LabelColumn) -> WhiteLevels:
        """Of equal prior shares."""
        table = contrasts(len(column.levels))
        q = table.shape[1]
        return cls(name=name, columns=(column.name,), shares=np.full(q, OF_NUMBERS / q), table=table)

    def features(self, seen: Mapping[str, Any], count: int) -> FloatArray:
        """Contrasts of the levels of rows."""
        return levels_of_codes(self.table[:, :count], seen[self.columns[0]])

    def axes(self, columns: Mapping[str, Column]) -> dict[str, FloatArray | tuple[Any, ...]]:
        """Levels."""
        return {self.columns[0]: column_of(columns, self.columns[0], LabelColumn).levels}

    def effect(self, columns: Mapping[str, Column], count: int, *points: Any) -> FloatArray:
        """Features of levels: effects about their mean, which the mean of the response has."""
        places = places_of_levels(column_of(columns, self.columns[0], LabelColumn), points[0])
        return np.asarray(self.table[places, :count])


def contrasts(count: int) -> FloatArray:
    """Orthogonal contrasts of so many levels, of mean zero and mean square one over them; shape (count, count - 1).

    Contrast j is between level j and those before it (Helmert's).
    """
    table = np.zeros((count, count - 1))
    for j in range(1, count):
        table[:j, j - 1], table[j, j - 1] = -1.0, j
        table[:, j - 1] *= np.sqrt(count / (j * (j + 1)))
    return table


def levels_of_codes(table: FloatArray, codes: FloatArray) -> FloatArray:
    """Row of a table (L, q) for each code (m,); zeros for what is none."""
    known = (codes[:, None] == np.arange(len(table))).any(axis=1)
    padded = np.vstack((table, np.zeros((1, table.shape[1]))))
    return np.asarray(padded[np.where(known, codes, len(table)).astype(np.int64)])


def places_of_levels(column: LabelColumn, labels: Iterable[Any]) -> IntArray:
    """Number of the level of each label.

    Raises
    ------
    InputError
        A label that is no public level.
    """
    given = list(labels)
    codes = codes_of(np.array([*given, None], dtype=object)[:-1], index_of(column.levels))
    for label, code in zip(given, codes, strict=True):
        if np.isnan(code):
            raise InputError(f"{column.name} must be one of its levels {list(column.levels)!r}, got {label!r}")
    return codes.astype(np.int64)
