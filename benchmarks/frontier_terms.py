"""What private fits of several terms explain, by n: ``python benchmarks/frontier_terms.py --help``.

Each cell is a mean over simulated cohorts of their own seeds, which no default was tuned on, beside one-shot statistics
and fits without privacy. Means below what was promised make the exit status 1. The noise is seeded NumPy noise of the
same law as the secure one: for simulation only.
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
from statistics import mean, stdev
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE / "terms")]

EPSILON, DELTA = 1.0, 1e-6
SIZES = (300, 1000, 10_000)
SEEDS = range(2000, 2010)
NEW = 2000
LEVELS = (0.85, 0.95)
METHODS = ("private", "one shot", "no privacy")
PROMISED = {
    "ff + number + factor": (0.90, 0.985, 0.998),
    "lf + number": (0.88, 0.985, 0.996),
    "two curves + two numbers": (0.88, 0.985, 0.996),
    "zeros and ones: lf + number": (0.81, 0.969, 0.992),
    "counts: lf + number": (None, None, None),
    "concurrent + number": (0.96, 0.98, 0.98),
    "historical + number": (0.93, 0.985, 0.998),
    "ff + concurrent": (0.95, 0.99, 0.998),
}
"""Least mean share of the explainable variance by n; of counts nothing was."""


class Task(NamedTuple):
    """One cohort."""

    scenario: str
    n: int
    method: str
    seed: int


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    tasks = [
        Task(*one) for one in itertools.product(options.scenarios, options.n, options.methods, SEEDS[: options.seeds])
    ]
    tasks = [task._replace(seed=task.seed + options.shift) for task in tasks]
    start = time.perf_counter()
    if options.jobs < 2:
        fits = [one for task in tasks for one in fit(task)]
    else:
        with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
            fits = [one for found in pool.imap_unordered(fit, sorted(tasks, key=lambda t: -t.n)) for one in found]
    cells = summarise(fits)
    about = f"{len({one['seed'] for one in fits})} cohorts a cell, ε = {EPSILON:g}, δ = {DELTA:g}"
    text = markdown(cells, f"{about}, {time.perf_counter() - start:.0f} s")
    print(text)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        result = {"cells": cells, "fits": sorted(fits, key=lambda one: (one["scenario"], one["n"], one["seed"]))}
        kept = recorded(options.out / "frontier-terms.json", {one["scenario"] for one in fits})
        result = {"cells": kept["cells"] + cells, "fits": kept["fits"] + result["fits"]}
        result["cells"].sort(key=lambda cell: list(PROMISED).index(cell["scenario"]))
        text = markdown(result["cells"], f"{len(SEEDS)} cohorts a cell, ε = {EPSILON:g}, δ = {DELTA:g}")
        (options.out / "frontier-terms.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        (options.out / "frontier-terms.md").write_text(text, encoding="utf-8")
    return int(any(cell["missed"] for cell in cells))


def recorded(path: Path, now: set[str]) -> dict[str, list[dict[str, Any]]]:
    """What is on record of scenarios that were not run now."""
    if not path.exists():
        return {"cells": [], "fits": []}
    before = json.loads(path.read_text(encoding="utf-8"))
    return {part: [one for one in before[part] if one["scenario"] not in now] for part in ("cells", "fits")}


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", nargs="+", choices=list(PROMISED), default=list(PROMISED))
    parser.add_argument("--n", type=int, nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="cohorts per cell")
    parser.add_argument("--shift", type=int, default=0, help="add to the seeds: tune on others than those reported")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of JSON and Markdown")
    return parser.parse_args(arguments)


def fit(task: Task) -> list[dict[str, Any]]:
    """Share of the explainable variance, and coverage, on new people."""
    import numpy as np
    import one_shot
    import one_shot_families
    from private_cohorts import SCENARIOS, S

    from fdadp import FunctionalRegression, Privacy, ScalarRegression
    from fdadp.errors import FdadpWarning

    scenario = SCENARIOS[task.scenario]
    rng = np.random.default_rng([task.seed, task.n, zlib.crc32(task.scenario.encode())])
    train, test = (scenario.draw(n, rng) for n in (task.n, NEW))
    noise = zlib.crc32(repr(tuple(task)).encode())
    response = scenario.response
    grids = {name: S for name, values in train.data.items() if values.ndim == 2}
    if task.method == "one shot" and not scenario.factors:
        return []
    begin = time.process_time()
    limits = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FdadpWarning)
        if task.method == "one shot":
            made = one_shot.fit(scenario.model, train.data, S, scenario.bounds, EPSILON, DELTA, noise)
            predicted = {name: p(test.data).reshape(test.mean.shape) for name, p in made.items()}
            if scenario.family != "gaussian":
                limit = scenario.bounds[response]
                predicted = {name: one_shot_families.means(v, scenario.family, limit) for name, v in predicted.items()}
        elif scenario.family != "gaussian":
            predicted, limits = fit_family(task, scenario, train.data, test.data, grids, noise)
        else:
            kind = FunctionalRegression if train.mean.ndim == 2 else ScalarRegression
            privacy = Privacy(EPSILON, DELTA, n=task.n, random_state=noise)
            private = {"privacy": privacy, "bounds": scenario.bounds} if task.method == "private" else {}
            model = kind(scenario.model, **private).fit(train.data, grids=grids)
            predicted = {task.method: np.asarray(model.predict(test.data))}
            if private:
                limits = [model.predict_interval(test.data, level) for level in LEVELS]
    seconds = time.process_time() - begin
    away = ((test.mean - test.mean.mean(axis=0)) ** 2).mean()
    aim = test.data[response] if scenario.family == "gaussian" else test.mean
    covered = [float(((low <= aim) & (aim <= high)).mean()) for low, high in limits]
    return [
        {
            **task._asdict(),
            "method": name,
            "share": float(1 - ((values - test.mean) ** 2).mean() / away),
            "coverage": covered or None,
            "seconds": seconds,
        }
        for name, values in predicted.items()
    ]


def fit_family(
    task: Task, scenario: Any, train: dict[str, Any], new: dict[str, Any], grids: dict[str, Any], noise: int
) -> tuple[dict[str, Any], list[Any]]:
    """Predicted means of zeros and ones, or of counts, and intervals of these means by their standard errors."""
    from scipy.stats import norm

    from fdadp import Privacy, ScalarRegression

    bounds = scenario.bounds | ({"y": [0, 1]} if scenario.family == "binomial" else {})
    privacy = Privacy(EPSILON, DELTA, n=task.n, random_state=noise)
    private = {"privacy": privacy, "bounds": bounds} if task.method == "private" else {}
    model = ScalarRegression(scenario.model, family=scenario.family, **private).fit(train, grids=grids)
    mean, se = model.predict(new), model.predict_se(new)
    wide = [norm.ppf((1 + level) / 2) * se for level in LEVELS]
    return {task.method: mean}, [(mean - half, mean + half) for half in wide]


def summarise(fits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row a cell, and whether it is below what was promised."""
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for one in fits:
        cells.setdefault((one["scenario"], one["n"], one["method"]), []).append(one)
    out = []
    for (scenario, n, method), members in sorted(cells.items(), key=lambda c: (list(PROMISED).index(c[0][0]), c[0][1])):
        shares = [one["share"] for one in members]
        promised = PROMISED[scenario][SIZES.index(n)] if method == "private" else None
        covered = [one["coverage"] for one in members if one["coverage"]]
        out.append(
            {
                "scenario": scenario,
                "n": n,
                "method": method,
                "share": mean(shares),
                "error": stdev(shares) / len(shares) ** 0.5 if len(shares) > 1 else 0.0,
                "worst": min(shares),
                "promised": promised,
                "coverage": [mean(level) for level in zip(*covered, strict=True)] if covered else None,
                "missed": promised is not None and mean(shares) < promised,
            }
        )
    return out


def markdown(cells: list[dict[str, Any]], about: str) -> str:
    """Cells as rows."""
    lines = [
        f"### Private fits of several terms: {about}",
        "",
        "Mean share of the explainable variance and its standard error, the worst cohort, and what intervals cover.",
        "",
        "| model | n | method | share | worst | promised | 85/95 % intervals |",
        "|---|---|---|---|---|---|---|",
    ]
    for cell in cells:
        covered = "" if cell["coverage"] is None else "/".join(f"{100 * c:.0f}" for c in cell["coverage"])
        promised = "" if cell["promised"] is None else f"{cell['promised']:g}"
        lines.append(
            f"| {cell['scenario']} | {cell['n']:,} | {cell['method']} | {cell['share']:.4f} ± {cell['error']:.4f} "
            f"| {cell['worst']:.3f} | {promised}{' **miss**' if cell['missed'] else ''} | {covered} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
