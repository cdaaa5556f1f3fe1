"""From training curves to sums over them: the only place where a fit without privacy sees the curves.

Curves come in chunks of (X, Y). One pass finds the range of X, which fixes the basis; a second one adds up the
moments of (feature row, response curve). Everything after that is computed from :class:`TrainingSums`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from tqdm import tqdm

from fdadp._common.threads import map_blocks, one_blas_thread
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.curves import Curves, as_curves, check_finite, same_rows
from fdadp.functional.margins import Margin, TensorProduct
from fdadp.solve.moments import Moments
from fdadp.terms._rows import FeatureMap

__all__ = ["Chunks", "TrainingSums", "add_up", "dask_chunks", "is_dask", "range_of"]

ROWS_PER_CHUNK = 8192


class Chunks:
    """Pairs (X, Y) of curves that can be gone through more than once.

    Parameters
    ----------
    source : sequence or callable
        A sequence of pairs, or a function that returns a fresh iterator over pairs. Each pair holds curves as
        :func:`fdadp.functional.curves.as_curves` reads them.
    s, t : array_like or None
        Grids of X and Y.
    progress : bool or "auto"
        Show a progress bar; ``"auto"``: on passes that take longer than two seconds.
    """

    def __init__(
        self,
        source: Sequence[tuple[Any, ...]] | Callable[[], Iterable[tuple[Any, ...]]],
        s: Any = None,
        t: Any = None,
        progress: bool | str = "auto",
    ) -> None:
        if not callable(source) and isinstance(source, Iterator):
            raise InputError(
                "chunks must be a sequence of (X, Y) pairs or a function that returns a fresh iterator "
                f"(the data are read twice), got a one-way {type(source).__name__}"
            )
        if not callable(source) and (isinstance(source, str) or not isinstance(source, Iterable)):
            raise InputError(f"chunks must be a sequence of (X, Y) pairs or a function, got {type(source).__name__}")
        self._source = source
        self._grids = (s, t)
        self._progress = progress
        self._head: tuple[Curves, Curves] | None = None
        self._held = False
        self._n: int | None = None
        self._totals: _Totals | None = None

    @property
    def n(self) -> int | None:
        """Number of pairs; None where it is not known before all of them were read once."""
        return self._n if self._totals is None else self._totals.n

    @classmethod
    def of(cls, x: Curves, y: Curves, progress: bool | str = "auto") -> Chunks:
        """Chunks of curves held in memory."""

        def pieces() -> Iterator[tuple[Curves, Curves]]:
            for start in range(0, len(x), ROWS_PER_CHUNK):
                rows = slice(start, start + ROWS_PER_CHUNK)
                yield Curves(x.values[rows], x.grid), Curves(y.values[rows], y.grid)

        chunks = cls(pieces, progress=progress)
        chunks._held, chunks._n = True, len(x)
        return chunks

    def head(self) -> tuple[Curves, Curves]:
        """First X and Y without their curves: the grids, and the kinds of object they came as."""
        if self._head is None:
            next(iter(self.read("first chunk")))
        assert self._head is not None
        return self._head

    def read(self, what: str) -> Iterator[tuple[Curves, Curves]]:
        """Go through the checked chunks once, with a progress bar labelled `what`.

        Raises
        ------
        InputError
            No chunks, chunks that differ in their grids, X and Y of different n, a value that is not finite, or other
            curves than the pass before gave.
        """
        source = self._source() if callable(self._source) else self._source
        bar = tqdm(
            source,
            desc=what,
            unit="chunk",
            disable=None if self._progress is True else not self._progress,
            delay=2.0 if self._progress == "auto" else 0.0,
            leave=False,
        )
        total = _Totals()
        for item in bar:
            try:
                x_data, y_data = item
            except (TypeError, ValueError) as exc:
                raise InputError(f"chunks: each chunk must be a pair (X, Y), got {type(item).__name__}") from exc
            x = as_curves(x_data, self._grids[0], name="X")
            y = as_curves(y_data, self._grids[1], name="Y")
            if len(x) != len(y):
                raise InputError(f"X and Y must hold the same number of curves, got {len(x)} and {len(y)}")
            same_rows(X=x, Y=y)
            check_finite(x, "X", first=total.n)
            check_finite(y, "Y", first=total.n)
            if self._head is None:
                self._head = _without_curves(x), _without_curves(y)
            for name, now, then in (("X", x, self._head[0]), ("Y", y, self._head[1])):
                if not np.array_equal(now.grid, then.grid):
                    raise InputError(
                        f"all chunks of {name} must have the grid of the first one, got another at row {total.n}"
                    )
            total.add(x.values, y.values, all_=not self._held)
            yield x, y
        if total.n == 0:
            raise InputError("chunks must hold at least one pair (X, Y), got none")
        if self._totals is not None:
            total.compare(self._totals)
        self._totals = total


class _Totals:
    """What tells two passes over the same curves from passes over different ones, in whatever order they come."""

    def __init__(self) -> None:
        self.n = 0
        self.sums = np.zeros(4)  # of X, |X|, Y, |Y|

    def add(self, x: FloatArray, y: FloatArray, all_: bool) -> None:
        self.n += len(x)
        if all_:
            self.sums += (x.sum(), np.abs(x).sum(), y.sum(), np.abs(y).sum())

    def compare(self, before: _Totals) -> None:
        must = "chunks must give the same curves each time they are read"
        if self.n != before.n:
            raise InputError(f"{must}, got {before.n} pairs at first and {self.n} later")
        for name, (value, size), (then, _) in zip(
            "XY", self.sums.reshape(2, 2), before.sums.reshape(2, 2), strict=True
        ):
            if not abs(value - then) <= 1e-9 * size:
                raise InputError(f"{must}, got a sum of {name} of {then:.12g} at first and {value:.12g} later")


def _without_curves(curves: Curves) -> Curves:
    return replace(curves, values=np.empty((0, curves.grid.size)), index=None)


def is_dask(data: Any) -> bool:
    """Whether `data` is a dask collection (without importing dask)."""
    if "dask" not in sys.modules:  # nobody can have made one
        return False
    from dask.base import is_dask_collection

    return bool(is_dask_collection(data))


def dask_chunks(x: Any, y: Any) -> Callable[[], Iterator[tuple[Any, Any]]]:
    """Return a source for :class:`Chunks` that computes one block of rows of X and Y at a time.

    Parameters
    ----------
    x, y : dask array of shape (n, S) or (n, T), or an xarray.DataArray of one
        A DataArray comes in pieces with its coordinates.

    Raises
    ------
    InputError
        Only one of them is one, they differ in n, or their number of rows is not known.
    """
    _check_dask(x, "X")
    _check_dask(y, "Y")
    if x.ndim != 2 or y.ndim != 2 or x.shape[0] != y.shape[0]:
        raise InputError(f"X and Y must hold the same number of curves, got shapes {x.shape} and {y.shape}")
    stops = np.cumsum(x.chunks[0]).tolist()

    def blocks() -> Iterator[tuple[Any, Any]]:
        for start, stop in zip([0, *stops], stops, strict=False):
            yield x[start:stop].compute(), y[start:stop].compute()

    return blocks


def _check_dask(data: Any, name: str) -> None:
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


def range_of(chunks: Chunks) -> tuple[float, float]:
    """Smallest and largest value of X.

    Raises
    ------
    InputError
        X is constant.
    """
    low, high = np.inf, -np.inf
    for x, _ in chunks.read("range of X"):
        low, high = min(low, float(x.values.min())), max(high, float(x.values.max()))
    if not low < high:
        raise InputError(f"X must vary, got the constant {low:g} everywhere")
    return low, high


@dataclass(frozen=True)
class TrainingSums:
    """All that is kept of the training curves.

    Attributes
    ----------
    moments : Moments
        Of the rows (Z_i, Y_i): raw feature row, then the response on its grid.
    x_basis_sums : ndarray of shape (S, n_basis_x)
        ``Σ_i B_l(X_i(s_j))``, from which the surface is centred.
    smooth : TensorProduct
    features : FeatureMap
    t : ndarray of shape (T,)
    """

    moments: Moments
    x_basis_sums: FloatArray
    smooth: TensorProduct
    features: FeatureMap
    t: FloatArray

    @property
    def n_features(self) -> int:
        """Length of a raw feature row."""
        return self.features.n_features

    @property
    def y(self) -> Moments:
        """Moments of the response curves alone."""
        p = self.n_features
        return Moments(self.moments.n, self.moments.mean[p:], self.moments.scatter[p:, p:])


def add_up(chunks: Chunks, x_margin: Margin, s_margin: Margin, weights: FloatArray) -> TrainingSums:
    """Add up the training curves in one pass.

    Parameters
    ----------
    chunks : Chunks
    x_margin, s_margin : Margin
        Bases over the values of X and over its grid.
    weights : ndarray of shape (S,)
        Quadrature weights on the grid of X.
    """
    x_head, y_head = chunks.head()
    features = FeatureMap(x_margin.basis, s_margin.basis, x_head.grid, weights)
    row_norm = features.row_norm(x_margin.to_raw, s_margin.to_raw)
    total: _Sums | None = None
    for x, y in chunks.read("sums over curves"):
        with one_blas_thread():
            for part in map_blocks(partial(_sums_of, features, row_norm, x.values, y.values), len(x)):
                total = total.merge(part) if total else part
    assert total is not None  # read() refuses an empty source
    smooth = TensorProduct(x_margin, s_margin, total.row_norm)
    return TrainingSums(total.moments, total.basis_sums, smooth, features, y_head.grid)


@dataclass
class _Sums:
    """What a block of curves contributes to :class:`TrainingSums`."""

    moments: Moments
    basis_sums: FloatArray
    row_norm: float

    def merge(self, other: _Sums) -> _Sums:
        self.moments.merge(other.moments)
        self.basis_sums += other.basis_sums
        self.row_norm = max(self.row_norm, other.row_norm)
        return self


def _sums_of(
    features: FeatureMap, row_norm: Callable[[FloatArray], float], x: FloatArray, y: FloatArray, block: slice
) -> _Sums:
    curves, p = x[block], features.n_features
    rows = np.zeros((len(curves), p + y.shape[1]))
    rows[:, p:] = y[block]
    basis_sums = np.zeros((features.grid.size, features.x_basis.n_basis))
    features.add_to(curves, rows, basis_sums)
    return _Sums(Moments.of(rows), basis_sums, row_norm(curves))
