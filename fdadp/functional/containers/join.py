"""Columns that were opened, side by side: rows that belong together, whatever pieces they come in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fdadp.errors import InputError
from fdadp.functional.containers.source import RowChunks
from fdadp.functional.containers.source_table import OpenedColumn
from fdadp.functional.tables.sample import Curves


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
