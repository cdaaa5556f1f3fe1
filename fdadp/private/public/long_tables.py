"""Private long tables, one value a line (id, point, value), as rows of curves at public points.

The row of a person is a function of that person's own lines, and of the points, which are public
(``docs/theory/kernel.md#join``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fdadp._common.loaded_later import pd
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.files.csv_curves import ROWS, CsvLines, Texts
from fdadp.functional.tables.grid_from_labels import points_of
from fdadp.privacy.private_entries import meaning, number_of, person_of


@dataclass(frozen=True)
class LongLines:
    """A long CSV file, of which the first line was read.

    Attributes
    ----------
    lines : CsvLines
    long : (str, str, str)
        Columns of id, point and value.
    labels : tuple of str
        The points, public, as they stand in the file. A line with another point counts for nothing.

    Raises
    ------
    InputError
        When made: a column that is not there, or labels that are no grid of two points or more.
    """

    lines: CsvLines
    long: tuple[str, str, str]
    labels: tuple[str, ...]
    labelled = True
    prefix = None

    def __post_init__(self) -> None:
        absent = next((name for name in self.long if name not in self.lines.names), None)
        if absent is not None:
            raise InputError(
                f"--long must name columns of {self.path}, which has {', '.join(self.lines.names)}, got {absent!r}"
            )
        self.grid()

    @property
    def path(self) -> Path:
        """The file."""
        return self.lines.path

    @property
    def id(self) -> str:
        """Name of the column of ids."""
        return self.long[0]

    @property
    def names(self) -> tuple[str, ...]:
        """Labels of the columns of :meth:`blocks`."""
        return (self.id, *self.labels)

    def grid(self) -> tuple[FloatArray, Any]:
        """Points of curves, and the columns that hold them; raises InputError for labels that are no grid."""
        axis = None if len(self.labels) < 2 else points_of(pd.Index(self.labels), "--grid")
        if axis is None:
            raise InputError(f"--grid must be two points or more, got {', '.join(self.labels)!r}")
        return axis.points, slice(None, 0, -1) if axis.backwards else slice(1, None)

    def blocks(self) -> Iterator[Texts]:
        """Id and curve of each person, in blocks (m, 1 + points).

        A point has the number that the person's lines give it. It is NaN where they give none, or two that differ.
        """
        columns = [self.lines.names.index(name) for name in self.long]
        at = {meaning(label): j for j, label in enumerate(self.labels)}
        ids: dict[Any, Any] = {}
        curves: dict[Any, FloatArray] = {}
        differing: set[tuple[Any, int]] = set()
        for block in self.lines.blocks():
            for id, point, entry in block[:, columns]:
                person, value, j = person_of(id), number_of(entry), at.get(meaning(point))
                if person is None:
                    continue
                curve = curves.get(person)
                if curve is None:
                    ids[person], curve = id, np.full(len(self.labels), np.nan)
                    curves[person] = curve
                if j is None or np.isnan(value):
                    continue
                if not np.isnan(curve[j]) and curve[j] != value:
                    differing.add((person, j))
                curve[j] = value
        for person, j in differing:
            curves[person][j] = np.nan
        persons = list(curves)
        for start in range(0, len(persons), ROWS):
            part = persons[start : start + ROWS]
            rows = np.empty((len(part), 1 + len(self.labels)), dtype=object)
            rows[:, 0] = [ids[person] for person in part]
            rows[:, 1:] = [curves[person] for person in part]
            yield rows
