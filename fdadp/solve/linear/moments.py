"""Moments: the number, mean and scatter of rows, which is all that fitting needs from the data."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.files.container import Layout, complete

LAYOUT = Layout("moments", {"mean": "q", "scatter": "q q"})


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
    >>> (Moments.of(rows[:1]) + Moments.of(rows[1:])).mean
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

    def add(self, rows: ArrayLike) -> Moments:
        """Add rows of shape (m, q) in place; return self."""
        return self.merge(Moments.of(rows))

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

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of both sets of rows."""
        return Moments(self.n, self.mean, self.scatter).merge(other)

    @property
    def sum(self) -> FloatArray:
        """``Σ v``, shape (q,)."""
        return self.n * self.mean

    @property
    def outer(self) -> FloatArray:
        """``Σ v v'``, shape (q, q)."""
        return self.scatter + self.n * np.outer(self.mean, self.mean)

    def covariance(self, ddof: int = 1) -> FloatArray:
        """``scatter / (n - ddof)``, shape (q, q).

        Raises
        ------
        InputError
            If n is not above `ddof`.
        """
        if self.n <= ddof:
            raise InputError(f"n must be above ddof={ddof} for a covariance, got {self.n}")
        return self.scatter / (self.n - ddof)

    def transform(self, matrix: ArrayLike) -> Moments:
        """Moments of the rows ``v @ matrix``, for a matrix of shape (q, r)."""
        m = np.asarray(matrix, dtype=np.float64)
        if m.ndim != 2 or m.shape[0] != self.mean.size:
            raise InputError(f"matrix must have {self.mean.size} rows, got shape {m.shape}")
        return Moments(self.n, self.mean @ m, m.T @ self.scatter @ m)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to a pickle-free file (see :mod:`fdadp.files.container`); return its path."""
        return LAYOUT.write(path, {"n": self.n}, {"mean": self.mean, "scatter": self.scatter})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Moments:
        """Read what :meth:`save` wrote.

        Raises
        ------
        FileFormatError
            Not such a file.
        """
        content, arrays = LAYOUT.read(path)
        with complete(path, "moments"):
            return cls(int(content["n"]), arrays["mean"], arrays["scatter"])
