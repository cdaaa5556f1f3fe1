"""What an observer can see of an object, bit for bit: a nest of plain values that can be compared.

An observer looks into everything that a result holds on to: attributes, what functions close over, the objects that
methods are bound to, generators, what an error hangs on, and the frames that its traceback keeps alive.
"""

from __future__ import annotations

import functools
import hashlib
import re
import types
from collections.abc import Mapping
from typing import Any

import numpy as np


def fingerprint(value: Any, given: Any = ()) -> Any:
    """Arrays by dtype, shape and bytes, floats by their bits, objects by everything that they hold.

    Parameters
    ----------
    value : object
    given : object
        The observed procedure's own input, in its parts: frames may hold it, for the caller has it anyway.
    """
    return _Observer(_parts(given)).see(value, ())


def _parts(given: Any) -> dict[int, Any]:
    """Objects by their place in memory: of a nest of tuples, lists and dicts also what is in it."""
    found = {id(given): given}
    if isinstance(given, tuple | list | dict):
        for part in given.values() if isinstance(given, dict) else given[:1000]:
            found |= _parts(part)
    return found


def _holds_rows_by_purpose(value: Any) -> bool:
    """Whether it is an object of the kernel that cannot be copied, a private table, or the tape of the audit itself.

    A result that holds one is looked into; a frame of the kernel is not, for there they belong.
    """
    kind = value if isinstance(value, types.FunctionType) else type(value)
    module = str(kind.__module__)
    return module == "fdadp.privacy.replay" or (
        module.startswith("fdadp.privacy.") and ("__reduce_ex__" in vars(kind) or kind.__name__ == "Table")
    )


class _Observer:
    def __init__(self, given: Mapping[int, Any], in_frame: bool = False) -> None:
        self._given = given
        self._in_frame = in_frame

    def see(self, value: Any, above: tuple[int, ...]) -> Any:
        if value is None or isinstance(value, bool | int | str | bytes):
            return value
        if isinstance(value, float):
            return value.hex()
        if self._in_frame and (id(value) in self._given or _holds_rows_by_purpose(value)):
            return "where it belongs"
        if isinstance(value, np.ndarray | np.generic):
            return self._array(value, above)
        if id(value) in above:
            return "itself"
        above = (*above, id(value))
        if isinstance(value, Mapping):
            return {str(key): self.see(v, above) for key, v in value.items()}
        if isinstance(value, list | tuple):
            return [self.see(v, above) for v in value]
        if isinstance(value, set | frozenset):
            return sorted(str(self.see(v, above)) for v in value)
        if isinstance(value, BaseException):
            return self._error(value, above)
        if isinstance(value, type | types.ModuleType | types.BuiltinFunctionType | np.ufunc):
            return getattr(value, "__qualname__", value.__name__)
        if isinstance(value, types.MethodType | types.FunctionType | functools.partial):
            return self._function(value, above)
        if isinstance(value, types.GeneratorType):
            return ["generator", self.see(value.gi_frame.f_locals if value.gi_frame else None, above)]
        if hasattr(value, "to_numpy") and not hasattr(value, "data_matrix"):  # frames, series and indices; not curves
            labels = [getattr(value, name, None) for name in ("index", "columns", "dtypes", "dtype", "name", "names")]
            return [type(value).__name__, self._array(value.to_numpy(), above), [str(label) for label in labels]]
        return self._object(value, above)

    def _array(self, value: Any, above: tuple[int, ...]) -> Any:
        array = np.asarray(value)
        if array.dtype == object:
            return ["objects", array.shape, [self.see(v, above) for v in array.ravel()]]
        shown = str(array.ravel()[:3].tolist())
        seen = [str(array.dtype), array.shape, hashlib.sha256(array.tobytes()).hexdigest(), shown]
        return [*seen, type(value).__name__] if type(value) not in (np.ndarray, array.dtype.type) else seen

    def _function(self, value: Any, above: tuple[int, ...]) -> Any:
        if isinstance(value, functools.partial):
            return ["partial", *(self.see(v, above) for v in (value.func, value.args, value.keywords))]
        if isinstance(value, types.MethodType):
            return ["method", self.see(value.__func__, above), self.see(value.__self__, above)]
        held = [value.__defaults__, value.__kwdefaults__, value.__dict__]
        for cell in value.__closure__ or ():
            try:
                held.append(cell.cell_contents)
            except ValueError:
                held.append("empty")
        constants = [c for c in value.__code__.co_consts if not isinstance(c, types.CodeType)]
        name = f"{value.__module__}.{value.__qualname__}"
        return [name, self.see(constants, above), [self.see(v, above) for v in held]]

    def _error(self, error: BaseException, above: tuple[int, ...]) -> Any:
        """Type, text, what it hangs on, the way it came, and what the kernel's frames on this way hold."""
        inside = _Observer(self._given, in_frame=True)
        way, frames = [], []
        step = error.__traceback__
        while step is not None:
            module = step.tb_frame.f_globals.get("__name__", "")
            if module.split(".")[0] == "fdadp" and module != "fdadp.audit.replay":
                way.append(f"{module}.{step.tb_frame.f_code.co_name}")
                if module.startswith("fdadp.privacy"):
                    frames.append({name: inside.see(v, ()) for name, v in step.tb_frame.f_locals.items()})
            step = step.tb_next
        return {
            "type": type(error).__name__,
            "text": str(error),
            "args": self.see(error.args, above),
            "held": self.see(vars(error), above),
            "cause": self.see(error.__cause__, above),
            "context": self.see(error.__context__, above),
            "way": way,
            "frames": frames,
        }

    def _object(self, value: Any, above: tuple[int, ...]) -> Any:
        held = dict(getattr(value, "__dict__", {}))
        for cls in type(value).__mro__:
            names = getattr(cls, "__slots__", ())
            for name in (names,) if isinstance(names, str) else names:
                hidden = name.startswith("__") and not name.endswith("__")
                own = f"_{cls.__name__.lstrip('_')}{name}" if hidden else name
                if name not in ("__dict__", "__weakref__") and hasattr(value, own):
                    held[own] = getattr(value, own)
        if held:
            return {"type": type(value).__name__, **{name: self.see(v, above) for name, v in held.items()}}
        return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


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
