"""Times to an event: private survival and its limits, the log-rank test's level, private hazards, Cox at many times.

    python benchmarks/survival.py                   all four tables, some ten minutes
    python benchmarks/survival.py --parts cox hazards --runs 20

Releases draw their noise from the system, as deployed ones do, so that figures repeat up to chance.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from hazards import PERIODS, followed_by_period

from fdadp import Privacy, SurvivalRegression
from fdadp.summaries import private_survival

CURVES = ((500, 1.0), (2000, 1.0), (10_000, 1.0), (2000, 0.2))
DELTA, INTERVALS, END = 1e-6, 18, 18.0
EDGES = np.linspace(0, END, INTERVALS + 1)
LEVELS = ((1000, 1.0), (4000, 1.0), (4000, np.inf))
HAZARDS = ((1000, 1.0), (3000, 1.0))
PERSONS = (1000, 10_000, 100_000)
BESIDE = 10_000
"""Persons up to which statsmodels is run."""


def followed(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Weibull times, censored evenly from 4 to 24 months."""
    time_, end = 12 * rng.weibull(1.3, n), rng.uniform(4, 24, n)
    arm = rng.choice(["drug", "placebo"], n)
    return pd.DataFrame({"months": np.minimum(time_, end), "died": time_ <= end, "arm": arm})


def told(n: int, epsilon: float) -> Privacy:
    return Privacy(1e4 if np.isinf(epsilon) else epsilon, DELTA, n=n)


def share(values: list[float]) -> str:
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.3f}"


def curves(runs: int) -> list[str]:
    """Private Kaplan-Meier curves: errors, and what their limits hold."""
    truth = np.exp(-((EDGES[1:] / 12) ** 1.3))
    rows = ["| persons | ε | largest error | held by 95 % limits | their mean width |", "|---|---|---|---|---|"]
    for n, epsilon in CURVES:
        error, held, width = [], [], []
        for run in range(runs):
            data = followed(np.random.default_rng([n, run]), n)
            found = private_survival(data, "months", "died", edges=EDGES, privacy=told(n, epsilon)).frame.sort_index()
            low, high = found["low"].to_numpy(), found["high"].to_numpy()
            error.append(np.abs(found["value"].to_numpy() - truth).max())
            held.append(((low <= truth) & (truth <= high)).mean())
            width.append((high - low).mean())
        rows.append(f"| {n:,} | {epsilon:g} | {np.mean(error):.3f} | {share(held)} | {np.mean(width):.3f} |")
    return rows


def levels(runs: int) -> list[str]:
    """How often the log-rank test of two equal groups says that they differ."""
    rows = ["| persons | ε | rejected at 5 % | sd of z | difference held by 95 % limits |", "|---|---|---|---|---|"]
    by = {"arm": ["drug", "placebo"]}
    for place, (n, epsilon) in enumerate(LEVELS, start=1):  # each row its own samples: one bad draw is told once
        z, held = [], []
        for run in range(runs):
            data = followed(np.random.default_rng([n, run, place]), n)
            found = private_survival(data, "months", "died", edges=EDGES, by=by, privacy=told(n, epsilon)).frame
            found = found.sort_index()
            z.append(float(found.loc[("difference", "log-rank z"), "value"].iloc[0]))
            gap = found.loc[("difference", "survival")]
            held.append(((gap["low"] <= 0) & (gap["high"] >= 0)).mean())
        rejected = [float(abs(value) > 1.96) for value in z]
        without = "none" if np.isinf(epsilon) else f"{epsilon:g}"
        rows.append(f"| {n:,} | {without} | {share(rejected)} | {np.std(z):.2f} | {share(held)} |")
    return rows


