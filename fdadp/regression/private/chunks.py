"""Chunks of curves for a private fit: pairs of arrays on declared grids, read by the kernel alone.

All that is checked before the first read is public: settings, grids, and what a list of chunks shows without a look at
a value. What is wrong with a chunk itself shows only while it is read, and then the kernel says no more than that the
source failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fdadp._typing import FloatArray
from fdadp.curves import Kind
from fdadp.errors import InputError

__all__ = ["PrivateChunks"]


class PrivateChunks:
    """Re-iterable pairs (X, Y) of arrays, of which the first is empty and says what a row is.

    Parameters
    ----------
    source : sequence of chunks, or function that returns a fresh iterator over them
        Chunks are (X, Y), or (X, Y, groups) where `grouped`.
    s, t : ndarray
        Declared grids of X and Y.
    grouped : bool
        Whether chunks carry the persons of their rows.

    Raises
    ------
    InputError
        A one-way iterator, or a list whose chunks are seen not to fit. Nothing was read.
    """

    def __init__(
        self, source: Sequence[Any] | Callable[[], Iterable[Any]], s: FloatArray, t: FloatArray, *, grouped: bool
    ) -> None:
        self.s, self.t, self.grouped = s, t, grouped
        self._source = source
        self.kind: Kind = "array"
        """Kind of object that Y comes as, and its columns: known once a chunk was read."""
        self.columns: pd.Index[Any] | None = None
        if callable(source):
            one_way = isinstance(first := source(), Iterator) and first is source()
        else:
            one_way = isinstance(source, Iterator) or not isinstance(source, Iterable)
        if one_way:
            raise InputError(
                "chunks must be a sequence of (X, Y) or a function that returns a fresh iterator (the data are read "
                f"many times), got {'one' if callable(source) else 'a one-way'} {type(source).__name__}"
                f"{' that returns the same iterator again' if callable(source) else ''}"
            )
        if isinstance(source, list | tuple):
            self._check(source)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        yield np.empty((0, self.s.size)), np.empty((0, self.t.size))
        for chunk in self._chunks():
            x, y = chunk[:2]
            yield _values(x, self.s), self._remember(y)

    def persons(self) -> Iterator[Any]:
        """Ids of each chunk, one a row."""
        for x, _, ids in self._chunks():
            if np.shape(ids) != (len(x),):
                raise InputError("groups of a chunk must have one entry per curve")
            yield ids

    def _chunks(self) -> Iterator[Any]:
        for chunk in self._source() if callable(self._source) else self._source:
            if len(chunk) != 2 + self.grouped:
                raise InputError("another number of parts in a chunk")
            yield chunk

    def _remember(self, y: Any) -> Any:
        if isinstance(y, pd.DataFrame):
            self.kind, self.columns = "frame", y.columns
        elif hasattr(y, "data_matrix"):
            self.kind = "fdatagrid"
        return _values(y, self.t)

    def _check(self, chunks: Sequence[Any]) -> None:
        wanted = "(X, Y, groups)" if self.grouped else "(X, Y), or (X, Y, groups) with groups=True"
        if not chunks:
            raise InputError("chunks must hold at least one chunk, got none")
        for chunk in chunks:
            if not isinstance(chunk, tuple | list) or len(chunk) != 2 + self.grouped:
                parts = f" of {len(chunk)} parts" if hasattr(chunk, "__len__") else ""
                raise InputError(f"each chunk must be {wanted}, got {type(chunk).__name__}{parts}")
            for name, part, grid in (("X", chunk[0], self.s), ("Y", chunk[1], self.t)):
                try:
                    shape = part.shape if isinstance(part, pd.DataFrame) else _values(part, grid).shape
                except ValueError as exc:
                    raise InputError(f"{name} of each chunk must lie on the declared grid: {exc}") from exc
                if len(shape) != 2 or shape[1] != grid.size:
                    raise InputError(f"{name} of each chunk must have {grid.size} points a curve, as its grid has")
            if len({len(part) for part in chunk}) > 1:
                raise InputError(f"X, Y{', groups' if self.grouped else ''} of each chunk must be of the same length")


def _values(curves: Any, grid: FloatArray) -> Any:
    """Values as they are; the kernel makes numbers of them, entry by entry."""
    if hasattr(curves, "data_matrix"):
        points = np.asarray(curves.grid_points[0], dtype=np.float64)
        if not np.array_equal(points, grid):
            raise ValueError("curves on another grid")
        return curves.data_matrix[..., 0]
    if isinstance(curves, pd.DataFrame):
        return curves.to_numpy()
    return curves if hasattr(curves, "shape") else np.array(curves, dtype=object)
