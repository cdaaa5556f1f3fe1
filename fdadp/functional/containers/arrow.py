"""Tables that speak Arrow: pyarrow's tables, streams and datasets, polars, DuckDB, and parquet files and folders.

Of a column the name is asked, and whether each row has a list of fixed length: both are public. What its entries are,
and which of them are missing, is found entry by entry when a piece is read: the type of a column was perhaps chosen by
a reader who looked at the values. Curves are columns of lists, or several columns that are named
(:func:`fdadp.functional.containers.row_source.fields_of`).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fdadp.errors import FileFormatError, InputError
from fdadp.files.regular_files import check_installed
from fdadp.functional.containers.row_source import Field, Piece, Source, fields_of, side_by_side
from fdadp.functional.tables.curve_sample import GRID, Kind

# Entries of Arrow columns, each as it is: what other entries of its column are changes nothing of it.


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
        return column.to_pylist()  # type: ignore[no-any-return]
    except UnicodeDecodeError:
        return (
            [None] if len(column) == 1 else [entry for i in range(len(column)) for entry in _listed(column[i : i + 1])]
        )


def _objects(listed: list[Any]) -> Any:
    return np.fromiter(listed, dtype=object, count=len(listed))


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


ALL = 2**62
"""Rows that no query has."""
UNNAMED = "__index_level_0__"
"""Column in which pandas stores labels of rows that have no name."""


def _of_batch(rows: Any, fields: Sequence[Field], lenient: bool) -> list[Any]:
    """A piece: all rows of a table, or of a batch, in memory."""
    return read_fields(_columns_of(rows, _sources(fields)), fields, lenient)


def _of_slice(table: Any, rows: slice, fields: Sequence[Field], lenient: bool) -> list[Any]:
    """A piece: rows of a table in memory."""
    return _of_batch(table.slice(rows.start, rows.stop - rows.start), fields, lenient)


def _of_row_group(path: str, number: int, fields: Sequence[Field], lenient: bool) -> list[Any]:
    """A piece: a row group of a parquet file, of which no other columns are read."""
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:
        names = _sources(fields)
        dotted = any("." in name for name in file.schema_arrow.names)  # for pyarrow a path into nested columns
        table = file.read_row_group(number, columns=None if dotted else names)
    return read_fields(table, fields, lenient)


def _of_fragment(fragment: Any, schema: Any, fields: Sequence[Field], lenient: bool) -> list[Any]:
    """A piece: a part of a dataset, of which no other columns are read."""
    return read_fields(fragment.to_table(schema=schema, columns=_sources(fields)), fields, lenient)


def read_fields(table: Any, fields: Sequence[Field], lenient: bool) -> list[Any]:
    """Entries of columns of an Arrow table, or of a mapping of Arrow's columns and lists of Python's objects."""
    out = []
    for f in fields:
        if isinstance(f.source, tuple):
            out.append(side_by_side([entries_of(table[name]) for name in f.source]))
        elif f.grid is not None:
            out.append(curves_of(table[f.source], f.grid.size, f.name, lenient=lenient))
        else:
            out.append(entries_of(table[f.source]))
    return out


def _sources(fields: Sequence[Field]) -> list[str]:
    found = (f.source if isinstance(f.source, tuple) else (f.source,) for f in fields)
    return list(dict.fromkeys(name for names in found for name in names))


# ------------------------------------------------------------------ what is public


def _lists(schema: Any) -> tuple[dict[str, int | None], dict[str, Any]]:
    """Columns and the lengths of their lists, and grids that the schema holds."""
    import pyarrow.types as types

    lists: dict[str, int | None] = {}
    stored: dict[str, Any] = {}
    if len(set(schema.names)) < len(schema.names):
        raise InputError("columns of a table must have names that differ")
    for own in schema:
        fixed = types.is_fixed_size_list(own.type)
        lists[own.name] = own.type.list_size if fixed else 0 if _is_list(types, own.type) else None
        noted = (own.metadata or {}).get(GRID.encode())
        if fixed and noted is not None:
            stored[own.name] = json.loads(noted)
    return lists, stored


def _is_list(types: Any, kind: Any) -> bool:
    names = ("is_list", "is_large_list", "is_list_view", "is_large_list_view")
    return any(hasattr(types, name) and getattr(types, name)(kind) for name in names)


def _lists_of_polars(data: Any) -> tuple[dict[str, int | None], dict[str, Any]]:
    """The same of a frame of polars, which knows types that Arrow does not."""
    lists: dict[str, int | None] = {}
    for name, kind in data.collect_schema().items():
        lists[name] = getattr(kind, "size", None) if kind.is_nested() else None
        if str(kind).startswith("List"):
            lists[name] = 0
    return lists, {}


def _fields(public: tuple[dict[str, int | None], dict[str, Any]], options: dict[str, Any]) -> Any:
    lists, stored = public
    if options.get("rows") is None and UNNAMED in lists:
        options = options | {"rows": UNNAMED}
    return fields_of(lists, options, stored=stored, whole=bool(options.get("whole")))


def _columns_of(rows: Any, names: Sequence[str]) -> dict[str, Any]:
    """Arrow columns of whatever speaks Arrow; lists of Python's objects where a type is none of Arrow's.

    Such a type may be there because of a single entry: a reader makes 128 bits of a column with one large number, and
    Python's objects would come as addresses.
    """
    import pyarrow as pa

    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    if isinstance(rows, pa.Table):
        return {name: rows[name] for name in names}
    if not hasattr(rows, "get_column"):
        table = _stream(rows).read_all()
        return {name: table[name] for name in names}
    found: dict[str, Any] = {}
    for name in names:
        column = rows.get_column(name)
        if "Object" not in str(column.dtype):
            with contextlib.suppress(pa.ArrowException):
                found[name] = _stream(rows.select(name)).read_all()[name]
        if name not in found:
            found[name] = column.to_list()
    return found


# ------------------------------------------------------------------ kinds of containers


def of_table(data: Any, called: str, *, kind: Kind = "arrow", **options: Any) -> Source:
    """A table in memory, of pyarrow or polars.

    Raises
    ------
    InputError
        Columns that are not there, or grids that do not suit.
    """
    check_installed("pyarrow", called)
    public = _lists(data.schema) if kind == "arrow" else _lists_of_polars(data)
    n = len(data) if kind == "polars" else data.num_rows
    return Source.of_rows(called, _fields(public, options), kind, n, partial(_of_slice, data))


def _batches(query: Any) -> Iterator[Piece]:
    """Record batches of a query, computed anew on each pass."""
    if hasattr(query, "collect_batches"):
        batches = query.collect_batches()
    elif hasattr(query, "collect"):
        batches = [query.collect()]
    else:
        batches = _stream(query.limit(ALL))  # relations of old versions of DuckDB can be streamed once
    return (partial(_of_batch, batch) for batch in batches)


def _stream(data: Any) -> Any:
    from pyarrow import RecordBatchReader

    return RecordBatchReader.from_stream(data)


def of_stream(data: Any, called: str, *, kind: Kind = "arrow", **options: Any) -> Source:
    """A query that gives Arrow batches anew each time it is asked, perhaps in another order: of DuckDB, of polars.

    Raises
    ------
    InputError
        A stream that is used up by one pass; columns that are not there.
    """
    check_installed("pyarrow", called)
    if hasattr(data, "read_next_batch") or not hasattr(data, "limit"):
        raise InputError(
            f"{called} must be something that can be read several times, got a one-way stream: use .read_all()"
        )
    public = _lists_of_polars(data) if kind == "polars" else _lists(_stream(data.limit(0)).schema)
    return Source(called, _fields(public, options), kind, partial(_batches, data), ordered=False)


def of_arrow_dataset(data: Any, called: str, **options: Any) -> Source:
    """A dataset of pyarrow: its fragments are pieces, of parquet files their row groups."""
    parts = [piece for fragment in data.get_fragments() for piece in _split(fragment)]
    known = all(hasattr(part, "row_groups") for part in parts)
    sizes = tuple(int(part.count_rows()) for part in parts) if known else None
    pieces = tuple(partial(_of_fragment, part, data.schema) for part in parts)
    return Source(called, _fields(_lists(data.schema), options), "arrow", pieces, sizes)


def _split(fragment: Any) -> list[Any]:
    return fragment.split_by_row_group() if hasattr(fragment, "split_by_row_group") else [fragment]


def of_parquet(path: Path, **options: Any) -> Source:
    """A parquet file, or a folder of such in the order of their names; footers are read, and their statistics not used.

    Raises
    ------
    FileFormatError
        No such files, files of other columns than the first one, or folders named ``key=value``.
    """
    check_installed("pyarrow", str(path))
    from pyarrow.parquet import ParquetFile

    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.rglob("*.parquet") if file.is_file())
        if not files:
            raise FileFormatError(f"{path} must hold parquet files, got none")
        if any("=" in part for file in files for part in file.relative_to(path).parts[:-1]):
            raise FileFormatError(
                f"{path} must hold parquet files with all their columns: open folders named key=value by "
                "pyarrow.dataset.dataset(path, partitioning='hive')"
            )
    pieces: list[Piece] = []
    sizes: list[int] = []
    first: Any = None
    for file in files:
        try:
            with ParquetFile(file) as opened:
                schema, footer = opened.schema_arrow, opened.metadata
                groups = [footer.row_group(i).num_rows for i in range(footer.num_row_groups)]
        except Exception as exc:  # pyarrow raises classes of its own
            raise FileFormatError(f"{file} must be a parquet file, got {type(exc).__name__}: {exc}") from exc
        if first is None:
            first = schema
        elif _lists(schema)[0] != _lists(first)[0]:
            raise FileFormatError(f"{file} must have the columns of {files[0]}, with lists of the same lengths")
        pieces += [partial(_of_row_group, str(file.resolve()), i) for i in range(len(groups))]
        sizes += groups
    return Source(str(path), _fields(_lists(first), options), "arrow", tuple(pieces), tuple(sizes))
