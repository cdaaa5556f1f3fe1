"""What private fits explain, by n, ε and public range: ``python benchmarks/frontier.py --help``.

Each cell is a mean over simulated cohorts of its own seeds, which no default was tuned on. The part ``main`` is
checked against what the prototype reached (``frontier_expected.json``), ``pure`` against means over the scenarios and
its worst fits against 0; a miss makes the exit status 1. The noise is
seeded NumPy noise of the same law as the secure one: for simulation only.
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
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import frontier_report  # noqa: E402

SEEDS = range(2000, 2040)
DELTA = 1e-6
CELLS = ((300, 1.0), (1000, 0.5), (1000, 1.0), (3000, 0.1), (3000, 1.0), (10_000, 1.0))
PURE = ((300, 1.0), (1000, 1.0), (3000, 0.1), (3000, 1.0), (10_000, 1.0))
FEWER = ((300, 1.0), (1000, 1.0), (3000, 0.1), (10_000, 1.0))
SMOOTH, ROUGH = ("S1", "S2", "S3"), ("A", "B")
LEVELS = (0.85, 0.95)


METHODS = ("dp-aff", "moments", "gradient descent", "functional mechanism", "AdaSSP", "output", "published")


class Part(NamedTuple):
    """A table: cells, scenarios, ranges, methods and settings other than a declared n at δ = 1e-6."""

    cells: tuple[tuple[int, float], ...]
    scenarios: tuple[str, ...]
    ranges: tuple[str, ...]
    methods: tuple[str, ...] = ("dp-aff",)
    adjacency: str = "zero-out"
    pure: bool = False
    seeds: int = 10


PARTS = {
    "main": Part(CELLS, SMOOTH + ROUGH, ("ok", "wide", "narrow")),
    "pure": Part(PURE, SMOOTH + ROUGH, ("ok",), pure=True, seeds=40),
    "add-remove": Part(FEWER, SMOOTH + ROUGH, ("ok",), adjacency="add-remove"),
    "replace": Part(FEWER, SMOOTH + ROUGH, ("ok",), adjacency="replace"),
    "beside": Part(FEWER, SMOOTH, ("ok",), methods=METHODS, seeds=5),
    "large": Part(((100_000, 0.1), (100_000, 1.0)), SMOOTH, ("ok",), seeds=2),
}


class Task(NamedTuple):
    """One fit."""

    part: str
    method: str
    n: int
    epsilon: float
    width: str
    scenario: str
    seed: int


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    missed = 0
    for name in options.parts:
        part = PARTS[name]
        tasks = list_tasks(name, part, options)
        if not tasks:
            print(f"{name}: nothing is left after the options", file=sys.stderr)
            continue
        start = time.perf_counter()
        fits = run(tasks, options.jobs)
        about = {"seconds": round(time.perf_counter() - start), "delta": None if part.pure else DELTA}
        about |= {"adjacency": part.adjacency, "seeds": sorted({task.seed for task in tasks})}
        rows = frontier_report.summarise(fits, name, options.expected)
        means = frontier_report.means(rows, name, options.expected)
        text = frontier_report.markdown(name, rows, means, about)
        print(text, flush=True)
        options.out.mkdir(parents=True, exist_ok=True)
        result = {"part": name, **about, "cells": rows, "means": means, "fits": fits}
        (options.out / f"frontier-{name}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        (options.out / f"frontier-{name}.md").write_text(text, encoding="utf-8")
        missed += sum(bool(row["misses"]) for row in rows + means)
    return 1 if missed else 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", default=["main"], choices=list(PARTS), help="tables; default main")
    parser.add_argument("--n", type=int, nargs="+", help="only these n")
    parser.add_argument("--epsilon", type=float, nargs="+", help="only these ε")
    parser.add_argument("--scenarios", nargs="+", choices=SMOOTH + ROUGH)
    parser.add_argument("--ranges", nargs="+", choices=("ok", "wide", "narrow"), help="public range of X")
    parser.add_argument("--methods", nargs="+", help="only these mechanisms")
    parser.add_argument("--seeds", type=int, help="cohorts per cell")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of JSON and Markdown")
    options = parser.parse_args(arguments)
    options.expected = json.loads((HERE / "frontier_expected.json").read_text(encoding="utf-8"))
    return options


def list_tasks(name: str, part: Part, options: argparse.Namespace) -> list[Task]:
    """Fits of a part, the longest first, so that processes end together."""
    seeds = SEEDS[: options.seeds or part.seeds]
    tasks = [
        Task(name, method, n, epsilon, width, scenario, seed)
        for (n, epsilon), width, scenario, method, seed in itertools.product(
            part.cells, part.ranges, part.scenarios, part.methods, seeds
        )
        if n in (options.n or [n])
        and epsilon in (options.epsilon or [epsilon])
        and width in (options.ranges or [width])
        and scenario in (options.scenarios or [scenario])
        and method in (options.methods or [method])
    ]
    return sorted(tasks, key=lambda task: -task.n)


def run(tasks: list[Task], jobs: int) -> list[dict[str, Any]]:
    from rich.progress import track

    if jobs < 2:
        return [fit(task) for task in track(tasks, "fits", disable=not sys.stderr.isatty())]
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        done = pool.imap_unordered(fit, tasks, chunksize=4)
        return list(track(done, "fits", total=len(tasks), disable=not sys.stderr.isatty()))


def noise_seed(task: Task) -> int:
    """Of each fit another: with one noise for all scenarios a single unlucky draw would show in many cells at once."""
    return zlib.crc32(repr(tuple(task)).encode())


def fit(task: Task) -> dict[str, Any]:
    """Share of the explainable variance, errors and intervals of one fit on 2,000 fresh curves."""
    import baselines
    import numpy as np
    from cohorts import GRID, WEIGHTS, bounds, cohort

    from fdadp import AdditiveFunctionOnFunction, Privacy
    from fdadp.errors import FdadpWarning
    from fdadp.published import PublishedNoise

    part = PARTS[task.part]
    train, test = cohort(task.scenario, task.n, task.seed)
    delta = None if part.pure else DELTA
    public = bounds(task.scenario, task.width)
    limits = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FdadpWarning)
        start = time.perf_counter()
        if task.method in baselines.METHODS:
            predict = baselines.fit(task.method, train.X, train.Y, public, task.epsilon, delta, noise_seed(task))
            predicted = predict(test.X)
        else:
            privacy = Privacy(
                task.epsilon,
                None if task.method == "published" else delta,
                n=None if part.adjacency == "add-remove" or task.method == "published" else task.n,
                adjacency=None if task.method == "published" else part.adjacency,
                random_state=noise_seed(task),
            )
            mechanism = PublishedNoise() if task.method == "published" else task.method
            model = AdditiveFunctionOnFunction(privacy=privacy, bounds=public, mechanism=mechanism, progress=False)
            model.fit(train.X, train.Y, s=GRID, t=GRID)
            predicted = model.predict(test.X)
            limits = [model.predict_interval(test.X, level) for level in LEVELS]
        seconds = time.perf_counter() - start
    loss = (((predicted - test.f) ** 2) @ WEIGHTS).mean()
    explainable = (((test.f - test.f.mean(axis=0)) ** 2) @ WEIGHTS).mean()
    inside = [float((np.abs(test.Y - (low + high) / 2) <= (high - low) / 2).mean()) for low, high in limits]
    return {
        **task._asdict(),
        "share": float(1 - loss / explainable),
        "rmspe": float(np.sqrt((((predicted - test.Y) ** 2) @ WEIGHTS).mean())),
        "coverage_85": inside[0] if limits else None,
        "coverage_95": inside[1] if limits else None,
        "width_95": float((limits[1][1] - limits[1][0]).mean()) if limits else None,
        "seconds": seconds,
    }


if __name__ == "__main__":
    raise SystemExit(main())
