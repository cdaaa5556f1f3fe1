"""Curves in chunks that can be gone through more than once: the only place where a fit without privacy sees them.

One pass finds the range of X, which fixes its basis; a second one adds up (:mod:`fdadp.solve.sums`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from tqdm import tqdm

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.curves import Curves, as_curves, check_finite, same_rows
from fdadp.functional.records import Records

__all__ = ["Chunks", "Totals", "check_dask", "dask_chunks", "is_dask", "range_of", "with_progress", "without_curves"]

ROWS_PER_CHUNK = 8192


class Chunks:
    """Pairs (X, Y) of curves that can be gone through more than once.

    Parameters
    ----------
    source : sequence or callable
        A sequence of pairs, or a function that returns a fresh iterator over pairs. Each pair holds curves as
        :func:`fdadp.functional.curves.as_curves` reads them.
    s, t : array_like or None
        Grids of X and Y.
    progress : bool or "auto"
        Show a progress bar; ``"auto"``: on passes that take longer than two seconds.
    """

    def __init__(
        self,
        source: Sequence[tuple[Any, ...]] | Callable[[], Iterable[tuple[Any, ...]]],
        s: Any = None,
        t: Any = None,
        progress: bool | str = "auto",
    ) -> None:
        if not callable(source) and isinstance(source, Iterator):
            raise InputError(
                "chunks must be a sequence of (X, Y) pairs or a function that returns a fresh iterator "
                f"(the data are read twice), got a one-way {type(source).__name__}"
            )
        if not callable(source) and (isinstance(source, str) or not isinstance(source, Iterable)):
            raise InputError(f"chunks must be a sequence of (X, Y) pairs or a function, got {type(source).__name__}")
        self._source = source
        self._grids = (s, t)
        self._progress = progress
        self._head: tuple[Curves, Curves] | None = None
        self._held = False
        self._n: int | None = None
        self._totals: Totals | None = None

    @property
    def n(self) -> int | None:
        """Number of pairs; None where it is not known before all of them were read once."""
        return self._n if self._totals is None else self._totals.n

    @classmethod
    def of(cls, x: Curves, y: Curves, progress: bool | str = "auto") -> Chunks:
        """Chunks of curves held in memory."""

        def pieces() -> Iterator[tuple[Curves, Curves]]:
            for start in range(0, len(y), ROWS_PER_CHUNK):
                rows = slice(start, start + ROWS_PER_CHUNK)
                yield Curves(x.values[rows], x.grid), Curves(y.values[rows], y.grid)

        chunks = cls(pieces, progress=progress)
        chunks._held, chunks._n = True, len(x)
        return chunks

    def head(self) -> tuple[Curves, Curves]:
        """First X and Y without their curves: the grids, and the kinds of object they came as."""
        if self._head is None:
            next(iter(self.read("first chunk")))
        assert self._head is not None
        return self._head

    def read(self, what: str) -> Iterator[tuple[Records, Curves]]:
        """Go through the checked chunks once, with a progress bar labelled `what`.

        Raises
        ------
        InputError
            No chunks, chunks that differ in their grids, X and Y of different n, a value that is not finite, or other
            curves than the pass before gave.
        """
        source = self._source() if callable(self._source) else self._source
        total = Totals()
        for item in with_progress(source, what, self._progress):
            try:
                x_data, y_data = item
            except (TypeError, ValueError) as exc:
                raise InputError(f"chunks: each chunk must be a pair (X, Y), got {type(item).__name__}") from exc
            x, y = as_curves(x_data, self._grids[0], name="X"), as_curves(y_data, self._grids[1], name="Y")
            if len(x) != len(y):
                raise InputError(f"X and Y must hold the same number of curves, got {len(x)} and {len(y)}")
            same_rows(X=x, Y=y)
            for name, curves in (("X", x), ("Y", y)):
                check_finite(curves, name, first=total.n)
            if self._head is None:
                self._head = without_curves(x), without_curves(y)
            for name, curves, then in zip("XY", (x, y), self._head, strict=True):
                if not np.array_equal(curves.grid, then.grid):
                    raise InputError(
                        f"all chunks of {name} must have the grid of the first one, got another at row {total.n}"
                    )
            records = Records(len(y), {"X": x}, first=total.n)
            total.add(len(y), {} if self._held else {"X": x.values, "Y": y.values})
            yield records, y
        if total.n == 0:
            raise InputError("chunks must hold at least one pair (X, Y), got none")
        if self._totals is not None:
            total.compare(self._totals, "pairs")
        self._totals = total


def with_progress(source: Iterable[Any], what: str, progress: bool | str) -> Iterable[Any]:
    """Chunks under a progress bar labelled `what`: always, never, or (``"auto"``) after two seconds."""
    return tqdm(
        source,
        desc=what,
        unit="chunk",
        disable=None if progress is True else not progress,
        delay=2.0 if progress == "auto" else 0.0,
        leave=False,
    )


class Totals:
    """What tells two passes over the same rows from passes over different ones, in whatever order they come.

    Attributes
    ----------
    n : int
        Number of rows.
    sums : dict of ndarray of shape (2,)
        Of the values, and of their sizes, by column.
    """

    def __init__(self) -> None:
        self.n = 0
        self.sums: dict[str, FloatArray] = {}

    def add(self, n: int, columns: Mapping[str, FloatArray]) -> None:
        """Add the rows of a chunk."""
        self.n += n
        for name, values in columns.items():
            sums = np.array([values.sum(), np.abs(values).sum()])
            self.sums[name] = self.sums.get(name, 0.0) + sums

    def compare(self, before: Totals, what: str) -> None:
        """Refuse other rows than those before; `what` they are called."""
        must = f"chunks must give the same {'curves' if what == 'pairs' else what} each time they are read"
        if self.n != before.n:
            raise InputError(
                f"{must}, got {before.n} {'pairs' if what == 'curves' else what} at first and {self.n} later"
            )
        for name in self.sums.keys() & before.sums.keys():
            (value, size), then = self.sums[name], before.sums[name][0]
            if not abs(value - then) <= 1e-9 * size:
                raise InputError(f"{must}, got a sum of {name} of {then:.12g} at first and {value:.12g} later")

    def with_more(self, other: Totals) -> Totals:
        """These, with columns that the other pass read besides."""
        both = Totals()
        both.n, both.sums = self.n, {**other.sums, **self.sums}
        return both


def without_curves(curves: Curves) -> Curves:
    """Their grid and what they came as."""
    return replace(curves, values=np.empty((0, curves.grid.size)), index=None)


def is_dask(data: Any) -> bool:
    """Whether `data` is a dask collection (without importing dask)."""
    if "dask" not in sys.modules:  # nobody can have made one
        return False
    from dask.base import is_dask_collection

    return bool(is_dask_collection(data))


def dask_chunks(x: Any, y: Any) -> Callable[[], Iterator[tuple[Any, Any]]]:
    """Return a source for :class:`Chunks` that computes one block of rows of X and Y at a time.

    Parameters
    ----------
    x, y : dask array of shape (n, S) or (n, T), or an xarray.DataArray of one
        A DataArray comes in pieces with its coordinates.

    Raises
    ------
    InputError
        Only one of them is one, they differ in n, or their number of rows is not known.
    """
    check_dask(x, "X")
    check_dask(y, "Y")
    if x.ndim != 2 or y.ndim != 2 or x.shape[0] != y.shape[0]:
        raise InputError(f"X and Y must hold the same number of curves, got shapes {x.shape} and {y.shape}")
    stops = np.cumsum(x.chunks[0]).tolist()

    def blocks() -> Iterator[tuple[Any, Any]]:
        for start, stop in zip([0, *stops], stops, strict=False):
            yield x[start:stop].compute(), y[start:stop].compute()

    return blocks


def check_dask(data: Any, name: str) -> None:
    """Refuse what is no dask array, or one whose chunk sizes are not known."""
    if not is_dask(data):
        raise InputError(
            f"X and Y must both be dask arrays, got {type(data).__name__} in memory for {name}: use "
            f"{'Y' if name == 'X' else 'X'}.compute() to have both there"
        )
    if not hasattr(data, "chunks") or not hasattr(data, "ndim"):
        raise InputError(f"{name} must be a dask array, got {type(data).__name__}: use .to_dask_array(lengths=True)")
    if any(size != size for size in data.shape):
        raise InputError(
            f"{name} must be a dask array whose chunk sizes are known, got shape {data.shape}: use "
            ".compute_chunk_sizes(), or .to_dask_array(lengths=True) of a dask data frame"
        )


def range_of(chunks: Chunks) -> tuple[float, float]:
    """Smallest and largest value of X.

    Raises
    ------
    InputError
        X is constant.
    """
    low, high = np.inf, -np.inf
    for records, _ in chunks.read("range of X"):
        values = records.curves("X").values
        low, high = min(low, float(values.min())), max(high, float(values.max()))
    if not low < high:
        raise InputError(f"X must vary, got the constant {low:g} everywhere")
    return low, high
