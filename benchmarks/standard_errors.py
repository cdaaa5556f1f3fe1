"""How often standard errors of mean curves cover, and how far predictions are off, by the size of the bases.

    python benchmarks/standard_errors.py [--n 200 2000] [--cohorts 10] [--sizes 14 8]

Five simulators (``cohorts.py``), X without noise, so that E[Y | X] is known; nominal 95 %, 400 new curves a cohort. The
table of ``docs/decisions/0024-default-sizes-grow-with-n.md`` takes 20 cohorts of up to 200 curves and 10 of 2,000.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import cohorts  # noqa: E402

from fdadp import AdditiveFunctionOnFunction  # noqa: E402
from fdadp.errors import FdadpWarning  # noqa: E402

SIZES = {"7 x 7": {"n_basis_x": 7, "n_basis_s": 7}, "auto": {}}


def one(scenario: str, n: int, seed: int, settings: dict[str, int]) -> tuple[float, float]:
    """Coverage, and the root mean squared error of the predicted mean curves over their grid."""
    rng = np.random.default_rng([seed, n, cohorts.SCENARIOS.index(scenario)])
    train, new = (cohorts.draw(scenario, size, rng, x_noise=False) for size in (n, 400))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FdadpWarning)
        model = AdditiveFunctionOnFunction(progress=False, **settings).fit(train.X, train.Y)
        away, se = model.predict(new.X) - new.f, model.predict_se(new.X)
    return float((np.abs(away) <= 1.96 * se).mean()), float(np.sqrt((away**2).mean()))


def main(arguments: list[str] | None = None) -> str:
    """Print the table, and return it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, nargs="+", default=[200, 2000])
    parser.add_argument("--cohorts", type=int, default=10)
    parser.add_argument("--sizes", type=int, nargs=2, help="functions over x and over s of a third basis")
    parser.add_argument("--scenarios", nargs="+", default=list(cohorts.SCENARIOS), choices=cohorts.SCENARIOS)
    options = parser.parse_args(arguments)
    sizes = dict(SIZES)
    if options.sizes:
        over_x, over_s = options.sizes
        sizes[f"{over_x} x {over_s}"] = {"n_basis_x": over_x, "n_basis_s": over_s}
    rows = [f"| {' → '.join(sizes)} | {' | '.join(options.scenarios)} |", "|---" * (len(options.scenarios) + 1) + "|"]
    for n in options.n:
        means = [
            [
                (np.mean([c for c, _ in found]), np.median([e for _, e in found]))
                for settings in sizes.values()
                for found in [[one(scenario, n, seed, settings) for seed in range(options.cohorts)]]
            ]
            for scenario in options.scenarios
        ]
        for name, which, digits in (("coverage", 0, 2), ("error (median)", 1, 3)):
            cells = [" → ".join(f"{pair[which]:.{digits}f}" for pair in cell) for cell in means]
            rows.append(f"| {name}, n = {n:,} | {' | '.join(cells)} |")
    table = "\n".join(rows)
    print(table)
    return table


if __name__ == "__main__":
    main()
