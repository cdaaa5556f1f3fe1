"""Private fits whose declared range of Y is far from where Y is: share of E[Y | X] explained, mean (worst).

python benchmarks/far_response.py [SEEDS]: at the share of the budget that the level of Y may have, and at .01, which it
was until version 0.2, on the same cohorts and the same noise.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace

import cohorts
import numpy as np

from fdadp import AdditiveFunctionOnFunction, Privacy
from fdadp.errors import ExtrapolationWarning
from fdadp.private.public.tuned_constants import PURE, Aux
from fdadp.private.release.mechanisms import DPAFF

BEFORE = Aux(target=0.1, cap=0.01, max_error=0.3)
"""What the level of Y had until version 0.2."""
RANGES = ((-8.0, 8.0), (0.0, 100.0), (-500.0, 20.0))
FIRST = 41_000
"""Seed of the first cohort: none that a constant was chosen on."""


def share(name: str, n: int, seed: int, bounds: tuple[float, float], location: Aux) -> float:
    """Share of the variance of E[Y | X] over new people that a pure fit explains."""
    train, new = cohorts.cohort(name, n, seed)
    model = AdditiveFunctionOnFunction(
        privacy=Privacy(1.0, n=n, random_state=seed),
        bounds=cohorts.bounds(name, "ok") | {"Y": bounds},
        mechanism=DPAFF(tuning=replace(PURE, y_location=location)),
        progress=False,
    ).fit(train.X, train.Y, s=cohorts.GRID, t=cohorts.GRID)
    off = model.predict(new.X) - new.f
    return 1 - float((off**2).mean() / ((new.f - new.f.mean(axis=0)) ** 2).mean())


def main(seeds: int = 12) -> None:
    """Print a line for each n and range."""
    warnings.simplefilter("ignore", ExtrapolationWarning)  # new people are a little beyond the old ones' range
    for n in (1000, 3000):
        for bounds in RANGES:
            found = np.array(
                [
                    [share(name, n, FIRST + seed, bounds, location) for location in (BEFORE, PURE.y_location)]
                    for seed in range(seeds)
                    for name in ("S1", "S2")
                ]
            )
            change = found[:, 1] - found[:, 0]
            before, after = (f"{column.mean():.3f} ({column.min():.2f})" for column in found.T)
            error = change.std(ddof=1) / np.sqrt(len(change))
            print(f"pure, n {n:,}, Y in {bounds}: {before} -> {after}, {change.mean():+.4f} ± {error:.4f}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
