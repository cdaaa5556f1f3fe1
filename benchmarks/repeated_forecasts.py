"""Forecasts beside fits: several curves a person, mixed models, survival, hazards.

    python benchmarks/repeated_forecasts.py                   all four tables, an hour
    python benchmarks/repeated_forecasts.py --parts mixed     one of them; the others stay as they are

Persons are drawn from laws that the planner does not know. A forecast is told what a user could say before there are
data: persons, budget, numbers of curves, an intraclass correlation; survival, losses, how far hazards are apart.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import private_levels as curves
import private_mixed as mixed
from hazards import S, followed_by_period

from fdadp import FunctionalRegression, Privacy, SurvivalRegression
from fdadp.planner import plan_hazards, plan_levels, plan_mixed, plan_survival
from fdadp.summaries import PrivateMultilevelFPCA, private_survival

DELTA = 1e-6
BUDGETS = [(1.0, DELTA), (0.5, DELTA), (1.0, None)]


def said(n: int, epsilon: float, delta: float | None) -> str:
    return f"{n:,}, {epsilon:g}{'' if delta else ' pure'}"


# Several curves a person.

T = curves.T
OU = np.exp(-np.abs(curves.t[:, None] - curves.t) / 0.1)
ROOT_OU = np.linalg.cholesky(OU + 1e-9 * np.eye(T)).T


def four(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Four waves of persons and four of rows, Gaussian."""
    return curves.cohort(n, rng)


