"""What the commands share: options with several values, messages of one line, the console, figures without a window."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from click.exceptions import BadParameter, MissingParameter, UsageError
from typer.core import TyperCommand, TyperGroup

from fdadp._common.calling_language import door
from fdadp.errors import FdadpError, FdadpWarning

if TYPE_CHECKING:
    from rich.console import Console


class Variadic(TyperCommand):
    """A command whose repeatable options take several values at once: ``--epsilon 0.05 0.1``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Turn ``--epsilon a b`` into ``--epsilon a --epsilon b`` before parsing."""
        many = {name for param in self.params if getattr(param, "multiple", False) for name in param.opts}
        spread: list[str] = []
        option, taken = "", 0
        for token in args:
            if token.startswith("--"):
                option, taken = (token if token in many else ""), 0
            elif option:
                spread += [option] if taken else []
                taken += 1
            spread.append(token)
        return list(super().parse_args(ctx, spread))


class Plain(TyperGroup):
    """Commands whose errors and warnings are single lines, and whose figures go to files."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read what stands before the command, with :func:`plain_messages`."""
        with plain_messages():
            return list(super().parse_args(ctx, args))

    def invoke(self, ctx: Any) -> Any:
        """Run a command, with :func:`plain_messages`."""
        no_window()
        with plain_messages():
            return super().invoke(ctx)


@contextmanager
def plain_messages() -> Iterator[None]:
    """Errors on purpose and warnings as lines on stderr; exit status 2 after an error."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        typer.echo(f"Warning: {one_line(message)}", err=True)

    with door("shell"), warnings.catch_warnings():
        warnings.showwarning = show
        warnings.simplefilter("always", FdadpWarning)
        try:
            yield
        except BrokenPipeError:  # whoever read the output has enough; typer ends the program without a word
            raise
        except (FdadpError, OSError) as exc:
            typer.echo(f"Error: {_with_marks(exc)}", err=True)
            raise typer.Exit(2) from None
        except UsageError as exc:
            if type(exc).__name__ == "NoArgsIsHelpError":  # from click 8.2 on: 'fdadp study' alone shows its help
                raise
            typer.echo(f"Error: {_usage(exc)}", err=True)
            raise typer.Exit(2) from None


KINDS = {"float": "a number", "integer": "a whole number"}
"""What options hold, by click's names of their types."""


def _usage(error: UsageError) -> str:
    """What is wrong with the words of a command, and where its help is."""
    param = error.param if isinstance(error, BadParameter) and not isinstance(error, MissingParameter) else None
    said = re.sub(r"( Did you mean [^?]*\?)\1", r"\1", one_line(error.format_message()))  # typer and click both ask
    if param is not None and param.type.name in KINDS:
        said = f"{param.opts[0]} must be {KINDS[param.type.name]}, got {error.message.split(' is not')[0]}."
    return said if error.ctx is None else f"{said} See {error.ctx.command_path} --help"


def one_line(message: object) -> str:
    """A message without line breaks."""
    return " ".join(str(message).split())


def _with_marks(error: Exception) -> str:
    """An error on one line; a formula, and the marks under it, on lines of their own."""
    if isinstance(error, OSError) and error.filename:
        return f"{error.strerror}: {error.filename}"
    what, *place = str(error).rsplit("\n", 2)
    marked = len(place) == 2 and not place[1].strip("^ ") and "^" in place[1]
    return "\n".join([one_line(what), *place]) if marked else one_line(error)


def console() -> Console:
    """Where tables go."""
    from rich.console import Console

    # Where output goes to a file there is no width to keep to.
    return Console(width=None if sys.stdout.isatty() else 120, soft_wrap=not sys.stdout.isatty())


def no_window() -> None:
    """Figures go to files: no display is needed."""
    os.environ.setdefault("MPLBACKEND", "Agg")
