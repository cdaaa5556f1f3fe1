"""From training curves to sums over them: moments of (feature rows of all terms, response curve), in one pass.

Everything after that is computed from :class:`TrainingSums`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from fdadp._common.threads import map_blocks, one_blas_thread
from fdadp._common.typing import FloatArray
from fdadp.functional.curves import Curves
from fdadp.solve.chunks import Chunks, Columns
from fdadp.solve.moments import Moments
from fdadp.terms.base import Term

__all__ = ["TrainingSums", "add_up"]


@dataclass(frozen=True)
class TrainingSums:
    """All that is kept of the training curves.

    Attributes
    ----------
    moments : Moments
        Of the rows (Z_i, Y_i): feature rows of all terms side by side, then the response on its grid.
    terms : tuple of Term
        With what they learned from the training curves (:meth:`fdadp.terms.base.Term.learned`).
    t : ndarray of shape (T,)
        Grid of the response.
    """

    moments: Moments
    terms: tuple[Term, ...]
    t: FloatArray

    @property
    def n(self) -> int:
        """Number of training curves."""
        return self.moments.n

    @property
    def n_features(self) -> int:
        """Length of a feature row, of all terms."""
        return sum(term.n_features for term in self.terms)

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
        """From identified coordinates of all terms to their features, shape (q, p)."""
        return _blocks([term.rotation for term in self.terms])

    @property
    def penalties(self) -> list[FloatArray]:
        """Diagonals of the penalties of each term in its identified coordinates, shapes (M_j, p_j)."""
        return [term.penalties for term in self.terms]

    @cached_property
    def gram(self) -> FloatArray:
        """Scatter of the identified coordinates, shape (p, p)."""
        return np.asarray(self.rotation.T @ self.x.scatter @ self.rotation)

    @cached_property
    def cross(self) -> FloatArray:
        """Products of the identified coordinates and the response, both centred, shape (p, T)."""
        q = self.n_features
        return np.asarray(self.rotation.T @ self.moments.scatter[:q, q:])

    def by_term(self, coordinates: FloatArray) -> list[FloatArray]:
        """Split identified coordinates (p, K) into those of each term."""
        sizes = [penalty.shape[1] for penalty in self.penalties]
        return np.split(coordinates, np.cumsum(sizes)[:-1])


def add_up(chunks: Chunks, terms: Sequence[Term]) -> TrainingSums:
    """Add up the training curves in one pass.

    Parameters
    ----------
    chunks : Chunks
    terms : sequence of Term
        On known bases.
    """
    t = chunks.head()[1].grid
    total: _Sums | None = None
    for columns, y in chunks.read("sums over curves"):
        with one_blas_thread():
            for part in map_blocks(partial(_sums_of, terms, columns, y.values), len(y)):
                total = total.merge(part) if total else part
    assert total is not None  # read() refuses an empty source
    learned = tuple(term.learned(seen, total.moments.n) for term, seen in zip(terms, total.seen, strict=True))
    return TrainingSums(total.moments, learned, t)


@dataclass
class _Sums:
    """What a block of curves contributes to :class:`TrainingSums`."""

    moments: Moments
    seen: list[Any]

    def merge(self, other: _Sums) -> _Sums:
        self.moments.merge(other.moments)
        self.seen = [a if a is None else a.merge(b) for a, b in zip(self.seen, other.seen, strict=True)]
        return self


def _sums_of(terms: Sequence[Term], columns: Columns, y: FloatArray, block: slice) -> _Sums:
    sizes = [term.n_features for term in terms]
    p = sum(sizes)
    rows = np.zeros((len(y[block]), p + y.shape[1]))
    rows[:, p:] = y[block]
    seen, start = [], 0
    for term, size in zip(terms, sizes, strict=True):
        whole = columns[term.column]
        own = np.zeros((len(rows), size)) if start else rows  # the first columns are the first term's
        seen.append(term.add_to(Curves(whole.values[block], whole.grid), own))
        if start:
            rows[:, start : start + size] = own
        start += size
    return _Sums(Moments.of(rows), seen)


def _blocks(parts: Sequence[FloatArray]) -> FloatArray:
    return parts[0] if len(parts) == 1 else np.asarray(block_diag(*parts))
