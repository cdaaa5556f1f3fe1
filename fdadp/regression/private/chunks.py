"""Chunks of curves for a private fit: arrays on declared grids, read by the kernel alone.

All that is checked before the first read is public: settings, grids, and what a list of chunks shows without a look at
a value. What is wrong with a chunk itself shows only while it is read, and then the kernel says no more than that the
source failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fdadp._typing import FloatArray
from fdadp.axis import axis_of
from fdadp.curves import Kind
from fdadp.errors import InputError

__all__ = ["PrivateChunks"]


class PrivateChunks:
    """Re-iterable tuples of arrays, such as (X, Y), of which the first is empty and says what a row is.

    Parameters
    ----------
    source : sequence of chunks, or function that returns a fresh iterator over them
        A chunk is a tuple of curves, one for each grid, and of the persons where `grouped`; or the curves themselves
        where they are all of it.
    grids : mapping from name to ndarray
        Declared grids of the curves in a chunk, in their order.
    grouped : bool
        Whether chunks carry the persons of their rows.

    Attributes
    ----------
    grid : ndarray
        Of the last curves.
    kind, columns
        Kind of object that the last curves come as, and its columns: known once a chunk was read.

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
        grouped: bool,
    ) -> None:
        self._grids, self._grouped, self._source = dict(grids), grouped, source
        self._names = [*grids, *(["groups"] if grouped else [])]
        self.grid = list(self._grids.values())[-1]
        self.kind: Kind = "array"
        self.columns: pd.Index[Any] | None = None
        if len(self._grids) == 1 and (hasattr(source, "shape") or hasattr(source, "data_matrix")):
            raise InputError(f"chunks must be several sets of curves, got one {type(source).__name__}: fit takes that")
        if callable(source):
            one_way = isinstance(first := source(), Iterator) and first is source()
        else:
            one_way = isinstance(source, Iterator) or not isinstance(source, Iterable)
        if one_way:
            raise InputError(
                f"chunks must be a sequence of {_tuple(self._names)} or a function that returns a fresh iterator (the "
                f"data are read many times), got {'one' if callable(source) else 'a one-way'} {type(source).__name__}"
                f"{' that returns the same iterator again' if callable(source) else ''}"
            )
        if isinstance(source, list | tuple):
            self._check(source)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        yield tuple(np.empty((0, grid.size)) for grid in self._grids.values())
        for curves, _ in self._chunks():
            self._remember(curves[-1])
            yield tuple(_values(part, grid) for part, grid in zip(curves, self._grids.values(), strict=True))

    def persons(self) -> Iterator[Any]:
        """Ids of each chunk, one a row."""
        for curves, ids in self._chunks():
            if np.shape(ids) != (len(curves[0]),):
                raise InputError("groups of a chunk must have one entry per curve")
            yield ids

    def _chunks(self) -> Iterator[tuple[Sequence[Any], Any]]:
        """Curves of each chunk, and the persons of their rows or None."""
        for chunk in self._source() if callable(self._source) else self._source:
            parts = self._parts(chunk)
            if len(parts) != len(self._names):
                raise InputError("another number of parts in a chunk")
            yield (parts[:-1], parts[-1]) if self._grouped else (parts, None)

    def _parts(self, chunk: Any) -> Sequence[Any]:
        return chunk if len(self._names) > 1 else (chunk,)

    def _remember(self, curves: Any) -> None:
        if isinstance(curves, pd.DataFrame):
            self.kind, self.columns = "frame", curves.columns
        elif hasattr(curves, "data_matrix"):
            self.kind = "fdatagrid"

    def _check(self, chunks: Sequence[Any]) -> None:
        wanted = _tuple(self._names)
        if not self._grouped:
            wanted += f", or {_tuple([*self._names, 'groups'])} with groups=True"
        if not chunks:
            raise InputError("chunks must hold at least one chunk, got none")
        for chunk in chunks:
            parts = self._parts(chunk)
            if not isinstance(parts, tuple | list) or len(parts) != len(self._names):
                number = f" of {len(chunk)} parts" if hasattr(chunk, "__len__") else ""
                raise InputError(f"each chunk must be {wanted}, got {type(chunk).__name__}{number}")
            for (name, grid), part in zip(self._grids.items(), parts, strict=False):
                try:
                    shape = _values(part, grid).shape
                except ValueError as exc:
                    raise InputError(f"{name} of each chunk must lie on the declared grid: {exc}") from exc
                if len(shape) != 2 or shape[1] != grid.size:
                    raise InputError(f"{name} of each chunk must have {grid.size} points a curve, as its grid has")
            if len({len(part) for part in parts}) > 1:
                raise InputError(f"{', '.join(self._names)} of each chunk must be of the same length")


def _tuple(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _values(curves: Any, grid: FloatArray) -> Any:
    """Values as they are; the kernel makes numbers of them, entry by entry."""
    if hasattr(curves, "data_matrix"):
        points = np.asarray(curves.grid_points[0], dtype=np.float64)
        if not np.array_equal(points, grid):
            raise ValueError("curves on another grid")
        return curves.data_matrix[..., 0]
    if isinstance(curves, pd.DataFrame):
        axis = axis_of(curves.columns, "a chunk")
        if axis is not None and axis.backwards:
            raise ValueError("column labels that decrease")
        return curves.to_numpy()
    return curves if hasattr(curves, "shape") else np.array(curves, dtype=object)
