"""Where rows are: pieces of a container, what is public of their columns, and how they become tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import pandas as pd

from fdadp.errors import FdadpError, FileFormatError, InputError
from fdadp.functional.containers.fields import Field, Fields
from fdadp.functional.tables.frames import values_of
from fdadp.functional.tables.kinds import Kind
from fdadp.functional.tables.sample import Curves


class Piece(Protocol):
    """Some rows of a container, one after the other."""

    def __call__(self, fields: Sequence[Field], *, lenient: bool) -> list[Any]:
        """Entries of columns: arrays (m,), or (m, S) of curves, of numbers or of objects.

        Each entry is what it is whatever the others are. A list of another length than its grid is a row without
        values if `lenient`; else an InputError.
        """


@dataclass(frozen=True)
class Source:
    """Where the rows are.

    Attributes
    ----------
    called : str
        For messages.
    fields : Fields
    kind : str
        What curves are given back as.
    pieces : tuple of Piece, or callable
        A function returns pieces for one pass.
    sizes : tuple of int or None
        Rows of each piece, where they are known without reading.
    ordered : bool
        Whether each pass has the rows in the same order.
    for_kernel : callable, optional
        Pieces of one pass of a private fit, where they are others.
    held : dict
        Columns that were read as a whole, where order is not kept.
    """

    called: str
    fields: Fields
    kind: Kind
    pieces: tuple[Piece, ...] | Callable[[], Iterable[Piece]]
    sizes: tuple[int, ...] | None = None
    ordered: bool = True
    for_kernel: Callable[[], Iterable[Piece]] | None = None
    held: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def n(self) -> int | None:
        """Number of rows, where it is known."""
        return None if self.sizes is None else sum(self.sizes)

    def field(self, name: str) -> Field:
        """A column.

        Raises
        ------
        InputError
            None of this name, or one of lists whose length nobody said.
        """
        known = self.fields.columns
        if name not in known:
            raise InputError(f"{self.called} must have the column {name!r}, got {', '.join(known) or 'none'}")
        if known[name].open_length:
            raise InputError(
                f"grids must say how many points {name} has, as in grids={{{name!r}: t}}: its lists may be of any "
                "length, and are not looked at to find it"
            )
        return known[name]

    @property
    def columns(self) -> tuple[Field, ...]:
        """All columns that can be read."""
        return tuple(f for f in self.fields.columns.values() if not f.open_length)

    def passed(self, *, lenient: bool = False) -> Iterable[Piece]:
        """Pieces of one pass, for the kernel if `lenient`."""
        pieces = self.for_kernel if lenient and self.for_kernel is not None else self.pieces
        return pieces() if callable(pieces) else pieces

    def entries(self, piece: Piece, fields: Sequence[Field]) -> list[Any]:
        """Entries of a piece for the kernel, points in increasing order."""
        return [_turned(e, f) for e, f in zip(piece(fields, lenient=True), fields, strict=True)]

    def table(self, piece: Piece, fields: Sequence[Field]) -> dict[str, Any]:
        """Columns of a piece: curves with the labels of their rows, and entries.

        Raises
        ------
        InputError
            Entries of curves that are no numbers, lists of another length.
        FileFormatError
            The piece cannot be read.
        """
        labels = () if self.fields.rows is None else (self.fields.rows,)
        beside = (*labels, *self.fields.coordinates)
        try:
            found = piece((*fields, *beside), lenient=False)
        except (FdadpError, MemoryError, OSError) as exc:
            if isinstance(exc, OSError) and not isinstance(exc, FileNotFoundError):
                raise FileFormatError(f"{self.called} could not be read: {exc}") from exc
            raise
        except Exception as exc:  # libraries raise classes of their own
            raise FileFormatError(f"{self.called} could not be read: {type(exc).__name__}: {exc}") from exc
        own, rest = found[: len(fields)], found[len(fields) :]
        index: Any = rest[0] if labels else None
        if labels and not isinstance(index, pd.Index):
            index = pd.Index(index, name=labels[0].name)
        coordinates = {f.name: e for f, e in zip(self.fields.coordinates, rest[len(labels) :], strict=True)}
        out: dict[str, Any] = {}
        for f, e in zip(fields, own, strict=True):
            if f.grid is not None:
                given = replace(f.given, rows=coordinates)
                values = np.ascontiguousarray(_turned(values_of(e, f.name), f)) if len(e) else np.empty(e.shape)
                out[f.name] = Curves(values, f.grid, self.kind, index, f.labels, f.gridded, f.unit, given)
            else:
                out[f.name] = e if index is None else pd.Series(e, index=index)
        return out


def _turned(entries: Any, field: Field) -> Any:
    return entries[:, ::-1] if field.backwards else entries


@dataclass(frozen=True)
class _Read:
    """A task that reads one piece as a table; it can be sent to another process where the container can."""

    source: Source
    piece: Piece
    columns: tuple[str, ...]

    def _fields(self) -> list[Field]:
        return [self.source.field(name) for name in self.columns]

    def __call__(self) -> dict[str, Any]:
        """Columns by name."""
        return self.source.table(self.piece, self._fields())


class _ReadEntries(_Read):
    """The same for the kernel."""

    def __call__(self) -> dict[str, Any]:
        """Entries by name, as they are."""
        return dict(zip(self.columns, self.source.entries(self.piece, self._fields()), strict=True))


class Tasks(list[Any]):
    """The pieces of a source as ``dask.delayed`` tables, to be read on any worker.

    Raises
    ------
    InputError
        A source that can only be gone through as a whole, such as a query.
    """

    def __init__(self, source: Source, names: Sequence[str]) -> None:
        self._source = source
        super().__init__(self._made(_Read, names))

    def entries(self, names: Sequence[str]) -> list[Any]:
        """Tasks that a private fit reads instead: entries as they are, made numbers of by nobody yet.

        Raises
        ------
        InputError
            A source whose pieces are other ones then, such as CSV text.
        """
        if self._source.for_kernel is not None:
            raise InputError(f"{self._source.called} must be read here in a private fit, line by line: use .chunks()")
        return self._made(_ReadEntries, names)

    def _made(self, task: type[_Read], names: Sequence[str]) -> list[Any]:
        from dask import delayed

        pieces = self._source.pieces
        if callable(pieces):
            raise InputError(f"{self._source.called} must have pieces that can be read by themselves, got a stream")
        return [delayed(task(self._source, piece, tuple(names)), pure=False)() for piece in pieces]


class RowChunks:
    """Tuples of columns for the kernel, read anew on each pass: entries as they are, made numbers of by nobody yet.

    The first tuple is empty and says what a row is, so that nothing is read to find that.
    """

    def __init__(self, source: Source, names: Sequence[str]) -> None:
        self._source, self._fields = source, [source.field(name) for name in names]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        yield tuple(np.empty(0 if f.grid is None else (0, f.grid.size)) for f in self._fields)
        for piece in self._source.passed(lenient=True):  # not before the kernel asks: a query that fails may tell why
            yield tuple(self._source.entries(piece, self._fields))

    def to_delayed(self) -> list[Any]:
        """The tuples as ``dask.delayed`` ones, to be read on any worker.

        Raises
        ------
        InputError
            A source that can only be gone through as a whole, such as a query or CSV text.
        """
        from dask import delayed

        names = [f.name for f in self._fields]
        return [delayed(_in_order, pure=False)(task, names) for task in Tasks(self._source, ()).entries(names)]


def _in_order(entries: dict[str, Any], names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(entries[name] for name in names)
