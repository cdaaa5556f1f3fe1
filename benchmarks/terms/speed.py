"""Time of whole fits of the family of terms, REML and all starts among it, beside refund's recorded times.

    python benchmarks/terms/speed.py [--rounds 5] [--reference DIR]

Simulated curves with white errors; the least of `--rounds` wall times, one BLAS thread. refund's
and mgcv's times were recorded on another machine (``timings.json`` of the reference folder): an order of magnitude.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from fdadp import FunctionalRegression, terms


def curves(n: int, points: int, seed: int = 0) -> np.ndarray:
    """Smooth random curves, shape (n, points)."""
    rng = np.random.default_rng(seed)
    s = np.linspace(0, 1, points)
    waves = np.stack([np.cos(k * np.pi * s) / (1 + k) for k in range(8)])
    return rng.normal(size=(n, 8)) @ waves + 0.05 * rng.normal(size=(n, points))


def cohort(n: int, s_points: int = 101, t_points: int = 101) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Columns and their grids."""
    rng = np.random.default_rng(n)
    s, t = np.linspace(0, 1, s_points), np.linspace(0, 1, t_points)
    x, z = curves(n, s_points), rng.normal(size=(2, n))
    beta = np.sin(np.pi * s)[:, None] * np.cos(np.pi * t)
    mean = x @ beta / s_points + np.sin(3 * z[0])[:, None] * t + z[1][:, None] * t**2
    data = {"X": x, "Xt": curves(n, t_points, 1), "z": z[0], "x": z[1], "Y": mean + 0.3 * rng.normal(size=mean.shape)}
    return data, {"X": s, "Xt": t, "Y": t}


MODELS: dict[str, Callable[[], list]] = {
    "ff": lambda: [terms.ff("X")],
    "sff": lambda: [terms.sff("X")],
    "ff, s < t": lambda: [terms.ff("X", limits="s<t")],
    "concurrent": lambda: [terms.concurrent("Xt")],
    "ff + concurrent + s(z) + x (7 smoothing parameters)": lambda: [
        terms.ff("X"),
        terms.concurrent("Xt"),
        terms.s("z"),
        terms.linear("x"),
    ],
}

CASES = [
    ("ff", 50, 101, 101, "pffr_ff"),
    ("ff", 100, 101, 101, "pffr_ff"),
    ("ff", 300, 101, 101, "pffr_ff"),
    ("ff", 1000, 101, 101, "pffr_ff"),
    ("sff", 50, 101, 101, "pffr_sff"),
    ("sff", 100, 101, 101, "pffr_sff"),
    ("sff", 1000, 101, 101, None),
    ("ff, s < t", 1000, 101, 101, None),
    ("concurrent", 1000, 101, 101, None),
    ("ff + concurrent + s(z) + x (7 smoothing parameters)", 1000, 101, 101, None),
    ("ff", 100_000, 101, 101, None),
    ("ff", 600, 101, 5000, None),
    ("ff", 600, 10_000, 101, None),
]


def seconds(fit: Callable[[], object], rounds: int) -> float:
    """Least wall time of a fit."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        fit()
        times.append(time.perf_counter() - start)
    return min(times)


def recorded(folder: str | None) -> dict[tuple[str, int], float]:
    """Seconds of refund by task and n, where they were recorded."""
    path = Path(folder or "") / "timings.json"
    if not (folder and path.is_file()):
        return {}
    rows = json.loads(path.read_text())["rows"]
    return {(row["task"], row["n"]): row["seconds"] for row in rows if row["seconds"]}


def main(arguments: list[str] | None = None) -> pd.DataFrame:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--most", type=int, default=10**9, help="largest number of values in X and Y")
    parser.add_argument("--reference", default=os.environ.get("FDADP_REFERENCE"))
    asked = parser.parse_args(arguments)
    theirs = recorded(asked.reference)
    found = []
    with threadpool_limits(1, "blas"):
        for name, n, s_points, t_points, task in CASES:
            if n * (s_points + t_points) > asked.most:
                continue
            data, grids = cohort(n, s_points, t_points)
            best = seconds(lambda: FunctionalRegression(MODELS[name]()).fit(data, grids=grids), asked.rounds)  # noqa: B023
            other = theirs.get((task or "", n))
            found.append((name, n, f"{s_points} x {t_points}", best, other, other and round(other / best)))
            print("{:52s} {:7d} {:12s} {:9.3f} s  refund {}".format(*found[-1][:4], other or "-"), flush=True)
    return pd.DataFrame(found, columns=["terms", "n", "points", "seconds", "refund", "ratio"])


if __name__ == "__main__":
    print(main().to_string(index=False, float_format="{:.3g}".format))
