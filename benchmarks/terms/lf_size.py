"""How many B-splines lf() should have: error of the weight function β and of means, by their number.

    python benchmarks/terms/lf_size.py [--runs 40]

Weight functions of three kinds of roughness; curves on 101 points of Brownian motion or of 15 Fourier components;
errors of as much variance as the signal. Relative errors about the truth: medians over runs, and what a fit costs.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pandas as pd

from fdadp import ScalarRegression, terms
from fdadp.functional.quadrature import quadrature_weights

S = np.linspace(0, 1, 101)
WEIGHTS = quadrature_weights(S)
FUNCTIONS = {
    "smooth": np.sin(np.pi * S),
    "bumpy": np.sin(6 * np.pi * S),
    "peak": np.exp(-(((S - 0.6) / 0.04) ** 2)),
}
SIZES = (10, 15, 20, 30, 40)


def curves(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    if kind == "brownian":
        return np.cumsum(rng.normal(size=(n, S.size)), axis=1) * np.sqrt(S[1])
    waves = [wave(2 * np.pi * k * S) for k in range(1, 8) for wave in (np.sin, np.cos)]
    return rng.normal(size=(n, 15)) @ np.stack([np.ones(S.size), *waves])


def main(arguments: list[str] | None = None) -> pd.DataFrame:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--n", type=int, nargs="+", default=[100, 500])
    asked = parser.parse_args(arguments)
    rows = []
    for run in range(asked.runs):
        rng = np.random.default_rng(run)
        for n in asked.n:
            for kind in ("brownian", "fourier"):
                x = curves(kind, n, rng)
                for name, beta in FUNCTIONS.items():
                    mean = (x * WEIGHTS) @ beta
                    y = mean + mean.std() * rng.normal(size=n)
                    for k in SIZES:
                        start = time.process_time()
                        model = ScalarRegression([terms.lf("X", k=k)]).fit({"X": x, "y": y}, grids={"X": S})
                        took = time.process_time() - start
                        found = np.asarray(model.coef("lf(X)", s=S)["value"])
                        off = np.sqrt((WEIGHTS @ (found - beta) ** 2) / (WEIGHTS @ beta**2))
                        far = np.sqrt(((model.fitted_values_ - mean) ** 2).mean()) / mean.std()
                        rows.append({"n": n, "X": kind, "β": name, "k": k, "of β": off, "of means": far, "s": took})
    return pd.DataFrame(rows).groupby(["n", "X", "β", "k"], sort=False).median().unstack("k")


if __name__ == "__main__":
    print(main().to_string(float_format="{:.3f}".format))
