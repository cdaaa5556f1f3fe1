"""What private fits make of numbers as they are: off the middle of bounds, mostly zero, skewed, and of skewed errors.

    python benchmarks/ugly_numbers.py scale            # 12 and 14 cohorts of 10,000, (1, 1e-6)
    python benchmarks/ugly_numbers.py bounds           # slopes of age by bounds, pure
    python benchmarks/ugly_numbers.py errors           # symmetric and log-normal errors
    python benchmarks/ugly_numbers.py plan             # sixteen forecasts beside what such people give (an hour)
    python benchmarks/ugly_numbers.py others           # the same of other formulas and bounds
    python benchmarks/ugly_numbers.py --draws 3 ...    # fewer cohorts

A share is that of the variance of E[Y | X] over 2,000 new people, covered that of a number's coefficient which 95 %
intervals hold. Seeded noise: for simulation only. No constant of the package was chosen on seeds from 9000 on.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from fdadp import FunctionalRegression, Privacy, PublicPrior, ScalarRegression, plan
from fdadp.errors import FdadpWarning
from fdadp.planner import forecast_of_formulas

S = np.linspace(0, 1, 40)
FIRST, NEW, SLOPE = 9000, 2000, 0.05
ERROR, MOST, COHORTS = 0.009, 400, 256
"""Of cells with forecasts: the standard error that is left, cohorts at most, and simulated ones at most by default."""
SLOW = 0.92
"""Share that the two slowest functions of the prior hold of effects that are told as smooth: .88 of rough ones, .96."""
HEADS = (
    "| epsilon 1 | mean share +- (fits) | forecast +- (cohorts) | above | worst, best tenth | holds it "
    "| all told +- (cohorts) | above | worst, best tenth | CPU s of the first |\n" + "|---" * 10 + "|"
)
Rng = np.random.Generator
EFFECTS: dict[str, Any] = {  # of one unit of each number, at t
    "age": 0.02 * (0.6 + np.sin(2 * np.pi * S)),
    "bmi": 0.06 * (1 - S),
    "pack": 0.03 * (0.4 + S),
}
OF_V, OF_G = 1.5 * np.outer(np.sin(2 * S), np.cos(np.pi * S)), np.array([0.0, 0.4, -0.5])
"""Surface of V, and effects of labels, which grow with t."""
ZEROS = ("pack", "visits")
"""Numbers that are zero for most."""
NUMBERS: dict[str, Callable[[Rng, int], Any]] = {
    "age": lambda rng, n: rng.normal(55, 14, n).clip(18, 100),
    "bmi": lambda rng, n: rng.lognormal(np.log(27), 0.18, n).clip(10, 80),
    "pack": lambda rng, n: np.where(rng.random(n) < 0.8, 0.0, rng.gamma(2.0, 10.0, n).clip(0, 100)),
    "lab": lambda rng, n: rng.lognormal(1.0, 0.9, n).clip(0, 100),
    "visits": lambda rng, n: np.where(rng.random(n) < 0.8, 0.0, 1 + rng.poisson(1.0, n)).clip(0, 20),
}
PUBLIC: dict[str, Any] = {
    "X": (-4.0, 4.0),
    "V": (-4.0, 4.0),
    "age": (18, 100),
    "bmi": (10, 80),
    "pack": (0, 100),
    "lab": (0, 100),
    "visits": (0, 20),
    "g": ["a", "b", "c"],
    "Y": (-8.0, 8.0),
    "y": (-12.0, 12.0),
}
FORMULAS = {
    "lf+age": "y ~ lf(X) + age",
    "lf+pack": "y ~ lf(X) + pack",
    "lf+lab": "y ~ lf(X) + lab",
    "lf+visits": "y ~ lf(X) + visits",
    "ff+age+g": "Y ~ ff(X) + age + C(g)",
    "lf+age+bmi": "y ~ lf(X) + age + bmi",
    "ff+bmi+g": "Y ~ ff(X) + bmi + C(g)",
    "2ff+pack": "Y ~ ff(X) + ff(V) + pack",
    "2ff+age+bmi": "Y ~ ff(X) + ff(V) + age + bmi",
    "ff+pack": "Y ~ ff(X) + pack",
}


class Found(NamedTuple):
    """Of one fit."""

    share: float
    covered: float


def waves(rng: Rng, n: int, length: float) -> Any:
    """Gaussian curves of variance 1."""
    covariance = np.exp(-0.5 * ((S[:, None] - S) / length) ** 2) + 1e-8 * np.eye(S.size)
    return rng.normal(size=(n, S.size)) @ np.linalg.cholesky(covariance).T


def curves(rng: Rng, n: int) -> Any:
    """A rhythm of different strength, a level, and waves."""
    rhythm = 0.5 * rng.normal(size=(n, 1)) * np.sin(2 * np.pi * S)
    return rhythm + 0.5 * rng.normal(size=(n, 1)) + 0.6 * waves(rng, n, 0.12)


def drawn(name: str, n: int, rng: Rng, skewed: bool = False) -> tuple[dict[str, Any], Any]:
    """Columns, and E[Y | X]."""
    data: dict[str, Any] = {"X": curves(rng, n)}
    formula = FORMULAS[name]
    numbers = [number for number in NUMBERS if f" {number}" in formula]
    data |= {number: NUMBERS[number](rng, n) for number in numbers}
    if formula.startswith("y"):
        mean = data["X"] @ (2 * np.cos(3 * S)) / S.size
        mean = mean + sum(SLOPE * (data[number] - data[number].mean()) for number in numbers)
        errors = rng.lognormal(0, 1, n) - np.exp(0.5) if skewed else rng.standard_t(6, n)
        return data | {"y": mean + 0.6 * errors}, mean
    mean = data["X"] @ (2 * np.outer(np.cos(3 * S), np.sin(np.pi * S)) + np.outer(S, S)) / S.size
    mean = mean + np.cos(2 * np.pi * S) + sum((data[z] - data[z].mean())[:, None] * EFFECTS[z] for z in numbers)
    if "(V)" in formula:
        data["V"] = curves(rng, n)
        mean = mean + data["V"] @ OF_V / S.size
    if "(g)" in formula:
        code = rng.choice(3, n, p=[0.6, 0.3, 0.1])
        data["g"] = np.array(PUBLIC["g"])[code]
        mean = mean + OF_G[code][:, None] * S
    size = rng.lognormal(0, 1, (n, 1)) - np.exp(0.5) if skewed else 0.8 * rng.normal(size=(n, 1))
    errors = 0.35 * size * (0.5 + S) + 0.35 * waves(rng, n, 0.2) + 0.2 * rng.normal(size=(n, S.size))
    return data | {"Y": mean + errors}, mean


def known_of(name: str) -> dict[str, Any]:
    """What an earlier study of such people would have found, as arguments of ``plan``."""
    data, mean = drawn(name, 20_000, np.random.default_rng(FIRST))

    def variance(values: Any) -> float:
        return float(((values - values.mean(axis=0)) ** 2).mean())

    rest = ((data["y" if "y" in data else "Y"] - mean) ** 2).mean()
    numbers = [c for c in NUMBERS if c in data]
    own = {z: variance(SLOPE * data[z] if "y" in data else data[z][:, None] * EFFECTS[z]) for z in numbers}
    if "V" in data:
        own["ff(V)"] = variance(data["V"] @ OF_V / S.size)
    if "g" in data:
        own["g"] = variance(OF_G[np.searchsorted(PUBLIC["g"], data["g"])][:, None] * S)
    own["lf(X)" if "y" in data else "ff(X)"] = variance(mean) - sum(own.values())
    weights = np.full(S.size, 1 / S.size)
    two = PublicPrior().response_functions(S, weights)[0][:, :2]
    slow = mean if "y" in data else mean @ (weights[:, None] * two) @ two.T
    return {
        "explained": variance(mean) / (variance(mean) + float(rest)),
        "effects": "smooth" if variance(slow) > SLOW * variance(mean) else "rough",
        "importances": own,
        "numbers": {z: (float(data[z].mean()), float(data[z].std())) for z in numbers if z not in ZEROS},
    }


def fit(
    name: str, n: int, seed: int, *, pure: bool = False, skewed: bool = False, private: bool = True, **public: Any
) -> Found:
    """Share explained of new people's means, and of the coefficients of numbers what 95 % intervals hold."""
    rng = np.random.default_rng([seed, n])
    (data, _), (new, mean) = drawn(name, n, rng, skewed), drawn(name, NEW, rng)
    scalar = FORMULAS[name].startswith("y")
    bounds = {c: v for c, v in (PUBLIC | public).items() if c in data}
    own = {"privacy": Privacy(1.0, None if pure else 1e-6, n=n, random_state=seed), "bounds": bounds} if private else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FdadpWarning)
        model = (ScalarRegression if scalar else FunctionalRegression)(FORMULAS[name], **own)
        model.fit(data, grids={c: S for c, v in data.items() if np.ndim(v) == 2})
        off = np.asarray(model.predict(new)) - mean
        covered = []
        for number in (c for c in data if c in NUMBERS and c in model.term_names_):
            frame = model.coef(number, se=True)
            truth = SLOPE if scalar else np.interp(frame["t"], S, EFFECTS[number])
            covered.append(float((np.abs(frame["value"] - truth) < 1.96 * frame["se"]).mean()))
    share = 1 - float((off**2).mean() / ((mean - mean.mean(axis=0)) ** 2).mean())
    return Found(share, float(np.mean(covered)) if covered else np.nan)