def regressions(runs: int) -> list[str]:
    """Private hazards by curves and a number: their mean, and the slope of their log-odds on the true ones."""
    rows = ["| persons | ε | family | mean hazard | true | slope | CPU s a fit |", "|---|---|---|---|---|---|---|"]
    for n, epsilon in HAZARDS:
        for family in ("binomial", "poisson"):
            means, true, slopes, seconds = [], [], [], 0.0
            for run in range(runs):
                train, _, _ = followed_by_period(n, np.random.default_rng([n, run]))
                new, h, seen = followed_by_period(3000, np.random.default_rng([n, run, 1]))
                model = SurvivalRegression(
                    "Surv(time, died) ~ lf(X) + age",
                    times=range(PERIODS + 1),
                    family=family,
                    bounds={"X": (-4, 4), "age": (-1, 1)},
                    privacy=Privacy(epsilon, DELTA, n=n),
                    progress=False,
                )
                start = time.process_time()
                model.fit(train)
                seconds += time.process_time() - start
                p = np.asarray(model.predict(new, type="hazard"))[seen]
                p = 1 - np.exp(-p) if family == "poisson" else p
                means.append(p.mean())
                true.append(h[seen].mean())
                slopes.append(np.polyfit(*(np.log(q / (1 - q)) for q in (h[seen], p)), 1)[0])
            row = f"| {n:,} | {epsilon:g} | {family} | {share(means)} | {np.mean(true):.3f} | {share(slopes)} |"
            rows.append(f"{row} {seconds / runs:.1f} |")
    return rows


def cox(runs: int) -> list[str]:
    """Cox's regression at as many times as events, beside statsmodels."""
    from statsmodels.duration.hazard_regression import PHReg

    rows = [
        "| persons | times of events | CPU s | with a spline of b | `PHReg`, CPU s | largest difference |",
        "|---|---|---|---|---|---|",
    ]
    for n in (500, *PERSONS):
        rng = np.random.default_rng(n)
        a, b = rng.standard_normal((2, n))
        t, c = rng.exponential(np.exp(-0.5 * a + 0.3 * np.sin(2 * b))), rng.exponential(2, n)
        data = {"a": a, "b": b, "time": np.minimum(t, c), "died": t <= c}
        model, seconds = None, []
        for formula in ("a + b", "a + s(b, bs='cr')"):
            start = time.process_time()
            model = SurvivalRegression(f"Surv(time, died) ~ {formula}", family="poisson").fit(data)
            seconds.append(time.process_time() - start)
            if formula == "a + b":
                own = np.array([model.model_.coef(x, se=True).iloc[0][["value", "se"]] for x in "ab"], dtype=float)
        theirs, apart = "not run", "-"
        if n <= BESIDE:
            start = time.process_time()
            found = PHReg(data["time"], np.column_stack((a, b)), status=data["died"] * 1, ties="breslow").fit(tol=1e-14)
            theirs = f"{time.process_time() - start:.2f}"
            apart = f"{np.abs(own - np.column_stack((found.params, found.bse))).max():.0e}"
        if n in PERSONS:  # the first was to load and compile
            rows.append(
                f"| {n:,} | {model.times_.size - 1:,} | {seconds[0]:.2f} | {seconds[1]:.2f} | {theirs} | {apart} |"
            )
    return rows


PARTS: dict[str, tuple[str, Callable[[int], list[str]], int]] = {
    "curves": ("Private survival curves", curves, 200),
    "levels": ("Private log-rank test of equal groups", levels, 2000),
    "hazards": ("Private `SurvivalRegression`", regressions, 10),
    "cox": ("Cox's regression at all times of events", cox, 1),
}
SAID = {
    "curves": f"{INTERVALS} intervals, δ = {DELTA:g}; Weibull times, censored. Errors are largest over intervals.",
    "levels": "Where ε is none it was 1e4, which is hardly noise.",
    "hazards": f"{PERIODS} periods, a curve and a number, 3,000 new persons. Slope: of log-odds on true ones.",
    "cox": "Breslow's ties; differences are of coefficients and standard errors.",
}


def main(arguments: list[str] | None = None) -> str:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--runs", type=int, help="samples of each row")
    parser.add_argument("--out", type=Path, help="file for the tables")
    asked = parser.parse_args(arguments)
    text = ["# Times to an event", "", "`python benchmarks/survival.py`"]
    for name in asked.parts:
        title, table, usual = PARTS[name]
        runs = asked.runs or usual
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows = table(runs)
        said = SAID[name] if runs == 1 else f"{SAID[name]} {runs} samples of each."
        text += ["", f"## {title}", "", said, "", *rows]
        print("\n".join(text[-len(rows) - 4 :]), flush=True)
    whole = "\n".join(text) + "\n"
    if asked.out:
        asked.out.write_text(whole, encoding="utf-8")
    return whole


if __name__ == "__main__":
    main()
