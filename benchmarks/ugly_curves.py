"""What looks at the data before the plan are worth: ``python benchmarks/ugly_curves.py [part ...]``.

Paired: each cohort is fitted with the looks and without them, or with as much as the level of Y may have of the budget
and with what it had before, on the same noise; or as it is at ε = 1 and at larger ones, which must not explain less. A
share is that of the variance of the true mean response, of 1,000 new people, that predictions explain. No constant was
chosen on these seeds, but for how steps are shortened at ε = 30. The noise is seeded NumPy noise: for simulation only.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import cohorts
import numpy as np
from other_scenarios import GRID, SCENARIOS, cohort, share

from fdadp import AdditiveFunctionOnFunction, Privacy, __version__
from fdadp.private.public.tuned_constants import GAUSSIAN, PURE, Tuning
from fdadp.private.release.mechanisms import DPAFF
from fdadp.rounds.budget_plan import Aux

RESULTS = Path(__file__).parent / "results" / "ugly-curves.md"
SEED = 60_000
UGLY = {scenario.name: scenario for scenario in SCENARIOS}
NARROW, ROUGH = "response a narrow peak", ("rough X", "rough X, effect of a short stretch of s")
Data = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, tuple[float, float]], np.ndarray]
"""X, Y, new X, the true mean of their Y, bounds, and the grid."""


def standard(name: str, n: int, seed: int) -> Data:
    """A cohort of one of the five standard simulators."""
    first, new = cohorts.cohort(name, n, seed)
    return first.X, first.Y, new.X, new.f, cohorts.bounds(name, "ok"), cohorts.GRID


def ugly(name: str, n: int, seed: int) -> Data:
    """One of a scenario of other_scenarios.py."""
    return (*cohort(UGLY[name], n, seed), GRID)


def under_a_mean(sds: float) -> Callable[[str, int, int], Data]:
    """A narrow peak, and a smooth mean curve of so many sds of Y."""

    def drawn(name: str, n: int, seed: int) -> Data:
        x, y, new, truth, bounds, grid = ugly(name, n, seed)
        mean = sds * y.std() * np.sin(2 * np.pi * grid)
        return x, y + mean, new, truth + mean, bounds, grid

    return drawn


def without(tuning: Tuning) -> Tuning:
    """Without any look."""
    never = replace(tuning.y_spectrum, max_error=0.0)
    return replace(tuning, x_spectrum=never, y_spectrum=never)


def located_before(tuning: Tuning) -> Tuning:
    """With the share of a pure budget that the level of Y had until version 0.2."""
    return replace(tuning, y_location=Aux(target=0.1, cap=0.01, max_error=0.3))


def in_range(y: tuple[float, float]) -> Callable[[str, int, int], Data]:
    """A standard cohort of which this range of Y is declared."""

    def drawn(name: str, n: int, seed: int) -> Data:
        *data, bounds, grid = standard(name, n, seed)
        return (*data, bounds | {"Y": y}, grid)  # type: ignore[return-value]

    return drawn


class Cell(NamedTuple):
    """Cohorts, their title by their name, the size of them, how many, what they are beside, and at which other ε."""

    title: str
    names: tuple[str, ...]
    draw: Callable[[str, int, int], Data]
    n: int
    repeats: int
    delta: float | None = 1e-6
    epsilon: float = 1.0
    before: Callable[[Tuning], Tuning] = without
    beside: tuple[float, ...] = ()


def as_it_is(tuning: Tuning) -> Tuning:
    """What fits have."""
    return tuning


PARTS = {
    "response": (
        Cell("narrow peak", (NARROW,), ugly, 1000, 24),
        *(Cell(f"narrow peak under a mean of {k} sd", (NARROW,), under_a_mean(k), 1000, 24) for k in (1.0, 4.0)),
        Cell("narrow peak", (NARROW,), ugly, 10_000, 24),
        Cell("narrow peak", (NARROW,), ugly, 3000, 24, None),
    ),
    "curves": (
        Cell("", ROUGH, ugly, 1000, 24),
        Cell("", ROUGH, ugly, 10_000, 24),
        Cell("", ROUGH, ugly, 3000, 24, None),
    ),
    "standard": (
        Cell("", tuple(cohorts.SCENARIOS), standard, 1000, 60),
        Cell("", tuple(cohorts.SCENARIOS), standard, 10_000, 24),
        Cell("", tuple(cohorts.SCENARIOS), standard, 3000, 24, None),
    ),
    "range": tuple(
        Cell(f"{{}}, Y in {y}", ("S1", "S2"), in_range(y), n, 24, *law)
        for law in ((None, 1.0, located_before), (1e-6,))
        for n in (1000, 3000)
        for y in ((-8.0, 8.0), (0.0, 100.0), (-500.0, 20.0))
    ),
    "epsilon": tuple(
        Cell("", tuple(UGLY), ugly, n, 24, before=as_it_is, beside=(3.0, 10.0, 30.0)) for n in (300, 1000, 3000, 10_000)
    ),
}


def explained(data: Data, tuning: Tuning, privacy: Privacy) -> float:
    """Explained share of one fit."""
    x, y, new, truth, bounds, grid = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = AdditiveFunctionOnFunction(
            privacy=privacy, bounds=bounds, mechanism=DPAFF(tuning=tuning), progress=False
        ).fit(x, y, s=grid, t=grid)
        return share(model.predict(new), truth)


def lines(cell: Cell, first: int = 0) -> Iterator[str]:
    """One line a kind of cohort: without looks, with them, and the difference. Seeds begin so many after the usual."""
    tuning = PURE if cell.delta is None else GAUSSIAN
    ways = [(cell.before(tuning), cell.epsilon), *((tuning, epsilon) for epsilon in cell.beside or (cell.epsilon,))]
    for name in cell.names:
        found = np.empty((cell.repeats, len(ways)))
        for i in range(cell.repeats):
            seed = SEED + first + i
            data = cell.draw(name, cell.n, seed)
            for k, (own, epsilon) in enumerate(ways):
                privacy = Privacy(epsilon, delta=cell.delta, n=cell.n, random_state=seed)
                found[i, k] = explained(data, own, privacy)
        means = [f"{one.mean():.4f} ({one.min():.3f})" for one in found.T]
        title = cell.title.format(name) or name
        for (_, epsilon), after, more in zip(ways[1:], means[1:], found.T[1:], strict=True):
            change = more - found[:, 0]
            error = change.std(ddof=1) / math.sqrt(cell.repeats)
            budget = f"{cell.n:,}, {epsilon:g}{'' if cell.delta else ', pure'}"
            yield f"| {title} | {budget} | {cell.repeats} | {means[0]} | {after} | {change.mean():+.4f} ± {error:.4f} |"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=list(PARTS), choices=[*PARTS, []])
    parser.add_argument("--cohorts", type=int, help="of each kind; default: as many as each part says")
    parser.add_argument("--epsilon", type=float, nargs="+", help="of the part epsilon, beside 1; default: 3 10 30")
    parser.add_argument("--first", type=int, default=0, help="the first cohort")
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args(arguments)
    text = [
        "# Looks before the plan, and ranges of Y that are far off",
        "",
        f"`python benchmarks/ugly_curves.py {' '.join(args.parts)}`, fdadp {__version__}. Explained share of the true "
        "mean response of new people, mean (worst); ± is the standard error of the paired difference.",
        "",
        "| cohorts | n, ε | cohorts | before | after | difference |",
        "|---|---|---|---|---|---|",
    ]
    for part in args.parts:
        for cell in PARTS[part]:
            beside = cell.beside and tuple(args.epsilon or cell.beside)
            for line in lines(cell._replace(repeats=args.cohorts or cell.repeats, beside=beside), args.first):
                text.append(line)
                print(line, flush=True)
    args.out.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
