"""Whether rows of several inputs are joined by their labels, and what they are called: by types and names alone.

A label says whose a row is. Nothing here asks what the labels are, how many there are, or whether they agree: pandas
itself decides by which rows were dropped whether numbers of rows stay a ``RangeIndex``, and whether two columns of one
frame share one index object (``docs/theory/kernel.md#join``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fdadp._common.argument_checks import is_one_of
from fdadp._common.calling_language import advice
from fdadp._common.dask_tasks import is_dask
from fdadp._common.loaded_later import pd
from fdadp._common.typing import IntArray
from fdadp.errors import InputError
from fdadp.functional.containers.open_curves import is_foreign, opened
from fdadp.functional.containers.opened_tables import OpenedColumn, rows_of
from fdadp.functional.tables.curve_inputs import row_labels
from fdadp.functional.tables.curve_sample import Curves
from fdadp.privacy import Privacy
from fdadp.privacy.joined_tables import NO_ROW, Joined, JoinedChunks, joined_rows, key_of
from fdadp.privacy.private_entries import Table, meaning, table

# Rows of what was opened (:func:`fdadp.open_curves`), joined by the labels that their table has of them.


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


def opened_columns(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs by name, tables of other libraries as the curves that they hold; all else as it is.

    Raises
    ------
    InputError
        A table that has not exactly one column of curves.
    """
    return {name: opened(data, name) if is_foreign(type(data)) else data for name, data in inputs.items()}


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
    return (piece(fields, False) for piece in source.passed())


BY = (None, "label", "position")
"""How rows may belong together: None is by label where every input has labels, else by position."""

Labels = Mapping[str, "pd.Index[Any]"]


def by_place() -> str:
    """How rows are taken by position, at the open door."""
    return advice(
        "say by='position'", r="drop the names of rows", shell="leave the column of ids out of one of the files"
    )


def as_they_stand() -> str:
    """The same, for rows that belong together."""
    return f"{by_place()} if rows belong together as they stand"


def joined_labels(by: str | None, inputs: Mapping[str, Any]) -> Labels | None:
    """Labels of the rows of inputs that are joined by them; None where rows belong together by position.

    Parameters
    ----------
    by : {"label", "position"} or None
    inputs : mapping of str to object
        By the name of the argument.

    Raises
    ------
    InputError
        Another `by`, an input without labels where they were asked for, or labels of two names. All of it is public.
    """
    if not is_one_of(by, BY):
        raise InputError(f"by must be 'label' or 'position', got {by!r}")
    if by == "position":
        return None
    if by is None and len(inputs) > 1 and any(map(_is_dask_frame, inputs.values())):
        raise InputError(
            f"{' and '.join(inputs)} must be columns of one table where one of them is a frame or a series of Dask's, "
            "for rows are not joined across partitions. Merge them by their id before, or say by='position'"
        )
    labels = {name: _labels_of(data) for name, data in inputs.items()}
    without = next((name for name, own in labels.items() if own is None), None)
    if by is None and (without is not None or len(_tables(inputs)) < 2):
        return None
    if without is not None:
        raise InputError(f"{without} must have row labels with by='label', as a data frame or a series has")
    found = {name: own for name, own in labels.items() if own is not None}
    names = {own.names[0]: name for name, own in reversed(found.items()) if own.names[0] is not None}
    if by is None and len(names) > 1:
        (first, a), (second, b), *_ = sorted(names.items(), key=lambda item: list(found).index(item[1]))
        raise InputError(
            f"{a} and {b} must have row labels of one name, got {first!r} and {second!r}: "
            + advice(
                "say by='label' if both are the id that rows are joined by, or by='position'",
                r="give the names of rows one meaning, or drop them",
                shell="give the column of ids one name in every file",
            )
        )
    return found


