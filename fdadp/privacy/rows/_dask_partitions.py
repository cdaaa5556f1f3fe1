"""Private rows on a cluster, in partitions that Dask's workers read; and where rows are kept, there or here.

*On workers*: rows of a partition, all rows of a person brought together, and the functions that are sent there.

What travels between workers shows nothing of itself. What is sent to them, row functions and readers, may hold public
and released values only: never a budget, noise, or rows.

*Sums.* Each partition is one local vault, whose exact sums are added in a tree.
To the caller's process come integers and one digest of the rows, nothing else; noise is drawn there
(``docs/theory/kernel.md#partitions``). Dask may move parts between workers, spill them to disk, or compute them again.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from fdadp._common.dask_tasks import active_client, computed, is_dask, merged
from fdadp._common.threads import one_thread
from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import FailedReadError, PrivacyError
from fdadp.privacy.account.budget import Account, Budget
from fdadp.privacy.private_entries import NO_NUMBER, NOBODY, Table, check_ids, persons_of, table
from fdadp.privacy.rows._person_row_caps import row_keys, surplus
from fdadp.privacy.rows._sealed_row_functions import FAILED, RowFunction, Spec, sealed, silence
from fdadp.privacy.rows._vault import Vault, as_tables, parts_of, spec_of, spec_of_chunk


@dataclass(frozen=True)
class PrivatePartitions:
    """Private rows in partitions, before anything was read.

    Attributes
    ----------
    pieces : sequence of (Delayed or list of Delayed)
        What `read` gets of each partition.
    read : callable
        Sent to the workers: from a piece to its tables, and to the ids of its rows after them where it is `grouped`.
    spec : tuple of shapes
        Of a row in each table: public.
    grouped : bool
        Whether several rows may belong to a person.
    source : object
        The caller's own, by which a budget knows the data again.
    """

    pieces: Sequence[Any] = field(repr=False)
    read: Callable[[Any], Sequence[Any]]
    spec: tuple[tuple[int, ...], ...]
    grouped: bool
    source: Any = field(repr=False)


def blocks_of(columns: Sequence[Any]) -> list[list[Any]]:
    """Pieces of columns of one length, such as Dask's arrays of known chunks, in the row chunks of the first of those.

    Parameters
    ----------
    columns : sequence of (dask array, or sliceable)
        At least one of them a Dask array. What is in memory is cut alike.
    """
    sizes = next(c for c in columns if is_dask(c)).chunks[0]
    ends = [0, *np.cumsum(sizes).tolist()]
    cut = []
    for column in columns:
        if is_dask(column):
            whole = {axis: -1 for axis in range(1, column.ndim)}
            cut.append(list(column.rechunk({0: sizes, **whole}).to_delayed().ravel()))
        else:
            rows = column.iloc if hasattr(column, "iloc") else column
            cut.append([rows[start:stop] for start, stop in pairwise(ends)])
    return [list(piece) for piece in zip(*cut, strict=True)]


MOST_BUCKETS = 128
"""Parts of a data set with persons: as many as there were partitions, up to this many."""
_DIGEST = 16
_WEYL, _FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)


# ------------------------------------------------------------------ what is sent


class Sent:
    """A function on its way to workers, as bytes.

    Raises
    ------
    PrivacyError
        It holds a budget, a source of noise or private rows.
    """

    __slots__ = ("_bytes",)

    def __init__(self, function: Any) -> None:
        import cloudpickle  # comes with dask

        class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
            def persistent_id(self, held: Any) -> None:
                noise = hasattr(type(held), "prepare") and hasattr(type(held), "description")
                if noise or isinstance(held, Budget | Account | Table | VaultPart | RowsOnTheWay):
                    raise PrivacyError(f"a row function must not hold a {type(held).__name__}")

        with io.BytesIO() as out:
            Pickler(out).dump(function)
            self._bytes = out.getvalue()

    def __call__(self) -> Any:
        import cloudpickle

        return cloudpickle.loads(self._bytes)

    def __repr__(self) -> str:
        return "<function of private rows>"


# ------------------------------------------------------------------ what travels between workers


class _Silent:
    """Private rows that may go from worker to worker, as private there as they were."""

    __slots__ = ()

    def _arrays(self) -> Iterable[Any]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return "<private rows>"

    def __sizeof__(self) -> int:  # by which Dask decides where it puts them
        return object.__sizeof__(self) + sum(int(a.nbytes) for a in self._arrays())


class RowsOnTheWay(_Silent):
    """Rows on the way to the part where all rows of their persons come together.

    Parameters
    ----------
    arrays : tuple of ndarray
    whole : ndarray of shape (m,)
        Ids that are whole numbers; ``NO_NUMBER`` elsewhere.
    others : dict of int to object
        Other ids, by row.
    """

    __slots__ = ("arrays", "others", "whole")

    def __init__(self, arrays: tuple[FloatArray, ...], whole: IntArray, others: dict[int, Any]) -> None:
        self.arrays, self.whole, self.others = arrays, whole, others

    def _arrays(self) -> Iterable[Any]:
        return (*self.arrays, self.whole)

    def __reduce__(self) -> Any:
        return RowsOnTheWay, (self.arrays, self.whole, self.others)


class VaultPart(_Silent):
    """Rows of which a worker makes a vault, and all rows of their persons.

    Parameters
    ----------
    arrays : tuple of ndarray
    codes : ndarray of shape (m,), optional
        Person of each row.
    digest : bytes, optional
        By which rows are told from others; default: of these.
    """

    __slots__ = ("_vault", "arrays", "codes", "digest")

    def __init__(self, arrays: tuple[FloatArray, ...], codes: IntArray | None, digest: bytes | None = None) -> None:
        self.arrays, self.codes = arrays, codes
        self.digest = _digest((*arrays, *([] if codes is None else [codes]))) if digest is None else digest
        self._vault: Vault | None = None

    @property
    def vault(self) -> Vault:
        """A vault of them, here."""
        if self._vault is None:
            self._vault = Vault(self.arrays, self.codes)
        return self._vault

    def _arrays(self) -> Iterable[Any]:
        return self.arrays if self.codes is None else (*self.arrays, self.codes)

    def __reduce__(self) -> Any:
        return VaultPart, (self.arrays, self.codes, self.digest)


def _digest(arrays: Iterable[npt.NDArray[Any]]) -> bytes:
    found = hashlib.blake2b(digest_size=_DIGEST)
    for a in arrays:
        found.update(str(a.shape).encode())
        found.update(np.ascontiguousarray(a).data.cast("B") if a.size else b"")
    return found.digest()


def read_piece(read: Callable[[Any], Sequence[Any]], piece: Any, spec: Spec, grouped: bool) -> VaultPart | RowsOnTheWay:
    """Rows of a partition as float64, by the rules of the boundary, and who they are of."""
    parts = tuple(read(piece))
    ids = parts[-1] if grouped else None
    given = parts[:-1] if grouped else parts
    arrays = tuple(
        np.ascontiguousarray(table(part, width=shape[0] if len(shape) == 1 else None).read())
        for part, shape in zip(given, spec, strict=True)
    )
    n = len(arrays[0])
    if spec_of(arrays) != spec or any(len(a) != n for a in arrays):
        raise PrivacyError("a partition has rows of another shape")
    return RowsOnTheWay(arrays, *persons_of(check_ids(ids, n))) if grouped else VaultPart(arrays, None)


# ------------------------------------------------------------------ the shuffle


def bucket_count(partitions: int) -> int:
    """Number of parts that the rows of so many partitions are shuffled to: public."""
    return min(partitions, MOST_BUCKETS)


def scattered(piece: RowsOnTheWay, buckets: int) -> tuple[RowsOnTheWay, ...]:
    """Rows by the hash of their person's id, which is public and fixed; those of nobody are left out."""
    at = _mixed(piece.whole)
    for row, person in piece.others.items():
        text = json.dumps(person).encode("ascii")
        at[row] = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
    bucket = (at % np.uint64(buckets)).astype(np.int64)
    somebody = piece.whole != NO_NUMBER
    somebody[list(piece.others)] = True
    out = []
    for b in range(buckets):
        rows = np.flatnonzero(somebody & (bucket == b))  # in their order
        others = {}
        if piece.others:
            others = {k: piece.others[row] for k, row in enumerate(rows.tolist()) if row in piece.others}
        out.append(RowsOnTheWay(tuple(a[rows] for a in piece.arrays), piece.whole[rows], others))
    return tuple(out)


