"""Two choices of the learners, asked again: one joint second moment or AdaSSP, and what accounting in zCDP costs.

    python benchmarks/learners/variants.py [--splits 50] [--draws 20]

Linear regression on diabetes, mean R2 over splits; ten components of the digits, captured variance over draws of the
noise, with a budget in zCDP and in Gaussian DP. δ = 1e-5, seeded noise: for simulation only. The tables of
``docs/decisions``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from sklearn.metrics import r2_score

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.append(str(Path(__file__).resolve().parents[1]))

from studies.learner_tasks import TASKS
from studies.scores import captured, split_rows

from fdadp.learners import DPPCA, DPLinearRegression
from fdadp.privacy import Budget

EPSILONS = (0.1, 0.5, 1.0, 5.0)
DELTA = 1e-5


def linear_regression(splits: int) -> dict[str, list[float]]:
    """Mean R2 by mechanism, one for each ε."""
    task = TASKS["diabetes"](False)
    found: dict[str, list[float]] = {}
    for mechanism in ("moments", "adassp"):
        means = []
        for epsilon in EPSILONS:
            scores = []
            for split in range(splits):
                X, y, X_test, y_test = split_rows(task, split, 0)
                settings = {"data_norm": 0.25, "bounds_y": (0, 400), "mechanism": mechanism, "random_state": split}
                model = DPLinearRegression(epsilon=epsilon, delta=DELTA, **settings).fit(X, y)
                scores.append(r2_score(y_test, model.predict(X_test)))
            means.append(float(np.mean(scores)))
        found[mechanism] = means
    return found


def components(draws: int) -> dict[str, list[float]]:
    """Mean captured variance by measure of the budget, one for each ε."""
    task = TASKS["digits"](False)
    covariance = np.cov(task.X.T)

    def mean(epsilon: float, accounting: str) -> float:
        settings = {"n_components": 10, "data_norm": 4.0, "center": 0.5, "epsilon": epsilon, "delta": DELTA}
        found = []
        for seed in range(draws):
            budget = Budget(epsilon, DELTA, accounting=accounting)
            model = DPPCA(random_state=seed, budget=budget, **settings).fit(task.X)
            found.append(captured(covariance, model.components_))
        return float(np.mean(found))

    names = {"zCDP": "zcdp", "Gaussian DP": "gdp"}
    return {name: [mean(e, accounting) for e in EPSILONS] for name, accounting in names.items()}


def main(arguments: list[str] | None = None) -> str:
    """Print both tables, and return them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=50)
    parser.add_argument("--draws", type=int, default=20)
    options = parser.parse_args(arguments)
    lines = []
    for title, rows in (
        ("R2, diabetes", linear_regression(options.splits)),
        ("captured variance, digits", components(options.draws)),
    ):
        lines += [
            f"| {title} | " + " | ".join(f"ε = {e:g}" for e in EPSILONS) + " |",
            "|---" * (len(EPSILONS) + 1) + "|",
        ]
        lines += [f"| {name} | " + " | ".join(f"{v:.3f}" for v in values) + " |" for name, values in rows.items()]
        lines.append("")
    table = "\n".join(lines)
    print(table)
    return table


if __name__ == "__main__":
    main()
