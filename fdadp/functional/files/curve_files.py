"""Curves in files: CSV (plain or gzip), parquet and NumPy ``.npz``, one curve a row.

A CSV file starts with a header row. Column labels that are numbers, dates or times are the grid, which may decrease;
other labels, and 0, 1, ..., S-1 that only number the columns, mean an even grid on [0, 1]. The first column holds the
curves' labels, and not values, if its own label is empty, is an "id", or is the only one that is no number, no date or
no part of a numbered series ("t0", "t1", ...), or if none of its entries is a number. Empty fields and NA are missing
values. Long tables, one value a row, are read by the names of their columns.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from fdadp._common.loaded_later import pd
from fdadp.errors import FileFormatError, InputError
from fdadp.files.atomic_writes import replacing
from fdadp.files.regular_files import check_file
from fdadp.functional.files import csv_curves
from fdadp.functional.tables.curve_sample import is_long, long_hint
from fdadp.functional.tables.grid_from_labels import labels_rows

SUFFIXES = (".csv", ".csv.gz", ".parquet", ".npz")


def check_suffix(path: str | os.PathLike[str]) -> str:
    """Return which of :data:`SUFFIXES` a file name has.

    Raises
    ------
    FileFormatError
        None of them.
    """
    name = Path(path).name.lower()
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            return suffix
    raise FileFormatError(f"{path} must end in one of {', '.join(SUFFIXES)}, got {Path(path).suffix or 'no suffix'!r}")


def read_curves(
    path: str | os.PathLike[str] | pd.DataFrame,
    *,
    header: bool = True,
    long: tuple[str, str, str] | None = None,
    sep: str = ",",
    decimal: str = ".",
) -> pd.DataFrame:
    """Read a sample of curves.

    Parameters
    ----------
    path : path
        ``.csv`` or ``.csv.gz`` as the module describes. ``.parquet``, a data frame with one curve a row. ``.npz``, with
        its only two-dimensional array or the one named ``values``, and optionally ``grid`` and ``labels``. A data frame
        is taken as one that a parquet file holds.
    header : bool
        Whether a CSV file starts with column labels. Without them the grid is even on [0, 1].
    long : (str, str, str), optional
        Of a long table: names of the columns of id, point and value. Curves are then on the union of all points, NaN
        where they have none. Which points that are is private: before a private fit take public ones, by
        ``.reindex(columns=...)``. In an npz file these are one-dimensional arrays.
    sep, decimal : str
        Of a CSV file: ``","``, ``";"`` or a tab between fields, ``"."`` or ``","`` before decimals.

    Returns
    -------
    DataFrame of shape (n, S)
        float64, NaN where missing. Its columns are the grid (floats), or the column labels of the file where these are
        no numbers, or a ``RangeIndex`` where there are none. Its index holds the curves' labels or is a ``RangeIndex``.

    Raises
    ------
    FileFormatError
        Unknown suffix, unreadable or empty file, ragged rows, or text in numbers (says row, column and value). A grid
        that neither increases nor decreases or is not all numbers. A long table without `long`, or one curve a column.
    FileNotFoundError
        No such file.

    Examples
    --------
    A long table, as a file or a data frame:

    >>> visits = pd.DataFrame({"id": ["a", "a", "b"], "day": [0, 2, 1], "weight": [3.1, 3.4, 2.9]})
    >>> read_curves(visits, long=("id", "day", "weight"))
       0.0  1.0  2.0
    a  3.1  NaN  3.4
    b  NaN  2.9  NaN
    """
    names = None if long is None else csv_curves.check_names(long)
    if isinstance(path, pd.DataFrame):
        return _from_frame(path, "the data frame", names)
    suffix = check_suffix(path)
    source = Path(path)
    check_file(source)
    if suffix == ".parquet":
        return _from_parquet(source, names)
    if suffix == ".npz":
        return _from_npz(source, names)
    if names is not None and not header:
        raise InputError("header must be True where long names columns, got False")
    csv_curves.check_dialect(sep, decimal)
    csv_curves.refuse_utf16(source)
    opener: Any = gzip.open if suffix == ".csv.gz" else open
    with csv_curves.no_csv(source), opener(source, "rb") as stream:
        return csv_curves.from_csv(source, stream.read(), header, names, sep, decimal)


# --- parquet and npz ---


def _from_parquet(path: Path, long: tuple[str, str, str] | None) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(path)
    except ImportError as exc:
        raise FileFormatError(f"{path} needs pyarrow to be read: pip install pyarrow") from exc
    except Exception as exc:  # pyarrow raises classes of its own
        raise FileFormatError(f"{path} must be a parquet file, got {type(exc).__name__}: {exc}") from exc
    return _from_frame(frame, path, long)


def _from_frame(frame: pd.DataFrame, path: Any, long: tuple[str, str, str] | None) -> pd.DataFrame:
    if frame.empty:
        raise FileFormatError(f"{path} must hold curves, got a table of shape {frame.shape}")
    if long is not None:
        plain = frame.reset_index() if frame.index.names != [None] else frame
        columns = [str(name) for name in plain.columns]
        csv_curves.refuse_twice(columns, long, path)
        entries = [plain.iloc[:, j].tolist() for j in range(len(columns))]
        return csv_curves.curves_of_long(dict(zip(columns, entries, strict=True)), long, path)
    if is_long([frame.iloc[:, j] for j in range(frame.shape[1])]):
        raise FileFormatError(f"{path} must have one curve a row; {long_hint()}")
    given = frame.shape[1]
    name, *others = (str(name) for name in frame.columns)
    if labels_rows(name, others) or not pd.api.types.is_numeric_dtype(frame.dtypes.iloc[0]):
        frame = frame.set_index(frame.columns[0])
        frame.index.name = None
    if not frame.shape[1]:
        raise FileFormatError(f"{path} must have at least one column of numbers, got labels only")
    for column, dtype in frame.dtypes.items():
        if not pd.api.types.is_numeric_dtype(dtype) or dtype.kind == "c":
            cure = csv_curves.cure_of_text(
                [str(other) for other in frame.columns], frame[column].iloc[0], given - frame.shape[1]
            )
            raise FileFormatError(f"{path} must hold numbers, got a column {column!r} of type {dtype}{cure}")
    frame.columns = csv_curves.column_labels(path, [str(name) for name in frame.columns])
    return csv_curves.one_curve_a_row(path, frame.astype(np.float64))


def read_npz(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Arrays of a NumPy ``.npz`` file by name, in the order of the file; anything else in it is left out.

    Raises
    ------
    FileFormatError
        Not such a file, broken, or with arrays of objects.
    FileNotFoundError
        No such file.
    """
    check_file(Path(path))
    try:
        stored: Any = np.load(path, allow_pickle=False)
        if isinstance(stored, np.ndarray):
            raise FileFormatError(f"{path} must be a NumPy .npz file, got a single array (.npy)")
        with stored:
            return {name: array for name in stored.files if isinstance(array := stored[name], np.ndarray)}
    except (FileFormatError, FileNotFoundError):
        raise
    except Exception as exc:  # of zip files, of zlib, of NumPy, and of Python's parser, which NumPy uses
        what = "objects" if "allow_pickle" in str(exc) else f"{type(exc).__name__}: {exc}"
        raise FileFormatError(f"{path} must be a NumPy .npz file of plain arrays, got {what}") from None