def gathered(pieces: Sequence[RowsOnTheWay], max_rows: int | None = None) -> VaultPart:
    """Rows of one bucket in the order of the partitions, `max_rows` a person at most, and their persons by number."""
    arrays = tuple(np.concatenate(columns) for columns in zip(*(p.arrays for p in pieces), strict=True))
    whole = np.concatenate([p.whole for p in pieces])
    known, codes = np.unique(whole, return_inverse=True)
    codes = codes.reshape(-1).astype(np.int64)
    numbers: dict[Any, int] = {}
    start = 0
    for piece in pieces:
        for row, person in piece.others.items():
            codes[start + row] = len(known) + numbers.setdefault(person, len(numbers))
        start += len(piece.whole)
    if max_rows is not None:
        kept = surplus(codes, row_keys(arrays), max_rows) != NOBODY
        arrays, codes = tuple(a[kept] for a in arrays), codes[kept]
    return VaultPart(arrays, codes)


def _mixed(whole: IntArray) -> npt.NDArray[np.uint64]:
    """Steele, Lea & Flood's mix of 64 bits (splitmix64), the same on every machine."""
    a, b, c = _SHIFTS
    z = whole.astype(np.uint64) + _WEYL
    z = (z ^ (z >> a)) * _FIRST
    z = (z ^ (z >> b)) * _SECOND
    return np.asarray(z ^ (z >> c))


