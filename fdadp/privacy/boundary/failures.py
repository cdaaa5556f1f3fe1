"""What goes wrong while private rows are read is told in one constant sentence."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from fdadp.errors import FailedReadError

FAILED = "the source of chunks failed or changed the shape of its rows; the budget is spent"

P = ParamSpec("P")
T = TypeVar("T")


class FailingVault(Protocol):
    """Private rows, which remember that a read of them has failed."""

    def fail(self) -> None:
        """From here on nothing is given back."""


V = TypeVar("V", bound=FailingVault)


def sealed(function: Callable[Concatenate[V, P], T]) -> Callable[Concatenate[V, P], T]:
    """Let no error out of a function that reads the rows of a vault, its first argument, but the constant one.

    Neither the message nor the cause of what went wrong leaves, nor the frames it came through with the rows in them.
    The rest of the data is missing then, so what was summed may not be released. The vault remembers it, whatever went
    wrong: nothing of the budget is given back then (``docs/theory/accounting.md#given-back``).

    Raises
    ------
    FailedReadError
        Always the same one, :data:`FAILED`.
    KeyboardInterrupt
        From the user; without the frames, too.
    """

    @functools.wraps(function)
    def read(vault: V, /, *args: P.args, **kwargs: P.kwargs) -> T:
        interrupted = False
        try:
            return function(vault, *args, **kwargs)
        except BaseException as error:
            interrupted = isinstance(error, KeyboardInterrupt)
        vault.fail()
        raise KeyboardInterrupt if interrupted else FailedReadError(FAILED)

    return read
