"""Coverage of 95 % intervals of repeated curves: effects, curves of persons, and three kinds of predictions.

    python benchmarks/repeated_coverage.py                      20, 40, 200 and 1,000 persons, 200 samples each
    python benchmarks/repeated_coverage.py --persons 40 --runs 50

Persons have 1 to 13 days of 60 points (with 20 persons: 4 to 10), a number of their own and a weekend. An intraclass
correlation of .556 is true. Shares are means over points, persons and samples. Errors of one sample hang together, so
the standard error of a share is that over samples.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from fdadp import FunctionalRegression
from fdadp.repeated.fixed_effects import fixed_effects
from fdadp.repeated.person_effects import RepeatedFit
from fdadp.repeated.person_sums import PersonPass, smooth_functions
from fdadp.repeated.reml_search import level_covariances

PERSONS, POINTS, K = (20, 40, 200, 1000), 60, 10
T = np.linspace(0, 1, POINTS)
ROOT = np.sqrt(2)
BETWEEN = np.stack([np.ones(POINTS), ROOT * np.sin(2 * np.pi * T), ROOT * np.cos(2 * np.pi * T)])
WITHIN = ROOT * np.stack([np.cos(np.pi * T), np.sin(2 * np.pi * T), np.cos(3 * np.pi * T)])
TRUTH = np.stack([np.sin(np.pi * T), 0.4 * T, 0.3 * np.cos(np.pi * T)])
KINDS = (
    "mean curve, sums",
    "of a person, sums",
    "weekend, sums",
    "of a person, formula",
    "weekend, formula",
    "curve of a person",
    "new day of a known person",
    "of a new person with 2 days",
    "of a new person",
)
HEAD = f"| persons | days | {' | '.join(KINDS)} | CPU s a sample |\n|{'---|' * (len(KINDS) + 3)}"


@dataclass(frozen=True)
class Sample:
    """Rows of persons, and the persons' own curves."""

    X: np.ndarray
    Y: np.ndarray
    who: np.ndarray
    own: np.ndarray

    @classmethod
    def draw(cls, rng: np.random.Generator, persons: int, days: tuple[int, int]) -> Sample:
        n = rng.integers(days[0], days[1] + 1, persons)
        who = np.repeat(np.arange(persons), n)
        weekend = np.concatenate([np.arange(m) for m in n]) % 7 >= 5
        X = np.column_stack((rng.normal(size=persons)[who], weekend)).astype(float)
        own = (rng.normal(size=(persons, 3)) * np.sqrt([1, 0.5, 0.25])) @ BETWEEN
        return cls(X, TRUTH[0] + X @ TRUTH[1:] + own[who] + days_of(rng, who.size), who, own)


def days_of(rng: np.random.Generator, n: int) -> np.ndarray:
    """Smooth errors of n days, and their noise."""
    return (rng.normal(size=(n, 3)) * np.sqrt([0.8, 0.4, 0.2])) @ WITHIN + 0.5 * rng.normal(size=(n, POINTS))


def days_for(persons: int) -> tuple[int, int]:
    return (4, 10) if persons < 40 else (1, 13)


def inside(low: np.ndarray, high: np.ndarray, truth: np.ndarray) -> float:
    return float(((low <= truth) & (truth <= high)).mean())


def of_sums(sample: Sample, rng: np.random.Generator) -> tuple[list[float], float]:
    """Shares held by intervals of effects, and of a day of new persons of whom two days are known."""
    phi = smooth_functions(T, K)[0]
    sums = PersonPass(phi, 2).add(sample.X, sample.Y, sample.who).sums()
    levels = level_covariances(sums)
    fixed = fixed_effects(sums, levels)
    low, high = fixed.interval()
    at_mean = TRUTH.copy()
    at_mean[0] += sums.shift_x[1:] @ TRUTH[1:]
    model, new = RepeatedFit(sums, levels, fixed), Sample.draw(rng, 50, (2, 2))
    known = model.means_of(new.X, new.Y).reshape(50, 2, -1).mean(axis=1)
    features = model.features(np.column_stack((new.X[::2, 0], np.zeros(50))))
    day = TRUTH[0] + new.X[::2, :1] * TRUTH[1] + new.own + days_of(rng, 50)
    held = inside(*model.interval(features, known, np.full(50, 2)), day)
    return [inside(low[a], high[a], at_mean[a]) for a in range(3)], held


