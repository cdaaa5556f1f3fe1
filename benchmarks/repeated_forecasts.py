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
from fdadp.planner.forecast_settings import Spread
from fdadp.summaries import PrivateMultilevelFPCA, private_survival

DELTA = 1e-6
BUDGETS = [(1.0, DELTA), (0.5, DELTA), (1.0, None)]


class Row:
    """Cells of one line, each with a forecast and the mean of fits; and how far they are apart.

    Forecasts of a share may be off by .03, others by 15 %; else their tenths should hold the fits.
    """

    def __init__(self, first: str) -> None:
        self.first, self.cells = first, [first]
        self.off: list[tuple[float, str, str]] = []
        """Of each cell: how far it is off, by what it may be; in words; and whether tenths hold the fits."""

    def text(self, cell: str) -> Row:
        """Add a cell that is not judged."""
        self.cells.append(cell)
        return self

    def share(self, told: Spread, real: float, digits: int) -> Row:
        """Add a share."""
        return self._add(told, real, digits, (told.mean - real) / 0.03, f"{told.mean - real:+.{digits}f}")

    def size(self, told: Spread | float, real: float, digits: int = 3) -> Row:
        """Add an error or a width."""
        off = (told.mean if isinstance(told, Spread) else told) / real - 1
        return self._add(told, real, digits, off / 0.15, f"{off:+.0%}")

    def _add(self, told: Spread | float, real: float, digits: int, off: float, words: str) -> Row:
        if isinstance(told, Spread):
            low, high = sorted((told.worst, told.best))
            held = "tenths hold the fits" if low <= real <= high else "tenths do not hold the fits"
            own = f"{told.mean:.{digits}f} (tenths {low:.{digits}f}, {high:.{digits}f})"
        else:
            held, own = "no tenths", f"{told:.{digits}f}"
        self.off.append((abs(off), words, held))
        return self.text(f"{own}, {real:.{digits}f} ({words})")

    @property
    def line(self) -> str:
        return f"| {' | '.join(self.cells)} |"


def worst(rows: list[Row]) -> str:
    """A sentence on the cell that is off the most, and on those whose forecasts are further off than they may be."""
    _, words, held, first = max((*one, row.first) for row in rows for one in row.off)
    far = [one for row in rows for one in row.off if one[0] > 1]
    text = f"Worst cell: {words} ({first.replace(' | ', ', ')}; {held})."
    if not far:
        return f"{text} All are within 15 %, or .03 of a share."
    count, holding = sum(len(row.off) for row in rows), sum(one[2] == "tenths hold the fits" for one in far)
    return (
        f"{text} Beyond 15 %, or .03 of a share, are {len(far)} of {count}; of {holding} of them tenths hold the fits."
    )


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


def levels(name: str, n: int, epsilon: float, delta: float | None, seeds: int) -> Row:
    draw, K_rows = LEVELS[name]
    found = []
    for seed in range(seeds):
        Y, ids = draw(n, np.random.default_rng([seed, n]))
        privacy = Privacy(epsilon, delta, n=n, random_state=seed)
        model = PrivateMultilevelFPCA(n_components=4, privacy=privacy, bounds=(-8, 8), max_rows=7, allow_useless=True)
        model.fit(Y, groups=ids)
        low, high = model.icc_interval()
        found.append([captured(model, "person", PERSONS), captured(model, "row", K_rows), high - low])
    person, row, width = np.mean(found, axis=0)
    white = 0.0 if name == "rough rows" else 0.08
    told = plan_levels(n, 7, epsilon, delta, rows=curves.NUMBERS, icc=round(curves.ICC, 2), white=white)
    own = Row(f"{name} | {said(n, epsilon, delta)}").share(told.captured["person"], person, 3)
    return own.share(told.captured["row"], row, 3).size(told.icc_width, width)


# Survival.

EDGES = np.arange(0.0, 13.0)


def followed(n: int, rng: np.random.Generator) -> pd.DataFrame:
    t, c = rng.weibull(1.3, n) * 8, rng.uniform(3, 16, n)
    return pd.DataFrame({"months": np.minimum(t, c), "died": t <= c})


def survival(n: int, epsilon: float, delta: float | None, seeds: int) -> Row:
    widths = []
    for seed in range(seeds):
        privacy = Privacy(epsilon, delta, n=n, random_state=seed)
        table = followed(n, np.random.default_rng([seed, n]))
        rows = private_survival(table, "months", "died", edges=EDGES.tolist(), privacy=privacy).frame.sort_index()
        widths.append((rows["high"] - rows["low"]).to_numpy())
    found = np.mean(widths, axis=0)
    truth, lost = np.exp(-((EDGES[1:] / 8) ** 1.3)), np.maximum(EDGES[1:] - 3, 0) / 13
    told = plan_survival(n, epsilon, delta, edges=EDGES.tolist(), survival=truth.tolist(), lost=lost.tolist())
    last = {"survival": float(truth[-1]), "lost": float(lost[-1])}
    rough_told = plan_survival(n, epsilon, delta, edges=EDGES.tolist(), **last)
    own, at = Row(said(n, epsilon, delta)), [2, 5, 11]
    for i in at:
        own.size(told.widths[i], found[i])
    off = np.array(rough_told.widths)[at] / found[at] - 1
    return own.text(", ".join(f"{one:+.0%}" for one in off))


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


