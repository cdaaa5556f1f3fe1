"""Intervals of private coefficients: how often they hold the truth, and how wide they are beside those without privacy.

    python benchmarks/learners/coefficients.py [--fits 1000] [--only linear]
    python benchmarks/learners/coefficients.py --fits 100 --curvature 0.05 0.1 0.15 0.2 0.3

Linear and logistic regression on intensive-care stays (``icu_stays.csv.gz`` in ``FDADP_DATA``) and on two simulations
each, at ε = 1 with δ = 1e-6 and pure (a logistic fit with intervals spends pure ε in both, so it stands here once). The
stays count as the population: each fit sees as many, drawn from them with replacement, and the truth is the fit without
privacy to all of them, rows and targets within the same public bounds (for logistic regression a ball of radius 2.5, in
public units). So the truth is known exactly, the draws are independent as intervals suppose, and everything in which
the stays are no linear model (errors of unlike size, curvature, skewness) is in every draw. In simulations the truth is
what was simulated. "Sampling errors only" are the private estimates with standard errors that do not know of the noise.
Results: results/coefficients.md and .json. With ``--curvature`` logistic regression alone, by the share of the budget
that goes to the curvature: results/curvature.md.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pandas as pd
import statsmodels.api as sm
from scipy.special import expit

from fdadp._version import __version__
from fdadp.learners import DPLinearRegression, DPLogisticRegression
from fdadp.learners import logistic_regression as logistic_module

HERE = Path(__file__).resolve().parent
MODES = {"ε = 1, δ = 1e-6": {"epsilon": 1.0, "delta": 1e-6}, "ε = 1, pure": {"epsilon": 1.0, "delta": None}}
LEVEL = 0.05
NORMAL = 1.959964
APART = 10**6
"""Added to the seed of the noise, so that it is not drawn from the numbers that the data are drawn from."""


class Case(NamedTuple):
    """A population: how to draw X and y from it, the true intercept and slopes, and a private and a plain fit."""

    kind: str
    name: str
    draw: Callable[[np.random.Generator], tuple[Any, Any]]
    truth: Any
    private: Callable[..., Any]
    plain: Callable[[Any, Any], Any]


def linear(name: str, draw: Any, bounds: Any, bounds_y: Any, truth: Any = None, rows: Any = None) -> Case:
    """Linear regression within public bounds; the truth is that of all `rows` where it is not given."""

    def plain(X: Any, y: Any) -> Any:
        return sm.OLS(np.clip(y, *bounds_y), sm.add_constant(np.clip(X, *bounds))).fit()

    def private(seed: int, **mode: Any) -> Any:
        return DPLinearRegression(bounds=bounds, bounds_y=bounds_y, random_state=seed, **mode)

    return Case("linear", name, draw, plain(*rows).params if truth is None else truth, private, plain)


def logistic(name: str, draw: Any, data_norm: float, truth: Any = None, rows: Any = None) -> Case:
    """Logistic regression of rows within a ball about 0; the truth is that of all `rows` where it is not given."""

    def plain(X: Any, y: Any) -> Any:
        inside = X * np.minimum(1, data_norm / np.maximum(np.linalg.norm(X, axis=1), 1e-9))[:, None]
        return sm.Logit(y, sm.add_constant(inside)).fit(disp=False)

    def private(seed: int, **mode: Any) -> Any:
        settings = {"classes": [0, 1], "data_norm": data_norm, "inference": True, "random_state": seed}
        return DPLogisticRegression(**settings, **mode)

    return Case("logistic", name, draw, plain(*rows).params if truth is None else truth, private, plain)


def stays() -> pd.DataFrame:
    """Intensive-care stays with all scores and a length."""
    table = pd.read_csv(Path(os.environ["FDADP_DATA"]) / "icu_stays.csv.gz")
    known = (table[["length_of_stay_days", "saps1", "sofa"]] >= 0).all(axis=1) & table["male"].notna()
    return table[known]


def again(table: pd.DataFrame, columns: list[str], target: str) -> tuple[Any, Any]:
    """All rows, and a way to draw as many of them with replacement."""
    X, y = table[columns].to_numpy(float), table[target].to_numpy(float)

    def draw(rng: np.random.Generator) -> tuple[Any, Any]:
        at = rng.integers(0, len(X), len(X))
        return X[at], y[at]

    return (X, y), draw


def uniform(n: int, slopes: Any, kind: str) -> Callable[[np.random.Generator], tuple[Any, Any]]:
    """Independent features on [-1, 1] with normal errors, or correlated ones with errors of unlike size."""

    def draw(rng: np.random.Generator) -> tuple[Any, Any]:
        X = rng.uniform(-1, 1, (n, len(slopes)))
        if kind == "independent":
            return X, 0.5 + X @ slopes + rng.standard_normal(n)
        X = (X + rng.uniform(-1, 1, (n, 1))) / 2
        return X, 0.5 + X @ slopes + rng.standard_t(8, n) * (0.6 + 0.4 * np.abs(X[:, 0]))

    return draw


def events(n: int, slopes: Any) -> Callable[[np.random.Generator], tuple[Any, Any]]:
    """Independent features on [-1, 1], and events of which the logit is linear."""

    def draw(rng: np.random.Generator) -> tuple[Any, Any]:
        X = rng.uniform(-1, 1, (n, len(slopes)))
        return X, (rng.random(n) < expit(X @ slopes - 0.5)).astype(int)

    return draw


def cases() -> Iterator[Case]:
    """Populations of the table."""
    table = stays()
    for columns, target, bounds, bounds_y in (
        (["age", "male", "sofa"], "saps1", ([15, 0, 0], [90, 1, 24]), (0, 40)),
        (["age", "saps1", "sofa"], "length_of_stay_days", ([15, 0, 0], [90, 34, 24]), (0, 60)),
    ):
        rows, draw = again(table, columns, target)
        name = f"ICU, {target} by {', '.join(columns)}, n = {len(table)}"
        yield linear(name, draw, bounds, bounds_y, rows=rows)
    for kind, d, n in (("independent", 5, 5000), ("correlated", 10, 30_000)):
        slopes = np.linspace(1, -1, d)
        name = f"simulation, {d} {kind} features, n = {n}"
        yield linear(name, uniform(n, slopes, kind), (-1, 1), (-6, 7), np.append(0.5, slopes))
    scores = {"age": (65, 17), "saps1": (15, 6), "sofa": (6, 4.5)}
    units = pd.DataFrame({name: (table[name] - middle) / unit for name, (middle, unit) in scores.items()})
    rows, draw = again(units.assign(died=table["died_in_hospital"]), list(scores), "died")
    yield logistic(f"ICU, death by {', '.join(scores)}, n = {len(table)}", draw, 2.5, rows=rows)
    for d, n in ((4, 4000), (8, 20_000)):
        slopes = np.linspace(1, -1, d)
        name = f"simulation, {d} features, n = {n}"
        yield logistic(name, events(n, slopes), np.sqrt(d), np.append(-0.5, slopes))


def measure(case: Case, mode: dict[str, Any], fits: int) -> dict[str, Any]:
    """Coverage of the slopes' intervals and of two others, and widths over those without privacy."""
    held, plain_held, naive_held, wide = [], [], [], []
    for seed in range(fits):
        X, y = case.draw(np.random.default_rng(seed))
        found = case.private(seed + APART, **mode).fit(X, y).coef_table(LEVEL)
        plain = case.plain(X, y)
        half = NORMAL * plain.bse
        held.append((found["lower"] <= case.truth) & (case.truth <= found["upper"]))
        plain_held.append(np.abs(plain.params - case.truth) <= half)
        naive_held.append(np.abs(found["estimate"] - case.truth) <= half)
        wide.append((found["upper"] - found["lower"]) / (2 * half))
    slopes = slice(1, None)
    return {
        "coverage": float(np.mean(np.array(held)[:, slopes])),
        "by slope": np.mean(np.array(held)[:, slopes], axis=0).round(3).tolist(),
        "not private": float(np.mean(np.array(plain_held)[:, slopes])),
        "sampling errors only": float(np.mean(np.array(naive_held)[:, slopes])),
        "width": float(np.median(np.array(wide)[:, slopes])),
        "unbounded": float(np.mean(np.isinf(np.array(wide)[:, slopes]))),
    }


