"""Where the private rows are. Nothing outside ``fdadp.privacy`` opens a vault; a test enforces it.

Every entry is a float64 on its way out, and what is no number is NaN, entry by entry: a dtype that a reader has chosen
by looking at the values (integers become floats where one is missing) must not change other people's rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn, TypeVar

import numpy as np

from fdadp._threads import map_stream
from fdadp._typing import IntArray
from fdadp.errors import PrivacyError
from fdadp.privacy._codes import as_float
from fdadp.privacy._local import BLOCK, RowFunction, Rows, Spec, evaluate, zero_rows

__all__ = ["Block", "Vault"]

Block = tuple[Rows, int, IntArray]
"""Arrays padded to BLOCK rows, number of real ones, and the person of each (empty where every row is a person)."""

T = TypeVar("T")
_NO_CODES: IntArray = np.empty(0, dtype=np.int64)
_SLAB = 64 * BLOCK
"""Rows of an array on disk, or of a lazy one, that are loaded at once."""
KEPT = 2**28
"""Bytes of a source of chunks that are kept, and of what is derived from one or from arrays that are not in memory:
what fits is read and computed once, all else on each pass. A vault and one derived from it hold at most twice this."""


class Vault:
    """Private rows in memory, on disk or in chunks, and the persons that they belong to.

    Parameters
    ----------
    data : array, tuple of arrays of equal length, or re-iterable of such tuples (chunks)
        Arrays that are not NumPy's (memory maps, Dask, HDF5: anything with shape, dtype and slices) are read in slabs.
    persons : sequence of ids, one a row, or function that returns such sequences one after the other, optional
        A row whose id is missing belongs to nobody and is never used. A function is called at the first read.
    """

    __slots__ = (
        "__arrays",
        "__chunks",
        "__codes",
        "__function",
        "__kept",
        "__late_persons",
        "__order",
        "__passes",
        "__row_counts",
        "__spec",
    )

    def __init__(self, data: Any, persons: Any = None) -> None:
        self.__arrays: Rows | None = None
        self.__chunks: Any = None
        self.__function: tuple[Vault, RowFunction, list[tuple[int, ...]]] | None = None
        self.__kept: list[Block] | None = None
        self.__order: IntArray | None = None
        self.__passes = [0]
        self.__codes: IntArray = _NO_CODES
        self.__row_counts: IntArray | None = None
        self.__late_persons: Any = persons if callable(persons) else None
        if hasattr(data, "shape"):
            data = (data,)
        if isinstance(data, tuple | list):  # data frames and series
            data = tuple(a.to_numpy() if hasattr(a, "to_numpy") else a for a in data)
        if isinstance(data, tuple | list) and len(data) and all(hasattr(a, "shape") for a in data):
            self.__arrays = tuple(data)
            if any(len(a.shape) == 0 or a.shape[0] != data[0].shape[0] for a in data):
                raise PrivacyError("data must be arrays of equal length, rows along the first axis")
            self.__spec: Spec = _spec(self.__arrays)
        else:
            if not isinstance(data, Iterable) or isinstance(data, str | bytes) or iter(data) is data:
                raise PrivacyError(
                    "data must be an array, a tuple of arrays, or chunks that can be iterated several times "
                    f"(not a generator, which is used up by the first pass), got {type(data).__name__}"
                )
            self.__chunks = data
            first = next(iter(data), None)  # the shapes of its rows, which are public, and nothing else
            if first is None:
                raise PrivacyError("data must have at least one chunk (it may be empty), which says what a row is")
            self.__spec = _spec(_as_chunk(first))
        if persons is not None and not callable(persons):
            self.__codes, self.__row_counts = _factorise(persons)
            if self.__arrays is not None:
                if len(self.__codes) != self.__arrays[0].shape[0]:
                    raise PrivacyError("persons must have one id for each row of data, got another length")
                if all(isinstance(a, np.ndarray) for a in self.__arrays):
                    # A person's rows one after the other, in their own order: sums stay open for one person only.
                    self.__order = np.argsort(self.__codes, kind="stable")

    @property
    def spec(self) -> Spec:
        """Shape of one row in each array: public."""
        return self.__spec

    @property
    def passes(self) -> int:
        """How often rows were read through, here and in vaults derived from this one."""
        return self.__passes[0]

    @property
    def grouped(self) -> bool:
        """Whether several rows may belong to one person."""
        if self.__function is not None:
            return self.__function[0].grouped
        return self.__row_counts is not None or self.__late_persons is not None

    @property
    def row_counts(self) -> IntArray:
        """Rows of each person. Private: for the kernel's own use."""
        if self.__function is not None:
            return self.__function[0].row_counts
        self.__read_persons()
        assert self.__row_counts is not None
        return self.__row_counts.copy()

    def __read_persons(self) -> None:
        if self.__late_persons is None or self.__row_counts is not None:
            return
        ids: list[Any] = []
        for part in _silently(lambda: map(_as_ids, self.__late_persons())):
            ids += part
        self.__codes, self.__row_counts = _factorise(ids)

    def identity(self) -> object:
        """Where the data lie in memory, without reading them: what tells two data sets apart for a Budget."""
        if self.__arrays is None:
            return ("chunks", id(self.__chunks))
        sources = [getattr(a, "source", a) for a in self.__arrays]  # labels are a view of somebody's column
        where = [getattr(a, "__array_interface__", {"data": (id(a),)})["data"][0] for a in sources]
        return ("arrays", *where)

    def blocks(self) -> Iterator[Block]:
        """One pass over all rows, in blocks of BLOCK rows of which the last of a chunk is padded with zeros."""
        return ((self.view(rows, m), m, codes) for rows, m, codes in self.source_blocks())

    def source_blocks(self) -> Iterator[Block]:
        """Do the same with rows as their source has them: :meth:`view`, on any thread, makes of them what is here."""
        self.__passes[0] += 1
        self.__load()
        return self.__blocks()

    def __load(self) -> None:
        """Read text, labels and other objects in memory once, on the first pass."""
        if self.__arrays is not None:
            self.__arrays = tuple(_loaded(a) for a in self.__arrays)

    def __blocks(self) -> Iterator[Block]:
        if self.__kept is not None:
            yield from self.__kept
        elif self.__function is not None:
            yield from self.__function[0].__blocks()
        elif self.__chunks is None:
            yield from self.__source()
        else:
            kept = _Kept()
            for block in self.__source():
                kept.add(block)
                yield block
            self.__kept = kept.blocks

    def __source(self) -> Iterator[Block]:
        self.__read_persons()
        at = 0
        for chunk in self.__slabs():
            n = len(chunk[0])
            for start in range(0, n, BLOCK):
                m = min(BLOCK, n - start)
                rows = tuple(as_float(a[start : start + m]) for a in chunk)  # copied before a function sees them
                if self.__chunks is not None:  # and now: a source may use the memory of a chunk for the next one
                    rows = tuple(map(np.array, rows))
                yield rows if m == BLOCK else _padded(rows, self.__spec), m, self.__persons(at + start, m)
            at += n

    def view(self, rows: Rows, m: int) -> Rows:
        """From a block of source rows to this vault's, by the functions that it was derived with."""
        if self.__function is None or self.__kept is not None:
            return rows
        parent, f, shapes = self.__function
        return evaluate(f, parent.view(rows, m), m, shapes)

    def __persons(self, start: int, m: int) -> IntArray:
        if not self.grouped:
            return _NO_CODES
        codes = self.__codes if self.__order is None else self.__codes[self.__order[start : start + m]]
        found = codes[start : start + m] if self.__order is None else codes
        # A source that gives more rows than there are ids: the surplus belongs to nobody.
        return np.concatenate([found, np.full(m - len(found), -1, dtype=np.int64)])

    def __slabs(self) -> Iterator[Rows]:
        if self.__arrays is not None:
            n = self.__arrays[0].shape[0]
            for start in range(0, n, _SLAB):
                stop = min(start + _SLAB, n)
                if self.__order is not None:
                    yield tuple(a[self.__order[start:stop]] for a in self.__arrays)
                else:
                    yield tuple(np.asanyarray(a[start:stop]) for a in self.__arrays)
            return
        yield from _silently(lambda: map(self.__checked, self.__chunks))

    def __checked(self, chunk: Any) -> Rows:
        arrays = _as_chunk(chunk)
        if _spec(arrays) != self.__spec:
            raise PrivacyError("a chunk has rows of another shape")
        return arrays

    def derive(self, f: RowFunction, shapes: list[tuple[int, ...]]) -> Vault:
        """Make a vault with rows f(row) of the same persons, computed now.

        For data on disk or in chunks they are kept if they fit in :data:`KEPT`, else computed again on each pass.
        So memory stays bounded.
        """
        new = Vault.__new__(Vault)
        new.__kept = None
        new.__arrays, new.__chunks, new.__function, new.__order = None, None, None, None
        new.__passes, new.__codes, new.__row_counts = self.__passes, self.__codes, self.__row_counts
        new.__late_persons = None
        new.__spec = tuple(shapes)
        self.__load()

        def computed(block: Block) -> Block:
            rows, m, codes = block
            with np.errstate(all="ignore"):  # which a thread does not inherit
                return evaluate(f, self.view(rows, m), m, shapes), m, codes

        if self.__arrays is None or not all(map(_in_memory, self.__arrays)):
            new.__function = (self, f, shapes)
            kept = _Kept()
            for block in map_stream(computed, self.source_blocks()):
                if not kept.add(block):
                    break
            new.__kept = kept.blocks
            return new
        arrays = tuple(np.empty((len(self.__arrays[0]), *shape)) for shape in shapes)
        at = 0
        for rows, m, _ in map_stream(computed, self.source_blocks()):
            for out, values in zip(arrays, rows, strict=True):
                out[at : at + m] = values[:m]
            at += m
        new.__arrays = arrays
        if self.__order is not None:
            new.__codes = self.__codes[self.__order]
            new.__order = np.arange(at)
        return new

    def __repr__(self) -> str:
        return "<private rows>"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise PrivacyError("private rows cannot be copied or pickled")


