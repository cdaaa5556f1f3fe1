"""Labels as numbers, one by one, while the kernel reads them: no other module looks at private labels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from fdadp._typing import FloatArray
from fdadp.errors import PrivacyError
from fdadp.privacy._vault import as_float

__all__ = ["Codes", "Columns"]


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

    __slots__ = ("_index", "dtype", "in_memory", "shape", "source")

    def __init__(self, labels: Any, categories: Sequence[Hashable]) -> None:
        listed = np.asarray(categories, dtype=object).ravel().tolist()
        self._index = {category: code for code, category in enumerate(listed)}
        if len(self._index) != len(listed) or any(c != c for c in listed):
            raise PrivacyError(f"classes or categories must be distinct values, got {listed!r}")
        if hasattr(labels, "to_numpy"):
            labels = labels.to_numpy()
        if hasattr(labels, "__array__") and not hasattr(labels, "shape"):
            labels = np.asarray(labels)
        if not hasattr(labels, "shape"):
            labels = np.array([*labels, None], dtype=object)[:-1]  # never a common type for all of them
        if len(labels.shape) == 2 and labels.shape[1] == 1:
            labels = labels.reshape(-1)
        if len(labels.shape) != 1:
            raise PrivacyError(f"labels must be one-dimensional, one a row, got shape {tuple(labels.shape)}")
        self.source = labels
        """The column itself, by which a budget knows the data again."""
        self.in_memory = isinstance(labels, np.ndarray) and not isinstance(labels, np.memmap)
        """Whether the kernel may make numbers of it once and keep them."""
        self.shape = (int(labels.shape[0]),)
        self.dtype = np.dtype(np.float64)

    def __getitem__(self, rows: Any) -> FloatArray:
        return self.of(self.source[rows])

    def of(self, labels: Any) -> FloatArray:
        """Codes of some labels (m,)."""
        out = []
        for label in np.asarray(labels).tolist():
            try:
                out.append(float(self._index.get(label, np.nan)))
            except Exception:  # unhashable, or it raises on purpose: none of the categories
                out.append(np.nan)
        return np.array(out, dtype=np.float64)

    def __repr__(self) -> str:
        return "<private labels>"


class Columns:
    """A table with columns of numbers and of labels, as float64 in slices: labels as :class:`Codes` give them.

    Parameters
    ----------
    X : array_like of shape (n, p) or data frame
        Private; looked at only when a slice is taken, each entry by itself.
    categories : sequence of (sequence or None)
        For each column that is wanted the public labels, or None for a column of numbers: what is no number is NaN.
    at : sequence of int, optional
        Which columns of X are wanted; default: the first ones.

    Examples
    --------
    >>> Columns([["a", 2.5], ["c", "?"]], [["a", "b"], None])[:]
    array([[0. , 2.5],
           [nan, nan]])
    """

    __slots__ = ("_columns", "_table", "dtype", "in_memory", "shape", "source")

    def __init__(
        self, X: Any, categories: Sequence[Sequence[Hashable] | None], at: Sequence[int] | None = None
    ) -> None:
        places = list(range(len(categories))) if at is None else list(at)
        self._table: Any = None
        self.source = X
        if hasattr(X, "iloc"):  # a frame: each column has its own kind
            parts = [X.iloc[:, j].to_numpy() for j in places]
            n = len(X)
        else:
            X = X.to_numpy() if hasattr(X, "to_numpy") else X
            self._table = X if hasattr(X, "shape") and hasattr(X, "dtype") else np.array(X, dtype=object)
            parts = list(places)
            self.source = self._table
            n = int(self._table.shape[0])
        self._columns = [
            (part, None if labels is None else Codes(np.empty(0, dtype=object), labels))
            for part, labels in zip(parts, categories, strict=True)
        ]
        held = parts if self._table is None else [self._table]
        self.in_memory = all(isinstance(a, np.ndarray) and not isinstance(a, np.memmap) for a in held)
        """Whether the kernel may make numbers of it once and keep them."""
        self.shape = (n, len(places))
        self.dtype = np.dtype(np.float64)

    def __getitem__(self, rows: Any) -> FloatArray:
        block = None if self._table is None else np.asanyarray(self._table[rows])
        out = []
        for part, codes in self._columns:
            values = part[rows] if block is None else block[:, part]
            out.append(as_float(values) if codes is None else codes.of(values))
        return np.stack(out, axis=1)

    def __repr__(self) -> str:
        return "<private columns>"