def row(label: str, found: list[Found], more: str = "") -> str:
    """A line of a table."""
    share, covered = np.array(found).T
    figures = share.mean(), np.median(share), share.min()
    return f"| {label} | {' | '.join(f'{one:.3f}' for one in figures)} | {np.nanmean(covered):.2f} |{more}"


def scale(draws: int | None, first: int) -> Iterator[str]:
    """Numbers that are mostly zero, skewed or off the middle of their bounds, n = 10,000, (1, 1e-6)."""
    yield "| model, n = 10,000, (1, 1e-6) | mean share | median | worst | covered |\n|---|---|---|---|---|"
    for name in ("lf+pack", "ff+pack", "lf+visits", "lf+lab", "lf+age", "ff+age+g", "2ff+age+bmi"):
        count = draws or (14 if "age" in name else 12)
        yield row(f"{name}, {count} cohorts", [fit(name, 10_000, first + i) for i in range(count)])


def bounds(draws: int | None, first: int) -> Iterator[str]:
    """Slopes of age by its bounds, pure epsilon 1."""
    yield "| lf+age, pure | mean share | median | worst | covered |\n|---|---|---|---|---|"
    for n in (300, 1000):
        for public in ((31, 79), (18, 100), (0, 150), (0, 300)):
            found = [fit("lf+age", n, first + i, pure=True, age=public) for i in range(draws or 60)]
            yield row(f"n = {n}, bounds {public}", found)


