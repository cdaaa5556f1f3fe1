"""On workers: rows of a partition, all rows of a person brought together, and the functions that are sent there.

What travels between workers shows nothing of itself. What is sent to them, row functions and readers, may hold public
and released values only: never a budget, noise, or rows.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import PrivacyError
from fdadp.privacy.account.budget import Account, Budget
from fdadp.privacy.boundary import NO_NUMBER, NOBODY, Table, check_ids, persons_of, table
from fdadp.privacy.rows._laws import row_keys, surplus
from fdadp.privacy.rows._local import Spec
from fdadp.privacy.rows._sources import spec_of
from fdadp.privacy.rows._vault import Vault

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