ENDS = np.arange(1, 9)
HAZARDS = {"odds": (odds, "binomial", 0 * ENDS), "rates": (rates, "poisson", np.maximum(ENDS - 2, 0) / 14)}
"""And who is lost before the end of each period."""
IMPORTANCES = {"odds": (0.87, 0.13), "rates": (0.81, 0.19)}
"""Of the curve and of age, by the variances of their effects."""
BOUNDS = {"X": (-4, 4), "age": (-1, 1)}
FORMULA = "Surv(time, died) ~ lf(X) + age"
PILOT, MANY = 300, 100_000
"""Persons of an earlier study, whose curves are told; and those that survival and spread are told of."""


def course(name: str) -> dict[str, Any]:
    """Survival and losses at all ends, and how far hazards are apart: as the law of persons has them."""
    draw, family, lost = HAZARDS[name]
    hazards = draw(MANY, np.random.default_rng(3))[1]
    chances = -np.expm1(-hazards) if family == "poisson" else hazards
    apart = np.log(hazards) if family == "poisson" else np.log(hazards / (1 - hazards))
    alive = np.cumprod(1 - chances, axis=1).mean(axis=0)
    return {"survival": alive.tolist(), "lost": lost.tolist(), "spread": float(apart.std(axis=0).mean())}


def hazards(name: str, n: int, epsilon: float, delta: float | None, seeds: int) -> Row:
    draw, family, _ = HAZARDS[name]
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
        error, middle = (off**2).mean() / mean.mean() ** 2, ((off.mean(axis=0) / mean) ** 2).mean()
        found.append([explained, np.sqrt(error), np.sqrt(middle)])
    share, error, middle = np.mean(found, axis=0)
    public = {"times": range(9), "bounds": BOUNDS, "grids": {"X": 25}, "family": family} | course(name)
    known: dict[str, Any] = {
        "numbers": {"age": (0, 0.577)},
        "importances": dict(zip(("lf(X)", "age"), IMPORTANCES[name], strict=True)),
    }
    known |= {"effects": "level", "curves": {"X": draw(PILOT, np.random.default_rng([n, 2]))[0]["X"]}}
    told = plan_hazards(FORMULA, n, epsilon, delta, **known, **public)
    untold = plan_hazards(FORMULA, n, epsilon, delta, **public).share
    return (
        Row(f"{name} | {said(n, epsilon, delta)}")
        .share(told.share, share, 2)
        .text(f"{untold.mean:.2f}; tenths {untold.worst:.2f}, {untold.best:.2f}")
        .size(told.error, error)
        .size(told.mean_error, middle)
    )


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


def mixed_models(law: str, n: int, epsilon: float, delta: float | None, seeds: int) -> Row:
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
    age, weekend, width, share = found.mean(axis=0)
    own = Row(f"{law} | {said(n, epsilon, delta)}").size(told.standard_errors["age"], age, 4)
    return own.size(told.standard_errors["weekend"], weekend, 4).size(told.icc_width, width).share(told.share, share, 2)


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
PARTS: dict[str, tuple[str, str, Callable[..., Row], list[tuple[Any, ...]]]] = {
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
        "of the ICC's interval; share of the variance of means, at least -1 a cohort. Told: rows, ICC, white "
        "noise, smooth effects, what they explain (.8 %), importances, means and sds.",
        "| curves | persons, ε | standard error of age | of weekend | width of the ICC's interval | share |",
        mixed_models,
        OF_MIXED,
    ),
    "survival": (
        "Widths of limits of a survival curve at months 3, 6 and 12, told survival and losses at all ends; and off "
        "by so much, told only the last ones (a constant hazard, losses at any time alike).",
        "| persons, ε | month 3 | month 6 | month 12 | told the last one only |",
        survival,
        [(n, *budget) for n in (500, 2000, 10_000) for budget in EPSILONS],
    ),
    "hazards": (
        "Hazards: share of their variance over persons that is explained; error of a person's hazard over the mean "
        "hazard; error of the mean hazard of a period over itself. Told: survival and losses at all ends, how far "
        "hazards are apart, effects of levels, importances, mean, sd of age, curves of 300 others.",
        "| hazards | persons, ε | explained, told | told nothing of terms | error of a person's, told | of the mean |",
        hazards,
        [(name, *cell) for name in HAZARDS for cell in OF_HAZARDS],
    ),
}


TIMES = {"survival": 4, "hazards": 2}
"""As many samples as of others."""


def write(pages: dict[str, str], out: Path) -> None:
    """Write the page of all parts that there are."""
    head = "# Forecasts beside fits: several curves a person, mixed models, survival, hazards\n\n"
    head += "`python benchmarks/repeated_forecasts.py`. Each cell: forecast, mean of fits (difference). "
    head += "Eight of ten simulated cohorts lie between the tenths of a forecast.\n"
    text = "".join(f"\n## {pages[name]}\n" for name in PARTS if name in pages)
    out.write_text(head + text, encoding="utf-8")


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
        seeds = given.seeds * TIMES.get(name, 1)
        lines = [name, "", f"{what} {seeds} samples of each.", "", header, "|---" * (header.count("|") - 1) + "|"]
        rows = []
        for cell in cells:
            rows.append(row(*cell, seeds))
            print(rows[-1].line, flush=True)
        pages[name] = "\n".join([*lines, *(row.line for row in rows), "", worst(rows)])
        write(pages, given.out)


if __name__ == "__main__":
    main()
