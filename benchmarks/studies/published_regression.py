"""The published experiment of one curve on another, on three data sets: ``fdadp.demo.published_experiment``.

    python benchmarks/studies/published_regression.py --dataset all --epsilon 0.05 0.1 0.15 0.2 --repeats 50 --jobs 2

Held-out error and coverage of the published scheme against ε, beside the fit without privacy and the mean curve.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.append(str(Path(__file__).resolve().parents[1]))

import pandas as pd
import typer

from fdadp._common.command_line_tools import console, no_window, plain_messages
from fdadp.demo import published_experiment as study
from fdadp.demo.published_experiment import ABOUT_INTERVALS, NOT_PRIVATE, rich_table, write_experiment
from fdadp.published.laplace_on_regression import SENSITIVITIES
from studies.commands import command, say_absent, say_paths


def main(
    dataset: Annotated[list[str], typer.Option(help="canadian-weather, lip-emg, dti2 or all.")] = ["all"],  # noqa: B006
    epsilon: Annotated[list[float], typer.Option(help="One or several, --epsilon 0.05 0.1.")] = [  # noqa: B006
        0.05,
        0.1,
        0.15,
        0.2,
    ],
    sensitivity: Annotated[list[str], typer.Option(help="local, coefficient, scaled or all.")] = ["all"],  # noqa: B006
    repeats: Annotated[int, typer.Option(help="Random splits, 80 % training curves.")] = 50,
    draws: Annotated[int, typer.Option(help="Draws of the noise per split.")] = 10,
    out: Annotated[Path, typer.Option(help="Folder for tables and figure.")] = Path("fdadp-experiment"),
    seed: Annotated[int, typer.Option(help="Seed of splits and noise.")] = 0,
    jobs: Annotated[int, typer.Option(help="Processes.")] = 1,
    download: Annotated[bool, typer.Option(help="Download data sets that are not here.")] = False,
) -> None:
    """Run the published experiment: held-out error and coverage of the published scheme against epsilon.

    Beside it: the fit without privacy, and the mean curve. Intervals are scored twice: the published ones, which do not
    know of the noise, and honest ones, which widen with it. Data sets that are not here are skipped and named.
    """
    no_window()
    with plain_messages():
        screen = console()
        names = list(study.DATASETS) if "all" in dataset else dataset
        readings = list(SENSITIVITIES) if "all" in sensitivity else sensitivity
        data, absent = study.load(names, download=download)
        say_absent(data, absent, names)
        results = []
        for one in data:
            results.append(
                study.run(
                    one,
                    epsilons=epsilon,
                    sensitivities=readings,
                    repeats=repeats,
                    draws=draws,
                    seed=seed,
                    jobs=jobs,
                    progress=sys.stderr.isatty(),
                )
            )
            screen.print(rich_table(study.summarise(results[-1]), one.unit))
        screen.print(ABOUT_INTERVALS, style="dim")
        screen.print(NOT_PRIVATE, style="bold")
        settings = {
            "datasets": [one.name for one in data],
            "skipped": list(absent),
            "epsilon": epsilon,
            "sensitivity": readings,
            "repeats": repeats,
            "draws": draws,
            "seed": seed,
        }
        say_paths(write_experiment(out, pd.concat(results, ignore_index=True), data, settings))


app = command(main)

if __name__ == "__main__":
    app()
