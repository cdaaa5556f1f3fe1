"""Tables in chunks that need not fit into memory together, read as the records and responses of a regression.

One pass sees what fixes the bases of the terms, a second one adds up. Chunks must agree: in the kinds of their columns,
in the grids of their curves, and from one pass to the next. A pass is a function of a chunk's rows whose values are
merged: chunk by chunk in this process, or by Dask on its workers, where the rows then stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import accumulate, pairwise
from typing import Any, TypeVar

import numpy as np
from scipy.linalg.blas import dasum

from fdadp._common.dask_tasks import computed, is_dask, mapped, merged, progress_bar
from fdadp._common.loaded_later import pd
from fdadp._common.typing import FloatArray
from fdadp.errors import FdadpError, InputError
from fdadp.functional.containers.opened_tables import OpenedTable
from fdadp.functional.tables.curve_inputs import Labels
from fdadp.functional.tables.curve_sample import Curves
from fdadp.regression.reading.missing_entries import Completion
from fdadp.regression.reading.table_columns import Grids, read_records, read_response
from fdadp.responses import PointwiseResponse
from fdadp.terms.records import Records

# What tells two passes apart, and Dask's partitions.


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

    def compare(self, before: PassDigest) -> None:
        """Refuse other rows than those before."""
        must = "chunks must give the same rows each time they are read"
        if self.n != before.n:
            raise InputError(f"{must}, got {before.n} rows at first and {self.n} later")
        for name in self.sums.keys() & before.sums.keys():
            (value, size), then = self.sums[name], before.sums[name][0]
            if not abs(value - then) <= 1e-9 * size:
                raise InputError(f"{must}, got a sum of {name} of {then:.12g} at first and {value:.12g} later")


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
            Of :func:`fdadp._common.dask_tasks.computed`.
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


def columns_in_partitions(table: Any) -> Partitions | None:
    """The partitions of a table, where Dask has any.

    Parameters
    ----------
    table : object
        A Dask data frame; a mapping of columns, Dask arrays (or DataArrays of them) among them; or a sequence of
        delayed tables.

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
    pieces = [{name: _rows_of(column, rows) for name, column in table.items()} for rows in _blocks_of(first)]
    return Partitions(pieces, first.chunks[0])


def _has_dask(table: Any) -> bool:
    parts = table.values() if isinstance(table, Mapping) else table if isinstance(table, tuple) else (table,)
    return any(map(is_dask, parts))


def _blocks_of(array: Any) -> list[slice]:
    ends = accumulate((int(size) for size in array.chunks[0]), initial=0)
    return [slice(start, stop) for start, stop in pairwise(ends)]


def _rows_of(column: Any, rows: slice) -> Any:
    return column.iloc[rows] if hasattr(column, "iloc") else column[rows]


def check_dask(data: Any, name: str) -> None:
    """Refuse what is no dask array, or one whose chunk sizes are not known."""
    if not hasattr(data, "chunks") or not hasattr(data, "ndim"):
        raise InputError(f"{name} must be a dask array, got {type(data).__name__}: use .to_dask_array(lengths=True)")
    if any(size != size for size in data.shape):
        raise InputError(
            f"{name} must be a dask array whose chunk sizes are known, got shape {data.shape}: use "
            ".compute_chunk_sizes(), or .to_dask_array(lengths=True) of a dask data frame"
        )


# The records and responses of chunks.

A = TypeVar("A")

Response = Curves | FloatArray | Labels
"""Of a chunk, on a grid that all chunks share where it is one of curves."""

Source = Sequence[Any] | Callable[[], Iterable[Any]] | Partitions


