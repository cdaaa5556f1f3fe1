"""Constants of the private learners, chosen on rows that no table scores.

    python benchmarks/learners/choose.py [--part naive-bayes histograms ...] [--out FOLDER]

Classifiers: the training part of Adult alone, split 80/20 at random (tables score Adult's test part, and Bank
Marketing), and for logistic regression German, Australian and Ionosphere besides. PCA: simulated rows. k-means: each
half of the digits by itself, with twice the ε so that n ε is that of the tables, to see whether both choose the same.
One constant is moved at a time, the others are the defaults. Means over splits and seeds: accuracy, AUC; captured
variance; adjusted Rand index.

Writes results/constants.md; of parts that are not run the tables that are there stay.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score, roc_auc_score

from fdadp import learners
from fdadp.datasets._data_locations import data_dir
from fdadp.learners import Numeric, naive_bayes

sys.path.append(str(Path(__file__).resolve().parents[1]))

from studies.learner_pairs import LEARNERS
from studies.learner_tasks import ADULT, TASKS, Task
from studies.scores import captured, split_rows

SPLITS = 2
Score = Callable[[float, dict[str, Any]], tuple[float, ...]]
Line = tuple[str, str, dict[float, tuple[float, ...]]]


def adult() -> Task:
    """Rows of Adult's training part only, to be split at random."""
    return replace(TASKS["adult"](False), X_test=None, y_test=None)


def classifier(name: str, task: Task, splits: int = SPLITS) -> Score:
    """Mean accuracy and AUC of one learner, with settings of its own on top of the task's."""
    item = next(one for one in LEARNERS if one.name == name)
    encode = item.encode(task)
    parts = [split_rows(task, repeat, 99) for repeat in range(splits)]
    ready = [(encode(X), y, encode(X_test), y_test) for X, y, X_test, y_test in parts]

    def score(epsilon: float, settings: dict[str, Any]) -> tuple[float, ...]:
        found = []
        for seed, (X, y, X_test, y_test) in enumerate(ready):
            known = item.public(task) | {"epsilon": epsilon, "delta": task.delta, "random_state": seed}
            model = getattr(learners, name)(**(known | settings)).fit(X, y)
            second = np.asarray(y_test) == task.classes[1]
            ranking = (
                model.decision_function(X_test)
                if hasattr(model, "decision_function")
                else model.predict_proba(X_test)[:, 1]
            )
            right = (np.asarray(model.predict(X_test)) == task.classes[1]) == second
            found.append((right.mean(), roc_auc_score(second, ranking)))
        return tuple(np.mean(found, axis=0))

    return score


def moved(score: Score, epsilons: list[float], grid: dict[str, list[Any]], what: str = "") -> Iterator[Line]:
    """The defaults, and each constant at other values."""
    yield what, "defaults", {e: score(e, {}) for e in epsilons}
    for name, values in grid.items():
        for value in values:
            yield what, f"{name} = {value}", {e: score(e, {name: value}) for e in epsilons}


def naive_bayes_lines() -> Iterator[Line]:
    task = adult()
    score = classifier("DPHistogramNB", task, 4)
    epsilons = [0.01, 0.1, 1.0]
    usual = naive_bayes._APART
    for value in (0.03, 0.1, 0.3):
        naive_bayes._APART = value
        yield "histogram NB", f"classes {value:g} apart", {e: score(e, {}) for e in epsilons}
    naive_bayes._APART = usual
    gains = {"capital-gain": 1e5, "capital-loss": 5e3}
    for bins in (8, 16, 32):
        yield "histogram NB", f"{bins} even bins", {e: score(e, {"n_bins": bins}) for e in epsilons}
        logs = ADULT | {name: Numeric(0, top, edges=bins, log1p=True) for name, top in gains.items()}
        yield (
            "histogram NB",
            f"{bins} bins, of gain and loss in log1p",
            {e: score(e, {"n_bins": bins, "features": logs}) for e in epsilons},
        )
    for least in (10, 100, 1000):
        cuts = {n: [1, *np.geomspace(least, top, 15)[:-1].tolist()] for n, top in gains.items()}
        own = ADULT | {name: Numeric(0, gains[name], edges=edges) for name, edges in cuts.items()}
        text = f"16 bins, of gain and loss 0 and from {least} in equal ratios"
        yield "histogram NB", text, {e: score(e, {"features": own}) for e in epsilons}


