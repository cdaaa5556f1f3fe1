"""Private mixed models: coverage, components, ICC. ``python benchmarks/private_mixed.py [--seeds 60] [--pooled]``.

Persons have 1 to 7 days, unequal numbers; age varies between persons, weekend within them; each level has four
components. Told are how often pointwise 95 % intervals hold the three effects (mean over t; worst t), their mean
standard errors and root mean square errors, the share of a level's variance that its first four private components
hold, and how often intervals of the intraclass correlation hold, over all t and at each t.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from private_levels import BETWEEN, ICC, NUMBERS, OF_PERSONS, OF_ROWS, WITHIN, t

from fdadp import FunctionalRegression, Privacy

EFFECTS = {"mean": np.sin(np.pi * t), "age": 0.4 * t, "weekend": 0.3 * np.cos(np.pi * t)}
SEEDS, OF_MANY, MANY = 60, 12, 20_000
"""Samples of a cell, and of one of many persons."""
CELLS = [(n, epsilon, 1e-6) for n in (1000, 2000, 5000, MANY) for epsilon in (0.5, 1.0)]
CELLS += [(n, 1.0, None) for n in (2000, 5000, MANY)]
BOUNDS = {"Y": (-8, 8), "age": (-1, 1), "weekend": (0, 1)}


def cohort(persons: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    ids = np.repeat(np.arange(persons), rng.choice(np.arange(1, 8), persons, p=NUMBERS))
    age, weekend = rng.uniform(-1, 1, persons)[ids], (rng.integers(0, 7, ids.size) >= 5) * 1.0
    curves = EFFECTS["mean"] + np.outer(age, EFFECTS["age"]) + np.outer(weekend, EFFECTS["weekend"])
    curves += ((rng.standard_normal((persons, 4)) * np.sqrt(OF_PERSONS)) @ BETWEEN)[ids]
    curves += (rng.standard_normal((len(ids), 4)) * np.sqrt(OF_ROWS)) @ WITHIN
    return {"Y": curves + 0.5 * rng.standard_normal(curves.shape), "age": age, "weekend": weekend, "id": ids}


def captured(basis: np.ndarray, weights: np.ndarray, functions: np.ndarray, values: np.ndarray) -> float:
    half = np.sqrt(weights)
    K = (functions * half).T * values @ (functions * half)
    Q = np.linalg.qr((basis[:4] * half).T)[0]
    return float(np.trace(Q.T @ K @ Q) / np.trace(K))


def effects(model: FunctionalRegression) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Curves with standard errors: the mean at age 0 on weekdays, and both effects."""
    new = {"age": np.zeros(1), "weekend": np.zeros(1)}
    fit, records = model.fitted_.fit, model.fitted_.records(new, None)
    found = {"mean": (fit.form.predictor(records, fit.coefficients), fit.standard_errors(records))}
    for name in ("age", "weekend"):
        frame = model.coef(name, se=True, t=t)
        found[name] = frame["value"].to_numpy()[None], frame["se"].to_numpy()[None]
    return {name: (value[0], se[0]) for name, (value, se) in found.items()}


def fit(persons: int, epsilon: float, delta: float | None, seed: int, rows: str) -> dict[str, np.ndarray]:
    data = cohort(persons, np.random.default_rng([9000 + seed, persons]))
    privacy = Privacy(epsilon, delta, n=persons, random_state=seed + 1000 * CELLS.index((persons, epsilon, delta)))
    model = FunctionalRegression(
        "Y ~ age + weekend + re(id, covariance='free')",
        privacy=privacy,
        bounds=BOUNDS,
        max_rows=7,
        person_rows=rows,
        within=("weekend",),
    )
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data)
    spent = time.process_time() - started
    levels, out = model.persons_, {}
    for name, (value, se) in effects(model).items():
        error = value - EFFECTS[name]
        out |= {f"held {name}": np.abs(error) < 1.96 * se, f"se {name}": se, f"error {name}": error}
    for level, functions, values in (("person", BETWEEN, OF_PERSONS), ("row", WITHIN, OF_ROWS)):
        out[level] = np.array(captured(levels.eigenbasis(level).functions, levels.weights, functions, values))
    low, high = levels.icc_interval()
    of_t = (BETWEEN.T**2 @ OF_PERSONS) / (BETWEEN.T**2 @ OF_PERSONS + WITHIN.T**2 @ OF_ROWS)
    ends = levels.icc_band()
    out |= {"icc": np.array(levels.icc()), "icc held": np.array(low <= ICC <= high), "width": np.array(high - low)}
    return out | {"icc curve held": (ends[0] <= of_t) & (of_t <= ends[1]), "seconds": np.array(spent)}


def title(cell: tuple[int, float, float | None]) -> str:
    persons, epsilon, delta = cell
    return f"| {persons:,}, {epsilon:g}{'' if delta else ' pure'} |"


def row(cell: tuple[int, float, float | None], found: list[dict[str, np.ndarray]]) -> str:
    mean = {key: np.mean([one[key] for one in found], axis=0) for key in found[0]}
    parts = [f"{len(found)}"]
    for name in EFFECTS:
        rmse = np.sqrt(np.mean([one[f"error {name}"] ** 2 for one in found]))
        held = mean[f"held {name}"]
        parts.append(f"{held.mean():.3f} ({held.min():.2f}); {mean[f'se {name}'].mean():.3f}, {rmse:.3f}")
    for level in ("person", "row"):
        parts.append(f"{mean[level]:.3f} ({min(one[level] for one in found):.3f})")
    sd = np.std([one["icc"] for one in found])
    parts.append(f"{mean['icc']:.3f} | {sd:.3f} | {mean['icc held']:.2f} | {mean['width']:.3f}")
    parts.append(f"{mean['icc curve held'].mean():.3f} ({mean['icc curve held'].min():.2f})")
    return f"{title(cell)} " + " | ".join([*parts, f"{mean['seconds']:.2f}"]) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, help=f"samples of a cell; by default {SEEDS}, or {OF_MANY} of {MANY:,}")
    parser.add_argument("--pooled", action="store_true", help="person_rows='exchangeable'")
    parser.add_argument("--cells", type=int, nargs="*", help="numbers of the cells, from 0; default all")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "private-mixed.md")
    given = parser.parse_args()
    heading = [
        "# Private mixed models",
        "",
        f"`python benchmarks/private_mixed.py{' --pooled' if given.pooled else ''}`, where `--seeds` says how many "
        "samples and `--cells` which rows are made anew: of each effect how often pointwise 95 % intervals hold it (at "
        "the worst t); mean standard error, root mean square error. "
        "Share of a level's variance that four private components hold, mean (worst). Intraclass correlation "
        f"(true {ICC:.3f}).",
        "",
        "| persons, ε | samples | mean | age | weekend | between | within | ICC | its sd | interval holds | its width "
        "| at each t (worst) | CPU s |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    before = given.out.read_text(encoding="utf-8").splitlines() if given.out.exists() else []
    lines = {told: line for line in before for told in map(title, CELLS) if line.startswith(told)}
    for cell in CELLS if given.cells is None else [CELLS[i] for i in given.cells]:
        rows = "exchangeable" if given.pooled else "mean"
        seeds = given.seeds or (OF_MANY if cell[0] == MANY else SEEDS)
        lines[title(cell)] = row(cell, [fit(*cell, seed, rows) for seed in range(seeds)])
        print(lines[title(cell)], flush=True)
        shown = [lines[told] for told in map(title, CELLS) if told in lines]
        given.out.write_text("\n".join(heading + shown) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
