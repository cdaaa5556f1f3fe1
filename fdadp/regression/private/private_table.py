"""Tables of a private fit: columns as they are, of which only names, shapes and grids are looked at.

What a column is follows from what is public: its shape says whether it holds curves, its entry in ``bounds`` whether it
holds numbers, a pair ``(low, high)``, or labels, a list of levels. Types of entries are never asked: one person's entry
could change them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any, Literal

import numpy as np

from fdadp._common.calling_language import bounds_as
from fdadp._common.loaded_later import pd
from fdadp.errors import InputError, PrivacyError
from fdadp.functional.containers.open_curves import is_foreign, opened
from fdadp.functional.containers.opened_tables import OpenedColumn, OpenedCurves
from fdadp.functional.tables.curve_sample import Curves
from fdadp.functional.tables.row_and_grid_labels import same_rows
from fdadp.privacy import Privacy
from fdadp.privacy.private_entries import labels, number_of, table
from fdadp.private.plan.private_design import curves_column
from fdadp.private.public.column_ranges import Column, LabelColumn, NumberColumn, Range, public_range
from fdadp.private.public.curve_shapes import check_groups, private_curves, public_head
from fdadp.private.public.gaussian_process_prior import PublicPrior
from fdadp.regression.reading.computed_columns import columns_read
from fdadp.regression.reading.label_joins import joined_labels, opened_columns, private_rows, refuse_unknown_length
from fdadp.regression.reading.table_columns import ColumnKinds, ColumnTable, Grids
from fdadp.terms.records import in_order

# What the entry of a column in ``bounds`` says: a range of numbers, or a list of levels.


def levels_of(given: Any, name: str) -> tuple[Hashable, ...]:
    """Public levels of a column of labels.

    Raises
    ------
    PrivacyError
        They are missing, or fewer than two.
    """
    if given is None:
        raise PrivacyError(
            f"bounds must give the public levels of {name}, as in {bounds_as(name, holds='labels')}, got None; levels "
            "taken from the data would not be private (docs/your-csv.md)"
        )
    if isinstance(given, str | bytes | Mapping) or not hasattr(given, "__iter__"):
        raise PrivacyError(f"bounds of {name} must be a list of its levels, got {given!r}")
    levels = tuple(v.item() if isinstance(v, np.generic) else v for v in given)
    if isinstance(given, tuple) and len(levels) == 2 and _is_range(levels):
        raise PrivacyError(
            f"bounds of {name} must be a list of its levels where it holds labels, or (low, high) in numbers where it "
            f"holds numbers, got {given!r}, which looks like a range"
        )
    if len(levels) < 2:
        raise PrivacyError(f"bounds of {name} must have at least two levels, got {list(levels)!r}")
    return levels


def _is_range(pair: tuple[Any, ...]) -> bool:
    """Whether two entries of a tuple, taken for levels, are more likely ends: numbers, also as text, dates, decimals.

    Two numbers next to one another, such as 0 and 1, are levels.
    """
    if all(isinstance(v, bool) for v in pair):
        return False
    if any(isinstance(v, date | np.datetime64 | timedelta | Decimal) for v in pair):
        return True
    low, high = map(number_of, pair)
    return math.isfinite(low) and math.isfinite(high) and high - low != 1


def is_pair(given: Any) -> bool:
    """Whether the bounds of a column are a range of numbers, or else a list of levels."""
    try:
        pair = tuple(given)
    except TypeError:
        return True  # refused as a range, with a text that says so
    numbers = [isinstance(v, Real) and not isinstance(v, bool) for v in pair]
    # With one end open it is refused as a range, too.
    return len(pair) == 2 and any(numbers) and all(is_one or v is None for is_one, v in zip(numbers, pair, strict=True))


@dataclass(frozen=True)
class DeclaredBounds:
    """What was declared of columns: public, apart from the rows.

    Attributes
    ----------
    given : mapping of str
        Of each column ``(low, high)``, or a list of levels.
    """

    given: Mapping[str, Any]

    def bounded(self, name: str) -> bool:
        """Whether bounds were given of a column."""
        return name in self.given

    def range(self, name: str) -> Range:
        """Public range of a column of curves or numbers."""
        return public_range(
            self.given.get(name),
            f"bounds of {name}",
            of=name,
            example=f"{bounds_as(name)}, or a list of levels where it holds labels",
        )

    def classes(self, name: str) -> tuple[Hashable, ...]:
        """The two public classes of a response, in the order of fits without privacy."""
        if self.given.get(name) is None:
            raise PrivacyError(
                f"bounds must give the two public classes of {name}, as in {bounds_as(name, holds='classes')}, got "
                "None; classes taken from the data would not be private"
            )
        levels = levels_of(self.given[name], name)
        if len(levels) != 2 or len(set(levels)) != 2:
            raise PrivacyError(
                f"bounds of {name} must be two distinct classes for family='binomial', got {list(levels)!r}"
            )
        return tuple(in_order(levels))


@dataclass(frozen=True)
class Entries:
    """What the kernel reads of one column.

    Attributes
    ----------
    column : str
    kind : {"curves", "numbers", "labels"}
    levels : tuple
        Public, of labels.
    beside : bool
        Whether it is the response that was given beside the table.
    """

    column: str
    kind: Literal["curves", "numbers", "labels"]
    levels: tuple[Hashable, ...] = ()
    beside: bool = False


class PrivateTable:
    """A table whose rows are the kernel's to read.

    Parameters
    ----------
    data : DataFrame or mapping of columns by name
    grids : mapping of array_like, optional
        Points of curves that are plain arrays.
    bounds : mapping of str
        Of each column ``(low, high)``, or a list of levels.
    y : curves, or column, optional
        The response, where it is no column of `data`.
    """

    def __init__(self, data: Any, grids: Grids | None, bounds: Mapping[str, Any], y: Any = None) -> None:
        if isinstance(data, Mapping) and any(is_foreign(type(column)) for column in data.values()):
            data = opened_columns(data)
        self._table, self._grids, self._bounds = ColumnTable(data, grids), dict(grids or {}), bounds
        self._data, self._y = data, opened(y, "the response") if is_foreign(type(y)) else y
        self.bounds = DeclaredBounds(bounds)

    @property
    def kinds(self) -> Mapping[str, str]:
        """Kind of each column, ``"curves"``, ``"numbers"`` or ``"labels"``, from public things."""
        return ColumnKinds(self.names, self.has, self.kind)

    @property
    def names(self) -> list[str]:
        """Names of all columns."""
        return [str(name) for name in self._table.names]

    def has(self, name: str) -> bool:
        """Whether there is such a column."""
        return self._table.has(name)

    def kind(self, name: str) -> str:
        """What a column is, by its shape and its bounds."""
        raw = self.raw(name)
        grid = self._grids.get(name)
        if _is_curves(raw, name, None if grid is None else np.size(grid)):
            return "curves"
        if name not in self._bounds:
            return "numbers"
        return "numbers" if is_pair(self._bounds[name]) else "labels"

    def raw(self, name: str) -> Any:
        """A column as the user gave it, an FDataGrid in a data frame as itself; of unknown length, no row of it."""
        held = self._table.held(name)
        return stand_in(held)

    def of_unknown_length(self, names: Sequence[str]) -> str | None:
        """The first column, of those that are read for these, whose number of rows only reading would tell."""
        held = {name: self._table.held(name) for name in columns_read(names, self._table.names)}
        return next((name for name, own in held.items() if stand_in(own) is not own), None)

    def curves(self, name: str, raw: Any = None) -> Curves:
        """A column of curves, whose values are a private table."""
        return private_curves(self.raw(name) if raw is None else stand_in(raw), self._grids.get(name), name, empty=True)

    def column(
        self, name: str, at: int, prior: PublicPrior, gaps_of: Callable[[str], str], *, factor: bool
    ) -> tuple[Column, Entries, Curves | None]:
        """A covariate: what is public of it, what is read of it, and the curves that it holds.

        Raises
        ------
        InputError, PrivacyError
            No such column, no bounds or levels, or a shape that does not suit. Nothing was read.
        """
        kind = "labels" if factor else self.kind(name)
        if kind == "curves":
            x = self.curves(name)
            return (
                curves_column(prior, name, at, x.grid, self.bounds.range(name), gaps_of(name)),
                Entries(name, "curves"),
                x,
            )
        if kind == "labels":
            levels = levels_of(self._bounds.get(name), name)
            return LabelColumn(name, at, levels), Entries(name, "labels", levels), None
        return NumberColumn(name, at, self.bounds.range(name)), Entries(name, "numbers"), None

    def numbers(self, name: str, raw: Any = None) -> Any:
        """A column of one number a row."""
        found = table(self.raw(name) if raw is None else raw, name)
        if found.shape[1:] not in ((), (1,)):
            raise InputError(f"{name} must have one number a row, got rows of shape {found.shape[1:]}")
        return found

    def entries(self, asked: Entries) -> Any:
        """A table of one column for the kernel, by its shape alone."""
        raw = stand_in(self._y) if asked.beside else self.raw(asked.column)
        if asked.kind == "curves":
            return self.curves(asked.column, raw).values
        if asked.kind == "labels":
            return labels(raw, asked.levels, asked.column)
        return self.numbers(asked.column, raw)

    def handed(
        self, asked: Sequence[Entries], groups: Any, response: str, *, privacy: Privacy, by: str | None = None
    ) -> tuple[Any, Any]:
        """What a fit hands to the kernel: columns as `asked`, the `response` the last of them, and whose rows they are.

        Parameters
        ----------
        asked : sequence of Entries
        groups : sequence of ids, name of a column, or None
        response : str
        privacy : Privacy
        by : {"label", "position"}, optional
            How rows of several tables belong together.

        Raises
        ------
        InputError
            Columns of different lengths that belong together by position; the text tells none.
        """
        values = tuple(map(self.entries, asked))
        sources, inputs = self._inputs(asked, groups, response)
        labels = joined_labels(by, inputs)
        if labels is None:
            refuse_unknown_length(inputs)
            groups = self.raw(groups) if isinstance(groups, str) else groups
            n_rows = values[-1].shape[0]
            if any(part.shape[0] != n_rows for part in values):
                raise InputError(f"columns and {response} must have the same number of rows")
            if groups is not None:
                check_groups(groups, n_rows)
            if privacy.labels == "public":
                same_rows(**{**inputs, "groups": groups})
            return values, groups
        tables = list(zip(sources, values, strict=True))

        def chunk(j: int, column: Any) -> Any:
            if asked[j].kind == "curves":
                return column
            found = PrivateTable({asked[j].column: column}, None, self._bounds).entries(replace(asked[j], beside=False))
            return replace(found, shape=found.shape[:1], convert=lambda rows: found.convert(rows).reshape(len(rows)))

        return private_rows(labels, tables, groups, privacy, inputs, chunk)

    def _inputs(self, asked: Sequence[Entries], groups: Any, response: str) -> tuple[list[str], dict[str, Any]]:
        """The input that each column is of; and all inputs by name, whose labels say how rows belong together."""
        framed = isinstance(self._data, pd.DataFrame)
        sources = [f"{response}, the response" if one.beside else "data" if framed else one.column for one in asked]
        inputs: dict[str, Any] = {
            source: self._y if one.beside else self._data if framed else self._table.held(one.column)
            for source, one in zip(sources, asked, strict=True)
        }
        named = isinstance(groups, str)
        if groups is not None and not (named and (framed or not self.has(groups))):
            inputs["groups"] = self.raw(groups) if named else groups
        return sources, inputs


def stand_in(column: Any) -> Any:
    """What is public of a column whose number of rows only reading would tell, without a row; all else as it is."""
    if not isinstance(column, OpenedColumn) or column.n is not None:
        return column
    return public_head(column) if isinstance(column, OpenedCurves) else np.empty(0)


def _is_curves(raw: Any, name: str, width: int | None) -> bool:
    if isinstance(raw, Curves) or type(raw).__module__.split(".")[0] == "skfda":
        return True
    shape = table(raw, name, width).shape
    return len(shape) == 2 and shape[1] > 1