def refuse_unknown_length(inputs: Mapping[str, Any]) -> None:
    """Refuse columns of unknown length that belong together by position; raises InputError."""
    odd = next((name for name, own in inputs.items() if isinstance(own, OpenedColumn) and own.n is None), None)
    if odd is not None:
        raise InputError(
            f"{odd} must have a known number of rows, got {inputs[odd]!r}. Label the rows of all inputs by the "
            "person's id, as by open_curves(path, rows='id'). Or hand over the table that was opened, with all of its "
            "columns. Or read the file first, read_curves(path)"
        )


def have_labels(inputs: Mapping[Any, Any]) -> bool:
    """Whether each of several inputs has labels of its rows, by its type."""
    return len(_tables(inputs)) > 1 and all(_labels_of(data) is not None for data in inputs.values())


def _tables(inputs: Mapping[Any, Any]) -> dict[Any, int]:
    """Numbers of different tables: columns of one table that was opened are one, all other inputs are one each."""
    return {
        key: k
        for k, key in enumerate(
            dict.fromkeys(id(data.source) if is_labelled(data) else name for name, data in inputs.items())
        )
    }


def name_of(labels: Labels) -> str:
    """What the id is called."""
    return next((str(own.names[0]) for own in labels.values() if own.names[0] is not None), "row label")


def private_rows(
    labels: Labels,
    tables: Sequence[tuple[str, Table]],
    groups: Any,
    privacy: Privacy,
    inputs: Mapping[str, Any],
    convert: Callable[[int, Any], Any] = lambda _, column: column,
) -> tuple[Any, None]:
    """What a private fit hands to the kernel where rows are joined by their labels; nothing is read.

    Parameters
    ----------
    labels : mapping of str to Index
        Of :func:`joined_labels`.
    tables : sequence of (str, Table)
        The input that each table is of, and the table. The last one holds the response.
    groups : ids, name, or None
    privacy : Privacy
    inputs : mapping of str to object
        What was given, whose labels are compared where they are public.
    convert : callable, optional
        From the number of a table, and a chunk of its column as it was opened, to what the kernel takes for it.

    Raises
    ------
    InputError
        Ids beside the labels; of labels that are public, others in one of the inputs.
    """
    name = name_of(labels)
    if groups is not None and not (isinstance(groups, str) and groups == name):
        raise InputError(
            f"groups must be left out where rows are joined by their labels, for these say whose a row is; or be their "
            f"name, {name!r}. If they are no persons, {by_place()}"
        )
    if privacy.labels == "public":
        own = [labels_read(inputs[name]) if is_labelled(inputs[name]) else one for name, one in labels.items()]
        _refuse_others(list(labels), [key_of(one) for one in own])
    known = _tables({name: inputs[name] for name in labels})
    where = {name: known[id(inputs[name].source) if is_labelled(inputs[name]) else name] for name in labels}
    of = tuple(where[source] for source, _ in tables)
    keys = {where[source]: key_of(one) for source, one in labels.items()}
    held: dict[int, list[int]] = {}
    for j, (source, _) in enumerate(tables):
        if is_labelled(inputs[source]):
            held.setdefault(of[j], []).append(j)
    read = tuple(own for _, own in tables)
    if not held:
        return Joined(read, of, tuple(keys[k] for k in sorted(keys)), of[-1], name), None
    used = sorted(set(of))
    chunks = [
        None if k not in held else OpenedRows([inputs[tables[j][0]] for j in held[k]], held[k], convert) for k in used
    ]
    opened = {j for own in held.values() for j in own}
    heads = tuple(table(np.empty((0, *own.shape[1:]))) if j in opened else own for j, own in enumerate(read))
    of = tuple(map(used.index, of))
    return JoinedChunks(heads, of, tuple(keys[k] for k in used), of[-1], name, tuple(chunks)), None


