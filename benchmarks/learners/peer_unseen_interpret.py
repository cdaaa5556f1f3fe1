"""interpret's DP-EBM on the unseen data sets, in its own environment: one JSON line a fit. No fdadp here."""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor
from unseen_scores import classified, r2


def main(path: str, epsilons: list[float]) -> None:
    warnings.simplefilter("ignore")
    data = dict(np.load(path, allow_pickle=False))
    kind, K = str(data["kind"]), int(data["K"])
    if kind == "rows" or (kind == "classification" and K > 2):  # DP-EBM has two classes
        return
    X, y, X_test, y_test = (data[name] for name in ("X", "y", "X_test", "y_test"))
    names = [f"x{j}" for j in range(X.shape[1])]
    bounds = {j: (float(a), float(b)) for j, (a, b) in enumerate(zip(data["low"], data["high"], strict=True))}
    for epsilon in epsilons:
        common = {
            "epsilon": epsilon,
            "delta": 1e-5,
            "feature_names": names,
            "feature_types": ["continuous"] * len(names),
            "privacy_bounds": bounds,
            "random_state": int(data["split"]),
            "n_jobs": 1,
        }
        if kind == "classification":
            model = DPExplainableBoostingClassifier(**common).fit(X, y)
            found = classified(y_test, model.predict_proba(X_test))
        else:
            low, high = map(float, data["bounds_y"])
            model = DPExplainableBoostingRegressor(**common, privacy_target_min=low, privacy_target_max=high).fit(X, y)
            found = r2(y_test, np.clip(model.predict(X_test), low, high))
        print(json.dumps({"method": "interpret DP-EBM", "epsilon": epsilon} | found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], [float(e) for e in sys.argv[2:]])
