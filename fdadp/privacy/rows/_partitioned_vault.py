"""Where the private rows are on a cluster: in one local vault a partition, whose exact sums are added in a tree.

To the caller's process come integers and one digest of the rows, nothing else; noise is drawn there
(``docs/theory/kernel.md#partitions``). Dask may move parts between workers, spill them to disk, or compute them again.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from fdadp._common.tasks import computed, merged
from fdadp._common.threads import one_thread
from fdadp._common.typing import IntArray
from fdadp.errors import PrivacyError
from fdadp.privacy.boundary import sealed
from fdadp.privacy.rows._local import RowFunction, Spec, silence
from fdadp.privacy.rows._shuffle import Sent, VaultPart, bucket_count, gathered, read_piece, scattered
from fdadp.privacy.rows._vault import Vault
from fdadp.privacy.rows.partitions import PrivatePartitions


class _Lost:
    """In place of what could not be read."""

    def __repr__(self) -> str:
        return "<private rows>"


class _Outcome:
    """Integers summed over some parts, and the digest of their rows."""

    __slots__ = ("digest", "total")

    def __init__(self, total: IntArray, digest: bytes) -> None:
        self.total, self.digest = total, digest

    def __repr__(self) -> str:
        return "<private sums>"

    def __reduce__(self) -> Any:
        return _Outcome, (self.total, self.digest)


class _Family:
    """What a vault shares with those derived from it."""

    __slots__ = ("digest", "failed", "held", "passes")

    def __init__(self) -> None:
        self.passes, self.failed = 0, False
        self.digest: bytes | None = None
        self.held: list[list[Any]] = []

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
                f"all that it holds: {exc}; nothing was read and nothing was spent"
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
