"""The DPAda experiments as their article has them: accuracy by claimed budget B and rounds m.

    python benchmarks/studies/published_boosting.py --runs 50           # the article's two figures: half an hour
    python benchmarks/studies/published_boosting.py --runs 50 --whole   # all B with all m

Adult: Americans only, without ``fnlwgt``, in the source's split. Bank Marketing: 70 % to train, drawn anew for
each run. B varies at m = 50, and m at B = 1. **None of the schemes is private**, whatever B they claim. Written to
``benchmarks/results/published-boosting.md``.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np
import pandas as pd
import typer
from tqdm import tqdm

from fdadp._common.command_line_tools import plain_messages
from fdadp.errors import InputError, NotPrivateWarning
from fdadp.published.adaboost_and_naive_bayes import VARIANTS, PublishedDPAda
from studies.commands import command
from studies.learner_pairs import one_hot_codes
from studies.learner_tasks import TASKS, Task
from studies.learners_report import NOT_PRIVATE_BOOSTING
from studies.pages import made_with, mean_sd, table, write

BUDGETS = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0, 3.0, 5.0)
ROUNDS = (30, 40, 50, 60, 70, 80, 90, 100)
AT_ROUNDS, AT_BUDGET = 50, 1.0
READINGS: Mapping[str, dict[str, Any]] = {
    "one sample, bounded vote": {"tie": "single", "clamp": 0.3},
    "one sample": {"tie": "single"},
    "all tied samples": {},
}
"""Which samples of the largest (smallest) weight get noise; a bounded vote: the error is kept in [.3, .7]."""
NO_NOISE = "AdaBoost"


def samples(name: str) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Rows and labels to train, then to test, of one run after the other, as the article filters and splits them."""
    if name not in ("adult", "bank"):
        raise InputError(f"dataset must be adult or bank, got {name!r}")
    task: Task = TASKS[name](False)
    encode, second = one_hot_codes(task), task.classes[1]
    if name == "adult":
        parts = [(task.X, task.y), (task.X_test, task.y_test)]
        american = [np.asarray(X["native-country"] == "United-States") for X, _ in parts]
        train, test = ((encode(X[at]), np.asarray(y)[at] == second) for (X, y), at in zip(parts, american, strict=True))
        while True:
            yield *train, *test
    X, y = encode(task.X), np.asarray(task.y) == second
    for run in range(sys.maxsize):
        order = np.random.default_rng([run, 7]).permutation(len(y))
        first, rest = np.split(order, [round(0.7 * len(y))])
        yield X[first], y[first], X[rest], y[rest]


def cells(whole: bool, budgets: Sequence[float] = BUDGETS, rounds: Sequence[int] = ROUNDS) -> list[tuple[float, int]]:
    """Pairs (B, m): all of them, or those of the two figures."""
    every = [(B, m) for B in budgets for m in rounds]
    figures = [(B, AT_ROUNDS) for B in budgets] + [(AT_BUDGET, m) for m in rounds]
    return every if whole else list(dict.fromkeys(figures))


def study(
    name: str, pairs: Sequence[tuple[float, int]], runs: int, readings: Sequence[str] = tuple(READINGS)
) -> pd.DataFrame:
    """Accuracy on test rows: ``dataset, run, reading, scheme, B, m, accuracy``; AdaBoost has no B and no reading.

    A run has one split and one seed of the noise for all its fits, so figures of a run are not independent.
    """
    rows: list[dict[str, Any]] = []
    split, longest = samples(name), max(m for _, m in pairs)
    bar = tqdm(total=runs * len(pairs) * len(readings) * len(VARIANTS), disable=not sys.stderr.isatty(), desc=name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)  # the page says so
        for run in range(runs):
            X, y, X_test, y_test = next(split)
            common = {"dataset": name, "run": run}
            if run == 0 or name != "adult":  # the same rows give the same trees
                plain = PublishedDPAda(epsilon=1e12, n_rounds=longest, random_state=0).fit(X, y)
                stages = enumerate(plain.staged_predict(X_test), 1)
                accuracy = {m: float((found == y_test).mean()) for m, found in stages}
                rows += [
                    common | {"reading": "", "scheme": NO_NOISE, "B": np.nan, "m": m, "accuracy": accuracy[m]}
                    for m in sorted({m for _, m in pairs})
                ]
            for reading in readings:
                for B, m in pairs:
                    for scheme in VARIANTS:
                        model = PublishedDPAda(
                            variant=scheme, epsilon=B, n_rounds=m, random_state=run, **READINGS[reading]
                        )
                        accuracy = float((model.fit(X, y).predict(X_test) == y_test).mean())
                        where = {"reading": reading, "scheme": scheme, "B": B, "m": m, "accuracy": accuracy}
                        rows.append(common | where)
                        bar.update()
    return pd.DataFrame(rows)


