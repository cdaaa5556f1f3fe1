"""Do 95 % bands of models of many terms hold what they say, and are 5 % tests at 5 %?

For each simulator (:mod:`simulators`), number of curves and share of smooth errors: coverage of the coefficient
function (pointwise, averaged over its domain), of E[Y | X](t), of the whole function by simultaneous bands;
how often the test of a scalar without effect rejects; and the rmse of the coefficient function and of mean curves.

    python benchmarks/terms/band_coverage.py --repeats 60            # a few CPU minutes
    python benchmarks/terms/band_coverage.py --repeats 20 --n 60     # less
    python benchmarks/terms/band_coverage.py --errors curve          # generalised least squares
    python benchmarks/terms/band_coverage.py --simulators walks --first 20000   # on which nothing was chosen
    python benchmarks/terms/band_coverage.py --errors curve --gaps 0.8   # of curves of eight points each
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from simulators import SIMULATORS, UNSEEN, Simulated, T

from fdadp import FunctionalRegression

SHARES = {"independent": 0.0, "mixed": 0.4, "smooth": 0.8}


def one(made: Simulated, errors: str, seen: Any) -> dict[str, list[float]]:
    """Of each kind of standard errors: the two coverages, whole bands, rejection; and the two rmse."""
    grids = {name: T for name in ("X", "Y") if name in made.data}
    model = FunctionalRegression(made.model, **({} if errors == "iid" else {"errors": errors}))
    model.fit({**made.data, "Y": np.where(seen, made.data["Y"], np.nan)}, grids=grids)
    found = {}
    off = model.predict(made.data) - made.mean
    some = slice(0, 50)
    for kind in ("iid", "curve"):
        frame = model.coef(made.term, se=True, kind=kind)
        axis = frame.columns[0]
        truth = made.effect(frame[axis].to_numpy(), frame["t"].to_numpy())
        error = frame["value"] - truth
        of_mean = np.abs(off[some]) < 1.96 * model.predict_se({k: v[some] for k, v in made.data.items()}, kind=kind)
        few = {axis: np.unique(frame[axis])[::3], "t": T[::4]}
        band = model.bands(made.term, kind=kind, **few)
        inside = made.effect(band[axis].to_numpy(), band["t"].to_numpy())
        found[kind] = [
            float((np.abs(error) < 1.96 * frame["se"]).mean()),
            float(of_mean.mean()),
            float(((band["lower"] < inside) & (inside < band["upper"])).all()),
            float(model.test_terms(kind).loc[made.null, "p"] < 0.05),
            float((error**2).mean()),
            float((off**2).mean()),
        ]
    return found


def cell(name: str, n: int, share: float, errors: str, repeats: int, gaps: float, first: int = 0) -> dict[str, Any]:
    """Means over simulated data sets."""
    found: dict[str, list[list[float]]] = {}
    for seed in range(first, first + repeats):
        made = {**SIMULATORS, **UNSEEN}[name](n, np.random.default_rng([seed, n]), share)
        seen = np.random.default_rng([seed, n, 1]).uniform(size=(n, T.size)) >= gaps
        for kind, row in one(made, errors, seen).items():
            found.setdefault(kind, []).append(row)
    return {kind: np.mean(rows, axis=0) for kind, rows in found.items()}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--repeats", type=int, default=60)
    asked.add_argument("--n", type=int, nargs="+", default=[60, 300, 1000])
    asked.add_argument("--errors", default="iid", choices=["iid", "curve"])
    asked.add_argument("--gaps", type=float, default=0.0, help="share of the points of Y that are not observed")
    asked.add_argument("--simulators", nargs="+", default=list(SIMULATORS))
    asked.add_argument("--first", type=int, default=0, help="first of the seeds")
    options = asked.parse_args()
    start = time.process_time()
    print(
        "| simulator | n | errors | se | coefficient | E[Y given X] | simultaneous | 5 % test | rmse coef | rmse mean |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in options.simulators:
        for n in options.n:
            repeats = options.repeats if n < 1000 else max(options.repeats // 2, 1)
            for share, smooth in SHARES.items():
                for kind, row in cell(name, n, smooth, options.errors, repeats, options.gaps, options.first).items():
                    shown = [f"{v:.3f}" for v in row[:4]] + [f"{np.sqrt(v):.4f}" for v in row[4:]]
                    print(f"| {name} | {n} | {share} | {kind} | " + " | ".join(shown) + " |", flush=True)
    print(f"\n{time.process_time() - start:.0f} CPU s")
