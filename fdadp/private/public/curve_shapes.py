"""Curves of a private fit: only their shape, grid and kind are looked at here; the kernel reads the values."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, get_args

import numpy as np

from fdadp._common.dask_tasks import is_dask
from fdadp._common.loaded_later import pd
from fdadp._common.typing import ArrayLike, CurveData, FloatArray
from fdadp.errors import InputError, PrivacyError
from fdadp.functional.containers.open_curves import is_foreign, opened
from fdadp.functional.containers.opened_tables import OpenedColumn, OpenedCurves, OpenedTable, chunks_together, on_grid
from fdadp.functional.containers.row_source import Tasks
from fdadp.functional.tables.curve_inputs import as_curves
from fdadp.functional.tables.curve_sample import Curves, Given, Kind, as_grid
from fdadp.functional.tables.grid_from_labels import axis_of
from fdadp.privacy.private_entries import RAGGED, Table, check_ids, table
from fdadp.privacy.rows._dask_partitions import PrivatePartitions

# Curves at points of their own, put on a declared grid: each row by itself, by a public rule.
#
# A value belongs to the nearest point of the grid; several of one curve at one point are averaged; where a curve has
# none it is NaN, a gap. Values beyond the grid's ends, by more than half a step, are left out. So sparse and irregular
# curves are curves with gaps, and a response counts in each row's own projection on the public response functions
# (:mod:`fdadp.private.rows.projected_responses`).


def is_irregular(data: Any) -> bool:
    """Whether curves are scikit-fda's at points of their own; its type is public."""
    return type(data).__module__.split(".")[0] == "skfda" and type(data).__name__ == "FDataIrregular"


