"""Rows of several tables that belong together: by the person's id, and by the visit where tables have one.

Rule J (``docs/theory/kernel.md#join``). Which rows are one person's is a matter of each row's own id. All else is
settled among the rows of that person: what is missing, ambiguous or surplus there changes nothing for anybody else,
and nothing depends on the order of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn

import numpy as np

from fdadp._common.loaded_later import pd
from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import PrivacyError
from fdadp.privacy.private_entries import NO_NUMBER, NOBODY, Table, entries, meaning, persons_of, table

NO_ROW = -1
"""In place of the number of a row: there is none."""

Content = Callable[[int, IntArray], Any]
"""From the number of a table, and numbers of its rows (m,), to what they hold, as an array (m,) that can be sorted:
two rows are equal where these are."""


@dataclass(frozen=True, eq=False)
class Key:
    """Whose each row of a table is, and of which visit.

    Attributes
    ----------
    ids : sequence of shape (n,)
        Of persons, as :func:`~fdadp.privacy.private_entries.persons_of` takes them.
    visits : sequence of shape (n,), optional
        What tells rows of one person apart: a visit, a day, a member of a household.
    """

    ids: Any = field(repr=False)
    visits: Any = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class Matched:
    """Rows that belong together.

    Attributes
    ----------
    rows : tuple of ndarray of shape (m,)
        By table: the row of each record, NO_ROW where it has none.
    persons : ndarray of shape (m,)
        Person of each record, from 0 on, rising.
    differing : tuple of ndarray
        By table: rows that share a key with another row, and differ from it. They are nobody's partner.
    without_id : tuple of ndarray
        By table: rows that are nobody's.
    """

    rows: tuple[IntArray, ...]
    persons: IntArray
    differing: tuple[IntArray, ...]
    without_id: tuple[IntArray, ...]


def joined_rows(keys: Sequence[Key], content: Content, primary: int = 0) -> Matched:
    """Match rows by rule J.

    Parameters
    ----------
    keys : sequence of Key
        One a table.
    content : callable
        Says which rows are equal, and orders them. It is asked about rows that share a key, and about no others.
    primary : int
        The table whose rows are the records: the response's.

    Returns
    -------
    Matched
        Records by person, then visit, then content.
    """
    persons = _persons([key.ids for key in keys])
    visits = _visits([key.visits for key in keys])
    without = tuple(np.flatnonzero(codes == NOBODY) for codes in persons)
    own = _ordered(persons[primary], visits[primary], partial(content, primary))
    rows, differing = [own] * len(keys), [_NONE] * len(keys)
    for k in set(range(len(keys))) - {primary}:
        theirs, ours = visits[k], visits[primary]
        if theirs is None or ours is None:
            theirs = ours = None
        known = _pairs(persons[k], theirs)
        wanted = _pairs(persons[primary], ours)[own]
        rows[k], differing[k] = _partners(wanted, known, partial(content, k))
    numbered = np.unique(persons[primary][own], return_inverse=True)[1].astype(np.int64)
    return Matched(tuple(rows), numbered, tuple(differing), without)


_NONE: IntArray = np.empty(0, dtype=np.int64)


def _ordered(persons: IntArray, visits: IntArray | None, content: Callable[[IntArray], Any]) -> IntArray:
    """Rows of somebody, by person, then visit, then content."""
    rows = np.flatnonzero(persons != NOBODY)
    visit = np.zeros_like(persons) if visits is None else visits
    rows = rows[np.lexsort((visit[rows], persons[rows]))]
    at, when = persons[rows], visit[rows]
    same = (at[1:] == at[:-1]) & (when[1:] == when[:-1])
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    if tied.size:
        group = np.append(0, np.cumsum(~same))[tied]
        rows[tied] = rows[tied][np.lexsort((_ranks(content(rows[tied])), group))]
    return rows


def _partners(wanted: IntArray, known: IntArray, content: Callable[[IntArray], Any]) -> tuple[IntArray, IntArray]:
    """The row that has each wanted key, or NO_ROW; and rows that share a key and differ."""
    rows = np.flatnonzero(known != _NO_PAIR)
    if not rows.size:
        return np.full(wanted.size, NO_ROW, dtype=np.int64), _NONE
    rows = rows[np.argsort(known[rows], kind="stable")]
    pairs, first, counts = np.unique(known[rows], return_index=True, return_counts=True)
    partner, differing = rows[first], _NONE
    shared = np.repeat(counts > 1, counts)
    if shared.any():
        ranks = _ranks(content(rows[shared]))
        group = np.repeat(np.arange(pairs.size), counts)[shared]
        unlike = np.bincount(group, ranks != ranks[np.searchsorted(group, group)], minlength=pairs.size) > 0
        partner[unlike] = NO_ROW
        differing = np.sort(rows[shared][unlike[group]])
    place = np.searchsorted(pairs, wanted).clip(max=pairs.size - 1)
    found = (pairs[place] == wanted) & (wanted != _NO_PAIR)
    return np.where(found, partner[place], NO_ROW), differing


_NO_PAIR = -1


def _pairs(persons: IntArray, visits: IntArray | None) -> IntArray:
    """One number for each key; _NO_PAIR for rows that are nobody's, or of no visit where visits count."""
    if visits is None:
        return np.where(persons == NOBODY, _NO_PAIR, persons)
    return np.where((persons == NOBODY) | (visits == _NO_VISIT), _NO_PAIR, persons * _VISITS + visits)


_NO_VISIT = -1
_VISITS = 2**31
"""More than there are visits."""


def _ranks(contents: Any) -> IntArray:
    return np.unique(contents, return_inverse=True)[1].ravel().astype(np.int64)


def _persons(ids: Sequence[Any]) -> list[IntArray]:
    """Person of each row of each table: the place among all persons, in an order that no row decides, or NOBODY."""
    read = [persons_of(own) for own in ids]
    numbers = np.unique(np.concatenate([whole for whole, _ in read]))
    numbers = numbers[numbers != NO_NUMBER]
    texts = _places({key for _, others in read for key in others.values()}, numbers.size)
    out = []
    for whole, others in read:
        codes = np.where(whole == NO_NUMBER, NOBODY, np.searchsorted(numbers, whole)).astype(np.int64)
        for row, key in others.items():
            codes[row] = texts[key]
        out.append(codes)
    return out


def _visits(columns: Sequence[Any]) -> list[IntArray | None]:
    """Visit of each row of each table that has visits: the place among all visits, or _NO_VISIT."""
    read = [None if column is None else list(map(meaning, entries(column))) for column in columns]
    places = _places({value for values in read if values is not None for value in values} - {None}, 0)
    places[None] = _NO_VISIT
    return [None if values is None else np.array([places[v] for v in values], dtype=np.int64) for values in read]


def _places(keys: set[Any], first: int) -> dict[Any, int]:
    """Numbers of what is no whole number, from `first` on, in an order that is theirs alone."""
    return {key: first + i for i, key in enumerate(sorted(keys, key=_order))}


def _order(key: Any) -> tuple[Any, ...]:
    return (0, key, "") if type(key) is float else (1, 0.0, f"{type(key).__name__}{key!r}")


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