def refuse_several(values: Any, max_rows: int | None) -> None:
    """Refuse several rows of a person in what :func:`private_rows` gave, where a person has one; raises InputError."""
    if isinstance(values, Joined) and max_rows is not None and max_rows > 1:
        cure = advice(
            "name the persons in groups and say by='position'",
            r="drop the names of rows and name the persons in groups",
            shell="put them into one file",
        )
        raise InputError(
            f"max_rows must be left out where rows are joined by {values.name}, which cannot tell rows of a person "
            f"apart, got {max_rows}. Where rows of all tables stand in one order, {cure}"
        )


def _is_dask_frame(data: Any) -> bool:
    return hasattr(data, "npartitions") and hasattr(data, "index") and is_dask(data)


def _labels_of(data: Any) -> pd.Index[Any] | None:
    """Labels that objects of this kind have."""
    if isinstance(data, pd.DataFrame | pd.Series | Curves):
        return data.index
    if is_labelled(data):
        return public_labels(data)
    return row_labels(data) if type(data).__module__.split(".")[0] == "xarray" else None


def _refuse_others(sources: Sequence[str], keys: Sequence[Any]) -> None:
    """Refuse ids that are not in every input, where ids are public."""
    for k, name in enumerate(sources):
        found = joined_rows(keys, lambda _, rows: rows, k)
        bad = any((rows == NO_ROW).any() for rows in found.rows)
        if bad or any(own.size for own in found.without_id):
            raise InputError(
                f"{' and '.join(sources)} must have rows of the same ids, each once, where labels are public, got "
                f"others beside those of {name}"
            )


# --- without privacy


def aligned(
    by: str | None, inputs: Mapping[str, Any], primary: str, *, every: bool = False
) -> tuple[dict[str, Any], str | None]:
    """Inputs of a fit without privacy, a row of each for every record; and what was joined, in words.

    Parameters
    ----------
    by : {"label", "position"} or None
    inputs : mapping of str to object
        By the name of the argument.
    primary : str
        The one whose rows are the records; they keep their order and labels.
    every : bool
        Refuse records that are not in each input, which are left out else.

    Returns
    -------
    inputs : dict
        With equal labels where they had any, if they are taken by position.
    said : str or None
        As ``"joined 398 of 400 by pid"``.

    Raises
    ------
    InputError
        As :func:`joined_labels`; by name, rows without an id, rows of one id that differ where one is wanted, and no
        record that is in all inputs.
    """
    inputs = with_names(opened_columns(inputs))
    labels = joined_labels(by, inputs)
    if labels is None:
        return _by_position(inputs, primary) if by == "position" else dict(inputs), None
    called = name_of(labels)
    inputs, labels = read_labelled(inputs, labels)
    names, own = list(labels), labels[primary]
    if own.is_unique and all(one.equals(own) for one in labels.values()):
        counted = isinstance(own, pd.RangeIndex)
        return dict(inputs), None if counted else f"joined {len(own)} of {len(own)} by {called}"
    at = names.index(primary)

    def content(k: int, rows: IntArray) -> Any:
        return np.zeros(rows.size) if k == at else _texts(inputs[names[k]], rows)

    found = joined_rows([key_of(labels[name]) for name in names], content, at)
    _refuse_unjoined(labels, called, found)
    order = np.argsort(found.rows[at], kind="stable")
    kept = order[np.all([rows[order] != NO_ROW for rows in found.rows], axis=0)]
    if not kept.size and len(own):
        others = next((n for n, rows in zip(names, found.rows, strict=True) if (rows == NO_ROW).all()), names[-1])
        raise InputError(
            f"{primary} and {others} must have row labels in common ({called}), got none, such as "
            f"{_shown(own, 0)} and {_shown(labels[others], 0)}: {as_they_stand()}"
        )
    if every and kept.size < len(own):
        gone = next((n, rows) for n, rows in zip(names, found.rows, strict=True) if (rows == NO_ROW).any())
        row = int(found.rows[at][gone[1] == NO_ROW].min())
        raise InputError(f"{gone[0]} must have a row for each of {primary} ({called}), got none for {_shown(own, row)}")
    taken = own[found.rows[at][kept]]
    out = {name: _taken(inputs[name], rows[kept], taken) for name, rows in zip(names, found.rows, strict=True)}
    return out, f"joined {kept.size} of {len(own)} by {called}"


