"""diffprivlib's classifiers, in its own environment: reads arrays, prints one JSON line a fit. No fdadp here."""

from __future__ import annotations

import json
import sys
import time
import warnings

import numpy as np
from diffprivlib.models import GaussianNB, LogisticRegression
from sklearn.metrics import roc_auc_score


def main(folder: str, epsilons: list[float], seeds: int) -> None:
    warnings.simplefilter("ignore")
    data = np.load(f"{folder}/adult.npz")
    y, y_test = data["y"], data["y_test"]
    for epsilon in epsilons:
        for seed in range(seeds):
            models = {
                "GaussianNB": (GaussianNB(epsilon=epsilon, bounds=(data["low"], data["high"]), random_state=seed), ""),
                "LogisticRegression": (
                    LogisticRegression(
                        epsilon=epsilon, data_norm=float(data["norm"]), random_state=seed, max_iter=2000
                    ),
                    "_one_hot",
                ),
            }
            for name, (model, kind) in models.items():
                start = time.perf_counter()
                model.fit(data[f"X{kind}"], y)
                seconds = time.perf_counter() - start
                X_test = data[f"X_test{kind}"]
                row = {
                    "method": f"diffprivlib {name}",
                    "epsilon": epsilon,
                    "seed": seed,
                    "accuracy": float((model.predict(X_test) == y_test).mean()),
                    "auc": float(roc_auc_score(y_test, np.nan_to_num(model.predict_proba(X_test)[:, 1], nan=0.5))),
                    "seconds": seconds,
                }
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], [float(e) for e in sys.argv[3:]], int(sys.argv[2]))
