"""Hazards of rows until an event: each row once, or each person once; ordinary and private fits of the same persons.

A person has a row for each of eight periods until its event. The mean hazard of all rows is .167 in both simulations:
``numbers`` (a score, age and the period) and ``curves`` (a curve in place of the score). Printed are the mean hazard
that a fit predicts for rows of new persons, beside the true one of these rows, and slopes of predicted on true log
hazards and log-odds, with their standard deviation between cohorts.

    python benchmarks/terms/person_periods.py [--cohorts 20] [--n 3000] [--epsilon 1 3] [--delta 1e-6]

A checkout without ``person_rows`` prints what it has: ``PYTHONPATH=../before python ...``.
"""

from __future__ import annotations

import argparse
import inspect
import warnings
from typing import Any

import numpy as np

from fdadp import Privacy, ScalarRegression

PERIODS, S = 8, np.linspace(0, 1, 25)
MODELS = {"numbers": "y ~ score + age + period", "curves": "y ~ lf(X) + age + period"}
LEVELS = {"numbers": -1.817, "curves": -1.781}
"""Log-odds of the first period at the middle of all covariates, for a mean hazard of .167."""
BOUNDS = {"score": (-3, 3), "X": (-4, 4), "age": (-1, 1), "period": (0, PERIODS - 1), "y": [0, 1]}


def person_periods(kind: str, n: int, seed: int) -> tuple[dict[str, Any], Any]:
    """A table of rows until the event, and their true hazards."""
    rng = np.random.default_rng(seed)
    age, period = rng.uniform(-1, 1, n), np.arange(PERIODS)
    if kind == "numbers":
        own = {"score": rng.standard_normal(n)}
        eta = 0.6 * own["score"] + 0.8 * age
        own["score"] = np.clip(own["score"], -3, 3)
    else:
        scores = rng.normal(size=(n, 3)) / np.array([1, 1.5, 2.5])
        own = {"X": scores @ np.stack([np.ones(S.size), np.sin(2 * np.pi * S), np.cos(2 * np.pi * S)])}
        eta = 0.9 * own["X"].mean(axis=1) + 0.6 * age
    hazard = 1 / (1 + np.exp(-(eta[:, None] + LEVELS[kind] + 0.1 * period)))
    event = rng.uniform(size=hazard.shape) < hazard
    last = np.where(event.any(axis=1), event.argmax(axis=1), PERIODS - 1)
    i, k = np.nonzero(period <= last[:, None])
    table = {name: values[i] for name, values in own.items()}
    return table | {"age": age[i], "period": k.astype(float), "y": event[i, k].astype(float), "id": i}, hazard[i, k]


def logit(p: Any) -> Any:
    return np.log(p / (1 - p))


def found(kind: str, told: dict[str, Any], n: int, seed: int) -> list[float]:
    """Mean hazard predicted and true, and slopes of log hazards and of log-odds."""
    (table, _), (new, true) = person_periods(kind, n, seed), person_periods(kind, 3000, 10**6 + seed)
    bounds = {"bounds": {k: v for k, v in BOUNDS.items() if k in table}} if "privacy" in told else {}
    model = ScalarRegression(MODELS[kind], family="binomial", progress=False, **told, **bounds)
    p = model.fit(table, groups="id").predict(new)
    slopes = (np.polyfit(of(true), of(p), 1)[0] for of in (np.log, logit))
    return [float(np.mean(p)), float(true.mean()), *map(float, slopes)]


def laws() -> list[dict[str, Any]]:
    """Settings of a private fit; of an ordinary one without `max_rows`."""
    if "person_rows" not in inspect.signature(ScalarRegression).parameters:
        return [{}]
    return [{"person_rows": "mean"}, {"person_rows": "sum", "max_rows": PERIODS}]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--cohorts", type=int, default=20)
    asked.add_argument("--n", type=int, default=3000)
    asked.add_argument("--epsilon", type=float, nargs="*", default=[1.0, 3.0])
    asked.add_argument("--delta", type=float, default=1e-6)
    o = asked.parse_args()
    print("| simulation | person_rows | epsilon | mean hazard | true | slope, log h | (sd) | slope, log-odds | (sd) |")
    print("|---|---|---|---|---|---|---|---|---|")
    for kind in MODELS:
        for law in laws():
            for epsilon in (None, *o.epsilon):
                rows = []
                for seed in range(o.cohorts):
                    private = {"privacy": Privacy(epsilon or 1.0, o.delta, n=o.n, random_state=seed)}
                    own = {k: v for k, v in law.items() if epsilon or k != "max_rows"} | (private if epsilon else {})
                    rows.append(found(kind, own, o.n, seed))
                m, sd = np.mean(rows, axis=0), np.std(rows, axis=0)
                said = f"| {kind} | {law.get('person_rows', '-')} | {epsilon or 'not private'} "
                print(
                    f"{said}| {m[0]:.3f} | {m[1]:.3f} | {m[2]:.2f} | {sd[2]:.2f} | {m[3]:.2f} | {sd[3]:.2f} |",
                    flush=True,
                )
