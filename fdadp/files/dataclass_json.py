"""Frozen dataclasses as plain JSON and one array of numbers: how terms of any kind, and fits of them, go into files.

A dataclass becomes ``{"class": "module.Name", "fields": {...}}``, an array of float64 ``{"shape": [...], "start": i}``,
its place in the array of all numbers, one of truth values ``{..., "bool": true}``; a mapping
``{"mapping": [[key, value], ...]}``, a pandas Index ``{"index": ...}`` (:func:`labels_to_json`); a tuple or list is
a list, and comes back as a tuple.
"""

from __future__ import annotations

import datetime
import functools
import importlib
import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from fdadp._common.loaded_later import pd
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.files.npz_files import plain


class Later:
    """Field of a dataclass, None by default. It may be given a function, called when the field is first read."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = f"_{name}"

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return None
        found = self.held(instance)
        if callable(found):
            found = found()
            self.__set__(instance, found)
        return found

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self._name] = value

    def held(self, instance: Any) -> Any:
        """What was given."""
        return instance.__dict__[self._name]


def pack(value: Any, name: str) -> tuple[Any, FloatArray]:
    """Return what JSON can hold of a value, and the numbers of its arrays.

    Parameters
    ----------
    value : dataclass, tuple, list, mapping, Index, array, number, text or None
    name : str
        For errors.

    Raises
    ------
    InputError
        Something else in it.
    """
    parts: list[FloatArray] = [np.empty(0)]
    tree = _packed(value, name, parts)
    return tree, np.concatenate(parts)


def _packed(value: Any, name: str, parts: list[FloatArray]) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        kind = type(value)
        held = {f.name: _packed(getattr(value, f.name), f"{name}.{f.name}", parts) for f in fields(value) if f.init}
        return {"class": f"{kind.__module__}.{kind.__qualname__}", "fields": held}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        start = sum(part.size for part in parts)
        parts.append(np.asarray(value, dtype=np.float64).ravel())
        place = {"shape": list(value.shape), "start": start}
        return place | {"bool": True} if value.dtype == bool else place
    if isinstance(value, tuple | list):
        return [_packed(item, name, parts) for item in value]
    if isinstance(value, Mapping):
        return {"mapping": [[plain(key, name), _packed(item, f"{name}.{key}", parts)] for key, item in value.items()]}
    if isinstance(value, pd.Index):
        return {"index": labels_to_json(value, name)}
    return plain(value, name)


def unpack(tree: Any, numbers: FloatArray, allowed: Callable[[type], bool]) -> Any:
    """Make what :func:`pack` was given.

    Classes are looked for in this package (:func:`class_at`), and in modules that are imported already: nothing else
    is imported.

    Parameters
    ----------
    tree : object
    numbers : ndarray of shape (v,)
    allowed : callable
        Says of a class whether it may be made.

    Raises
    ------
    ValueError
        A class that cannot be found or is not allowed.
    """
    if isinstance(tree, Mapping) and "class" in tree:
        kind = _class(str(tree["class"]), allowed)
        held = {
            name: functools.partial(labels_from_json, item["index"])
            if isinstance(vars(kind).get(name), Later) and _is_sure(item)
            else unpack(item, numbers, allowed)
            for name, item in tree["fields"].items()
        }
        return kind(**held)
    if isinstance(tree, Mapping) and "mapping" in tree:
        return {_key(key): unpack(item, numbers, allowed) for key, item in tree["mapping"]}
    if isinstance(tree, Mapping) and "index" in tree:
        return labels_from_json(tree["index"])
    if isinstance(tree, Mapping):
        shape, start = tuple(int(length) for length in tree["shape"]), int(tree["start"])
        found = numbers[start : start + math.prod(shape)].reshape(shape)
        return found != 0 if tree.get("bool") else found.copy()
    if isinstance(tree, list):
        return tuple(unpack(item, numbers, allowed) for item in tree)
    return tree


def _key(key: Any) -> Any:
    """A key of a mapping; JSON makes lists of tuples."""
    return tuple(key) if isinstance(key, list) else key


def _class(path: str, allowed: Callable[[type], bool]) -> type:
    kind = class_at(path)
    if kind is None or not (is_dataclass(kind) and allowed(kind)):
        raise ValueError(f"{path} must be a class that can be found: import its module first")
    return kind


def class_at(path: str) -> type | None:
    """Return the class that a file names as ``module.Name``, None where there is none.

    A class of this package is found by its name where it has moved since the file was written: no two classes share a
    name. A class of another package is found only where its module is imported already.
    """
    module, _, name = path.rpartition(".")
    kind = getattr(sys.modules.get(module), name, None)
    if kind is None and module.startswith("fdadp.") and name in _modules_of_classes():
        kind = getattr(importlib.import_module(_modules_of_classes()[name]), name, None)
    return kind if isinstance(kind, type) else None


@functools.cache
def _modules_of_classes() -> dict[str, str]:
    """Name of each class of this package: the module that defines it. Sources are read, nothing is imported."""
    package, line = Path(__file__).parents[1], re.compile(r"^class (\w+)", re.MULTILINE)
    return {
        name: ".".join((package.name, *source.relative_to(package).with_suffix("").parts))
        for source in package.rglob("*.py")
        for name in line.findall(source.read_text(encoding="utf-8"))
    }


# Column labels as JSON: numbers, texts and dates come back as the pandas index that they were.


def labels_to_json(labels: pd.Index[Any] | None, name: str) -> dict[str, Any] | None:
    """Make JSON of column labels.

    Parameters
    ----------
    labels : pandas.Index or None
    name : str
        Whose columns these are, for the error.

    Raises
    ------
    InputError
        Labels other than numbers, texts, dates, times and tuples (a MultiIndex) of these.

    Examples
    --------
    >>> stored = labels_to_json(pd.Index(["08:00", "09:00"], name="hour"), "Y")
    >>> labels_from_json(stored)
    Index(['08:00', '09:00'], dtype=..., name='hour')
    """
    if labels is None:
        return None
    if isinstance(labels, pd.MultiIndex):
        levels = [labels_to_json(labels.get_level_values(i), name) for i in range(labels.nlevels)]
        return {"kind": "levels", "values": levels}
    found: dict[str, Any] = {"name": _entry(labels.name, name)}
    if isinstance(labels, pd.DatetimeIndex | pd.TimedeltaIndex | pd.PeriodIndex):
        return found | {"kind": str(labels.dtype), "values": labels.asi8.tolist()}
    if isinstance(labels.dtype, np.dtype) and labels.dtype.kind in "iuf":
        return found | {"kind": str(labels.dtype), "values": labels.tolist()}
    return found | {"kind": "entries", "values": [_entry(label, name) for label in labels.tolist()]}


_ENTRIES: Mapping[str, type] = {"float64": float, "int64": int, "entries": str}


def _is_sure(tree: Any) -> bool:
    """Whether these are labels that can be made without doubt, so that pandas can be loaded later."""
    match tree:
        case {"index": {"kind": str() as kind, "name": str() | None, "values": list() as values}}:
            return kind in _ENTRIES and all(isinstance(value, _ENTRIES[kind]) for value in values)
    return False


def labels_from_json(stored: dict[str, Any] | None) -> pd.Index[Any] | None:
    """Read what :func:`labels_to_json` made."""
    if stored is None:
        return None
    kind, values = stored["kind"], stored["values"]
    if kind == "levels":
        levels: list[Any] = [labels_from_json(level) for level in values]
        return pd.MultiIndex.from_arrays(levels)
    name = _label(stored["name"])
    labels: Any
    dtype: Any = None if kind == "entries" else pd.api.types.pandas_dtype(kind)
    if dtype is None:
        labels = pd.Index([_label(value) for value in values], tupleize_cols=False)
    elif isinstance(dtype, pd.PeriodDtype):
        freq: Any = dtype.freq
        labels = pd.PeriodIndex([pd.Period(ordinal=value, freq=freq) for value in values], dtype=dtype)
    elif isinstance(dtype, pd.DatetimeTZDtype):
        utc = pd.DatetimeIndex(np.array(values, dtype=f"datetime64[{dtype.unit}]"))
        labels = utc.tz_localize("UTC").tz_convert(dtype.tz)
    else:
        labels = pd.Index(np.array(values, dtype=dtype))
    return cast("pd.Index[Any]", labels.rename(name))


def _entry(label: Any, name: str) -> Any:
    """One label: as it is where JSON has its type, else a pair of type and text."""
    label = label.item() if isinstance(label, np.generic) else label
    if label is None or isinstance(label, bool | int | float | str):
        return label
    if isinstance(label, datetime.datetime | datetime.date | datetime.time) and label is not pd.NaT:
        kind = next(k for k in (datetime.datetime, datetime.date, datetime.time) if isinstance(label, k))
        return [kind.__name__, label.isoformat()]
    if isinstance(label, tuple):
        return ["tuple", [_entry(part, name) for part in label]]
    raise InputError(
        f"columns of {name} must have numbers, texts or dates as labels, which a file can hold, "
        f"got {type(label).__name__}"
    )


def _label(entry: Any) -> Any:
    if not isinstance(entry, list):
        return entry
    kind, value = entry
    if kind == "tuple":
        return tuple(_label(part) for part in value)
    return getattr(datetime, {"datetime": "datetime", "date": "date", "time": "time"}[kind]).fromisoformat(value)
