"""Is the rmse of surfaces and of mean curves at most that of refund's ``pffr``?

``pffr`` is ``mgcv::gam`` on the long form, called here with refund's formula (:mod:`r_bridge.to_mgcv`). For the
simulators with a surface (:mod:`simulators`), by share of smooth errors; ours by default and with ``errors="curve"``.
Surfaces are what unit impulses add to predictions. Needs R with mgcv.

    python benchmarks/terms/against_pffr.py --repeats 5            # two CPU minutes, most of them R's
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from simulators import SIMULATORS, Simulated, T

from fdadp import FunctionalRegression
from fdadp.functional.quadrature import quadrature_weights
from r_bridge.gam_by_formula import fit_gam
from r_bridge.to_mgcv import InMgcv

SHARES = {"independent": 0.0, "mixed": 0.4, "smooth": 0.8}
GRIDS = {"X": T, "Y": T}


def impulses(made: Simulated) -> dict[str, Any]:
    """A row of zeros, and one for each s with a curve whose integral there is 1."""
    x = np.vstack((np.zeros(T.size), np.diag(1 / quadrature_weights(T, "trapezoid"))))
    return {name: x if name == "X" else np.zeros(len(x)) for name in made.data if name != "Y"}


def errors_of(fitted: Any, predicted: Any, made: Simulated) -> list[float]:
    """Mean squares of what the surface and the mean curves are off."""
    surface = predicted[1:] - predicted[0]
    return [((surface - made.effect(T[:, None], T[None])) ** 2).mean(), ((fitted - made.mean) ** 2).mean()]


def one(made: Simulated) -> list[float]:
    """Those of pffr, and of ours by default and by generalised least squares."""
    covariates, new = {k: v for k, v in made.data.items() if k != "Y"}, impulses(made)
    theirs = InMgcv.of(made.model, covariates, GRIDS, T)
    rows = InMgcv.of(made.model, new, GRIDS, T, covariates).columns
    fit = fit_gam(theirs.formula, {**theirs.columns, "y": made.data["Y"].ravel()}, rows)
    found = errors_of(fit["fitted"].reshape(-1, T.size), fit["predicted"].reshape(-1, T.size), made)
    for errors in ("iid", "curve"):
        model = FunctionalRegression(made.model, errors=errors).fit(made.data, grids=GRIDS)
        found += errors_of(model.fitted_values_, model.predict(new), made)
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--repeats", type=int, default=5)
    asked.add_argument("--n", type=int, nargs="+", default=[60])
    options = asked.parse_args()
    start = time.process_time()
    print("| simulator | n | errors | surface: pffr | ours | GLS | mean: pffr | ours | GLS |\n" + "|---" * 9 + "|")
    for name in ("waves", "ridge"):
        for n in options.n:
            for law, smooth in SHARES.items():
                seeds = [np.random.default_rng([seed, n]) for seed in range(options.repeats)]
                rmse = np.sqrt(np.mean([one(SIMULATORS[name](n, rng, smooth)) for rng in seeds], axis=0))
                text = " | ".join(f"{v:.4f}" for v in (*rmse[::2], *rmse[1::2]))
                print(f"| {name} | {n} | {law} | {text} |", flush=True)
    print(f"\n{time.process_time() - start:.0f} CPU s")
