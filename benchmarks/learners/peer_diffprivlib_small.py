"""diffprivlib's linear regression, k-means and PCA, in its own environment: one JSON line a fit. No fdadp here."""

from __future__ import annotations

import json
import signal
import sys
import time
import warnings

import numpy as np
from diffprivlib.models import PCA, KMeans, LinearRegression
from sklearn.metrics import adjusted_rand_score, r2_score

LIMIT = 10
"""Seconds after which a fit is given up: its Bingham sampler, whose acceptance is wrong, may never accept."""


def give_up(number: int, frame: object) -> None:
    raise TimeoutError


def captured(X: np.ndarray, components: np.ndarray) -> float:
    """Variance in the span of the components over that of as many exact ones."""
    S = np.cov(X.T)
    Q = np.linalg.qr(components.T)[0]
    return float(np.trace(Q.T @ S @ Q) / np.linalg.eigvalsh(S)[::-1][: len(components)].sum())


def main(folder: str, seeds: int, epsilons: list[float]) -> None:
    warnings.simplefilter("ignore")
    data = np.load(f"{folder}/small.npz")
    digits, labels = data["digits"], data["labels"]
    signal.signal(signal.SIGALRM, give_up)
    hopeless = set()
    for epsilon in epsilons:
        for seed in range(seeds):
            X, y, X_test, y_test = (data[f"{name}_{seed}"] for name in ("X", "y", "X_test", "y_test"))
            fits = {
                ("LinearRegression", "R2"): lambda e=epsilon, s=seed, X=X, y=y: LinearRegression(
                    epsilon=e, bounds_X=(-0.2, 0.2), bounds_y=(0, 400), random_state=s
                ).fit(X, y),
                ("KMeans", "ARI"): lambda e=epsilon, s=seed: KMeans(10, epsilon=e, bounds=(0, 1), random_state=s).fit(
                    digits
                ),
                ("PCA", "captured variance"): lambda e=epsilon, s=seed: PCA(
                    10, epsilon=e, data_norm=8.0, bounds=(0, 1), random_state=s
                ).fit(digits),
            }
            for (name, metric), fit in fits.items():
                row = {"method": f"diffprivlib {name}", "metric": metric, "epsilon": epsilon, "seed": seed}
                start = time.perf_counter()
                signal.alarm(0 if (name, epsilon) in hopeless else LIMIT)
                try:
                    if (name, epsilon) in hopeless:
                        raise TimeoutError
                    model = fit()
                except TimeoutError:
                    hopeless.add((name, epsilon))
                    print(json.dumps(row | {"score": None, "seconds": None}), flush=True)
                    continue
                finally:
                    signal.alarm(0)
                seconds = time.perf_counter() - start
                if metric == "R2":
                    score = r2_score(y_test, model.predict(X_test))
                elif metric == "ARI":
                    score = adjusted_rand_score(labels, model.predict(digits))
                else:
                    score = captured(digits, model.components_)
                print(json.dumps(row | {"score": float(score), "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), [float(e) for e in sys.argv[3:]])
