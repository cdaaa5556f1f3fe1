"""Whether the rows and grids of several tables belong together: the one place where their labels are compared.

Labels of rows are the index of a data frame or a series, the sample names of a scikit-fda object and the coordinate of
an ``xarray.DataArray``; arrays and lists have none, and are taken by position. An index that pandas made by counting
rows (``RangeIndex`` from 0 in steps of 1) says something only against other row numbers, such as a shuffle, a sort or a
split leaves behind: whole numbers that do not repeat. Against text, dates or ids that repeat it says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from fdadp._common.calling_language import advice
from fdadp._common.loaded_later import pd
from fdadp.errors import InputError
from fdadp.functional.tables.curve_inputs import row_labels
from fdadp.functional.tables.curve_sample import Curves
from fdadp.functional.tables.grid_from_labels import plain_label


def same_rows(**tables: Any) -> None:
    """Refuse tables of the same length whose rows carry other labels, or the same ones in another order.

    Parameters
    ----------
    **tables : table, array or None
        By the name of the argument. What carries no labels is not looked at; lengths are the caller's business.

    Raises
    ------
    InputError
        Names the two arguments and the first labels that differ, and says how to align them or to drop the labels.

    Examples
    --------
    >>> X = pd.DataFrame({"a": [1.0, 2.0]}, index=["Oslo", "Rome"])
    >>> same_rows(X=X, Y=X * 2, groups=[1, 1])
    >>> same_rows(X=X, Y=X.iloc[::-1])
    Traceback (most recent call last):
        ...
    fdadp.errors.InputError: X and Y must have the same row labels in the same order, got 'Oslo' and 'Rome' in row 0 ...
    """
    found = [(name, labels) for name, data in tables.items() if (labels := row_labels(data)) is not None]
    for (a, first), (b, second) in combinations(found, 2):
        if len(first) != len(second):
            continue
        if (_is_count(first) and not _are_row_numbers(second)) or (_is_count(second) and not _are_row_numbers(first)):
            continue
        if not first.equals(second):
            _refuse_difference(a, first, b, second)


def same_grid(**curves: Curves) -> None:
    """Refuse curves that are on other grids, or whose points have the same names in another order.

    Parameters
    ----------
    **curves : Curves
        By the name of the argument, of as many points each. A grid that was only assumed fits any other.

    Raises
    ------
    InputError
        Names the two arguments and the first points that differ.
    """
    for (a, first), (b, second) in combinations(curves.items(), 2):
        if first.gridded and second.gridded:
            _refuse_other_grid(a, first, b, second)
        elif not first.gridded and not second.gridded and first.columns is not None and second.columns is not None:
            same_order(list(first.columns), list(second.columns), b, a)


def same_order(wanted: Sequence[Any], given: Sequence[Any], name: str, other: str) -> None:
    """Refuse column labels that are those of another table in another order; other ones may stand for the same points.

    Raises
    ------
    InputError
        Names the table called `name`, and the first labels that differ.
    """
    left, right = list(map(str, wanted)), list(map(str, given))
    if left != right and sorted(left) == sorted(right):
        j = next(j for j, pair in enumerate(zip(left, right, strict=True)) if pair[0] != pair[1])
        raise InputError(
            f"{name} must have the columns of {other} in the same order, got {right[j]!r} instead of {left[j]!r} at "
            f"position {j}. Align them, as by {name}[labels]"
        )


def _refuse_other_grid(a: str, first: Curves, b: str, second: Curves) -> None:
    if first.unit != second.unit and None not in (first.unit, second.unit):
        raise InputError(f"{b} must be on the grid of {a}, got {second.unit} instead of {first.unit}")
    if first.grid.size != second.grid.size or not np.allclose(
        first.grid, second.grid, rtol=0, atol=1e-9 * float(np.ptp(first.grid))
    ):
        size = min(first.grid.size, second.grid.size)
        j = int(np.argmax(np.abs(first.grid[:size] - second.grid[:size])))
        raise InputError(
            f"{b} must be on the grid of {a}, got {second.grid[j]:g} instead of {first.grid[j]:g} at position {j}"
        )


def _is_count(labels: pd.Index[Any]) -> bool:
    return isinstance(labels, pd.RangeIndex) and labels.start == 0 and labels.step == 1


def _are_row_numbers(labels: pd.Index[Any]) -> bool:
    """Whether labels may be the numbers of rows that were picked from a larger table."""
    plain = isinstance(labels.dtype, np.dtype) and labels.dtype.kind in "iu"
    mixed = labels.dtype == object and len(labels) > 0 and isinstance(labels[0], int | np.integer)
    if not plain and not (mixed and labels.inferred_type == "integer"):
        return False
    return bool(labels.is_unique) and labels.min() >= 0


def _refuse_difference(a: str, first: pd.Index[Any], b: str, second: pd.Index[Any]) -> None:
    left, right = ([_text(label) for label in labels.tolist()] for labels in (first, second))
    differing = (i for i, pair in enumerate(zip(left, right, strict=True)) if pair[0] != pair[1])
    at = next(differing, None)
    if at is None:  # 7 and "7": from two kinds of file
        return
    what = "the same labels in another order" if sorted(left) == sorted(right) else "other labels"
    cure = advice(
        f"Align them, as by {b}.loc[{a}.index] of data frames; or, if rows belong together as they stand, drop the "
        f"labels: {b}.to_numpy()",
        r=f"Put them in one order; or, if rows belong together as they stand, drop the names of rows of {b}",
        shell="Give every file the same column of ids, and join them by --id COLUMN",
    )
    raise InputError(
        f"{a} and {b} must have the same row labels in the same order, got {plain_label(first[at])} and "
        f"{plain_label(second[at])} in row {at} ({what}). {cure}"
    )


def _text(label: Any) -> str:
    """Text by which labels of different types are compared: 7, 7.0 and "7" are the same."""
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label).strip()
