"""Tables in chunks that need not fit into memory together, read as the records and responses of a regression.

One pass sees what fixes the bases of the terms, a second one adds up. Chunks must agree: in the kinds of their columns,
in the grids of their curves, and from one pass to the next. A pass is a function of a chunk's rows whose values are
merged: chunk by chunk in this process, or by Dask on its workers, where the rows then stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any, ClassVar, TypeVar

import numpy as np
import pandas as pd

from fdadp._common.progress import progress_bar
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.containers.join import pieces_together
from fdadp.functional.containers.open import opened
from fdadp.functional.containers.source_table import OpenedCurves, OpenedTable, in_memory, on_grid
from fdadp.functional.tables.alignment import same_rows
from fdadp.functional.tables.curves import as_curves, check_finite
from fdadp.functional.tables.records import Labels, Records
from fdadp.functional.tables.sample import Curves
from fdadp.regression.reading.columns import Grids, read_records
from fdadp.regression.reading.completion import Completion
from fdadp.regression.reading.records import read_response
from fdadp.responses import PointwiseResponse
from fdadp.solve.form.chunks import ChunkResult, Partitions, PassDigest, columns_in_partitions

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
    called: str
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
            found[self.called.format(self.response)] = y
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
        Tables as :func:`fdadp.regression.reading.columns.read_records` reads them, the response a column among them; or
        a function that returns a fresh iterator over such; or tables in Dask's partitions, or as delayed objects, which
        stay where Dask computes them. Tables without rows are passed over.
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

    _rows: ClassVar[str] = "rows"
    _response_called: ClassVar[str] = "the response {}"
    """In messages."""

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
        self._reading = _Reading(tuple(names), response, grids, completion, self._response_called, convert)
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
        *,
        response: bool = True,
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
        response : bool
            Whether responses are read.

        Raises
        ------
        InputError
            No chunks, chunks that differ in the kinds or grids of their columns, other rows than the pass before gave,
            or what :func:`fdadp.regression.reading.columns.read_records` refuses; rows are counted over all chunks.
        """
        if not isinstance(self._source, Partitions):
            value = reduce(merge, (function(*rows) for rows in self._pass(what, response=response)))
            return value if finish is None else finish(value)
        assert self.head
        read = partial(_made, self._read(response), function)
        part = self._source.over(read, merge, what, self._progress, finish)
        self._same(part.totals)
        return part.value

    def records(self, what: str = "columns") -> Iterator[Records]:
        """Go through the rows of all chunks, without the response, in this process."""
        return (records for records, _ in self._pass(what, response=False))

    def read(self, what: str = "sums") -> Iterator[tuple[Records, Response]]:
        """Go through the rows of all chunks with their responses, in this process; errors are those of :meth:`over`."""
        return self._pass(what, response=True)

    def _tables(self) -> Iterable[Any]:
        return self._source() if callable(self._source) else self._source

    def _read(self, response: bool) -> _Reading:
        return self._reading if response else replace(self._reading, response=None)

    def _pass(self, what: str, *, response: bool) -> Iterator[tuple[Records, Any]]:
        total, read = PassDigest(), self._read(response)
        for table in progress_bar(what, self._progress, self._tables()):
            part = read(table, total.n)
            total.merge(part.totals)
            if part.value is not None:
                yield part.value
        self._same(total)

    def _same(self, total: PassDigest) -> None:
        """Refuse no rows, or others than those of the pass before."""
        if total.n == 0:
            raise self._none()
        if self._totals is not None:
            total.compare(self._totals, self._rows)
        self._totals = total if self._totals is None else self._totals.with_more(total)

    def _none(self) -> InputError:
        return InputError(f"chunks must hold at least one {self._rows[:-1]}, got none")


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
    if isinstance(source, str | Mapping) or not isinstance(source, Sequence):
        raise InputError(f"{what}, got {type(source).__name__}")
    return source


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


# Pairs (X, Y) of curves, as tables of two columns: all that a fit of one surface without privacy sees.


