"""Fit time of every private learner against the number of rows, and beside diffprivlib's where it has one.

    python benchmarks/learners/speed.py [--rows 10000 100000 1000000] [--venvs FOLDER]

Simulated rows of ten features. At each size ours and diffprivlib's (in its own environment) are fitted one after the
other in the same run, three times each after a fit of 500 rows that compiles; medians of CPU time, which others on the
machine disturb least. The last column is the slope of log time over log n between the two largest sizes: 1 is linear in
n. Writes results/speed.md and speed.json.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from run import HERE, environment

from fdadp import learners
from fdadp._version import __version__
from fdadp.learners import Numeric

D = 10
COMMON: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-7, "random_state": 0}
CLASSES = {"classes": [0, 1]}
FEATURES = {"features": Numeric(-4, 4)}
BALL = {"data_norm": 4 * math.sqrt(D)}

Fit = Callable[[Any, Any, Any], Any]
FITS: dict[str, Fit] = {
    "DPGaussianNB": lambda X, y, t: learners.DPGaussianNB(bounds=(-4, 4), **CLASSES, **COMMON).fit(X, y),
    "DPHistogramNB": lambda X, y, t: learners.DPHistogramNB(**FEATURES, **CLASSES, **COMMON).fit(X, y),
    "DPLogisticRegression": lambda X, y, t: learners.DPLogisticRegression(**BALL, **CLASSES, **COMMON).fit(X, y),
    "DPBoostedStumps": lambda X, y, t: learners.DPBoostedStumps(**FEATURES, **CLASSES, **COMMON).fit(X, y),
    "DPAdditiveHistograms": lambda X, y, t: learners.DPAdditiveHistograms(**FEATURES, **CLASSES, **COMMON).fit(X, y),
    "DPLinearRegression": lambda X, y, t: learners.DPLinearRegression(bounds=(-4, 4), bounds_y=(-8, 8), **COMMON).fit(
        X, t
    ),
    "DPKMeans": lambda X, y, t: learners.DPKMeans(n_clusters=5, bounds=(-4, 4), **COMMON).fit(X),
    "DPPCA": lambda X, y, t: learners.DPPCA(n_components=3, **BALL, **COMMON).fit(X),
}


def simulate(n: int) -> tuple[Any, Any, Any]:
    """Rows (n, 10) around five centres, two classes, and a target linear in the rows; all within [-4, 4]."""
    rng = np.random.default_rng(0)
    centres = rng.uniform(-2, 2, (5, D))
    X = np.clip(centres[rng.integers(0, 5, n)] + 0.7 * rng.standard_normal((n, D)), -4, 4)
    t = X[:, 0] - 0.5 * X[:, 1] + 0.5 * rng.standard_normal(n)
    return X, (t > 0).astype(np.int64), t


def seconds(fit: Fit, data: tuple[Any, Any, Any], repeats: int) -> list[float]:
    """CPU times of a number of fits."""
    found = []
    for _ in range(repeats):
        start = time.process_time()
        fit(*data)
        found.append(time.process_time() - start)
    return found


def table(rows: list[dict[str, Any]], sizes: list[int]) -> str:
    """Median CPU seconds by learner and n, ratio to diffprivlib, slope, as Markdown."""
    at: dict[tuple[str, int], list[float]] = {}
    for row in rows:
        at.setdefault((row["learner"], row["n"]), []).append(math.nan if row["seconds"] is None else row["seconds"])
    median = {key: float(np.median(times)) for key, times in at.items()}
    head = [f"n = {n:,}" for n in sizes] + ["slope"]
    lines = ["| fit, CPU seconds (× diffprivlib's) | " + " | ".join(head) + " |", "|---" * (len(head) + 1) + "|"]
    for name in FITS:
        cells = []
        for n in sizes:
            theirs = median.get((name.removeprefix("DP"), n))
            beside = "" if theirs is None else " (its has no end)" if math.isnan(theirs) else None
            if beside is None:
                beside = f" (× {median[name, n] / theirs:.2g})"  # type: ignore[operator]
            cells.append(f"{median[name, n]:.3g}{beside}")
        last, before = sizes[-1], sizes[-2]
        slope = math.log(median[name, last] / median[name, before]) / math.log(last / before)
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {slope:.2f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--venvs", type=Path, default=HERE, help="folder of the peers' environments")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    args = parser.parse_args()
    if len(args.rows) < 2:
        parser.error(f"--rows must be at least two sizes, got {args.rows}")
    warnings.simplefilter("ignore")
    python = environment("diffprivlib", args.venvs)
    rows: list[dict[str, Any]] = []
    for fit in FITS.values():
        fit(*simulate(500))  # compiles
    with tempfile.TemporaryDirectory() as folder:
        for n in sorted(args.rows):
            X, y, t = data = simulate(n)
            path = Path(folder) / "rows.npz"
            np.savez(path, X=X, y=y, t=t)
            command = [str(python), str(HERE / "peer_diffprivlib_speed.py"), str(path), str(args.repeats)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            rows += [json.loads(line) | {"n": n} for line in done.stdout.splitlines() if line.startswith("{")]
            for name, fit in FITS.items():
                rows += [{"learner": name, "n": n, "seconds": s} for s in seconds(fit, data, args.repeats)]
                print(n, name, rows[-1]["seconds"], file=sys.stderr, flush=True)
    about = (
        f"{args.repeats} fits each, one run, ten simulated features; fdadp {__version__} with ε = 1, δ = 1e-7, "
        f"diffprivlib 0.6.6 with ε = 1. Python {platform.python_version()}, {os.cpu_count()} cores, shared with "
        "others.\n\n"
    )
    text = about + table(rows, sorted(args.rows))
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "speed.md").write_text(text, encoding="utf-8")
    (args.out / "speed.json").write_text(json.dumps({"about": about.strip(), "rows": rows}, indent=1) + "\n")
    print(text)


if __name__ == "__main__":
    main()
