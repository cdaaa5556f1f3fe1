"""Whether a private choice among models pays: ``python benchmarks/choose_privately.py --help``.

Candidates are the default public prior and two others, one of rougher and one of smoother curves. A cell holds means
over simulated cohorts of their own seeds, which no setting was tuned on: what the chosen model explains, beside each
candidate with the whole budget and all persons, which is what somebody gets who happens to know which one is best. Exit
status 1 where a choice loses more than .01 against the best candidate, or is nowhere better than the default. The noise
is seeded NumPy noise of the same law as the secure one: for simulation only.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import itertools
import json
import multiprocessing
import sys
import time
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

N, EPSILON, DELTA = 3000, 1.0, 1e-6
SEEDS = range(2000, 2010)
SCENARIOS = ("S1", "S2", "S3", "A", "B")
PRIORS: dict[str, dict[str, Any]] = {
    "default": {},
    "rough": {"x_lengths": (0.02, 0.15)},
    "smooth": {"x_lengths": (0.1, 1.0)},
}
MOST_LOST = 0.01


class Task(NamedTuple):
    """One cohort."""

    scenario: str
    seed: int
    n: int
    epsilon: float
    trial_share: float
    select_share: float
    holdout: float


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    tasks = [
        Task(scenario, seed + options.shift, options.n, options.epsilon, *options.shares)
        for scenario, seed in itertools.product(options.scenarios, SEEDS[: options.seeds])
    ]
    fits = [] if options.kept is None or not options.kept.exists() else read(options.kept)
    done = {(one["scenario"], one["seed"]) for one in fits}
    left = [task for task in tasks if (task.scenario, task.seed) not in done]
    for one in run(left, options.jobs):
        fits.append(one)
        if options.kept is not None:
            with options.kept.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(one) + "\n")
    cells = [summarise([one for one in fits if one["scenario"] == scenario]) for scenario in options.scenarios]
    text = markdown(cells, options)
    print(text)
    if options.out is not None:
        result = {"cells": cells, "fits": sorted(fits, key=lambda one: (one["scenario"], one["seed"]))}
        (options.out / "choose-privately.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        (options.out / "choose-privately.md").write_text(text, encoding="utf-8")
    return int(any(cell["lost"] > MOST_LOST for cell in cells) or all(cell["gained"] <= 0 for cell in cells))


def run(tasks: list[Task], jobs: int) -> Iterator[dict[str, Any]]:
    if jobs < 2:
        yield from map(fit, tasks)
    else:
        with multiprocessing.get_context("spawn").Pool(jobs) as pool:
            yield from pool.imap_unordered(fit, tasks)


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", nargs="+", choices=SCENARIOS, default=list(SCENARIOS))
    parser.add_argument("--n", type=int, default=N)
    parser.add_argument("--epsilon", type=float, default=EPSILON)
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="cohorts per cell")
    parser.add_argument("--shift", type=int, default=0, help="add to the seeds: tune on others than those reported")
    parser.add_argument("--shares", type=float, nargs=3, default=(0.2, 0.2, 0.25), help="of trials, selection, judges")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--kept", type=Path, help="file of finished fits, one a line; what is in it is not run again")
    parser.add_argument("--out", type=Path, help="folder of JSON and Markdown")
    return parser.parse_args(arguments)


def fit(task: Task) -> dict[str, Any]:
    """Explained shares of every candidate with everything, and of the one that was chosen."""
    from cohorts import GRID, WEIGHTS, bounds, cohort

    from fdadp import DPAFF, AdditiveFunctionOnFunction, Privacy, PublicPrior, choose_privately
    from fdadp.errors import FdadpWarning

    train, test = cohort(task.scenario, task.n, task.seed)
    public = bounds(task.scenario, "ok")
    explainable = (((test.f - test.f.mean(axis=0)) ** 2) @ WEIGHTS).mean()

    def explained(model: Any) -> float:
        return float(1 - (((model.predict(test.X) - test.f) ** 2) @ WEIGHTS).mean() / explainable)

    def privacy(what: str) -> Any:
        return Privacy(task.epsilon, DELTA, n=task.n, random_state=zlib.crc32(repr((*task, what)).encode()))

    def model(name: str) -> Any:
        mechanism = DPAFF(prior=PublicPrior(**PRIORS[name]))
        return AdditiveFunctionOnFunction(privacy=privacy(name), bounds=public, mechanism=mechanism, progress=False)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FdadpWarning)
        alone = {name: explained(model(name).fit(train.X, train.Y, s=GRID, t=GRID)) for name in PRIORS}
        begin = time.process_time()
        found = choose_privately(
            [model(name) for name in PRIORS],
            train.X,
            train.Y,
            privacy("choice"),
            grids={"X": GRID, "Y": GRID},
            trial_share=task.trial_share,
            select_share=task.select_share,
            holdout=task.holdout,
        )
        seconds = time.process_time() - begin
        reached = explained(found.estimator)
    return {
        **task._asdict(),
        "alone": alone,
        "chosen": list(PRIORS)[found.index],
        "explained": reached,
        "difference": found.plan.difference,
        "seconds": seconds,
    }


def summarise(fits: list[dict[str, Any]]) -> dict[str, Any]:
    """Means of one scenario. The best candidate is the one that is best on average."""
    alone = {name: mean(one["alone"][name] for one in fits) for name in PRIORS}
    best = max(alone, key=lambda name: alone[name])
    chosen = mean(one["explained"] for one in fits)
    lost = [one["alone"][best] - one["explained"] for one in fits]
    return {
        "scenario": fits[0]["scenario"],
        "alone": alone,
        "best": best,
        "chosen": chosen,
        "times": {name: sum(one["chosen"] == name for one in fits) for name in PRIORS},
        "lost": mean(lost),
        "lost_se": stdev(lost) / len(lost) ** 0.5 if len(lost) > 1 else float("nan"),
        "gained": chosen - alone["default"],
        "seconds": mean(one["seconds"] for one in fits),
    }


def markdown(cells: list[dict[str, Any]], options: argparse.Namespace) -> str:
    about = f"n = {options.n}, ε = {options.epsilon:g}, δ = {DELTA:g}, {options.seeds} cohorts a row"
    shares = "trials {:g}, selection {:g} of the budget; {:g} of the persons judge".format(*options.shares)
    seconds = mean(cell["seconds"] for cell in cells)
    lines = [
        f"Share of the explainable variance on new people. {about}; {shares}; {seconds:.1f} s of CPU a choice.",
        "",
        "| scenario | " + " | ".join(f"{name}, whole budget" for name in PRIORS) + " | chosen, choice paid "
        "| chose " + " / ".join(PRIORS) + " | lost against the best | gained on the default |",
        "|---" * (len(PRIORS) + 5) + "|",
    ]
    for cell in cells:
        alone = " | ".join(f"{cell['alone'][name]:.4f}" for name in PRIORS)
        times = " / ".join(str(cell["times"][name]) for name in PRIORS)
        lines.append(
            f"| {cell['scenario']} | {alone} | {cell['chosen']:.4f} | {times} "
            f"| {cell['lost']:.4f} ± {cell['lost_se']:.4f} | {cell['gained']:+.4f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