def histograms_lines() -> Iterator[Line]:
    grid = {
        "prior_sd": [0.35, 1.4],
        "smooth_sd": [0.15, 0.3, 1.2],
        "learning_rate": [0.5, 1.0],
        "count_share": [0.05, 0.3],
        "n_passes": [2, 8],
    }
    yield from moved(classifier("DPAdditiveHistograms", adult()), [0.1, 0.5, 1.0], grid, "additive histograms")


def stumps_lines() -> Iterator[Line]:
    grid = {"select_share": [0.5, 0.85], "max_step": [1.0, 4.0], "n_rounds": [10, 25, 50]}
    yield from moved(classifier("DPBoostedStumps", adult()), [0.1, 0.5, 1.0], grid, "boosted stumps")


def small(name: str) -> Task:
    """A table of shared data: columns scaled to [0, 1] by their range, as if that were public."""
    table = pd.read_csv(data_dir() / f"{name}.csv.gz").to_numpy(dtype=np.float64)
    X, y = table[:, 1:], np.where(table[:, 0] > 0, 1, -1)
    X = (X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), 1e-9)
    return Task(name, "classification", X, y, None, None, {}, (-1, 1), 1e-5)


def logistic_lines() -> Iterator[Line]:
    from fdadp.learners.logistic_regression import default_regularization as usual

    for name in ("adult", "german", "australian", "ionosphere"):
        task = adult() if name == "adult" else small(name)
        item = next(one for one in LEARNERS if one.name == "DPLogisticRegression")
        encode = item.encode(task) if name == "adult" else lambda X: X
        norm = item.public(task)["data_norm"] if name == "adult" else math.sqrt(task.X.shape[1])
        splits = SPLITS if name == "adult" else 20
        parts = [split_rows(task, repeat, 99) for repeat in range(splits)]
        ready = [(encode(X), y, encode(X_test), y_test) for X, y, X_test, y_test in parts]
        n = None if name == "adult" else len(ready[0][1])

        def score(epsilon: float, settings: dict[str, Any]) -> tuple[float, ...]:
            settings = dict(settings)
            d = ready[0][0].shape[1]  # noqa: B023
            ridge = settings.pop("factor", 1.0) * usual(epsilon, task.delta, d + 1, n=n)  # noqa: B023
            found = []
            for seed, (X, y, X_test, y_test) in enumerate(ready):  # noqa: B023
                model = learners.DPLogisticRegression(
                    epsilon=epsilon,
                    delta=task.delta,  # noqa: B023
                    classes=list(task.classes),  # noqa: B023
                    data_norm=norm,  # noqa: B023
                    regularization=max(ridge, 0.3 / math.expm1(epsilon)),
                    random_state=seed,
                    **settings,
                ).fit(X, y)
                second = np.asarray(y_test) == task.classes[1]  # noqa: B023
                right = (model.decision_function(X_test) > 0) == second
                found.append((right.mean(), roc_auc_score(second, model.decision_function(X_test))))
            return tuple(np.mean(found, axis=0))

        grid = {"factor": [0.25, 0.5, 2.0, 4.0], "intercept_scaling": [0.25, 1.0]}
        yield from moved(score, [0.1, 0.5, 1.0, 5.0], grid, f"logistic regression, {name}")


