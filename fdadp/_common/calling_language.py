"""Where a text is read: in Python, in R or in a shell. Advice names arguments as they are written there.

A warning names the line of the user's own code.
"""

from __future__ import annotations

import shlex
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_open: ContextVar[str] = ContextVar("door", default="python")
"""The door that this thread was entered by; commands and calls from R open their own."""


@contextmanager
def door(name: str) -> Iterator[None]:
    """Enter by `name`, ``"python"``, ``"r"`` or ``"shell"``: texts made meanwhile are for its readers."""
    token = _open.set(name)
    try:
        yield
    finally:
        _open.reset(token)


def advice(python: str, *, r: str, shell: str) -> str:
    """What to do, as the open door has it."""
    return {"python": python, "r": r, "shell": shell}[_open.get()]


def argument(name: str, value: str | Mapping[str, str]) -> str:
    """An argument with its value, as it is written at the open door.

    Examples
    --------
    >>> from fdadp._common.calling_language import argument, door
    >>> argument("missing", {"X": "linear"})
    "missing={'X': 'linear'}"
    >>> with door("shell"):
    ...     argument("missing", {"X": "linear", "age": "indicator"})
    '--missing X=linear --missing age=indicator'
    >>> with door("r"):
    ...     argument("missing", "linear"), argument("missing", {"X": "linear"})
    ('missing = "linear"', 'missing = list(X = "linear")')
    """
    option = f"--{name.replace('_', '-')}"
    if isinstance(value, str):
        return advice(f"{name}={value!r}", r=f'{name} = "{value}"', shell=f"{option} {value}")
    in_r = ", ".join(f'{_r_name(own)} = "{said}"' for own, said in value.items())
    in_shell = " ".join(f"{option} {own}={said}" for own, said in value.items())
    return advice(f"{name}={dict(value)!r}", r=f"{name} = list({in_r})", shell=in_shell)


_HELD = {"numbers": "low, high", "labels": '"a", "b"', "classes": "0, 1"}


def bounds_as(*names: str, holds: str = "numbers") -> str:
    """Bounds as they are written at the open door: of ``"numbers"``, ``"labels"`` or two ``"classes"``.

    Without names they are those of one sample of numbers.

    Examples
    --------
    >>> from fdadp._common.calling_language import bounds_as, door
    >>> bounds_as("X", "age"), bounds_as("sex", holds="labels")
    ('bounds={"X": (low, high), "age": (low, high)}', 'bounds={"sex": ["a", "b"]}')
    >>> with door("shell"):
    ...     bounds_as("X", "heart rate"), bounds_as("sex", holds="labels")
    ("--bounds X=LOW:HIGH --bounds 'heart rate=LOW:HIGH'", '--bounds sex=a,b')
    >>> with door("r"):
    ...     bounds_as("X"), bounds_as("sex", holds="labels")
    ('bounds = list(X = c(low, high))', 'bounds = list(sex = c("a", "b"))')
    """
    held, ranges = _HELD[holds], holds == "numbers"
    if not names:
        return advice(f"bounds=({held})", r=f"bounds = c({held})", shell="--bounds LOW:HIGH")
    word = "LOW:HIGH" if ranges else held.replace('"', "").replace(" ", "")
    in_python = ", ".join(f'"{name}": ' + (f"({held})" if ranges else f"[{held}]") for name in names)
    in_r = ", ".join(f"{_r_name(name)} = c({held})" for name in names)
    in_shell = " ".join(f"--bounds {shlex.quote(f'{name}={word}')}" for name in names)
    return advice(f"bounds={{{in_python}}}", r=f"bounds = list({in_r})", shell=in_shell)


def _r_name(name: str) -> str:
    return name if name.replace(".", "_").isidentifier() else f"`{name}`"


def warn(text: str, kind: type[Warning]) -> None:
    """Warn at the line that called the package, however deep inside the package the warning arises."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "fdadp":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, kind, stacklevel=level)
