"""Tables and chunks of private rows as a vault holds them: shapes, which are public, blocks, and what is kept."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import numpy as np

from fdadp._common.typing import IntArray
from fdadp.errors import FailedReadError, PrivacyError
from fdadp.privacy.boundary import FAILED, Table, numbers, table
from fdadp.privacy.rows._local import Rows, Spec, zero_rows

Block = tuple[Rows, int, IntArray]
"""Arrays padded to BLOCK rows, number of real ones, and the person of each (empty where every row is a person)."""


class Kept:
    """Blocks that are held as long as they fit into `limit` bytes; ``blocks`` is None once they did not."""

    def __init__(self, limit: int) -> None:
        self.blocks: list[Block] | None = []
        self._limit = limit
        self._bytes = 0

    def add(self, block: Block) -> bool:
        """Hold one block more; return whether all are held."""
        self._bytes += sum(a.nbytes for a in (*block[0], block[2]))
        if self.blocks is not None:
            self.blocks.append(block)
        if self._bytes > self._limit:
            self.blocks = None
        return self.blocks is not None


def padded(rows: Rows, spec: Spec) -> Rows:
    block = zero_rows(spec)
    for full, values in zip(block, rows, strict=True):
        full[: len(values)] = values
    return block


def _is_table(data: Any) -> bool:
    return isinstance(data, Table) or hasattr(data, "shape") or hasattr(data, "iloc")


def as_tables(data: Any) -> tuple[Table, ...] | None:
    """Tables, of one or several; None where the data are chunks."""
    if _is_table(data):
        data = (data,)
    if isinstance(data, tuple | list) and len(data) and all(map(_is_table, data)):
        return tuple(map(table, data))
    return None


def parts_of(chunk: Any) -> tuple[Any, ...]:
    return tuple(chunk) if isinstance(chunk, tuple | list) else (chunk,)


def first_spec(chunks: Any, grouped: bool) -> Spec | None:
    """Shapes of the rows of the first chunk; None where there is no chunk.

    Raises
    ------
    PrivacyError
        The chunk is no tuple of arrays: its types say so.
    FailedReadError
        The source failed, perhaps at somebody's entry. Without its own error.
    """
    chunk, failed = None, False
    try:
        chunk = next(iter(chunks), chunks)
    except KeyboardInterrupt:
        raise
    except BaseException:  # panics of polars are no Exception
        failed = True
    if failed:
        raise FailedReadError(FAILED)
    return None if chunk is chunks else spec_of_chunk(chunk, grouped)


def spec_of_chunk(chunk: Any, grouped: bool) -> Spec:
    """Shapes of the rows of a chunk.

    Raises
    ------
    PrivacyError
        It is no tuple of arrays of equal length.
    """
    spec: Spec = ()
    with contextlib.suppress(Exception):
        parts = parts_of(chunk)
        tables = tuple(map(table, parts[:-1] if grouped else parts))
        spec = spec_of(tables) if tables and all(len(t) == len(tables[0]) for t in tables) else ()
    if spec == ():
        raise PrivacyError(
            "a chunk must be a tuple of arrays of equal length, rows along the first axis; the first one is not"
        )
    return spec


def spec_of(arrays: Any) -> Spec:
    return tuple(tuple(int(k) for k in a.shape[1:]) for a in arrays)


def loaded(private: Table) -> Table:
    rows = private.rows
    plain = private.convert is numbers and isinstance(rows, np.ndarray) and rows.dtype.kind in "biuf"
    masked = isinstance(rows, np.ma.MaskedArray)
    if not private.in_memory or (plain and not masked):
        return private
    return replace(table(private.read()), source=private.source)
