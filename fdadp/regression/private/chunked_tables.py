"""Private tables in chunks: columns by what is declared of them, rows read by the kernel alone.

What a column holds is said by its entry in ``grids`` or ``bounds``, never found by a look at a chunk. What is wrong
with a chunk shows only while it is read, and then the kernel says no more than that the source failed; of a list of
chunks names and shapes are looked at before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from fdadp._common.dask_tasks import is_dask
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.containers.opened_tables import OpenedCurves, OpenedTable, on_grid
from fdadp.functional.containers.row_source import Tasks
from fdadp.functional.tables.curve_sample import Curves, as_grid
from fdadp.functional.tables.row_and_grid_labels import same_rows
from fdadp.privacy import Privacy
from fdadp.privacy.joined_tables import Joined, JoinedChunks, Key
from fdadp.privacy.private_entries import Table, table
from fdadp.privacy.rows._dask_partitions import PrivatePartitions, blocks_of
from fdadp.private.public.curve_shapes import (
    is_irregular,
    is_one_way,
    public_head,
    table_of_irregular,
    values_of,
)
from fdadp.regression.private.private_table import Entries, PrivateTable
from fdadp.regression.reading.chunked_records import blocks_of_dask
from fdadp.regression.reading.computed_columns import row_function
from fdadp.regression.reading.table_columns import Grids

READ = "chunks must be a sequence of tables or a function that returns a fresh iterator (they are read many times)"


class DeclaredTable(PrivateTable):
    """A table that comes in chunks, of which one row of zeros stands for all.

    Parameters
    ----------
    source : sequence of tables, function that returns a fresh iterator over tables, or one table of dask's
        A table is a data frame or a mapping of columns. Also a list of Dask's Delayed, each of a table. Where a client
        of a cluster is active its workers read what is Dask's.
    grids : mapping of array_like, optional
        Points of all columns of curves.
    bounds : mapping of str
        Of each column ``(low, high)``, or a list of levels.

    Raises
    ------
    InputError
        What cannot be read many times. Nothing was read.
    """

    def __init__(self, source: Any, grids: Grids | None, bounds: Mapping[str, Any]) -> None:
        if grids is not None and not isinstance(grids, Mapping):
            raise InputError(f"grids must be points by column, as in dict(X=s, Y=t), got {type(grids).__name__}")
        points = {name: as_grid(grid, np.size(grid), f"grid of {name}") for name, grid in (grids or {}).items()}
        self._opened = source if isinstance(source, OpenedTable) else None
        if self._opened is not None:
            self._heads = {name: self._head(name, points.get(name)) for name in self._opened.grids}
            points |= {name: head.grid for name, head in self._heads.items()}
        public: dict[str, Any] = {name: np.zeros(1) for name in bounds if row_function(str(name)) is None}
        super().__init__(public | {name: np.zeros((1, grid.size)) for name, grid in points.items()}, points, bounds)
        self._given, self._source, self._points = source, _readable(source), points

    def has(self, name: str) -> bool:
        """Whether chunks may have such a column: one that was declared, or whose name is no expression."""
        if self._opened is not None:
            return name in self._opened
        return super().has(name) or (name.isidentifier() and row_function(name) is None)

    def raw(self, name: str) -> Any:
        """Zeros in place of a column."""
        return super().raw(name) if super().has(name) else np.zeros(1)

    def curves(self, name: str, raw: Any = None) -> Curves:
        """A column of curves on its declared grid."""
        if name not in self._points:
            raise InputError(
                f"grids must have the points of {name}, as in grids={{'{name}': t}}, when fitting privately from "
                "chunks, which are not read to find them"
            )
        found = super().curves(name, raw)
        return found if self._opened is None else replace(self._heads[name], values=found.values)

    def _head(self, name: str, grid: FloatArray | None) -> Curves:
        """What is public of a column of curves that was opened."""
        assert self._opened is not None
        column = self._opened[name]
        assert isinstance(column, OpenedCurves)
        return on_grid(public_head(column), grid, name)

    def handed(
        self, asked: Sequence[Entries], groups: Any, response: str, *, privacy: Privacy, by: str | None = None
    ) -> tuple[Any, Any]:
        """Chunks of the columns as `asked`, and of the persons of their rows."""
        given = self._given
        if isinstance(given, JoinedTables):
            if groups not in (None, given.id):
                raise InputError(f"groups must be left out where rows are joined by {given.id}: that is the person")
            columns = [(a.column, self._points[a.column] if a.kind == "curves" else None) for a in asked]

            def read(source: Any, places: Sequence[int]) -> TableChunks:
                return TableChunks(source, [asked[j] for j in places], self._points, self._bounds, given.id)

            return given.joined(columns, read), None
        if self._opened is not None and groups is not None:
            self._opened.source.field(groups)
        source = self._source
        if isinstance(given, Tasks):
            given = given.entries(_columns(asked, groups))
            source = _readable(given)
        chunks = TableChunks(source, asked, self._points, self._bounds, groups, given)
        if isinstance(source, list | tuple):
            chunks.check(labelled=privacy.labels == "public")
        return chunks, None if groups is None else True


class TableChunks:
    """Re-iterable tuples of columns, of which the first is empty and says what a row is.

    Parameters
    ----------
    source : sequence of tables, or function that returns an iterator over tables
    asked : sequence of Entries
    points : mapping of str to ndarray
        Declared grids of curves.
    bounds : mapping of str
    groups : str or None
        Column that gives the person of every row.
    given : object, optional
        What `source` was made of.
    """

    def __init__(
        self,
        source: Any,
        asked: Sequence[Entries],
        points: Mapping[str, FloatArray],
        bounds: Any,
        groups: str | None,
        given: Any = None,
    ) -> None:
        self._given, self._source, self._asked, self._points = given, source, tuple(asked), points
        self._bounds, self._groups = bounds, groups

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        first = [np.empty((0, self._points[a.column].size) if a.kind == "curves" else 0) for a in self._asked]
        yield (*first, *([] if self._groups is None else [[]]))
        for chunk in self._tables():
            yield self.read(chunk)

    def read(self, chunk: Any) -> tuple[Any, ...]:
        """Columns of a table, and the persons of its rows where they are wanted."""
        return self._parts(PrivateTable(chunk, None, self._bounds))

    def on_workers(self) -> PrivatePartitions | None:
        """What workers read, each its own partitions; None where the table is not Dask's."""
        given, names = self._given, None
        if isinstance(given, Mapping) and any(map(is_dask, given.values())):
            names, pieces = tuple(given), blocks_of(list(given.values()))
        elif is_dask(given) and hasattr(given, "to_delayed"):
            pieces = list(given.to_delayed())
        elif isinstance(given, list | tuple) and given and all(map(is_dask, given)):
            pieces = list(given)
        else:
            return None
        spec = tuple((self._points[a.column].size,) if a.kind == "curves" else () for a in self._asked)
        public = TableChunks(None, self._asked, self._points, dict(self._bounds), self._groups)
        return PrivatePartitions(pieces, partial(_read, public, names), spec, self._groups is not None, given)

    def _tables(self) -> Any:
        if isinstance(self._source, OpenedTable):
            return self._source.entries(_columns(self._asked, self._groups))
        return self._source() if callable(self._source) else self._source

    def _parts(self, chunk: PrivateTable) -> tuple[Any, ...]:
        odd = chunk.of_unknown_length(_columns(self._asked, self._groups))
        if odd is not None:
            raise InputError(
                f"{odd} of each chunk must have a known number of rows, got a column that was opened and not read. "
                "Hand over the table that was opened, and no list of it"
            )
        columns = [self._column(chunk, asked) for asked in self._asked]
        return tuple(columns) if self._groups is None else (*columns, chunk.raw(self._groups))

    def _column(self, chunk: PrivateTable, asked: Entries) -> Table:
        if asked.kind != "curves":
            found: Table = chunk.entries(asked)
            return replace(found, shape=found.shape[:1], convert=lambda rows: found.convert(rows).reshape(len(rows)))
        raw, grid = chunk.raw(asked.column), self._points[asked.column]
        return table_of_irregular(raw, grid) if is_irregular(raw) else values_of(raw, grid, asked.column)

    def check(self, *, labelled: bool) -> None:
        """Refuse a list of chunks by names and shapes, and by labels of rows where these are public.

        Raises
        ------
        InputError
            The text tells no number of rows.
        """
        if not self._source:
            raise InputError("chunks must hold at least one table, got none")
        for chunk in self._source:
            table = PrivateTable(chunk, None, self._bounds)
            parts = self._parts(table)
            for asked, part in zip(self._asked, parts, strict=False):
                if asked.kind == "curves" and part.shape[1:] != self._points[asked.column].shape:
                    size = self._points[asked.column].size
                    raise InputError(f"{asked.column} of each chunk must have {size} points a curve, as its grid has")
            if len({len(part) for part in parts}) > 1:
                raise InputError("columns of each chunk must have the same number of rows")
            if labelled and isinstance(chunk, Mapping):
                same_rows(**{str(name): table.raw(name) for name in chunk})