def shares(curvature: list[float], fits: int) -> str:
    """Table of logistic regression by the share for the curvature."""
    lines = [
        f"{fits} fits each at pure ε = 1: coverage in %, median width / not private, intervals without ends in %.",
        "",
        "| share for the curvature | " + " | ".join(f"{share:g}" for share in curvature) + " |",
        "|---" * (1 + len(curvature)) + "|",
    ]
    for case in cases():
        if case.kind != "logistic":
            continue
        cells = []
        for share in curvature:
            with mock.patch.object(logistic_module, "_CURVATURE", share):
                found = measure(case, MODES["ε = 1, pure"], fits)
            cells.append(f"{100 * found['coverage']:.1f}, {found['width']:.2f}, {100 * found['unbounded']:.0f}")
        lines.append(f"| {case.name} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


def line(row: dict[str, Any]) -> str:
    """A row of the table."""
    each = ", ".join(f"{100 * share:.1f}" for share in row["by slope"])
    shares = [f"{100 * row[what]:.1f}" for what in ("coverage", "sampling errors only", "not private")]
    return (
        f"| {row['kind']}: {row['case']}; {row['mode']} | {shares[0]} | {each} | {row['width']:.2f} | {shares[1]} | "
        f"{shares[2]} |"
    )


def main(argv: list[str] | None = None) -> str:
    """Write the table; returns it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fits", type=int, default=1000)
    parser.add_argument("--only", choices=["linear", "logistic"], help="run these anew, keep the recorded others")
    parser.add_argument("--curvature", type=float, nargs="+", help="shares for the curvature to compare")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    if args.curvature:
        text = shares(args.curvature, args.fits)
        (args.out / "curvature.md").write_text(text, encoding="utf-8")
        return text
    lines = [
        f"{args.fits:,} fits each, fdadp {__version__}, add/remove, n private; slopes, nominal 95 %. Made by",
        "`python benchmarks/learners/coefficients.py`, whose text says what the truth is. Two lines that are the same:",
        "the budget with a δ went to the pure release, which is quieter there.",
        "",
        "| | coverage, % | each slope, % | width / not private | sampling errors only, % | not private, % |",
        "|---|---|---|---|---|---|",
    ]
    path = args.out / "coefficients.json"
    kept = json.loads(path.read_text(encoding="utf-8")) if args.only and path.is_file() else []
    results = [row for row in kept if row["kind"] != args.only]
    for case in cases():
        for label, mode in MODES.items():
            if args.only not in (None, case.kind) or (case.kind == "logistic" and mode["delta"] is not None):
                continue
            results.append({"kind": case.kind, "case": case.name, "mode": label, **measure(case, mode, args.fits)})
            print(line(results[-1]), flush=True)
    lines += [line(row) for row in results]
    text = "\n".join(lines) + "\n"
    (args.out / "coefficients.md").write_text(text, encoding="utf-8")
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return text


if __name__ == "__main__":
    main()
