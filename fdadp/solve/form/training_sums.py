"""From training rows to sums over them: moments of (features of all terms, response curve), in one pass.

Everything after that is computed from :class:`TrainingSums`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import Any

import numpy as np

from fdadp._common.threads import map_blocks, one_blas_thread
from fdadp._common.typing import ArrayLike, BoolArray, FloatArray
from fdadp.errors import InputError
from fdadp.solve.form.long_form_design import kept_of
from fdadp.terms.records import Records
from fdadp.terms.spec import TermDesign

Over = Callable[[Callable[[Records, FloatArray], Any], Callable[[Any, Any], Any]], Any]
"""A pass: what a function makes of the rows of each chunk, merged."""


@dataclass(frozen=True)
class TrainingSums:
    """All that is kept of the training rows.

    Attributes
    ----------
    moments : Moments
        Of the rows (Z_i, Y_i): the features of all terms, q of them, then the response on its grid.
    designs : tuple of TermDesign
        Terms in the form that they have for numbers, with what they learned from the training rows.
    t : ndarray of shape (T,)
        Grid of the response.
    """

    moments: Moments
    designs: tuple[TermDesign, ...]
    t: FloatArray

    @property
    def n(self) -> int:
        """Number of training rows."""
        return self.moments.n

    @property
    def kept(self) -> BoolArray:
        """Which features have coefficients, shape (q,)."""
        return kept_of(self.designs)

    @property
    def penalties(self) -> list[FloatArray]:
        """Of each term, shapes (M_j, p_j)."""
        return [design.penalties for design in self.designs]

    @property
    def y(self) -> Moments:
        """Moments of the responses alone."""
        return self._part(slice(self.kept.size, None))

    @cached_property
    def x(self) -> Moments:
        """Moments of the features that have coefficients, p of them."""
        return self._part(np.flatnonzero(self.kept))

    @property
    def gram(self) -> FloatArray:
        """Their scatter, shape (p, p)."""
        return self.x.scatter

    @cached_property
    def cross(self) -> FloatArray:
        """Products of them and the response, both centred, shape (p, T)."""
        return self.moments.scatter[np.flatnonzero(self.kept), self.kept.size :]

    def of_terms(self) -> list[Moments]:
        """Moments of the features of each term that have coefficients."""
        ends = np.cumsum([design.size for design in self.designs])[:-1]
        return [self._part(own) for own in np.split(np.flatnonzero(self.kept), ends)]

    def _part(self, which: Any) -> Moments:
        return Moments(self.n, self.moments.mean[which], self.moments.scatter[which][:, which])


def add_up(designs: Sequence[TermDesign], over: Over, t: FloatArray) -> TrainingSums:
    """Add up the training rows in one pass.

    Parameters
    ----------
    designs : sequence of TermDesign
    over : callable
        Merges what a function makes of each chunk of training rows and their responses (n, T): ``over(f, merge)``.
    t : ndarray of shape (T,)
    """
    total: _Sums = over(partial(_of_chunk, designs), _Sums.merge)
    learned = (design.learned(seen, total.moments.n) for design, seen in zip(designs, total.seen, strict=True))
    return TrainingSums(total.moments, tuple(learned), t)


def _of_chunk(designs: Sequence[TermDesign], records: Records, y: FloatArray) -> _Sums:
    with one_blas_thread():
        return reduce(_Sums.merge, map_blocks(partial(_sums_of, designs, records, y), records.n))


@dataclass
class _Sums:
    """What a block of rows contributes to :class:`TrainingSums`."""

    moments: Moments
    seen: list[Any]

    def merge(self, other: _Sums) -> _Sums:
        self.moments.merge(other.moments)
        self.seen = [a if a is None else a.merge(b) for a, b in zip(self.seen, other.seen, strict=True)]
        return self


def _sums_of(designs: Sequence[TermDesign], records: Records, y: FloatArray, block: slice) -> _Sums:
    rows = records[block]
    trained = [design.trained(rows) for design in designs]
    return _Sums(Moments.of(np.hstack([*(features for features, _ in trained), y[block]])), [s for _, s in trained])


# Moments: the number, mean and scatter of rows, which is all that fitting needs from the data.


@dataclass
class Moments:
    """Exact first and second moments of rows v: n, their mean and ``Σ (v - mean)(v - mean)'``.

    Kept about the mean (Chan, Golub & LeVeque 1983, doi:10.2307/2683386), so nothing is lost when the mean
    is large against the spread. Moments of parts add up to those of the whole, whatever the parts.

    Attributes
    ----------
    n : int
        Number of rows.
    mean : ndarray of shape (q,)
    scatter : ndarray of shape (q, q)

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.arange(6.0).reshape(3, 2)
    >>> Moments.of(rows[:1]).merge(Moments.of(rows[1:])).mean
    array([2., 3.])
    """

    n: int
    mean: FloatArray
    scatter: FloatArray

    @classmethod
    def zeros(cls, size: int) -> Moments:
        """Moments of no rows of length `size`."""
        return cls(0, np.zeros(size), np.zeros((size, size)))

    @classmethod
    def of(cls, rows: ArrayLike) -> Moments:
        """Moments of `rows` of shape (n, q)."""
        v = np.asarray(rows, dtype=np.float64)
        if v.ndim != 2:
            raise InputError(f"rows must be two-dimensional, got shape {v.shape}")
        if len(v) == 0:
            return cls.zeros(v.shape[1])
        mean = v.mean(axis=0)
        centred = v - mean
        return cls(len(v), mean, centred.T @ centred)

    def merge(self, other: Moments) -> Moments:
        """Add the rows of other moments in place; return self.

        Raises
        ------
        InputError
            Rows of another length.
        """
        if other.mean.shape != self.mean.shape:
            raise InputError(f"other must have rows of length {self.mean.size}, got {other.mean.size}")
        if other.n == 0:
            return self
        total = self.n + other.n
        difference = other.mean - self.mean
        between = np.outer(difference, difference)
        between *= self.n * other.n / total
        self.scatter = self.scatter + other.scatter
        self.scatter += between
        self.mean = self.mean + difference * (other.n / total)
        self.n = total
        return self

    @property
    def outer(self) -> FloatArray:
        """``Σ v v'``, shape (q, q)."""
        return self.scatter + self.n * np.outer(self.mean, self.mean)
