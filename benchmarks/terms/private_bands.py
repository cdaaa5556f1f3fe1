"""Do 95 % bands of private coefficient functions hold what they say, and are private tests of terms at 5 %?

For each simulator and size, over cohorts with seeded noise: coverage of the coefficient function by ``coef(se=True)``
(pointwise, averaged over its domain), of E[Y | X] by ``predict_se``, ratio of the errors' root mean square to the
standard errors', how often ``test_terms`` says at 5 % that a number without effect has one, and the explained share of
E[Y | X] (the worst in brackets). ``--undirected``: without the release "directions of features".

    python benchmarks/terms/private_bands.py --repeats 20            # some CPU minutes
    python benchmarks/terms/private_bands.py --n 1000 --epsilon 1 --simulators waves ridge
    python benchmarks/terms/private_bands.py --n 2000 10000 --simulators shapes   # curves that vary along six shapes
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from private_cohorts import S, W, curves
from simulators import T, ages, ridge, waves

from fdadp import DPAFF, FunctionalRegression, Privacy, ScalarRegression, simulate_affr
from fdadp.private.public.tuned_constants import GAUSSIAN, PURE

FIRST_SEED = 7000
"""Seeds that no setting was chosen on."""
PUBLIC = {"X": (-5.0, 5.0), "z": (-1.0, 1.0), "w": (-4.0, 4.0), "Y": (-8.0, 8.0)}
Case = tuple[dict[str, Any], str, str, Callable[..., Any], Any, dict[str, Any], Any]
"""Columns, formula, term, its coefficient function, E[Y | X], what is public, grid."""


def _errors(n: int, rng: np.random.Generator) -> Any:
    apart = np.exp(-0.5 * ((S[:, None] - S) / 0.2) ** 2) + 1e-8 * np.eye(S.size)
    return 0.5 * np.sqrt(0.5) * rng.normal(size=(n, S.size)) @ np.linalg.cholesky(apart).T + 0.25 * rng.normal(
        size=(n, S.size)
    )


def of_waves(n: int, rng: np.random.Generator) -> Case:
    """A surface of sines."""
    made = waves(n, rng, 0.4)
    return made.data, "Y ~ ff(X) + w", made.term, made.effect, made.mean, PUBLIC, T


def of_ridge(n: int, rng: np.random.Generator) -> Case:
    """A ridge along s = t, and a number; errors of more than one size."""
    made = ridge(n, rng, 0.4)
    return made.data, "Y ~ ff(X) + z + w", made.term, made.effect, made.mean, PUBLIC, T


def of_ages(n: int, rng: np.random.Generator) -> Case:
    """A smooth effect of a number."""
    made = ages(n, rng, 0.4)
    return made.data, "Y ~ s(z) + w", made.term, made.effect, made.mean, PUBLIC | {"z": (0.0, 1.0)}, T


def of_number(n: int, rng: np.random.Generator) -> Case:
    """A curve acts on a number, by a wave and a bump."""
    x, w = curves(n, rng), rng.normal(size=n)

    def effect(s: Any) -> Any:
        return 2 * np.sin(2 * np.pi * s) + 1.2 * np.exp(-((s - 0.7) ** 2) / 0.02)

    mean = (x * W) @ effect(S)
    data = {"X": x, "w": w, "Y": mean + 0.45 * rng.normal(size=n)}
    return data, "Y ~ lf(X) + w", "lf(X)", effect, mean, PUBLIC, S


def of_point(n: int, rng: np.random.Generator) -> Case:
    """A curve acts at the same point."""
    x, w = curves(n, rng), rng.normal(size=n)

    def effect(t: Any) -> Any:
        return 0.8 + 0.6 * np.sin(2 * np.pi * t)

    mean = x * effect(S) + np.cos(2 * np.pi * S)
    data = {"X": x, "w": w, "Y": mean + _errors(n, rng)}
    return data, "Y ~ concurrent(X) + w", "concurrent(X)", effect, mean, PUBLIC, S


def of_past(n: int, rng: np.random.Generator) -> Case:
    """A curve acts up to each point."""
    x, w = curves(n, rng), rng.normal(size=n)

    def effect(s: Any, t: Any) -> Any:
        return 3.25 * np.exp(-(t - s) / 0.3) * np.cos(np.pi * s) + 1.3 * np.sin(np.pi * s)

    beta = np.where(S[:, None] <= S, effect(S[:, None], S[None]), 0.0)
    mean = (x * W) @ beta + np.cos(2 * np.pi * S)
    data = {"X": x, "w": w, "Y": mean + _errors(n, rng)}
    return data, "Y ~ ff(X, limits='s<=t') + w", "", effect, mean, PUBLIC, S


def of_shapes(n: int, rng: np.random.Generator) -> Case:
    """Curves of six periodic shapes, which say nothing of an effect along others."""
    x, w = simulate_affr(1, n, rng, n_points=S.size).X(S)[..., 0], rng.normal(size=n)

    def effect(s: Any) -> Any:
        return 2 * np.sin(2 * np.pi * s)

    mean = (x * W) @ effect(S)
    data = {"X": x, "w": w, "Y": mean + 0.3 * rng.normal(size=n)}
    return data, "Y ~ lf(X) + w", "lf(X)", effect, mean, PUBLIC, S


SIMULATORS: dict[str, Callable[[int, np.random.Generator], Case]] = {
    "waves": of_waves,
    "ridge": of_ridge,
    "ages": of_ages,
    "number": of_number,
    "concurrent": of_point,
    "historical": of_past,
    "shapes": of_shapes,
}
USUAL = [name for name in SIMULATORS if name != "shapes"]


def one(
    name: str, n: int, epsilon: float, seed: int, delta: float | None, mechanism: DPAFF | str = "dp-aff"
) -> dict[str, float]:
    """Coverages of one cohort."""
    data, formula, term, effect, truth, public, grid = SIMULATORS[name](n, np.random.default_rng([seed, n]))
    kind = ScalarRegression if np.ndim(data["Y"]) == 1 else FunctionalRegression
    grids = {column: grid for column in ("X", "Y") if column in data and np.ndim(data[column]) == 2}
    privacy = Privacy(epsilon, delta, n=n, random_state=seed)
    model = kind(formula, privacy=privacy, bounds=public, mechanism=mechanism).fit(data, grids=grids)
    frame = model.coef(term or next(name for name in model.term_names_ if name.startswith("ff")), se=True)
    frame = frame[frame["value"].notna() & (frame["se"] > 0)]
    points = [frame[axis].to_numpy() for axis in list(frame.columns)[: effect.__code__.co_argcount]]
    error = frame["value"].to_numpy() - effect(*points)
    if name == "ages":
        error = error - error.mean()
    some = {column: values[:200] for column, values in data.items()}
    off = model.predict(some) - truth[:200]
    se = frame["se"].to_numpy()
    return {
        "coefficient": float((np.abs(error) < 1.96 * se).mean()),
        "mean": float((np.abs(off) < 1.96 * model.predict_se(some)).mean()),
        "share": 1 - float((off**2).mean() / ((truth - truth.mean(axis=0)) ** 2).mean()),
        "error": float((error**2).mean()),
        "se": float((se**2).mean()),
        "test": float(model.test_terms().loc["w", "p"] < 0.05) if "w" in model.term_names_ else 0.0,
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--repeats", type=int, default=20)
    asked.add_argument("--n", type=int, nargs="+", default=[300, 1000, 3000])
    asked.add_argument("--epsilon", type=float, default=1.0)
    asked.add_argument("--pure", action="store_true")
    asked.add_argument("--undirected", action="store_true")
    asked.add_argument("--first", type=int, default=FIRST_SEED)
    asked.add_argument("--simulators", nargs="+", choices=SIMULATORS, default=USUAL)
    options = asked.parse_args()
    start = time.process_time()
    tuning = PURE if options.pure else GAUSSIAN
    never = replace(tuning, directions=replace(tuning.directions, max_error=0.0))
    mechanism = DPAFF(tuning=never if options.undirected else tuning)
    print("| simulator | n | coefficient | E[Y given X] | error over se | 5 % test | share |\n" + "|---" * 7 + "|")
    for name in options.simulators:
        for n in options.n:
            seeds = range(options.first, options.first + options.repeats)
            delta = None if options.pure else 1e-6
            rows = [one(name, n, options.epsilon, seed, delta, mechanism) for seed in seeds]
            mean = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
            ratio = np.sqrt(mean["error"] / mean["se"])
            print(
                f"| {name} | {n} | {mean['coefficient']:.3f} | {mean['mean']:.3f} | {ratio:.2f} | {mean['test']:.3f} | "
                f"{mean['share']:.4f} ({min(row['share'] for row in rows):.3f}) |",
                flush=True,
            )
    print(f"\n{time.process_time() - start:.0f} CPU s")