class _Rows:
    """Rows of an FDataIrregular that can be sliced: points, values, and where each row begins."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __len__(self) -> int:
        return int(self._data.n_samples)

    def __getitem__(self, rows: slice) -> tuple[FloatArray, FloatArray, Any]:
        starts = np.append(self._data.start_indices, len(self._data.values))
        first, last, _ = rows.indices(len(self))
        part = slice(starts[first], starts[last])
        return self._data.points[part, 0], self._data.values[part, 0], starts[first : last + 1] - starts[first]


def table_of_irregular(data: Any, grid: FloatArray) -> Table:
    """A private table (n, S) of irregular curves, on a declared grid (S,)."""

    def convert(part: tuple[FloatArray, FloatArray, Any]) -> FloatArray:
        return rows_on_grid(*part, grid)

    return Table(_Rows(data), (int(data.n_samples), grid.size), convert, True, data)


def rows_on_grid(points: FloatArray, values: FloatArray, starts: Any, grid: FloatArray) -> FloatArray:
    """Values of curves at the nearest points of a grid, shape (m, S), NaN where there are none.

    Parameters
    ----------
    points, values : ndarray of shape (N,)
        Of all curves, one after the other.
    starts : ndarray of shape (m + 1,)
        Where each curve begins; and N.
    grid : ndarray of shape (S,)
        Increasing.
    """
    m, size = len(starts) - 1, grid.size
    at = np.asarray(points, dtype=np.float64)
    seen = np.asarray(values, dtype=np.float64)
    row = np.repeat(np.arange(m), np.diff(starts))
    middle = (grid[1:] + grid[:-1]) / 2
    low, high = grid[0] - (middle[0] - grid[0]), grid[-1] + (grid[-1] - middle[-1])
    used = np.isfinite(seen) & (at >= low) & (at <= high)
    cell = row[used] * size + np.searchsorted(middle, at[used])
    count = np.bincount(cell, minlength=m * size)
    total = np.bincount(cell, weights=seen[used], minlength=m * size)
    means = np.divide(total, count, out=np.full(m * size, np.nan), where=count > 0)
    return np.asarray(means.reshape(m, size))


# Curves of a private fit that come from a source of unknown length: as chunks, with the ids of their rows.


def public_head(curves: OpenedCurves) -> Curves:
    """What is public of curves that were opened: grid, labels of points, name and kind, and no attributes."""
    head = curves.head
    given = head.given or Given()
    return replace(head, given=Given(given.name, row_name=given.row_name))


def chunks_of(curves: Mapping[str, Any], groups: Any) -> tuple[Any, bool | None] | None:
    """Chunks of columns whose number of rows only reading would tell; None where all of them are known.

    Parameters
    ----------
    curves : mapping of str to curves
        By the name of the argument.
    groups : column, or None

    Returns
    -------
    chunks, groups : re-iterable, True or None
        As :class:`fdadp.private.public.curve_shapes.PrivateChunks` takes chunks and groups.

    Raises
    ------
    InputError
        Something else beside such columns, or columns of several sources without an order.
    """
    read = {name: opened(data, name) for name, data in curves.items()}
    found: dict[str, Any] = read if groups is None else {**read, "groups": groups}
    if not any(isinstance(c, OpenedColumn) and c.n is None for c in found.values()):
        return None
    odd = next((name for name, c in found.items() if not isinstance(c, OpenedColumn)), None)
    if odd is not None:
        raise InputError(
            f"{odd} must be a column of what was opened, as table['{odd}'], like the others, whose number of rows is "
            f"not known: got {type(found[odd]).__name__}"
        )
    return chunks_together(found), None if groups is None else True


LEAST_POINTS = 3


def private_curves(
    data: CurveData, grid: ArrayLike | None, name: str, *, empty: bool = False, streamed: bool = False
) -> Curves:
    """Take curves as they are, without looking at their values.

    Parameters
    ----------
    data : FDataGrid, DataFrame, array_like, or anything with ``shape`` and slices, of shape (n, S)
        What is not in memory (memory maps, Dask, HDF5, xarray) is read in slabs, by the kernel. Lists want a grid: a
        row that has not its length is a curve without values.
    grid : array_like of shape (S,), optional
    name : str
    empty : bool
        Whether there may be no curve at all: a refusal would tell a private n of 0 from 1.
    streamed : bool
        Whether the caller hands the kernel chunks (:func:`fdadp.private.public.curve_shapes.chunks_of`) of curves whose
        number of rows only reading would tell. No values stand for them here.

    Returns
    -------
    Curves
        Whose `values` are a :class:`~fdadp.privacy.private_entries.Table`.

    Raises
    ------
    InputError
        Not curves on one grid, a grid that does not fit, or an unknown number of rows: all of it public.
    """
    if isinstance(data, Curves):
        return replace(data, values=_checked(table(data.values, name), name, empty), index=None)
    if isinstance(data, OpenedTable) or is_foreign(type(data)):
        data = opened(data, name)
    if isinstance(data, OpenedCurves):
        public = on_grid(public_head(data), grid, name)
        if data.n is None and streamed:
            return public
        if data.n is None:
            raise InputError(
                f"{name} must have a known number of rows, got {data!r}: hand over the table that was opened, with all "
                "of its columns, or read the file first, read_curves(path)"
            )
        return replace(public, values=_checked(table(data, name), name, empty))
    if type(data).__module__.split(".")[0] == "skfda":
        return _of_fdatagrid(data, grid, name, empty)
    several = type(data).__name__ == "Dataset"  # of xarray
    if isinstance(data, list | tuple) and grid is None:
        raise InputError(f"{name} must be an array or a data frame, or come with its grid, {RAGGED}")
    values = _checked(None if several else table(data, name, None if grid is None else np.size(grid)), name, empty)
    size = values.shape[1]
    if not isinstance(data, pd.DataFrame) and type(data).__module__.split(".")[0] != "xarray":
        return Curves(values, as_grid(grid, size, f"grid of {name}"))
    labels = _column_labels(data)
    # The grid may be in the column labels; a public row, the numbers of the columns, stands for the private ones.
    public = as_curves(pd.DataFrame([range(size)], columns=labels), grid, name=name)
    turned = public.values[0, 0] > 0  # where the labels decrease
    values = values.turned() if turned else values
    if isinstance(data, pd.DataFrame):
        return replace(public, values=values, index=None, kind="frame")
    given = Given(None if data.name is None else str(data.name), row_name=str(data.dims[0]))
    return replace(public, values=values, index=None, kind="dataarray", given=given)


def _of_fdatagrid(data: Any, grid: ArrayLike | None, name: str, empty: bool) -> Curves:
    irregular = is_irregular(data) and grid is not None
    if not irregular and type(data).__name__ != "FDataGrid":
        raise InputError(
            f"{name} must be an FDataGrid, a DataFrame or an array in a private fit, got {type(data).__name__}. "
            "Declare a grid for FDataIrregular, as by grids={...}. Put others on a common grid first, each by itself "
            "and by a public rule"
        )
    if data.dim_domain != 1 or data.dim_codomain != 1:
        raise InputError(f"{name} must hold real functions of one variable")
    values: Any
    if irregular and grid is not None:
        points = as_grid(grid, np.size(grid), f"grid of {name}")
        values = _checked(table_of_irregular(data, points), name, empty)
        return Curves(values, points, "fdatagrid", gridded=True)
    values = _checked(table(data.data_matrix[..., 0], name), name, empty)
    zeros = np.zeros((1, values.shape[1], 1))
    public = as_curves(data[:1].copy(data_matrix=zeros, sample_names=(None,)), grid, name=name)
    return replace(public, values=values, index=None)


def check_groups(groups: Any, n: int) -> None:
    """Refuse groups that are not one id a curve, by their shape alone.

    Raises
    ------
    InputError
        Another length, or more dimensions; the text tells no length.
    """
    try:
        check_ids(groups, n)
    except PrivacyError as exc:
        raise InputError("groups must have one entry per curve, the id of its person") from exc


def _column_labels(data: Any) -> pd.Index[Any]:
    """Labels of the points in a data frame or an xarray.DataArray."""
    if isinstance(data, pd.DataFrame):
        return data.columns
    labels: pd.Index[Any] = data.indexes.get(data.dims[1], pd.RangeIndex(data.shape[1]))
    return labels.rename(data.dims[1])


def _checked(values: Any, name: str, empty: bool) -> Any:
    """A table of curves, or an error where it is none by its shape."""
    shape: tuple[int, ...] = getattr(values, "shape", ())
    if len(shape) != 2 or (shape[0] == 0 and not empty) or shape[1] < LEAST_POINTS:
        raise InputError(f"{name} must be two-dimensional (curves, points), of at least {LEAST_POINTS} points a curve")
    return values


# Chunks of curves for a private fit: arrays on declared grids, read by the kernel alone.
#
# All that is checked before the first read is public: settings, grids, and what a list of chunks shows without a look
# at a value. What is wrong with a chunk itself shows only while it is read, and then the kernel says no more than that
# the source failed.


KINDS = get_args(Kind)


class PrivateChunks:
    """Re-iterable tuples of arrays, such as (X, Y), of which the first is empty and says what a row is.

    Parameters
    ----------
    source : sequence of chunks, or function that returns a fresh iterator over them
        Also a list of Dask's Delayed, each of a chunk: where a client of a cluster is active its workers read them. A
        chunk is a tuple of curves, one for each grid, and of the persons where `groups` is True. Where one sample is
        all of it, the chunk may also be the sample itself, if that is no tuple.
    grids : mapping from name to ndarray
        Declared grids of the curves in a chunk, in their order.
    groups : True, sequence of ids, or None
        True: a chunk ends with the persons of its rows. A sequence has those of all chunks one after the other, which
        must then be a list: any other source may give its rows in another order on another pass.
    kind : {"array", "frame", "fdatagrid"}
        Declared kind of object that predictions come as; chunks are not looked at to find it.
    columns : pandas.Index, optional
        Declared labels of a frame.

    Attributes
    ----------
    grid : ndarray
        Of the last curves.
    groups : True or None
        What a :class:`~fdadp.privacy.Cohort` is told of the persons: chunks always bring them along.

    Raises
    ------
    InputError
        A one-way iterator, or a list whose chunks are seen not to fit. Nothing was read.
    """

    def __init__(
        self,
        source: Sequence[Any] | Callable[[], Iterable[Any]],
        grids: Mapping[str, FloatArray],
        *,
        groups: Any = None,
        kind: Kind = "array",
        columns: pd.Index[Any] | None = None,
    ) -> None:
        if kind not in KINDS:
            raise InputError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
        self._grids, self._source = dict(grids), source
        self._grouped = groups is True
        self._ids = None if groups is None or groups is True else groups
        self.groups = None if groups is None else True
        self._names = [*grids, *(["groups"] if self._grouped else [])]
        self._public = tuple(self._grids.values()), tuple(self._names)
        self.grid = list(self._grids.values())[-1]
        self.kind: Kind = kind
        self.columns = columns
        if len(self._grids) == 1 and (hasattr(source, "shape") or hasattr(source, "data_matrix")):
            raise InputError(f"chunks must be several sets of curves, got one {type(source).__name__}: fit takes that")
        if isinstance(source, OpenedTable | Tasks):
            columns_of = ", ".join(map(repr, [*self._grids, *(["id"] if self._grouped else [])]))
            how = f".chunks({columns_of})" + (".to_delayed()" if isinstance(source, Tasks) else "")
            raise InputError(
                f"chunks must be {_tuple(self._names)} of what was opened, as table{how} gives them, got its tables"
            )
        if callable(source):
            one_way = is_one_way(source)
        else:
            one_way = isinstance(source, Iterator) or not isinstance(source, Iterable)
        if one_way:
            raise InputError(
                f"chunks must be a sequence of {_tuple(self._names)} or a function that returns a fresh iterator (the "
                f"data are read many times), got {'one' if callable(source) else 'a one-way'} {type(source).__name__}"
                f"{' that returns the same iterator again' if callable(source) else ''}"
            )
        self._delayed = isinstance(source, list | tuple) and bool(source) and all(map(is_dask, source))
        if isinstance(source, list | tuple) and not self._delayed:
            self._check(source)
        elif self._ids is not None:
            raise InputError(
                f"groups must be True, with chunks {_tuple([*self._names, 'groups'])}, unless the chunks are a list: a "
                "source may give its rows in another order on another pass"
            )

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        first = tuple(np.empty((0, grid.size)) for grid in self._grids.values())
        yield first if self.groups is None else (*first, [])
        at = 0
        for chunk in self._source() if callable(self._source) else self._source:
            parts = _read(chunk.compute() if self._delayed else chunk, *self._public)
            if self._ids is not None:
                parts = (*parts, self._ids[at : at + len(parts[0])])
                at += len(parts[0])
            yield parts

    def on_workers(self) -> PrivatePartitions | None:
        """What workers read, each its own chunks; None where the chunks are not Dask's."""
        if not self._delayed:
            return None
        spec = tuple((grid.size,) for grid in self._grids.values())
        read = partial(_read, grids=self._public[0], names=self._public[1])
        return PrivatePartitions(list(self._source), read, spec, self._grouped, self._source)  # type: ignore[arg-type]

    def _check(self, chunks: Sequence[Any]) -> None:
        wanted = _tuple(self._names)
        if not self._grouped:
            wanted += f", or {_tuple([*self._names, 'groups'])} with groups=True"
        if not chunks:
            raise InputError("chunks must hold at least one chunk, got none")
        for chunk in chunks:
            parts = _parts(chunk, self._names)
            if not isinstance(parts, tuple | list) or len(parts) != len(self._names):
                number = f" of {len(chunk)} parts" if hasattr(chunk, "__len__") else ""
                raise InputError(f"each chunk must be {wanted}, got {type(chunk).__name__}{number}")
            odd = next((part for part in parts if getattr(part, "n", 0) is None), None)
            if odd is not None:
                raise InputError(f"each chunk of a list must have a known number of rows, got {odd!r}: use .chunks()")
            tables = [
                values_of(part, grid, name) for (name, grid), part in zip(self._grids.items(), parts, strict=False)
            ]
            for (name, grid), found in zip(self._grids.items(), tables, strict=True):
                if len(found.shape) != 2 or found.shape[1] != grid.size:
                    raise InputError(f"{name} of each chunk must have {grid.size} points a curve, as its grid has")
            if len({len(part) for part in (*tables, *parts[len(tables) :])}) > 1:
                raise InputError(f"{', '.join(self._names)} of each chunk must be of the same length")
        if self._ids is not None:
            first = next(iter(self._grids.values()))
            rows = (values_of(_parts(chunk, self._names)[0], first) for chunk in chunks)
            check_groups(self._ids, sum(map(len, rows)))
            self._ids = getattr(self._ids, "array", self._ids)  # of a series, which would be cut by labels


