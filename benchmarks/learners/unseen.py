"""Learners on data sets that chose no constant, beside diffprivlib and DP-EBM: ``run.py --unseen``."""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from unseen_scores import captured, classified, inertia, r2
from unseen_sets import DELTA, KINDS, UnseenTask, split, unseen

from fdadp import learners
from fdadp._version import __version__
from fdadp.learners import Numeric

HERE = Path(__file__).resolve().parent
CLUSTERS = 5
MANY = 100
"""Classes times features up to which learners that take turns are run: beyond, a fit takes a minute and more."""
METRICS = {
    "classification": ("AUC", "accuracy", "log-loss", "calibration"),
    "regression": ("R2",),
    "rows": ("inertia", "captured"),
}
LESS = {"log-loss", "calibration", "inertia"}
"""Metrics of which less is better."""
Row = dict[str, Any]


def ours(task: UnseenTask, epsilon: float, number: int) -> dict[str, Callable[[], dict[str, float]]]:
    """Name of a learner to a function that fits and scores, at its defaults."""
    X, y, X_test, y_test = split(task, number)
    bounds = task.bounds
    common = {"epsilon": epsilon, "delta": DELTA, "random_state": number}
    if task.kind == "classification":
        known = common | {"classes": list(range(int(task.y.max()) + 1))}
        bins = {"features": [Numeric(a, b) for a, b in zip(*bounds, strict=True)]}
        settings = {
            "DPGaussianNB": {"bounds": bounds},
            "DPHistogramNB": bins,
            "DPLogisticRegression": {"bounds": bounds},
            "DPForestClassifier": {"bounds": bounds},
        }
        if len(known["classes"]) * X.shape[1] <= MANY:
            settings |= {"DPAdditiveHistograms": bins, "DPBoostedStumps": bins}
        return {
            name: (
                lambda n=name, more=more: classified(
                    y_test, getattr(learners, n)(**known, **more).fit(X, y).predict_proba(X_test)
                )
            )
            for name, more in settings.items()
        }
    if task.kind == "regression":
        known = common | {"bounds": bounds, "bounds_y": task.bounds_y}
        linear, told = "DPLinearRegression", {"n": len(X)}
        fits = {
            linear: (linear, {}),
            f"{linear}, n declared": (linear, told),
            f"{linear}, n declared, one release of moments": (linear, told | {"mechanism": "moments"}),
            "DPAdditiveRegressor": ("DPAdditiveRegressor", {}),
            "DPAdditiveRegressor, n declared": ("DPAdditiveRegressor", told),
            "DPForestRegressor": ("DPForestRegressor", {}),
        }
        return {
            name: (
                lambda of=of, more=more: r2(y_test, getattr(learners, of)(**known, **more).fit(X, y).predict(X_test))
            )
            for name, (of, more) in fits.items()
        }
    z = scaled(task, X)
    norm = math.sqrt(z.shape[1])
    return {
        "DPKMeans": lambda: {
            "inertia": inertia(
                z, learners.DPKMeans(n_clusters=CLUSTERS, bounds=(-1, 1), **common).fit(z).cluster_centers_
            )
        },
        "DPPCA": lambda: {
            "captured": captured(
                z, learners.DPPCA(n_components=min(CLUSTERS, z.shape[1]), data_norm=norm, **common).fit(z).components_
            )
        },
    }


def scaled(task: UnseenTask, X: Any) -> Any:
    """Rows with their box mapped to [-1, 1]^d."""
    low, high = task.bounds
    return 2 * (X - low) / (high - low) - 1


def yardsticks(task: UnseenTask, number: int) -> Iterator[Row]:
    """What needs no rows or no privacy: class shares, the mean, exact k-means and the middle of the box."""
    X, y, _, y_test = split(task, number)
    if task.kind == "classification":
        share = np.bincount(y, minlength=int(task.y.max()) + 1) / len(y)
        yield {"method": "class shares"} | classified(y_test, np.tile(share, (len(y_test), 1)))
    elif task.kind == "rows":
        z = scaled(task, X)
        exact = KMeans(CLUSTERS, n_init=10, random_state=0).fit(z).cluster_centers_
        yield {"method": "exact", "inertia": inertia(z, exact), "captured": 1.0}
        yield {"method": "middle of the box", "inertia": inertia(z, np.zeros((1, z.shape[1])))}


def write(task: UnseenTask, number: int, path: Path) -> None:
    """The same rows and ranges for a peer."""
    X, y, X_test, y_test = split(task, number)
    K = int(task.y.max()) + 1 if task.kind == "classification" else min(CLUSTERS, X.shape[1])
    more = {"bounds_y": np.array(task.bounds_y)} if task.kind == "regression" else {}
    none = np.zeros(0)
    np.savez(
        path,
        kind=task.kind,
        split=number,
        K=K,
        X=X,
        X_test=X_test,
        y=none if y is None else y,
        y_test=none if y_test is None else y_test,
        low=task.bounds[0],
        high=task.bounds[1],
        **more,
    )