def _read(public: TableChunks, names: Sequence[str] | None, piece: Any) -> tuple[Any, ...]:
    """Columns of a partition; `names` where it is a list of columns."""
    return public.read(piece if names is None else dict(zip(names, piece, strict=True)))


def _columns(asked: Sequence[Entries], groups: str | None) -> list[str]:
    """Names of all columns that are read."""
    return list(dict.fromkeys([*(a.column for a in asked), *([] if groups is None else [groups])]))


def _readable(source: Any) -> Any:
    if isinstance(source, OpenedTable | JoinedTables):
        return source
    if is_dask(source):
        return blocks_of_dask(source)
    if isinstance(source, Mapping) and any(map(is_dask, source.values())):
        if len({len(column) for column in source.values()}) > 1:
            raise InputError("columns must have the same number of rows")
        return blocks_of_dask(source)
    if callable(source):
        if is_one_way(source):
            raise InputError(f"{READ}, got one that returns the same iterator again")
        return source
    if isinstance(source, Iterator):
        raise InputError(f"{READ}, got a one-way {type(source).__name__}")
    if isinstance(source, str | Mapping) or not isinstance(source, Sequence):
        raise InputError(f"{READ}, got {type(source).__name__}")
    if source and all(map(is_dask, source)):
        return lambda: (piece.compute() for piece in source)
    return source


