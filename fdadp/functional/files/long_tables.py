"""Long tables, one value a row (id of the curve, point, value), made into curves on the union of their points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fdadp._common.typing import FloatArray
from fdadp.errors import FileFormatError, InputError
from fdadp.functional.tables.axis import numbers_of

MISSING = {"", "na", "nan", "n/a", "null", "none", "nat"}


def check_names(long: Any) -> tuple[str, str, str]:
    """Names of the columns of id, point and value.

    Raises
    ------
    InputError
        Not three different names.
    """
    names = tuple(long) if isinstance(long, Sequence) and not isinstance(long, str) else ()
    if len(names) != 3 or len(set(names)) != 3 or not all(isinstance(name, str) for name in names):
        raise InputError(f'long must be the names of three columns, as ("id", "s", "value"), got {long!r}')
    return names


def curves_of_long(table: Mapping[str, Sequence[Any]], names: tuple[str, str, str], path: Any) -> pd.DataFrame:
    """Make curves of the columns of a long table.

    Parameters
    ----------
    table : mapping
        Columns by name, of equal length; entries are text or numbers.
    names : (str, str, str)
        Columns of id, point and value. Points may be dates or times, as :mod:`fdadp.functional.tables.axis` reads them.
    path : path
        For error messages.

    Returns
    -------
    DataFrame of shape (n, S)
        Curves in the order in which their ids first appear, on the union of all points, NaN where a curve has none.

    Raises
    ------
    FileFormatError
        A column that is not there, an id or a point that is missing, text in numbers, two values of a curve at one
        point; the text says which row.
    """
    absent = [name for name in names if name not in table]
    if absent:
        raise FileFormatError(f"{path} must have columns {', '.join(names)}, got {', '.join(map(str, table))}")
    ids, at, value = (list(table[name]) for name in names)
    if not ids:
        raise FileFormatError(f"{path} must hold curves, got a header row and nothing below it")
    for name, column in zip(names[:2], (ids, at), strict=True):
        gap = next((i for i, entry in enumerate(column) if _is_missing(entry)), None)
        if gap is not None:
            raise FileFormatError(f"{path} must have an entry in column {name!r} of every row, got none in row {gap}")
    values = _numbers(value, names[2], path)
    columns, position = _points(at, names[1], path)
    rows, labels = pd.factorize(pd.Index([i.strip() if isinstance(i, str) else i for i in ids], dtype=object))
    cells = rows * len(columns) + position
    _, first = np.unique(cells, return_index=True)
    if first.size < cells.size:
        k = int(np.setdiff1d(np.arange(cells.size), first)[0])
        raise FileFormatError(f"{path} must have one value a curve and point, got two for {ids[k]!r} at {at[k]!r}")
    curves = np.full((len(labels), len(columns)), np.nan)
    curves[rows, position] = values
    return pd.DataFrame(curves, index=pd.Index(labels.tolist()), columns=columns)


def _is_missing(entry: Any) -> bool:
    return entry is None or entry is pd.NaT or str(entry).strip().lower() in MISSING


def _numbers(column: list[Any], name: str, path: Any) -> FloatArray:
    numbers = np.empty(len(column))
    for i, entry in enumerate(column):
        try:
            numbers[i] = np.nan if _is_missing(entry) else float(entry)
        except (TypeError, ValueError):
            raise FileFormatError(
                f"{path} must hold numbers, got {entry!r} in row {i}, column {name!r}, counted from 0 below the header"
            ) from None
    return numbers


def _points(at: list[Any], name: str, path: Any) -> tuple[pd.Index[Any], Any]:
    """Different points in their order, as labels, and the position of each entry among them."""
    try:
        numbers = np.array([float(entry) for entry in at])
    except (TypeError, ValueError):
        numbers = None
    if numbers is not None:
        points, position = np.unique(numbers, return_inverse=True)
        index: pd.Index[Any] = pd.Index(points)
        return index, position.ravel()
    codes, labels = pd.factorize(pd.Index([e.strip() if isinstance(e, str) else e for e in at], dtype=object))
    try:
        order = np.argsort(numbers_of(labels.tolist(), name), kind="stable")
    except InputError as exc:
        raise FileFormatError(f"{path} must have numbers, dates or times in column {name!r}, got {at[0]!r}") from exc
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    return pd.Index(labels[order].tolist()), rank[codes]
