"""Frozen dataclasses as plain JSON and one array of numbers: how terms of any kind, and fits of them, go into files.

A dataclass becomes ``{"class": "module.Name", "fields": {...}}``, an array of float64 ``{"shape": [...], "start": i}``,
its place in the array of all numbers, one of truth values ``{..., "bool": true}``; a mapping
``{"mapping": [[key, value], ...]}``, a pandas Index ``{"index": ...}`` (:mod:`fdadp.files.labels`); a tuple or list is
a list, and comes back as a tuple.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.files.container import plain


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
    if hasattr(value, "tolist") and hasattr(value, "nlevels"):  # a pandas Index; pandas is not imported for this
        from fdadp.files.labels import labels_to_json

        return {"index": labels_to_json(value, name)}
    return plain(value, name)


def unpack(tree: Any, numbers: FloatArray, allowed: Callable[[type], bool]) -> Any:
    """Make what :func:`pack` was given.

    Classes are looked for in this package, and in modules that are imported already: nothing else is imported.

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
        held = {name: unpack(item, numbers, allowed) for name, item in tree["fields"].items()}
        return _class(str(tree["class"]), allowed)(**held)
    if isinstance(tree, Mapping) and "mapping" in tree:
        return {key: unpack(item, numbers, allowed) for key, item in tree["mapping"]}
    if isinstance(tree, Mapping) and "index" in tree:
        from fdadp.files.labels import labels_from_json

        return labels_from_json(tree["index"])
    if isinstance(tree, Mapping):
        shape, start = tuple(int(length) for length in tree["shape"]), int(tree["start"])
        found = numbers[start : start + math.prod(shape)].reshape(shape)
        return found != 0 if tree.get("bool") else found.copy()
    if isinstance(tree, list):
        return tuple(unpack(item, numbers, allowed) for item in tree)
    return tree


def _class(path: str, allowed: Callable[[type], bool]) -> type:
    module, _, name = path.rpartition(".")
    if module.startswith("fdadp."):
        importlib.import_module(module)
    kind = getattr(sys.modules.get(module), name, None)
    if not (isinstance(kind, type) and is_dataclass(kind) and allowed(kind)):
        raise ValueError(f"{path} must be a class that can be found: import its module first")
    return kind