class _Kept:
    """Blocks that are held as long as they fit; ``blocks`` is None once they did not."""

    def __init__(self) -> None:
        self.blocks: list[Block] | None = []
        self._bytes = 0

    def add(self, block: Block) -> bool:
        """Hold one block more; return whether all are held."""
        self._bytes += sum(a.nbytes for a in (*block[0], block[2]))
        if self.blocks is not None:
            self.blocks.append(block)
        if self._bytes > KEPT:
            self.blocks = None
        return self.blocks is not None


def _padded(rows: Rows, spec: Spec) -> Rows:
    block = zero_rows(spec)
    for full, values in zip(block, rows, strict=True):
        full[: len(values)] = values
    return block


def _as_chunk(chunk: Any) -> Rows:
    parts = chunk if isinstance(chunk, tuple | list) else (chunk,)
    arrays = tuple(np.asanyarray(a) for a in parts)
    if not arrays or any(a.ndim == 0 or len(a) != len(arrays[0]) for a in arrays):
        raise PrivacyError("a chunk must be a tuple of arrays of equal length, rows along the first axis")
    return arrays


def _spec(arrays: Rows) -> Spec:
    return tuple(tuple(int(k) for k in a.shape[1:]) for a in arrays)


def _silently(source: Callable[[], Iterable[T]]) -> Iterator[T]:
    """Go through a source that may fail; what went wrong is not told, neither by message nor by traceback."""
    try:
        yield from source()
    except Exception:
        failed = True
    else:
        failed = False
    if failed:  # the rest of the data is missing, so this sum may not be released
        raise PrivacyError("the source of chunks failed or changed the shape of its rows; the budget is spent")


