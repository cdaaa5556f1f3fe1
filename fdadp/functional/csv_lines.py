"""CSV files of private rows: a line is a row, read by itself, and only the first line, the labels, is public.

One odd line changes no other row: a line of another number of fields than the first one is a row of missing entries, a
field in quotes ends with its line, and entries stay the text that they are.
"""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt
import pandas as pd

from fdadp._common.typing import FloatArray
from fdadp.errors import FileFormatError
from fdadp.functional.axis import axis_of, is_identifier, is_odd_one

__all__ = ["CsvLines"]

ROWS = 8192
"""Rows of a block."""

Texts = npt.NDArray[np.object_]


@dataclass(frozen=True)
class CsvLines:
    """A CSV file whose first line was read.

    Attributes
    ----------
    path : Path
    names : tuple of str
        Labels of its columns.
    """

    path: Path
    names: tuple[str, ...]

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> CsvLines:
        """Read the first line of a file.

        Raises
        ------
        FileFormatError
            Another suffix than .csv or .csv.gz, or no first line.
        FileNotFoundError
            No such file.
        """
        source = Path(path)
        if not source.name.lower().endswith((".csv", ".csv.gz")):
            raise FileFormatError(f"{source} must end in .csv or .csv.gz to be read line by line, in a private fit")
        if not source.exists():
            raise FileNotFoundError(f"no such file: {source}")
        with _text(source) as lines:
            names = _fields(next(lines, ""))
        if not any(names):
            raise FileFormatError(f"{source} must start with a line of column labels")
        return cls(source, tuple(name.strip() for name in names))

    @property
    def labelled(self) -> bool:
        """Whether the first column holds labels of curves, by the labels of columns alone."""
        first, *others = self.names
        return not first or is_identifier(first) or (bool(others) and is_odd_one(first, others))

    def grid(self) -> tuple[FloatArray, slice]:
        """Points of curves, and the columns that hold them; raises InputError for labels that are half a grid."""
        start = int(self.labelled)
        names = self.names[start:]
        axis = axis_of(pd.Index(names), str(self.path))
        if axis is None:
            return np.linspace(0, 1, len(names)), slice(start, None)
        return axis.points, slice(None, start - 1 if start else None, -1) if axis.backwards else slice(start, None)

    def blocks(self) -> Iterator[Texts]:
        """Rows below the first line as text, in blocks of shape (m, columns); None in lines of another length."""
        width = len(self.names)
        with _text(self.path) as lines:
            next(lines, "")
            while block := list(islice(lines, ROWS)):
                rows = np.full((len(block), width), None, dtype=object)
                for i, line in enumerate(block):
                    fields = _fields(line)
                    if len(fields) == width:
                        rows[i] = fields
                yield rows


@contextmanager
def _text(path: Path) -> Iterator[TextIO]:
    opener: Any = gzip.open if path.name.lower().endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8-sig", errors="replace") as stream:
        yield stream


def _fields(line: str) -> list[str]:
    """Fields of one line, none where it cannot be read as such."""
    try:
        return next(csv.reader([line.rstrip("\n")]), [""])
    except csv.Error:
        return []
