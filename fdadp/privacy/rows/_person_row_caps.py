"""How the rows of a person become one contribution, and which of them count where there are more than a public number.

A law is public and the same for all releases of a cohort. Which rows of a person count follows from these rows alone:
those with the smallest public hash of their entries. So neither the order of a file nor its chunks matter, and the
choice favours no values (``docs/theory/kernel.md#laws``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fdadp._common.loaded_later import kernel
from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import PrivacyError
from fdadp.privacy.private_entries import NOBODY

LAWS = ("mean", "sum")
MOST_ROWS = 10_000
Keys = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Law:
    """How a person's rows are combined before the one clip.

    Attributes
    ----------
    name : {"mean", "sum", "person"}
        The mean of a person's usable rows, or their sum; or all of them side by side in one row (:func:`by_person`).
    max_rows : int or None
        Rows of a person that count at most; None: all, of a mean.
    """

    name: str = "mean"
    max_rows: int | None = None

    @property
    def most(self) -> int:
        """What a person adds at most where each row adds at most 1."""
        return self.max_rows if self.name == "sum" and self.max_rows is not None else 1

    @property
    def usual_rows(self) -> float:
        """Rows of a person as planned for, before any are seen: half of the most."""
        return (1 + self.most) / 2

    def shares(self, row_counts: IntArray) -> IntArray:
        """Over how many rows the bound of a person is spread, by its number of rows."""
        return np.where(row_counts > 0, self.most, 0) if self.name == "sum" else row_counts

    def __str__(self) -> str:
        if self.name == "mean":
            return "each person counts once, by the mean of its rows"
        if self.name == "person":
            return f"each person counts once, by all of its rows together, at most {self.max_rows}"
        return f"each row counts once, at most {self.max_rows} rows a person"


MEAN = Law()


@dataclass(frozen=True)
class Exchangeable:
    """Working covariance of a person's rows, I + ratio 11': the variance between persons over that within them.

    Parameters
    ----------
    ratio : float
        At least 0, public. 0 counts each row by itself; infinity leaves only what differs within persons.

    Raises
    ------
    PrivacyError
        The ratio is no number, or below 0.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp.privacy import Exchangeable, person_moments
    >>> rows = np.array([[[1.0], [3.0]]])  # two rows of one person: 2 within it, 2 · 4/(1 + 2 · 0.5) of its mean
    >>> person_moments(rows, Exchangeable(0.5)).tolist()
    [[6.0]]
    """

    ratio: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.ratio, bool) or not isinstance(self.ratio, (int, float)) or not self.ratio >= 0:
            raise PrivacyError(f"ratio must be a number of at least 0, got {self.ratio!r}")


MOMENT_LAWS = ("mean", "sum", "between", "within")


def moment_weights(law: str | Exchangeable, most: int) -> tuple[FloatArray, FloatArray]:
    """Weights α of the centred products and γ of the product of means, (most + 1,) each, by the number of rows.

    With f̄ and ḡ the means of a person's n rows, its moment is α Σ (f - f̄)(g - ḡ)' + γ f̄ ḡ'
    (``docs/theory/kernel.md#person-moments``).

    Raises
    ------
    PrivacyError
        The law is none of :data:`MOMENT_LAWS` and no :class:`Exchangeable`.
    """
    n = np.arange(most + 1, dtype=np.float64)
    once = np.minimum(n, 1.0)
    if isinstance(law, Exchangeable):
        return once, n / (1 + n * law.ratio) if law.ratio < math.inf else 0 * n
    if not isinstance(law, str) or law not in MOMENT_LAWS:
        raise PrivacyError(f"law must be one of {', '.join(MOMENT_LAWS)}, or Exchangeable(ratio), got {law!r}")
    return {
        "mean": (once / np.maximum(n, 1), once),
        "sum": (once, n),
        "between": (0 * n, once),
        "within": (np.where(n > 1, 1 / np.maximum(n - 1, 1), 0.0), 0 * n),
    }[law]


def check_most(max_rows: Any, why: str) -> int:
    """The public number of rows of a person that count at most.

    Raises
    ------
    PrivacyError
        It is no whole number from 1 to :data:`MOST_ROWS`.
    """
    is_whole = isinstance(max_rows, (int, np.integer)) and not isinstance(max_rows, bool)
    if not is_whole or not 1 <= max_rows <= MOST_ROWS:
        raise PrivacyError(
            f"max_rows must be given {why}: the public number of rows of a person that count at most, "
            f"from 1 to {MOST_ROWS}, got {max_rows!r}"
        )
    return int(max_rows)


def law_of(person_rows: Any, max_rows: Any) -> Law:
    """The law that two public settings stand for.

    Raises
    ------
    PrivacyError
        Naming the setting. Nothing was read.
    """
    if not isinstance(person_rows, str) or person_rows not in LAWS:
        raise PrivacyError(f"person_rows must be 'mean' or 'sum', got {person_rows!r}")
    if person_rows == "mean":
        if max_rows is not None:
            raise PrivacyError(f"max_rows must be left out with person_rows='mean', got {max_rows!r}")
        return MEAN
    return Law("sum", check_most(max_rows, "with person_rows='sum'"))


@kernel("u8[:,::1], u8[::1]")
def _mix(values, keys):  # type: ignore[no-untyped-def]
    """Take the bits of each row's entries into its key (splitmix64, one entry after the other)."""
    for i in range(values.shape[0]):
        z = keys[i]
        for j in range(values.shape[1]):
            z = (z ^ values[i, j]) + np.uint64(0x9E3779B97F4A7C15)
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            z = z ^ (z >> np.uint64(31))
        keys[i] = z


def row_keys(arrays: tuple[FloatArray, ...]) -> Keys:
    """A public hash of the entries of each row, (m,): all NaN are one, and so are both zeros."""
    keys = np.zeros(len(arrays[0]), dtype=np.uint64)
    for array in arrays:
        flat = np.ascontiguousarray(array, dtype=np.float64).reshape(len(array), math.prod(array.shape[1:]))
        _mix((np.where(np.isnan(flat), np.nan, flat) + 0.0).view(np.uint64), keys)
    return keys


def surplus(codes: IntArray, keys: npt.NDArray[Any], most: int) -> IntArray:
    """Codes of the persons of rows, with nobody in place of those beyond the `most` rows of the smallest keys."""
    order = np.lexsort((keys, codes))
    out = codes.copy()
    out[order[_ranks(codes[order]) >= most]] = NOBODY
    return out


def _ranks(codes: IntArray) -> IntArray:
    """Place of each row among those of its code, from 0; equal codes stand together."""
    starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]]) if len(codes) else np.zeros(0, dtype=np.int64)
    return np.arange(len(codes)) - np.repeat(starts, np.diff(np.r_[starts, len(codes)]))