class _Lost:
    """In place of what could not be read."""

    def __repr__(self) -> str:
        return "<private rows>"


@dataclass(frozen=True, eq=False, repr=False)
class _Outcome:
    """Integers summed over some parts, and the digest of their rows."""

    total: IntArray
    digest: bytes

    def __repr__(self) -> str:
        return "<private sums>"


@dataclass(eq=False, repr=False)
class _Family:
    """What a vault shares with those derived from it."""

    passes: int = 0
    failed: bool = False
    digest: bytes | None = None
    held: list[list[Any]] = field(default_factory=list)

    def fail(self) -> None:
        """Let go of all that the workers hold."""
        self.failed = True
        for parts in self.held:
            parts.clear()


class PartitionedVault:
    """Private rows on the workers of a cluster, and the persons that they belong to.

    Parameters
    ----------
    data : Partitions
        Nothing of them is computed before the first read. Where they are grouped, that one brings all rows of a person
        together.
    max_rows : int, optional
        Rows of a person that count at most.

    Notes
    -----
    The first pass fixes the rows. A part that is computed again, because its worker is lost, must be what it was: a
    source that gives other rows then is one that failed.
    """

    __slots__ = ("_data", "_family", "_max_rows", "_parts", "grouped", "in_one_place", "spec")

    def __init__(self, data: PrivatePartitions, max_rows: int | None = None) -> None:
        self._data, self._family = data, _Family()
        self._parts: list[Any] = []
        self._max_rows = max_rows
        self.spec, self.grouped, self.in_one_place = data.spec, data.grouped, False

    @property
    def passes(self) -> int:
        """How often rows were read through, here and in vaults derived from this one."""
        return self._family.passes

    @property
    def failed(self) -> bool:
        """Whether a read has failed, here or in a vault of the same rows."""
        return self._family.failed

    def fail(self) -> None:
        """Remember that a read has failed, and let go of all that the workers hold."""
        self._family.fail()

    def identity(self) -> object:
        """What tells two data sets apart for a Budget: the place of the caller's own objects."""
        source = self._data.source
        return ("arrays", *map(id, source)) if isinstance(source, tuple) else ("chunks", id(source))

    def check(self, f: RowFunction, name: str) -> None:
        """Refuse a function that cannot be sent to workers, or that would take along what must stay here.

        Raises
        ------
        PrivacyError
            Nothing was read and nothing was spent.
        """
        try:
            Sent(f)
        except Exception as exc:
            raise PrivacyError(
                f"{name}: the function must be one that cloudpickle can send to the workers that hold the rows, with "
                f"all that it holds ({exc}); nothing was read and nothing was spent"
            ) from exc

    @sealed
    def total(self, task: Callable[[Vault], IntArray]) -> IntArray:
        """Integers that a task sums over all persons: of each part on the worker that has it, added in a tree."""
        sums = _on_workers(_summed, self._load(), Sent(task))
        self._family.passes += 1
        with silence():
            found = computed(merged(sums, _added), "private sums", progress=False)
        if isinstance(found, _Lost) or self._family.digest not in (None, found.digest):
            raise PrivacyError("rows were lost, or are others than in the first pass")
        self._family.digest = found.digest
        total: IntArray = found.total
        return total

    @sealed
    def derive(self, f: RowFunction, shapes: list[tuple[int, ...]]) -> PartitionedVault:
        """Make a vault with rows f(row) of the same persons, which the workers compute and hold."""
        return self._successor(tuple(shapes), _on_workers(_derived, self._load(), Sent(f), shapes, None))

    @sealed
    def by_person(self, f: RowFunction, shapes: list[tuple[int, ...]], most: int) -> PartitionedVault:
        """Make a vault of one row a person, as :meth:`Vault.by_person`: each worker has all rows of its persons."""
        spec = tuple((most, *shape) for shape in shapes)
        return self._successor(spec, _on_workers(_derived, self._load(), Sent(f), shapes, most))

    def _successor(self, spec: Spec, parts: list[Any]) -> PartitionedVault:
        """A vault of the same persons and reads, whose rows the workers hold."""
        new = PartitionedVault.__new__(PartitionedVault)
        new._data, new._family, new.grouped, new.in_one_place = self._data, self._family, self.grouped, False
        new._max_rows, new.spec = self._max_rows, spec
        self._family.passes += 1
        new._parts = self._hold(parts)
        return new

    def _load(self) -> Sequence[Any]:
        """On the first read: have the workers read their partitions and hold the parts."""
        if self._family.failed:
            raise PrivacyError("reading has failed before")
        if not self._parts:
            data = self._data
            read = (Sent(data.read), data.spec)
            if not data.grouped:
                parts = _on_workers(_read, data.pieces, *read)
            else:
                buckets = bucket_count(len(data.pieces))
                pieces = _on_workers(_scattered, data.pieces, *read, buckets, outputs=buckets)
                parts = _on_workers(_gathered, [[piece[b] for piece in pieces] for b in range(buckets)], self._max_rows)
            self._parts = self._hold(parts)
        return self._parts

    def _hold(self, parts: list[Any]) -> list[Any]:
        import dask

        with silence():  # Dask may warn of the size of what is sent
            held = list(dask.persist(*parts, optimize_graph=False))
        self._family.held.append(held)
        return held

    def __repr__(self) -> str:
        return "<private rows>"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise PrivacyError("private rows cannot be copied or pickled")


