"""``python -m fdadp demo | audit | plan``: what needs no data of the user."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import fdadp
from fdadp._common.command_line_tools import console
from fdadp.cli import shared_options as option
from fdadp.cli.input_files import FileFormat, named_files, read_file
from fdadp.cli.private_files import bounds_of, points_of
from fdadp.cli.shared_options import BOUNDS, by_name, given, refuse_given
from fdadp.errors import InputError


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the figures, tables and the model.")] = Path("fdadp-demo"),
    repeats: Annotated[int, typer.Option(help="Random splits into training and test stations.")] = 20,
    people: Annotated[int, typer.Option(help="Simulated people of the private fit.")] = 3000,
) -> None:
    """Show what fdadp does, in less than two minutes.

    Simulated people with privacy first, then Canadian weather (bundled) without. Where FDADP_DATA has the stays in
    intensive care, the second day from the first. Figures, tables, models and a file to play on with are saved.
    """
    from fdadp.demo.canadian_weather import run

    run(out, console(), repeats=repeats, people=people, progress=sys.stderr.isatty())


@dataclass(frozen=True)
class Attempt:
    """How a claim is attacked."""

    epsilon: Annotated[float | None, typer.Option(help="Claimed in total. (default: 0.6, dp-aff: 1)")] = None
    delta: Annotated[float, typer.Option(help="Claimed; 0: pure ε.")] = 0.0
    draws: Annotated[
        int | None, typer.Option(help="Outputs a side for the lower bound. (default: 20000, dp-aff: 40)")
    ] = None
    tapes: Annotated[int, typer.Option(help="Replays of dp-aff with a person deleted, blanked out or replaced.")] = 60
    seed: Annotated[int, typer.Option(help="Seed of data and noise.")] = 0


def audit(
    mechanism: Annotated[list[str], typer.Option(help="published, dp-aff or all.")] = ["all"],  # noqa: B006
    n: Annotated[list[int] | None, typer.Option(help="Persons, one or several. (default: 35 100, dp-aff: 100)")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the figures.")] = Path("fdadp-audit"),
    *,
    attempt: Attempt,
) -> None:
    """Try to break a mechanism's privacy claim, on simulated people, and print the verdict with a figure.

    A verdict of the command, not its exit status, says whether a claim is false.
    """
    for name in fdadp.audit.MECHANISMS if "all" in mechanism else mechanism:
        result = fdadp.audit.audit(name, tuple(n) if n else None, **vars(attempt), progress=sys.stderr.isatty())
        typer.echo(str(result))
        _draw(result.plot, out / f"audit-{name}.png", "\n")


def _draw(draw: Callable[[], Any], path: Path, end: str = "") -> None:
    """Write a figure and say where it is, or that there is none."""
    from fdadp.plot._matplotlib_figures import saved

    path.parent.mkdir(parents=True, exist_ok=True)
    figure = saved(draw, path)
    said = "no figure: pip install matplotlib" if figure is None else f"figure: {figure}{end}"
    typer.echo(said, err=figure is None)


# What a private fit will explain, before any data are touched.


Epsilon = Annotated[float, typer.Option(help="Budget.")]
Delta = Annotated[float, typer.Option(help="Of (ε, δ), as 1e-6; 0: pure ε.")]
Adjacency = Annotated[str, typer.Option(help="zero-out (n public), add-remove (n private) or replace.")]
NUMBERS, IMPORTANCES = "mean and sd of a number.", "share of the explained variance, of all terms or none."
EFFECTS = "rough, smooth or level. (default: drawn, from rough to smooth)"
Studied = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=FILE", help="Public curves of at least 20 persons of an earlier study, as --curves X=x.csv."
    ),
]
"""Curves that are told of a column, before there are data."""


@dataclass(frozen=True)
class OfFormula:
    """What is said of a formula before there are data."""

    bounds: Annotated[list[str] | None, typer.Option(metavar="NAME=PUBLIC", help=f"Of a formula. {BOUNDS}")] = None
    points: Annotated[list[str] | None, typer.Option(metavar="NAME=POINTS", help="Of a formula: grids.")] = None
    family: Annotated[str, typer.Option(help="Of a formula: gaussian, binomial or poisson.")] = "gaussian"
    rate: Annotated[float | None, typer.Option(help="Expected share of ones, or mean count, of such families.")] = None
    offset: Annotated[str | None, typer.Option(help="Of a formula: what the response is fitted less of.")] = None
    errors: Annotated[str, typer.Option(help="Of a formula: normal or skewed.")] = "normal"
    mostly_zero: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Of a formula: a number that is zero for most persons.")
    ] = None
    explained: Annotated[
        float | None, typer.Option(help="Of a formula: share of the variance of the response that terms explain.")
    ] = None
    effects: Annotated[str | None, typer.Option(help=f"Of a formula: {EFFECTS}")] = None
    numbers: Annotated[list[str] | None, typer.Option(metavar="NAME=MEAN:SD", help=f"Of a formula: {NUMBERS}")] = None
    importances: Annotated[
        list[str] | None,
        typer.Option(metavar="TERM=SHARE", help=f"Of a formula: {IMPORTANCES}"),
    ] = None
    curves: Studied = None
    person_rows: option.PersonRows = None
    max_rows: option.MaxRows = None


def _of_terms(numbers: list[str] | None, importances: list[str] | None) -> dict[str, Any]:
    """What is said of numbers and terms, as functions of the planner take it."""
    return {
        "numbers": by_name(numbers, "--numbers", "NAME=MEAN:SD, as age=55:14", _mean_and_sd),
        "importances": by_name(importances, "--importances", "TERM=SHARE, as 'ff(X)=0.6'", float),
    }


def _curves(entries: list[str] | None) -> dict[str, Any]:
    """Public curves of files by column, as functions of the planner take them."""
    return {name: read_file(file, FileFormat()).to_numpy() for name, file in named_files(entries).items()}


def _mean_and_sd(text: str) -> tuple[float, float]:
    mean, sd = map(float, text.split(":"))
    return mean, sd


def plan(
    formula: Annotated[str | None, typer.Argument(metavar="[FORMULA]", help="As 'Y ~ ff(X) + s(age)'.")] = None,
    n: Annotated[int | None, typer.Option(help="Persons; left out, the smallest n that reaches --accuracy.")] = None,
    epsilon: Epsilon = 1.0,
    delta: Delta = 0.0,
    accuracy: Annotated[float | None, typer.Option(help="Wanted share of the explainable variance, as 0.9.")] = None,
    adjacency: Adjacency = "zero-out",
    *,
    said: OfFormula,
    out: Annotated[Path | None, typer.Option(help="Folder for forecast.txt and forecast.png.")] = None,
) -> None:
    """Predict what a private fit will explain, before any data are touched: by n, by ε, and what it takes.

    Of the additive model of one curve, or of a formula, whose columns are described by --bounds.
    """
    forecast: Any
    if formula is None:
        refuse_given(given(said), "is there for formulas, as 'Y ~ ff(X) + s(age)'")
        forecast = fdadp.plan(None, n, epsilon, delta, accuracy=accuracy, adjacency=adjacency)
    else:
        if n is None or accuracy is not None:
            raise InputError("--n must be given with a formula, and --accuracy left out")
        own = asdict(said) | {"bounds": bounds_of(said.bounds), "mostly_zero": said.mostly_zero or ()}
        own["grids"] = points_of(own.pop("points"))
        own |= _of_terms(said.numbers, said.importances) | {"curves": _curves(said.curves)}
        forecast = fdadp.plan(formula, n, epsilon, delta, adjacency=adjacency, **own)
    _show(forecast, out)
    if formula is None and out is not None:
        _draw(forecast.plot, out / "forecast.png")


def _show(forecast: Any, out: Path | None) -> None:
    """Print a forecast, and write it to a folder."""
    typer.echo(str(forecast))
    if out is None:
        return
    out.mkdir(parents=True, exist_ok=True)
    (out / "forecast.txt").write_text(f"{forecast}\n", encoding="utf-8")
    typer.echo(f"\ntext: {out / 'forecast.txt'}")


@dataclass(frozen=True)
class OfRelease:
    """Persons and budget of what is forecast, and where the text goes."""

    n: Annotated[int, typer.Option(help="Persons.")]
    epsilon: Epsilon = 1.0
    delta: Delta = 0.0
    adjacency: Adjacency = "zero-out"
    out: Annotated[Path | None, typer.Option(help="Folder for forecast.txt.")] = None

    @property
    def asked(self) -> dict[str, Any]:
        """As functions of the planner take them."""
        return {name: getattr(self, name) for name in ("n", "epsilon", "delta", "adjacency")}


@dataclass(frozen=True)
class OfCourse:
    """How many persons are expected to have the event, and how many are lost before the last time."""

    survival: Annotated[
        list[float] | None,
        typer.Option(help="Expected share without the event at the last time; repeated: at each. (default: 0.5)"),
    ] = None
    lost: Annotated[
        list[float] | None,
        typer.Option(help="Share who are censored before the last time; repeated: before each. (default: 0.2)"),
    ] = None

    @property
    def asked(self) -> dict[str, Any]:
        """As functions of the planner take them."""
        return {name: own for name, own in asdict(self).items() if own}


ROWS = "Curves that each person has; repeated: shares of persons with 1, 2, ... curves."


def _rows(given: list[float] | None) -> Any:
    """Rows of persons, as functions of the planner take them."""
    if not given:
        return None
    return given if len(given) > 1 else int(given[0]) if given[0].is_integer() else given[0]


def plan_levels(
    release: OfRelease,
    *,
    max_rows: Annotated[int, typer.Option(help="Curves of a person that count at most.")],
    rows: Annotated[list[float] | None, typer.Option(help=ROWS)] = None,
    components: Annotated[int, typer.Option(help="Components of each level.")] = 4,
    icc: Annotated[float, typer.Option(help="Share of the smooth variance that is between persons.")] = 0.5,
    white: Annotated[float, typer.Option(help="Share of the variance of single points that is noise.")] = 0.2,
) -> None:
    """Predict what private components of persons and of their curves will hold, before any data are touched."""
    how: dict[str, Any] = {"rows": _rows(rows), "n_components": components, "icc": icc, "white": white}
    _show(fdadp.planner.plan_levels(max_rows=max_rows, **release.asked, **how), release.out)


def plan_mixed(
    formula: Annotated[str, typer.Argument(help="As \"Y ~ age + re(id, covariance='free')\".")],
    release: OfRelease,
    *,
    max_rows: Annotated[int, typer.Option(help="Rows of a person that count at most.")],
    bounds: Annotated[list[str] | None, typer.Option(metavar="NAME=PUBLIC", help=BOUNDS)] = None,
    points: Annotated[list[str] | None, typer.Option(metavar="NAME=POINTS", help="Grid of the response.")] = None,
    within: Annotated[list[str] | None, typer.Option(help="A column that varies within persons.")] = None,
    rows: Annotated[list[float] | None, typer.Option(help=ROWS)] = None,
    icc: Annotated[float, typer.Option(help="Share of the smooth variance that is between persons.")] = 0.5,
    white: Annotated[float, typer.Option(help="Share of the variance of single points that is noise.")] = 0.2,
    explained: Annotated[
        float | None, typer.Option(help="Share of the variance of curves that effects explain.")
    ] = None,
    effects: Annotated[str | None, typer.Option(help=EFFECTS)] = None,
    numbers: Annotated[list[str] | None, typer.Option(metavar="NAME=MEAN:SD", help=NUMBERS)] = None,
    importances: Annotated[list[str] | None, typer.Option(metavar="TERM=SHARE", help=IMPORTANCES)] = None,
) -> None:
    """Predict what a private mixed model will explain, before any data are touched."""
    how: dict[str, Any] = {"bounds": bounds_of(bounds), "grids": points_of(points), "within": tuple(within or ())}
    how |= {"rows": _rows(rows), "icc": icc, "white": white, "explained": explained, "effects": effects}
    how |= _of_terms(numbers, importances)
    _show(fdadp.planner.plan_mixed(formula, max_rows=max_rows, **release.asked, **how), release.out)


def plan_survival(
    release: OfRelease,
    course: OfCourse,
    *,
    edge: Annotated[list[float], typer.Option(help="Where time begins, and each end of an interval; repeated.")],
    classes: Annotated[int, typer.Option(help="Classes that are told apart, equally large.")] = 1,
    level: Annotated[float, typer.Option(help="Of the limits.")] = 0.95,
) -> None:
    """Predict how wide the limits of a private survival curve will be, before any data are touched."""
    own = fdadp.planner.plan_survival(edges=edge, classes=classes, level=level, **release.asked, **course.asked)
    _show(own, release.out)


def plan_hazards(
    formula: Annotated[str, typer.Argument(help="As 'Surv(months, died) ~ lf(X) + age'.")],
    release: OfRelease,
    course: OfCourse,
    *,
    edge: Annotated[list[float], typer.Option(help="Where time begins, and each end of a period; repeated.")],
    bounds: Annotated[list[str] | None, typer.Option(metavar="NAME=PUBLIC", help=BOUNDS)] = None,
    points: Annotated[list[str] | None, typer.Option(metavar="NAME=POINTS", help="Grids of curves.")] = None,
    spread: Annotated[float, typer.Option(help="Sd over persons of the logarithm of hazards, or odds.")] = 0.8,
    effects: Annotated[str | None, typer.Option(help=EFFECTS)] = None,
    numbers: Annotated[list[str] | None, typer.Option(metavar="NAME=MEAN:SD", help=NUMBERS)] = None,
    importances: Annotated[list[str] | None, typer.Option(metavar="TERM=SHARE", help=IMPORTANCES)] = None,
    curves: Studied = None,
    family: Annotated[str, typer.Option(help="binomial or poisson.")] = "binomial",
    baseline: Annotated[str, typer.Option(help="auto, factor, smooth or linear.")] = "auto",
) -> None:
    """Predict what a private regression of times to an event will explain, before any data are touched."""
    how: dict[str, Any] = {"bounds": bounds_of(bounds), "grids": points_of(points), "spread": spread}
    how |= {"effects": effects, "family": family, "baseline": baseline, "curves": _curves(curves)}
    how |= _of_terms(numbers, importances)
    _show(fdadp.planner.plan_hazards(formula, times=edge, **release.asked, **course.asked, **how), release.out)