def _as_ids(part: Any) -> list[Any]:
    ids: list[Any] = np.asarray(part).ravel().tolist()
    return ids


def _in_memory(a: Any) -> bool:
    return isinstance(a, np.ndarray) and not isinstance(a, np.memmap)


def _loaded(values: Any) -> Any:
    if type(values) is np.ndarray and values.dtype.kind not in "biuf":
        return as_float(values)
    return values[:] if getattr(values, "in_memory", False) else values


def _factorise(persons: Any) -> tuple[IntArray, IntArray]:
    """Give each id a number, and each person its number of rows; a missing id is -1. Never raises on an odd id."""
    ids = np.asarray(persons) if hasattr(persons, "shape") else np.array(list(persons), dtype=object)
    if ids.ndim != 1:
        raise PrivacyError(f"persons must be one id for each row, in one dimension, got shape {ids.shape}")
    if ids.dtype.kind in "iubU":
        codes = np.unique(ids, return_inverse=True)[1].astype(np.int64).ravel()
    else:
        seen: dict[Any, int] = {}
        codes = np.empty(len(ids), dtype=np.int64)
        for i, key in enumerate(ids.tolist()):
            try:
                codes[i] = -1 if key is None or key != key else seen.setdefault(key, len(seen))
            except Exception:  # unhashable or incomparable: nobody
                codes[i] = -1
    counts = np.bincount(codes[codes >= 0], minlength=0).astype(np.int64)
    return codes, counts
