"""What was opened: a table, or a sample of curves, of which only what is public is known; pieces are read on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from fdadp._common.loaded_later import pd
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.functional.containers.row_source import ALONE, Field, Fields, RowChunks, Source, Tasks
from fdadp.functional.tables.curve_sample import Curves, Given, as_grid


class _UnknownLengthError(InputError, TypeError):
    """What ``len`` says of a source that only reading would tell the length of; ``list`` goes on without it."""


class _Opened:
    """What tables and columns have in common."""

    def __init__(self, source: Source, names: Sequence[str]) -> None:
        self.source, self._names = source, tuple(names)

    @property
    def n(self) -> int | None:
        """Number of rows; None where only reading would tell."""
        return self.source.n

    def tables(self) -> Iterator[dict[str, Any]]:
        """Go through the pieces once, each a mapping of columns; empty ones are left out."""
        return self.tables_of(self._names)

    def tables_of(self, names: Sequence[str]) -> Iterator[dict[str, Any]]:
        """The same for some columns."""
        fields = [self.source.field(name) for name in names]
        for piece in self.source.passed():
            table = self.source.table(piece, fields)
            if table and len(next(iter(table.values()))):
                yield table

    def chunks(self, *names: str) -> RowChunks:
        """Columns as tuples for :meth:`fit_chunks` of private fits, and for a :class:`~fdadp.privacy.Cohort`.

        Ids of persons travel with their rows, in the same tuple. Each pass reads anew.
        """
        return RowChunks(self.source, names or self._names)

    def to_delayed(self) -> Tasks:
        """The pieces as ``dask.delayed`` tables, mappings of columns by name, to be read on any worker.

        A private fit of a model of many terms reads their entries instead, as it reads what was opened; other private
        fits take ``chunks(...).to_delayed()``.

        Raises
        ------
        InputError
            A source that can only be gone through as a whole, such as a query.
        """
        return Tasks(self.source, self._names)

    def _whole(self, names: Sequence[str]) -> dict[str, Any]:
        """Columns in memory: of a source without an order all of them at once, and once."""
        held, memory = self.source.held, not self.source.ordered
        if memory and held:
            return {name: held[name] for name in names}
        parts = list(self.tables_of([f.name for f in self.source.columns] if memory else names))
        if not parts:
            raise InputError(f"{self.source.called} must have at least one row, got none")
        found = {name: _together([part.pop(name) for part in parts]) for name in list(parts[0])}
        if memory:
            held.update(found)
        return {name: found[name] for name in names}

    def __repr__(self) -> str:
        rows = "unknown" if self.n is None else self.n
        return f"<{self.source.called}: {', '.join(self._names)}; rows: {rows}>"


class OpenedTable(_Opened):
    """A table that was opened: columns by name, of curves or of one entry a row.

    Iterating goes through pieces, each a mapping of columns, as often as wanted.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source, [field.name for field in source.columns])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self._names

    @property
    def grids(self) -> dict[str, FloatArray]:
        """Points of the columns of curves."""
        return {f.name: f.grid for f in self.source.columns if f.grid is not None}

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __getitem__(self, name: str) -> OpenedCurves | OpenedColumn:
        return (OpenedColumn if self.source.field(name).grid is None else OpenedCurves)(self.source, name)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self.tables()

    def read(self, names: Sequence[str] | None = None) -> dict[str, Any]:
        """All of it, or some columns, as a mapping of columns, from one pass."""
        return self._whole(self._names if names is None else names)

    def entries(self, names: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Go through the pieces once for the kernel: entries of columns as they are."""
        return (dict(zip(names, part, strict=True)) for part in self.chunks(*names))


class OpenedColumn(_Opened):
    """One column that was opened: it has the shape of its rows, where that is known, and slices, which are read."""

    def __init__(self, source: Source, name: str) -> None:
        super().__init__(source, [name])
        self.field = source.field(name)
        self._last: tuple[int, Any] | None = None

    @property
    def name(self) -> str | None:
        """By which the column is known in public."""
        return self.field.given.name

    @property
    def shape(self) -> tuple[int, ...]:
        """Of all rows; there is none where their number is not known."""
        if self.n is None:
            raise AttributeError("the number of rows is not known before they are read")
        return (self.n, *(() if self.field.grid is None else self.field.grid.shape))

    @property
    def ndim(self) -> int:
        """2 of curves, else 1."""
        return 1 if self.field.grid is None else 2

    def __len__(self) -> int:
        if self.n is None:
            raise _UnknownLengthError(
                f"{self.source.called} must be read to know its number of rows: hand over what was opened as it is, "
                "and not within a list or a chunk, or read it first"
            )
        return self.n

    def __iter__(self) -> Iterator[Any]:
        return (table[self._names[0]] for table in self.tables())

    def __getitem__(self, rows: slice) -> Any:
        """Entries of some rows, for the kernel: as they are."""
        if not isinstance(rows, slice):
            raise TypeError(f"rows must be a slice, got {type(rows).__name__}")
        start, stop, step = rows.indices(len(self))
        if step < 0:
            wanted = range(start, stop, step)
            return self[wanted[-1] : wanted[0] + 1][::step] if wanted else self[:0]
        parts, first = [], 0
        for number, size in enumerate(self.source.sizes or ()):
            if size and first < stop and first + size > start:
                parts.append(self._piece(number)[max(start - first, 0) : stop - first])
            first += size
        empty = np.empty((0, *self.shape[1:]))
        return (np.concatenate(parts) if len(parts) > 1 else parts[0] if parts else empty)[::step]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        read = np.concatenate([part for (part,) in self.chunks()] or [np.empty((0, *self.shape[1:]))])
        return read if dtype is None else read.astype(dtype)

    def values(self) -> Any:
        """All entries, as a series where rows have labels."""
        return self._whole(self._names)[self._names[0]]

    def _piece(self, number: int) -> Any:
        """A piece, of which slices one after the other are wanted."""
        last = self._last
        if last is None or last[0] != number:
            assert not callable(self.source.pieces)
            last = self._last = number, self.source.entries(self.source.pieces[number], [self.field])[0]
        return last[1]


class OpenedCurves(OpenedColumn):
    """A sample of curves that was opened: grid and labels of points are known, values are read on demand."""

    @property
    def grid(self) -> FloatArray:
        """Points, shape (S,)."""
        assert self.field.grid is not None
        return self.field.grid

    @property
    def head(self) -> Curves:
        """What is public of the curves, and none of them."""
        f = self.field
        none = np.empty((0, self.grid.size))
        return Curves(none, self.grid, self.source.kind, None, f.labels, f.gridded, f.unit, f.given)

    def read(self, grid: ArrayLike | None = None, name: str = "X", default: FloatArray | None = None) -> Curves:
        """All curves; on `grid` where none was opened with them.

        Raises
        ------
        InputError
            No curves, entries that are no numbers, or another grid than they have.
        """
        curves: Curves = self._whole(self._names)[self._names[0]]
        return on_grid(curves, grid, name, default)


def _held(curves: Curves, fields: Sequence[Field], lenient: bool) -> list[Any]:
    """A piece: curves that are in memory, and their labels."""
    return [curves.values if f.grid is not None else curves.index for f in fields]


def in_memory(curves: Curves) -> OpenedCurves:
    """Curves in memory, as if they had been opened."""
    own = Field(ALONE, None, curves.grid, curves.columns, curves.unit, curves.gridded, given=curves.given or Given())
    rows = None if curves.index is None else Field("", "rows")
    fields = Fields({ALONE: own}, rows, alone=True)
    return OpenedCurves(Source("curves", fields, curves.kind, (partial(_held, curves),), (len(curves),)), ALONE)


def on_grid(curves: Curves, grid: ArrayLike | None, name: str, default: FloatArray | None = None) -> Curves:
    """Curves on a grid that is given beside them, or assumed.

    Raises
    ------
    InputError
        A grid of another length, or another one than they have.
    """
    size = curves.grid.size
    if grid is None:
        fits = default is not None and not curves.gridded and default.size == size
        return replace(curves, grid=default) if fits and default is not None else curves
    points = as_grid(grid, size, f"grid of {name}")
    if curves.gridded and not np.array_equal(points, curves.grid):
        raise InputError(f"grid of {name} must be left out or equal the one that it was opened with")
    return replace(curves, grid=points, gridded=True, unit=curves.unit if curves.gridded else None)


def _together(parts: Sequence[Any]) -> Any:
    """Columns of pieces as one."""
    first = parts[0]
    if len(parts) == 1:
        return first
    if isinstance(first, Curves):
        index = None if first.index is None else first.index.append([part.index for part in parts[1:]])
        given = first.given
        if given is not None and given.rows:
            rows = {name: np.concatenate([part.given.rows[name] for part in parts]) for name in given.rows}
            given = replace(given, rows=rows)
        return replace(first, values=np.concatenate([part.values for part in parts]), index=index, given=given)
    return pd.concat(parts) if isinstance(first, pd.Series) else np.concatenate(parts)


# Columns that were opened, side by side: rows that belong together, whatever pieces they come in.


def pieces_together(columns: Mapping[str, OpenedColumn]) -> Callable[[], Iterator[tuple[Any, ...]]]:
    """Source of tuples of columns that were opened, cut where any of them is.

    Parameters
    ----------
    columns : mapping of str to OpenedColumn
        By the name of the argument.

    Returns
    -------
    callable
        Gives a fresh iterator; one that finds that a column has more rows than another raises InputError.

    Raises
    ------
    InputError
        Columns of several sources, one of which may give its rows in another order each time.
    """
    refuse_unordered(columns)
    first, *others = columns.values()
    if all(other.source is first.source for other in others):
        names = [column.field.name for column in columns.values()]

        def one() -> Iterator[tuple[Any, ...]]:
            for table in first.tables_of(names):
                yield tuple(table[name] for name in names)

        return one
    return lambda: cut_alike([((part,) for part in column) for column in columns.values()], list(columns))


def chunks_together(columns: Mapping[str, OpenedColumn]) -> Iterable[tuple[Any, ...]]:
    """The same for the kernel: entries as they are, in a source that can be gone through many times."""
    refuse_unordered(columns)
    first, *others = columns.values()
    if all(other.source is first.source for other in others):
        return RowChunks(first.source, [column.field.name for column in columns.values()])
    return _Zipped(columns)


class _Zipped:
    def __init__(self, columns: Mapping[str, OpenedColumn]) -> None:
        self._columns = columns

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return cut_alike([iter(column.chunks()) for column in self._columns.values()], list(self._columns))


def refuse_unordered(columns: Mapping[str, OpenedColumn]) -> None:
    """Refuse columns of several sources, one of which has no order of its rows; raises InputError."""
    sources = {id(column.source) for column in columns.values()}
    odd = next((name for name, column in columns.items() if not column.source.ordered), None)
    if len(sources) > 1 and odd is not None:
        raise InputError(
            f"{' and '.join(columns)} must be columns of one table that was opened once, got {odd} of a query of its "
            "own, which may give its rows in another order each time"
        )


def cut_alike(sources: Sequence[Iterator[tuple[Any, ...]]], names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Tuples of columns of several sources as one, cut where any source is.

    Raises
    ------
    InputError
        One source has more rows than another; `names` they are called.
    """
    held: list[Any] = [None] * len(sources)
    while True:
        for i, source in enumerate(sources):
            while held[i] is None or not len(held[i][0]):
                held[i] = next(source, None)
                if held[i] is None:
                    break
        over = [parts is None for parts in held]
        if all(over):
            return
        if any(over):
            raise InputError(f"{' and '.join(names)} must hold the same number of rows, got more in one of them")
        size = min(len(parts[0]) for parts in held)
        yield tuple(rows_of(part, slice(0, size)) for parts in held for part in parts)
        held = [tuple(rows_of(part, slice(size, None)) for part in parts) for parts in held]


def rows_of(part: Any, rows: Any) -> Any:
    """Rows of a part: of curves, of a frame or of an array; `rows` is a slice or numbers of rows."""
    if not isinstance(part, Curves):
        return part.iloc[rows] if hasattr(part, "iloc") else part[rows]
    given = part.given
    if given is not None and given.rows:
        given = replace(given, rows={name: entries[rows] for name, entries in given.rows.items()})
    index = None if part.index is None else part.index[rows]
    return replace(part, values=part.values[rows], index=index, given=given)