def _by_position(inputs: Mapping[str, Any], primary: str) -> dict[str, Any]:
    """Inputs whose labels were not to be looked at, with those of the records."""
    inputs = {name: data.values() if is_labelled(data) else data for name, data in inputs.items()}
    labels = {name: _labels_of(data) for name, data in inputs.items()}
    first = (
        labels[primary] if labels[primary] is not None else next((o for o in labels.values() if o is not None), None)
    )
    if first is None:
        return dict(inputs)
    for name, own in labels.items():
        if own is not None and len(own) != len(first):
            raise InputError(f"{primary} and {name} must have the same number of rows, got {len(first)} and {len(own)}")
    rows = np.arange(len(first))
    return {n: data if labels[n] is None else _taken(data, rows, first) for n, data in inputs.items()}


def _refuse_unjoined(labels: Labels, called: str, found: Any) -> None:
    cure = as_they_stand()
    for name, rows in zip(labels, found.without_id, strict=True):
        if rows.size:
            raise InputError(
                f"{name} must have an id in every row label ({called}), a whole number or a text, got "
                f"{_shown(labels[name], rows[0])} in row {rows[0]}{_more(rows)}; {cure}"
            )
    for name, rows in zip(labels, found.differing, strict=True):
        if rows.size:
            raise InputError(
                f"{name} must have one row for each {called}, or equal ones, got several that differ for "
                f"{_shown(labels[name], rows[0])} in row {rows[0]}{_more(rows)}; {_several()}, or {cure}"
            )


def _several() -> str:
    """How tables with several rows a person are joined."""
    known = "label rows by id and visit (a MultiIndex) in all tables"
    shell = "add a column that is different in every row and give it as --id, and persons as --groups"
    return advice(known, r=known, shell=shell)


def _shown(labels: pd.Index[Any], row: int) -> str:
    return repr(labels[[row]].tolist()[0])


def _more(rows: IntArray) -> str:
    return f" and {rows.size - 1} more" if rows.size > 1 else ""


def _taken(data: Any, rows: IntArray, labels: pd.Index[Any]) -> Any:
    """Rows of an input, under the labels of the records."""
    if isinstance(data, pd.DataFrame | pd.Series):
        own = data.iloc[rows]
        return own if own.index is labels or own.index.equals(labels) else own.set_axis(labels, axis=0)
    if isinstance(data, Curves):
        own = rows_of(data, rows)
        return replace(own, index=labels)
    own, name = data.isel({data.dims[0]: rows}), data.dims[0]
    return own if own.indexes[name].equals(labels) else own.drop_vars(name).assign_coords({name: labels})


def _texts(data: Any, rows: IntArray) -> Any:
    """What rows of an input hold, as texts (m,): equal where rows mean the same."""
    if isinstance(data, pd.DataFrame):
        columns = [data.iloc[rows, j] for j in range(data.shape[1])]
    else:
        columns = [rows_of(data, rows).values] if isinstance(data, Curves) else [_rows_of(data, rows)]
    return np.array(["|".join(map(_text, row)) for row in zip(*columns, strict=True)], dtype=object)


def _rows_of(data: Any, rows: IntArray) -> Any:
    return data.iloc[rows] if isinstance(data, pd.Series) else data.isel({data.dims[0]: rows}).values


def _text(entry: Any) -> str:
    if hasattr(entry, "data_matrix"):  # a curve in a data frame
        entry = entry.data_matrix
    if isinstance(entry, np.ndarray):
        entry = entry.ravel().tolist()
    return repr(meaning(entry))


def positioned(data: Any) -> Any:
    """Columns whose labels are not to be looked at, with those of the first of them."""
    return aligned("position", data, next(iter(data)))[0] if isinstance(data, Mapping) and data else data
