"""Private rows in partitions that Dask's workers read: what each partition is of. Nothing of them is looked at here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from fdadp._common.tasks import is_dask


@dataclass(frozen=True)
class PrivatePartitions:
    """Private rows in partitions, before anything was read.

    Attributes
    ----------
    pieces : sequence of (Delayed or list of Delayed)
        What `read` gets of each partition.
    read : callable
        Sent to the workers: from a piece to its tables, and to the ids of its rows after them where it is `grouped`.
    spec : tuple of shapes
        Of a row in each table: public.
    grouped : bool
        Whether several rows may belong to a person.
    source : object
        The caller's own, by which a budget knows the data again.
    """

    pieces: Sequence[Any] = field(repr=False)
    read: Callable[[Any], Sequence[Any]]
    spec: tuple[tuple[int, ...], ...]
    grouped: bool
    source: Any = field(repr=False)


def blocks_of(columns: Sequence[Any]) -> list[list[Any]]:
    """Pieces of columns of one length, such as Dask's arrays of known chunks, in the row chunks of the first of those.

    Parameters
    ----------
    columns : sequence of (dask array, or sliceable)
        At least one of them a Dask array. What is in memory is cut alike.
    """
    sizes = next(c for c in columns if is_dask(c)).chunks[0]
    ends = [0, *np.cumsum(sizes).tolist()]
    cut = []
    for column in columns:
        if is_dask(column):
            whole = {axis: -1 for axis in range(1, column.ndim)}
            cut.append(list(column.rechunk({0: sizes, **whole}).to_delayed().ravel()))
        else:
            rows = column.iloc if hasattr(column, "iloc") else column
            cut.append([rows[start:stop] for start, stop in pairwise(ends)])
    return [list(piece) for piece in zip(*cut, strict=True)]