def last_keys(codes: IntArray, keys: Keys, persons: int, most: int) -> tuple[Keys, IntArray]:
    """Key of the last row of each person that counts, (persons + 1,), and how many rows with that key count.

    The largest key where all rows count, and for nobody. Rows of one key are equal, so any of them may count; but no
    more of them than this, or they would take the place of rows with smaller keys that a source shows later.
    """
    last = np.full(persons + 1, np.iinfo(np.uint64).max, dtype=np.uint64)
    kept = np.flatnonzero((codes != NOBODY) & (surplus(codes, keys, most) != NOBODY))
    kept = kept[np.lexsort((keys[kept], codes[kept]))]  # of each person the last one written is the largest
    last[codes[kept]] = keys[kept]
    return last, np.bincount(codes[kept][keys[kept] == last[codes[kept]]], minlength=persons).astype(np.int64)


def by_person(arrays: tuple[FloatArray, ...], codes: IntArray, persons: int, most: int) -> tuple[FloatArray, ...]:
    """Rows of each person side by side, (persons, most, ...) of each array; NaN where a person has fewer.

    They stand in the order of their public hashes and entries, so that what is made of them is a function of the
    multiset of a person's rows. A row with an entry that is not finite is left out of all arrays.
    """
    flat = np.hstack([a.reshape(len(a), math.prod(a.shape[1:])) for a in arrays]) + 0.0
    keys = row_keys(arrays)
    order = np.lexsort((*flat.T, keys, codes))
    order = order[(codes[order] != NOBODY) & np.isfinite(flat[order]).all(axis=1)]
    own = codes[order]
    rank = _ranks(own)
    kept = rank < most
    out = tuple(np.full((persons, most, *a.shape[1:]), np.nan) for a in arrays)
    for rows, a in zip(out, arrays, strict=True):
        rows[own[kept], rank[kept]] = a[order[kept]] + 0.0
    return out