def tables(results: pd.DataFrame) -> Iterator[str]:
    """One table a data set, reading and figure (or number of rounds): schemes down, B or m across."""
    for name, part in results.groupby("dataset", sort=False):
        plain = part[part["scheme"] == NO_NOISE]
        at = plain[plain["m"] == AT_ROUNDS]["accuracy"]
        yield f"## {name}\n\nAdaBoost without noise has {mean_sd(at.tolist())} at m = {AT_ROUNDS}."
        for reading, noisy in part[part["scheme"] != NO_NOISE].groupby("reading", sort=False):
            whole = len(noisy[["B", "m"]].drop_duplicates()) > len(BUDGETS) + len(ROUNDS)
            figures = [("m", m, "B") for m in (sorted(noisy["m"].unique()) if whole else [AT_ROUNDS])]
            for fixed, value, across in [*figures, ("B", AT_BUDGET, "m")]:
                shown = noisy[noisy[fixed] == value]
                values = sorted(shown[across].unique())
                lines = [
                    [scheme, *(mean_sd(line[line[across] == v]["accuracy"].tolist()) for v in values)]
                    for scheme, line in shown.groupby("scheme", sort=False)
                ]
                head = ["scheme", *(f"{across} = {v:g}" for v in values)]
                yield f"{name}, {reading}; {fixed} = {value:g}:\n\n{table(head, lines)}"


def summary(results: pd.DataFrame) -> str:
    """Smallest and largest mean of a cell, and where DPAda_Improved is the best, by data set and reading."""
    means = results[results["scheme"] != NO_NOISE].groupby(["dataset", "reading", "scheme", "B", "m"], sort=False)
    means = means["accuracy"].mean()
    lines = []
    for (name, reading), part in means.groupby(["dataset", "reading"], sort=False):
        cell = part.groupby(["B", "m"]).idxmax().map(lambda key: key[2])
        first = int((cell == "DPAda_Improved").sum())
        overall = part.groupby("scheme").mean()
        order = ", ".join(f"{s} {v:.3f}" for s, v in overall.sort_values(ascending=False).items())
        lines.append([name, reading, f"{part.min():.3f} to {part.max():.3f}", f"{first} of {len(cell)}", order])
    head = ["data", "reading", "means of the cells", "DPAda_Improved is best in", "mean over all cells"]
    return table(head, lines)


def main(
    dataset: Annotated[list[str], typer.Option(help="adult, bank or both.")] = ["adult", "bank"],  # noqa: B006
    runs: Annotated[int, typer.Option(help="Splits and draws of the noise; the article has 50.")] = 50,
    reading: Annotated[list[str] | None, typer.Option(help="Only these. (default: all)")] = None,
    whole: Annotated[bool, typer.Option("--whole", help="All B with all m, not the two figures only.")] = False,
    out: Annotated[str, typer.Option(help="Name of the page in benchmarks/results.")] = "published-boosting",
) -> None:
    """Accuracy of the published boosting schemes by claimed budget and number of rounds, under each reading."""
    with plain_messages():
        unknown = [name for name in reading or () if name not in READINGS]
        if unknown or runs < 1:
            raise InputError(f"reading must be among {', '.join(READINGS)}, and runs at least 1, got {unknown}, {runs}")
        chosen = tuple(reading or READINGS)
        pairs = cells(whole)
        with ProcessPoolExecutor(len(dataset)) as pool:
            each = pool.map(partial(study, pairs=pairs, runs=runs, readings=chosen), dataset)
            results = pd.concat(each, ignore_index=True)
        options = f" --dataset {' '.join(dataset)}" * (len(dataset) < 2) + " --whole" * whole
        options += "".join(f' --reading "{name}"' for name in reading or ())
        write(
            out,
            [
                "# The DPAda experiments",
                made_with(f"python benchmarks/studies/published_boosting.py --runs {runs}{options}"),
                f"Accuracy on test rows, mean (sd) over {runs} runs; the article has 50. {NOT_PRIVATE_BOOSTING} Adult: "
                "Americans only, without `fnlwgt`, the source's split. Bank Marketing: 70 % to train, drawn anew for "
                "each run. Stumps on bins of numbers and on labels one by one. The readings: noise on one sample of "
                "the largest and one of the smallest weight, and a vote bounded by keeping the error in [.3, .7]; the "
                "same without the bound; one draw for all samples of that weight, the default here.",
                summary(results),
                *tables(results),
            ],
        )


app = command(main)

if __name__ == "__main__":
    app()
