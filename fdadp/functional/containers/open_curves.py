"""``open_curves``: tells containers apart and opens them; the registry of kinds of containers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fdadp._common.loaded_later import pd
from fdadp._common.typing import ArrayLike
from fdadp.errors import FileFormatError, InputError
from fdadp.files.regular_files import check_file
from fdadp.functional.containers import arrow, pandas_csv_skfda, xarray_zarr
from fdadp.functional.containers.opened_tables import OpenedColumn, OpenedCurves, OpenedTable
from fdadp.functional.containers.row_source import ALONE, Source

Opener = Callable[..., Source]

OBJECTS: Mapping[tuple[str, str], Opener] = {
    ("xarray", "DataArray"): xarray_zarr.of_dataset,
    ("xarray", "Dataset"): xarray_zarr.of_dataset,
    ("zarr", "Array"): xarray_zarr.of_zarr_object,
    ("zarr", "Group"): xarray_zarr.of_zarr_object,
    ("pyarrow", "Table"): arrow.of_table,
    ("pyarrow", "RecordBatch"): arrow.of_table,
    ("polars", "DataFrame"): lambda data, called, **options: arrow.of_table(data, called, kind="polars", **options),
    ("polars", "LazyFrame"): lambda data, called, **options: arrow.of_stream(data, called, kind="polars", **options),
    ("skfda", "FDataGrid"): pandas_csv_skfda.of_fdatagrid,
}
"""By the package and the class of an object."""

FILES: Mapping[str, Opener] = {
    ".csv": pandas_csv_skfda.of_csv,
    ".csv.gz": pandas_csv_skfda.of_csv,
    ".npz": pandas_csv_skfda.of_npz,
    ".npy": xarray_zarr.of_npy,
    ".parquet": arrow.of_parquet,
    ".zarr": xarray_zarr.of_zarr,
}
"""By the end of a file's name."""

ZARR = ("zarr.json", ".zgroup", ".zarray", ".zmetadata")
"""Files by which a folder is known as a zarr store."""


def open_curves(
    source: Any,
    *,
    curves: Mapping[str, str | Sequence[Any]] | None = None,
    grids: Mapping[str, ArrayLike | int] | ArrayLike | None = None,
    rows: str | None = None,
    sep: str = ",",
    decimal: str = ".",
) -> OpenedCurves | OpenedTable:
    """Open curves, or a table with columns of curves, whatever it lies in; nothing but what is public is read.

    Parameters
    ----------
    source : path or object
        A file (``.csv``, ``.csv.gz``, ``.npz``, ``.npy``, ``.parquet``), a folder of parquet files, or a zarr store.
        Also an xarray.DataArray or Dataset, a zarr array or group, a table or dataset of pyarrow, a frame or lazy frame
        of polars, or a relation of DuckDB. Also a data frame, an FDataGrid, or an array (n, S), each also of Dask.
        Paths and whatever is lazy stay where they are, and are gone through in pieces.
    curves : mapping of str to (str or sequence of labels), optional
        Columns of curves whose points are columns of a table: a prefix, as ``{"X": "x_"}`` for ``x_0``, ``x_0.5``, ...,
        or the columns in order.
    grids : mapping of str to (array_like or int), or array_like, optional
        Points of curves without labels, such as lists; an int says how many points lists of open length have.
    rows : str, optional
        Column with the labels of rows, which are no covariate; of xarray the dimension of rows.
    sep, decimal : str
        Of a CSV file: ``","``, ``";"`` or a tab between fields, ``"."`` or ``","`` before decimals.

    Returns
    -------
    OpenedCurves or OpenedTable
        One sample of curves (n, S): of arrays, of tables whose columns are labelled by a grid (an ``id`` may stand
        before). Else a table, whose columns are ``table["X"]``. Both are taken wherever curves and tables are: by
        ``fit``, ``fit_chunks``, ``predict``, private fits, ``groups=``. Iterating goes through the pieces,
        ``to_delayed()`` gives them to Dask, ``chunks("X", "id")`` to the kernel.

    Raises
    ------
    InputError
        Something else, columns that are not there, or grids that do not suit.
    FileFormatError
        A file that is not what its name says, or needs a package that is not there.

    Notes
    -----
    Dates and times as coordinates, or labels of columns, become numbers since the first date, or since 0. Their unit is
    the largest of days, hours, minutes and seconds that fits twice into their range. Numbers stay as they are. Columns
    labelled 0, 1, ..., S-1 are only numbered, and their curves lie on [0, 1].

    In a private fit names, shapes and grids are public. Types of columns, missing entries, statistics in footers,
    categories and attributes are not, and nothing depends on them: each entry means what it means by itself
    (``docs/theory/kernel.md#boundary``).

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp import AdditiveFunctionOnFunction, open_curves, simulate_affr
    >>> people = simulate_affr(scenario=1, n=100, seed=0)
    >>> np.save("/tmp/x.npy", people.X.data_matrix[..., 0]), np.save("/tmp/y.npy", people.Y.data_matrix[..., 0])
    (None, None)
    >>> X = open_curves("/tmp/x.npy", grids=people.s)
    >>> X
    </tmp/x.npy: curves; rows: 100>
    >>> model = AdditiveFunctionOnFunction(n_components=2).fit(X, open_curves("/tmp/y.npy"))
    >>> model.predict(X).shape
    (100, 51)
    """
    if isinstance(source, OpenedColumn | OpenedTable):
        return source  # type: ignore[return-value]
    named = grids if isinstance(grids, Mapping) or grids is None else {ALONE: grids}
    found = _source(source, curves=curves, grids=named, rows=rows, sep=sep, decimal=decimal)
    return OpenedCurves(found, ALONE) if found.fields.alone else OpenedTable(found)


