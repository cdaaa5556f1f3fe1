"""What private fits explain where curves are not smooth and Gaussian: ``python benchmarks/other_scenarios.py``.

The frontier (``frontier.py``) is for smooth curves and bounds that fit; here are twelve scenarios that are not, each
beside the fit without privacy. A share is that of the variance of the true mean response, of 1,000 new people, that
predictions explain. Nothing was tuned on these. The noise is seeded NumPy noise: for simulation only.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fdadp import AdditiveFunctionOnFunction, Privacy, __version__
from fdadp.errors import FdadpWarning

RESULTS = Path(__file__).parent / "results" / "other-scenarios.md"
GRID = np.linspace(0, 1, 41)
CENTRAL = 0.95
"""Share of new people, those whose X stays nearest to zero, that are looked at by themselves: few may carry most of the
variance, and what these do is not learned privately."""
Curves = np.ndarray
Rng = np.random.Generator


def process(rng: Rng, n: int, length: float = 0.2) -> Curves:
    """Gaussian curves of variance 1; correlation exp(-(distance/length)²/2), or that of a Markov process below .1."""
    distance = np.abs(GRID[:, None] - GRID) / length
    values, vectors = np.linalg.eigh(np.exp(-distance if length < 0.1 else -(distance**2) / 2))
    return rng.normal(size=(n, GRID.size)) @ (vectors * np.sqrt(np.maximum(values, 0))).T


def rough(rng: Rng, n: int) -> Curves:
    return process(rng, n, 0.05)


def spikes(rng: Rng, n: int) -> Curves:
    """Three narrow bumps a curve."""
    centres, heights = rng.uniform(size=(n, 3, 1)), rng.normal(2.0, 1.0, size=(n, 3, 1))
    return (heights * np.exp(-0.5 * ((GRID - centres) / 0.02) ** 2)).sum(axis=1) + 0.2 * process(rng, n)


def heavy(rng: Rng, n: int) -> Curves:
    return process(rng, n) / np.sqrt(rng.chisquare(3, size=(n, 1)) / 3)


def skewed(rng: Rng, n: int) -> Curves:
    return np.exp(0.7 * process(rng, n)) - 1.3


def flat(rng: Rng, n: int) -> Curves:
    return rng.normal(size=(n, 1)) + 0.1 * process(rng, n)


def steps(rng: Rng, n: int) -> Curves:
    """A level that changes once."""
    before, after = rng.normal(size=(2, n, 1))
    return np.where(rng.uniform(size=(n, 1)) > GRID, before, after) + 0.1 * process(rng, n)


def additive(x: Curves) -> Curves:
    """Curved in x, smooth in s and t."""
    weight = np.cos(np.pi * GRID) + 0.5
    shape = np.column_stack((np.sin(np.pi * GRID), GRID))
    return np.column_stack(((x + 0.4 * x**2) @ weight, np.sin(1.5 * x).sum(axis=1))) / GRID.size @ shape.T * 3


def local(x: Curves) -> Curves:
    """What matters is a short stretch of s."""
    return x[:, 27:30].mean(axis=1)[:, None] * np.sin(np.pi * GRID)


def threshold(x: Curves) -> Curves:
    """How long x is above a limit."""
    return 3 * (x > 0.5).mean(axis=1)[:, None] * (0.5 + GRID)


def sharp(x: Curves) -> Curves:
    """A response that is a narrow peak in t."""
    return 2 * np.sin(x).mean(axis=1)[:, None] * np.exp(-0.5 * ((GRID - 0.6) / 0.03) ** 2)


def normal_errors(rng: Rng, n: int) -> Curves:
    return process(rng, n, 0.3)


def heavy_errors(rng: Rng, n: int) -> Curves:
    return process(rng, n, 0.3) * np.sqrt(0.5 / rng.chisquare(2.5, size=(n, 1)) * 2.5)


def skewed_errors(rng: Rng, n: int) -> Curves:
    return rng.exponential(size=(n, 1)) * (0.5 + GRID) - (0.5 + GRID) + 0.3 * process(rng, n)


class Scenario(NamedTuple):
    """How X, the mean of Y and errors come about, and what is declared: bounds in sds about 0, of X and of Y."""

    name: str
    x: Callable[[Rng, int], Curves]
    mean: Callable[[Curves], Curves] = additive
    errors: Callable[[Rng, int], Curves] = normal_errors
    x_bounds: tuple[float, float] = (-4.0, 4.0)
    y_bounds: tuple[float, float] = (-6.0, 6.0)


SCENARIOS = (
    Scenario("smooth, for comparison", process),
    Scenario("rough X", rough),
    Scenario("rough X, effect of a short stretch of s", rough, local),
    Scenario("X of spikes", spikes),
    Scenario("heavy tails of X", heavy, x_bounds=(-8.0, 8.0)),
    Scenario("skewed X", skewed),
    Scenario("X nearly constant in s", flat),
    Scenario("X with level shifts", steps),
    Scenario("effect of a short stretch of s", process, local),
    Scenario("effect above a threshold", process, threshold),
    Scenario("response a narrow peak", process, sharp),
    Scenario("heavy tails of errors", process, additive, heavy_errors, y_bounds=(-10.0, 10.0)),
    Scenario("skewed errors, one-sided bounds of Y", process, additive, skewed_errors, y_bounds=(-3.0, 30.0)),
)


def cohort(
    scenario: Scenario, n: int, seed: int
) -> tuple[Curves, Curves, Curves, Curves, dict[str, tuple[float, float]]]:
    """X and Y of a cohort, X and the true mean of Y of 1,000 new people, and the bounds that are declared."""
    public = np.random.default_rng(1)  # people who were asked before: what bounds and errors are sized by
    x = scenario.x(public, 20_000)
    error_size = np.sqrt(0.5 * scenario.mean(x).var(axis=0).mean() / scenario.errors(public, 20_000).var(axis=0).mean())
    unit_x, unit_y = np.sqrt(x.var(axis=0).mean()), np.sqrt(1.5 * scenario.mean(x).var(axis=0).mean())
    rng = np.random.default_rng(seed)
    x, new = scenario.x(rng, n), scenario.x(rng, 1000)
    mean, truth = scenario.mean(x), scenario.mean(new)
    y = mean + scenario.errors(rng, n) * error_size  # 2/3 can be explained
    bounds = {"X": tuple(b * unit_x for b in scenario.x_bounds), "Y": tuple(b * unit_y for b in scenario.y_bounds)}
    return x, y, new, truth, bounds


def share(predicted: Curves, truth: Curves) -> float:
    """Share of the variance of the true mean that is explained."""
    return 1 - float(((predicted - truth) ** 2).mean() / ((truth - truth.mean(axis=0)) ** 2).mean())


def shares(scenario: Scenario, n: int, epsilon: float, seed: int) -> tuple[float, float, float]:
    """Explained shares with privacy, the same of the people whose X is central, and without privacy."""
    x, y, new, truth, bounds = cohort(scenario, n, seed)
    size = np.abs(new).max(axis=1)
    central = size <= np.quantile(size, CENTRAL)
    privacy = Privacy(epsilon, delta=1e-6, n=n, random_state=seed)
    found = []
    for setting in (privacy, None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FdadpWarning)
            model = AdditiveFunctionOnFunction(privacy=setting, bounds=bounds, progress=False).fit(x, y, s=GRID, t=GRID)
            found.append(model.predict(new))
    private, plain = found
    return share(private, truth), share(private[central], truth[central]), share(plain, truth)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=5000)
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args(arguments)
    text = [
        "# Other curves than smooth ones",
        "",
        f"`python benchmarks/other_scenarios.py --n {args.n} --epsilon {args.epsilon:g} --repeats {args.repeats}`, "
        f"fdadp {__version__}, δ = 1e-6. Share of the variance of the true mean response that is explained, mean "
        f"(worst) of {args.repeats} cohorts; 2/3 of the variance of Y can be explained. Central: of the {CENTRAL:.0%} "
        "of new people whose X stays nearest to zero.",
        "",
        "| scenario | private | private, central | without privacy |",
        "|---|---|---|---|",
    ]
    for scenario in SCENARIOS:
        found = np.array([shares(scenario, args.n, args.epsilon, args.seed + i) for i in range(args.repeats)])
        cells = [f"{m:.2f} ({w:.2f})" for m, w in zip(found.mean(axis=0), found.min(axis=0), strict=True)]
        text.append(f"| {scenario.name} | {' | '.join(cells)} |")
        print(text[-1], flush=True)
    args.out.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
