"""What leaving out curves gives: smoothing parameters, a choice of models, prediction bands; beside REML and AIC.

    python benchmarks/terms/curves_left_out.py [smoothing] [choice] [bands] [--cohorts 60]

Cohorts have curves of 31 points whose errors are mostly smooth. Printed: errors and bands of coefficients by the way of
smoothing, with seconds of CPU; how often a number is taken into a model, by its effect; the share of new curves that
95 % prediction bands hold where the errors' standard deviation is .3 + .5|x|, by thirds of |x|.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numpy as np

from fdadp import FunctionalRegression
from fdadp import terms as kinds

S = np.linspace(0, 1, 31)
ROOT = np.linalg.cholesky(np.exp(-(np.subtract.outer(S, S) ** 2) / (2 * 0.15**2)) + 1e-8 * np.eye(31)).T
WEIGHTS = np.r_[0.5, np.ones(29), 0.5] / 30
SURFACE = 3 * np.sin(np.pi * np.add.outer(S, S))
EFFECT = 0.3 * np.cos(3 * S)
WAYS = ("reml", "curves")
THIRDS = (0.0, 0.4307, 0.9674, np.inf)
"""Of the absolute value of a Gaussian number."""


def cohort(n: int, seed: int, *, unequal: bool = False) -> dict[str, np.ndarray]:
    """A table of n curves, whose errors have the standard deviation .6, or .3 + .5|x|."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 31)) @ ROOT + 0.5 * rng.normal(size=(n, 1))
    x, z = rng.normal(size=(2, n))
    errors = 0.8 * rng.normal(size=(n, 31)) @ ROOT + 0.4 * rng.normal(size=(n, 31))
    size = 0.3 + 0.5 * np.abs(x) if unequal else np.full(n, 0.6)
    mean = 1 + np.sin(2 * np.pi * S) + (X * WEIGHTS) @ SURFACE + x[:, None] * EFFECT
    return {"X": X, "x": x, "z": z, "Y": mean + size[:, None] * errors}


def smoothed(n: int, seed: int) -> Iterator[list[float]]:
    """Of each way: errors and coverage of the surface and of a number's effect, error of new curves, CPU seconds."""
    data, new = cohort(n, 7000 + seed), cohort(300, 90_000 + seed)
    known = new["Y"].mean(axis=0)
    for way in WAYS:
        terms = [kinds.ff("X", k=(8, 15), m=((2, 2), (2, 2))), kinds.linear("x", k=15), kinds.linear("z", k=15)]
        start = time.process_time()
        model = FunctionalRegression(terms, smoothing=way, progress=False).fit(data, grids={"X": S, "Y": S})
        seconds, row = time.process_time() - start, []
        for name, points, truth in (("ff(X)", {"s": S[::3], "t": S[::3]}, SURFACE[::3, ::3]), ("x", {"t": S}, EFFECT)):
            each, band = (model.bands(name, simultaneous=whole, **points) for whole in (False, True))
            held = [(b["lower"] <= truth.ravel()) & (truth.ravel() <= b["upper"]) for b in (each, band)]
            row += [held[0].mean(), float(held[1].all())]
            if name == "ff(X)":
                row += [float(np.sqrt(np.mean((each["value"] - truth.ravel()) ** 2)))]
        missed = float(((np.asarray(model.predict(new)) - new["Y"]) ** 2).sum() / ((new["Y"] - known) ** 2).sum())
        yield [*row, 1 - missed, seconds]


def taken(n: int, size: float, seed: int) -> list[bool]:
    """Whether a number with an effect of a size is taken: by AIC, by curves left out, beyond one se, by a 5 % test."""
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=(2, n))
    Y = np.sin(6 * S) + 0.3 * x[:, None] * S + size * z[:, None] * np.cos(3 * S)
    Y = Y + 0.5 * rng.normal(size=(n, 31)) @ ROOT + 0.2 * rng.normal(size=(n, 31))
    data, grids = {"x": x, "z": z, "Y": Y}, {"Y": S}
    small, large = (FunctionalRegression(f, progress=False).fit(data, grids=grids) for f in ("Y ~ x", "Y ~ x + z"))
    gain, se = large.compare(small).loc["larger", ["gain", "gain_se"]]
    return [large.aic_ < small.aic_, gain > 0, gain > se, large.test_terms().loc["z", "p"] < 0.05]


def banded(n: int, seed: int, *, simultaneous: bool) -> list[float]:
    """Share held of new points, or of whole new curves: of all, and where |x| is in each third."""
    data, new = cohort(n, seed, unequal=True), cohort(1000, 90_000 + seed, unequal=True)
    model = FunctionalRegression("Y ~ ff(X) + x", progress=False).fit(data, grids={"X": S, "Y": S})
    lower, upper = model.predict_interval(new, simultaneous=simultaneous)
    inside = (lower <= new["Y"]) & (new["Y"] <= upper)
    held = inside.all(axis=1) if simultaneous else inside.mean(axis=1)
    third = np.digitize(np.abs(new["x"]), THIRDS[1:-1])
    return [held.mean(), *(held[third == i].mean() for i in range(3))]


def head(*columns: str) -> None:
    print(f"\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)


def line(*cells: object) -> None:
    print("|", " | ".join(f"{c:.3f}" if isinstance(c, float) else str(c) for c in cells), "|", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["smoothing", "choice", "bands"])
    parser.add_argument("--cohorts", type=int, default=60)
    asked = parser.parse_args()
    if "smoothing" in asked.parts:
        head("n", "smoothing", "β(s, t) held", "whole", "its rmse", "β(t) held", "whole", "R² of new curves", "CPU s")
        for n in (30, 100, 300):
            found = np.mean([list(smoothed(n, seed)) for seed in range(asked.cohorts if n < 300 else 10)], axis=0)
            for way, row in zip(WAYS, found.tolist(), strict=True):
                line(n, way, *row)
    if "choice" in asked.parts:
        head("n", "size of the effect", "AIC", "curves left out", "beyond one se", "5 % test")
        for n in (50, 200):
            for size in (0.0, 0.08, 0.16):
                found = np.mean([taken(n, size, seed) for seed in range(asked.cohorts)], axis=0)
                line(n, size, *found.tolist())
    if "bands" in asked.parts:
        head("n", "band", "all", "smallest third of |x|", "middle", "largest")
        for n in (100, 1000):
            for whole in (False, True):
                cohorts = range(asked.cohorts if n < 1000 else max(asked.cohorts // 3, 1))
                found = np.mean([banded(n, seed, simultaneous=whole) for seed in cohorts], axis=0)
                line(n, "whole curves" if whole else "each t", *found.tolist())


if __name__ == "__main__":
    main()
