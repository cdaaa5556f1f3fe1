"""Chunks of curves for a private fit: arrays on declared grids, read by the kernel alone.

All that is checked before the first read is public: settings, grids, and what a list of chunks shows without a look at
a value. What is wrong with a chunk itself shows only while it is read, and then the kernel says no more than that the
source failed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, get_args

import numpy as np
import pandas as pd

from fdadp._common.tasks import is_dask
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.containers.source import Tasks
from fdadp.functional.containers.source_table import OpenedTable
from fdadp.functional.tables.axis import axis_of
from fdadp.functional.tables.kinds import Kind
from fdadp.privacy.boundary import Table, table
from fdadp.privacy.rows.partitions import PrivatePartitions
from fdadp.private.public.inputs import check_groups

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
