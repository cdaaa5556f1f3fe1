"""From training curves to sums over them: moments of (feature row, response curve), in one pass.

Everything after that is computed from :class:`TrainingSums`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from fdadp._common.threads import map_blocks, one_blas_thread
from fdadp._common.typing import FloatArray
from fdadp.functional.curves import Curves
from fdadp.solve.chunks import Chunks, Columns
from fdadp.solve.moments import Moments
from fdadp.terms.surface import AdditiveTerm

__all__ = ["TrainingSums", "add_up"]


@dataclass(frozen=True)
class TrainingSums:
    """All that is kept of the training curves.

    Attributes
    ----------
    moments : Moments
        Of the rows (Z_i, Y_i): the feature row, then the response on its grid.
    term : AdditiveTerm
        With what it learned from the training curves (:meth:`fdadp.terms.surface.AdditiveTerm.learned`).
    t : ndarray of shape (T,)
        Grid of the response.
    """

    moments: Moments
    term: AdditiveTerm
    t: FloatArray

    @property
    def n(self) -> int:
        """Number of training curves."""
        return self.moments.n

    @property
    def n_features(self) -> int:
        """Length of a feature row."""
        return self.term.n_features

    @property
    def y(self) -> Moments:
        """Moments of the response curves alone."""
        p = self.n_features
        return Moments(self.n, self.moments.mean[p:], self.moments.scatter[p:, p:])

    @property
    def x(self) -> Moments:
        """Moments of the feature rows alone."""
        p = self.n_features
        return Moments(self.n, self.moments.mean[:p], self.moments.scatter[:p, :p])

    @cached_property
    def rotation(self) -> FloatArray:
        """From identified coordinates to features, shape (q, p)."""
        return self.term.rotation

    @cached_property
    def gram(self) -> FloatArray:
        """Scatter of the identified coordinates, shape (p, p)."""
        return np.asarray(self.rotation.T @ self.x.scatter @ self.rotation)

    @cached_property
    def cross(self) -> FloatArray:
        """Products of the identified coordinates and the response, both centred, shape (p, T)."""
        q = self.n_features
        return np.asarray(self.rotation.T @ self.moments.scatter[:q, q:])


def add_up(chunks: Chunks, term: AdditiveTerm) -> TrainingSums:
    """Add up the training curves in one pass.

    Parameters
    ----------
    chunks : Chunks
    term : AdditiveTerm
        On known bases.
    """
    t = chunks.head()[1].grid
    total: _Sums | None = None
    for columns, y in chunks.read("sums over curves"):
        with one_blas_thread():
            for part in map_blocks(partial(_sums_of, term, columns, y.values), len(y)):
                total = total.merge(part) if total else part
    assert total is not None  # read() refuses an empty source
    return TrainingSums(total.moments, term.learned(total.seen, total.moments.n), t)


@dataclass
class _Sums:
    """What a block of curves contributes to :class:`TrainingSums`."""

    moments: Moments
    seen: Any

    def merge(self, other: _Sums) -> _Sums:
        self.moments.merge(other.moments)
        self.seen = self.seen.merge(other.seen)
        return self


def _sums_of(term: AdditiveTerm, columns: Columns, y: FloatArray, block: slice) -> _Sums:
    p, whole = term.n_features, columns[term.column]
    rows = np.zeros((len(y[block]), p + y.shape[1]))
    rows[:, p:] = y[block]
    seen = term.add_to(Curves(whole.values[block], whole.grid), rows)
    return _Sums(Moments.of(rows), seen)