def _parts(chunk: Any, names: Sequence[str]) -> Sequence[Any]:
    """A tuple holds the parts; anything else is the one part that is wanted."""
    return chunk if len(names) > 1 or isinstance(chunk, tuple) else (chunk,)


def _read(chunk: Any, grids: Sequence[FloatArray], names: Sequence[str]) -> tuple[Any, ...]:
    """Curves of a chunk as tables, and the persons of its rows where it has them."""
    parts = tuple(_parts(chunk, names))
    if len(parts) != len(names):
        raise InputError("another number of parts in a chunk")
    curves = tuple(values_of(part, grid) for part, grid in zip(parts, grids, strict=False))
    return curves + parts[len(grids) :]


def _tuple(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def is_one_way(source: Callable[[], Any]) -> bool:
    """Whether a function gives the same iterator again; what goes wrong in it may tell of the data, and is not told."""
    with contextlib.suppress(Exception):
        first = source()
        return isinstance(first, Iterator) and first is source()
    raise InputError("chunks must be a function that returns a fresh iterator, but it failed: call it to see why")


def values_of(curves: Any, grid: FloatArray, name: str = "curves") -> Table:
    """Values as they are; the kernel makes numbers of them, entry by entry."""
    if hasattr(curves, "data_matrix"):
        points = np.asarray(curves.grid_points[0], dtype=np.float64)
        if not np.array_equal(points, grid):
            raise InputError(f"{name} of each chunk must lie on the declared grid")
        curves = curves.data_matrix[..., 0]
    elif isinstance(curves, pd.DataFrame) and (axis := axis_of(curves.columns, name)) is not None and axis.backwards:
        raise InputError(f"{name} of each chunk must lie on the declared grid, got column labels that decrease")
    return table(curves, name, grid.size)
