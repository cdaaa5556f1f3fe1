"""What released values say against what was declared: for a warning that costs nothing.

A row whose label or value is none of the declared ones counts as no row, and numbers in other units all become the end
of their range: such a fit ends well, and predicts nothing. What it released shows it. All of this is post-processing of
released values, whose noise has a known law: ``docs/theory/learners.md#doubts``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri

from fdadp._common.typing import ArrayLike, BoolArray, FloatArray, IntArray
from fdadp.privacy import Cohort

LEVEL = 1e-3
"""Probability, at most, with which a fit says anything of what is as large as in the constants below."""
_NOTHING = 2.0
"""Released values up to this many sds of their noise are such as nothing leaves: 97 times in 100, or more."""
_SURELY = 5.0
"""From so many sds on a number of rows is one to divide by."""
_FAR_SQUARES = 3.0
"""So many sds above its mean lies the sum of squares of noise alone once in 700 times."""
_ROWS = 300
"""Rows that a table of a private number of rows is taken to have."""
_USED, _OF_CLASS, _KNOWN, _OUTSIDE, _OUTSIDE_LEAF, _VARIANCE = 0.1, 0.2, 0.05, 0.04, 0.2, 4e-3
"""What ordinary tables have at least: used rows, of those declared; rows of a class, of an even share; values that are
numbers or declared labels; rows outside of the fullest bin, and leaf; variance, in squares of half a range or of the
radius."""
_UNSURE = 0.6
"""Sd of the logarithm of a size that was not found."""


class Doubts:
    """Sentences about one fit, each on released values that are too small to be those of what was declared.

    Parameters
    ----------
    cohort : Cohort
        After its releases.
    comparisons : int
        How many values will be looked at, among which :data:`LEVEL` is shared.
    pure : bool, optional
        Whether their noise is that of pure ε, of which Laplace's has the longest tails; default: the cohort's.

    Attributes
    ----------
    said : tuple of str
    """

    def __init__(self, cohort: Cohort, comparisons: int = 1, *, pure: bool | None = None) -> None:
        level = LEVEL / comparisons
        pure = cohort.pure if pure is None else pure
        self._level, self._pure = level, pure
        self._of_squares = 5.0 if pure else 2.0  # variance of the square of one value
        self._n = cohort.n
        self.said: tuple[str, ...] = ()

    def small(
        self, value: ArrayLike, sd: ArrayLike, ordinary: ArrayLike, bias: ArrayLike = 0.0, *, copies: int = 1
    ) -> BoolArray:
        """Where released values are such as noise leaves of nothing, and hardly of anything `ordinary`.

        Parameters
        ----------
        value, sd : array_like
            Released, and the sd of their noise.
        ordinary : array_like
            Truths from which on the answer is no, but with a small probability.
        bias : array_like
            By how much values may be too small besides, as where the largest of several was taken off.
        copies : int
            Of how many independent draws, at least, the noise is the sum.
        """
        value, sd, ordinary, bias = (np.asarray(a, dtype=np.float64) for a in (value, sd, ordinary, bias))
        return np.asarray(
            value < np.minimum(_NOTHING * sd, ordinary - _far(self._level, self._pure, copies) * sd - bias)
        )

    def _say(self, *sentences: str) -> None:
        self.said += sentences

    def rows(
        self,
        count: float,
        sd: float,
        released: ArrayLike,
        *,
        copies: int = 1,
        what: str = "rows",
        least: float = 1.0,
        about: float | None = None,
    ) -> bool:
        """Whether so many rows were used, surely, that it makes sense to ask on; where hardly any were, that is said.

        Parameters
        ----------
        count, sd : float
            Released number of used rows, or something else that grows by `least` at least with each, and its noise.
        released : array_like
            All that was released, in units of its noise: the sum of its squares must be that of noise, too.
        copies : int
            As in :meth:`small`.
        what : str
        least : float
        about : float, optional
            Public guess of the number of rows, where that is private.
        """
        n = about if self._n is None else self._n
        ordinary = least * (_ROWS if n is None else _USED * n)
        squares = np.square(np.ravel(released))
        usual = squares.size + _FAR_SQUARES * math.sqrt(self._of_squares * squares.size)
        if squares.sum() > usual or not self.small(count, sd, ordinary, copies=copies):
            return bool(count > _SURELY * sd)
        of = "" if self._n is None else f" of the {self._n} declared"
        self._say(
            f"hardly any row{of} was used, or epsilon is too small to tell (released {what}: {count:.3g}, with noise "
            f"of sd {sd:.2g}): are labels, categories and units those of the data, and are values missing?"
        )
        return False

    def classes(self, labels: Sequence[Any], counts: FloatArray, sd: float) -> None:
        """Classes (K,) that have no rows."""
        ordinary = _OF_CLASS * max(float(counts.sum()), 0.0) / len(labels)
        for k in np.flatnonzero(self.small(counts, sd, ordinary)).tolist():
            self._say(
                f"hardly any row of class {labels[k]!r} was found (released: {counts[k]:.0f}, noise of sd {sd:.2g}; "
                f"{counts.sum():.0f} in all): is it spelt as in the data?"
            )

    def unknown(self, names: Sequence[str], known: FloatArray, sd: FloatArray, count: float) -> BoolArray:
        """Features (d,) of which any value is a number or a declared label."""
        found = self.small(known, sd, _KNOWN * count)
        if found.any():
            self._say(f"hardly any value of {_listed(names, found)} is a number or a declared label")
        return ~found

    def bins(self, names: Sequence[str], starts: IntArray, ordered: IntArray, counts: FloatArray, sd: float) -> bool:
        """:meth:`rows` and :meth:`crowded` of counts (total,) of the bins of each feature."""
        d = len(names)
        whole, noise = float(counts.sum()) / d, sd * math.sqrt(len(counts)) / d
        if not self.rows(whole, noise, counts / sd, copies=len(counts)):
            return False
        of_numbers = [j for j in range(d) if ordered[j]]
        self.crowded([names[j] for j in of_numbers], [counts[starts[j] : starts[j + 1]] for j in of_numbers], sd, whole)
        return True

    def crowded(self, names: Sequence[str], bins: Sequence[FloatArray], sd: float, count: float) -> None:
        """Features of numbers of which all values are in one bin, from their bins' released counts."""
        sizes = np.array([len(of) for of in bins])
        outside = np.array([float(of.sum() - of.max()) for of in bins])
        bias = sd * np.sqrt(2 * np.log(sizes))
        least = int(min(sizes[sizes > 1], default=2)) - 1
        found = (sizes > 1) & self.small(outside, sd * np.sqrt(sizes - 1), _OUTSIDE * count, bias, copies=least)
        if found.any():
            self._say(f"hardly any value of {_listed(names, found)} is outside of one bin: {_UNITS}")

    def crowded_trees(self, leaves: FloatArray, sd: float, count: float) -> None:
        """Whether all rows are in one leaf of each tree, from the leaves' released counts (trees, leaves)."""
        T, L = leaves.shape
        outside = float((leaves.sum(axis=1) - leaves.max(axis=1)).mean())
        noise = sd * math.sqrt((L - 1) / T)
        if self.small(outside, noise, _OUTSIDE_LEAF * count, sd * math.sqrt(2 * math.log(L)), copies=T * (L - 1)):
            self._say(f"hardly any row is outside of one leaf in each tree: {_UNITS}")

    def still(self, names: Sequence[str], variance: ArrayLike, sd: ArrayLike) -> None:
        """Features, or all of them together, that do not vary within what was declared."""
        found = np.atleast_1d(self.small(variance, sd, _VARIANCE))
        if found.any():
            self._say(f"values of {_listed(names, found)} hardly vary within their public range: {_UNITS}")

    def placed(self, names: Sequence[str], still: BoolArray, unsure: ArrayLike) -> None:
        """Columns of which the places could not be told, or that hardly vary.

        Parameters
        ----------
        names : sequence of str
        still : ndarray of shape (q,)
        unsure : array_like of shape (q,)
            Posterior sds of the logarithms of their sizes.
        """
        lost = np.asarray(unsure) > _UNSURE
        if lost.any():
            self._say(
                f"where values of {_listed(names, lost)} are in their public range could not be told: do not use the "
                "fit, but take narrower bounds, a larger epsilon or more rows"
            )
        elif still.any():
            self._say(f"values of {_listed(names, still)} hardly vary within their public range: {_UNITS}")


@lru_cache(maxsize=64)
def _far(level: float, pure: bool, copies: int) -> float:
    """What noise of sd 1, the sum of so many draws, exceeds with this probability at most.

    Gaussian: the quantile. Laplace: that of a single draw, or the bound of Chernoff for their sum, whichever is nearer.
    """
    if not pure:
        return float(-ndtri(level))
    alone = math.log(0.5 / level) / math.sqrt(2)

    def exponent(z: float) -> float:
        c = z * math.sqrt(2 * copies)
        u = (math.hypot(copies, c) - copies) / c
        return -u * c - copies * math.log1p(-(u**2))

    if exponent(alone) > math.log(level):
        return alone
    return float(brentq(lambda z: exponent(z) - math.log(level), 1e-3, alone))


_UNITS = "are bounds, or data_norm, in the units of the data?"


def _listed(names: Sequence[str], found: BoolArray) -> str:
    at = np.flatnonzero(found).tolist()
    more = f" and {len(at) - 5} more" if len(at) > 5 else ""
    return ", ".join(repr(str(names[j])) for j in at[:5]) + more
