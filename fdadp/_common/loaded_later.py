"""Packages that take long to load, loaded when something of them is first used."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

__all__ = ["inlined_kernel", "kernel", "numba_is_loaded", "pd"]


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


class kernel:
    """Function that numba compiles when it is first called, or takes from its cache; it holds no lock of Python's.

    Other kernels that it calls are compiled with it: its module then names them as numba knows them.
    """

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        self.py_func = function
        self._options = {"cache": True, "nogil": True} | options

    def __call__(self, *args: Any) -> Any:
        compiled = self.__dict__.get("compiled")
        if compiled is None:
            with _LOCK:
                compiled = self.compiled
        return compiled(*args)

    @cached_property
    def compiled(self) -> Any:
        import numba

        known = self.py_func.__globals__
        for name in self.py_func.__code__.co_names:
            if isinstance(known.get(name), kernel):
                known[name] = known[name].compiled
        return numba.njit(**self._options)(self.py_func)


def inlined_kernel(function: Callable[..., Any]) -> kernel:
    """Kernel that becomes part of those that call it."""
    return kernel(function, inline="always")


def numba_is_loaded() -> bool:
    """Whether numba is there at no cost: else a little work in NumPy, with the same bits, is done sooner."""
    return "numba" in sys.modules
