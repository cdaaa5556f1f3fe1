"""Arrays on disk and in memory, one curve a row: ``.npy`` files, memory maps, whatever has shape and slices."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fdadp.errors import FileFormatError, InputError
from fdadp.functional.containers.fields import ALONE, Field, Fields, curve_field
from fdadp.functional.containers.source import Source
from fdadp.functional.tables.kinds import Given

ROWS = 8192
"""Of a piece."""


@dataclass(frozen=True)
class ArrayPiece:
    """Rows of an array that is at hand, or that `again` opens."""

    array: Any
    start: int
    stop: int
    again: Callable[[], Any] | None = None

    def __call__(self, fields: Sequence[Field], *, lenient: bool) -> list[Any]:
        """The rows, for each field the same."""
        array = self.array if self.again is None else self.again()
        rows = array[self.start : self.stop]
        rows = rows.compute() if hasattr(rows, "compute") else rows
        held = np.ma.filled(rows.astype(object), None) if np.ma.isMA(rows) else np.array(rows)
        return [held] * len(fields)


@dataclass(frozen=True)
class OpenNpy:
    """Opens a ``.npy`` file as a memory map, in whatever process."""

    path: str

    def __call__(self) -> Any:
        """The map."""
        return np.load(self.path, mmap_mode="r", allow_pickle=False)


def starts_of(n: int, chunks: Sequence[int] | None = None) -> list[tuple[int, int]]:
    """First row and end of each piece of n rows, by chunks where the container has them."""
    ends = np.cumsum(chunks).tolist() if chunks else [*range(ROWS, n, ROWS), n]
    return list(zip([0, *ends[:-1]], ends, strict=True))


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
    places = starts_of(int(shape[0]), chunks)
    grid = grids.get(ALONE) if isinstance(grids, Mapping) else grids
    fields = Fields({ALONE: curve_field(ALONE, None, int(shape[1]), grid=grid, given=Given())}, alone=True)
    held = array if again is None else None
    pieces = tuple(ArrayPiece(held, *at, again) for at in places)
    return Source(called, fields, "array", pieces, tuple(stop - start for start, stop in places))


def of_npy(path: str | os.PathLike[str], **options: Any) -> Source:
    """A sample of curves in a ``.npy`` file, of which the header is read.

    Raises
    ------
    FileFormatError
        Not such a file, or one of objects.
    """
    again = OpenNpy(str(Path(path).resolve()))
    try:
        array = again()
    except (ValueError, OSError, EOFError) as exc:
        if isinstance(exc, FileNotFoundError):
            raise
        raise FileFormatError(f"{path} must be a NumPy .npy file of plain numbers, got {exc}") from None
    return of_array(array, str(path), options.get("grids"), again=again)
