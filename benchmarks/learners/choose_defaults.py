"""Defaults that hold for small and large n, chosen on unlike data sets that no table scores.

    python benchmarks/learners/choose_defaults.py [--part naive-bayes logistic ...] [--splits 4] [--out FOLDER]

Classification: Adult's training part (five numbers; 300, 3,000 and 26,000 rows: tables score its test part), Pima
diabetes (768 × 8), iris (150 × 4, three classes), ISOLET's training part (ten of its letters, 40 of its features).
Regression: the same Adult rows (hours by the other numbers), star98 of statsmodels (303 × 12), a simulation; additive
regression also on Friedman's first function with other seeds than the tables', his third, and correlated features.
"splines": linear regression on hats of as many public knots a feature, the one-matrix way to effects of any shape.
k-means: iris, ISOLET, simulated clouds in 2, 5 and 10 dimensions. One setting is moved at a time.
Means over splits: AUC and log-loss; R²; mean squared distance over the exact one. Writes results/defaults.md.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.cluster import KMeans
from sklearn.preprocessing import SplineTransformer
from unseen_scores import classified, inertia, r2
from unseen_sets import UnseenTask, split

from fdadp import learners
from fdadp.datasets._data_locations import data_dir
from fdadp.learners import Numeric

DELTA = 1e-5
EPSILONS = (0.1, 0.5, 1.0, 5.0)
NUMBERS = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
LETTERS, PLACES = 10, 40


def adult(n: int) -> UnseenTask:
    table = pd.read_csv(data_dir() / "adult_train.csv.gz").sample(n, random_state=0)
    names = {c.replace("_", "-").strip(): c for c in table.columns}
    X = table[[names[c] for c in NUMBERS]].to_numpy(float)
    X[:, 2:4] = np.log1p(X[:, 2:4])
    rich = table[table.columns[-1]].astype(str).str.contains(">").to_numpy(int)
    return UnseenTask(f"Adult, n = {n}", "classification", X, rich)


def classification() -> list[UnseenTask]:
    pima = pd.read_csv(data_dir() / "diabetes.csv.gz").to_numpy(float)
    letters = pd.read_csv(data_dir() / "isolet_train.csv.gz").drop(columns="set")
    letters = letters[letters["label"] <= LETTERS]
    spoken = letters.drop(columns="label").to_numpy(float)
    return [
        *(adult(n) for n in (300, 3000, 26_000)),
        UnseenTask("Pima", "classification", pima[:, 1:], (pima[:, 0] < 0).astype(int)),
        UnseenTask("iris", "classification", *datasets.load_iris(return_X_y=True)),
        UnseenTask(
            "ISOLET",
            "classification",
            spoken[:, :: spoken.shape[1] // PLACES][:, :PLACES],
            letters["label"].to_numpy(int) - 1,
        ),
    ]


def regression() -> list[UnseenTask]:
    import statsmodels.api as sm

    star = sm.datasets.star98.load_pandas().data.iloc[:, :14].to_numpy(float)
    rng = np.random.default_rng(5)
    X = rng.normal(size=(2000, 6))
    y = X @ [1.0, -1.0, 0.5, 0.0, 0.0, 0.0] + rng.normal(size=2000)
    people = [adult(n) for n in (300, 3000, 26_000)]
    hours = [UnseenTask(t.name, "regression", np.delete(t.X, 4, axis=1), t.X[:, 4]) for t in people]
    share = star[:, 0] / (star[:, 0] + star[:, 1])
    return [*hours, UnseenTask("star98", "regression", star[:, 2:], share), UnseenTask("simulated", "regression", X, y)]


def curved() -> list[UnseenTask]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(6000, 8)) @ np.linalg.cholesky(0.5 * np.eye(8) + 0.5).T
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 / 2 + np.abs(X[:, 2]) + X[:, 3] + (X[:, 4] > 0) + 1.5 * rng.normal(size=6000)
    friedman = [(f"friedman1, n = {n}", datasets.make_friedman1(n, noise=1.0, random_state=n)) for n in (500, 3000)]
    friedman.append(("friedman3", datasets.make_friedman3(4000, noise=0.2, random_state=7)))
    simulated = [UnseenTask(name, "regression", *rows) for name, rows in friedman]
    return [*regression(), *simulated, UnseenTask("correlated", "regression", X, y)]


def clouds() -> list[UnseenTask]:
    found = [t for t in classification() if t.name in ("iris", "ISOLET")]
    found = [UnseenTask(t.name, "rows", t.X[:, :8]) for t in found]
    for d, n in ((2, 1000), (5, 3000), (10, 10_000)):
        rng = np.random.default_rng(d)
        centers = rng.uniform(-3, 3, (6, d))
        found.append(
            UnseenTask(f"clouds, d = {d}", "rows", centers[rng.integers(0, 6, n)] + rng.normal(size=(n, d)) / 2)
        )
    return found


Score = Callable[[UnseenTask, float, dict[str, Any], int], tuple[float, ...]]


def classify(name: str) -> Score:
    def score(task: UnseenTask, epsilon: float, settings: dict[str, Any], number: int) -> tuple[float, ...]:
        X, y, X_test, y_test = split(task, number)
        known = {"epsilon": epsilon, "delta": DELTA, "random_state": number}
        known["classes"] = list(range(int(task.y.max()) + 1))
        if name in ("DPGaussianNB", "DPLogisticRegression"):
            known["bounds"] = task.bounds
        else:
            known["features"] = [Numeric(a, b) for a, b in zip(*task.bounds, strict=True)]
        model = getattr(learners, name)(**(known | settings)).fit(X, y)
        found = classified(y_test, model.predict_proba(X_test))
        return found["AUC"], found["log-loss"]

    return score


def regress(name: str) -> Score:
    def score(task: UnseenTask, epsilon: float, settings: dict[str, Any], number: int) -> tuple[float, ...]:
        X, y, X_test, y_test = split(task, number)
        known = {"epsilon": epsilon, "delta": DELTA, "bounds": task.bounds, "bounds_y": task.bounds_y}
        model = getattr(learners, name)(**(known | settings), random_state=number).fit(X, y)
        return (r2(y_test, model.predict(X_test))["R2"],)

    return score


def hats(task: UnseenTask, epsilon: float, settings: dict[str, Any], number: int) -> tuple[float, ...]:
    X, y, X_test, y_test = split(task, number)
    ends = np.linspace(*task.bounds, settings.get("knots", 5))
    rows = SplineTransformer(degree=1, knots=ends, include_bias=False).fit(ends)
    known = {"epsilon": epsilon, "delta": DELTA, "data_norm": X.shape[1] ** 0.5, "bounds_y": task.bounds_y}
    model = learners.DPLinearRegression(**known, random_state=number).fit(rows.transform(X), y)
    return (r2(y_test, model.predict(rows.transform(X_test)))["R2"],)


def cluster(task: UnseenTask, epsilon: float, settings: dict[str, Any], number: int) -> tuple[float, ...]:
    X = split(task, number)[0]
    exact = inertia(X, KMeans(6, n_init=5, random_state=0).fit(X).cluster_centers_)
    known = {"epsilon": epsilon, "delta": DELTA, "bounds": task.bounds, "n_clusters": 6}
    model = learners.DPKMeans(**(known | settings), random_state=number).fit(X)
    return (inertia(X, model.cluster_centers_) / exact,)


PARTS: dict[str, tuple[Callable[[], list[UnseenTask]], Score, dict[str, list[Any]]]] = {
    "naive-bayes": (classification, classify("DPGaussianNB"), {"correlation": [0.0, 0.3], "evidence_share": [0, 0.1]}),
    "histogram-bayes": (
        classification,
        classify("DPHistogramNB"),
        {"correlation": [0.0, 0.3], "evidence_share": [0, 0.1]},
    ),
    "logistic": (classification, classify("DPLogisticRegression"), {"intercept_scaling": [0.25, 1.0]}),
    "histograms": (classification, classify("DPAdditiveHistograms"), {"smooth_sd": [1.2, 2.4], "prior_sd": [0.2, 0.7]}),
    "stumps": (classification, classify("DPBoostedStumps"), {"n_rounds": [25, 100]}),
    "additive": (
        curved,
        regress("DPAdditiveRegressor"),
        {"n_passes": [2, 3, 5], "count_share": [0.1, 0.3], "residual_clip": [1.0, 2.0]},
    ),
    "splines": (curved, hats, {"knots": [3, 8]}),
    "linear": (regression, regress("DPLinearRegression"), {"intercept_scaling": [0.25, 0.5], "mechanism": ["adassp"]}),
    "k-means": (clouds, cluster, {}),
}


def lines(part: str, splits: int, only: list[str] | None = None) -> Iterator[tuple[str, str, list[float]]]:
    """(data set, setting, mean scores by ε) of a part."""
    sets, score, grid = PARTS[part]
    for task in sets():
        if only and task.name not in only:
            continue
        for name, values in {"": [None], **grid}.items():
            for value in values:
                settings = {name: value} if name else {}
                found = [
                    np.mean([score(task, e, settings, number) for number in range(splits)], axis=0) for e in EPSILONS
                ]
                yield task.name, f"{name} = {value}" if name else "defaults", found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent / "results")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    path = args.out / "defaults.md"
    about = str(__doc__).split("\n\n")[2].replace("\n", " ")
    kept = path.read_text(encoding="utf-8").split("\n\n")[1:] if path.is_file() else []
    tables = {part.split("|")[1].split(":")[0].strip(): part.strip() for part in kept if "|" in part}
    for part in args.part:
        start = time.perf_counter()
        head = " | ".join(f"ε = {e:g}" for e in EPSILONS)
        text = [f"| {part}: | | {head} |", "|---" * (len(EPSILONS) + 2) + "|"]
        for task, setting, found in lines(part, args.splits):
            cells = " | ".join(", ".join(f"{x:.3f}" for x in scores) for scores in found)
            text.append(f"| {task} | {setting} | {cells} |")
            print(text[-1], flush=True)
        tables[part] = "\n".join(text)
        path.write_text("\n\n".join([about, *tables.values()]) + "\n", encoding="utf-8")
        print(f"{part}: {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
