"""``python -m fdadp study new | show | verify | close``: budgets in files, made by the custodian of the data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fdadp._common.terminal import plain_messages
from fdadp.errors import InputError

__all__ = ["study"]

study = typer.Typer(help="A study: a budget in a file, on which every fit to its data draws.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(metavar="STUDY", help="The study's file.")]


@study.command()
def new(
    file: File,
    name: Annotated[str, typer.Option(help="Of the data, as their custodian calls them.")],
    epsilon: Annotated[float, typer.Option(help="All that may ever be spent.")],
    unit: Annotated[str, typer.Option(help="Whom it protects: person (fits need groups) or row.")],
    delta: Annotated[float | None, typer.Option(help="Below 1/n; none is pure epsilon.")] = None,
    n: Annotated[int | None, typer.Option("--n", help="Number of persons, where it is public.")] = None,
    adjacency: Annotated[str | None, typer.Option(help="zero-out, replace or add-remove.")] = None,
    bounds: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN=LOW:HIGH", help="Public range, or COLUMN=a,b,c: levels.")
    ] = None,
    source: Annotated[
        list[str] | None, typer.Option(metavar="[COLUMN=]TEXT", help="Where bounds are from, of one column or of all.")
    ] = None,
    custodian: Annotated[str | None, typer.Option(help="Who answers for the data.")] = None,
    data: Annotated[str | None, typer.Option(help="What the data are, in a sentence.")] = None,
    expires: Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help="Last day of fits.")] = None,
) -> None:
    """Make a study: once, before anything is fitted."""
    with plain_messages():
        from fdadp.privacy.study import Study

        ranges = dict(_bounds_of(text) for text in bounds or [])
        made = Study.new(
            file,
            name=name,
            epsilon=epsilon,
            delta=delta,
            unit=unit,
            n=n,
            adjacency=adjacency,
            bounds=ranges,
            sources=_sources(source or [], ranges),
            custodian=custodian,
            data=data,
            expires=expires,
        )
        typer.echo(str(made))


@study.command()
def show(file: File) -> None:
    """Say what is left, and what drew on it."""
    with plain_messages():
        from fdadp.privacy.study import Study

        typer.echo(str(Study(file)))


@study.command()
def verify(
    file: File,
    models: Annotated[list[Path] | None, typer.Argument(metavar="[MODEL]...", help="Files of models.")] = None,
) -> None:
    """Recompute the study's hashes and sums, and hold files of models against it; status 1 where anything is wrong."""
    with plain_messages():
        from fdadp.privacy.study import Study
        from fdadp.privacy.study.models import verify_model

        of = Study(file)
        wrong = False
        for what, found in [(str(file), of.verify()), *((str(m), verify_model(of, m)) for m in models or [])]:
            typer.echo(f"{what}: " + ("verified" if not found else "; ".join(found)))
            wrong |= bool(found)
        position, last = of.head
        typer.echo(f"last entry: {position}, {last}")
        if wrong:
            raise typer.Exit(1)


@study.command()
def close(file: File, reason: Annotated[str, typer.Option(help="Why, for the record.")]) -> None:
    """Let nobody fit any more, for good."""
    with plain_messages():
        from fdadp.privacy.study import Study

        of = Study(file)
        of.close(reason)
        typer.echo(of.headline)


def _bounds_of(text: str) -> tuple[str, Any]:
    """Column and its range or levels."""
    column, equals, what = text.rpartition("=")
    low, colon, high = what.partition(":")
    if not equals or not column or not what:
        raise InputError(f"--bounds must be COLUMN=LOW:HIGH or COLUMN=level,level, got {text!r}")
    if not colon:
        return column, what.split(",")
    try:
        return column, (float(low), float(high))
    except ValueError:
        raise InputError(f"--bounds must have numbers as LOW and HIGH, got {text!r}") from None


def _sources(texts: list[str], ranges: dict[str, Any]) -> dict[str, str]:
    """Source of each column's bounds."""
    everywhere = [text for text in texts if text.partition("=")[0] not in ranges]
    if len(everywhere) > 1:
        raise InputError(f"--source without a column must be given once, got {everywhere!r}")
    sources = dict.fromkeys(ranges, everywhere[0]) if everywhere else {}
    return sources | dict(text.split("=", 1) for text in texts if text not in everywhere)
