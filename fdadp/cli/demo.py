"""``python -m fdadp demo | audit | plan``: what needs no data of the user."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from fdadp._common.terminal import console, no_window, plain_messages
from fdadp.cli import options as option
from fdadp.cli.options import BOUNDS
from fdadp.cli.private_files import bounds_of, points_of
from fdadp.errors import InputError


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


# What a private fit will explain, before any data are touched.


def plan(
    formula: Annotated[str | None, typer.Argument(metavar="[FORMULA]", help="As 'Y ~ ff(X) + s(age)'.")] = None,
    n: Annotated[int | None, typer.Option(help="Persons; left out, the smallest n that reaches --accuracy.")] = None,
    epsilon: Annotated[float, typer.Option(help="Budget.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Of (ε, δ), as 1e-6; 0: pure ε.")] = 0.0,
    accuracy: Annotated[float | None, typer.Option(help="Wanted share of the explainable variance, as 0.9.")] = None,
    adjacency: Annotated[
        str, typer.Option(help="zero-out (n public), add-remove (n private) or replace.")
    ] = "zero-out",
    bounds: Annotated[list[str] | None, typer.Option(metavar="NAME=PUBLIC", help=f"Of a formula. {BOUNDS}")] = None,
    points: Annotated[list[str] | None, typer.Option(metavar="NAME=POINTS", help="Of a formula: grids.")] = None,
    family: Annotated[str, typer.Option(help="Of a formula: gaussian, binomial or poisson.")] = "gaussian",
    rate: Annotated[float | None, typer.Option(help="Expected share of ones, or mean count, of such families.")] = None,
    offset: Annotated[str | None, typer.Option(help="Of a formula: what the response is fitted less of.")] = None,
    errors: Annotated[str, typer.Option(help="Of a formula: normal or skewed.")] = "normal",
    mostly_zero: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Of a formula: a number that is zero for most persons.")
    ] = None,
    explained: Annotated[
        float | None, typer.Option(help="Of a formula: share of the variance of the response that terms explain.")
    ] = None,
    person_rows: option.PersonRows = None,
    max_rows: option.MaxRows = None,
    out: Annotated[Path | None, typer.Option(help="Folder for forecast.txt and forecast.png.")] = None,
) -> None:
    """Predict what a private fit will explain, before any data are touched: by n, by ε, and what it takes.

    Of the additive model of one curve, or of a formula, whose columns are described by --bounds.
    """
    no_window()
    with plain_messages():
        from fdadp import planner
        from fdadp.plot._canvas import MissingPlotsError, save_figure

        forecast: Any
        if formula is None:
            laws = errors != "normal" or mostly_zero or person_rows is not None or max_rows is not None
            if bounds or points or offset or rate is not None or explained is not None or family != "gaussian" or laws:
                raise InputError(
                    "--bounds and --points are there for formulas, as 'Y ~ ff(X) + s(age)', as are --family, --rate, "
                    "--offset, --errors, --mostly-zero, --explained, --person-rows and --max-rows"
                )
            forecast = planner.plan(None, n, epsilon, delta, accuracy=accuracy, adjacency=adjacency)
        else:
            if n is None or accuracy is not None:
                raise InputError("--n must be given with a formula, and --accuracy left out")
            own: dict[str, Any] = {"bounds": bounds_of(bounds), "grids": points_of(points)}
            own |= {"family": family, "rate": rate, "offset": offset, "errors": errors}
            own |= {"mostly_zero": mostly_zero or (), "explained": explained}
            own |= {"person_rows": person_rows, "max_rows": max_rows}
            forecast = planner.plan(formula, n, epsilon, delta, adjacency=adjacency, **own)
        typer.echo(str(forecast))
        if out is None:
            return
        out.mkdir(parents=True, exist_ok=True)
        (out / "forecast.txt").write_text(f"{forecast}\n", encoding="utf-8")
        typer.echo(f"\ntext: {out / 'forecast.txt'}")
        if formula is not None:
            return
        try:
            typer.echo(f"figure: {save_figure(forecast.plot(), out / 'forecast.png')}")
        except MissingPlotsError:
            typer.echo("no figure: pip install matplotlib", err=True)
