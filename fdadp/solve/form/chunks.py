"""Rows in chunks that can be gone through more than once: what tells two passes apart, Dask's partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from scipy.linalg.blas import dasum

from fdadp._common.tasks import computed, is_dask, mapped, merged
from fdadp._common.typing import FloatArray
from fdadp.errors import FdadpError, InputError


class PassDigest:
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
        """Add the rows of a chunk; what is missing counts as zero."""
        self.n += n
        for name, values in columns.items():
            total = values.sum()
            if not np.isfinite(total):
                values = np.nan_to_num(values)
                total = values.sum()
            sums = np.array([total, dasum(values.ravel())])
            self.sums[name] = self.sums.get(name, 0.0) + sums

    def merge(self, other: PassDigest) -> PassDigest:
        """Add those of other rows."""
        self.n += other.n
        for name, sums in other.sums.items():
            self.sums[name] = self.sums.get(name, 0.0) + sums
        return self

    def compare(self, before: PassDigest, what: str) -> None:
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

    def with_more(self, other: PassDigest) -> PassDigest:
        """These, with columns that the other pass read besides."""
        both = PassDigest()
        both.n, both.sums = self.n, {**other.sums, **self.sums}
        return both


@dataclass
class ChunkResult:
    """What was made of some rows.

    Attributes
    ----------
    totals : Totals
        Of the rows.
    sizes : list of int
        Their number by chunk.
    value : object
        None where there are none.
    """

    totals: PassDigest
    sizes: list[int]
    value: Any

    def merge(self, merge: Callable[[Any, Any], Any], other: ChunkResult) -> ChunkResult:
        """Add what was made of other rows."""
        self.totals.merge(other.totals)
        self.sizes += other.sizes
        if self.value is None or other.value is None:
            self.value = other.value if self.value is None else self.value
        else:
            self.value = merge(self.value, other.value)
        return self


@dataclass
class Partitions:
    """Pieces of a table that Dask computes where its scheduler says; only what is made of them comes here.

    Attributes
    ----------
    pieces : sequence
        Delayed tables, or tables made of Dask's collections.
    sizes : sequence of int or None
        Their numbers of rows, where these are known.
    """

    pieces: Sequence[Any]
    sizes: Sequence[int] | None = None

    def over(
        self,
        function: Callable[[Any, int], ChunkResult],
        merge: Callable[[Any, Any], Any],
        what: str,
        progress: bool | str,
        finish: Callable[[Any], Any] | None = None,
    ) -> ChunkResult:
        """Make something of each piece and merge that in a tree.

        Parameters
        ----------
        function : callable
            Of a table and the number of its first row.
        merge : callable
            Of two values; it may change the first.
        what, progress
            Of :func:`fdadp._common.tasks.computed`.
        finish : callable, optional
            What comes here in the place of the merged value; computed on a worker.
        """
        parts = mapped(partial(_of_one, function), self._numbered())
        whole = merged(parts, partial(_merged, merge))
        if finish is not None:
            (whole,) = mapped(partial(_finished, finish), [whole])
        found: ChunkResult = computed(whole, what, progress, parts)
        self.sizes = found.sizes
        return found

    def first(self, function: Callable[[Any, int], Any], progress: bool | str) -> Any:
        """What a function makes of the first piece that has rows, of which it says something else than None."""
        for piece in self._numbered():
            (part,) = mapped(partial(_of_one, function), [piece])
            found = computed(part, "first chunk", progress)
            if found is not None:
                return found
        return None

    def __iter__(self) -> Iterator[Any]:
        """Bring the tables here, one by one."""
        for piece in self.pieces:
            (table,) = mapped(_itself, [piece])
            yield computed(table, "chunk", progress=False)

    def _numbered(self) -> list[tuple[int, int | None, Any]]:
        known = None if self.sizes is None else list(accumulate(self.sizes, initial=0))
        return [(i, None if known is None else known[i], piece) for i, piece in enumerate(self.pieces)]


def _itself(table: Any) -> Any:
    return table


def _of_one(function: Callable[[Any, int], Any], piece: tuple[int, int | None, Any]) -> Any:
    number, first, table = piece
    try:
        return function(table, first or 0)
    except FdadpError as exc:
        if first is None:  # rows are counted within it
            raise type(exc)(f"{exc} (in partition {number})") from exc
        raise


def _merged(merge: Callable[[Any, Any], Any], one: ChunkResult, other: ChunkResult) -> ChunkResult:
    return one.merge(merge, other)


def _finished(finish: Callable[[Any], Any], part: ChunkResult) -> ChunkResult:
    return part if part.value is None else replace(part, value=finish(part.value))


def pairs_in_partitions(x: Any, y: Any) -> Partitions:
    """Pairs of the blocks of rows of X with those rows of Y.

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
    return Partitions([(x[rows], y[rows]) for rows in _blocks_of(x)], x.chunks[0])


def columns_in_partitions(table: Any) -> Partitions | None:
    """The partitions of a table, where Dask has any.

    Parameters
    ----------
    table : object
        A Dask data frame; a mapping of columns, Dask arrays among them; or a sequence of delayed tables.

    Raises
    ------
    InputError
        Columns of different lengths, of numbers of rows that are not known, or another collection.
    """
    if is_dask(table) and not isinstance(table, Mapping):
        if not hasattr(table, "partitions"):
            raise InputError(f"data must be a dask data frame, or a mapping of dask arrays, got {type(table).__name__}")
        return Partitions(table.to_delayed())
    if not isinstance(table, Mapping):
        if isinstance(table, Sequence) and not isinstance(table, str) and any(map(_has_dask, table)):
            return Partitions(list(table))
        return None
    lazy = {name: column for name, column in table.items() if is_dask(column)}
    if not lazy:
        return None
    for name, column in lazy.items():
        check_dask(column, name)
    lengths = {name: len(column) for name, column in table.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"columns must have the same number of rows, got {lengths}")
    first = next(iter(lazy.values()))
    pieces = [{name: _rows(column, rows) for name, column in table.items()} for rows in _blocks_of(first)]
    return Partitions(pieces, first.chunks[0])


def _has_dask(table: Any) -> bool:
    parts = table.values() if isinstance(table, Mapping) else table if isinstance(table, tuple) else (table,)
    return any(map(is_dask, parts))


def _blocks_of(array: Any) -> list[slice]:
    ends = accumulate((int(size) for size in array.chunks[0]), initial=0)
    return [slice(start, stop) for start, stop in pairwise(ends)]


def _rows(column: Any, rows: slice) -> Any:
    return column.iloc[rows] if hasattr(column, "iloc") else column[rows]


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
