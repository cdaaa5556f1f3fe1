"""How often 95 % intervals cover complete new curves where responses were observed at a few points.

    python benchmarks/missing_responses.py [--points 5 10 25] [--n 200] [--cohorts 5]

Scenarios 1 to 3 of ``simulate_affr``, X without noise, about so many of 51 points of each response,
``missing="fpca"``; no privacy. For ``docs/decisions/0005-gaps-of-y-on-eigenfunctions.md``.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fdadp import AdditiveFunctionOnFunction, simulate_affr
from fdadp.errors import FdadpWarning


def sparse(y: np.ndarray, points: int, rng: np.random.Generator) -> np.ndarray:
    """About so many points of each curve, within two; the others are gaps."""
    out = np.full_like(y, np.nan)
    for i, row in enumerate(y):
        seen = rng.choice(row.size, rng.integers(points - 2, points + 3), replace=False)
        out[i, seen] = row[seen]
    return out


def covered(scenario: int, points: int, n: int, seed: int) -> float:
    """Share of the values of complete new curves within their intervals."""
    train, new = (simulate_affr(scenario, m, seed + k, x_noise=0.0) for k, m in ((100, n), (900, 200)))
    y = sparse(train.Y.data_matrix[..., 0], points, np.random.default_rng([seed, points]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FdadpWarning)
        model = AdditiveFunctionOnFunction(missing="fpca", progress=False).fit(train.X.data_matrix[..., 0], y)
        low, high = model.predict_interval(new.X.data_matrix[..., 0])
    observed = new.Y.data_matrix[..., 0]
    return float(((low <= observed) & (observed <= high)).mean())


def main(arguments: list[str] | None = None) -> str:
    """Print the table, and return it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, nargs="+", default=[5, 10, 25])
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--cohorts", type=int, default=5)
    options = parser.parse_args(arguments)
    rows = ["| points observed of 51 | scenario 1 | scenario 2 | scenario 3 |", "|---|---|---|---|"]
    for points in options.points:
        means = [
            np.mean([covered(scenario, points, options.n, seed) for seed in range(options.cohorts)])
            for scenario in (1, 2, 3)
        ]
        rows.append(f"| {points} | {' | '.join(f'{mean:.3f}' for mean in means)} |")
    table = "\n".join(rows)
    print(table)
    return table


if __name__ == "__main__":
    main()