@dataclass
class _Reading:
    """How a chunk is read: its columns, and its response where it is asked for. Rows are counted over all chunks."""

    names: Sequence[str]
    response: str | None
    grids: Grids | None
    completion: Completion
    convert: Callable[[Any, int], Any] | None = None
    known: dict[str, Any] = field(default_factory=dict)
    """What the columns of the first chunk are like, by name."""

    def __call__(self, raw: Any, first: int) -> ChunkResult:
        """The rows of a chunk, where it has any; no response: None."""
        if _is_empty(raw):
            return ChunkResult(PassDigest(), [0], None)
        table = raw if self.convert is None else self.convert(raw, first)
        records, index = read_records(table, self.names, self.grids, first=first, missing=self.completion.how)
        records = self.completion(records)
        found: dict[str, Any] = dict(records.columns)
        y: Any = None
        if self.response is not None:
            y = read_response(table, self.response, self.grids, n=records.n, index=index, first=first)
            if isinstance(y, PointwiseResponse):
                raise InputError(f"{self.response} must be on one grid in chunks, got points of each row's own")
            found[f"the response {self.response}"] = y
        for name, column in found.items():
            _agree(self.known.setdefault(name, _without_rows(column)), name, column, first)
        totals = PassDigest()
        totals.add(records.n, {name: _numbers(column) for name, column in found.items()})
        plain = {n: replace(c, index=None) if isinstance(c, Curves) else c for n, c in records.columns.items()}
        return ChunkResult(totals, [records.n], (replace(records, columns=plain), y))


class ChunkedRecords:
    """Tables that can be gone through more than once.

    Parameters
    ----------
    source : sequence, callable, dask data frame, mapping of dask arrays, or Partitions
        Tables as :func:`fdadp.regression.reading.table_columns.read_records` reads them, the response a column among
        them; or a function that returns a fresh iterator over such; or tables in Dask's partitions, or as delayed
        objects, which stay where Dask computes them. Tables without rows are passed over.
    names : sequence of str
        Columns that are read.
    response : str, optional
        Column of the response, or a function of one.
    grids : mapping of array_like, optional
        Points of curves that are plain arrays, by column.
    completion : Completion, optional
        Of entries that columns lack, row by row.
    progress : bool or "auto"
        Show a progress bar; ``"auto"``: on passes that take longer than two seconds.
    convert : callable, optional
        From a chunk, and the number of its first row, to a table.

    Raises
    ------
    InputError
        Something that cannot be read twice.
    """

    def __init__(
        self,
        source: Any,
        names: Sequence[str],
        response: str | None = None,
        grids: Grids | None = None,
        progress: bool | str = "auto",
        completion: Completion | None = None,
        convert: Callable[[Any, int], Any] | None = None,
    ) -> None:
        self._source: Source = _readable(source)
        self._progress = progress
        completion = Completion({}, {}, {}, {}) if completion is None else completion
        self._reading = _Reading(tuple(names), response, grids, completion, convert)
        self._totals: PassDigest | None = None

    @property
    def n(self) -> int:
        """Number of rows; 0 before all of them were read once."""
        return 0 if self._totals is None else self._totals.n

    @property
    def elsewhere(self) -> bool:
        """Whether the rows are where Dask computes them, and not to come here."""
        return isinstance(self._source, Partitions)

    @property
    def head(self) -> Mapping[str, Any]:
        """What the columns of the first table are like, by name: without its rows."""
        known = self._reading.known
        if not known and isinstance(self._source, Partitions):
            known.update(self._source.first(partial(_head, self._reading), self._progress) or {})
        elif not known:
            next(iter(self.read("first chunk")))
        if not known:
            raise self._none()
        return known

    def of_first(self, function: Callable[[Any], A]) -> A:
        """What a function makes of the first table that has rows, as it came."""
        found: A | None
        if isinstance(self._source, Partitions):
            found = self._source.first(partial(_of_table, function), self._progress)
        else:
            found = next((function(table) for table in self._tables() if not _is_empty(table)), None)
        if found is None:
            raise InputError("chunks must hold at least one table, got none")
        return found

    def over(
        self,
        function: Callable[[Records, Any], A],
        merge: Callable[[A, A], A],
        what: str = "sums",
        finish: Callable[[A], Any] | None = None,
    ) -> Any:
        """Merge what a function makes of the rows of each chunk.

        Parameters
        ----------
        function : callable
            Of the records of a chunk and their responses; not None.
        merge : callable
            Of two values; it may change the first.
        what : str
            Label of the progress bar.
        finish : callable, optional
            Of the merged value: its value is what comes from Dask's workers.

        Raises
        ------
        InputError
            No chunks, chunks that differ in the kinds or grids of their columns, other rows than the pass before gave,
            or what :func:`fdadp.regression.reading.table_columns.read_records` refuses; rows are counted over all
            chunks.
        """
        if not isinstance(self._source, Partitions):
            value = reduce(merge, (function(*rows) for rows in self.read(what)))
            return value if finish is None else finish(value)
        assert self.head
        read = partial(_made, self._reading, function)
        part = self._source.over(read, merge, what, self._progress, finish)
        self._same(part.totals)
        return part.value

    def read(self, what: str = "sums") -> Iterator[tuple[Records, Response]]:
        """Go through the rows of all chunks with their responses, in this process; errors are those of :meth:`over`."""
        total = PassDigest()
        for table in progress_bar(what, self._progress, self._tables()):
            part = self._reading(table, total.n)
            total.merge(part.totals)
            if part.value is not None:
                yield part.value
        self._same(total)

    def _tables(self) -> Iterable[Any]:
        return self._source() if callable(self._source) else self._source

    def _same(self, total: PassDigest) -> None:
        """Refuse no rows, or others than those of the pass before."""
        if total.n == 0:
            raise self._none()
        if self._totals is None:
            self._totals = total
        total.compare(self._totals)

    def _none(self) -> InputError:
        return InputError("chunks must hold at least one row, got none")


