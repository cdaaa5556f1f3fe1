"""How often REML's search ends above the optimum in models of several terms, with jumps of single λ and without.

Random models of curves on curves, numbers and labels, of three to seven smoothing parameters. The optimum is taken to
be the lowest score that the searches, or Newton's method from 24 random points, come to.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from fdadp import terms
from fdadp.functional.tables.curve_sample import Curves
from fdadp.solve.form.long_form_design import LongForm, LongSums
from fdadp.solve.smoothing import penalized_least_squares
from fdadp.solve.smoothing.penalized_least_squares import LOG_RANGE, PenalizedLeastSquares
from fdadp.solve.smoothing.smoothing_search import newton
from fdadp.terms.numbers.scalar_linear import Intercept, MeanCurve
from fdadp.terms.records import Records, TrainingSummary
from fdadp.terms.spec import TermSpec

GRID = np.linspace(0, 1, 21)
MODELS: dict[str, list[TermSpec]] = {
    "ff": [terms.ff("X")],
    "sff": [terms.sff("X")],
    "ff, 8 x 8, re, x": [terms.ff("X", k=(8, 8), m=((2, 2), (2, 2))), terms.re("g"), terms.linear("x")],
    "historical ff, s(z), x": [terms.ff("X", limits="s<=t"), terms.s("z"), terms.linear("x")],
    "sff, s(z)": [terms.sff("X"), terms.s("z")],
    "ff, concurrent, s(z), x": [terms.ff("X"), terms.concurrent("X"), terms.s("z"), terms.linear("x")],
}


def smooth_curves(rng: np.random.Generator, n: int, length: float) -> Any:
    root = np.linalg.cholesky(np.exp(-((GRID[:, None] - GRID) ** 2) / length) + 1e-8 * np.eye(GRID.size))
    return rng.normal(size=(n, GRID.size)) @ root.T


def problem(specs: list[TermSpec], seed: int) -> PenalizedLeastSquares:
    """Of some of the effects that the terms stand for, with more or less noise, white or smooth."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([20, 40, 80]))
    x = smooth_curves(rng, n, rng.uniform(0.02, 1)) + rng.normal(size=(n, 1)) * rng.integers(0, 2)
    z, number = rng.normal(size=n), rng.normal(size=n)
    effects = [
        x @ np.sin(np.outer(GRID * rng.uniform(1, 8), GRID * rng.uniform(1, 8))) / GRID.size,
        x**2 @ np.outer(np.cos(3 * GRID), GRID) / GRID.size,
        np.sin(2 * z)[:, None] * np.cos(4 * GRID),
        number[:, None] * GRID / 2,
        0.3 * x * np.sin(3 * GRID),
    ]
    mean = np.sin(3 * GRID) + sum(effect for effect in effects if rng.random() < 0.5)
    smooth = rng.choice([0.0, 0.5, 0.9])
    noise = smooth * smooth_curves(rng, n, 0.1) + (1 - smooth) * rng.normal(size=(n, GRID.size))
    y = mean + noise * np.exp(rng.uniform(-3, 1)) * (np.std(mean) + 0.1)
    group = rng.integers(0, 4, n).astype(str).astype(object)
    records = Records(n, {"X": Curves(x, GRID), "z": z, "x": number, "g": group})
    seen = TrainingSummary.of([records])
    form = LongForm(tuple(spec.fixed(seen, GRID) for spec in [Intercept(), MeanCurve(), *specs]), GRID)
    system = LongSums.of(form, form.features(records), y).system(form)
    return PenalizedLeastSquares(
        system.gram, system.cross, system.total, system.n_rows, form.penalties, intercept=False
    )


def from_random_points(one: PenalizedLeastSquares) -> float:
    of = one._criteria
    starts = one._centre + np.random.default_rng(1).uniform(-12, 12, (24, len(one._centre)))
    bounds = one._centre - LOG_RANGE, one._centre + LOG_RANGE
    ends, _ = newton(of.reml, starts, np.zeros(24, dtype=np.int64), bounds, 1e-9 * of.dof)
    return float(ends.min()) + one._reml_of_unit(0)


def timed(search: Callable[[PenalizedLeastSquares], float], problems: list[PenalizedLeastSquares]) -> Any:
    start = time.process_time()
    scores = np.array([search(one) for one in problems])
    return scores, (time.process_time() - start) / len(problems)


def optimum(jumps: bool) -> Callable[[PenalizedLeastSquares], float]:
    def search(one: PenalizedLeastSquares) -> float:
        own = penalized_least_squares.GRID_OF_ALL
        try:
            penalized_least_squares.GRID_OF_ALL = own if jumps else 99
            return one.optimize()[0].reml
        finally:
            penalized_least_squares.GRID_OF_ALL = own

    return search


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=100, help="of each model")
    options = parser.parse_args(arguments)
    searches = {"starts alone": optimum(False), "and jumps": optimum(True), "24 random points": from_random_points}
    out: dict[str, Any] = {}
    for model, specs in MODELS.items():
        problems = [problem(specs, seed) for seed in range(options.problems)]
        found = {name: timed(search, problems) for name, search in searches.items()}
        lowest = np.min([scores for scores, _ in found.values()], axis=0)
        for name, (scores, seconds) in found.items():
            above = scores - lowest
            missed = int((above > 1e-6 * (1 + abs(lowest))).sum())
            out[f"{model}; {name}"] = missed, float(above.max()), seconds
            print(
                f"{model:24s} {name:17s} {missed:3d} of {len(problems)} above the optimum, by at most "
                f"{above.max():7.2g}; {1e3 * seconds:.0f} ms of CPU"
            )
    return out


if __name__ == "__main__":
    main()
