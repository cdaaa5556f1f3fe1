"""diffprivlib's linear regression in its own environment: R² by ε as one JSON object. No fdadp here."""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
from diffprivlib.models import LinearRegression
from sklearn.metrics import r2_score


def main(folder: str, seeds: int) -> None:
    warnings.simplefilter("ignore")
    data = np.load(f"{folder}/rows.npz")
    scores = {}
    for epsilon in (0.5, 1.0, 5.0):
        scores[epsilon] = []
        for s in range(seeds):
            bounds = (data["low"], data["high"])
            y = tuple(map(float, data["y"]))
            model = LinearRegression(epsilon=epsilon, bounds_X=bounds, bounds_y=y, random_state=s)
            model.fit(data[f"X_{s}"], data[f"y_{s}"])
            predicted = np.clip(model.predict(data[f"T_{s}"]), *y)
            scores[epsilon].append(float(r2_score(data[f"t_{s}"], predicted)))
    print(json.dumps(scores))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
