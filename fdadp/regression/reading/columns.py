"""Columns of a table by name, read one by one, whose rows must agree."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.functional.containers.open import opened_table
from fdadp.functional.containers.source_table import OpenedTable
from fdadp.functional.tables.alignment import same_rows
from fdadp.functional.tables.columns import TableColumn, read_column
from fdadp.functional.tables.curves import check_finite, refuse_other_domain
from fdadp.functional.tables.records import Records
from fdadp.functional.tables.sample import Curves, row_labels
from fdadp.regression.reading.expressions import column_named, row_function
from fdadp.regression.reading.joined import aligned, have_labels

Grids = Mapping[str, ArrayLike]
"""Points of curves that are plain arrays, by column."""


def unknown_column(name: str, columns: Collection[Any], what: str = "data") -> InputError:
    """The error that says which columns there are, those with a name like it first."""
    known = list(dict.fromkeys(str(column) for column in columns))
    same = [column for column in known if column.casefold() == name.casefold()]
    close = same or difflib.get_close_matches(name, known, n=3)
    some = known if len(known) <= 20 else [*known[:20], f"... ({len(known)} in all)"]
    return InputError(
        f"{what} must have the column {name!r}, got the columns {', '.join(some) or 'none'}"
        + (f"; did you mean {' or '.join(map(repr, close))}?" if close else "")
    )


def check_grids(grids: Any, data: Any, response: str) -> None:
    """Refuse grids that are of no column.

    Raises
    ------
    InputError
        No mapping, or a name that is neither a column of `data` nor the response.
    """
    if grids is None:
        return
    if not isinstance(grids, Mapping):
        raise InputError(f"grids must be points by column, such as {{'X': s, 'Y': t}}, got {type(grids).__name__}")
    names = ColumnTable(data).names
    for name in grids:
        if name != response and column_named(str(name), names) is None:
            raise InputError(f"grids must be of columns: {unknown_column(str(name), [*names, response])}")


def rows_beside(data: Any, name: str, given: Any) -> None:
    """Refuse what is beside a table, and has other row labels, or the same ones in another order.

    Raises
    ------
    InputError
        Naming the first labels that differ.
    """
    own: Any = data if isinstance(data, pd.DataFrame) else None
    if isinstance(data, Mapping):
        own = next((column for column in data.values() if row_labels(column) is not None), None)
    same_rows(data=own, **{name: given})


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
        data = opened_table(data)
        if not isinstance(data, pd.DataFrame | Mapping | OpenedTable):
            hint = "; use fdadp.open_curves" if hasattr(data, "__arrow_c_stream__") else ""
            hint = "; use .compute(), or fit_chunks" if hasattr(data, "compute") else hint
            raise InputError(
                f"data must be a data frame, or a mapping of columns by name, got {type(data).__name__}{hint}"
            )
        self._data, self._grids, self._defaults = data, grids or {}, defaults or {}
        self._first, self._gaps = first, gaps
        self._lengths: dict[str, int] = {}
        self.sources: dict[str, Curves] = {}
        self._labelled: dict[str, Any] = {}
        self.index: pd.Index[Any] | None = data.index if isinstance(data, pd.DataFrame) else None
        if isinstance(data, pd.DataFrame):
            self._lengths["data"] = len(data)
        self._by_label = isinstance(data, Mapping) and have_labels(data)

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

    def read(self, name: str) -> TableColumn:
        """A column, or a function of some."""
        function = None if self.has(name) else row_function(name)
        if function is not None:
            return TableColumn(function.of({source: self._source(source, name) for source in function.sources}))
        raw = self._beside_others(name, self.raw(name))
        column = read_column(raw, name, self._grids.get(name), self._defaults.get(name))
        self._lengths[name] = len(column)
        labels = row_labels(raw)
        if not isinstance(self._data, pd.DataFrame) and labels is not None:
            self._labelled[name] = raw
            self.index = labels if self.index is None else self.index
        self._check()
        return column

    def _beside_others(self, name: str, raw: Any) -> Any:
        """A column, with its rows in the order of those that were read before, where all columns have labels."""
        labels = row_labels(raw)
        if not self._by_label or self.index is None or labels is None or labels.equals(self.index):
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
            Records(len(column), {name: column.values}, first=self._first).numbers(name)
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


def _said(cure: Callable[[], str], got: str) -> str:
    text = cure() if got == "none" else ""
    return f". {text}" if text else ""
