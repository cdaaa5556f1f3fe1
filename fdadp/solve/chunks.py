"""Rows in chunks that can be gone through more than once: progress, what tells two passes apart, dask's blocks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from tqdm import tqdm

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.curves import Curves

__all__ = ["Totals", "check_dask", "dask_chunks", "is_dask", "with_progress", "without_curves"]


def with_progress(source: Iterable[Any], what: str, progress: bool | str) -> Iterable[Any]:
    """Chunks under a progress bar labelled `what`: always, never, or (``"auto"``) after two seconds."""
    return tqdm(
        source,
        desc=what,
        unit="chunk",
        disable=None if progress is True else not progress,
        delay=2.0 if progress == "auto" else 0.0,
        leave=False,
    )


class Totals:
    """What tells two passes over the same rows from passes over different ones, in whatever order they come.

    Attributes
    ----------
    n : int
        Number of rows.
    sums : dict of ndarray of shape (2,)
        Of the values, and of their sizes, by column.
    """

    def __init__(self) -> None:
        self.n = 0
        self.sums: dict[str, FloatArray] = {}

    def add(self, n: int, columns: Mapping[str, FloatArray]) -> None:
        """Add the rows of a chunk."""
        self.n += n
        for name, values in columns.items():
            sums = np.array([values.sum(), np.abs(values).sum()])
            self.sums[name] = self.sums.get(name, 0.0) + sums

    def compare(self, before: Totals, what: str) -> None:
        """Refuse other rows than those before; `what` they are called."""
        must = f"chunks must give the same {'curves' if what == 'pairs' else what} each time they are read"
        if self.n != before.n:
            raise InputError(
                f"{must}, got {before.n} {'pairs' if what == 'curves' else what} at first and {self.n} later"
            )
        for name in self.sums.keys() & before.sums.keys():
            (value, size), then = self.sums[name], before.sums[name][0]
            if not abs(value - then) <= 1e-9 * size:
                raise InputError(f"{must}, got a sum of {name} of {then:.12g} at first and {value:.12g} later")

    def with_more(self, other: Totals) -> Totals:
        """These, with columns that the other pass read besides."""
        both = Totals()
        both.n, both.sums = self.n, {**other.sums, **self.sums}
        return both


def without_curves(curves: Curves) -> Curves:
    """Their grid and what they came as."""
    return replace(curves, values=np.empty((0, curves.grid.size)), index=None)


def is_dask(data: Any) -> bool:
    """Whether `data` is a dask collection (without importing dask)."""
    if "dask" not in sys.modules:  # nobody can have made one
        return False
    from dask.base import is_dask_collection

    return bool(is_dask_collection(data))


def dask_chunks(x: Any, y: Any) -> Callable[[], Iterator[tuple[Any, Any]]]:
    """Return a source of pairs that computes one block of rows of X and Y at a time.

    Parameters
    ----------
    x, y : dask array of shape (n, S) or (n, T), or an xarray.DataArray of one
        A DataArray comes in pieces with its coordinates.

    Raises
    ------
    InputError
        Only one of them is one, they differ in n, or their number of rows is not known.
    """
    check_dask(x, "X")
    check_dask(y, "Y")
    if x.ndim != 2 or y.ndim != 2 or x.shape[0] != y.shape[0]:
        raise InputError(f"X and Y must hold the same number of curves, got shapes {x.shape} and {y.shape}")
    stops = np.cumsum(x.chunks[0]).tolist()

    def blocks() -> Iterator[tuple[Any, Any]]:
        for start, stop in zip([0, *stops], stops, strict=False):
            yield x[start:stop].compute(), y[start:stop].compute()

    return blocks


def check_dask(data: Any, name: str) -> None:
    """Refuse what is no dask array, or one whose chunk sizes are not known."""
    if not is_dask(data):
        raise InputError(
            f"X and Y must both be dask arrays, got {type(data).__name__} in memory for {name}: use "
            f"{'Y' if name == 'X' else 'X'}.compute() to have both there"
        )
    if not hasattr(data, "chunks") or not hasattr(data, "ndim"):
        raise InputError(f"{name} must be a dask array, got {type(data).__name__}: use .to_dask_array(lengths=True)")
    if any(size != size for size in data.shape):
        raise InputError(
            f"{name} must be a dask array whose chunk sizes are known, got shape {data.shape}: use "
            ".compute_chunk_sizes(), or .to_dask_array(lengths=True) of a dask data frame"
        )