def errors(draws: int | None, first: int) -> Iterator[str]:
    """Log-normal errors beside symmetric ones, (1, 1e-6)."""
    yield "| errors, (1, 1e-6) | mean share | median | worst | covered |\n|---|---|---|---|---|"
    for name in ("ff+age+g", "lf+age"):
        for n in (1000, 3000, 10_000, 30_000):
            for skewed in (False, True):
                found = [fit(name, n, first + i, skewed=skewed) for i in range(draws or 10)]
                yield row(f"{name}, n = {n:,}, {'log-normal' if skewed else 'symmetric'}", found)


def forecast(label: str, name: str, n: int, draws: int | None, first: int, *, pure: bool, **public: Any) -> str:
    """A cell: what such people give, and forecasts where nothing is told but `mostly_zero`, and where all is.

    Nothing told, the forecast has to hold what fits give on average between its worst and its best tenth.
    """
    found: list[Found] = []
    while len(found) < (draws or 40) or (draws is None and error_of(found) > ERROR and len(found) < MOST):
        found.append(fit(name, n, first + len(found), pure=pure, **public))
    share = np.mean([one.share for one in found])
    line = f"| {label}, {'pure' if pure else '1e-6'} | {share:.3f} +- {error_of(found):.3f} ({len(found)}) |"
    formula = FORMULAS[name]
    bounds = {
        c: v for c, v in (PUBLIC | public).items() if f"{c})" in formula or c in formula.replace("~", " ").split()
    }
    own = {"bounds": bounds, "grids": {c: S.size for c in ("X", "V", "Y") if c in bounds}}
    spent: list[float] = []
    for known in ({}, known_of(name)):
        start = time.process_time()
        told = plan(
            formula, n, 1.0, None if pure else 1e-6, mostly_zero=[c for c in bounds if c in ZEROS], **own, **known
        )
        spent.append(time.process_time() - start)
        worst, best = told.worst_share, told.best_share
        of = f"{told.share:.3f} +- {told.error:.3f} ({told.cohorts}) | {told.share - share:+.3f}"
        line += f" {of} | {worst:.3f}, {best:.3f} ({best - worst:.2f} wide) |"
        if not known:
            line += f" {'yes' if worst <= share <= best else 'NO'} |"
    return f"{line} {spent[0]:.0f} |"


def error_of(found: list[Found]) -> float:
    """Standard error of the mean share."""
    return float(np.std([one.share for one in found], ddof=1)) / np.sqrt(len(found)) if len(found) > 1 else np.inf


def forecasts(draws: int | None, first: int) -> Iterator[str]:
    """The sixteen cells."""
    yield HEADS
    for name in ("lf+age", "ff+age+g", "2ff+age+bmi", "ff+pack"):
        for n in (300, 1000):
            for pure in (True, False):
                yield forecast(f"{name}, n = {n}", name, n, draws, first, pure=pure)


def other_forecasts(draws: int | None, first: int) -> Iterator[str]:
    """Other formulas, and bounds of age that are near and far."""
    yield HEADS
    for name in ("lf+age+bmi", "lf+pack", "ff+bmi+g", "2ff+pack"):
        for pure in (True, False):
            yield forecast(f"{name}, n = 300", name, 300, draws, first, pure=pure)
    for n in (300, 1000):
        for ages in ((31, 79), (0, 150), (0, 300)):
            yield forecast(f"lf+age, n = {n}, bounds {ages}", "lf+age", n, draws, first, pure=True, age=ages)


PARTS = {"scale": scale, "bounds": bounds, "errors": errors, "plan": forecasts, "others": other_forecasts}

if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("parts", nargs="*", default=list(PARTS), help=f"of {', '.join(PARTS)}; default all")
    asked.add_argument("--draws", type=int, help="cohorts a cell")
    asked.add_argument("--cohorts", type=int, default=COHORTS, help="that a forecast simulates at most")
    asked.add_argument("--first", type=int, default=FIRST, help="first seed")
    options = asked.parse_args()
    forecast_of_formulas.COHORTS = forecast_of_formulas.COHORTS._replace(
        most=options.cohorts
    )  # plan() has 128; more tell what its law expects
    for part in options.parts:
        start = time.process_time()
        for line in PARTS[part](options.draws, options.first):
            print(line, flush=True)
        print(f"\n{time.process_time() - start:.0f} CPU s\n", flush=True)
