"""Public settings, checked one by one: each names the argument, what it must be and what it was."""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Collection
from numbers import Real
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError


def whole(value: Any, name: str, *, least: int | None = 1, most: int | None = None) -> int:
    """Return a whole number, NumPy's too, as Python's; raises InputError for all else, 2.0 and True among it."""
    number = None
    if not isinstance(value, bool | np.bool_ | np.ndarray) and hasattr(value, "__index__"):
        number = operator.index(value)
    if number is None or (least is not None and number < least) or (most is not None and number > most):
        within = "" if least is None else f" of at least {least}" if most is None else f" from {least} to {most}"
        raise InputError(f"{name} must be a whole number{within}, got {value!r}")
    return number


def several(value: Any, count: int, name: str) -> tuple[Any, ...]:
    """Return a tuple of so many entries; raises InputError for all else."""
    if not isinstance(value, tuple | list) or len(value) != count:
        raise InputError(f"{name} must have {count} entries, got {value!r}")
    return tuple(value)


def one_of(value: Any, name: str, allowed: Collection[str]) -> str:
    """Return a text that is one of `allowed`; raises InputError for all else."""
    if not is_one_of(value, allowed):
        raise InputError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
    return str(value)


def is_one_of(value: Any, allowed: Collection[str | None]) -> bool:
    """Whether a value is such a text, or None where that is allowed; never raises, as ``in`` does for pd.NA."""
    return (value is None or isinstance(value, str)) and value in allowed


def is_number(value: Any) -> bool:
    """Whether a value is one real number, NumPy's too; True, arrays and text are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def fraction(value: Any, name: str) -> float:
    """Return a number strictly between 0 and 1; raises InputError for all else."""
    if not is_number(value) or not 0 < value < 1:
        raise InputError(f"{name} must lie between 0 and 1, got {value!r}")
    return float(value)


def flag(value: Any, name: str) -> bool:
    """Return True or False, NumPy's too; raises InputError for all else."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def like(value: Any, example: Any, name: str) -> Any:
    """Return a setting of the kind of `example`: a truth value, a whole number, text, or a tuple of such.

    Raises
    ------
    InputError
        Another kind. Other examples allow all, and numbers of entries are not looked at (:func:`several`).
    """
    if isinstance(example, bool):
        return flag(value, name)
    if isinstance(example, int):
        return whole(value, name, least=None)
    if isinstance(example, str) and not isinstance(value, str):
        raise InputError(f"{name} must be text such as {example!r}, got {value!r}")
    if not isinstance(example, tuple) or not isinstance(value, tuple | list) or len(value) != len(example):
        return value
    return tuple(like(entry, own, f"each entry of {name}") for entry, own in zip(value, example, strict=True))


def numbers(value: Any, name: str) -> FloatArray:
    """Return numbers as an array of float64; raises InputError for text and other objects."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as exc:
        raise InputError(f"{name} must be numbers, got {reprlib.repr(value)}") from exc


def generator(seed: Any, name: str = "seed") -> np.random.Generator:
    """Return the generator of a simulation; raises InputError for what is no seed."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as exc:
        raise InputError(f"{name} must be a whole number of at least 0, or None, got {seed!r}") from exc
