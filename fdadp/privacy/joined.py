"""Tables of several sources whose rows the kernel joins by the person's id (``docs/theory/kernel.md#join``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import PrivacyError
from fdadp.privacy.boundary import NO_ROW, Key, Table, joined_rows, table
from fdadp.privacy.boundary.tables import entries


@dataclass(frozen=True, eq=False, repr=False)
class Joined:
    """Private tables, and whose each of their rows is. The kernel joins them when it first reads.

    Attributes
    ----------
    tables : tuple of Table
        In the order in which row functions see them.
    of : tuple of int
        The source of each table, a place in `keys`.
    keys : tuple of Key
        One a source.
    primary : int
        The source whose rows are the records: the response's.
    name : str
        What ledgers call the id.

    Raises
    ------
    PrivacyError
        When made: a table has another length than the ids of its source.
    """

    tables: tuple[Table, ...]
    of: tuple[int, ...]
    keys: tuple[Key, ...]
    primary: int
    name: str = "row label"

    def __post_init__(self) -> None:
        if any(len(own) != len(self.keys[k].ids) for own, k in zip(self.tables, self.of, strict=True)):
            raise PrivacyError("ids must be one for each row of the table that they are of, got another number")

    @property
    def source(self) -> Any:
        """The caller's own object, by which data are known again."""
        return self.tables[0].source

    @property
    def spec(self) -> tuple[tuple[int, ...], ...]:
        """Shape of one row in each table: public."""
        return tuple(tuple(int(k) for k in own.shape[1:]) for own in self.tables)

    def identity(self) -> object:
        """Where the data lie in memory, without reading them."""
        sources = [own.source for own in self.tables]
        where = [getattr(a, "__array_interface__", {"data": (id(a),)})["data"][0] for a in sources]
        return ("arrays", *where)

    def read(self) -> tuple[Sequence[FloatArray], Sequence[Key]]:
        """Numbers of the tables, and the keys of the sources."""
        return [own.read() for own in self.tables], self.keys

    def records(self) -> tuple[tuple[FloatArray, ...], IntArray]:
        """Tables (m, ...) with a row for each record, NaN where it has no partner; and the person of each."""
        values, keys = self.read()

        def content(k: int, rows: IntArray) -> Any:
            return _contents([v[rows] for v, of in zip(values, self.of, strict=True) if of == k], rows.size)

        found = joined_rows(keys, content, self.primary)
        return tuple(_taken(v, found.rows[of]) for v, of in zip(values, self.of, strict=True)), found.persons

    def __repr__(self) -> str:
        return "<private rows>"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise PrivacyError("private rows cannot be copied or pickled")


@dataclass(frozen=True, eq=False, repr=False)
class JoinedChunks(Joined):
    """The same of sources of chunks, each read once and held in memory.

    Attributes
    ----------
    tables : tuple of Table
        An empty one for each column of chunks: its shape says what a row is.
    chunks : tuple of (iterable or None)
        One a source: of tuples of the columns that it has among `tables`, in their order, then the ids of their rows,
        or their labels. None: the source is in memory, as its tables and its key.
    """

    chunks: tuple[Iterable[tuple[Any, ...]] | None, ...] = ()

    def identity(self) -> object:
        """Which sources these are."""
        return ("chunks", *map(id, self._sources()))

    @property
    def source(self) -> Any:
        """The caller's own object, by which data are known again."""
        return self._sources()[self.primary]

    def _sources(self) -> list[Any]:
        known = [self.tables[self.of.index(k)].source if own is None else own for k, own in enumerate(self.chunks)]
        return [getattr(own, "source", own) for own in known]

    def read(self) -> tuple[Sequence[FloatArray], Sequence[Key]]:
        """Numbers of the tables, and the keys of the sources, from one pass over each."""
        parts: list[list[FloatArray]] = [[np.empty((0, *own.shape[1:]))] for own in self.tables]
        keys = []
        for k, source in enumerate(self.chunks):
            own = [j for j, of in enumerate(self.of) if of == k]
            if source is None:
                keys.append(self.keys[k])
                for j in own:
                    parts[j].append(self.tables[j].read())
                continue
            ids, visits = list[Any](), list[Any]()
            for *columns, who in source:
                key = key_of(who)
                rows = entries(key.ids)
                ids.extend(rows)
                visits.extend([] if key.visits is None else entries(key.visits))
                for j, column in zip(own, columns, strict=True):
                    shape = self.tables[j].shape[1:]
                    read = table(column, width=shape[0] if len(shape) == 1 else None).read()
                    if read.shape != (len(rows), *shape):
                        raise PrivacyError("a chunk has rows of another shape")
                    parts[j].append(read)
            keys.append(Key(ids, visits or None))
        return [np.concatenate(own) for own in parts], keys


def key_of(labels: Any) -> Key:
    """Ids of rows: the first level of their labels; the others tell rows of a person apart."""
    if not isinstance(labels, pd.MultiIndex):
        return Key(labels)
    return Key(labels.get_level_values(0), labels.droplevel(0) if labels.nlevels > 1 else None)


def _taken(values: FloatArray, rows: IntArray) -> FloatArray:
    out = np.full((rows.size, *values.shape[1:]), np.nan)
    out[rows != NO_ROW] = values[rows[rows != NO_ROW]]
    return out


def _contents(columns: Sequence[FloatArray], n: int) -> Any:
    """Rows (n,) as bytes, the same for numbers that the kernel does not tell apart."""
    if not columns:
        return np.zeros(n)
    wide = np.concatenate([column.reshape(n, -1) for column in columns], axis=1) + 0.0
    wide[np.isnan(wide)] = np.nan
    return np.ascontiguousarray(wide).view(f"V{8 * wide.shape[1]}").ravel()
