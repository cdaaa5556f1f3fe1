"""``python -m fdadp federated ...``: many owners of data; one command a protocol."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from fdadp._terminal import Variadic, console, no_window, one_line, plain_messages
from fdadp.errors import InputError

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Many owners of data, and nobody trusted with all of it.")


@app.callback()
def federated() -> None:
    """Many owners of data, and nobody trusted with all of it."""


@app.command(cls=Variadic)
def logistic(
    dataset: Annotated[list[str], typer.Option(help="adult or bank.")] = ["adult"],  # noqa: B006
    owners: Annotated[int | None, typer.Option(help="Users with a record each. [default: all training rows]")] = None,
    epsilon: Annotated[list[float], typer.Option(help="epsilon_LDP of a user who answers once.")] = [  # noqa: B006
        0.5,
        1.0,
        2.0,
        4.0,
        6.0,
        12.0,
    ],
    mechanism: Annotated[
        list[str] | None, typer.Option(help="cldp, one_coordinate, l2_ball, privunit. [default: all]")
    ] = None,
    rounds: Annotated[int, typer.Option(help="Steps of the server.")] = 20,
    kappa: Annotated[
        list[float], typer.Option(help="Of cldp with all users in all rounds; the others at the same total.")
    ] = [0.05, 0.1, 0.5, 1.0],  # noqa: B006
    repeats: Annotated[int, typer.Option(help="Draws of the users' coins.")] = 10,
    out: Annotated[Path, typer.Option(help="Folder for tables and figure.")] = Path("fdadp-federated-logistic"),
    seed: Annotated[int, typer.Option(help="Seed of coins and splits.")] = 0,
    download: Annotated[bool, typer.Option(help="Download data sets that are not here.")] = False,
) -> None:
    """Logistic regression in the local model: accuracy, and error of a round's gradient, against epsilon_LDP.

    Every owner is one user with one record, who sends nothing but a randomised gradient. The coins are seeded, for
    simulation.
    """
    no_window()
    with plain_messages():
        import pandas as pd

        from fdadp._report import learners_table, write_learners
        from fdadp.federated import logistic_experiment as study
        from fdadp.federated.local.randomizers import MECHANISMS

        tasks, absent = study.load(dataset, download=download)
        for name, reason in absent.items():
            typer.echo(f"Skipped {name}: {one_line(reason)}", err=True)
        if not tasks:
            raise InputError(f"dataset must be one that is present, got {', '.join(dataset)}")
        names = mechanism or list(MECHANISMS)
        results = pd.concat(
            [
                study.run(
                    task,
                    epsilons=epsilon,
                    mechanisms=names,
                    owners=owners,
                    n_rounds=rounds,
                    kappas=kappa,
                    repeats=repeats,
                    seed=seed,
                    progress=sys.stderr.isatty(),
                )
                for task in tasks
            ],
            ignore_index=True,
        )
        table = study.summarise(results)
        screen = console()
        for _, part in table.groupby(["dataset", "metric"], sort=False):
            screen.print(learners_table(part))
        settings = {
            "datasets": [task.name for task in tasks],
            "skipped": list(absent),
            "owners": owners,
            "epsilon": epsilon,
            "mechanism": names,
            "rounds": rounds,
            "kappa": kappa,
            "repeats": repeats,
            "seed": seed,
            "note": "seeded coins, for simulation; epsilon is the total of one user, pure",
        }
        paths = write_learners(out, results, table, settings)
        for what, path in paths.items():
            typer.echo(f"{what}: {path}")
        if "figure" not in paths:
            typer.echo("no figure: pip install fdadp[plots]", err=True)
