"""Labelled arrays: xarray's DataArrays and Datasets, in memory, by Dask or from zarr, and zarr's own arrays.

One dimension is that of rows: the first one, unless another is named. Coordinates of the other dimension of a variable
are the points of its curves: numbers as they are, dates and times in the largest unit of which they span two, counted
from the first date or from 0 (:mod:`fdadp.functional.tables.grid_from_labels`); where they decrease, they are turned
round with the values. The coordinate along rows labels them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fdadp._common.loaded_later import pd
from fdadp.errors import FileFormatError, InputError
from fdadp.files.regular_files import check_installed
from fdadp.functional.containers.row_source import ALONE, Field, Fields, Source, curve_field
from fdadp.functional.tables.curve_sample import Given, plain_attributes

# Arrays on disk and in memory, one curve a row: ``.npy`` files, memory maps, whatever has shape and slices.


def _rows_of_array(
    array: Any, again: Callable[[], Any] | None, rows: slice, fields: Sequence[Field], lenient: bool
) -> list[Any]:
    """Rows of an array that is at hand, or that `again` opens; for each field the same."""
    part = (array if again is None else again())[rows]
    part = part.compute() if hasattr(part, "compute") else part
    held = np.ma.filled(part.astype(object), None) if np.ma.isMA(part) else np.array(part)
    return [held] * len(fields)


def of_array(
    array: Any, called: str, grids: Any = None, *, chunks: Sequence[int] | None = None, again: Any = None
) -> Source:
    """A sample of curves of an array (n, S); `again`, which can be sent elsewhere, opens it once more.

    Raises
    ------
    InputError
        Another number of dimensions, or an unknown number of rows.
    """
    shape = tuple(array.shape)
    if len(shape) != 2 or not all(isinstance(k, int | np.integer) for k in shape):
        raise InputError(f"{called} must be an array of curves, of shape (n, S), got shape {shape}")
    grid = grids.get(ALONE) if isinstance(grids, Mapping) else grids
    fields = Fields({ALONE: curve_field(ALONE, None, int(shape[1]), grid=grid, given=Given())}, alone=True)
    read = partial(_rows_of_array, array if again is None else None, again)
    return Source.of_rows(called, fields, "array", int(shape[0]), read, chunks)


def of_npy(path: str | os.PathLike[str], **options: Any) -> Source:
    """A sample of curves in a ``.npy`` file, of which the header is read.

    Raises
    ------
    FileFormatError
        Not such a file, or one of objects.
    """
    again = partial(np.load, str(Path(path).resolve()), mmap_mode="r", allow_pickle=False)
    try:
        array = again()
    except (FileNotFoundError, MemoryError):
        raise
    except Exception as exc:  # of NumPy, and of zip files
        raise FileFormatError(f"{path} must be a NumPy .npy file of plain numbers, got {exc}") from None
    if not isinstance(array, np.ndarray):
        array.close()
        raise FileFormatError(f"{path} must be a NumPy .npy file of plain numbers, got several arrays (.npz)")
    return of_array(array, str(path), options.get("grids"), again=again)


def _rows_of_dataset(data: Any, along: Hashable, rows: slice, fields: Sequence[Field], lenient: bool) -> list[Any]:
    """Values of variables, rows along the first axis."""
    some = data.isel({along: rows})
    found = [some[f.source].transpose(along, ...).to_numpy() for f in fields]
    return [v.astype(object) if v.dtype.kind in "US" else v for v in found]


def of_dataset(data: Any, called: str, *, rows: Hashable | None = None, grids: Any = None, **_: Any) -> Source:
    """A DataArray of two dimensions, or a Dataset whose variables share the dimension of rows.

    Raises
    ------
    InputError
        Neither of them, no dimension of rows, or coordinates that are no grid.
    """
    alone = not hasattr(data, "data_vars")
    if alone and data.ndim != 2:
        raise InputError(f"{called} must have two dimensions, of rows and of points, got {tuple(data.dims)}")
    whole = data.rename(ALONE).to_dataset() if alone else data
    along = _rows_of(whole, called, rows)
    wanted = dict(grids or {})
    columns: dict[str, Field] = {}
    chunks: Sequence[int] | None = None
    for name, variable in whole.variables.items():
        if along not in variable.dims or (alone and name != ALONE and variable.ndim > 1):
            continue
        if variable.ndim == 1 and not alone:
            columns[str(name)] = Field(str(name), name)
        elif variable.ndim == 2 and name in whole.data_vars:
            points = next(d for d in variable.dims if d != along)
            size = int(whole.sizes[points])
            labels = whole.indexes.get(points, pd.RangeIndex(size)).rename(points)
            own = data.name if alone else name
            given = Given(None if own is None else str(own), plain_attributes(variable.attrs), {}, str(along))
            columns[str(name)] = curve_field(str(name), name, size, labels, wanted.pop(str(name), None), given)
            chunks = chunks or _chunks(variable, along)
    if wanted:
        raise InputError(f"grids must be of variables of two dimensions, got {next(iter(wanted))!r}")
    others = [n for n in whole.coords if n != along and whole.coords[n].dims == (along,) and n not in whole.indexes]
    index = whole.indexes.get(along)
    label = Field(str(along), along) if index is not None and index.nlevels == 1 else None
    fields = Fields(columns, label, tuple(Field(str(n), n) for n in others), alone)
    read = partial(_rows_of_dataset, whole, along)
    return Source.of_rows(called, fields, "dataarray", int(whole.sizes[along]), read, chunks)


def _rows_of(data: Any, called: str, rows: Hashable | None) -> Hashable:
    if rows is not None:
        if rows not in data.dims:
            raise InputError(f"rows must be a dimension of {called}, got {rows!r} and {tuple(data.dims)}")
        return rows
    first: set[Hashable] = {v.dims[0] for v in data.data_vars.values() if v.ndim == 2}
    first = first or {v.dims[0] for v in data.data_vars.values() if v.ndim == 1}
    if len(first) != 1:
        raise InputError(
            f"rows must name the dimension of {called} along which its rows are, as in rows='person', where variables "
            f"do not all have it first: got {', '.join(sorted(map(str, first))) or 'no variables of two dimensions'}"
        )
    return first.pop()


def _chunks(variable: Any, along: Hashable) -> Sequence[int] | None:
    """Chunks of rows: of Dask, or of a store that is read on demand."""
    place = variable.dims.index(along)
    if variable.chunks is not None:
        return tuple(variable.chunks[place])
    size = (variable.encoding.get("preferred_chunks") or {}).get(along)
    return _chunks_of(size, variable.shape[place]) if size else None


def _chunks_of(size: int, n: int) -> Sequence[int] | None:
    """Numbers of rows of chunks of one size, of which the last may be smaller."""
    return [min(size, n - start) for start in range(0, n, size)] or None


def _open_zarr(path: str) -> Any:
    import zarr

    return zarr.open(path, mode="r")


def of_zarr(path: str | os.PathLike[str], **options: Any) -> Source:
    """A zarr store in a folder: one array, or a group as xarray writes it.

    Raises
    ------
    FileFormatError
        Neither of them, or packages that are missing.
    """
    check_installed("zarr", str(path))
    try:
        held = _open_zarr(str(path))
    except FileNotFoundError:
        raise
    except Exception as exc:  # zarr raises classes of its own
        raise FileFormatError(f"{path} must be a zarr store, got {type(exc).__name__}: {exc}") from exc
    if hasattr(held, "shape"):
        again = partial(_open_zarr, str(Path(path).resolve()))
        return of_array(held, str(path), options.get("grids"), chunks=_of_store(held), again=again)
    return _of_group(str(path), str(path), **options)


def of_zarr_object(data: Any, called: str, **options: Any) -> Source:
    """A zarr array, or a group as xarray writes it."""
    if hasattr(data, "shape"):
        return of_array(data, called, options.get("grids"), chunks=_of_store(data))
    return _of_group(data.store, called, group=data.path or None, **options)


def _of_group(store: Any, called: str, *, group: str | None = None, **options: Any) -> Source:
    check_installed("xarray", called)
    import xarray

    try:
        data = xarray.open_zarr(store, group=group, chunks=None)
    except Exception as exc:
        raise FileFormatError(f"{called} must be a zarr store as xarray writes it, got {exc}") from exc
    names = list(data.data_vars)
    own = data[names[0]] if len(names) == 1 and data[names[0]].ndim == 2 else data
    return of_dataset(own, called, **{k: v for k, v in options.items() if k in ("rows", "grids")})


def _of_store(array: Any) -> Sequence[int] | None:
    return _chunks_of(int(array.chunks[0]), int(array.shape[0]))