def opened(data: Any, name: str) -> Any:
    """What an argument holds, opened where it is an object of another library that has a column of curves.

    Raises
    ------
    InputError
        A table that has not exactly one column of curves.
    """
    if not isinstance(data, OpenedTable):
        if not is_foreign(type(data)):
            return data
        found = _source(data, whole=True)
        data = OpenedCurves(found, ALONE) if found.fields.alone else OpenedTable(found)
    if isinstance(data, OpenedTable):
        if len(data.grids) != 1:
            raise InputError(f"{name} must have one column of curves, got {', '.join(data.grids) or 'none'}")
        return data[next(iter(data.grids))]
    return data


def opened_table(data: Any) -> Any:
    """A table of another library (:func:`is_foreign`) as one that was opened."""
    return OpenedTable(_source(data))


def is_foreign(kind: type) -> bool:
    """Whether such objects are tables in memory of another library, that would be arrays without their labels."""
    return (kind.__module__.split(".")[0], kind.__name__) in (("pyarrow", "Table"), ("polars", "DataFrame"))


def _opener(data: Any) -> Opener | None:
    kinds = type(data).__mro__
    packages = {kind.__name__: kind.__module__.split(".")[0] for kind in kinds}
    for name, package in packages.items():
        if (package, name) in OBJECTS:
            return OBJECTS[package, name]
    if "pyarrow" in packages.values() and hasattr(data, "get_fragments"):
        return arrow.of_arrow_dataset
    if isinstance(data, pd.DataFrame):
        return pandas_csv_skfda.of_frame
    if hasattr(data, "__arrow_c_stream__"):
        return arrow.of_stream
    if hasattr(data, "shape") and hasattr(data, "__getitem__") and not hasattr(data, "iloc"):
        chunks = getattr(data, "chunks", None)
        of_rows = chunks[0] if chunks and isinstance(chunks[0], tuple) else None
        return lambda array, called, **options: xarray_zarr.of_array(
            array, called, options.get("grids"), chunks=of_rows
        )
    return None


def _source(source: Any, **options: Any) -> Source:
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        return _file(path)(path, **options)
    opener = _opener(source)
    if opener is None:
        raise InputError(
            "source must be a path, or an object of xarray, zarr, pyarrow, polars, DuckDB, pandas, scikit-fda or an "
            f"array (n, S), got {type(source).__name__}"
        )
    along = opener in (xarray_zarr.of_dataset, xarray_zarr.of_zarr_object) or isinstance(source, np.ndarray)
    if along and options.get("curves") is not None:
        raise InputError("curves must be left out for arrays and xarray, whose curves are along a dimension")
    return opener(source, type(source).__name__, **options)


def _file(path: Path) -> Opener:
    """Raises FileNotFoundError, FileFormatError."""
    name = path.name.lower()
    if path.is_dir():
        is_zarr = name.endswith(".zarr") or any((path / known).exists() for known in ZARR)
        return xarray_zarr.of_zarr if is_zarr else arrow.of_parquet
    check_file(path)
    found = next((opener for suffix, opener in FILES.items() if name.endswith(suffix)), None)
    if found is None:
        raise FileFormatError(f"{path} must end in one of {', '.join(FILES)}, or be a folder, got {path.suffix!r}")
    return found
