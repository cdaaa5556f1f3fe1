"""What goes wrong while private rows are read is told in one constant sentence."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from fdadp.errors import PrivacyError

__all__ = ["FAILED", "sealed"]

FAILED = "the source of chunks failed or changed the shape of its rows; the budget is spent"

P = ParamSpec("P")
T = TypeVar("T")


def sealed(function: Callable[P, T]) -> Callable[P, T]:
    """Let no error out of a function that reads private rows but the constant one.

    Neither the message nor the cause of what went wrong leaves, nor the frames it came through with the rows in them.
    The rest of the data is missing then, so what was summed may not be released.

    Raises
    ------
    PrivacyError
        Always the same one, :data:`FAILED`.
    KeyboardInterrupt
        From the user; without the frames, too.
    """

    @functools.wraps(function)
    def read(*args: P.args, **kwargs: P.kwargs) -> T:
        interrupted = False
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            interrupted = isinstance(error, KeyboardInterrupt)
        raise KeyboardInterrupt if interrupted else PrivacyError(FAILED)

    return read