def _from_npz(path: Path, long: tuple[str, str, str] | None) -> pd.DataFrame:
    arrays = read_npz(path)
    if long is not None:
        return csv_curves.curves_of_long({k: a.tolist() for k, a in arrays.items() if a.ndim == 1}, long, path)
    flat = [name for name, array in arrays.items() if array.ndim == 2]
    name = "values" if "values" in arrays else flat[0] if len(flat) == 1 else None
    if name is None:
        raise FileFormatError(
            f"{path} must have one two-dimensional array, or one named 'values', got {', '.join(arrays) or 'none'}"
        )
    values = arrays[name]
    if values.ndim != 2 or 0 in values.shape or values.dtype.kind not in "biuf":
        raise FileFormatError(
            f"{path} must hold numbers of shape (n, S) in {name!r}, got {values.dtype} {values.shape}"
        )
    for extra, axis in (("grid", 1), ("labels", 0)):
        if extra in arrays and arrays[extra].shape != (values.shape[axis],):
            raise FileFormatError(
                f"{path} must have {values.shape[axis]} entries in {extra!r}, got shape {arrays[extra].shape}"
            )
    columns = csv_curves.column_labels(path, [str(v) for v in arrays["grid"].astype(str)]) if "grid" in arrays else None
    index = pd.Index(arrays["labels"].tolist()) if "labels" in arrays else None
    return pd.DataFrame(values.astype(np.float64), index=index, columns=columns)


# --- writing ---


def write_curves(files: Mapping[Path, pd.DataFrame]) -> None:
    """Write data frames of curves; :func:`read_curves` reads them back exactly.

    Everything is written beside its place first and then renamed, so that a failure leaves no half a file.

    Parameters
    ----------
    files : mapping
        Data frame by path, whose suffix says the format.

    Raises
    ------
    FileFormatError
        Unknown suffix, or parquet without pyarrow.
    """
    suffixes = {path: check_suffix(path) for path in files}
    with ExitStack() as stack:
        for path, frame in files.items():
            _write(stack.enter_context(replacing(path)), frame, suffixes[path])


def _write(stream: BinaryIO, frame: pd.DataFrame, suffix: str) -> None:
    labelled = not isinstance(frame.index, pd.RangeIndex)
    if suffix == ".parquet":
        try:
            frame.rename(columns=str).to_parquet(stream, index=labelled)
        except ImportError as exc:
            raise FileFormatError("parquet needs pyarrow: pip install pyarrow") from exc
    elif suffix == ".npz":
        arrays: dict[str, Any] = {"values": frame.to_numpy(dtype=np.float64)}
        if pd.api.types.is_numeric_dtype(frame.columns.dtype):
            arrays["grid"] = frame.columns.to_numpy(dtype=np.float64)
        else:
            arrays["grid"] = np.asarray(frame.columns.astype(str), dtype=np.str_)
        if labelled:
            arrays["labels"] = np.asarray(frame.index.astype(str), dtype=np.str_)
        np.savez_compressed(stream, **arrays)
    else:
        frame.to_csv(stream, index=labelled, compression="gzip" if suffix == ".csv.gz" else None)
