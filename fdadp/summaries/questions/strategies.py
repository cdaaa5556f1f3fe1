"""How counts in ordered cells are asked for, so that all cumulative counts have little noise at once.

A person is in one cell k of K; asked for is Σ W[:, k] over persons for a public matrix W >= 0 (a strategy), and the
cumulative counts are a public linear map of the answer. The person's column bounds the sensitivity, whatever it is.
Identity, trees and the square root of the summation matrix are compared by their noise, which is public, and the best
is taken (``docs/theory/summaries.md#cumulative``).

References
----------
Li, Miklau, Hay, McGregor & Rastogi (2015), The matrix mechanism, VLDB Journal 24, 757-781,
doi:10.1007/s00778-015-0398-x.
Henzinger, Upadhyay & Upadhyay (2023), Almost tight error bounds on differentially private continual counting, SODA,
doi:10.1137/1.9781611977554.ch183: the square root.
Qardaji, Yang & Li (2013), Understanding hierarchical methods for differentially private histograms, PVLDB 6, 1954-1965,
doi:10.14778/2556549.2556576: wide trees.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fdadp._common.typing import FloatArray

WIDTHS = (4, 8, 12, 16, 24, 32)
"""Of the blocks of a tree of two levels."""


@dataclass(frozen=True)
class Strategy:
    """What is asked of counts in K cells.

    Attributes
    ----------
    columns : ndarray of shape (K, p)
        Row k: what a person in cell k adds; not negative.
    decode : ndarray of shape (K, p)
        From the answer to the cumulative counts.
    clip : float
        The largest norm of a row of `columns`.
    """

    columns: FloatArray
    decode: FloatArray
    clip: float

    def cumulate(self, *, total: bool) -> tuple[FloatArray, FloatArray]:
        """A matrix (K, p) and a vector (K,): the cumulative counts are `matrix @ answer + vector * n`.

        Where the `total` n is public they are those expected given it, with less noise; else the vector is 0.
        """
        last = self.decode[-1]
        pull = self.decode @ last / float(last @ last) if total else np.zeros(len(self.decode))
        return self.decode - np.outer(pull, last), pull

    @property
    def noise(self) -> float:
        """Mean sd of the cumulative counts over that of a single count for the same budget."""
        return float(self.clip * np.sqrt((self.decode**2).sum(axis=1)).mean())


@lru_cache(maxsize=16)
def strategy(cells: int, *, pure: bool) -> Strategy:
    """The strategy of least noise for so many cells.

    Parameters
    ----------
    cells : int
        K.
    pure : bool
        Laplace noise, for which columns are bounded in L1; else Gaussian, L2.

    Examples
    --------
    >>> round(strategy(1024, pure=False).noise, 2), round(strategy(512, pure=True).noise, 2)  # a histogram: 21, 15
    (3.1, 7.03)
    """
    found = []
    for columns, decode in _candidates(cells, pure=pure):
        norms = columns.sum(axis=1) if pure else np.sqrt((columns**2).sum(axis=1))
        found.append(Strategy(columns, decode, float(norms.max())))
    return min(found, key=lambda one: one.noise)


def _candidates(cells: int, *, pure: bool) -> Iterator[tuple[FloatArray, FloatArray]]:
    identity, sums = np.eye(cells), np.tril(np.ones((cells, cells)))
    yield identity, sums
    if not pure:
        root = _root(cells)
        yield np.ascontiguousarray(root.T), root
        return
    for width in WIDTHS:
        blocks = math.ceil(cells / width)
        if blocks > 1:
            block = np.kron(np.eye(blocks), np.ones((width, 1)))[:cells]
            tree = np.hstack((identity, block))
            # pinv(tree') is (tree tree')⁻¹ tree, and tree tree' is 1 + 11' in each block (Sherman & Morrison).
            inverse = identity - (block / (1 + block.sum(axis=0))) @ block.T
            yield tree, sums @ inverse @ tree


def _root(cells: int) -> FloatArray:
    """The lower triangular Toeplitz matrix whose square is the summation matrix."""
    k = np.arange(1, cells)
    first = np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])
    at = np.subtract.outer(np.arange(cells), np.arange(cells))
    return np.where(at >= 0, first[np.maximum(at, 0)], 0.0)
