"""Rows of a table whose columns are numbers, labels or curves; and what one pass over the training rows saw of them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any

import numpy as np

from fdadp._common.loaded_later import pd
from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.functional.tables.curve_inputs import Column, Labels
from fdadp.functional.tables.curve_sample import Curves
from fdadp.terms.cycles import Cycle, refuse_other_circle

RECORDS_AT_A_TIME = 4096
"""That are added up at once."""

SAME = 1e-10
"""Share of the largest number by which numbers that are the same may differ."""

LONGEST = 2.0**53
"""From it on, neighbouring whole numbers are the same double."""


def refuse_other_domain(curves: Curves, grid: FloatArray, name: str) -> None:
    """Refuse curves that do not lie on the domain of a grid.

    Raises
    ------
    InputError
        Naming the argument and both domains.
    """
    start, end = grid[0], grid[-1]
    if (np.abs(curves.grid[[0, -1]] - (start, end)) > 1e-6 * (end - start)).any():
        raise InputError(
            f"{name} must lie on the training domain [{start:g}, {end:g}], "
            f"got [{curves.grid[0]:g}, {curves.grid[-1]:g}]"
        )


@dataclass(frozen=True)
class Records:
    """A block of rows of a table.

    Attributes
    ----------
    n : int
        Number of rows.
    columns : mapping of str to Column
    order : mapping of str to tuple
        Of columns of labels whose levels have an order of their own (a categorical): all of them in it.
    first : int
        Number of the first row, for messages: blocks count on.
    index : Index or None
        Labels of the rows of a whole table, where it has any.
    """

    n: int
    columns: Mapping[str, Column] = field(default_factory=dict)
    order: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    first: int = 0
    index: pd.Index[Any] | None = None

    def curves(self, name: str, grid: FloatArray | None = None, period: float | None = None) -> Curves:
        """A column of curves.

        Raises
        ------
        InputError
            No such column, one of numbers or labels, or curves on another domain than that of a training grid. With a
            period they may begin anywhere, but must go round once.
        """
        column = self._column(name, "curves")
        if isinstance(column, Curves):
            if grid is not None and period is not None:
                refuse_other_circle(column, grid, period, name)
            elif grid is not None:
                refuse_other_domain(column, grid, name)
            return column
        raise InputError(f"{name} must hold curves (an FDataGrid, or an array of shape (n, S)), got {_kind(column)}")

    def numbers(self, name: str) -> FloatArray:
        """A column of numbers, shape (n,).

        Raises
        ------
        InputError
            No such column, or one of curves or labels: then the text names the first entry that is no number.
        """
        column = self._column(name, "numbers")
        if isinstance(column, Curves):
            raise InputError(f"{name} must hold numbers, got curves")
        if column.dtype.kind != "f":
            word = _word(column)
            row = word or 0
            got = f"{column[row]!r} in row {self.first + row}" if len(column) else "labels"
            got += "" if word is not None else ": text; pandas.to_numeric makes numbers of it"
            raise InputError(f"{name} must hold numbers, got {got}")
        return column

    def labels(self, name: str) -> Labels:
        """A column as labels, shape (n,): numbers that are whole become Python's integers.

        Raises
        ------
        InputError
            No such column, or one of curves.
        """
        column = self._column(name, "labels")
        if isinstance(column, Curves):
            raise InputError(f"{name} must hold one label a row, got curves")
        if column.dtype.kind != "f":
            return column
        whole = [int(v) if v == np.floor(v) and np.isfinite(v) else float(v) for v in column]
        return np.array(whole, dtype=object)

    def ids(self, name: str) -> Labels:
        """As :meth:`labels`, where levels are learned from them.

        Raises
        ------
        InputError
            Also of numbers so long that neighbours became one.
        """
        labels = self.labels(name)
        if self.is_numbers(name):
            far = np.flatnonzero(np.abs(self.numbers(name)) >= LONGEST)
            if far.size:
                raise InputError(
                    f"{name} must hold text, or whole numbers below 2^53, to be labels, got {labels[far[0]]}: "
                    "longer numbers are rounded, and different ones become one; make them text"
                )
        return labels

    def kind(self, name: str) -> str:
        """``"curves"``, ``"numbers"`` or ``"labels"``."""
        return "curves" if self.is_curves(name) else "numbers" if self.is_numbers(name) else "labels"

    def is_curves(self, name: str) -> bool:
        """Whether a column holds curves."""
        return isinstance(self._column(name, "curves"), Curves)

    def is_numbers(self, name: str) -> bool:
        """Whether a column holds numbers."""
        column = self._column(name, "numbers")
        return not isinstance(column, Curves) and column.dtype.kind == "f"

    def blocks(self, at_a_time: int | None = None) -> Iterator[slice]:
        """Rows, some thousands at a time."""
        return row_blocks(self.n, at_a_time)

    def __getitem__(self, rows: Any) -> Records:
        """The same columns of some rows (a slice, numbers or a mask)."""
        taken = {
            name: replace(c, values=c.values[rows], index=None) if isinstance(c, Curves) else c[rows]
            for name, c in self.columns.items()
        }
        kept = np.arange(self.n)[rows]
        first = int(kept[0]) if isinstance(rows, slice) and rows.step in (None, 1) and len(kept) else 0
        return replace(self, n=len(kept), columns=taken, first=self.first + first, index=None)

    @classmethod
    def together(cls, parts: Sequence[Records]) -> Records:
        """All rows of several blocks of one table."""
        columns: dict[str, Column] = {}
        for name, first in parts[0].columns.items():
            every = [part.columns[name] for part in parts]
            values = np.concatenate([c.values if isinstance(c, Curves) else c for c in every])
            columns[name] = replace(first, values=values, index=None) if isinstance(first, Curves) else values
        order = {name: levels for part in parts for name, levels in part.order.items()}
        return cls(sum(part.n for part in parts), columns, order, parts[0].first)

    def with_columns(self, **columns: Column) -> Records:
        """These rows with more columns."""
        return replace(self, columns={**self.columns, **columns})

    def _column(self, name: str, wanted: str) -> Column:
        if name not in self.columns:
            known = ", ".join(map(str, self.columns)) or "none"
            raise InputError(f"data must have the column {name!r} ({wanted}), got the columns {known}")
        return self.columns[name]


def row_blocks(n: int, at_a_time: int | None = None) -> Iterator[slice]:
    """Slices of n rows, some thousands at a time."""
    step = RECORDS_AT_A_TIME if at_a_time is None else max(at_a_time, 1)
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def _word(labels: Column) -> int | None:
    """Row of the first label that does not read as a number."""
    assert not isinstance(labels, Curves)
    for row, entry in enumerate(labels):
        try:
            float(entry)
        except (TypeError, ValueError):
            return row
    return None


def _kind(column: Column) -> str:
    if isinstance(column, Curves):
        return "curves"
    return "numbers" if column.dtype.kind == "f" else f"labels such as {column[0]!r}" if len(column) else "labels"


@dataclass(frozen=True)
class SeenCurves:
    """What is known of a column of curves: grid (S,), range of its values, mean curve (S,), and that with weights."""

    grid: FloatArray
    range: tuple[float, float]
    mean: FloatArray
    weighted_mean: FloatArray


Over = Callable[..., Any]
"""A pass over rows: what a function makes of each chunk of them, merged."""


@dataclass
class SeenRows:
    """What was seen of some rows, which is merged over all."""

    n: int
    weight: float
    """Sum of the weights of the rows, 1 each where there are none."""
    curves: dict[str, tuple[FloatArray, float, float, FloatArray, FloatArray]]
    """Grid, least and largest value, sum and weighted sum, by column."""
    numbers: dict[str, list[FloatArray]]
    levels: dict[str, set[Any]]
    order: dict[str, tuple[Any, ...]]
    weights: list[FloatArray] = field(default_factory=list)
    """Of the rows, as many as there are."""

    @classmethod
    def of(cls, block: Records, weights: FloatArray | None = None) -> SeenRows:
        """Of a block, and of a weight for each of its rows."""
        each = np.ones(block.n) if weights is None else weights
        found = cls(block.n, float(each.sum()), {}, {}, {}, dict(block.order), [each])
        for name, column in block.columns.items():
            if isinstance(column, Curves):
                v, total = column.values, column.values.sum(axis=0)
                weighted = total if weights is None else weights @ v
                found.curves[name] = column.grid, float(v.min()), float(v.max()), total, weighted
            elif column.dtype.kind == "f":
                found.numbers[name] = [column]
            else:
                found.levels[name] = set(column.tolist())
        return found

    def merge(self, other: SeenRows) -> SeenRows:
        """With what was seen of the rows after these."""
        self.n += other.n
        self.weight += other.weight
        self.order.update(other.order)
        self.weights += other.weights
        for name, (grid, low, high, total, weighted) in other.curves.items():
            none = np.zeros_like(total)
            _, before, above, *sums = self.curves.get(name, (grid, low, high, none, none))
            self.curves[name] = grid, min(low, before), max(high, above), sums[0] + total, sums[1] + weighted
        for name, parts in other.numbers.items():
            self.numbers[name] = [*self.numbers.get(name, ()), *parts]
        for name, levels in other.levels.items():
            self.levels[name] = self.levels.get(name, set()) | levels
        return self

    def all_of(self, over: Over, observed: tuple[IntArray, FloatArray] | None) -> TrainingSummary:
        """What was seen of all rows."""
        curves = {
            name: SeenCurves(grid, (low, high), total / self.n, weighted / (self.weight or 1.0))
            for name, (grid, low, high, total, weighted) in self.curves.items()
        }
        numbers = {name: np.concatenate(parts) for name, parts in self.numbers.items()}
        levels = {name: tuple(in_order(found, self.order.get(name, ()))) for name, found in self.levels.items()}
        return TrainingSummary(self.n, curves, numbers, levels, over, observed, np.concatenate(self.weights))


def _over(
    blocks: Sequence[Records],
    function: Callable[[Records], Any],
    merge: Callable[[Any, Any], Any],
    finish: Callable[[Any], Any] | None = None,
) -> Any:
    value = reduce(merge, map(function, blocks))
    return value if finish is None else finish(value)


def _without_words(name: str, block: Records) -> bool:
    """Refuse labels of which one does not read as a number."""
    return _word(block.columns[name]) is None or _without_text(name, block)


def _without_text(name: str, block: Records) -> bool:
    """Refuse labels."""
    return bool(block.numbers(name).size)


@dataclass(frozen=True)
class TrainingSummary:
    """What one pass over the training rows saw; terms fix their bases by it.

    Attributes
    ----------
    n : int
    curves : mapping of str to SeenCurves
    numbers : mapping of str to ndarray of shape (n,)
        All values of columns of numbers.
    levels : mapping of str to tuple
        Of columns of labels: as a categorical orders them, else sorted (as text where they are of mixed kinds).
    over : callable
        ``over(function, merge, finish=None)`` merges what a function makes of the rows of each chunk, for what a term
        must know beyond this; `finish` is of the merged value, and computed where the rows are.
    observed : (ndarray, ndarray) or None
        Record and point t of every observation, shapes (N,), where these are not all records at all points.
    weights : ndarray of shape (n,) or None
        Of the rows; None: 1.
    t_cycle : Cycle or None
        The circle that the points of the response lie on, as the model says.
    """

    n: int
    curves: Mapping[str, SeenCurves]
    numbers: Mapping[str, FloatArray]
    levels: Mapping[str, tuple[Any, ...]]
    over: Over
    observed: tuple[IntArray, FloatArray] | None = None
    weights: FloatArray | None = None
    t_cycle: Cycle | None = None

    @classmethod
    def of(
        cls,
        blocks: Sequence[Records],
        observed: tuple[IntArray, FloatArray] | None = None,
        weights: FloatArray | None = None,
    ) -> TrainingSummary:
        """See all rows once, block by block, with their weights (n,)."""
        parts, start = [], 0
        for block in blocks:
            parts.append(SeenRows.of(block, None if weights is None else weights[start : start + block.n]))
            start += block.n
        return reduce(SeenRows.merge, parts).all_of(partial(_over, blocks), observed)

    def levels_of(self, name: str) -> tuple[Any, ...]:
        """Levels of a column of labels, or of whole numbers.

        Raises
        ------
        InputError
            No such column, or one of curves.
        """
        if name in self.levels:
            return self.levels[name]
        if name in self.numbers:
            return tuple(in_order(set(Records(self.n, {name: self.numbers[name]}).ids(name).tolist())))
        raise InputError(f"data must have the column {name!r} (labels), got " + self._names())

    def means(self) -> dict[str, Any]:
        """Weighted means: of each column of curves one curve (Curves), of numbers a float, 0 where all are the same."""
        found: dict[str, Any] = {name: Curves(own.weighted_mean[None], own.grid) for name, own in self.curves.items()}
        for name, values in self.numbers.items():
            differ = np.ptp(values) > SAME * np.abs(values).max()
            found[name] = float(np.average(values, weights=self.weights)) if differ else 0.0
        return found

    def curves_of(self, name: str) -> SeenCurves:
        """What was seen of a column of curves.

        Raises
        ------
        InputError
            No such column, or one of numbers or labels.
        """
        if name in self.curves:
            return self.curves[name]
        raise InputError(f"data must have the column {name!r} (curves), got " + self._names())

    def numbers_of(self, name: str) -> FloatArray:
        """All values of a column of numbers, shape (n,).

        Raises
        ------
        InputError
            No such column, or one of curves or labels.
        """
        if name in self.numbers:
            return self.numbers[name]
        if name in self.levels:
            self.over(partial(_without_words, name), operator.or_)  # raises, and names the entry,
            self.over(partial(_without_text, name), operator.or_)  # or says that all of it is text
        raise InputError(f"data must have the column {name!r} (numbers), got " + self._names())

    def observed_numbers(self, name: str) -> FloatArray:
        """A column of numbers once for each observation, (N,); or once for each record, where all have as many."""
        numbers = self.numbers_of(name)
        return numbers if self.observed is None else numbers[self.observed[0]]

    def _names(self) -> str:
        kinds = ((self.curves, "curves"), (self.numbers, "numbers"), (self.levels, "labels"))
        return ", ".join(f"{name} ({kind})" for names, kind in kinds for name in names) or "no columns"


def in_order(levels: Iterable[Any], order: Sequence[Any] = ()) -> Sequence[Any]:
    """Levels as `order` has them, the others sorted after them (by their text where they cannot be compared)."""
    found = set(levels)
    rest = found.difference(order)
    try:
        others = sorted(rest)
    except TypeError:
        others = sorted(rest, key=str)
    return [*(level for level in order if level in found), *others]
