"""Labels of rows against the levels of the training rows."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.terms.records import Records, TrainingSummary

MOST_SHOWN = 10


@dataclass(frozen=True)
class Levels:
    """The levels of a column of labels.

    Attributes
    ----------
    column : str
    levels : tuple
        In order; whole numbers 1 and 1.0 are the same level.
    """

    column: str
    levels: tuple[Any, ...]

    @classmethod
    def of(cls, seen: TrainingSummary, column: str) -> Levels:
        """The levels that the training rows have.

        Raises
        ------
        InputError
            No such column, one of curves, missing labels, or labels of more than one kind.
        """
        levels = seen.levels_of(column)
        if any(map(_missing, levels)):
            raise InputError(_no_label(column, _first_missing(seen, column)))
        kinds = {_kind(level): level for level in reversed(levels)}
        if len(kinds) > 1:
            examples = " and ".join(f"{level!r} ({kind})" for kind, level in sorted(kinds.items()))
            raise InputError(f"labels of {column} must be of one kind, got {examples}")
        return cls(column, tuple(str(level) if isinstance(level, str) else level for level in levels))

    def __len__(self) -> int:
        return len(self.levels)

    @cached_property
    def _codes(self) -> dict[Any, int]:
        return {level: code for code, level in enumerate(self.levels)}

    def codes(self, labels: Iterable[Any], *, unseen: bool = False) -> npt.NDArray[np.intp]:
        """The number of the level of each label, shape (n,).

        Parameters
        ----------
        labels : iterable
        unseen : bool
            Whether levels that were not seen are allowed; their number is -1.

        Raises
        ------
        InputError
            A missing label, or a level that was not seen: its row and the levels that there are.
        """
        labels = list(labels)
        found = np.fromiter((self._codes.get(label, -1) for label in labels), dtype=np.intp, count=len(labels))
        for row in np.flatnonzero(found < 0):
            if _missing(labels[row]):
                raise InputError(_no_label(self.column, int(row)))
            if not unseen:
                known = ", ".join(map(repr, self.levels[:MOST_SHOWN]))
                more = f" and {len(self) - MOST_SHOWN} more" if len(self) > MOST_SHOWN else ""
                raise InputError(
                    f"{self.column} has level {labels[row]!r} in row {row}, unseen in training; "
                    f"levels were {known}{more}"
                )
        return found

    def indicators(self, records: Records, *, unseen: bool = False) -> FloatArray:
        """One column of 0 and 1 for each level, shape (n, L); of an unseen level, where allowed, zeros."""
        codes = self.codes(records.labels(self.column), unseen=unseen)
        columns = np.zeros((codes.size, len(self)))
        rows = np.flatnonzero(codes >= 0)
        columns[rows, codes[rows]] = 1.0
        return columns


def _missing(label: Any) -> bool:
    if label is None or type(label).__name__ == "NAType":
        return True
    return bool(label != label)  # NaN and NaT


def _kind(label: Any) -> str:
    if isinstance(label, str):
        return "text"
    if isinstance(label, (bool, np.bool_)):
        return "yes or no"
    if isinstance(label, (int, float, np.number)):
        return "number"
    return type(label).__name__


def _first_missing(seen: TrainingSummary, column: str) -> int:
    found: list[int] = seen.over(partial(_missing_rows, column), operator.add)
    return found[0]


def _missing_rows(column: str, block: Records) -> list[int]:
    """The first in the block, if there is one."""
    return [block.first + i for i, label in enumerate(block.labels(column)) if _missing(label)][:1]


def _no_label(column: str, row: int) -> str:
    return f"{column} must have a label in every row, got none in row {row}; leave such rows out or name the level"
