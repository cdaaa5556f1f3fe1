"""How often nominal 95 % hold where responses were observed at a few points: of complete new curves, and of means.

    python benchmarks/missing_responses.py [--points 5 10 20] [--n 200] [--cohorts 5]

Scenarios 1 to 3 of ``simulate_affr``, X without noise, about so many of 51 points of each response; smooth errors of
two sizes, or white ones; no privacy. ``AdditiveFunctionOnFunction(missing="fpca")``, and ``FunctionalRegression`` on
eigenfunctions. For ``docs/decisions/0005-gaps-of-y-on-eigenfunctions.md``.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fdadp import AdditiveFunctionOnFunction, FunctionalRegression, simulate_affr, terms


def sparse(y: np.ndarray, points: int, rng: np.random.Generator) -> np.ndarray:
    """About so many points of each curve, within two; the others are gaps."""
    out = np.full_like(y, np.nan)
    for i, row in enumerate(y):
        seen = rng.choice(row.size, rng.integers(points - 2, points + 3), replace=False)
        out[i, seen] = row[seen]
    return out


ERRORS = {
    "smooth, .3": {"smooth_noise": 0.3},
    "smooth, 1": {"smooth_noise": 1.0},
    "white, .5": {"smooth_noise": 0.0, "white_noise": 0.5},
}


def covered(scenario: int, points: int, n: int, seed: int, errors: dict[str, float]) -> list[float]:
    """Of each model: shares of new curves within intervals, of means within 1.96 standard errors; rmse of means."""
    train, new = (simulate_affr(scenario, m, seed + k, x_noise=0.0, **errors) for k, m in ((100, n), (900, 200)))
    x, xn = (data.X.data_matrix[..., 0] for data in (train, new))
    y = sparse(train.Y.data_matrix[..., 0], points, np.random.default_rng([seed, points]))
    observed, found = new.Y.data_matrix[..., 0], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        surface = AdditiveFunctionOnFunction(missing="fpca", progress=False).fit(x, y)
        model = FunctionalRegression([terms.sff("X", k=(5, "auto", "auto"))], response_basis="eigen")
        grids = {"X": np.linspace(0, 1, x.shape[1]), "Y": np.linspace(0, 1, y.shape[1])}
        model.fit({"X": x, "Y": y}, grids=grids)
        for own, data in ((surface, xn), (model, {"X": xn})):
            low, high = own.predict_interval(data)
            off = own.predict(data) - new.mean_function
            found += [
                float(((low <= observed) & (observed <= high)).mean()),
                float((np.abs(off) <= 1.96 * own.predict_se(data)).mean()),
                float((off**2).mean()),
            ]
    return found


def main(arguments: list[str] | None = None) -> str:
    """Print the table, and return it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, nargs="+", default=[5, 10, 20])
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--cohorts", type=int, default=5)
    parser.add_argument("--errors", nargs="+", default=list(ERRORS), choices=list(ERRORS))
    options = parser.parse_args(arguments)
    rows = ["| points of 51 | errors | scenario | curves | means | rmse | eigen: curves | means | rmse |"]
    rows.append("|---" * 9 + "|")
    print("\n".join(rows), flush=True)
    for points in options.points:
        for errors in options.errors:
            for scenario in (1, 2, 3):
                of_all = [covered(scenario, points, options.n, seed, ERRORS[errors]) for seed in range(options.cohorts)]
                means = np.mean(of_all, axis=0)
                means[[2, 5]] = np.sqrt(means[[2, 5]])
                shown = " | ".join(f"{value:.3f}" for value in means)
                rows.append(f"| {points} | {errors} | {scenario} | {shown} |")
                print(rows[-1], flush=True)
    return "\n".join(rows)


if __name__ == "__main__":
    main()
