"""Tables as users have them, read column by column: the one thing between a container and the records of a regression.

A table is a pandas data frame, whose columns may hold an FDataGrid as they are, or a mapping of columns by name:
arrays, series, curves, R's matrix columns. Only the columns that are asked for are read, and their rows must agree;
names such as ``"log(x)"`` are computed (:mod:`fdadp.regression.reading.computed_columns`).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from fdadp._common.calling_language import advice
from fdadp._common.loaded_later import pd
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.functional.containers.open_curves import is_foreign, opened_table
from fdadp.functional.containers.opened_tables import OpenedColumn, OpenedCurves, OpenedTable
from fdadp.functional.tables.curve_inputs import Labels, TableColumn, check_finite, read_column, row_labels
from fdadp.functional.tables.curve_sample import Curves
from fdadp.functional.tables.grid_from_labels import float_of
from fdadp.functional.tables.row_and_grid_labels import same_rows
from fdadp.regression.reading.computed_columns import column_named, columns_read, row_function
from fdadp.regression.reading.label_joins import aligned, have_labels
from fdadp.regression.reading.missing_entries import Completion, cure_of
from fdadp.responses import PointwiseResponse
from fdadp.terms.records import Records, refuse_other_domain
from fdadp.terms.spec import TermDesign, TermSpec

Grids = Mapping[str, ArrayLike]
"""Points of curves that are plain arrays, by column."""

Response = Curves | FloatArray | Labels | PointwiseResponse
"""Curves (n, T), with NaN where they were not observed; numbers (n,); labels (n,); or points of each record's own."""


def unknown_column(name: str, columns: Collection[Any], what: str = "data") -> InputError:
    """The error that says which columns there are, those with a name like it first."""
    known = list(dict.fromkeys(str(column) for column in columns))
    some = known if len(known) <= 20 else [*known[:20], f"... ({len(known)} in all)"]
    got = f"{what} must have the column {name!r}, got the columns {', '.join(some) or 'none'}"
    return InputError(got + names_like(name, known))


def names_like(name: str, columns: Collection[Any]) -> str:
    """The question whether columns with a name like it were meant; empty where there are none."""
    known = list(dict.fromkeys(map(str, columns)))
    same = [column for column in known if column.casefold() == name.casefold()]
    close = same or difflib.get_close_matches(name, known, n=3)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


def grids_of(grids: Any) -> Grids:
    """Grids by column, none for None; raises InputError for another kind."""
    if grids is not None and not isinstance(grids, Mapping):
        raise InputError(f"grids must be points by column, as in dict(X=s, Y=t), got {type(grids).__name__}")
    return grids or {}


def check_grids(grids: Any, data: Any, response: str) -> None:
    """Refuse grids that are of no column.

    Raises
    ------
    InputError
        No mapping, or a name that is neither a column of `data` nor the response.
    """
    if grids is None:
        return
    names = ColumnTable(data).names
    for name in grids_of(grids):
        if name != response and column_named(str(name), names) is None:
            raise InputError(f"grids must be of columns: {unknown_column(str(name), [*names, response])}")


def rows_beside(data: Any, name: str, given: Any) -> None:
    """Refuse what is beside a table, and has other row labels, or the same ones in another order.

    Raises
    ------
    InputError
        Naming the first labels that differ.
    """
    same_rows(data=_labelled(data), **{name: given})


def _labelled(data: Any) -> Any:
    """The frame, or the first column that has row labels; None where nothing has."""
    if isinstance(data, Mapping):
        return next((column for column in data.values() if row_labels(column) is not None), None)
    return data if isinstance(data, pd.DataFrame) else None


def labels_named(data: Any, name: str) -> Any:
    """Row labels of a table, where they have this name; else None."""
    if isinstance(data, OpenedTable):
        rows = data.source.fields.rows
        return data[name] if rows is not None and rows.name == name else None
    labels: Any = row_labels(_labelled(data))
    return labels if getattr(labels, "name", None) == name else None


