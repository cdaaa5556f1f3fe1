"""The command line: ``fdadp fit | predict | contrasts | slopes | summary | ledger | plot | mean | fpca | ...``.

Mistakes in files and settings come out as one line on stderr with exit status 2, and nothing is half-written.
"""

from __future__ import annotations

from typing import Annotated

import typer

from fdadp._common.command_line_tools import Plain, Variadic
from fdadp._version import __version__
from fdadp.cli import saved_models as views
from fdadp.cli.demo_audit_plan import audit, demo, plan, plan_hazards, plan_levels, plan_mixed, plan_survival
from fdadp.cli.federated import app as federated
from fdadp.cli.fit import fit
from fdadp.cli.mfpca_and_survival import mfpca, survival
from fdadp.cli.private_summaries import fpca, mean, table1
from fdadp.cli.saved_models import contrasts, evaluate, predict, slopes
from fdadp.cli.shared_options import spread
from fdadp.cli.study_budget import study

app = typer.Typer(
    cls=Plain,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Functional data regression with differential privacy.",
    epilog="Exit status: 0, done. 1: 'study verify' or 'study show' found something wrong, or a fault of fdadp itself. "
    "2: a mistake in files or settings, said in one line on stderr. Then nothing is half-written, nor spent unless "
    "that line says so.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fdadp {__version__}")
        raise typer.Exit


@app.callback()
def fdadp(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and end.")
    ] = False,
) -> None:
    """Functional data regression with differential privacy."""


of_models = (fit, predict, evaluate, contrasts, slopes, views.summary, views.ledger, views.plot)
plans = (plan, plan_levels, plan_mixed, plan_survival, plan_hazards)
for command in (*of_models, mean, fpca, mfpca, table1, survival, *plans):
    app.command()(spread(command))
app.add_typer(study, name="study")
app.add_typer(federated, name="federated")
app.command()(demo)
app.command(cls=Variadic)(spread(audit))


def main() -> None:
    """Entry point of the console script."""
    app(prog_name="fdadp")
