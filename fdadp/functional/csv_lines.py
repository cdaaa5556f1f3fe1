"""CSV files of private rows: a line is a row, read by itself, and only the first line, the labels, is public.

One odd line changes no other row: a line of another number of fields than the first one is a row of missing entries, a
field in quotes ends with its line, and entries stay the text that they are.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt
import pandas as pd

from fdadp._common.door import advice, argument
from fdadp._common.typing import FloatArray
from fdadp.errors import FileFormatError, InputError
from fdadp.files.regular import check_file
from fdadp.functional.axis import axis_of, is_identifier, is_odd_one, points_after

__all__ = ["CsvLines", "check_dialect", "refuse_semicolons", "refuse_utf16", "with_point"]

ROWS = 8192
"""Rows of a block."""

SEPARATORS = (",", ";", "\t")
_WITH_COMMA = re.compile(r"\s*[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?\s*")

Texts = npt.NDArray[np.object_]


@dataclass(frozen=True)
class CsvLines:
    """A CSV file whose first line was read.

    Attributes
    ----------
    path : Path
    names : tuple of str
        Labels of its columns.
    id : str, optional
        Name of the column that labels rows, where it is known.
    sep, decimal : str
        Between fields, and before the decimals of a number.
    prefix : str, optional
        Of the names of the columns that hold curves, where others stand beside them.
    """

    path: Path
    names: tuple[str, ...]
    id: str | None = None
    sep: str = ","
    decimal: str = "."
    prefix: str | None = None

    @classmethod
    def of(
        cls, path: str | os.PathLike[str], sep: str = ",", decimal: str = ".", prefix: str | None = None
    ) -> CsvLines:
        """Read the first line of a file.

        Raises
        ------
        FileFormatError
            Another suffix than .csv or .csv.gz, no first line, semicolons without ``sep=";"``, or UTF-16.
        FileNotFoundError
            No such file.
        """
        source = Path(path)
        if not source.name.lower().endswith((".csv", ".csv.gz")):
            raise FileFormatError(f"{source} must end in .csv or .csv.gz to be read line by line, in a private fit")
        check_file(source)
        check_dialect(sep, decimal)
        refuse_utf16(source)
        with _text(source) as lines:
            first = next(lines, "")
        refuse_semicolons(source, first, sep)
        names = _fields(first, sep)
        if not any(names):
            raise FileFormatError(f"{source} must start with a line of column labels")
        return cls(source, tuple(name.strip() for name in names), sep=sep, decimal=decimal, prefix=prefix)

    @property
    def labelled(self) -> bool:
        """Whether the first column holds labels of curves, by the labels of columns alone."""
        first, *others = self.names
        odd = self.prefix is None and bool(others) and is_odd_one(first, others)
        return not first or first == self.id or is_identifier(first) or odd

    def grid(self) -> tuple[FloatArray, Any]:
        """Points of curves, and the columns that hold them; raises InputError for labels that are half a grid."""
        if self.prefix is not None:
            return self._part_of(self.prefix)
        start = int(self.labelled)
        names = self.names[start:]
        axis = axis_of(pd.Index(names), str(self.path))
        if axis is None:
            return np.linspace(0, 1, len(names)), slice(start, None)
        return axis.points, slice(None, start - 1 if start else None, -1) if axis.backwards else slice(start, None)

    def _part_of(self, prefix: str) -> tuple[FloatArray, Any]:
        at = [i for i, name in enumerate(self.names) if name.startswith(prefix) and name != prefix]
        if len(at) < 2:
            raise InputError(f"{self.path} must have two columns or more that start with {prefix!r}, got {len(at)}")
        axis = axis_of(points_after([self.names[i] for i in at], prefix), str(self.path))
        if axis is None:
            return np.linspace(0, 1, len(at)), at
        return axis.points, at[::-1] if axis.backwards else at

    def blocks(self) -> Iterator[Texts]:
        """Rows below the first line as text, in blocks of shape (m, columns); None in lines of another length."""
        width = len(self.names)
        with _text(self.path) as lines:
            next(lines, "")
            while block := list(islice(lines, ROWS)):
                rows = np.full((len(block), width), None, dtype=object)
                for i, line in enumerate(block):
                    fields = _fields(line, self.sep)
                    if len(fields) == width:
                        rows[i] = [with_point(f, self.decimal) for f in fields]
                yield rows


@contextmanager
def _text(path: Path) -> Iterator[TextIO]:
    opener: Any = gzip.open if path.name.lower().endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8-sig", errors="replace") as stream:
        yield stream


def check_dialect(sep: Any, decimal: Any) -> None:
    """Refuse other separators and decimal marks than there are; raises InputError."""
    if sep not in SEPARATORS or decimal not in (".", ",") or sep == decimal:
        raise InputError(
            f'sep must be ",", ";" or a tab, and decimal "." or "," and not the same, got {sep!r} and {decimal!r}'
        )


def with_point(field: str, decimal: str) -> str:
    """A field as it is, but a number with a comma before its decimals with a point instead."""
    return field.replace(",", ".") if decimal == "," and _WITH_COMMA.fullmatch(field) else field


def refuse_semicolons(path: Path, first: str, sep: str) -> None:
    """Refuse a first line that has semicolons, or tabs, and no comma; raises FileFormatError, which names the cure."""
    found = next((mark for mark in (";", "\t") if mark in first), None)
    if sep == "," and found is not None and "," not in first:
        what, shell = ("semicolons", "--sep ';'") if found == ";" else ("tabs", "--sep tab")
        cure = advice(f"sep={found!r}", r=f"sep = {found!r}", shell=shell)
        raise FileFormatError(
            f"{path} must have commas between its fields, got {what}. Say {cure}. "
            f"Where numbers have decimal commas, add {argument('decimal', ',')}"
        )


def refuse_utf16(path: Path) -> None:
    """Refuse a file that starts as UTF-16 does; raises FileFormatError."""
    opener: Any = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opener(path, "rb") as stream:
            start = stream.read(2)
    except (OSError, EOFError):  # the reader says what
        return
    if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        raise FileFormatError(f"{path} must be text in UTF-8, got UTF-16: save it as 'CSV UTF-8'")


def _fields(line: str, sep: str) -> list[str]:
    """Fields of one line, none where it cannot be read as such."""
    try:
        return next(csv.reader([line.rstrip("\n")], delimiter=sep), [""])
    except csv.Error:
        return []
