"""diffprivlib on the unseen data sets, in its own environment: one JSON line a fit. No fdadp here."""

from __future__ import annotations

import json
import signal
import sys
import warnings

import numpy as np
from diffprivlib.models import PCA, GaussianNB, KMeans, LinearRegression, LogisticRegression, RandomForestClassifier
from unseen_scores import captured, classified, inertia, r2

LIMIT = 60
"""Seconds by the clock after which a fit is given up."""


def give_up(number: int, frame: object) -> None:
    raise TimeoutError


def fits(kind: str, data: dict, epsilon: float, seed: int) -> dict:
    """Name to a function that fits and scores."""
    X, y, X_test, y_test, low, high = (data[f"{name}"] for name in ("X", "y", "X_test", "y_test", "low", "high"))
    z, z_test = (2 * (rows - low) / (high - low) - 1 for rows in (X, X_test))
    norm = float(np.sqrt(X.shape[1]))
    box = (low, high)
    common = {"epsilon": epsilon, "random_state": seed}
    if kind == "classification":
        K = int(data["K"])
        models = {
            "GaussianNB": (GaussianNB(bounds=box, **common), X, X_test),
            "LogisticRegression": (LogisticRegression(data_norm=norm, max_iter=1000, **common), z, z_test),
            "RandomForest": (
                RandomForestClassifier(10, bounds=box, classes=list(range(K)), **common),
                np.clip(X, low, high),
                np.clip(X_test, low, high),
            ),
        }

        def score(model, rows, new):
            model.fit(rows, y)
            found = model.predict_proba(new)
            whole = np.full((len(new), K), 1e-15)
            whole[:, np.asarray(model.classes_, dtype=int)] = found
            return classified(y_test, whole)

        return {name: (lambda m=m, a=a, b=b: score(m, a, b)) for name, (m, a, b) in models.items()}
    if kind == "regression":
        bounds_y = tuple(map(float, data["bounds_y"]))
        model = LinearRegression(bounds_X=box, bounds_y=bounds_y, **common)
        return {"LinearRegression": lambda: r2(y_test, np.clip(model.fit(X, y).predict(X_test), *bounds_y))}
    k = int(data["K"])
    return {
        "KMeans": lambda: {"inertia": inertia(z, KMeans(k, bounds=(-1, 1), **common).fit(z).cluster_centers_)},
        "PCA": lambda: {"captured": captured(z, PCA(k, data_norm=norm, bounds=(-1, 1), **common).fit(z).components_)},
    }


def main(path: str, epsilons: list[float]) -> None:
    warnings.simplefilter("ignore")
    data = dict(np.load(path, allow_pickle=False))
    signal.signal(signal.SIGALRM, give_up)
    for epsilon in epsilons:
        for name, run in fits(str(data["kind"]), data, epsilon, int(data["split"])).items():
            signal.alarm(LIMIT)
            try:
                found = run()
            except (TimeoutError, ValueError, np.linalg.LinAlgError):
                continue
            finally:
                signal.alarm(0)
            print(json.dumps({"method": f"diffprivlib {name}", "epsilon": epsilon} | found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], [float(e) for e in sys.argv[2:]])
