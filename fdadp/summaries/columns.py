"""Columns of numbers and classes of a private table, as public facts say: (low, high) or a list of classes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from fdadp.errors import InputError
from fdadp.privacy.boundary import Table, column_names, columns, index_of, table


def codes_table(X: Any, facts: Mapping[str, Any]) -> Table:
    """The columns that facts are of, in their order: numbers as they are, classes as indices, NaN for what is neither.

    Parameters
    ----------
    X : data frame, whose columns are found by name, or array_like of as many columns
    facts : mapping of name to (low, high), a tuple, or to a list of classes

    Raises
    ------
    InputError
        X has not these columns, or has two of one name. No value was looked at.
    """
    at = None
    if there := column_names(X):
        missing = [name for name in facts if name not in there]
        if missing:
            raise InputError(f"X must have the columns {list(facts)!r}, but has no {missing!r}")
        twice = [name for name in facts if there.count(name) > 1]
        if twice:
            raise InputError(f"X must have each of the columns {list(facts)!r} once, but has more of {twice!r}")
        at = [there.index(name) for name in facts]
    else:
        shape = table(X, "X", len(facts)).shape
        if len(shape) != 2 or shape[1] != len(facts):
            width = f"{shape[1]} columns" if len(shape) == 2 else f"{len(shape)} dimension(s)"
            raise InputError(f"X must have two dimensions and {len(facts)} columns, got {width}")
    categories: list[Sequence[Hashable] | None] = [
        list(fact) if isinstance(fact, list) else None for fact in facts.values()
    ]
    return columns(X, categories, at)


def level_list(levels: Any, name: str) -> list[Any]:
    """Public classes, checked."""
    if isinstance(levels, (str, bytes)) or not hasattr(levels, "__iter__"):
        raise InputError(f"{name} must be a sequence of classes, got {levels!r}")
    listed = list(levels)
    if not listed:
        raise InputError(f"{name} must be at least one class, got none")
    index_of(listed)
    return listed
