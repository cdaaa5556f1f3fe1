"""How often fits say that what they released speaks against what was declared: ordinary fits, and total failures.

    python benchmarks/learners/doubts.py [--seeds 200]

Tables with two classes and a number, of which a linear function of six features explains a part. An ordinary fit that
says anything is a false alarm; a fit with labels, categories or units that are not those of the data should say so.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fdadp import learners
from fdadp.errors import PublicInputWarning

FEATURES = 6
SIZES = (300, 1000, 10_000)
EPSILONS = (0.1, 1.0)
CLASSES, BOX = {"classes": [0, 1]}, {"bounds": (-3, 3)}
LEARNERS: dict[str, Callable[..., Any]] = {
    "Gaussian NB": lambda **more: learners.DPGaussianNB(**CLASSES, **BOX, **more),
    "histogram NB": lambda **more: learners.DPHistogramNB(**CLASSES, **BOX, **more),
    "boosted stumps": lambda **more: learners.DPBoostedStumps(**CLASSES, **BOX, **more),
    "additive histograms": lambda **more: learners.DPAdditiveHistograms(**CLASSES, **BOX, **more),
    "forest": lambda **more: learners.DPForestClassifier(**CLASSES, **BOX, **more),
    "logistic": lambda **more: learners.DPLogisticRegression(**CLASSES, **BOX, **more),
    "logistic, gradient": lambda **more: learners.DPLogisticRegression(mechanism="gradient", **CLASSES, **BOX, **more),
    "forest, regression": lambda **more: learners.DPForestRegressor(bounds_y=(-4, 4), **BOX, **more),
    "linear": lambda **more: learners.DPLinearRegression(bounds_y=(-4, 4), **BOX, **more),
    "additive regression": lambda **more: learners.DPAdditiveRegressor(bounds_y=(-4, 4), **BOX, **more),
    "PCA": lambda **more: learners.DPPCA(data_norm=5.0, **more),
    "k-means": lambda **more: learners.DPKMeans(n_clusters=3, **BOX, **more),
}
NUMBERS = {"forest, regression", "linear", "additive regression"}
FAILURES = {
    "no label fits": lambda X, y: (X, np.where(y > 0, "yes", "no")),
    "one label fits": lambda X, y: (X, y + 1),
    "values missing": lambda X, y: (X * np.nan, y),
    "beyond the bounds": lambda X, y: (1000 * (X + 10), y),
    "in a thousandth of the bounds": lambda X, y: (X / 1000 + 0.5, y),
}


def people(n: int, seed: int, share: float) -> tuple[Any, Any, Any]:
    """X (n, 6), labels of which `share` are 1, and numbers."""
    rng = np.random.default_rng(seed)
    X = rng.normal(0, 1, (n, FEATURES))
    number = X @ np.array([1.0, -0.5, 0.25, 0, 0, 0]) + 0.5 * rng.standard_normal(n)
    return X, (number > np.quantile(number, 1 - share)).astype(int), number


def alarms(name: str, n: int, epsilon: float, declared: bool, share: float, failure: str | None, seeds: int) -> int:
    """In how many fits something was said."""
    said = 0
    for seed in range(seeds):
        X, y, number = people(n, seed, share)
        target = number if name in NUMBERS else y
        if failure is not None:
            X, target = FAILURES[failure](X, target)
        of_n = {"n": n} if declared else {}
        delta = 1e-6 if seed % 2 else None
        model = LEARNERS[name](epsilon=epsilon, delta=delta, random_state=seed, **of_n)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PublicInputWarning)
            said += bool(model.fit(X, target).doubts_)
    return said


def lines(seeds: int) -> Iterator[str]:
    """The tables."""
    settings = [(n, epsilon) for epsilon in EPSILONS for n in SIZES]
    head = " | ".join(f"{n:,} · {epsilon:g}" for n, epsilon in settings)
    for title, declared, share in (
        ("private n, half of the rows in each class", False, 0.5),
        ("private n, a tenth of the rows in class 1", False, 0.1),
        ("declared n, half of the rows in each class", True, 0.5),
    ):
        yield f"\nFalse alarms in {seeds} fits, half of them with δ; {title} (n · ε in the heads):\n"
        yield f"| learner | {head} |\n|---|{'---|' * len(settings)}"
        for name in LEARNERS:
            found = [alarms(name, n, epsilon, declared, share, None, seeds) for n, epsilon in settings]
            yield f"| {name} | {' | '.join(map(str, found))} |"
    few = seeds
    for title, declared in (("private", False), ("declared", True)):
        yield f"\nTotal failures that are said, of {few} fits; ε = 1, {title} n = 1,000, and behind the comma 10,000:\n"
        yield f"| learner | {' | '.join(FAILURES)} |\n|---|{'---|' * len(FAILURES)}"
        for name in LEARNERS:
            unlabelled = name in NUMBERS or name in ("PCA", "k-means")
            cells = [
                ""
                if unlabelled and "label" in failure
                else ", ".join(str(alarms(name, n, 1.0, declared, 0.5, failure, few)) for n in SIZES[1:])
                for failure in FAILURES
            ]
            yield f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200)
    for line in lines(parser.parse_args().seeds):
        print(line, flush=True)


if __name__ == "__main__":
    main()
