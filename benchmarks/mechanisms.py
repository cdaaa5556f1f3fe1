"""What mechanisms explain side by side, the product's and output perturbation, for tables of ``docs/decisions``.

    python benchmarks/mechanisms.py --n 1000 6000 30000 --scenarios S1 --seeds 1
    python benchmarks/mechanisms.py --mechanisms moments dp-aff --adjacency replace --n 3000 --scenarios S2

"output" is that of ``output_perturbation.py``: unlike the part "beside" of ``frontier.py``, with the ball. Seeded
noise: for simulation only. Cohorts of ``cohorts.py`` with the right range of X; δ = 1e-6, n declared.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from cohorts import GRID, SCENARIOS, WEIGHTS, bounds, cohort  # noqa: E402
from output_perturbation import OutputPerturbation  # noqa: E402

from fdadp import AdditiveFunctionOnFunction, Privacy  # noqa: E402
from fdadp.errors import FdadpWarning  # noqa: E402


def share(mechanism: str, scenario: str, n: int, epsilon: float, adjacency: str, seed: int) -> float:
    """Share of the explainable variance that one fit explains on 2,000 new curves."""
    train, test = cohort(scenario, n, seed)
    privacy = Privacy(epsilon, 1e-6, n=n, adjacency=adjacency, random_state=seed)
    public = bounds(scenario, "ok")
    how = OutputPerturbation() if mechanism == "output" else mechanism
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FdadpWarning)
        model = AdditiveFunctionOnFunction(privacy=privacy, bounds=public, mechanism=how, progress=False)
        model.fit(train.X, train.Y, s=GRID, t=GRID)
        loss = (((model.predict(test.X) - test.f) ** 2) @ WEIGHTS).mean()
    return float(1 - loss / (((test.f - test.f.mean(axis=0)) ** 2) @ WEIGHTS).mean())


def main(arguments: list[str] | None = None) -> str:
    """Print the table of means over scenarios and seeds, and return it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mechanisms", nargs="+", default=["output", "dp-aff"], help="dp-aff, moments, output")
    parser.add_argument("--n", type=int, nargs="+", default=[1000, 6000, 30_000])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--adjacency", default="zero-out", choices=("zero-out", "replace"))
    parser.add_argument("--scenarios", nargs="+", default=["S1"], choices=SCENARIOS)
    parser.add_argument("--seeds", type=int, default=4, help="cohorts a cell, seeds 3000, 3001, ...")
    options = parser.parse_args(arguments)
    rows = [f"| n | {' | '.join(f'{n:,}' for n in options.n)} |", "|---" * (len(options.n) + 1) + "|"]
    for mechanism in options.mechanisms:
        cells = [
            [
                share(mechanism, scenario, n, options.epsilon, options.adjacency, 3000 + seed)
                for scenario in options.scenarios
                for seed in range(options.seeds)
            ]
            for n in options.n
        ]
        rows.append(f"| {mechanism} | {' | '.join(f'{np.mean(cell):.2f}' for cell in cells)} |")
    table = "\n".join(rows)
    print(table)
    return table


if __name__ == "__main__":
    main()