def _on_workers(
    function: Callable[..., Any], pieces: Sequence[Any], *args: Any, outputs: int | None = None
) -> list[Any]:
    """Call a function of this module for each piece, where that is."""
    from dask import delayed

    apply = delayed(function, pure=False, nout=outputs)
    sent = [delayed(arg, pure=False, traverse=False) for arg in args]
    return [apply(piece, *sent) for piece in pieces]


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """On a worker: no error, which Dask would log with what the task was given, and no warning."""

    @functools.wraps(function)
    def silent(*args: Any) -> Any:
        try:
            with silence(), one_thread():
                return function(*args)
        except Exception:
            return _Lost()

    return silent


@_guarded
def _read(piece: Any, read: Sent, spec: Spec) -> Any:
    return read_piece(read(), piece, spec, grouped=False)


def _scattered(piece: Any, read: Sent, spec: Spec, buckets: int) -> tuple[Any, ...]:
    found: Any = _shuffled(piece, read, spec, buckets)
    return (found,) * buckets if isinstance(found, _Lost) else found


@_guarded
def _shuffled(piece: Any, read: Sent, spec: Spec, buckets: int) -> Any:
    found: Any = read_piece(read(), piece, spec, grouped=True)
    return scattered(found, buckets)


@_guarded
def _gathered(pieces: Sequence[Any], max_rows: int | None) -> Any:
    return gathered(pieces, max_rows)  # fails where one is lost


@_guarded
def _derived(part: VaultPart, f: Sent, shapes: list[tuple[int, ...]], most: int | None) -> Any:
    vault = part.vault.derive(f(), shapes) if most is None else part.vault.by_person(f(), shapes, most)
    return VaultPart(*vault.held(), part.digest)


@_guarded
def _summed(part: VaultPart, task: Sent) -> Any:
    return _Outcome(task()(part.vault), part.digest)


@_guarded
def _added(one: _Outcome, other: _Outcome) -> Any:
    both = hashlib.blake2b(one.digest + other.digest, digest_size=len(one.digest)).digest()
    return _Outcome(one.total + other.total, both)


AnyVault = Vault | PartitionedVault


