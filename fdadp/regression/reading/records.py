"""Tables as users have them, read into the records and the response of a regression.

A table is a pandas data frame, whose columns may hold an FDataGrid as they are, or a mapping of columns by name:
arrays, series, curves, R's matrix columns. Only the columns that are asked for are read; names such as ``"log(x)"``
are computed (:mod:`fdadp.regression.reading.expressions`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.tables.alignment import same_rows
from fdadp.functional.tables.columns import read_column
from fdadp.functional.tables.records import Labels, Records
from fdadp.functional.tables.sample import Curves, row_labels
from fdadp.regression.reading.columns import ColumnTable, Grids
from fdadp.regression.reading.completion import cure_of
from fdadp.responses.pointwise import PointwiseResponse

Response = Curves | FloatArray | Labels | PointwiseResponse
"""Curves (n, T), with NaN where they were not observed; numbers (n,); labels (n,); or points of each record's own."""


def read_records(
    data: Any,
    names: Sequence[str],
    grids: Grids | None = None,
    *,
    defaults: Mapping[str, FloatArray] | None = None,
    missing: Collection[str] = (),
    first: int = 0,
) -> tuple[Records, pd.Index[Any] | None]:
    """Read the columns of a table that a regression needs.

    Parameters
    ----------
    data : DataFrame or mapping of columns by name
        Columns of shape (n,), or curves: FDataGrid, DataFrame, two-dimensional DataArray, array of shape (n, S).
    names : sequence of str
        Columns; ``"mean(X)"`` where the table has no column of this name is computed from X.
    grids : mapping of array_like, optional
        Points of curves that are plain arrays, by column; default even on [0, 1].
    defaults : mapping of ndarray, optional
        Points of the training curves, for new curves that come without any.
    missing : collection of str, optional
        Columns that may lack entries: NaN of numbers and curves, None of labels; or a mapping with their treatments.
    first : int
        Number of the first row, for messages about blocks of a longer table.

    Returns
    -------
    records : Records
        The columns, and curves of which some were computed.
    index : Index or None
        Labels of the rows, where the table has any.

    Raises
    ------
    InputError
        No such table or column, columns of different lengths or with other row labels, missing or infinite entries.
    """
    table = ColumnTable(data, grids, defaults=defaults, first=first)
    columns: dict[str, Any] = {}
    order: dict[str, tuple[Any, ...]] = {}
    for name in names:
        column = table.read(name)
        if name not in missing:
            table.refuse_missing(name, column, partial(_cure, table, names, missing, new=defaults is not None))
        columns[name] = column.values
        if column.order is not None:
            order[name] = column.order
    n, columns = table.n_rows(), {**table.sources, **columns}
    return Records(n, columns, order, first, table.index), table.index


def _cure(table: ColumnTable, names: Sequence[str], treated: Collection[str], *, new: bool) -> str:
    """How gaps of all columns are treated together; new numbers are as complete as the training numbers were."""
    columns = {name: table.read(name) for name in names if name not in treated}
    curves = [name for name, c in columns.items() if isinstance(c.values, Curves) and np.isnan(c.values.values).any()]
    numbers = [
        name
        for name, c in columns.items()
        if isinstance(c.values, np.ndarray) and c.kind == "numbers" and np.isnan(c.values).any()
    ]
    return cure_of(curves, () if new else numbers, others=treated)


def read_response(
    data: Any,
    name: str,
    grids: Grids | None = None,
    *,
    index: pd.Index[Any] | None = None,
    n: int | None = None,
    first: int = 0,
    defaults: Mapping[str, FloatArray] | None = None,
) -> Response:
    """Read the response of a regression, which may have gaps.

    Parameters
    ----------
    data : DataFrame or mapping of columns by name
    name : str
        A column, or a function of one: ``"log(Y)"``.
    grids : mapping of array_like, optional
        Points of curves that are plain arrays.
    index : Index, optional
        Labels of the rows of the covariates, which those of the response must not contradict.
    n : int, optional
        Number of rows of the covariates.
    first : int
        Number of the first row, for messages.
    defaults : mapping of ndarray, optional
        Points of the training curves, for curves that come without any.

    Returns
    -------
    Curves, ndarray of shape (n,) or PointwiseResponse
        Curves have NaN where they were not observed; irregular curves keep points of their own.

    Raises
    ------
    InputError
        No such column, another number of rows or other labels than the covariates, a missing or infinite number, an
        infinite value of a curve, a label that is missing, nothing observed at all.
    """
    table = ColumnTable(data, grids, defaults=defaults, first=first, gaps=True)
    raw = table.raw(name) if table.has(name) else None
    held: Any = raw.array if isinstance(raw, pd.Series) else raw
    if type(held).__module__.startswith("skfda") and type(held).__name__ == "FDataIrregular":
        _check_rows(name, held.n_samples, row_labels(held) if held is raw else None, n, index)
        return _of_irregular(held, name)
    column = table.read(name)
    _check_rows(name, len(column), table.index, n, index)
    if not isinstance(column.values, Curves):
        table.refuse_missing(name, column)
        return column.values
    values = column.values.values
    if values.size and np.isfinite(values.sum()):  # cheap
        return column.values
    if np.isinf(values).any():
        row = int(np.argmax(np.isinf(values).any(axis=1)))
        raise InputError(f"{name} must be finite where it was observed, got an infinite value in {table.row(row)}")
    if np.isnan(values).all():
        raise InputError(f"{name} must have at least one observation, got none")
    return column.values


