"""Labels as numbers, one by one, while the kernel reads them: no other module looks at private labels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from fdadp._typing import FloatArray
from fdadp.errors import PrivacyError

__all__ = ["Codes"]


class Codes:
    """A column of labels that gives, row by row, the index of a label in a public list; NaN for any other.

    Has what the kernel asks of a table that is not in memory: ``shape``, ``dtype`` and slices.

    Parameters
    ----------
    labels : array_like of shape (n,)
        Private; looked at only when a slice is taken, each by itself.
    categories : sequence
        Public and distinct. Numbers match numbers of equal value (``1 == 1.0 == True``), text matches text.

    Raises
    ------
    PrivacyError
        The categories are not distinct, or the labels not one-dimensional.

    Examples
    --------
    >>> Codes(["b", "a", "c"], ["a", "b"])[:]
    array([ 1.,  0., nan])
    """

    __slots__ = ("_index", "_labels", "dtype", "shape")

    def __init__(self, labels: Any, categories: Sequence[Hashable]) -> None:
        listed = np.asarray(categories, dtype=object).ravel().tolist()
        self._index = {category: code for code, category in enumerate(listed)}
        if len(self._index) != len(listed) or any(c != c for c in listed):
            raise PrivacyError(f"classes or categories must be distinct values, got {listed!r}")
        if hasattr(labels, "to_numpy"):
            labels = labels.to_numpy()
        if not hasattr(labels, "shape"):
            labels = np.array([*labels, None], dtype=object)[:-1]  # never a common type for all of them
        if len(labels.shape) == 2 and labels.shape[1] == 1:
            labels = labels.reshape(-1)
        if len(labels.shape) != 1:
            raise PrivacyError(f"labels must be one-dimensional, one a row, got shape {tuple(labels.shape)}")
        self._labels = labels
        self.shape = (int(labels.shape[0]),)
        self.dtype = np.dtype(np.float64)

    def __getitem__(self, rows: Any) -> FloatArray:
        out = []
        for label in np.asarray(self._labels[rows]).tolist():
            try:
                out.append(float(self._index.get(label, np.nan)))
            except Exception:  # unhashable, or it raises on purpose: none of the categories
                out.append(np.nan)
        return np.array(out, dtype=np.float64)

    def __repr__(self) -> str:
        return "<private labels>"
