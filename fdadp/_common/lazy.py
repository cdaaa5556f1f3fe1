"""Names of a package that are loaded on first use, so that importing it is light."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any


def lazy_exports(
    package: str, exports: Mapping[str, str], rooms: Collection[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package (PEP 562), from its names and the modules that define them.

    Parameters
    ----------
    package : str
    exports : mapping
        Name: module that defines it.
    rooms : collection of str
        Modules below the package that are reached as its attributes, too.

    Returns
    -------
    callable, callable
        The second lists these names and what ``__all__`` has besides, and hides what the package itself imports.
    """

    def getattribute(name: str) -> Any:
        if name in rooms:
            return importlib.import_module(f"{package}.{name}")
        if name not in exports:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(exports[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        own = vars(sys.modules[package])
        dunders = {name for name in own if name.startswith("__")}
        return sorted(dunders | set(own.get("__all__", ())) | set(exports) | set(rooms))

    return getattribute, names
