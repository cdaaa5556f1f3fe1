"""Where the private rows are. Nothing outside ``fdadp.privacy`` opens a vault; a test enforces it.

Every entry is a float64 on its way out, and every id a number, by the rules of :mod:`fdadp.privacy.private_entries`:
entry by entry, for a type that a reader has chosen by looking at the values must not change other people's rows. The
ids of a source of chunks are taken from the very chunks whose rows they name, on each pass anew, for a source may give
its rows in another order, or other rows, the next time. Whoever was not there on the first pass is nobody, and so are
more rows of a person than there were then (``docs/theory/kernel.md#persons``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from fdadp._common.threads import map_stream
from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import FailedReadError, PrivacyError
from fdadp.privacy.joined_tables import Joined
from fdadp.privacy.private_entries import NOBODY, Persons, Table, check_ids, numbers, table
from fdadp.privacy.rows._clipped_sums import leave_out_surplus
from fdadp.privacy.rows._person_row_caps import Keys, by_person, last_keys, row_keys, surplus
from fdadp.privacy.rows._sealed_row_functions import BLOCK, FAILED, RowFunction, Rows, Spec, evaluate, padded, sealed

Block = tuple[Rows, int, IntArray]
"""Arrays padded to BLOCK rows, number of real ones, and the person of each (empty where every row is a person)."""


class Kept:
    """Blocks that are held as long as they fit into `limit` bytes; ``blocks`` is None once they did not."""

    def __init__(self, limit: int) -> None:
        self.blocks: list[Block] | None = []
        self._limit = limit
        self._bytes = 0

    def add(self, block: Block) -> bool:
        """Hold one block more; return whether all are held."""
        self._bytes += sum(a.nbytes for a in (*block[0], block[2]))
        if self.blocks is not None:
            self.blocks.append(block)
        if self._bytes > self._limit:
            self.blocks = None
        return self.blocks is not None


def _is_table(data: Any) -> bool:
    return isinstance(data, Table) or hasattr(data, "shape") or hasattr(data, "iloc")


def as_tables(data: Any) -> tuple[Table, ...] | None:
    """Tables, of one or several; None where the data are chunks."""
    if _is_table(data):
        data = (data,)
    if isinstance(data, tuple | list) and len(data) and all(map(_is_table, data)):
        return tuple(map(table, data))
    return None


def parts_of(chunk: Any) -> tuple[Any, ...]:
    return tuple(chunk) if isinstance(chunk, tuple | list) else (chunk,)


def first_spec(chunks: Any, grouped: bool) -> Spec | None:
    """Shapes of the rows of the first chunk; None where there is no chunk.

    Raises
    ------
    PrivacyError
        The chunk is no tuple of arrays: its types say so.
    FailedReadError
        The source failed, perhaps at somebody's entry. Without its own error.
    """
    chunk, failed = None, False
    try:
        chunk = next(iter(chunks), chunks)
    except KeyboardInterrupt:
        raise
    except BaseException:  # panics of polars are no Exception
        failed = True
    if failed:
        raise FailedReadError(FAILED)
    return None if chunk is chunks else spec_of_chunk(chunk, grouped)


def spec_of_chunk(chunk: Any, grouped: bool) -> Spec:
    """Shapes of the rows of a chunk.

    Raises
    ------
    PrivacyError
        It is no tuple of arrays of equal length.
    """
    spec: Spec = ()
    with contextlib.suppress(Exception):
        parts = parts_of(chunk)
        tables = tuple(map(table, parts[:-1] if grouped else parts))
        spec = spec_of(tables) if tables and all(len(t) == len(tables[0]) for t in tables) else ()
    if spec == ():
        raise PrivacyError(
            "a chunk must be a tuple of arrays of equal length, rows along the first axis; the first one is not"
        )
    return spec


def spec_of(arrays: Any) -> Spec:
    return tuple(tuple(int(k) for k in a.shape[1:]) for a in arrays)


def loaded(private: Table) -> Table:
    rows = private.rows
    plain = private.convert is numbers and isinstance(rows, np.ndarray) and rows.dtype.kind in "biuf"
    masked = isinstance(rows, np.ma.MaskedArray)
    if not private.in_memory or (plain and not masked):
        return private
    return replace(table(private.read()), source=private.source)


_NO_CODES: IntArray = np.empty(0, dtype=np.int64)
_NO_KEYS: Keys = np.empty(0, dtype=np.uint64)
_SLAB = 64 * BLOCK
"""Rows of an array that are converted at once, and loaded where it is not in memory."""
KEPT = 2**28
"""Bytes of a source of chunks that are kept, and of what is derived from one or from arrays that are not in memory:
what fits is read and computed once, all else on each pass. A vault and one derived from it hold at most twice this."""


class Reads:
    """What a vault and those derived from it have read."""

    __slots__ = ("failed", "passes")

    def __init__(self) -> None:
        self.passes, self.failed = 0, False


class Vault:
    """Private rows in memory, on disk or in chunks, and the persons that they belong to.

    Parameters
    ----------
    data : table, tuple of tables of equal length, re-iterable of such tuples (chunks), or Joined
        What :func:`fdadp.privacy.private_entries.table` takes. Arrays that are not in memory are read in slabs.
    groups : sequence of ids, one a row, or True, optional
        A row whose id is missing belongs to nobody and is never used. True: the last part of each chunk are the ids of
        its rows. A sequence goes with chunks only where these are a list, whose order is fixed.
    max_rows : int, optional
        Rows of a person that count at most (:mod:`fdadp.privacy.rows._person_row_caps` says which), of joined rows
        the first; default all of them. The others are nobody's.
    """

    __slots__ = (
        "__chunks",
        "__codes",
        "__function",
        "__grouped",
        "__ids",
        "__joined",
        "__kept",
        "__last_keys",
        "__max_rows",
        "__order",
        "__persons",
        "__persons_in_chunks",
        "__reads",
        "__row_counts",
        "__spec",
        "__tables",
    )
    in_one_place = True
    """Whether tasks may go through the rows more than once."""

    def __init__(self, data: Any, groups: Any = None, max_rows: int | None = None) -> None:
        self.__max_rows = max_rows
        self.__last_keys: tuple[Keys, IntArray] | None = None
        self.__tables: tuple[Table, ...] | None = None
        self.__chunks: Any = None
        self.__function: tuple[Vault, RowFunction, list[tuple[int, ...]]] | None = None
        self.__kept: list[Block] | None = None
        self.__order: IntArray | None = None
        self.__reads = Reads()
        self.__persons: Persons | None = None
        self.__codes: IntArray = _NO_CODES
        self.__row_counts: IntArray | None = None
        self.__grouped, self.__persons_in_chunks = groups is not None, groups is True
        self.__ids: Any = None if groups is None or groups is True else check_ids(groups)
        self.__joined: Joined | None = None
        self.__spec: Spec
        if isinstance(data, Joined):
            if self.__grouped:
                raise PrivacyError("groups must be left out where rows are joined by an id: that is the person")
            self.__joined, self.__grouped = data, True
            self.__spec = data.spec
            return
        tables = as_tables(data)
        if tables is not None:
            if any(t.shape[:1] != tables[0].shape[:1] for t in tables):
                raise PrivacyError("data must be arrays of equal length, rows along the first axis")
            if groups is True:
                raise PrivacyError("groups must be ids, one a row: True is for chunks that bring them along")
            if self.__grouped:
                check_ids(self.__ids, len(tables[0]))
            self.__tables = tables
            self.__spec = spec_of(tables)
            return
        if not isinstance(data, Iterable) or isinstance(data, str | bytes) or iter(data) is data:
            raise PrivacyError(
                "data must be an array, a tuple of arrays, or chunks that can be iterated several times "
                f"(not a generator, which is used up by the first pass), got {type(data).__name__}"
            )
        if self.__ids is not None and not isinstance(data, list | tuple):
            raise PrivacyError(
                "groups must be True, and each chunk end with the ids of its rows: a source of chunks may give its "
                "rows in another order on another pass"
            )
        self.__chunks = data
        spec = first_spec(data, self.__persons_in_chunks)
        if spec is None:
            raise PrivacyError("data must have at least one chunk (it may be empty), which says what a row is")
        self.__spec = spec

    @property
    def spec(self) -> Spec:
        """Shape of one row in each array: public."""
        return self.__spec

    @property
    def passes(self) -> int:
        """How often rows were read through, here and in vaults derived from this one."""
        return self.__reads.passes

    @property
    def failed(self) -> bool:
        """Whether a read has failed, here or in a vault of the same rows."""
        return self.__reads.failed

    def fail(self) -> None:
        """Remember that a read has failed."""
        self.__reads.failed = True

    @property
    def grouped(self) -> bool:
        """Whether several rows may belong to one person."""
        return self.__grouped

    @property
    def row_counts(self) -> IntArray:
        """Rows of each person. Private: for the kernel's own use."""
        if self.__function is not None:
            return self.__function[0].row_counts
        self.__load()
        assert self.__row_counts is not None
        return self.__row_counts.copy()

    def identity(self) -> object:
        """Where the data lie in memory, without reading them: what tells two data sets apart for a Budget."""
        if self.__joined is not None:
            return self.__joined.identity()
        if self.__tables is None:
            return ("chunks", id(self.__chunks))
        sources = [t.source for t in self.__tables]
        where = [getattr(a, "__array_interface__", {"data": (id(a),)})["data"][0] for a in sources]
        return ("arrays", *where)

    def total(self, task: Callable[[Vault], IntArray]) -> IntArray:
        """Integers that a task sums over all persons."""
        return task(self)

    def blocks(self) -> Iterator[Block]:
        """One pass over all rows, in blocks of BLOCK rows of which the last of a chunk is padded with zeros."""
        return ((self.view(rows, m), m, codes) for rows, m, codes in self.source_blocks())

    def source_blocks(self) -> Iterator[Block]:
        """One pass over all rows as their source has them; :meth:`view`, on any thread, makes numbers of them."""
        self.__reads.passes += 1
        self.__load()
        return self.__blocks()

    def __load(self) -> None:
        """On the first read: number the persons, and make numbers, once, of text, labels and frames in memory."""
        if self.__function is not None or (self.__tables is None and not self.__grouped):
            return
        first, joined = self.__grouped and self.__row_counts is None, self.__joined is not None
        if self.__joined is not None:
            arrays, self.__codes = self.__joined.records()
            own = self.__joined.tables
            self.__tables = tuple(replace(table(a), source=t.source) for a, t in zip(arrays, own, strict=True))
            self.__row_counts, self.__joined = np.bincount(self.__codes).astype(np.int64), None
        if self.__grouped and self.__row_counts is None:
            self.__persons = Persons()
            if self.__ids is not None:
                self.__persons.add(self.__ids)
            else:
                for chunk in self.__chunks:
                    self.__persons.add(check_ids(parts_of(chunk)[-1]))
            self.__row_counts = self.__persons.close().row_counts
            if self.__ids is not None:
                self.__codes, self.__ids = self.__persons.codes(self.__ids), None
        if first and self.__max_rows is not None:
            self.__look_for_surplus(self.__max_rows)
        if self.__tables is None:
            return
        self.__tables = tuple(map(loaded, self.__tables))
        if first and self.__max_rows is not None:
            keys = (
                np.arange(len(self.__codes))
                if joined
                else np.concatenate([_NO_KEYS, *(row_keys(a) for a, _ in self.__slabs())])
            )
            self.__codes = surplus(self.__codes, keys, self.__max_rows)
        if self.__grouped and self.__order is None and all(t.in_memory for t in self.__tables):
            # A person's rows one after the other, in their own order: sums stay open for one person only.
            self.__order = np.argsort(self.__codes, kind="stable")

    def __look_for_surplus(self, most: int) -> None:
        """Which rows of persons with many rows count: in chunks those up to a key, which later passes look at."""
        counts = self.__row_counts
        assert counts is not None
        if self.__tables is None:
            found = [(codes, row_keys(arrays)) for arrays, codes in self.__from_chunks()]
            codes, keys = (
                (np.concatenate(parts) for parts in zip(*found, strict=True)) if found else (_NO_CODES, _NO_KEYS)
            )
            self.__last_keys = last_keys(codes, keys, len(counts), most)
        self.__row_counts = np.minimum(counts, most)

    def __blocks(self) -> Iterator[Block]:
        if self.__kept is not None:
            yield from self.__kept
        elif self.__function is not None:
            yield from self.__function[0].__blocks()
        elif self.__chunks is None:
            yield from self.__source()
        else:
            kept = Kept(KEPT)
            for block in self.__source():
                kept.add(block)
                yield block
            self.__kept = kept.blocks

    def __source(self) -> Iterator[Block]:
        for arrays, codes in self.__slabs():
            n = len(arrays[0])
            for start in range(0, n, BLOCK):
                m = min(BLOCK, n - start)
                rows = tuple(a[start : start + m] for a in arrays)  # copied before a function sees them
                if self.__chunks is not None:  # and now: a source may use the memory of a chunk for the next one
                    rows = tuple(map(np.array, rows))
                yield rows if m == BLOCK else padded(rows, self.__spec), m, codes[start : start + m]

    def view(self, rows: Rows, m: int) -> Rows:
        """From a block of source rows to this vault's, by the functions that it was derived with."""
        if self.__function is None or self.__kept is not None:
            return rows
        parent, f, shapes = self.__function
        return evaluate(f, parent.view(rows, m), m, shapes)

    def __slabs(self) -> Iterator[tuple[tuple[FloatArray, ...], IntArray]]:
        """Rows as float64, and their persons."""
        if self.__tables is None:
            yield from self.__from_chunks()
            return
        n = len(self.__tables[0])
        for start in range(0, n, _SLAB):
            at: Any = slice(start, min(start + _SLAB, n))
            if self.__order is not None:
                at = self.__order[at]
            yield tuple(t.convert(t.rows[at]) for t in self.__tables), self.__codes[at] if self.__grouped else _NO_CODES

    def __from_chunks(self) -> Iterator[tuple[tuple[FloatArray, ...], IntArray]]:
        left = None if self.__row_counts is None else self.__row_counts.copy()
        last, equal = self.__last_keys or (None, _NO_CODES)
        equal = equal.copy()  # how many more rows of each person's last key count, on this pass
        at = 0
        for chunk in self.__chunks:
            parts = parts_of(chunk)
            ids = parts[-1] if self.__persons_in_chunks else None
            arrays = tuple(
                table(part, width=shape[0] if len(shape) == 1 else None).read()
                for part, shape in zip(parts if ids is None else parts[:-1], self.__spec, strict=True)
            )
            n = len(arrays[0])
            if spec_of(arrays) != self.__spec or any(len(a) != n for a in arrays):
                raise PrivacyError("a chunk has rows of another shape")
            codes = _NO_CODES
            if left is not None:
                if self.__persons is None or ids is None:
                    codes = self.__codes[at : at + n]
                else:
                    codes = self.__persons.codes(check_ids(ids, n))
                codes = np.append(codes, np.full(n - len(codes), NOBODY))
                if last is not None:
                    keys, own = row_keys(arrays), last[codes]
                    of_last = leave_out_surplus(np.where(keys == own, codes, NOBODY), equal)
                    codes = np.where(keys < own, codes, of_last)
                codes = leave_out_surplus(codes, left)
            yield arrays, codes
            at += n

    def check(self, f: RowFunction, name: str) -> None:
        """Any function will do where it is."""

    def held(self) -> tuple[tuple[FloatArray, ...], IntArray | None]:
        """Rows that are in memory, and the person of each: for another carrier that is as private as this."""
        self.__load()
        assert self.__tables is not None
        return tuple(t.read() for t in self.__tables), self.__codes if self.__grouped else None

    @sealed
    def derive(self, f: RowFunction, shapes: list[tuple[int, ...]]) -> Vault:
        """Make a vault with rows f(row) of the same persons, computed now.

        For data on disk or in chunks they are kept if they fit in :data:`KEPT`, else computed again on each pass.
        So memory stays bounded.
        """
        self.__load()
        new = self.__successor(tuple(shapes))
        if self.__tables is None or not all(t.in_memory for t in self.__tables):
            new.__function = (self, f, shapes)
            kept = Kept(KEPT)
            for block in self.__evaluated(f, shapes):
                if not kept.add(block):
                    break
            new.__kept = kept.blocks
            return new
        arrays = tuple(np.empty((len(self.__tables[0]), *shape)) for shape in shapes)
        at = 0
        for rows, m, _ in self.__evaluated(f, shapes):
            for out, values in zip(arrays, rows, strict=True):
                out[at : at + m] = values[:m]
            at += m
        new.__tables = tuple(map(table, arrays))
        if self.__order is not None:
            new.__codes = self.__codes[self.__order]
            new.__order = np.arange(at)
        return new

    @sealed
    def by_person(self, f: RowFunction, shapes: list[tuple[int, ...]], most: int) -> Vault:
        """Make a vault of one row a person: all of its rows f(row) side by side, at most `most` of them, in memory."""
        self.__load()
        parts = [(tuple(a[:m] for a in rows), codes[:m]) for rows, m, codes in self.__evaluated(f, shapes)]
        empty = tuple(np.zeros((0, *shape)) for shape in shapes)
        arrays = tuple(np.concatenate(own) for own in zip(empty, *(rows for rows, _ in parts), strict=True))
        persons = len(self.row_counts)
        rows = by_person(arrays, np.concatenate([_NO_CODES, *(codes for _, codes in parts)]), persons, most)
        new = self.__successor(tuple((most, *shape) for shape in shapes))
        new.__tables = tuple(map(table, rows))
        new.__codes = new.__order = np.arange(persons)
        new.__row_counts = np.ones(persons, dtype=np.int64)
        return new

    def __successor(self, spec: Spec) -> Vault:
        """A vault of the same persons and reads, still without rows."""
        new = Vault.__new__(Vault)
        new.__kept = None
        new.__tables, new.__chunks, new.__function, new.__order = None, None, None, None
        new.__joined, new.__max_rows, new.__last_keys = None, None, None
        new.__reads, new.__codes, new.__row_counts = self.__reads, self.__codes, self.__row_counts
        new.__grouped, new.__persons_in_chunks, new.__ids, new.__persons = self.__grouped, False, None, None
        new.__spec = spec
        return new

    def __evaluated(self, f: RowFunction, shapes: list[tuple[int, ...]]) -> Iterator[Block]:
        """One pass over the rows f(row)."""

        def computed(block: Block) -> Block:
            rows, m, codes = block
            with np.errstate(all="ignore"):  # which a thread does not inherit
                return evaluate(f, self.view(rows, m), m, shapes), m, codes

        return map_stream(computed, self.source_blocks())

    def __repr__(self) -> str:
        return "<private rows>"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise PrivacyError("private rows cannot be copied or pickled")
