"""The command line: ``python -m fdadp demo | fit | predict | regress | experiment | learners | plan | ...``.

Mistakes in files and settings come out as one line on stderr with exit status 2, and nothing is half-written.
"""

from __future__ import annotations

import typer

from fdadp._common.terminal import Variadic
from fdadp.cli import formulas, regression, studies
from fdadp.cli.federated import app as federated
from fdadp.cli.study import study

__all__ = ["app", "main"]

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Functional data regression with differential privacy.",
)
app.add_typer(federated, name="federated")
app.add_typer(study, name="study")
app.command()(studies.demo)
app.command()(regression.fit)
app.command()(regression.predict)
app.command()(formulas.regress)
app.command()(formulas.regress_predict)
app.command(cls=Variadic)(studies.experiment)
app.command(cls=Variadic)(studies.audit)
app.command(cls=Variadic)(studies.learners)
app.command()(regression.plan)


def main() -> None:
    """Entry point of the console script."""
    app(prog_name="fdadp")
