"""How often intervals and bands of `fdadp.inference` hold: contrasts, average slopes, derivatives and peaks.

    python benchmarks/terms/questions.py [--cohorts 100] [--private 30]

Cohorts of three groups, a number with a linear effect and one with a smooth effect, on curves of 31 points whose errors
are mostly smooth. Printed: the share of points that 95 % intervals hold, the share of curves that bands hold whole.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np

from fdadp import FunctionalRegression, Privacy, inference

S = np.linspace(0, 1, 31)
ROOT = np.linalg.cholesky(np.exp(-(np.subtract.outer(S, S) ** 2) / (2 * 0.15**2)) + 1e-8 * np.eye(31)).T
BUMP = 2 * np.exp(-((S - 0.45) ** 2) / 0.05)
SHIFTS = {"a": 0 * S, "b": 0.4 * np.sin(np.pi * S), "c": 0.4 * S**2}
FORMULA = "Y ~ C(g, k=12) + linear(x, k=12) + s(z, k=(6, 12))"
AT = {"x": [0.0], "z": [0.0]}
FEW = 2e-3
"""How near to the true peak an interval that is a grid point must be."""


def cohort(n: int, seed: int, family: str = "gaussian") -> dict[str, Any]:
    """A table of n persons."""
    rng = np.random.default_rng(seed)
    g, x, z = rng.choice(["a", "b", "c"], n), rng.normal(size=n), rng.uniform(-1, 1, n)
    mean = BUMP + np.stack([SHIFTS[k] for k in g]) + (0.3 * x)[:, None] * np.cos(3 * S) + np.sin(2 * z)[:, None] * S
    if family == "poisson":
        return {"g": g, "x": x, "z": z, "Y": rng.poisson(np.exp(0.5 * mean)).astype(float)}
    return {"g": g, "x": x, "z": z, "Y": mean + 0.4 * rng.normal(size=(n, 31)) @ ROOT + 0.15 * rng.normal(size=(n, 31))}


def held(estimates: inference.EffectEstimates, truth: np.ndarray) -> tuple[float, float]:
    """Share of points in the pointwise interval, and whether the band holds the whole curve."""
    frame = estimates.to_frame()
    inside = (frame["lower"] <= truth) & (truth <= frame["upper"])
    whole = (frame["lower_all"] <= truth) & (truth <= frame["upper_all"])
    return float(inside.mean()), float(whole.all())


def of_one(data: dict[str, Any], family: str) -> Iterator[tuple[str, tuple[float, ...]]]:
    """What intervals of one ordinary fit hold."""
    model = FunctionalRegression(FORMULA, family=family, progress=False).fit(data, grids={"Y": S})
    scale = 0.5 if family == "poisson" else 1.0
    asked: Any = {"scale": "link"}
    levels = inference.contrasts(model, "g", "sequential", **asked).index["contrast"] == "c - b"
    both = inference.difference(model, {"g": ["c"], **AT}, {"g": ["b"], **AT}, **asked)
    assert levels.sum() == len(both.value)
    yield "c less b", held(both, scale * (SHIFTS["c"] - SHIFTS["b"]))
    slope = scale * np.mean(2 * np.cos(2 * data["z"])) * S
    yield "average slope of z", held(inference.slopes(model, "z", **asked), slope)
    for times in (1, 2):
        yield f"the same, twicing={times}", held(inference.slopes(model, "z", twicing=times, **asked), slope)
    inner = S[2:-2]
    rate = 2 * np.exp(-((inner - 0.45) ** 2) / 0.05) * (-2 * (inner - 0.45) / 0.05) + 0.4 * np.pi * np.cos(
        np.pi * inner
    )
    yield (
        "d/dt of b's mean curve",
        held(inference.derivative(model, {"g": ["b"], **AT}, t=inner, **asked), scale * rate),
    )
    fine = np.linspace(0, 1, 4001)
    top = fine[(2 * np.exp(-((fine - 0.45) ** 2) / 0.05) + 0.4 * np.sin(np.pi * fine)).argmax()]
    (peak,) = inference.peak(model, {"g": ["b"], **AT}).itertuples()
    yield "peak of b's mean curve", (float(peak.lower - FEW <= top <= peak.upper + FEW), peak.upper - peak.lower)


def of_one_private(seed: int) -> Iterator[tuple[str, tuple[float, ...]]]:
    """What intervals of one private fit hold: (2, 1e-6), 1,000 persons."""
    data = cohort(1000, 5000 + seed)
    bounds = {"Y": (-4, 7), "g": ["a", "b", "c"], "x": (-4, 4), "z": (-1, 1)}
    privacy = Privacy(2.0, 1e-6, n=1000, random_state=seed)
    model = FunctionalRegression("Y ~ C(g) + x + s(z)", privacy=privacy, bounds=bounds, progress=False)
    model.fit(data, grids={"Y": S})
    both = inference.difference(model, {"g": ["c"], **AT}, {"g": ["b"], **AT})
    yield "private: c less b", held(both, SHIFTS["c"] - SHIFTS["b"])
    yield "private: slope of x", held(inference.slopes(model, "x", new={"g": ["a"], **AT}), 0.3 * np.cos(3 * S))


def mean_of(found: list[list[tuple[str, tuple[float, ...]]]]) -> dict[str, np.ndarray]:
    """Means over cohorts, by question."""
    return {name: np.mean([dict(one)[name] for one in found], axis=0) for name, _ in found[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cohorts", type=int, default=100)
    parser.add_argument("--private", type=int, default=30)
    asked = parser.parse_args()
    tables = {
        f"{family}, n = 100, {asked.cohorts} cohorts": mean_of(
            [list(of_one(cohort(100, seed, family), family)) for seed in range(asked.cohorts)]
        )
        for family in ("gaussian", "poisson")
    }
    tables[f"(2, 1e-6), n = 1,000, {asked.private} fits"] = mean_of(
        [list(of_one_private(seed)) for seed in range(asked.private)]
    )
    for title, table in tables.items():
        print(f"\n{title}\n\n| question | pointwise | all of the curve (of a peak: width) |\n|---|---|---|")
        for name, (point, whole) in table.items():
            print(f"| {name} | {point:.3f} | {whole:.3f} |")


if __name__ == "__main__":
    main()