# Sources of chunks, each with a column of ids, whose rows the kernel joins by them.


Chunks = Callable[[], Iterable[Mapping[str, Any]]]


@dataclass(frozen=True)
class JoinedTables:
    """Tables of several sources, such as files, that all have a column of ids.

    Attributes
    ----------
    sources : mapping of str to callable
        By name: gives a fresh iterator over mappings of columns by name, the ids among them.
    names : mapping of str to sequence of str
        Columns of each source: public.
    id : str
        Name of the column of ids.
    """

    sources: Mapping[str, Chunks]
    names: Mapping[str, Sequence[str]]
    id: str

    def joined(
        self,
        asked: Sequence[tuple[str, FloatArray | None]],
        read: Callable[[Chunks, Sequence[int]], Iterable[tuple[Any, ...]]],
    ) -> Joined:
        """What the kernel is handed.

        Parameters
        ----------
        asked : sequence of (str, ndarray or None)
            Columns, and the points of curves. The last one is the response.
        read : callable
            From a source, and the places of its columns among those asked for, to tuples of these and the ids.
        """
        where = [next(source for source, own in self.names.items() if name in own) for name, _ in asked]
        used = list(dict.fromkeys(where))
        of = tuple(map(used.index, where))
        heads = tuple(table(np.empty(0 if grid is None else (0, grid.size))) for _, grid in asked)
        chunks = tuple(read(self.sources[s], [j for j, own in enumerate(where) if own == s]) for s in used)
        return JoinedChunks(heads, of, tuple(Key(()) for _ in used), of[-1], self.id, chunks)
