"""``python -m fdadp demo | audit``: the demonstration, and attempts to break a claim."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from fdadp._common.terminal import console, no_window, plain_messages


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the figures, tables and the model.")] = Path("fdadp-demo"),
    repeats: Annotated[int, typer.Option(help="Random splits into training and test stations.")] = 20,
    people: Annotated[int, typer.Option(help="Simulated people of the private fit.")] = 3000,
) -> None:
    """Show what fdadp does, in less than two minutes.

    Canadian weather (bundled) without privacy; simulated people with it; the published scheme as a warning; where
    FDADP_DATA has the stays in intensive care, their second day from the first. Tables, figures and models are saved.
    """
    no_window()
    with plain_messages():
        from fdadp.demo.weather import run

        run(out, console(), repeats=repeats, people=people, progress=sys.stderr.isatty())


def audit(
    mechanism: Annotated[list[str], typer.Option(help="published, dp-aff or all.")] = ["all"],  # noqa: B006
    n: Annotated[list[int] | None, typer.Option(help="Persons, one or several. (default: 35 100, dp-aff: 100)")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Claimed in total. (default: 0.6, dp-aff: 1)")] = None,
    delta: Annotated[float, typer.Option(help="Claimed; 0: pure ε.")] = 0.0,
    draws: Annotated[
        int | None, typer.Option(help="Outputs a side for the lower bound. (default: 20000, dp-aff: 40)")
    ] = None,
    tapes: Annotated[int, typer.Option(help="Replays of dp-aff with a person deleted, blanked out or replaced.")] = 60,
    out: Annotated[Path, typer.Option(help="Folder for the figures.")] = Path("fdadp-audit"),
    seed: Annotated[int, typer.Option(help="Seed of data and noise.")] = 0,
) -> None:
    """Try to break a mechanism's privacy claim, on simulated people, and print the verdict with a figure.

    A verdict of the command, not its exit status, says whether a claim is false.
    """
    no_window()
    with plain_messages():
        from fdadp import audit as audits
        from fdadp.plot._canvas import MissingPlotsError, save_figure

        for name in audits.MECHANISMS if "all" in mechanism else mechanism:
            result = audits.audit(
                name,
                tuple(n) if n else None,
                epsilon=epsilon,
                delta=delta,
                draws=draws,
                tapes=tapes,
                seed=seed,
                progress=sys.stderr.isatty(),
            )
            typer.echo(str(result))
            try:
                figure = result.plot()
            except MissingPlotsError:
                typer.echo("no figure: pip install matplotlib", err=True)
                continue
            out.mkdir(parents=True, exist_ok=True)
            typer.echo(f"figure: {save_figure(figure, out / f'audit-{name}.png')}\n")