class ColumnKinds(Mapping[str, str]):
    """Names of columns, and the kind of each, which is asked for when it is looked up; the table itself is not held.

    Parameters
    ----------
    names : sequence
        Of all columns.
    has : callable
        Whether there is such a column.
    kind : callable
        ``"curves"``, ``"numbers"`` or ``"labels"``.
    """

    def __init__(self, names: Sequence[Any], has: Callable[[str], bool], kind: Callable[[str], str]) -> None:
        self._names, self._has, self._kind = tuple(map(str, names)), has, kind

    def __getitem__(self, name: str) -> str:
        if name not in self:
            raise KeyError(name)
        return self._kind(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._has(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class ColumnTable:
    """A data frame or a mapping of columns.

    Parameters
    ----------
    data : DataFrame or mapping
    grids : mapping of array_like, optional
        Points of curves that are plain arrays.
    defaults : mapping of ndarray, optional
        Points of the training curves, for curves that come without any.
    first : int
        Number of the first row, for messages.
    gaps : bool
        Whether curves of which others are computed may have gaps.

    Attributes
    ----------
    index : Index or None
        Labels of the rows, of the first column read that has any.
    sources : dict of Curves
        Columns of curves of which others were computed.

    Raises
    ------
    InputError
        Something else; later, columns of different lengths, or with other row labels.
    """

    def __init__(
        self,
        data: Any,
        grids: Grids | None = None,
        *,
        defaults: Mapping[str, FloatArray] | None = None,
        first: int = 0,
        gaps: bool = False,
    ) -> None:
        data = opened_table(data) if is_foreign(type(data)) else data
        if not isinstance(data, pd.DataFrame | Mapping | OpenedTable):
            hint = "; use fdadp.open_curves" if hasattr(data, "__arrow_c_stream__") else ""
            hint = "; use .compute(), or fit_chunks" if hasattr(data, "compute") else hint
            raise InputError(
                f"data must be a data frame, or a mapping of columns by name, got {type(data).__name__}{hint}"
            )
        self._data, self._grids, self._defaults = data, grids_of(grids), defaults or {}
        self._first, self._gaps = first, gaps
        self._read: dict[str, TableColumn] = {}
        self._known: dict[str, tuple[TableColumn, pd.Index[Any] | None]] = {}
        self._lengths: dict[str, int] = {}
        self.sources: dict[str, Curves] = {}
        self._labelled: dict[str, Any] = {}
        self.index: pd.Index[Any] | None = data.index if isinstance(data, pd.DataFrame) else None
        if isinstance(data, pd.DataFrame):
            self._lengths["data"] = len(data)

    def again(self, *, gaps: bool = False) -> ColumnTable:
        """The same table for another pass: rows are compared anew, and what was read is not read again."""
        other = ColumnTable(self._data, self._grids, defaults=self._defaults, first=self._first, gaps=gaps)
        other._known = self._known
        return other

    @property
    def names(self) -> list[Any]:
        """Names of all columns."""
        if isinstance(self._data, pd.DataFrame) and self._data.columns.nlevels > 1:
            return list(self._data.columns.get_level_values(0).unique())
        return list(self._data.names if isinstance(self._data, OpenedTable) else self._data)

    def has(self, name: str) -> bool:
        """Whether there is such a column."""
        return column_named(name, self.names) is not None

    def raw(self, name: str) -> Any:
        """A column as the user gave it."""
        own = column_named(name, self.names)
        if own is None:
            raise unknown_column(name, self.names)
        value = self._data[own]
        if isinstance(self._data, pd.DataFrame) and isinstance(value, pd.DataFrame) and self._data.columns.nlevels == 1:
            raise InputError(f"data must have one column of the name {name!r}, got {value.shape[1]}")
        return value

    def held(self, name: str) -> Any:
        """The same, or what it holds in a data frame, where these are curves of scikit-fda."""
        raw = self.raw(name)
        held = raw.array if isinstance(raw, pd.Series) else raw
        return held if type(held).__module__.split(".")[0] == "skfda" else raw

    def read(self, name: str) -> TableColumn:
        """A column, or a function of some; each is read once."""
        if name not in self._read:
            self._read[name] = self._entered(name)
        return self._read[name]

    def _entered(self, name: str) -> TableColumn:
        function = None if self.has(name) else row_function(name)
        if function is not None:
            return TableColumn(function.of({source: self._source(source, name) for source in function.sources}))
        raw = given = self.raw(name)
        if isinstance(raw, OpenedColumn) and name not in self._known:  # the labels of its rows come with its entries
            opened = isinstance(raw, OpenedCurves)
            raw = given = self._column(raw, name).values if opened else raw.values()
        column, labels = self._known[name] if name in self._known else (None, row_labels(raw))
        if labels is not None and self.index is not None and not labels.equals(self.index):
            raw = self._beside_others(name, raw)
            column, labels = (column, labels) if raw is given else (None, row_labels(raw))
        if column is None:
            column = self._column(raw, name)
        if raw is given:
            self._known[name] = column, labels
        self._lengths[name] = column.n
        if not isinstance(self._data, pd.DataFrame) and labels is not None:
            self._labelled[name] = raw
            self.index = labels if self.index is None else self.index
        self._check()
        return column

    def _column(self, raw: Any, name: str) -> TableColumn:
        return read_column(raw, name, self._grids.get(name), self._defaults.get(name))

    def kinds(self) -> Mapping[str, str]:
        """Kind of each column by name; a column is read when it is looked up.

        Raises
        ------
        InputError
            When looked up, a column that is of no kind, or text that is mostly numbers.
        """
        return ColumnKinds(self.names, self.has, self._kind)

    def _kind(self, name: str) -> str:
        column = self.again().read(name)  # by itself: rows of columns are joined later
        if column.kind == "labels" and column.order is None:
            _refuse_odd(name, column.values)
        return column.kind

    def records(self, names: Sequence[str], missing: Collection[str] = (), *, new: bool = False) -> Records:
        """Columns side by side; `missing` as of :func:`read_records`, `new` says whether they are no training rows."""
        columns: dict[str, Any] = {}
        order: dict[str, tuple[Any, ...]] = {}
        for name in names:
            column = self.read(name)
            if name not in missing:
                self.refuse_missing(name, column, partial(self._cure, names, missing, new=new))
            columns[name] = column.values
            if column.order is not None:
                order[name] = column.order
        n, columns = self.n_rows(), {**self.sources, **columns}
        return Records(n, columns, order, self._first, self.index)

    def _cure(self, names: Sequence[str], treated: Collection[str], *, new: bool) -> str:
        """How gaps of all columns are treated together; new numbers are as complete as the training numbers were."""
        columns = {name: self.read(name) for name in names if name not in treated}
        curves = [n for n, c in columns.items() if isinstance(c.values, Curves) and np.isnan(c.values.values).any()]
        numbers = [
            name
            for name, c in columns.items()
            if isinstance(c.values, np.ndarray) and c.kind == "numbers" and np.isnan(c.values).any()
        ]
        return cure_of(curves, () if new else numbers, others=treated)

    def response(self, name: str, *, n: int | None = None, index: pd.Index[Any] | None = None) -> Response:
        """The response of a regression, as :func:`fdadp.regression.reading.table_columns.read_response` says."""
        raw = self.raw(name) if self.has(name) else None
        held: Any = raw.array if isinstance(raw, pd.Series) else raw
        if type(held).__module__.startswith("skfda") and type(held).__name__ == "FDataIrregular":
            _check_rows(name, held.n_samples, row_labels(held) if held is raw else None, n, index)
            return _of_irregular(held, name)
        column = self.read(name)
        _check_rows(name, column.n, self.index, n, index)
        if not isinstance(column.values, Curves):
            self.refuse_missing(name, column, partial(_without_rows, name))
            return column.values
        values = column.values.values
        if values.size and np.isfinite(values.sum()):  # cheap
            return column.values
        if np.isinf(values).any():
            row = int(np.argmax(np.isinf(values).any(axis=1)))
            raise InputError(f"{name} must be finite where it was observed, got an infinite value in {self.row(row)}")
        if np.isnan(values).all():
            raise InputError(f"{name} must have at least one observation, got none")
        return column.values

    def _beside_others(self, name: str, raw: Any) -> Any:
        """A column, with its rows in the order of those that were read before, where all columns have labels."""
        if not (isinstance(self._data, Mapping) and have_labels(self._data)):
            return raw
        first = next(iter(self._labelled))
        return aligned(None, {first: pd.DataFrame(index=self.index), name: raw}, first, every=True)[0][name]

    def _source(self, name: str, wanted: str) -> Curves | FloatArray:
        column = self.read(name)
        if not (self._gaps and column.kind == "curves"):
            self.refuse_missing(name, column)
        if isinstance(column.values, Curves):
            if name in self._defaults:
                refuse_other_domain(column.values, self._defaults[name], name)
            self.sources[name] = column.values
        if column.kind == "labels":
            Records(column.n, {name: column.values}, first=self._first).numbers(name)
        return column.values

    def _check(self) -> None:
        (a, n), *others = self._lengths.items()
        b, m = next(((b, m) for b, m in others if m != n), (a, n))
        if m != n:
            raise InputError(f"{a} and {b} must have the same number of rows, got {n} and {m}")
        if n == 0:
            raise InputError(f"{a} must have at least one row, got none")
        same_rows(**self._labelled)

    def n_rows(self) -> int:
        """Number of rows, also where no column was asked for."""
        if not self._lengths and self.names:
            self.read(str(self.names[0]))
        if not self._lengths:
            raise InputError("data must have at least one column, got none")
        return next(iter(self._lengths.values()))

    def row(self, i: int) -> str:
        """A row in messages."""
        label = None if self.index is None or isinstance(self.index, pd.RangeIndex) else self.index.tolist()[i]
        return f"row {self._first + i}" + ("" if label is None else f" (label {label!r})")

    def refuse_missing(self, name: str, column: TableColumn, cure: Callable[[], str] = str) -> None:
        """Refuse entries that are missing or infinite, and say the `cure` of what is missing."""
        values = column.values
        if isinstance(values, Curves):
            if np.isfinite(values.values.sum()):  # cheap
                return
            gone = np.isnan(values.values).all(axis=1)
            if gone.any():
                raise InputError(f"{name} must have a curve in every row, got none in {self._rows(gone)}")
            check_finite(replace(values, index=self.index), name, self._first, cure())
        elif column.kind == "numbers":
            bad = ~np.isfinite(values)
            if bad.any():
                got = "none" if np.isnan(values[bad][0]) else f"{values[bad][0]:g}"
                raise InputError(
                    f"{name} must have a finite number in every row, got {got} in {self._rows(bad)}{_said(cure, got)}"
                )
        else:
            gone = np.array([entry is None for entry in values])
            if gone.any():
                raise InputError(
                    f"{name} must have a label in every row, got none in {self._rows(gone)}; leave such rows out or "
                    "name the level"
                )

    def _rows(self, where: Any) -> str:
        more = int(np.sum(where)) - 1
        return self.row(int(np.argmax(where))) + (f" and {more} more" if more else "")


def _without_rows(name: str) -> str:
    """How rows without a response are left out."""
    return advice(
        f"Leave such rows out, as data[data[{name!r}].notna()]",
        r=f"Leave such rows out, as data[!is.na(data${name}), ]",
        shell="Leave such rows out of the files",
    )


def _said(cure: Callable[[], str], got: str) -> str:
    text = cure() if got == "none" else ""
    return f". {text}" if text else ""


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
    table = ColumnTable(read_together(data, names), grids, defaults=defaults, first=first)
    return table.records(names, missing, new=defaults is not None), table.index


def read_together(data: Any, names: Sequence[str]) -> Any:
    """A table that was opened with the columns that are named read in one pass; all else as it is."""
    data = opened_table(data) if is_foreign(type(data)) else data
    wanted = columns_read(names, data.names) if isinstance(data, OpenedTable) else []
    return {name: data[name] for name in data.names} | data.read(wanted) if wanted else data


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
        float_of(entry)
    except (TypeError, ValueError):
        return entry is None
    return not isinstance(entry, str) or entry.isascii()


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


def columns_of(terms: Sequence[TermSpec] | Sequence[TermDesign]) -> tuple[str, ...]:
    """Columns that terms read, each once."""
    return tuple(dict.fromkeys(name for term in terms for name in term.columns))


@dataclass(frozen=True)
class Covariates:
    """How the covariates of training rows were read, and new ones are.

    Attributes
    ----------
    grids : mapping of str to ndarray
        Points of the training curves.
    completion : Completion
        Of entries that columns lack.
    units : mapping of str to str
        Of the points of curves, where dates or times label them.
    """

    grids: Mapping[str, FloatArray]
    completion: Completion
    units: Mapping[str, str] = field(default_factory=dict)

    def read(self, data: Any, columns: Sequence[str], grids: Grids | None) -> Records:
        """Columns of new rows."""
        records = self.loose(data, columns, grids)
        return self.completion(records) if self.completion.how else records

    def loose(self, data: Any, columns: Sequence[str], grids: Grids | None) -> Records:
        """The same as they come, with what they lack."""
        given = [name for name in columns if name not in self.completion.indicators.values()]
        return read_records(data, given, grids, defaults=self.grids, missing=self.completion.how)[0]


def units_of(curves: Mapping[str, Curves]) -> dict[str, str]:
    """Units of the points of curves that have one."""
    return {name: c.unit for name, c in curves.items() if c.unit is not None}


# Responses: a column of a table, or a long table of observations.


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
    return ColumnTable(data, grids, defaults=defaults, first=first, gaps=True).response(name, n=n, index=index)


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
