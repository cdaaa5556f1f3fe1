"""Ids of persons as numbers, row by row: a row's person depends on its own id alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from fdadp._common.typing import IntArray
from fdadp.errors import PrivacyError
from fdadp.privacy.boundary.entries import LARGEST_ID, person_of
from fdadp.privacy.boundary.tables import entries

NOBODY = -1
NO_NUMBER = int(np.iinfo(np.int64).min)


def check_ids(ids: Any, n: int | None = None, name: str = "groups") -> Any:
    """Refuse ids that are not one for each row, by their shape alone; return them.

    Parameters
    ----------
    ids : array of shape (n,), series, or sequence; an id of several parts is a tuple
    n : int, optional
        Rows that there are.
    name : str
        The argument's name in error messages.

    Raises
    ------
    PrivacyError
        Of more dimensions, or of another length. The text tells no length: it may be private.
    """
    shape = getattr(ids, "shape", None)
    if shape is None:
        if not hasattr(ids, "__len__") or isinstance(ids, str | bytes | dict):
            raise PrivacyError(f"{name} must be a sequence of ids, one for each row, got {type(ids).__name__}")
        shape = (len(ids),)
    if len(shape) != 1:
        raise PrivacyError(
            f"{name} must be one id for each row, in one dimension, got {len(shape)} dimensions: an id of several "
            "parts is a tuple, as in list(zip(household, member))"
        )
    if n is not None and shape[0] != n:
        raise PrivacyError(f"{name} must have one id for each row of data, got another length")
    return ids


class Persons:
    """Who there is, and how many rows each has; numbers are given once, to all ids of a first pass over the data.

    Whole numbers are kept as such, whatever type they came as, and all other ids as text or tuples
    (:func:`~fdadp.privacy.boundary.entries.person_of`).
    """

    def __init__(self) -> None:
        self._found: list[IntArray] = []
        self._others: dict[Any, int] = {}
        self._counts: list[int] = []
        self._numbers: IntArray = np.empty(0, dtype=np.int64)
        self.row_counts: IntArray = np.empty(0, dtype=np.int64)
        """Rows of each person, once :meth:`close` was called."""

    def add(self, ids: Any) -> None:
        """Take note of the ids of some rows."""
        whole, others = persons_of(ids)
        self._found.append(whole[whole != NO_NUMBER])
        for key in others.values():
            code = self._others.setdefault(key, len(self._others))
            if code == len(self._counts):
                self._counts.append(0)
            self._counts[code] += 1

    def close(self) -> Persons:
        """All ids have been seen: number the persons; return self."""
        found = np.concatenate([*self._found, np.empty(0, dtype=np.int64)])
        self._numbers, counts = np.unique(found, return_counts=True)
        self._found = []
        self.row_counts = np.concatenate([counts, np.array(self._counts, dtype=np.int64)]).astype(np.int64)
        return self

    def codes(self, ids: Any) -> IntArray:
        """Person of each row, (m,): an index of :attr:`row_counts`, or NOBODY for an id that was never added."""
        whole, others = persons_of(ids)
        place = np.searchsorted(self._numbers, whole).clip(max=max(len(self._numbers) - 1, 0))
        known = self._numbers[place] == whole if len(self._numbers) else np.zeros(len(whole), dtype=bool)
        codes: IntArray = np.where(known, place, NOBODY).astype(np.int64)
        for row, key in others.items():
            code = self._others.get(key, NOBODY)
            codes[row] = NOBODY if code == NOBODY else len(self._numbers) + code
        return codes


def persons_of(ids: Any) -> tuple[IntArray, dict[int, Any]]:
    """Ids that are whole numbers (m,), NO_NUMBER where one is not, and the other ids by row; of nobody neither."""
    labels = hasattr(ids, "iloc") or hasattr(ids, "nlevels")  # a series, an index
    array = ids.to_numpy() if labels else ids
    if type(array) is np.ndarray and array.dtype.kind in "biuf" and array.dtype.char != "g":
        with np.errstate(all="ignore"):
            fits = (array < LARGEST_ID) & (array > -LARGEST_ID)
            if array.dtype.kind == "f":
                fits &= np.floor(array) == array
        return np.where(fits, np.where(fits, array, 0).astype(np.int64), NO_NUMBER), {}
    listed = entries(ids)
    whole: IntArray = np.full(len(listed), NO_NUMBER, dtype=np.int64)
    others: dict[int, Any] = {}
    known: dict[str, Any] = {}
    for row, entry in enumerate(listed):
        if type(entry) is str:
            if entry not in known:
                known[entry] = person_of(entry)
            person = known[entry]
        else:
            person = person_of(entry)
        if type(person) is int:
            whole[row] = person
        elif person is not None:
            others[row] = person
    return whole, others