def peers(task: UnseenTask, number: int, epsilons: list[float], pythons: dict[str, Path]) -> list[Row]:
    """Rows of diffprivlib and interpret."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npz"
        write(task, number, path)
        for name, python in pythons.items():
            command = [str(python), str(HERE / f"peer_unseen_{name}.py"), str(path), *map(str, epsilons)]
            clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=clean)
            rows += [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return rows


def run(
    splits: int,
    epsilons: list[float],
    pythons: dict[str, Path],
    *,
    recorded: list[Row] | None = None,
    only: list[str] | None = None,
    said: Callable[[str], None] = print,
) -> list[Row]:
    """All rows; with `recorded` those of the peers are taken from there."""
    warnings.simplefilter("ignore")
    rows: list[Row] = []
    for kind in KINDS:
        for task in unseen(kind):
            if only and task.name not in only and kind not in only:
                continue
            start = time.perf_counter()
            about = {"kind": kind, "set": task.name}
            for number in range(splits):
                here = about | {"split": number}
                rows += [here | {"epsilon": e} | row for row in yardsticks(task, number) for e in epsilons]
                for epsilon in epsilons:
                    for name, fit in ours(task, epsilon, number).items():
                        rows.append(here | {"method": f"fdadp {name}", "epsilon": epsilon} | fit())
                if recorded is None:
                    rows += [here | row for row in peers(task, number, epsilons, pythons)]
            said(f"{kind}, {task.name}: {time.perf_counter() - start:.0f} s")
    if recorded is not None:
        own = ("fdadp", "class shares", "exact", "middle")
        rows += [row for row in recorded if not row["method"].startswith(own) and row["split"] < splits]
    return rows


def again(recorded: list[Row], names: list[str], splits: int, epsilons: list[float]) -> list[Row]:
    """The recorded rows, those of these learners of ours run anew."""
    warnings.simplefilter("ignore")
    methods = {f"fdadp {name}" for name in names}
    rows = [row for row in recorded if row["method"] not in methods]
    tasks = [task for kind in KINDS for task in unseen(kind)]
    for task, number, epsilon in itertools.product(tasks, range(splits), epsilons):
        about = {"kind": task.kind, "set": task.name, "split": number, "epsilon": epsilon}
        fits = ours(task, epsilon, number)
        rows += [about | {"method": f"fdadp {name}"} | fits[name]() for name in names if name in fits]
    return rows


def tables(rows: list[Row], splits: int, notes: list[str]) -> str:
    """Means over splits by data set, method and ε, and what falls short; `notes` say which rows are of which commit."""
    results = pd.DataFrame(rows)
    epsilons = sorted(results["epsilon"].unique())
    lines = [
        f"{splits} splits, δ = {DELTA:g} (diffprivlib: pure ε as it claims; DP-EBM: the same δ), add/remove, the same "
        f"public ranges. fdadp {__version__} at its defaults, diffprivlib 0.6.6, interpret-core 0.7.8. Means over the "
        "splits.",
        "",
        *(line for note in notes for line in (note, "")),
    ]
    for kind, metrics in METRICS.items():
        part = results[results["kind"] == kind]
        for metric in metrics:
            if part.empty or metric not in part:
                continue
            lines += ["| " + f"{metric}, {kind} | " + " | ".join(f"ε = {e:g}" for e in epsilons) + " |"]
            lines += ["|---" * (len(epsilons) + 1) + "|"]
            for (name, method), own in part.dropna(subset=[metric]).groupby(["set", "method"], sort=False):
                means = own.groupby("epsilon")[metric].mean()
                cells = " | ".join(f"{means[e]:.3f}" if e in means else "no end" for e in epsilons)
                lines.append(f"| {name}: {method} | {cells} |")
            lines.append("")
    return "\n".join(lines + short(results)) + "\n"


def short(results: pd.DataFrame) -> list[str]:
    """Where the best of ours is more than one sd behind the best of theirs, and log-losses above the class shares'."""
    lines = ["Best of ours more than one sd (of ours and theirs, pooled) behind the best of theirs:", ""]
    cells = 0
    for metric in ("AUC", "R2", "inertia", "captured"):
        part = results.dropna(subset=[metric]) if metric in results else results[:0]
        sign = -1.0 if metric in LESS else 1.0
        for (name, epsilon), own in part.groupby(["set", "epsilon"], sort=False):
            by = own.groupby("method")[metric].agg(["mean", "std"]).fillna(0.0)
            mine = by[by.index.str.startswith("fdadp")]
            theirs = by[by.index.str.startswith(("diffprivlib", "interpret"))]
            if mine.empty or theirs.empty:
                continue
            cells += 1
            a, b = mine.loc[(sign * mine["mean"]).idxmax()], theirs.loc[(sign * theirs["mean"]).idxmax()]
            sd = math.hypot(a["std"], b["std"]) / math.sqrt(2)
            if sign * (b["mean"] - a["mean"]) > sd:
                lines.append(
                    f"- {metric}, {name}, ε = {epsilon:g}: {a['mean']:.3f} (`{a.name[6:]}`) beside {b['mean']:.3f} "
                    f"({b.name}), sd {sd:.3f}"
                )
    lines += ["", f"of {cells} cells. Log-loss above that of the class shares by more than .05:", ""]
    part = results.dropna(subset=["log-loss"])
    means = part.groupby(["set", "epsilon", "method"], sort=False)["log-loss"].mean()
    base = means.xs("class shares", level="method")
    mine = [(key, value) for key, value in means.items() if key[2].startswith("fdadp")]
    for (name, epsilon, method), value in mine:
        if value > base[(name, epsilon)] + 0.05:
            lines.append(f"- {name}, ε = {epsilon:g}, {method}: {value:.3f} beside {base[(name, epsilon)]:.3f}")
    lines.append(f"\nof {len(mine)} cells.")
    return lines
