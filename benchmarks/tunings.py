"""What another tuning of the private fit explains: to repeat, and to extend, what docs/decisions say of constants.

    python benchmarks/tunings.py --list
    python benchmarks/tunings.py "3 rounds" "clip of 1.0" --n 300 --epsilon 1 --seeds 16

A tuning is ``replace(GAUSSIAN, ...)`` by name (``fdadp.private.public.tuned_constants``). Every fit is paired with one
of the default tuning on the same cohort and the same seed of the noise (the noise itself is the same only as far as
releases have the same shapes: else its share of the error is twice as large); printed are mean changes of the share
explained, in thousandths, with standard errors. Seeded noise: for simulation only; choose on other seeds than the
frontier's 2000s.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import sys
import warnings
import zlib
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from cohorts import GRID, SCENARIOS, WEIGHTS, bounds, cohort  # noqa: E402

from fdadp import AdditiveFunctionOnFunction, Privacy  # noqa: E402
from fdadp.errors import FdadpWarning  # noqa: E402
from fdadp.private.public.tuned_constants import GAUSSIAN, PURE, Tuning  # noqa: E402
from fdadp.private.release.mechanisms import DPAFF  # noqa: E402

T = GAUSSIAN
TUNINGS: dict[str, Tuning] = {
    "1 round": replace(T, rounds=1),
    "3 rounds": replace(T, rounds=3),
    "12 rounds": replace(T, rounds=12),
    "clip of 0.5": replace(T, first_clip=0.5),
    "clip of 1.0": replace(T, first_clip=1.0),
    "calibration of 6 %": replace(T, calibration=replace(T.calibration, cap=0.06)),
    "scales of Y and residuals doubled": replace(
        T,
        y_rms=replace(T.y_rms, cap=2 * T.y_rms.cap),
        y_scale=replace(T.y_scale, cap=2 * T.y_scale.cap),
        residual_scale=replace(T.residual_scale, cap=2 * T.residual_scale.cap),
    ),
    "mean of Y doubled": replace(T, mean_weight=4 * T.mean_weight),
    "scale and location of X halved": replace(
        T,
        x_rms=replace(T.x_rms, cap=T.x_rms.cap / 2),
        x_location=replace(T.x_location, cap=T.x_location.cap / 2),
    ),
    "power 0.5": replace(T, fall_off=0.5),
    "power 0.4": replace(T, fall_off=0.4),
    "weights from 2": replace(T, feature_clip=2.0),
    "ranges taken as right": replace(
        T,
        **{name: replace(getattr(T, name), max_error=0.0) for name in ("x_centre", "y_location", "y_spread")},
        residual_profile=replace(T.residual_profile, max_error=0.0),
    ),
    "pure: 4 rounds": replace(PURE, rounds=4, fewer_rounds=()),
    "pure: 8 rounds": replace(PURE, rounds=8, fewer_rounds=()),
    "pure: clip of 0.62": replace(PURE, first_clip=0.62),
    "pure: clip of 1.0": replace(PURE, first_clip=1.0),
}
"""By name; those whose names begin with "pure" are beside the default of pure ε."""


def share(tuning: Tuning | None, scenario: str, n: int, epsilon: float, seed: int, *, pure: bool = False) -> float:
    """Share of the explainable variance that one fit explains on 2,000 new curves."""
    train, test = cohort(scenario, n, seed)
    privacy = Privacy(epsilon, None if pure else 1e-6, n=n, random_state=zlib.crc32(repr((scenario, n, seed)).encode()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FdadpWarning)
        model = AdditiveFunctionOnFunction(
            privacy=privacy, bounds=bounds(scenario, "ok"), mechanism=DPAFF(tuning=tuning), progress=False
        ).fit(train.X, train.Y, s=GRID, t=GRID)
        loss = (((model.predict(test.X) - test.f) ** 2) @ WEIGHTS).mean()
    return float(1 - loss / (((test.f - test.f.mean(axis=0)) ** 2) @ WEIGHTS).mean())


def changes(task: tuple[list[str], str, int, float, int]) -> list[float]:
    """Change of the share explained by each tuning, on one cohort."""
    names, scenario, n, epsilon, seed = task
    pure = [name.startswith("pure") for name in names]
    usual = {kind: share(None, scenario, n, epsilon, seed, pure=kind) for kind in set(pure)}
    return [
        share(TUNINGS[name], scenario, n, epsilon, seed, pure=kind) - usual[kind]
        for name, kind in zip(names, pure, strict=True)
    ]


def main(arguments: list[str] | None = None) -> str:
    """Print the table, and return it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tunings", nargs="*", help="names; default all of the tunings with a δ")
    parser.add_argument("--list", action="store_true", help="print the names")
    parser.add_argument("--n", type=int, default=300)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--scenarios", nargs="+", default=list(SCENARIOS), choices=SCENARIOS)
    parser.add_argument("--seeds", type=int, default=8, help="cohorts a cell, seeds 7100, 7101, ...")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(arguments)
    unknown = set(options.tunings) - set(TUNINGS)
    if unknown:
        parser.error(f"no tuning is called {', '.join(sorted(unknown))}; see --list")
    if options.list:
        return "\n".join(TUNINGS)
    names = options.tunings or [name for name in TUNINGS if not name.startswith("pure")]
    seeds = range(7100, 7100 + options.seeds)
    tasks = [(names, scenario, options.n, options.epsilon, seed) for scenario in options.scenarios for seed in seeds]
    if options.jobs > 1:
        with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
            found = pool.map(changes, tasks, chunksize=1)
    else:
        found = [changes(task) for task in tasks]
    by_name = 1000 * np.array(found).T.reshape(len(names), len(options.scenarios), options.seeds)
    rows = [f"| tried | mean | {' | '.join(options.scenarios)} |", "|---" * (len(options.scenarios) + 2) + "|"]
    for name, of_name in zip(names, by_name, strict=True):
        cells = [_figure(of_name.mean(axis=0)), *(_figure(of_scenario) for of_scenario in of_name)]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _figure(values: np.ndarray) -> str:
    error = values.std(ddof=1) / math.sqrt(values.size) if values.size > 1 else math.nan
    return f"{values.mean():+.0f} ({error:.0f})"


if __name__ == "__main__":
    print(main())
