"""Columns of a container by what is public of it: names, numbers of points, grids; no value and no type is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.functional.tables.axis import (
    ONLY_NUMBERED,
    axis_of,
    is_identifier,
    is_odd_one,
    is_only_numbered,
    points_after,
)
from fdadp.functional.tables.kinds import Given
from fdadp.functional.tables.sample import as_grid

ALONE = "curves"
"""Name of the column of a container that holds one sample of curves and nothing else."""
LEAST_POINTS = 3
"""Columns that are labelled by a grid are curves from here on."""


@dataclass(frozen=True)
class Field:
    """One column.

    Attributes
    ----------
    name : str
    source : object
        By which the container knows it: a name, or names of several columns.
    grid : ndarray of shape (S,) or None
        Points of curves; None: one entry a row.
    labels : pandas.Index or None
        Of the points, as the container has them.
    unit : str or None
        Of the grid.
    gridded : bool
        Whether the grid was given, and not assumed.
    backwards : bool
        Whether points decrease in the container, and are turned round with the values.
    open_length : bool
        A column of lists of which nobody said how long they are.
    given : Given
    """

    name: str
    source: Any
    grid: FloatArray | None = None
    labels: pd.Index[Any] | None = None
    unit: str | None = None
    gridded: bool = False
    backwards: bool = False
    open_length: bool = False
    given: Given = field(default_factory=Given)


@dataclass(frozen=True)
class Fields:
    """All columns of a container.

    Attributes
    ----------
    columns : mapping of str to Field
    rows : Field or None
        That labels the rows.
    coordinates : tuple of Field
        That say more of the rows and are no columns.
    alone : bool
        Whether the one column is all there is: a sample of curves, and no table.
    """

    columns: Mapping[str, Field]
    rows: Field | None = None
    coordinates: tuple[Field, ...] = ()
    alone: bool = False


def curve_field(
    name: str,
    source: Any,
    size: int,
    labels: pd.Index[Any] | None = None,
    grid: Any = None,
    given: Given | None = None,
) -> Field:
    """A column of curves; its points are `grid` (their number: even on [0, 1]), or what their labels say.

    Raises
    ------
    InputError
        A grid of another length, or labels that are half a grid.
    """
    given = given or Given(name)
    if grid is not None and not isinstance(grid, int | np.integer):
        return Field(name, source, as_grid(grid, size, f"grid of {name}"), labels, gridded=True, given=given)
    if grid is not None and grid != size:
        raise InputError(f"grid of {name} must have {size} points, as its rows have, got {grid}")
    axis = None if labels is None else axis_of(labels, name)
    if axis is None:
        unit = ONLY_NUMBERED if grid is None and labels is not None and is_only_numbered(labels) else None
        return Field(name, source, as_grid(None, size), labels, unit, given=given)
    return Field(name, source, axis.points, labels, axis.unit, True, axis.backwards, given=given)


def fields_of(
    lists: Mapping[str, int | None],
    *,
    curves: Mapping[str, str | Sequence[Any]] | None = None,
    grids: Mapping[str, ArrayLike | int] | None = None,
    rows: str | None = None,
    stored: Mapping[str, ArrayLike] | None = None,
    whole: bool = False,
    labels: pd.Index[Any] | None = None,
) -> Fields:
    """What the columns of a table are.

    Parameters
    ----------
    lists : mapping of label to int or None
        All columns by their labels: points of a list in each row (0: of open length), None for single entries.
    curves : mapping of str to (prefix, or sequence of labels), optional
        Columns of curves whose points are columns of the table; what follows a prefix are labels of the points.
    grids : mapping of str to (array_like or int), optional
        Points of curves, or how many.
    rows : str, optional
        Column of the labels of rows.
    stored : mapping of str to array_like, optional
        Grids that the container knows of columns of lists.
    whole : bool
        Take a table without columns of lists as one sample of curves, whatever its labels are.
    labels : pandas.Index, optional
        Those of all columns, as they are.

    Raises
    ------
    InputError
        A column that is not there, or twice; grids that do not suit.
    """
    given: dict[str, Any] = dict(grids or {})
    names = list(lists)
    known = {str(name): name for name in names}
    if len(known) < len(names):
        raise InputError("columns of a table must have names that differ")
    if rows is not None and rows not in known:
        raise InputError(f"rows must be a column of the table, got {rows!r}")
    found: dict[str, Field] = {}
    taken: set[Any] = set() if rows is None else {known[rows]}
    for name, wanted in (curves or {}).items():
        sources, labels = _points(name, wanted, names, taken)
        found[name] = curve_field(name, sources, len(sources), labels, given.pop(name, None))
        taken |= set(sources)
    rest = [name for name in names if name not in taken]
    if not found and all(lists[name] is None for name in rest):
        alone = _alone(rest, rows, given, labels, whole=whole)
        if alone is not None:
            sample, labelled = alone
            rows_by = known[rows] if rows is not None else labelled
            return Fields({ALONE: sample}, None if rows_by is None else Field(str(rows_by), rows_by), alone=True)
    for label in rest:
        size, own = lists[label], str(label)
        if own in found:
            raise InputError(f"curves must have names that no column has, got {own!r}")
        if size is None:
            found[own] = Field(own, label)
        else:
            found[own] = _of_lists(own, label, size, given.pop(own, None), (stored or {}).get(own))
    if given:
        raise InputError(f"grids must be of columns of curves, got {next(iter(given))!r}")
    return Fields(found, None if rows is None else Field(rows, known[rows]))


def _points(
    name: str, wanted: str | Sequence[Any], names: Sequence[Any], taken: set[Any]
) -> tuple[tuple[Any, ...], pd.Index[Any]]:
    """Columns of the points of curves, and their labels."""
    if isinstance(wanted, str):
        sources = tuple(n for n in names if str(n).startswith(wanted) and str(n) != wanted)
        labels = list(points_after([str(n) for n in sources], wanted))
    else:
        sources, labels = tuple(wanted), list(wanted)
    odd = [n for n in sources if n not in names or n in taken]
    if odd or len(sources) < 2:
        got = f"{odd[0]!r}" if odd else f"{len(sources)} for {wanted!r}"
        raise InputError(f"curves must name two columns or more of the table for {name}, each once, got {got}")
    return sources, pd.Index(labels)


def _alone(
    names: Sequence[Any], rows: str | None, grids: dict[str, Any], all_labels: pd.Index[Any] | None, *, whole: bool
) -> tuple[Field, Any] | None:
    """The one sample of curves that a table is by the labels of its columns, and the column that labels its rows."""
    label, points = None, list(names)
    if rows is None and len(points) > 1 and (_names_rows(points[0]) or is_odd_one(points[0], points[1:])):
        label, points = points[0], points[1:]
    if len(points) < (1 if whole else LEAST_POINTS):
        return None
    labels = pd.Index(points) if all_labels is None or len(all_labels) != len(points) else all_labels
    try:
        axis = axis_of(labels, ALONE, numbered=whole)
    except InputError:
        if whole:
            raise
        return None
    if axis is None and not whole and not is_only_numbered(labels):
        return None
    return curve_field(ALONE, tuple(points), len(points), labels, grids.pop(ALONE, None), Given()), label


def _names_rows(label: Any) -> bool:
    return is_identifier(label) or label == ""


def _of_lists(name: str, source: Any, size: int, grid: Any, stored: Any) -> Field:
    """A column with a list in each row."""
    if size == 0 and grid is None:
        return Field(name, source, open_length=True)
    if size == 0:
        size = int(grid) if isinstance(grid, int | np.integer) else int(np.size(grid))
    if size == 1:
        raise InputError(f"{name} must have two points a row or more, got lists of one")
    return curve_field(name, source, size, None, stored if grid is None else grid)
