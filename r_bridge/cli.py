"""The command line: ``python -m r_bridge status | requirements | record | check | crosscheck``.

Exit status: 0 all within tolerance, 1 a difference past its tolerance, 2 a mistake in the call or something missing.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from fdadp.errors import FdadpError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="fdadp beside R's refund and mgcv: record, replay, crosscheck.",
)

Json = Annotated[Path | None, typer.Option("--json", help="Also write everything to this file; - for stdout alone.")]
Factor = Annotated[float, typer.Option(help="Multiplies every tolerance.")]
Rows = Annotated[int, typer.Option(help="How many of the largest differences to show for each case.")]


def main() -> None:
    """Entry point; mistakes come out as one line on stderr."""
    try:
        app(prog_name="python -m r_bridge")
    except (FdadpError, OSError) as exc:
        typer.echo(f"Error: {' '.join(str(exc).split())}", err=True)
        sys.exit(2)


@app.command("status")
def status_command(
    start: Annotated[bool, typer.Option("--start", help="Also start R in this process, with mgcv.")] = False,
) -> None:
    """Say what of the bridge is there and which command mends it; exit status 1 where it cannot be used."""
    from r_bridge._status import status

    state = status()
    typer.echo(str(state))
    if start and state.usable:
        from r_bridge._rpy2 import require

        require("mgcv")
    raise typer.Exit(0 if state.usable else 1)


@app.command("requirements")
def requirements_command() -> None:
    """Print what pip must install for the R that is there (nothing where there is no R), for set-up scripts."""
    from r_bridge._status import rpy2_requirements, status

    r = status().r
    if r is not None:
        typer.echo("\n".join(rpy2_requirements(r)))


@app.command("record")
def record_command(
    cases: Annotated[list[str] | None, typer.Argument(metavar="CASE...", help="Left out: list the cases.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("reference"),
) -> None:
    """Run R and store what it gives, as CASE.rds. Needs R and the packages of the case, but no rpy2."""
    from r_bridge._record_cases import record, recordable

    if not cases:
        for name, packages in recordable().items():
            typer.echo(f"{name:<28} {' '.join(packages)}")
        return
    for path in record(cases, out):
        typer.echo(f"{path}  {path.stat().st_size / 1024:.0f} kB")


@app.command("check")
def check_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder with recorded cases.")],
    cases: Annotated[list[str] | None, typer.Argument(metavar="CASE...", help="Left out: all.")] = None,
    factor: Factor = 1.0,
    rows: Rows = 3,
    json_path: Json = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Models of several terms as one table.")] = False,
) -> None:
    """Refit recorded cases with fdadp and show the largest differences. No R is needed."""
    from r_bridge._check_recorded import check

    if not folder.is_dir():
        raise FileNotFoundError(f"DIR must be a folder with recorded cases, got {folder}")
    report = check(folder, cases or (), factor=factor, progress=sys.stderr.isatty())
    if markdown:
        from r_bridge.differences_table import markdown as table

        typer.echo(table(report))
        raise typer.Exit(0 if report.ok else 1)
    _finish(report, rows, json_path)


@app.command("numbers")
def numbers_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder with recorded cases.")],
) -> None:
    """Calls of refund and mgcv beside ours, with the numbers of both, as a table in Markdown. Needs R and rpy2."""
    from r_bridge.refund_page_table import live, markdown, recorded

    typer.echo(markdown([*recorded(folder), *live()]))


@app.command("crosscheck")
def crosscheck_command(
    x: Annotated[Path | None, typer.Argument(metavar="X", help="Predictor curves; left out: simulated ones.")] = None,
    y: Annotated[Path | None, typer.Argument(metavar="Y", help="Response curves, rows in the same order.")] = None,
    components: Annotated[float, typer.Option(help="Number of components of Y, or share to explain.")] = 0.95,
    basis_x: Annotated[int, typer.Option(help="B-splines over the values of X.")] = 7,
    basis_s: Annotated[int, typer.Option(help="B-splines over the grid of X.")] = 7,
    smoothing: Annotated[str, typer.Option(help="reml or gcv.")] = "reml",
    n: Annotated[int, typer.Option(help="Number of simulated curves, where no files are given.")] = 100,
    seed: Annotated[int, typer.Option(help="Of the simulation.")] = 0,
    terms: Annotated[bool, typer.Option("--terms", help="Models of several terms, on simulated rows.")] = False,
    factor: Factor = 1.0,
    rows: Rows = 5,
    json_path: Json = None,
) -> None:
    """Fit the same data with fdadp and, live, with mgcv; show the largest differences. Needs R, rpy2 and mgcv."""
    from fdadp import AdditiveFunctionOnFunction, simulate_affr
    from fdadp.errors import InputError
    from r_bridge._crosscheck_additive import crosscheck

    if terms:
        from r_bridge._crosscheck_terms import crosscheck_cohort

        _finish(crosscheck_cohort(n=n, seed=seed, factor=factor), rows, json_path)
    curves: tuple[Any, Any]
    if x is None:
        data = simulate_affr(scenario=1, n=n, seed=seed)
        curves = data.X, data.Y
    elif y is None:
        raise InputError("X and Y must both be given, got X alone")
    else:
        from fdadp.functional.files.curve_files import read_curves

        curves = read_curves(x), read_curves(y)
    model = AdditiveFunctionOnFunction(
        n_basis_x=basis_x,
        n_basis_s=basis_s,
        n_components=int(components) if components >= 1 else components,
        smoothing=smoothing,
    )
    report = crosscheck(model, *curves, factor=factor)
    if json_path != Path("-"):
        typer.echo(_components(report.components or []))
    _finish(report, rows, json_path)


def _components(rows: list[dict[str, Any]]) -> str:
    lines = [f"{'':>13}  {'edf':>18}  {'score':>24}  smoothing parameters", f"{'':>13}  {'fdadp':>8}  {'mgcv':>8}"]
    lines[1] += f"  {'fdadp':>11}  {'mgcv':>11}"
    for row in rows:
        sp = ["(" + ", ".join(f"{v:.3g}" for v in row[f"sp, {side}"]) + ")" for side in ("fdadp", "mgcv")]
        lines.append(
            f"component {row['component']:>3}  {row['edf, fdadp']:8.3f}  {row['edf, mgcv']:8.3f}"
            f"  {row['score, fdadp']:11.4f}  {row['score, mgcv']:11.4f}  {sp[0]} {sp[1]}"
        )
    return "\n".join(lines) + "\n"


def _finish(report: Any, rows: int, json_path: Path | None) -> None:
    if json_path == Path("-"):
        typer.echo(report.to_json())
    else:
        typer.echo(report.table(rows))
        if json_path is not None:
            json_path.write_text(report.to_json() + "\n", encoding="utf-8")
    raise typer.Exit(0 if report.ok else 1)
