"""Packages that take long to load, loaded when something of them is first used; kernels that numba compiles."""

from __future__ import annotations

import importlib
import sys
import threading
import zlib
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

__all__ = ["CompiledKernel", "kernel", "pd"]


class _Class(type):
    """Stands for a class of a package that nobody has loaded: no object is of that class yet."""

    def __instancecheck__(cls, instance: Any) -> bool:
        real = cls._real(load=False)
        return real is not None and isinstance(instance, real)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls._real()(*args, **kwargs)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls._real(), name)

    def _real(cls, load: bool = True) -> Any:
        package = importlib.import_module(cls.__module__) if load else sys.modules.get(cls.__module__)
        return None if package is None else getattr(package, cls.__name__)


class _Package:
    """A package whose attributes load it, but for classes: to ask whether an object is of a class loads nothing."""

    def __init__(self, name: str, classes: tuple[str, ...]) -> None:
        self._name = name
        self._classes = {c: _Class(c, (), {"__module__": name}) for c in classes}

    def __getattr__(self, name: str) -> Any:
        if name in self._classes and self._name not in sys.modules:
            return self._classes[name]
        return getattr(importlib.import_module(self._name), name)


if TYPE_CHECKING:
    import pandas as pd
else:
    pd = _Package(
        "pandas",
        ("DataFrame", "Series", "Index", "RangeIndex", "MultiIndex", "CategoricalDtype", "Period", "DatetimeIndex"),
    )


_LOCK = threading.RLock()

_SCALARS = {float: "f8", np.float64: "f8", int: "i8", np.int64: "i8", bool: "b1", np.bool_: "b1"}
_ARRAYS = {
    (np.dtype(kind), d): f"{kind}[{':,' * (d - 1)}::1]" for kind in ("f8", "i8", "i4", "u8", "b1") for d in (1, 2, 3, 4)
}


class CompiledKernel:
    """Function of numbers and arrays that numba compiles; it holds no lock of Python's.

    ``setup.py`` compiles it for the types that it names, into ``fdadp._kernels``, for which numba is not loaded. For
    others, and where that file is not there, numba compiles it when it is first called, or takes it from its cache.
    Other kernels that it calls are compiled with it: its module then names them as numba knows them.
    """

    def __init__(self, function: Callable[..., Any], types: str, options: dict[str, Any]) -> None:
        self.py_func, self.types, self.options = function, types.replace(" ", ""), options

    def __call__(self, *args: Any) -> Any:
        if self.ahead is not None and ",".join(map(_type_of, args)) == self.types:
            return self.ahead(*args)
        compiled = self.__dict__.get("compiled")
        if compiled is None:
            with _LOCK:
                compiled = self.compiled
        return compiled(*args)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str, str]]:
        return _named, (self.py_func.__module__, self.py_func.__name__)

    @cached_property
    def ahead(self) -> Any:
        """What was compiled of this very code when fdadp was installed, or None."""
        try:
            compiled = importlib.import_module("fdadp._kernels")
        except ImportError:
            return None
        return getattr(compiled, self.symbol, None)

    @property
    def symbol(self) -> str:
        """Its name among kernels compiled ahead of time: with a checksum, so that other code has another name."""
        return f"{self.py_func.__name__}_{zlib.crc32(repr(_content(self.py_func)).encode()):08x}"

    @cached_property
    def compiled(self) -> Any:
        """What numba compiles now."""
        import numba

        known = self.py_func.__globals__
        for name in self.py_func.__code__.co_names:
            if isinstance(known.get(name), CompiledKernel):
                known[name] = known[name].compiled
        return numba.njit(**{"cache": True, "nogil": True} | self.options)(self.py_func)


def kernel(types: str = "", **options: Any) -> Callable[[Callable[..., Any]], CompiledKernel]:
    """Make a function a kernel, compiled ahead of time for types as numba writes them: ``"f8[:, ::1], i8"``."""
    return lambda function: CompiledKernel(function, types, options)


def _named(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


def _type_of(x: Any) -> str:
    if type(x) is np.ndarray:
        return _ARRAYS.get((x.dtype, x.ndim), "?") if x.flags.carray else "?"
    return f"({','.join(map(_type_of, x))})" if type(x) is tuple else _SCALARS.get(type(x), "?")


def _content(function: Callable[..., Any]) -> tuple[Any, ...]:
    """What a kernel's result depends on: its code, the numbers that it names, and the kernels that it calls."""
    code, known = function.__code__, function.__globals__
    named = [known[name] for name in code.co_names if name in known]
    inner = [_content(value.py_func) for value in named if hasattr(value, "py_func")]
    return code.co_code, code.co_consts, code.co_names, [v for v in named if isinstance(v, int | float)], inner
