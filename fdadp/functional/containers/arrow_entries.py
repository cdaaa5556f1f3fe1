"""Entries of Arrow columns, each as it is: what other entries of its column are changes nothing of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from fdadp.errors import InputError


def entries_of(column: Any) -> Any:
    """Entries of a column, shape (m,): numbers as an array of numbers, all else as Python's objects, missing ones None.

    Whole numbers with missing ones among them stay whole numbers. Labels of a categorical are their text.

    Parameters
    ----------
    column : pyarrow.Array or ChunkedArray, or list of objects
    """
    import pyarrow.types as types

    if isinstance(column, list):
        return _objects(column)
    kind = column.type
    if types.is_floating(kind) or (types.is_integer(kind) and column.null_count == 0):
        return np.asarray(column.to_numpy() if hasattr(column, "chunks") else column.to_numpy(zero_copy_only=False))
    return _objects(_listed(column))


def _listed(column: Any) -> list[Any]:
    """Python's objects, one entry after the other where one of them cannot be made: that one is missing."""
    try:
        listed: list[Any] = column.to_pylist()
    except UnicodeDecodeError:
        listed = [_entry(scalar) for scalar in column]
    return listed


def _entry(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return None


def _objects(listed: list[Any]) -> Any:
    out = np.empty(len(listed), dtype=object)
    for i, entry in enumerate(listed):
        out[i] = entry
    return out


def curves_of(column: Any, size: int, name: str, *, lenient: bool) -> Any:
    """A column of lists as an array (m, size); of a missing list, or entry, the values are missing.

    Parameters
    ----------
    column : pyarrow.ChunkedArray, or list of objects
    size : int
    name : str
        For messages.
    lenient : bool
        Whether a list of another length is a row without values, or an error.

    Raises
    ------
    InputError
        A list of another length, if not `lenient`; or a column of something else than lists.
    """
    chunks = [column] if isinstance(column, list) else column.chunks
    parts = [(_of_objects if isinstance(chunk, list) else _rows)(chunk, size, name, lenient) for chunk in chunks]
    if not parts:
        return np.empty((0, size))
    start = 0
    for part, bad in parts:
        if bad is not None:
            raise InputError(
                f"{name} must have {size} points in each row, got {bad[1]} in row {start + bad[0]} of a piece"
            )
        start += len(part)
    return np.concatenate([part for part, _ in parts]) if len(parts) > 1 else parts[0][0]


def _rows(chunk: Any, size: int, name: str, lenient: bool) -> tuple[Any, tuple[int, int] | None]:
    import pyarrow.types as types

    kind, m = chunk.type, len(chunk)
    there = np.asarray(chunk.is_valid().to_numpy(zero_copy_only=False), dtype=bool)
    if types.is_fixed_size_list(kind):
        lengths = np.where(there, kind.list_size, 0)
    elif hasattr(chunk, "value_lengths"):
        lengths = np.nan_to_num(np.asarray(chunk.value_lengths().to_numpy(zero_copy_only=False), dtype=np.float64))
        lengths = lengths.astype(np.int64)
    else:  # a column of nulls, or of what a reader made of it: no row has a list
        return np.full((m, size), None, dtype=object), None
    fits = there & (lengths == size)
    if not lenient and (there & ~fits).any():
        row = int(np.argmax(there & ~fits))
        return np.empty((m, size)), (row, int(lengths[row]))
    flat = entries_of(chunk.flatten())
    if len(flat) != int(lengths.sum()):
        raise InputError(f"{name} must hold lists of known lengths")
    values = flat if fits.all() else flat[np.repeat(fits, lengths)]
    if values.dtype.kind in "biuf":
        out: Any = np.full((m, size), np.nan)
    else:
        out = np.full((m, size), None, dtype=object)
    out[fits] = values.reshape(-1, size)
    return out, None


def _of_objects(rows: list[Any], size: int, name: str, lenient: bool) -> tuple[Any, tuple[int, int] | None]:
    out: Any = np.full((len(rows), size), None, dtype=object)
    for i, row in enumerate(rows):
        listed = row.to_list() if hasattr(row, "to_list") else row
        if isinstance(listed, list | tuple) and len(listed) == size:
            out[i] = _objects(list(listed))
        elif listed is not None and not lenient:
            return out, (i, len(listed) if isinstance(listed, list | tuple) else 1)
    return out, None