def heavy(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The same with scores of Student's law of 4 degrees of freedom."""
    ids = np.repeat(np.arange(n), rng.choice(np.arange(1, 8), n, p=curves.NUMBERS))
    scores = [rng.standard_t(4, (m, 4)) / np.sqrt(2) for m in (n, ids.size)]
    Y = np.sin(np.pi * curves.t) + ((scores[0] * np.sqrt(curves.OF_PERSONS)) @ curves.BETWEEN)[ids]
    Y = Y + (scores[1] * np.sqrt(curves.OF_ROWS)) @ curves.WITHIN
    return Y + 0.5 * rng.standard_normal(Y.shape), ids


def rough(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows are Ornstein-Uhlenbeck curves of range .1, much rougher than the prior's."""
    ids = np.repeat(np.arange(n), rng.choice(np.arange(1, 8), n, p=curves.NUMBERS))
    Y = ((rng.standard_normal((n, 4)) * np.sqrt(curves.OF_PERSONS)) @ curves.BETWEEN)[ids]
    return Y + np.sqrt(1.2) * rng.standard_normal((ids.size, T)) @ ROOT_OU, ids


SMOOTH_ROWS = (curves.WITHIN.T * curves.OF_ROWS) @ curves.WITHIN
LEVELS: dict[str, tuple[Callable[..., tuple[np.ndarray, np.ndarray]], np.ndarray]] = {
    "four waves": (four, SMOOTH_ROWS),
    "heavy tails": (heavy, SMOOTH_ROWS),
    "rough rows": (rough, 1.2 * OU),
}
PERSONS = (curves.BETWEEN.T * curves.OF_PERSONS) @ curves.BETWEEN


def captured(model: PrivateMultilevelFPCA, level: str, K: np.ndarray) -> float:
    half = np.sqrt(model.weights_ / model.weights_.sum())
    K = half[:, None] * K * half
    Q = np.linalg.qr((model.eigenfunctions_[level][:4] * half).T)[0]
    return float(np.trace(Q.T @ K @ Q) / np.linalg.eigvalsh(K)[-4:].sum())


def levels(name: str, n: int, epsilon: float, delta: float | None, seeds: int) -> str:
    draw, K_rows = LEVELS[name]
    found = []
    for seed in range(seeds):
        Y, ids = draw(n, np.random.default_rng([seed, n]))
        privacy = Privacy(epsilon, delta, n=n, random_state=seed)
        model = PrivateMultilevelFPCA(n_components=4, privacy=privacy, bounds=(-8, 8), max_rows=7, allow_useless=True)
        model.fit(Y, groups=ids)
        low, high = model.icc_interval()
        found.append([captured(model, "person", PERSONS), captured(model, "row", K_rows), high - low])
    person, row = np.mean(found, axis=0)[:2]
    width = float(np.median([one[2] for one in found]))
    white = 0.0 if name == "rough rows" else 0.08
    told = plan_levels(n, 7, epsilon, delta, rows=curves.NUMBERS, icc=round(curves.ICC, 2), white=white)
    own = [told.captured["person"].mean, told.captured["row"].mean]
    cells = [f"{a:.3f}, {b:.3f} ({a - b:+.3f})" for a, b in zip(own, (person, row), strict=True)]
    ratio = f"{told.icc_width:.3f}, {width:.3f} ({told.icc_width / width - 1:+.0%})"
    return f"| {name} | {said(n, epsilon, delta)} | {cells[0]} | {cells[1]} | {ratio} |"


# Survival.

EDGES = np.arange(0.0, 13.0)


def followed(n: int, rng: np.random.Generator) -> pd.DataFrame:
    t, c = rng.weibull(1.3, n) * 8, rng.uniform(3, 16, n)
    return pd.DataFrame({"months": np.minimum(t, c), "died": t <= c})


def survival(n: int, epsilon: float, delta: float | None, seeds: int) -> str:
    widths = []
    for seed in range(seeds):
        privacy = Privacy(epsilon, delta, n=n, random_state=seed)
        table = followed(n, np.random.default_rng([seed, n]))
        rows = private_survival(table, "months", "died", edges=EDGES.tolist(), privacy=privacy).frame.sort_index()
        widths.append((rows["high"] - rows["low"]).to_numpy())
    found = np.mean(widths, axis=0)
    truth = np.exp(-((EDGES[1:] / 8) ** 1.3))
    told = plan_survival(n, epsilon, delta, edges=EDGES.tolist(), survival=truth.tolist(), lost=0.69)
    rough_told = plan_survival(n, epsilon, delta, edges=EDGES.tolist(), survival=float(truth[-1]), lost=0.69)
    at = [2, 5, 11]
    cells = [f"{told.widths[i]:.3f}, {found[i]:.3f} ({told.widths[i] / found[i] - 1:+.0%})" for i in at]
    off = np.array(rough_told.widths)[at] / found[at] - 1
    return f"| {said(n, epsilon, delta)} | {' | '.join(cells)} | {', '.join(f'{one:+.0%}' for one in off)} |"


# Hazards.


def odds(n: int, rng: np.random.Generator) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Log-odds that are linear in the mean of a curve and in age, and grow in time."""
    table, hazards, _ = followed_by_period(n, rng)
    return table, hazards


def rates(n: int, rng: np.random.Generator) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Proportional hazards, constant in time, with persons who are lost."""
    X = rng.normal(size=(n, 2)) @ [np.ones(25), np.sin(2 * np.pi * S) / 2]
    age = rng.uniform(-1, 1, n)
    rate = np.exp(0.6 * X.mean(axis=1) + 0.5 * age) / 12
    time, end = rng.exponential(1 / rate), rng.uniform(2, 16, n)
    table = {"X": X, "age": age, "time": np.minimum(time, end), "died": (time <= end) * 1.0}
    return table, np.repeat(rate[:, None], 8, axis=1)


HAZARDS = {"odds": (odds, "binomial", 0.97, 0.19, 0.0), "rates": (rates, "poisson", 0.67, 0.46, 0.43)}
IMPORTANCES = {"odds": (0.87, 0.13), "rates": (0.81, 0.19)}
"""Of the curve and of age, by the variances of their effects."""
BOUNDS = {"X": (-4, 4), "age": (-1, 1)}
FORMULA = "Surv(time, died) ~ lf(X) + age"
PILOT = 300
"""Curves of an earlier study, that are told."""


def hazards(name: str, n: int, epsilon: float, delta: float | None, seeds: int) -> str:
    draw, family, spread, lived, lost = HAZARDS[name]
    found = []
    for seed in range(seeds):
        table, _ = draw(n, np.random.default_rng([seed, n]))
        new, truth = draw(1000, np.random.default_rng([seed, n, 1]))
        privacy = Privacy(epsilon, delta, n=n, random_state=seed)
        how = {"times": range(9), "family": family, "privacy": privacy, "bounds": BOUNDS}
        model = SurvivalRegression(FORMULA, progress=False, **how).fit(table)
        off = np.asarray(model.predict(new, type="hazard")) - truth
        mean = truth.mean(axis=0)
        explained = 1 - (off**2).mean() / ((truth - mean) ** 2).mean()
        found.append([explained, (off**2).mean() / mean.mean() ** 2, ((off.mean(axis=0) / mean) ** 2).mean()])
    share, error, middle = np.mean(found, axis=0)
    public = {"times": range(9), "bounds": BOUNDS, "grids": {"X": 25}, "family": family}
    public |= {"spread": spread, "survival": lived, "lost": lost}
    known: dict[str, Any] = {
        "numbers": {"age": (0, 0.577)},
        "importances": dict(zip(("lf(X)", "age"), IMPORTANCES[name], strict=True)),
    }
    known |= {"effects": "level", "curves": {"X": draw(PILOT, np.random.default_rng([n, 2]))[0]["X"]}}
    told = plan_hazards(FORMULA, n, epsilon, delta, **known, **public)
    untold = plan_hazards(FORMULA, n, epsilon, delta, **public).share
    cells = [f"{told.share.mean:.2f}, {share:.2f} ({told.share.mean - share:+.2f}); {told.cohorts} cohorts"]
    cells.append(f"{untold.mean:.2f}; tenths {untold.worst:.2f}, {untold.best:.2f}")
    for own, real in ((told.error, np.sqrt(error)), (told.mean_error, np.sqrt(middle))):
        cells.append(f"{own:.3f}, {real:.3f} ({own / real - 1:+.0%})")
    return f"| {name} | {said(n, epsilon, delta)} | {' | '.join(cells)} |"


# Private mixed models.

MIXED = "Y ~ age + weekend + re(id, covariance='free')"
VARIANCES = np.array([0.16 / 9, 0.045 * 10 / 49])
"""Of the effects of age and of weekend, over persons, rows and t."""
WHOLE = curves.OF_PERSONS.sum() + curves.OF_ROWS.sum() + 0.25
NEW = 2000
"""Rows of others that means are judged on."""


def of_days(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Gaussian persons and days, as in the benchmark of private mixed models."""
    return mixed.cohort(n, rng)


def of_heavy_days(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The same with scores of Student's law of 4 degrees of freedom."""
    Y, ids = heavy(n, rng)
    age, weekend = rng.uniform(-1, 1, n)[ids], (rng.integers(0, 7, ids.size) >= 5) * 1.0
    Y = Y + np.outer(age, mixed.EFFECTS["age"]) + np.outer(weekend, mixed.EFFECTS["weekend"])
    return {"Y": Y, "age": age, "weekend": weekend, "id": ids}


MIXED_LAWS = {"days": of_days, "heavy tails": of_heavy_days}


def mixed_fit(law: str, n: int, privacy: Privacy, seed: int) -> list[float]:
    """Standard errors of both effects, of one sd, over that of curves; width of the ICC's interval; share of means."""
    rng = np.random.default_rng([seed, n, 31])
    data = MIXED_LAWS[law](n, rng)
    how = {"bounds": mixed.BOUNDS, "max_rows": 7, "within": ("weekend",), "progress": False}
    model = FunctionalRegression(MIXED, privacy=privacy, **how).fit(data)
    errors = [data[name].std() * np.sqrt((model.coef(name, se=True)["se"] ** 2).mean()) for name in ("age", "weekend")]
    new = {"age": rng.uniform(-1, 1, NEW), "weekend": (rng.integers(0, 7, NEW) >= 5) * 1.0}
    truth = sum(np.outer(new[name], mixed.EFFECTS[name]) for name in new) + mixed.EFFECTS["mean"]
    off = np.asarray(model.predict(new)) - truth
    low, high = model.persons_.icc_interval()
    share = 1 - (off**2).mean() / ((truth - truth.mean(axis=0)) ** 2).mean()
    return [*(float(one) / np.sqrt(WHOLE) for one in errors), high - low, max(float(share), -1.0)]


def mixed_models(law: str, n: int, epsilon: float, delta: float | None, seeds: int) -> str:
    found = np.array([mixed_fit(law, n, Privacy(epsilon, delta, n=n, random_state=s), s) for s in range(seeds)])
    told = plan_mixed(
        MIXED,
        n,
        epsilon,
        delta,
        bounds=mixed.BOUNDS,
        max_rows=7,
        within=("weekend",),
        rows=curves.NUMBERS,
        icc=round(curves.ICC, 2),
        white=0.08,
        explained=float(VARIANCES.sum() / (WHOLE + VARIANCES.sum())),
        effects="smooth",
        numbers={"age": (0, 0.577), "weekend": (2 / 7, 0.452)},
        importances=dict(zip(("age", "weekend"), VARIANCES, strict=True)),
    )
    real = [*found[:, :2].mean(axis=0), np.median(found[:, 2])]
    own = [*told.standard_errors.values(), told.icc_width]
    cells = [f"{a:.4f}, {b:.4f} ({a / b - 1:+.0%})" for a, b in zip(own, real, strict=True)]
    share = f"{told.share.mean:.2f} (tenths {told.share.worst:.2f}, {told.share.best:.2f}), {found[:, 3].mean():.2f}"
    return f"| {law} | {said(n, epsilon, delta)} | {' | '.join(cells)} | {share} |"


# The page.

EPSILONS = ((1.0, DELTA), (0.2, DELTA), (1.0, None))
OF_HAZARDS = ((1000, 1.0, DELTA), (3000, 1.0, DELTA), (3000, 1.0, None), (10_000, 0.5, DELTA))
OF_MIXED = [
    ("days", 1000, 1.0, DELTA),
    ("days", 2000, 0.5, DELTA),
    ("days", 2000, 1.0, DELTA),
    ("days", 5000, 1.0, DELTA),
    ("days", 20_000, 1.0, DELTA),
    ("days", 2000, 1.0, None),
    ("days", 5000, 1.0, None),
    ("heavy tails", 2000, 1.0, DELTA),
    ("heavy tails", 5000, 1.0, DELTA),
    ("heavy tails", 5000, 1.0, None),
]
PARTS: dict[str, tuple[str, str, Callable[..., str], list[tuple[Any, ...]]]] = {
    "levels": (
        "Components of persons and of their curves.",
        "| curves | persons, ε | persons' variance held by four components | rows' | width of the ICC's interval |",
        levels,
        [
            (name, n, *budget)
            for name in LEVELS
            for n in (1000, 5000)
            for budget in BUDGETS
            if (n, budget[1]) != (1000, None)
        ],
    ),
    "mixed": (
        "Private mixed models, `Y ~ age + weekend + re(id, covariance='free')`, at most 7 rows a person: standard "
        "errors of one standard deviation of age and of weekend, over that of curves, beside the means of fits; width "
        "of the ICC's interval, medians; share of the variance of means, at least -1 a cohort. Told: rows, ICC, white "
        "noise, smooth effects, what they explain (.8 %), importances, means and sds.",
        "| curves | persons, ε | standard error of age | of weekend | width of the ICC's interval | share |",
        mixed_models,
        OF_MIXED,
    ),
    "survival": (
        "Widths of limits of a survival curve at months 3, 6 and 12, told survival at all ends; and off by so much, "
        "told only the last one (a constant hazard). Four times as many samples.",
        "| persons, ε | month 3 | month 6 | month 12 | told the last one only |",
        survival,
        [(n, *budget) for n in (500, 2000, 10_000) for budget in EPSILONS],
    ),
    "hazards": (
        "Hazards: share of their variance over persons that is explained; error of a person's hazard over the mean "
        "hazard; error of the mean hazard of a period over itself. Told: effects of levels, importances, mean, sd of "
        "age, curves of 300 others. "
        "Errors are forecast by the median of cohorts; of fits they are the root of the mean square, which a few bad "
        "fits raise.",
        "| hazards | persons, ε | explained, told | told nothing of terms | error of a person's, told | of the mean |",
        hazards,
        [(name, *cell) for name in HAZARDS for cell in OF_HAZARDS],
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="made anew; others stay")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "repeated-forecasts.md")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    before = given.out.read_text(encoding="utf-8").split("\n## ")[1:] if given.out.exists() else []
    pages = {text.split("\n")[0].strip(): text.strip() for text in before}
    for name in given.parts:
        what, header, row, cells = PARTS[name]
        lines = [name, "", f"{what} {given.seeds} samples of each.", "", header, "|---" * (header.count("|") - 1) + "|"]
        for cell in cells:
            lines.append(row(*cell, given.seeds))
            print(lines[-1], flush=True)
        pages[name] = "\n".join(lines)
    head = "# Forecasts beside fits: several curves a person, mixed models, survival, hazards\n\n"
    head += "`python benchmarks/repeated_forecasts.py`. Each cell: forecast, mean of fits (difference).\n"
    text = "".join(f"\n## {pages[name]}\n" for name in PARTS if name in pages)
    given.out.write_text(head + text, encoding="utf-8")


if __name__ == "__main__":
    main()
