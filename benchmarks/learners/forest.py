"""Forests of public random trees beside the other learners, at their defaults, on data sets that chose no constant.

    python benchmarks/learners/forest.py [--splits 3] [--epsilon 0.1 1 5] [--only wine ...]

And on a simulated interaction, of which no feature says anything by itself. Results: results/forest.md.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from unseen import ours
from unseen_scores import classified, r2
from unseen_sets import DELTA, UnseenTask, split, unseen

from fdadp.learners import DPForestClassifier, DPForestRegressor

HERE = Path(__file__).resolve().parent
METRICS = {"classification": "AUC", "regression": "R2"}


def forest(task: UnseenTask, epsilon: float, number: int) -> dict[str, float]:
    """Fit and score."""
    X, y, X_test, y_test = split(task, number)
    common = {"epsilon": epsilon, "delta": DELTA, "random_state": number, "bounds": task.bounds}
    if task.kind == "classification":
        model = DPForestClassifier(classes=list(range(int(task.y.max()) + 1)), **common)
        return classified(y_test, model.fit(X, y).predict_proba(X_test))
    return r2(y_test, DPForestRegressor(bounds_y=task.bounds_y, **common).fit(X, y).predict(X_test))


def interactions(kind: str) -> list[UnseenTask]:
    """The sign of the product of two of five features, or the product."""
    X = np.random.default_rng(0).uniform(-1, 1, (10_000, 5))
    product = X[:, 0] * X[:, 1]
    noise = 0.1 * np.random.default_rng(1).standard_normal(len(X))
    y = (product > 0).astype(int) if kind == "classification" else product + noise
    return [UnseenTask("simulated interaction", kind, X, y)]


def main(argv: list[str] | None = None) -> str:
    """Write the table; returns it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 1.0, 5.0])
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    lines = [
        f"Means over {args.splits} splits, δ = {DELTA:g}, all at their defaults. The best of the others was chosen by",
        "these scores, the forest was not.",
        "",
        "| AUC, or R² | " + " | ".join(f"ε = {e:g}: forest | best other" for e in args.epsilon) + " |",
        "|---" * (1 + 2 * len(args.epsilon)) + "|",
    ]
    for kind, metric in METRICS.items():
        for task in [*unseen(kind), *interactions(kind)]:
            if args.only and task.name not in args.only:
                continue
            cells = []
            for epsilon in args.epsilon:
                own = np.mean([forest(task, epsilon, k)[metric] for k in range(args.splits)])
                rows = [
                    {"method": name, metric: fit()[metric]}
                    for k in range(args.splits)
                    for name, fit in ours(task, epsilon, k).items()
                    if "Forest" not in name
                ]
                best = pd.DataFrame(rows).groupby("method")[metric].mean()
                cells += [f"{own:.3f}", f"{best.max():.3f} {best.idxmax()[2:]}"]
            lines.append(f"| {task.name} | " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
    text = "\n".join(lines) + "\n"
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "forest.md").write_text(text, encoding="utf-8")
    return text


if __name__ == "__main__":
    main()
