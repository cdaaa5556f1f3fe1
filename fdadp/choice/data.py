"""Data that candidates are fitted to: as they were given, whole or the rows of some places; nothing is read here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from fdadp._common.typing import ArrayLike, IntArray
from fdadp.errors import InputError
from fdadp.privacy.boundary import table
from fdadp.regression import AdditiveFunctionOnFunction


@dataclass(frozen=True)
class Data:
    """What ``fit`` of every candidate takes.

    Attributes
    ----------
    X : object
        A table by columns, a table of numbers, or curves.
    Y : object
        What is predicted, or None where it is a column of X.
    grids : mapping of str to array_like
        Points of curves that are plain arrays.
    """

    X: Any
    Y: Any
    grids: Mapping[str, ArrayLike]

    def __len__(self) -> int:
        return _length(next(iter(self.X.values()), ()) if isinstance(self.X, Mapping) else self.X)

    def at(self, places: IntArray) -> Data:
        """Rows at public places.

        Raises
        ------
        InputError
            Columns, or X and Y, of different lengths; the text tells none.
        """
        columns = list(self.X.values()) if isinstance(self.X, Mapping) else [self.X]
        if any(_length(column) != len(self) for column in [*columns, self.Y] if column is not None):
            raise InputError("X and Y, or the columns of X, must have the same number of rows")
        return replace(self, X=_at(self.X, places), Y=_at(self.Y, places))

    def fit(self, model: Any, groups: Any) -> Any:
        """Fit a candidate to them, rows by their position, as they are split and judged; and return it."""
        if takes_columns(model):
            return model.fit(self.X, self.Y, grids=self.grids or None, groups=groups, by="position")
        if isinstance(model, AdditiveFunctionOnFunction):
            return model.fit(self.X, self.Y, s=self.grids.get("X"), t=self.grids.get("Y"), groups=groups, by="position")
        if self.grids:
            raise InputError(f"grids must be left out for {type(model).__name__}, which takes no curves")
        return model.fit(self.X, self.Y, groups=groups)


def takes_columns(model: Any) -> bool:
    """Whether a model is fitted to a table by the names of its columns."""
    return hasattr(model, "formula") and hasattr(model, "response")


def names_labels(model: Any) -> bool:
    """Whether a model predicts labels; those of columns predict probabilities, which are numbers."""
    return bool(is_classifier(model)) and not takes_columns(model)


def described(model: Any) -> str:
    """A candidate in one line, without the guarantee and what is public of columns, which ledgers say elsewhere."""
    twin = clone(model)
    if hasattr(twin, "set_params"):
        held = twin.get_params(deep=False)
        twin.set_params(**{name: None for name in ("privacy", "bounds") if "privacy" in held and name in held})
    return " ".join(str(twin).split())


def _length(column: Any) -> int:
    """Number of rows, by the shape where there is one."""
    shape = getattr(column, "shape", None)
    return int(shape[0]) if isinstance(shape, tuple) and shape else len(column)


def _at(values: Any, places: IntArray) -> Any:
    if values is None:
        return None
    if isinstance(values, Mapping):
        return {name: _at(column, places) for name, column in values.items()}
    if hasattr(values, "iloc"):
        return values.iloc[places]
    if isinstance(values, Sequence):
        return [values[i] for i in places]
    if not hasattr(values, "__getitem__"):
        values = table(values).source
    return values[np.asarray(places)]
