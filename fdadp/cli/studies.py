"""``python -m fdadp demo | experiment | audit | learners``: the demonstration and the experiments."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from fdadp._common.terminal import console, no_window, plain_messages, say_absent, say_paths
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
        from fdadp.studies.demo import run

        run(out, console(), repeats=repeats, people=people, progress=sys.stderr.isatty())


def experiment(
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
        import pandas as pd

        from fdadp.published.scheme import SENSITIVITIES
        from fdadp.studies import regression as study
        from fdadp.studies.report import ABOUT_INTERVALS, NOT_PRIVATE, rich_table, write_experiment

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
        from fdadp.plot._canvas import MissingPlotsError
        from fdadp.studies.report import save_figure

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


def learners(
    dataset: Annotated[list[str], typer.Option(help="adult, bank, diabetes, digits or all.")] = ["adult"],  # noqa: B006
    epsilon: Annotated[
        list[float] | None, typer.Option(help="One or several. (default: 0.01 0.1 0.5 1 5; published: 0.1 0.5 1 2 5)")
    ] = None,
    experiment: Annotated[
        str,
        typer.Option(
            help="private: all private learners; published: the DPAda family as printed, beside private boosting."
        ),
    ] = "private",
    learner: Annotated[list[str] | None, typer.Option(help="Only these, as DPBoostedStumps. (default: all)")] = None,
    rounds: Annotated[list[int], typer.Option(help="m of the published experiment.")] = [  # noqa: B006
        30,
        50,
        70,
        90,
        100,
    ],
    repeats: Annotated[int, typer.Option(help="Draws of the noise; random splits where there is none.")] = 5,
    out: Annotated[Path, typer.Option(help="Folder for tables and figure.")] = Path("fdadp-learners"),
    seed: Annotated[int, typer.Option(help="Seed of splits and noise.")] = 0,
    download: Annotated[bool, typer.Option(help="Download data sets that are not here.")] = False,
) -> None:
    """Accuracy against privacy: the private learners, or the published boosting schemes, on public data sets.

    Beside each: the same kind of learner without privacy, and what needs no learner. The noise is seeded, for
    simulation.
    """
    no_window()
    with plain_messages():
        from fdadp.studies import learners as study
        from fdadp.studies.learner_tasks import TASKS
        from fdadp.studies.report import NOT_PRIVATE_BOOSTING, print_learners, run_each, write_learners

        if experiment not in ("private", "published"):
            raise InputError(f"--experiment must be private or published, got {experiment!r}")
        is_private = experiment == "private"
        every = TASKS if is_private else ("adult", "bank")
        tasks, absent = study.load(list(every) if "all" in dataset else dataset, download=download)
        say_absent(tasks, absent, dataset)
        epsilons = epsilon or ([0.01, 0.1, 0.5, 1.0, 5.0] if is_private else [0.1, 0.5, 1.0, 2.0, 5.0])
        common: dict[str, Any] = {"epsilons": epsilons, "repeats": repeats, "seed": seed}
        common["progress"] = sys.stderr.isatty()
        if is_private:
            results = run_each(tasks, study.run, only=learner or None, **common)
        else:
            results = run_each(tasks, study.published, rounds=rounds, **common)
        table = study.summarise(results)
        screen = console()
        print_learners(screen, table)
        if not is_private:
            screen.print(NOT_PRIVATE_BOOSTING, style="bold")
        settings = {
            "experiment": experiment,
            "datasets": [task.name for task in tasks],
            "skipped": list(absent),
            "epsilon": epsilons,
            "repeats": repeats,
            "seed": seed,
            "delta": {task.name: task.delta for task in tasks},
            **({} if is_private else {"rounds": rounds}),
            "note": "seeded noise, for simulation" if is_private else NOT_PRIVATE_BOOSTING,
        }
        say_paths(write_learners(out, results, table, settings))
