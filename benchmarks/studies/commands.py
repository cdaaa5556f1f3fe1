"""What the experiments' command lines share: several values an option, what is absent, what was written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import typer

from fdadp._common.command_line_tools import Variadic, one_line
from fdadp.errors import InputError


def command(function: Callable[..., None]) -> typer.Typer:
    """A program of one command, whose options take several values: ``--epsilon 0.05 0.1``."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(cls=Variadic)(function)
    return app


def run_each(tasks: Sequence[Any], run: Callable[..., pd.DataFrame], **settings: Any) -> pd.DataFrame:
    """Run a study on each data set with the same settings; one table of all results."""
    return pd.concat([run(task, **settings) for task in tasks], ignore_index=True)


def say_absent(present: Sequence[Any], absent: Mapping[str, str], asked: Sequence[str]) -> None:
    """Say on stderr which data sets are left out, and why; refuse to go on with none."""
    for name, reason in absent.items():
        typer.echo(f"Skipped {name}: {one_line(reason)}", err=True)
    if not present:
        raise InputError(f"dataset must be one that is present, got {', '.join(asked)}")


def say_paths(paths: Mapping[str, Path]) -> None:
    """Say what was written where, and on stderr that a figure was not."""
    for what, path in paths.items():
        typer.echo(f"{what}: {path}")
    if not any("figure" in what for what in paths):
        typer.echo("no figure: pip install matplotlib", err=True)
