"""Mutants: a module of the product with a few of its characters changed, for tests that must then go red."""

from __future__ import annotations

import inspect
import sys


def mutate(monkeypatch, module, old, new):
    """Run `module` as if its source had `new` instead of `old` (which stands there once), until the test ends.

    Classes and functions of the module get the code of the changed ones, so that everybody who imported them before
    runs the mutant too.
    """
    source = inspect.getsource(module)
    assert source.count(old) == 1, f"{old!r} stands {source.count(old)} times in {module.__name__}"
    changed = {"__name__": module.__name__, "__file__": module.__file__, "__package__": module.__package__}
    exec(compile(source.replace(old, new), module.__file__, "exec"), changed)
    for name, right in vars(module).items():
        wrong = changed.get(name)
        if getattr(right, "__module__", None) != module.__name__ or wrong is None:
            continue
        if inspect.isfunction(right):
            monkeypatch.setattr(right, "__code__", wrong.__code__)
        elif inspect.isclass(right):
            for key, method in vars(right).items():
                if inspect.isfunction(method) and method.__qualname__.startswith(right.__qualname__):
                    monkeypatch.setattr(method, "__code__", vars(wrong)[key].__code__)
    assert sys.modules[module.__name__] is module