def kinds_of(data: Any, grids: Grids | None = None) -> Mapping[str, str]:
    """Kind of each column by name, ``"curves"``, ``"numbers"`` or ``"labels"``; a column is read when it is looked up.

    Raises
    ------
    InputError
        No table; when looked up, a column that is none of them, or text that is mostly numbers.
    """
    return _Kinds(ColumnTable(data, grids))


class _Kinds(Mapping[str, str]):
    def __init__(self, table: ColumnTable) -> None:
        self._table = table

    def __getitem__(self, name: str) -> str:
        if not self._table.has(name):
            raise KeyError(name)
        column = self._table.read(name)
        if column.kind == "labels" and column.order is None:
            _refuse_odd(name, column.values)
        return column.kind

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._table.has(name)

    def __iter__(self) -> Iterator[str]:
        return iter([str(name) for name in self._table.names])

    def __len__(self) -> int:
        return len(self._table.names)


def _refuse_odd(name: str, labels: Any) -> None:
    """Refuse text that is mostly numbers: a file with an odd entry in a column of them would be taken for a factor."""
    odd = np.array([not _reads_as_number(entry) for entry in labels])
    if 0 < odd.sum() < odd.size / 2:
        row = int(np.argmax(odd))
        raise InputError(
            f"{name} must hold numbers, or labels, got {labels[row]!r} in row {row} among numbers; "
            f"mend it, or say C({name}) if all are labels"
        )


def _reads_as_number(entry: Any) -> bool:
    try:
        float(entry)
    except (TypeError, ValueError):
        return entry is None
    return True


def _check_rows(
    name: str, found: int, labels: pd.Index[Any] | None, n: int | None, index: pd.Index[Any] | None
) -> None:
    if n is not None and found != n:
        raise InputError(f"{name} must have one entry for each of the {n} rows of the covariates, got {found}")
    if labels is not None and index is not None:
        same_rows(covariates=pd.DataFrame(index=index), **{name: pd.DataFrame(index=labels)})


def _of_irregular(data: Any, name: str) -> PointwiseResponse:
    if data.dim_domain != 1 or data.dim_codomain != 1:
        raise InputError(f"{name} must hold real functions of one variable, got {data.dim_domain} of a domain")
    t = np.asarray(data.points[:, 0], dtype=np.float64)
    y = np.asarray(data.values[:, 0], dtype=np.float64)
    record = np.repeat(np.arange(data.n_samples), np.diff(np.append(data.start_indices, t.size)))
    return PointwiseResponse.of(record, t, y, int(data.n_samples), name)


# A response given as a long table, one observation a row: record, point, value.


def read_long_response(frame: Any, n: int, index: pd.Index[Any] | None = None, name: str = "Y") -> PointwiseResponse:
    """Read a long table of observations, as of ``fit(data, response=frame)``.

    Parameters
    ----------
    frame : DataFrame of three columns
        In this order, whatever their names: the record (a row label of the covariates; the number of the row, from 0,
        where these have no labels), the point t, the value. Rows in any order; a missing value was not observed.
    n : int
        Number of rows of the covariates.
    index : Index, optional
        Labels of the rows of the covariates.
    name : str
        Of the response, for messages.

    Raises
    ------
    InputError
        Another number of columns, text in numbers, a record that the covariates do not have, labels of covariates
        that repeat.
    """
    if not isinstance(frame, pd.DataFrame) or frame.shape[1] != 3:
        got = f"{frame.shape[1]} columns" if isinstance(frame, pd.DataFrame) else type(frame).__name__
        raise InputError(f"{name} as a long table must be a data frame of three columns (record, t, value), got {got}")
    labels = pd.RangeIndex(n) if index is None else index
    if not labels.is_unique:
        again = labels[labels.duplicated()][0]
        raise InputError(f"row labels of data must differ where {name} is a long table, got {again!r} more than once")
    record = labels.get_indexer(pd.Index(frame.iloc[:, 0]))
    unknown = np.flatnonzero(record < 0)
    if unknown.size:
        i = int(unknown[0])
        raise InputError(
            f"{name} must be of records that data have, by their row labels such as {labels[0]!r}, "
            f"got {frame.iloc[:, 0].tolist()[i]!r} in row {i} of column {frame.columns[0]!r}"
        )
    columns = []
    for j in (1, 2):
        column = read_column(frame.iloc[:, j], str(frame.columns[j]))
        if column.kind != "numbers":
            raise InputError(f"column {frame.columns[j]!r} of {name} must hold numbers, got {column.kind}")
        columns.append(np.asarray(column.values))
    t, y = columns
    return PointwiseResponse.of(record, t, y, n, name)
