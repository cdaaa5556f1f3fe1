"""CPU times of diffprivlib's fits, in its own environment: reads arrays, prints one JSON line a learner and fit."""

from __future__ import annotations

import json
import signal
import sys
import time
import warnings

import numpy as np
from diffprivlib.models import PCA, GaussianNB, KMeans, LinearRegression, LogisticRegression

LIMIT = 120
"""Seconds by the clock after which a fit is given up."""


def give_up(number: int, frame: object) -> None:
    raise TimeoutError


def main(path: str, repeats: int) -> None:
    warnings.simplefilter("ignore")
    data = np.load(path)
    X, y, t = data["X"], data["y"], data["t"]
    d = X.shape[1]
    fits = {
        "GaussianNB": lambda X, y, t: GaussianNB(epsilon=1.0, bounds=(-4, 4)).fit(X, y),
        "LogisticRegression": lambda X, y, t: LogisticRegression(epsilon=1.0, data_norm=4 * d**0.5).fit(X, y),
        "LinearRegression": lambda X, y, t: LinearRegression(epsilon=1.0, bounds_X=(-4, 4), bounds_y=(-8, 8)).fit(X, t),
        "KMeans": lambda X, y, t: KMeans(5, epsilon=1.0, bounds=(-4, 4)).fit(X),
        "PCA": lambda X, y, t: PCA(3, epsilon=1.0, data_norm=4 * d**0.5, bounds=(-4, 4)).fit(X),
    }
    signal.signal(signal.SIGALRM, give_up)
    for name, fit in fits.items():
        for repeat in range(repeats + 1):  # the first, on few rows, only warms up
            rows = slice(None) if repeat else slice(500)
            start = time.process_time()
            signal.alarm(LIMIT)
            try:
                fit(X[rows], y[rows], t[rows])
                seconds: float | None = time.process_time() - start
            except TimeoutError:
                seconds = None
            finally:
                signal.alarm(0)
            if repeat:
                print(json.dumps({"learner": name, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
