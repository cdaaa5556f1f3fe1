"""What an observer can see of an object, bit for bit: a nest of plain values that can be compared."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["difference", "fingerprint"]


def fingerprint(value: Any, _above: tuple[int, ...] = ()) -> Any:
    """Arrays by dtype, shape and bytes, floats by their bits, objects by everything that they hold."""
    if value is None or isinstance(value, bool | int | str | bytes):
        return value
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype == object:
            return ["objects", array.shape, [fingerprint(v, _above) for v in array.ravel()]]
        return [str(array.dtype), array.shape, hashlib.sha256(array.tobytes()).hexdigest(), _glance(array)]
    if id(value) in _above:
        return "itself"
    above = (*_above, id(value))
    if isinstance(value, Mapping):
        return {str(key): fingerprint(v, above) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [fingerprint(v, above) for v in value]
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    held = dict(getattr(value, "__dict__", {}))
    for cls in type(value).__mro__:
        names = getattr(cls, "__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                held[name] = getattr(value, name)
    if held:
        return {"type": type(value).__name__, **{name: fingerprint(v, above) for name, v in held.items()}}
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def _glance(array: Any) -> str:
    return str(array.ravel()[:3].tolist())


def difference(one: Any, other: Any, where: str = "") -> str:
    """Name the first place at which two fingerprints differ; empty where they are the same."""
    if isinstance(one, dict) and isinstance(other, dict):
        if list(one) != list(other):
            return f"{where or 'output'}: other names, {sorted(set(one) ^ set(other)) or 'in another order'}"
        parts = [difference(one[key], other[key], f"{where}.{key}" if where else key) for key in one]
        return next((text for text in parts if text), "")
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        parts = [difference(a, b, f"{where}[{i}]") for i, (a, b) in enumerate(zip(one, other, strict=True))]
        return next((text for text in parts if text), "")
    return "" if type(one) is type(other) and one == other else f"{where}: {_short(one)} against {_short(other)}"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 160 else text[:157] + "..."
