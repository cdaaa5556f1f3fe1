"""What limiting private predictions far from the mean curve gives and costs: other limits on the same fits.

    python benchmarks/far_predictions.py [--n 300 1000] [--epsilon 1] [--cohorts 16]

Each private fit predicts 2,000 new curves under every limit. Printed, beside no limit at all, in thousandths of the
share explained: the mean change with its standard error, and the largest gain and loss of a single fit. Seeded noise:
for simulation only. The table of ``docs/decisions/0016``.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from cohorts import GRID, SCENARIOS, WEIGHTS, bounds, cohort  # noqa: E402

from fdadp import AdditiveFunctionOnFunction, Privacy  # noqa: E402
from fdadp.errors import FdadpWarning  # noqa: E402
from fdadp.functional.tables.curve_inputs import as_curves  # noqa: E402
from fdadp.terms.records import Records  # noqa: E402

Limit = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""What is kept of the excess e (n,) of a prediction beyond the limit, whose variance is v (n,)."""

LIMITS: dict[str, tuple[float, Limit]] = {
    "2 sd, keeps e³/(e² + v)": (2.0, lambda e, v: e**3 / (e**2 + v)),
    "2.5 sd, keeps e³/(e² + v)": (2.5, lambda e, v: e**3 / (e**2 + v)),
    "3 sd, keeps e³/(e² + v)": (3.0, lambda e, v: e**3 / (e**2 + v)),
    "2.5 sd, keeps e³/(e² + v/4)": (2.5, lambda e, v: e**3 / (e**2 + v / 4)),
    "2.5 sd, with 4 v": (2.5, lambda e, v: e**3 / (e**2 + 4 * v)),
    "2.5 sd, keeps nothing": (2.5, lambda e, v: 0 * e),
    "3 sd, keeps nothing": (3.0, lambda e, v: 0 * e),
}
"""Standard deviations of Y from the mean curve, and what is kept beyond."""


def changes(scenario: str, n: int, epsilon: float, seed: int) -> list[float]:
    """Change of the share explained by each limit, on one private fit."""
    train, test = cohort(scenario, n, seed)
    privacy = Privacy(epsilon, 1e-6, n=n, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FdadpWarning)
        model = AdditiveFunctionOnFunction(privacy=privacy, bounds=bounds(scenario, "ok"), progress=False)
        model.fit(train.X, train.Y, s=GRID, t=GRID)
        standard_errors = model.predict_se(test.X)
        form, coefficients = model.fitted_.surface.fit.form, model.fitted_.surface.fit.coefficients
        free = form.predictor(Records(len(test.Y), {"X": as_curves(test.X, GRID, name="X")}), coefficients)
    mean = model.mean_
    norms = np.sqrt((free - mean) ** 2 @ model.eigenbasis_.weights)
    sd = math.sqrt(model.eigenvalues_.sum() + model.noise_variance_ * (GRID[-1] - GRID[0]))
    variance = (standard_errors**2) @ WEIGHTS
    total = (((test.f - test.f.mean(axis=0)) ** 2) @ WEIGHTS).mean()

    def share(kept: np.ndarray) -> float:
        return float(1 - (((mean + (free - mean) * kept[:, None] - test.f) ** 2) @ WEIGHTS).mean() / total)

    without = share(np.ones(len(free)))
    found = []
    for farthest, limit in LIMITS.values():
        e = np.maximum(norms - farthest * sd, 1e-12)
        kept = np.where(norms > farthest * sd, (farthest * sd + limit(e, variance)) / norms, 1.0)
        found.append(1000 * (share(kept) - without))
    return found


def main(arguments: list[str] | None = None) -> str:
    """Print the table, and return it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, nargs="+", default=[300, 1000])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--cohorts", type=int, default=16)
    parser.add_argument("--scenarios", nargs="+", default=list(SCENARIOS), choices=SCENARIOS)
    options = parser.parse_args(arguments)
    lines = []
    for n in options.n:
        tasks = [(scenario, seed) for scenario in options.scenarios for seed in range(8000, 8000 + options.cohorts)]
        found = np.array([changes(scenario, n, options.epsilon, seed) for scenario, seed in tasks])
        lines += [f"| n = {n:,} | mean | largest gain | largest loss |", "|---|---|---|---|"]
        for name, column in zip(LIMITS, found.T, strict=True):
            error = column.std(ddof=1) / math.sqrt(column.size) if column.size > 1 else math.nan
            gain, loss = column.max(), column.min()
            best, worst = tasks[int(column.argmax())][0], tasks[int(column.argmin())][0]
            lines.append(
                f"| {name} | {column.mean():+.1f} ({error:.1f}) | {gain:+.0f}, {best} | {loss:+.0f}, {worst} |"
            )
        lines.append("")
    table = "\n".join(lines)
    print(table)
    return table


if __name__ == "__main__":
    main()
