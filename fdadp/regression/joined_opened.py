"""Rows of what was opened (:func:`fdadp.open_curves`), joined by the labels that their table has of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from fdadp.functional.containers.opened import OpenedColumn


def is_labelled(data: Any) -> bool:
    """Whether this was opened, and its table has labels of its rows: by its type and the names of its columns.

    Not scikit-fda's: whether samples have names is a matter of the names.
    """
    opened = isinstance(data, OpenedColumn) and data.source.kind != "fdatagrid"
    return opened and data.source.fields.rows is not None


def public_labels(data: OpenedColumn) -> pd.Index[Any]:
    """No labels, under their name: nothing is read."""
    rows = data.source.fields.rows
    assert rows is not None
    return pd.Index([], name=rows.name or None, dtype=object)


def labels_read(data: OpenedColumn) -> pd.Index[Any]:
    """All labels, from one pass."""
    rows = data.source.fields.rows
    assert rows is not None
    read = (part for _, part in _passed(data, [data.field, rows], lenient=False))
    parts = [part if isinstance(part, pd.Index) else pd.Index(part) for part in read]
    found = parts[0].append(parts[1:]) if parts else pd.Index([], dtype=object)
    return found if isinstance(found, pd.MultiIndex) else found.rename(rows.name or found.name)


def read_labelled(
    inputs: Mapping[str, Any], labels: Mapping[str, pd.Index[Any]]
) -> tuple[dict[str, Any], dict[str, pd.Index[Any]]]:
    """The same with labels of what was opened; it is read into memory where its rows may have to be moved."""
    own = {
        name: data.values() if is_labelled(data) and not data.source.ordered else data for name, data in inputs.items()
    }
    found = {
        name: labels_read(own[name])
        if is_labelled(own[name])
        else getattr(own[name], "index", labels[name])
        if is_labelled(inputs[name])
        else labels[name]
        for name in labels
    }
    first = next(iter(found.values()))
    if first.is_unique and all(one.equals(first) for one in found.values()):
        return own, found
    return {name: data.values() if is_labelled(data) else data for name, data in own.items()}, found


def with_names(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The same with samples of scikit-fda that were opened as curves, whose labels are the samples' names."""
    named = {n for n, own in inputs.items() if isinstance(own, OpenedColumn) and own.source.kind == "fdatagrid"}
    return {name: data.values() if name in named else data for name, data in inputs.items()}


class OpenedRows:
    """Columns of one table that was opened, and the labels of its rows, in chunks: entries as they are.

    Parameters
    ----------
    columns : sequence of OpenedColumn
        Of one source.
    places : sequence of int
        Their numbers among the tables of a fit.
    convert : callable
        From such a number, and entries, to what the kernel takes for them.
    """

    def __init__(
        self, columns: Sequence[OpenedColumn], places: Sequence[int], convert: Callable[[int, Any], Any]
    ) -> None:
        self.source = columns[0].source
        self._columns, self._places, self._convert = tuple(columns), tuple(places), convert

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        fields = [column.field for column in self._columns]
        for *parts, who in _passed(self._columns[0], [*fields, self.source.fields.rows], lenient=True):
            yield (*map(self._convert, self._places, parts), who)


def _passed(data: OpenedColumn, fields: Sequence[Any], *, lenient: bool) -> Iterator[list[Any]]:
    """Entries of columns, from one pass over the pieces of their table."""
    source = data.source
    if lenient:
        return (source.entries(piece, fields) for piece in source.passed(lenient=True))
    return (piece(fields, lenient=False) for piece in source.passed())
