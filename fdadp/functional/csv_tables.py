"""Curves in CSV text: which row and column are labels, and what is a number, as :mod:`fdadp.functional.tables` says."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd

from fdadp._common.typing import FloatArray
from fdadp.errors import FileFormatError, InputError
from fdadp.functional.axis import axis_of, is_identifier, is_moment, is_odd_one, numbers_of, of_columns_beside
from fdadp.functional.csv_lines import refuse_semicolons, with_point
from fdadp.functional.layout import MOST_COLUMNS, TRANSPOSED_HINT, is_long, is_transposed, long_hint, of_long
from fdadp.functional.long_tables import curves_of_long

__all__ = ["column_labels", "cure_of_text", "from_csv", "one_curve_a_row"]

MISSING = {"", "na", "nan", "n/a", "null"}


def from_csv(
    path: Path, stream: TextIO, header: bool, long: tuple[str, str, str] | None, sep: str = ",", decimal: str = "."
) -> pd.DataFrame:
    """One curve a row, from CSV text; raises FileFormatError, which names the line."""
    rows = _rows(stream, sep, decimal)
    line, first = next(rows, (0, []))
    refuse_semicolons(path, ",".join(first) if len(first) > 1 else "".join(first), sep)
    if not line:
        raise FileFormatError(f"{path} must hold curves, got an empty file")
    names = [name.strip() for name in first] if header else [""] * len(first)
    body = rows if header else _chain((line, first), rows)
    fields: list[list[str]] = []
    lines: list[int] = []
    for number, row in body:
        if len(row) != len(first):
            raise FileFormatError(
                f"{path} must have {len(first)} fields in every row as in its first, got {len(row)} in line {number}"
            )
        fields.append(row)
        lines.append(number)
    if not fields:
        raise FileFormatError(f"{path} must hold curves, got a header row and nothing below it")
    if long is not None:
        columns = [list(column) for column in zip(*fields, strict=True)]
        return curves_of_long(dict(zip(names, columns, strict=True)), long, path)
    if len(first) <= MOST_COLUMNS and is_long([_as_numbers(column) for column in zip(*fields, strict=True)]):
        raise FileFormatError(f"{path} must have one curve a row; {long_hint()}")
    labelled = _has_labels(names, [row[0] for row in fields], header)
    start = int(labelled)
    if len(first) == start:
        raise FileFormatError(f"{path} must have at least one column of numbers, got labels only")
    values = np.empty((len(fields), len(first) - start))
    for i, row in enumerate(fields):
        values[i] = _numbers(path, row[start:], lines[i], names[start:], start)
    index = pd.Index([row[0].strip() for row in fields]) if labelled else None
    frame = pd.DataFrame(values, index=index, columns=column_labels(path, names[start:]) if header else None)
    return one_curve_a_row(path, frame)


def _rows(stream: TextIO, sep: str, decimal: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, with their line numbers."""
    reader = csv.reader(stream, delimiter=sep)
    for row in reader:
        if row and not (len(row) == 1 and not row[0].strip()):
            yield reader.line_num, [with_point(field, decimal) for field in row]


def _chain(first: tuple[int, list[str]], rest: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str]]]:
    yield first
    yield from rest


def _has_labels(names: list[str], entries: list[str], header: bool) -> bool:
    if header and (not names[0] or is_identifier(names[0]) or (len(names) > 1 and is_odd_one(names[0], names[1:]))):
        return True
    return not any(_is_number(entry) or entry.strip().lower() in MISSING for entry in entries)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers(path: Path, fields: list[str], line: int, names: list[str], start: int) -> FloatArray:
    try:
        return np.array([float(field) for field in fields])
    except ValueError:
        pass
    numbers = np.empty(len(fields))
    for j, field in enumerate(fields):
        try:
            numbers[j] = math.nan if field.strip().lower() in MISSING else float(field)
        except ValueError:
            name = f" ({names[j]!r})" if names[j] else ""
            raise FileFormatError(
                f"{path} must hold numbers, got {field!r} in line {line}, column {j + start + 1}{name}"
                f"{cure_of_text(names, field, start)}"
            ) from None
    return numbers


def cure_of_text(names: Sequence[Any], entry: Any, labelled: int = 0) -> str:
    """How a table with text among its numbers is read: other columns beside curves, or one value a row."""
    beside = of_columns_beside(names)
    if beside:
        return f". {beside}"
    narrow = len(names) + labelled <= MOST_COLUMNS and (is_moment(entry) or len(names) + labelled == 3)
    return f". {of_long()}" if narrow else ""


def column_labels(path: Path, names: list[str]) -> pd.Index[Any]:
    """Labels of columns, as numbers where they are a grid; raises FileFormatError for half a grid."""
    if not all(map(_is_number, names)):
        try:
            axis_of(pd.Index(names), "the table")
        except InputError as exc:
            raise FileFormatError(f"{path} must hold curves, one a row: {exc}") from exc
        return pd.Index(names)
    grid: FloatArray = np.array([float(name) for name in names])
    steps = np.diff(grid)
    if not np.isfinite(grid).all() or not ((steps > 0).all() or (steps < 0).all()):
        up = (steps > 0).sum() >= (steps < 0).sum()
        j = int(np.argmax(~(steps > 0) if up else ~(steps < 0))) if steps.size else 0
        raise FileFormatError(
            f"{path} must have a decreasing or increasing grid, or words, in its first row, got {names[j]} "
            f"followed by {names[min(j + 1, len(names) - 1)]}; if the file has no header row, say so (--no-header, "
            "header=False)"
        )
    index: pd.Index[Any] = pd.Index(grid)
    return index


def _as_numbers(column: Sequence[str]) -> Any:
    """Float64 where all entries are numbers or missing, else the text."""
    try:
        return np.array([math.nan if c.strip().lower() in MISSING else float(c) for c in column])
    except ValueError:
        return np.array(column, dtype=object)


def one_curve_a_row(path: Path, frame: pd.DataFrame) -> pd.DataFrame:
    """Refuse tables of curves in columns."""
    if axis_of(frame.columns, "the table", numbered=False) is None:  # "p1", "p2", ... may be persons
        index = frame.index
        if index.inferred_type == "string":
            try:
                index = pd.Index(numbers_of(index.tolist(), "labels"))
            except InputError:
                index = pd.RangeIndex(len(index))
        if is_transposed(frame.to_numpy(), index, frame.columns):
            raise FileFormatError(f"{path} must have one curve a row; {TRANSPOSED_HINT}")
    return frame