def vault_of(data: Any, groups: Any, max_rows: int | None = None) -> AnyVault:
    """Put private rows behind a wall where they are.

    Parameters
    ----------
    data, groups
        As :class:`fdadp.privacy.Cohort` takes them. Chunks may say themselves which partitions they come from, by a
        method ``on_workers()`` that returns a :class:`~fdadp.privacy.rows._dask_partitions.PrivatePartitions` or None.
    max_rows : int, optional
        Rows of a person that count at most.

    Raises
    ------
    PrivacyError
        Shapes that do not fit, as of data in memory. Nothing was read.
    """
    if active_client() is not None:
        found = _partitions_of(data, groups)
        if found is not None:
            return PartitionedVault(found, max_rows)
    return Vault(data, groups, max_rows)


def _partitions_of(data: Any, groups: Any) -> PrivatePartitions | None:
    if hasattr(data, "on_workers"):
        own: PrivatePartitions | None = data.on_workers()
        return own
    if isinstance(data, list) and data and all(map(is_dask, data)):
        return _of_chunks(data, groups)
    frames = data if isinstance(data, tuple) else (data,)
    if frames and all(map(_is_frame, frames)):
        return _of_frames(frames, groups)
    tables = as_tables(data)
    if tables is None:
        return None
    lazy = [getattr(t.rows, "data", t.rows) if hasattr(t.rows, "dims") else t.rows for t in tables]
    if not all(is_dask(rows) and hasattr(rows, "to_delayed") for rows in lazy):
        return None
    if groups is True:
        raise PrivacyError("groups must be ids, one a row: True is for chunks that bring them along")
    if any(t.shape[:1] != tables[0].shape[:1] for t in tables):
        raise PrivacyError("data must be arrays of equal length, rows along the first axis")
    columns = [*lazy, *([] if groups is None else [check_ids(groups, len(tables[0]))])]
    read = partial(_converted, tuple(t.convert for t in tables))
    sources = tuple(t.source for t in tables)
    return PrivatePartitions(blocks_of(columns), read, spec_of(tables), groups is not None, sources)


def _is_frame(data: Any) -> bool:
    """Whether these are Dask's frames or series, whose rows nobody has counted."""
    return (
        is_dask(data) and hasattr(data, "to_delayed") and hasattr(data, "npartitions") and not hasattr(data, "chunks")
    )


def _of_frames(frames: tuple[Any, ...], groups: Any) -> PrivatePartitions:
    columns = [*frames, *([] if groups is None else [groups])]
    if not all(map(_is_frame, columns)) or len({c.npartitions for c in columns}) > 1:
        raise PrivacyError(
            "data and groups must be Dask's frames or series of the same partitions where one of them is: take all as "
            "columns of one frame"
        )
    pieces = [list(piece) for piece in zip(*(c.to_delayed() for c in columns), strict=True)]
    spec = tuple((len(f.columns),) if hasattr(f, "columns") else () for f in frames)
    return PrivatePartitions(pieces, parts_of, spec, groups is not None, frames)


def _converted(convert: Sequence[Callable[[Any], Any]], piece: Sequence[Any]) -> tuple[Any, ...]:
    """Numbers of the tables of a piece, and its ids as they are."""
    numbers = tuple(c(part) for c, part in zip(convert, piece, strict=False))
    return numbers + tuple(piece[len(convert) :])


def _of_chunks(chunks: list[Any], groups: Any) -> PrivatePartitions:
    """Chunks that workers make: the shape of a row, which is public, is asked of the first one."""
    if groups is not None and groups is not True:
        raise PrivacyError("groups must be True, and each chunk end with the ids of its rows, with chunks on workers")
    from dask import delayed

    spec, failed = None, False
    try:
        with silence():  # Dask may warn of the size of what is sent
            spec = delayed(_spec_of_chunk, pure=False)(chunks[0], groups is True).compute()
    except Exception:
        failed = True
    if failed:
        raise FailedReadError(FAILED)
    if spec is None:
        raise PrivacyError(
            "a chunk must be a tuple of arrays of equal length, rows along the first axis; the first one is not"
        )
    return PrivatePartitions(chunks, parts_of, spec, groups is True, chunks)


def _spec_of_chunk(chunk: Any, grouped: bool) -> Spec | None:
    try:
        return spec_of_chunk(chunk, grouped)
    except PrivacyError:
        return None