def of_formula(sample: Sample, rng: np.random.Generator) -> list[float]:
    """Shares held by intervals of effects, of curves of persons, of their next days, and of days of new persons."""
    data = {"Y": sample.Y, "x": sample.X[:, 0], "weekend": sample.X[:, 1], "id": sample.who}
    model = FunctionalRegression(f"Y ~ x + weekend + re(id, covariance='free', k={K})").fit(data)
    effects = [model.coef(name, se=True, t=T) for name in ("x", "weekend")]
    held = [inside(e["lower"], e["upper"], truth) for e, truth in zip(effects, TRUTH[1:], strict=True)]
    own = model.coef("re(id)", se=True, t=T)
    truth = sample.own[own["id"].to_numpy(), np.tile(np.arange(POINTS), len(sample.own))]
    held.append(inside(own["lower"], own["upper"], truth))
    first = np.unique(sample.who, return_index=True)[1]
    x, persons = sample.X[first, 0], len(first)
    known = {"x": x, "weekend": np.zeros(persons), "id": np.arange(persons)}
    day = TRUTH[0] + x[:, None] * TRUTH[1] + sample.own + days_of(rng, persons)
    held.append(inside(*model.predict_interval(known), day))
    new = Sample.draw(rng, 50, (1, 1))
    strangers = {"x": new.X[:, 0], "weekend": np.zeros(50), "id": np.full(50, -1)}
    held.append(inside(*model.predict_interval(strangers), new.Y))
    return held


def of_sample(sample: Sample, rng: np.random.Generator) -> list[float]:
    """Shares held in the order of :data:`KINDS`."""
    effects, two_days = of_sums(sample, rng)
    *others, new = of_formula(sample, rng)
    return [*effects, *others, two_days, new]


Held = Callable[[Sample, np.random.Generator], list[float]]


def covers(persons: int, runs: int, held_of: Held = of_sample) -> tuple[np.ndarray, np.ndarray, float]:
    """Shares held in samples, their standard errors over samples, and CPU seconds a sample."""
    found, start = [], time.process_time()
    for run in range(runs):
        rng = np.random.default_rng([persons, run])
        found.append(held_of(Sample.draw(rng, persons, days_for(persons)), rng))
    held = np.array(found)
    seconds = (time.process_time() - start) / runs
    return held.mean(axis=0), held.std(axis=0, ddof=1) / np.sqrt(runs), seconds


def row(persons: int, runs: int, held_of: Held) -> str:
    held, errors, seconds = covers(persons, runs, held_of)
    shown = " | ".join(f"{share:.3f} ± {error:.3f}" for share, error in zip(held, errors, strict=True))
    low, high = days_for(persons)
    return f"| {persons:,} | {low} to {high} | {shown} | {seconds:.2f} |"


SAID = (
    "`python benchmarks/repeated_coverage.py --runs {runs}`: shares held by 95 % intervals in as many "
    f"samples of each size, and their standard errors. Curves of {POINTS} points on k = {K} functions, an "
    "intraclass correlation of .556.\n\nEffects (columns 3 to 7) by Student's law: from sums without a penalty "
    "(`fixed_effects`), and smoothed, from `re(id, covariance='free')`. Curves of persons: up to 500 "
    "persons by the normal law with errors that count estimated covariances (Kenward and Roger),"
    " beyond by Student's. Predictions by the normal law.\n\nSmoothing pulls the estimates of the sums as if "
    "errors were alike along t. A penalised likelihood that knows the errors held .87 to .92 of the weekend's "
    "effect."
)


def main(arguments: list[str] | None = None) -> str:
    return print_table(arguments, str(__doc__), PERSONS, HEAD, of_sample, f"# Coverage of repeated curves\n\n{SAID}")


def print_table(
    arguments: list[str] | None, doc: str, sizes: Sequence[int], head: str, held_of: Held, said: str
) -> str:
    """Print a row for each number of persons as it is known; write the table where a file is asked for."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--persons", type=int, nargs="+", default=sizes)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--out", type=Path, help="file for the table")
    asked = parser.parse_args(arguments)
    rows = []
    for persons in asked.persons:
        rows.append(row(persons, asked.runs, held_of))
        print(rows[-1], flush=True)
    table = "\n".join((head, *rows))
    if asked.out:
        asked.out.write_text(f"{said.format(runs=asked.runs)}\n\n{table}\n", encoding="utf-8")
    return table


if __name__ == "__main__":
    main()
