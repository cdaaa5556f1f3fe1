"""What each part of standard errors by curves is for: coverage of 95 % bands of a coefficient function without it.

python benchmarks/terms/parts_of_curve_errors.py [--repeats 60]       # a CPU minute
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from simulators import SIMULATORS, T

from fdadp import FunctionalRegression
from fdadp.regression.fitted.coefficient_functions import effect_rows, place_of
from fdadp.solve.errors.leave_one_out_residuals import Residuals
from fdadp.solve.errors.sandwich import cluster_errors, left_out, with_smoothing_chosen_again
from fdadp.solve.errors.term_tests import LargestRatio

CELLS = (("waves", 300, 0.8), ("waves", 60, 0.8), ("ridge", 60, 0.0), ("ages", 60, 0.8))


def one(name: str, n: int, smooth: float, seed: int) -> list[float]:
    """Pointwise coverage of four covariances, and whole functions with all and with their own degrees of freedom."""
    made = SIMULATORS[name](n, np.random.default_rng([seed, n]), smooth)
    model: Any = FunctionalRegression(made.model)
    model.fit(made.data, grids={column: T for column in ("X", "Y") if column in made.data})
    fit, residuals = model.fitted_.fit, model.fitted_.errors.residuals
    assert isinstance(residuals, Residuals)
    bias = fit.bayesian_covariance - fit.sigma2 * fit.inverse @ fit.gram @ fit.inverse
    plain = residuals.scores(fit.form) @ fit.inverse
    changes = left_out(fit.form, fit.inverse, residuals)
    again = changes @ with_smoothing_chosen_again(fit).T
    rows = effect_rows(fit.form, made.term)
    first, t = rows.axes.values()
    error = rows.rows @ fit.coefficients[rows.place] - made.effect(first[:, None], t[None]).ravel()
    found = []
    for u, b in ((plain, bias), (changes, bias), (again, 0 * bias), (again, bias)):
        own = (u.T @ u + b)[rows.place, rows.place]
        se = np.sqrt(np.einsum("ij,jk,ik->i", rows.rows, own, rows.rows))
        found.append(float((np.abs(error) < 1.96 * se).mean()))
    few = slice(None, None, 7)
    degrees = cluster_errors(fit, changes).degrees[place_of(fit.form, made.term)]
    for left in (n - 1, degrees):
        wide = LargestRatio.of(rows.rows[few], own, 0, 2000).quantile(0.95, left)
        found.append(float((np.abs(error[few]) < wide * se[few]).all()))
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--repeats", type=int, default=60)
    repeats = asked.parse_args().repeats
    heads = "residuals, left out, again without bias, again, whole function with n - 1, with its own"
    print("| simulator | n | smooth | " + heads.replace(", ", " | ") + " |")
    print("|---" * 9 + "|")
    for name, n, smooth in CELLS:
        row = np.mean([one(name, n, smooth, seed) for seed in range(repeats)], axis=0)
        print(f"| {name} | {n} | {smooth} | " + " | ".join(f"{v:.3f}" for v in row) + " |", flush=True)
