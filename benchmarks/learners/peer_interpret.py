"""interpret's DP-EBM, in its own environment: reads CSV, prints one JSON line a fit. No fdadp here."""

from __future__ import annotations

import json
import sys
import time
import warnings

import numpy as np
import pandas as pd
from interpret.privacy import DPExplainableBoostingClassifier
from sklearn.metrics import roc_auc_score


def main(folder: str, epsilons: list[float], seeds: int) -> None:
    warnings.simplefilter("ignore")
    train, test = (pd.read_csv(f"{folder}/{part}.csv", keep_default_na=False) for part in ("train", "test"))
    with open(f"{folder}/bounds.json") as file:
        bounds = {name: tuple(pair) for name, pair in json.load(file).items()}
    X, y, X_test, y_test = train.drop(columns="y"), train["y"], test.drop(columns="y"), test["y"].to_numpy()
    kinds = ["continuous" if name in bounds else "nominal" for name in X]
    for epsilon in epsilons:
        for seed in range(seeds):
            model = DPExplainableBoostingClassifier(
                epsilon=epsilon,
                delta=1e-6,
                feature_names=list(X),
                feature_types=kinds,
                privacy_bounds=bounds,
                random_state=seed,
                n_jobs=1,
            )
            start = time.perf_counter()
            model.fit(X, y)
            seconds = time.perf_counter() - start
            score = model.predict_proba(X_test)[:, 1]
            row = {
                "method": "interpret DP-EBM",
                "epsilon": epsilon,
                "seed": seed,
                "accuracy": float((np.asarray(model.predict(X_test)) == y_test).mean()),
                "auc": float(roc_auc_score(y_test, score)),
                "seconds": seconds,
            }
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], [float(e) for e in sys.argv[3:]], int(sys.argv[2]))