class CurvePairs(ChunkedRecords):
    """Pairs of curves that can be gone through more than once.

    Parameters
    ----------
    source : sequence, callable or Partitions
        A sequence of pairs, or a function that returns a fresh iterator over pairs. Each pair holds curves as
        :func:`fdadp.functional.tables.curves.as_curves` reads them. Pairs that are delayed, or of Dask's collections,
        stay where Dask computes them.
    s, t : array_like or None
        Grids of X and Y.
    progress : bool or "auto"
        Show a progress bar; ``"auto"``: on passes that take longer than two seconds.

    Raises
    ------
    InputError
        Something that cannot be read twice; while it is read, what is no pair, X and Y of different n or with other row
        labels, a value that is not finite, and what :class:`~fdadp.regression.reading.chunked_records.ChunkedRecords`
        refuses.
    """

    _rows: ClassVar[str] = "pairs"
    _response_called: ClassVar[str] = "{}"

    def __init__(
        self,
        source: Sequence[tuple[Any, ...]] | Callable[[], Iterable[tuple[Any, ...]]] | Partitions,
        s: Any = None,
        t: Any = None,
        progress: bool | str = "auto",
    ) -> None:
        lazy = isinstance(source, Partitions)
        if not callable(source) and isinstance(source, Iterator):
            raise InputError(
                "chunks must be a sequence of (X, Y) pairs or a function that returns a fresh iterator "
                f"(the data are read twice), got a one-way {type(source).__name__}"
            )
        if not (callable(source) or lazy) and (isinstance(source, str) or not isinstance(source, Iterable)):
            raise InputError(f"chunks must be a sequence of (X, Y) pairs or a function, got {type(source).__name__}")

        super().__init__(source, ("X",), "Y", progress=progress, convert=partial(_table, s, t))

    def read(self, what: str = "sums") -> Iterator[tuple[Records, Curves]]:
        """X as records, and Y, under a progress bar labelled `what`."""
        for records, y in super().read(what):
            assert isinstance(y, Curves)
            yield records, y

    def range(self) -> tuple[float, float]:
        """Smallest and largest value of X."""
        low, high = self.over(_ends, _further, "range of X")
        return low, high


def _ends(records: Records, _: Curves) -> tuple[float, float]:
    values = records.curves("X").values
    return float(values.min()), float(values.max())


def _further(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return min(one[0], other[0]), max(one[1], other[1])


def pairs_of(x: Any, y: Any, s: Any = None, t: Any = None) -> Callable[[], Iterator[tuple[Any, Any]]] | None:
    """Pieces of curves of which at least one sample was opened, to be read on demand; None where none was.

    Raises
    ------
    InputError
        Samples of queries of their own, which may give their rows in another order each time.
    """
    given = {"X": opened(x, "X"), "Y": opened(y, "Y")}
    if not any(isinstance(curves, OpenedCurves) for curves in given.values()):
        return None
    columns = {
        name: curves if isinstance(curves, OpenedCurves) else in_memory(as_curves(curves, grid, name=name))
        for (name, curves), grid in zip(given.items(), (s, t), strict=True)
    }
    pieces = pieces_together(columns)

    def pairs() -> Iterator[tuple[Any, Any]]:
        return ((on_grid(a, s, "X"), on_grid(b, t, "Y")) for a, b in pieces())

    return pairs


def _table(s: Any, t: Any, pair: Any, first: int) -> Mapping[str, Curves]:
    """Both columns of a pair, checked; `first` is the number of its first curve."""
    try:
        x_data, y_data = (pair["X"], pair["Y"]) if isinstance(pair, Mapping) and {"X", "Y"} <= pair.keys() else pair
    except (TypeError, ValueError) as exc:
        raise InputError(f"chunks: each chunk must be a pair (X, Y), got {type(pair).__name__}") from exc
    table = {"X": as_curves(x_data, s, name="X"), "Y": as_curves(y_data, t, name="Y")}
    x, y = table.values()
    if len(x) != len(y):
        raise InputError(f"X and Y must hold the same number of curves, got {len(x)} and {len(y)}")
    same_rows(**table)
    check_finite(y, "Y", first=first)  # X is checked where tables are read
    return table
