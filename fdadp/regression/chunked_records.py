"""Tables in chunks that need not fit into memory together, read as the records and responses of a regression.

One pass sees what fixes the bases of the terms, a second one adds up. Chunks must agree: in the kinds of their columns,
in the grids of their curves, and from one pass to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.curves import Curves
from fdadp.functional.records import Labels, Records
from fdadp.regression.completion import Completion
from fdadp.regression.table import Grids
from fdadp.regression.tables import read_records, read_response
from fdadp.responses.pointwise import PointwiseResponse
from fdadp.solve.chunks import Totals, check_dask, is_dask, with_progress, without_curves

__all__ = ["ChunkedRecords", "blocks_of_dask"]

Response = Curves | FloatArray | Labels
"""Of a chunk, on a grid that all chunks share where it is one of curves."""

Source = Sequence[Any] | Callable[[], Iterable[Any]]


class ChunkedRecords:
    """Tables that can be gone through more than once.

    Parameters
    ----------
    source : sequence, callable, dask data frame, or mapping of dask arrays
        Tables as :func:`fdadp.regression.tables.read_records` reads them, the response a column among them; or a
        function that returns a fresh iterator over such; or one table in dask's pieces.
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
    ) -> None:
        self._source: Source = _readable(source)
        self._names, self._response, self._grids, self._progress = tuple(names), response, grids, progress
        self._completion = Completion({}, {}, {}, {}) if completion is None else completion
        self._first: dict[str, Any] = {}
        self._totals: Totals | None = None

    @property
    def n(self) -> int:
        """Number of rows; 0 before all of them were read once."""
        return 0 if self._totals is None else self._totals.n

    @property
    def head(self) -> Mapping[str, Any]:
        """What the columns of the first table are like, by name: without its rows."""
        if not self._first:
            next(iter(self.read("first chunk")))
        return self._first

    def first(self) -> Any:
        """The first table as it came, for the kinds of its columns."""
        table = next(iter(self._tables()), None)
        if table is None:
            raise InputError("chunks must hold at least one table, got none")
        return table

    def records(self, what: str = "columns") -> Iterator[Records]:
        """Go through the rows of all chunks, without the response."""
        return (records for records, _ in self._pass(what, response=False))

    def read(self, what: str = "sums") -> Iterator[tuple[Records, Response]]:
        """Go through the rows of all chunks with their responses, under a progress bar labelled `what`.

        Raises
        ------
        InputError
            No chunks, chunks that differ in the kinds or grids of their columns, other rows than the pass before gave,
            or what :func:`fdadp.regression.tables.read_records` refuses; rows are counted over all chunks.
        """
        for records, response in self._pass(what, response=True):
            assert response is not None
            yield records, response

    def _tables(self) -> Iterable[Any]:
        return self._source() if callable(self._source) else self._source

    def _pass(self, what: str, *, response: bool) -> Iterator[tuple[Records, Response | None]]:
        total = Totals()
        for table in with_progress(self._tables(), what, self._progress):
            how = self._completion.how
            records, index = read_records(table, self._names, self._grids, first=total.n, missing=how)
            records = self._completion(records)
            found: dict[str, Any] = dict(records.columns)
            y: Any = None
            if response and self._response is not None:
                y = read_response(table, self._response, self._grids, n=records.n, index=index, first=total.n)
                if isinstance(y, PointwiseResponse):
                    raise InputError(f"{self._response} must be on one grid in chunks, got points of each row's own")
                found[self._response_called.format(self._response)] = y
            for name, column in found.items():
                self._agree(name, column, total.n)
            total.add(records.n, {name: _numbers(column) for name, column in found.items()})
            yield replace(records, columns={n: _without_labels(c) for n, c in records.columns.items()}), y
        if total.n == 0:
            raise InputError(f"chunks must hold at least one {self._rows[:-1]}, got none")
        if self._totals is not None:
            total.compare(self._totals, self._rows)
        self._totals = total if self._totals is None else self._totals.with_more(total)

    def _agree(self, name: str, column: Any, row: int) -> None:
        """Refuse a column that is not of the kind, or on the grid, of the first chunk's."""
        empty = without_curves(column) if isinstance(column, Curves) else column[:0]
        before, now = _kind(self._first.setdefault(name, empty)), _kind(column)
        if isinstance(before, str) or isinstance(now, str):
            if not (isinstance(before, str) and before == now):
                raise InputError(
                    f"all chunks of {name} must be of one kind, got {_said(before)} at first and {_said(now)} from "
                    f"row {row} on"
                )
        elif not np.array_equal(before, now):
            raise InputError(f"all chunks of {name} must have the grid of the first one, got another at row {row}")


def _readable(source: Any) -> Source:
    if is_dask(source) or (isinstance(source, Mapping) and any(map(is_dask, source.values()))):
        return blocks_of_dask(source)
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
    if not isinstance(table, Mapping):
        if not hasattr(table, "partitions"):
            raise InputError(f"data must be a dask data frame, or a mapping of dask arrays, got {type(table).__name__}")
        return lambda: (piece.compute() for piece in table.partitions)
    lazy = {name: column for name, column in table.items() if is_dask(column)}
    for name, column in lazy.items():
        check_dask(column, name)
    lengths = {name: len(column) for name, column in table.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"columns must have the same number of rows, got {lengths}")
    (sizes, *_) = (column.chunks[0] for column in lazy.values())
    ends = [0, *np.cumsum(sizes).tolist()]

    def pieces() -> Iterator[dict[str, Any]]:
        for rows in (slice(*ends_) for ends_ in pairwise(ends)):
            yield {name: c[rows].compute() if name in lazy else _rows(c, rows) for name, c in table.items()}

    return pieces


def _rows(column: Any, rows: slice) -> Any:
    return column.iloc[rows] if hasattr(column, "iloc") else column[rows]


def _kind(column: Any) -> Any:
    """The grid of curves; else what the column holds."""
    if isinstance(column, Curves):
        return column.grid
    return "numbers" if column.dtype.kind == "f" else "labels"


def _said(kind: Any) -> str:
    return kind if isinstance(kind, str) else "curves"


def _numbers(column: Any) -> FloatArray:
    """What is added up to tell passes apart; of labels their hashes, the same within one run of Python."""
    if isinstance(column, Curves):
        return column.values if np.isfinite(column.values.sum()) else np.nan_to_num(column.values)
    if column.dtype.kind == "f":
        return np.asarray(column)
    return np.array([hash(label) % 65521 for label in column], dtype=np.float64)


def _without_labels(column: Any) -> Any:
    return replace(column, index=None) if isinstance(column, Curves) else column