def pca_lines() -> Iterator[Line]:
    for offset in (0.0, 0.25, 0.5):
        rng = np.random.default_rng(7)
        # Rows in 64 dimensions of norm about 0.6 with a spectrum that falls off, about a mean at this distance from 0.
        cloud = rng.standard_normal((1797, 64)) / np.arange(1, 65) ** 0.75
        cloud *= 0.6 / np.sqrt((cloud**2).sum(axis=1).mean())
        middle = rng.standard_normal(64)
        X = (cloud + offset * middle / np.linalg.norm(middle)) @ np.linalg.qr(rng.standard_normal((64, 64)))[0]

        def score(epsilon: float, settings: dict[str, Any], X: Any = X) -> tuple[float, ...]:
            fits = (
                learners.DPPCA(
                    epsilon=epsilon, delta=1e-5, n_components=10, data_norm=1.0, random_state=seed, **settings
                ).fit(X)
                for seed in range(10)
            )
            return (float(np.mean([captured(np.cov(X.T), fit.components_) for fit in fits])),)

        grid = {"const": [1 / 16, 1 / 6, 1 / 4, 1 / 2]}
        yield from moved(score, [0.1, 0.5, 1.0, 5.0], grid, f"PCA, mean at {offset:g} B")


def k_means_lines() -> Iterator[Line]:
    X, labels = load_digits(return_X_y=True)
    for half in (0, 1):
        rows, own = X[half::2] / 16, labels[half::2]

        def score(epsilon: float, settings: dict[str, Any], rows: Any = rows, own: Any = own) -> tuple[float, ...]:
            known = {"n_clusters": 10, "data_norm": 3.0, "center": 0.3, "projection": 6}
            fits = (
                learners.DPKMeans(epsilon=2 * epsilon, delta=1e-5, random_state=seed, **(known | settings)).fit(rows)
                for seed in range(10)
            )
            return (float(np.mean([adjusted_rand_score(own, fit.predict(rows)) for fit in fits])),)

        epsilons = [0.5, 1.0, 5.0]
        what = f"k-means, {'even' if half == 0 else 'odd'} rows of the digits"
        yield from moved(
            score,
            epsilons,
            {"projection": [4, 10, None], "n_iter": [2, 3, 6], "split": [0.6, 0.9], "projection_norm": [1.0, 2.0, 3.0]},
            what,
        )
        for center, norm in ((0.5, 4.0), (0.5, 3.0), (0.3, 2.5), (0.3, 3.5), (0.3, 4.0)):
            settings = {"center": center, "data_norm": norm}
            yield what, f"ball of {norm:g} about {center:g}", {e: score(e, settings) for e in epsilons}


PARTS: dict[str, Callable[[], Iterator[Line]]] = {
    "naive-bayes": naive_bayes_lines,
    "histograms": histograms_lines,
    "stumps": stumps_lines,
    "logistic": logistic_lines,
    "pca": pca_lines,
    "k-means": k_means_lines,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent / "results")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    path = args.out / "constants.md"
    args.out.mkdir(parents=True, exist_ok=True)
    kept = path.read_text(encoding="utf-8").split("\n\n")[1:] if path.is_file() else []
    tables = {part.split("|")[1].strip(): part.strip() for part in kept}
    for part in args.part:
        start = time.perf_counter()
        lines: dict[str, list[str]] = {}
        for what, setting, scores in PARTS[part]():
            head = [
                f"| {what} | " + " | ".join(f"ε = {e:g}" for e in scores) + " |",
                "|---" * (len(scores) + 1) + "|",
            ]
            cells = " | ".join(", ".join(f"{x:.4f}" for x in found) for found in scores.values())
            lines.setdefault(what, head).append(f"| {setting} | {cells} |")
            print(lines[what][-1], flush=True)
        tables |= {what: "\n".join(table) for what, table in lines.items()}
        about = str(__doc__).split("\n\n")[2].replace("\n", " ")
        path.write_text("\n\n".join([about, *tables.values()]) + "\n", encoding="utf-8")
        print(f"{part}: {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