def _head(read: _Reading, table: Any, first: int) -> Mapping[str, Any] | None:
    return read.known if read(table, first).totals.n else None


def _of_table(function: Callable[[Any], A], table: Any, first: int) -> A | None:
    return None if _is_empty(table) else function(table)


def _made(read: _Reading, function: Callable[[Records, Any], Any], table: Any, first: int) -> ChunkResult:
    part = read(table, first)
    return part if part.value is None else replace(part, value=function(*part.value))


def _is_empty(table: Any) -> bool:
    """Whether a table, or a pair of curves, has no rows."""
    columns = table.values() if isinstance(table, Mapping) else table if isinstance(table, tuple) else (table,)
    return bool(columns) and all(hasattr(c, "__len__") and not isinstance(c, str) and len(c) == 0 for c in columns)


def _agree(known: Any, name: str, column: Any, row: int) -> None:
    """Refuse a column that is not of the kind, or on the grid, of the first chunk's."""
    before, now = _kind(known), _kind(column)
    if isinstance(before, str) or isinstance(now, str):
        if not (isinstance(before, str) and before == now):
            raise InputError(
                f"all chunks of {name} must be of one kind, got {_said(before)} at first and {_said(now)} from "
                f"row {row} on"
            )
    elif not np.array_equal(before, now):
        raise InputError(f"all chunks of {name} must have the grid of the first one, got another at row {row}")


def _readable(source: Any) -> Source:
    if isinstance(source, OpenedTable):
        return source.tables
    lazy = source if isinstance(source, Partitions) else columns_in_partitions(source)
    if lazy is not None:
        return lazy
    what = "chunks must be a sequence of tables or a function that returns a fresh iterator (they are read twice)"
    if callable(source):
        return source  # type: ignore[no-any-return]
    if isinstance(source, Iterator):
        raise InputError(f"{what}, got a one-way {type(source).__name__}")
    if isinstance(source, str | Mapping | pd.DataFrame | np.ndarray) or not isinstance(source, Iterable):
        raise InputError(f"{what}, got {type(source).__name__}")
    return source  # type: ignore[return-value]


def blocks_of_dask(table: Any) -> Callable[[], Iterator[Any]]:
    """Source of the pieces of a dask data frame, or of a mapping whose columns are dask arrays, computed one by one.

    Raises
    ------
    InputError
        Columns of different lengths, or of numbers of rows that are not known.
    """
    lazy = columns_in_partitions(table)
    assert lazy is not None
    return lambda: iter(lazy)


def _without_rows(column: Any) -> Any:
    return column.without_rows() if isinstance(column, Curves) else column[:0]


def _kind(column: Any) -> Any:
    """The grid of curves; else what the column holds."""
    if isinstance(column, Curves):
        return column.grid
    return "numbers" if column.dtype.kind == "f" else "labels"


def _said(kind: Any) -> str:
    return kind if isinstance(kind, str) else "curves"


def _numbers(column: Any) -> FloatArray:
    """What is added up to tell passes apart; of labels their hashes, the same in all processes."""
    if isinstance(column, Curves):
        return column.values
    if column.dtype.kind == "f":
        return np.asarray(column)
    hashes = pd.util.hash_array(np.array([str(label) for label in column], dtype=object), categorize=False)
    return np.asarray(hashes % np.uint64(65521), dtype=np.float64)
