"""Accuracy against privacy of the private learners, and of the published boosting schemes, on public data sets.

    python benchmarks/studies/learners.py --dataset adult --epsilon 0.01 0.1 0.5 1 5

Base lines go with every table: the same kind of learner without privacy, and what
needs no learner (the larger class, the mean, a random subspace, one cluster). The noise is seeded: these are
simulations.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np
import pandas as pd
import typer
from tqdm import tqdm

from fdadp import learners
from fdadp._common.command_line_tools import console, no_window, plain_messages
from fdadp.datasets._data_locations import load_present
from fdadp.errors import InputError
from fdadp.published.adaboost_and_naive_bayes import SCHEMES, VARIANTS, PublishedDPAda, PublishedNoisyAdaBoost
from studies.commands import command, run_each, say_absent, say_paths
from studies.learner_pairs import LEARNERS, adaboost, one_hot_codes
from studies.learner_tasks import TASKS, Task
from studies.learners_report import NOT_PRIVATE_BOOSTING, print_learners, write_learners
from studies.scores import check_settings, fit_and_score, noise_seed, split_rows, without_a_learner

NO_PRIVACY, TRIVIAL = "no privacy", "trivial"


def load(names: Sequence[str], *, download: bool = False) -> tuple[list[Task], dict[str, str]]:
    """Load those of :data:`TASKS` that are present, and say why others are missing; raises InputError."""
    return load_present(names, TASKS, download=download)


def run(
    task: Task,
    *,
    epsilons: Sequence[float] = (0.01, 0.1, 0.5, 1.0, 5.0),
    repeats: int = 10,
    only: Sequence[str] | None = None,
    seed: int = 0,
    progress: bool = False,
) -> pd.DataFrame:
    """Fit every private learner for this kind of task, at every ε, and score it on held-out rows.

    Parameters
    ----------
    task : Task
    epsilons : sequence of float
        δ is the task's.
    repeats : int
        Draws of the noise and, where the data set has no split of its own, random splits.
    only : sequence of str, optional
        Names of learners; default: all that there are.
    seed : int
    progress : bool
        Show a progress bar.

    Returns
    -------
    DataFrame
        One row per repeat, learner and ε: ``dataset``, ``repeat``, ``learner``, ``scheme`` (``"private"``,
        :data:`NO_PRIVACY` or :data:`TRIVIAL`), ``epsilon``, ``delta``, ``metric``, ``score``, ``auc`` (classifiers with
        two classes) and ``seconds`` of the fit.

    Raises
    ------
    InputError
        Settings out of range, or no learner for this task.
    """
    check_settings(epsilons, repeats)
    known = [item for item in LEARNERS if task.kind in item.kinds]
    there = [item for item in known if item.name in learners.__all__ and (only is None or item.name in only)]
    if not there:
        raise InputError(f"learner must be among {', '.join(item.name for item in known)} for {task.name}, got {only}")
    rows: list[dict[str, Any]] = []
    total = repeats * len(there) * (1 + len(epsilons))
    with tqdm(total=total, desc=task.name, unit="fit", disable=not progress) as bar:
        for repeat in range(repeats):
            split = split_rows(task, repeat, seed)
            common = {"dataset": task.name, "repeat": repeat}
            rows += [
                common | {"learner": "", "scheme": TRIVIAL, "epsilon": np.nan} | one
                for one in without_a_learner(task, split)
            ]
            for item in there:
                if repeat == 0 or task.X_test is None:
                    scored = fit_and_score(task, item.without_privacy(task), item.encode_plain(task), split)
                    rows.append(common | {"learner": item.name, "scheme": NO_PRIVACY, "epsilon": np.nan} | scored)
                bar.update()
                for epsilon in epsilons:
                    model = getattr(learners, item.name)(
                        epsilon=float(epsilon),
                        delta=task.delta,
                        random_state=noise_seed(seed, repeat),
                        **item.public(task),
                    )
                    scored = fit_and_score(task, model, item.encode(task), split)
                    rows.append(
                        common
                        | {"learner": item.name, "scheme": "private", "epsilon": float(epsilon), "delta": task.delta}
                        | scored
                    )
                    bar.update()
    return pd.DataFrame(rows)


def published(
    task: Task,
    *,
    epsilons: Sequence[float] = (0.1, 0.5, 1.0, 2.0, 5.0),
    rounds: Sequence[int] = (30, 50, 70, 90, 100),
    repeats: int = 3,
    seed: int = 0,
    progress: bool = False,
) -> pd.DataFrame:
    """Run the published experiment of the DPAda family: accuracy by ε and number of rounds m.

    Parameters
    ----------
    task : Task
        Of classification.
    epsilons : sequence of float
        Claimed by the published schemes, **none of which is private**, and kept by our boosting beside them.
    rounds : sequence of int
        m.
    repeats, seed, progress
        As in :func:`run`.

    Returns
    -------
    DataFrame
        As of :func:`run`, with ``rounds`` and the scheme ``"published"``. Beside it: AdaBoost of scikit-learn with m
        stumps, the larger class, and our private boosting: DPBoostedStumps with m rounds, and DPAdditiveHistograms,
        which has no m. These vary little and take most of the time, so they have one repeat.

    Raises
    ------
    InputError
        Settings out of range, or no task of classification.
    """
    check_settings(epsilons, repeats)
    if task.kind != "classification":
        raise InputError(f"dataset must be one of classification for this experiment, got {task.name!r}")
    encode = one_hot_codes(task)
    numbers = replace(task, classes=(0, 1))  # comparing labels as text would take half of the time
    rows: list[dict[str, Any]] = []
    public: dict[str, Any] = {"classes": list(task.classes), "features": dict(task.features), "delta": task.delta}
    each = 1 + len(epsilons) * (1 + repeats * (len(VARIANTS) + len(SCHEMES)))
    total = len(rounds) * each + len(epsilons)
    with tqdm(total=total, desc=task.name, unit="fit", disable=not progress) as bar:

        def add(split: tuple[Any, Any, Any, Any], which: Task, model: Any, **labels: Any) -> None:
            rows.append({"dataset": task.name} | labels | fit_and_score(which, model, lambda X: X, split))
            bar.update()

        for repeat in range(repeats):
            split = split_rows(task, repeat, seed)
            X, y, X_test, y_test = split
            plain = encode(X), _second(task, y), encode(X_test), _second(task, y_test)
            rows += [
                {"dataset": task.name, "repeat": repeat, "learner": "", "scheme": TRIVIAL, "epsilon": np.nan} | one
                for one in without_a_learner(task, split)
            ]
            for m in rounds:
                labels: dict[str, Any] = {"repeat": repeat, "rounds": m}
                if repeat == 0:
                    add(plain, numbers, adaboost(task, m), learner="AdaBoost", scheme=NO_PRIVACY, **labels)
                for epsilon in map(float, epsilons):
                    settings: dict[str, Any] = {"epsilon": epsilon, "random_state": noise_seed(seed, repeat)}
                    labels |= {"epsilon": epsilon, "scheme": "published"}
                    for variant in VARIANTS:
                        model: Any = PublishedDPAda(variant=variant, n_rounds=m, **settings)
                        add(plain, numbers, model, learner=variant, **labels)
                    for scheme in SCHEMES:
                        model = PublishedNoisyAdaBoost(scheme=scheme, n_rounds=m, **settings)
                        add(plain, numbers, model, learner=scheme, **labels)
                    if repeat == 0:
                        labels |= {"scheme": "private"}
                        model = learners.DPBoostedStumps(n_rounds=m, **settings, **public)
                        add(split, task, model, learner="DPBoostedStumps", delta=task.delta, **labels)
            for epsilon in map(float, () if repeat else epsilons):
                model = learners.DPAdditiveHistograms(epsilon=epsilon, random_state=noise_seed(seed, repeat), **public)
                labels = {"repeat": repeat, "epsilon": epsilon, "scheme": "private", "delta": task.delta}
                add(split, task, model, learner="DPAdditiveHistograms", **labels)
    return pd.DataFrame(rows)


def _second(task: Task, y: Any) -> Any:
    """1 where the label is the second class, else 0."""
    return (np.asarray(y) == task.classes[1]).astype(np.int64)


def summarise(results: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation over repeats.

    Parameters
    ----------
    results : DataFrame
        Of :func:`run` or :func:`published`, of one or several data sets.

    Returns
    -------
    DataFrame
        One row per data set, metric, scheme, learner, number of rounds and ε: ``score`` (mean), ``score_sd``,
        ``score_median``, ``auc``, ``seconds`` (medians), ``repeats``, and ``no_privacy``, the score of its counterpart
        without privacy.
    """
    results = results.assign(**{name: np.nan for name in ("rounds", "auc", "delta") if name not in results})
    keys = ["dataset", "metric", "scheme", "learner", "rounds", "epsilon", "delta"]
    table = (
        results.groupby(keys, dropna=False, sort=False)
        .agg(
            score=("score", "mean"),
            score_sd=("score", "std"),
            score_median=("score", "median"),
            auc=("auc", "mean"),
            seconds=("seconds", "median"),
            repeats=("score", "size"),
        )
        .reset_index()
    )
    plain = table[table["scheme"] == NO_PRIVACY].set_index(["dataset", "metric", "learner"])["score"].to_dict()
    same = zip(table["dataset"], table["metric"], table["learner"], strict=True)
    table["no_privacy"] = [plain.get(key, np.nan) for key in same]
    return table


def main(
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
        if experiment not in ("private", "published"):
            raise InputError(f"--experiment must be private or published, got {experiment!r}")
        is_private = experiment == "private"
        every = TASKS if is_private else ("adult", "bank")
        tasks, absent = load(list(every) if "all" in dataset else dataset, download=download)
        say_absent(tasks, absent, dataset)
        epsilons = epsilon or ([0.01, 0.1, 0.5, 1.0, 5.0] if is_private else [0.1, 0.5, 1.0, 2.0, 5.0])
        common: dict[str, Any] = {"epsilons": epsilons, "repeats": repeats, "seed": seed}
        common["progress"] = sys.stderr.isatty()
        if is_private:
            results = run_each(tasks, run, only=learner or None, **common)
        else:
            results = run_each(tasks, published, rounds=rounds, **common)
        table = summarise(results)
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


app = command(main)

if __name__ == "__main__":
    app()
