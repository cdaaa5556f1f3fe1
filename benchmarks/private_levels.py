"""Private components of persons and of their curves: ``python benchmarks/private_levels.py [--seeds 24]``.

Persons have 1 to 7 curves, unequal numbers; each level has four components. Told are the share of a level's variance
that the first four private components hold, the intraclass correlation and its interval, and the time.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from fdadp import Privacy
from fdadp.summaries import PrivateMultilevelFPCA

T = 144
t = np.linspace(0, 1, T)
ROOT = np.sqrt(2)
BETWEEN = np.stack(
    [np.ones(T), ROOT * np.sin(2 * np.pi * t), ROOT * np.cos(2 * np.pi * t), ROOT * np.sin(4 * np.pi * t)]
)
WITHIN = np.stack([ROOT * np.cos(j * np.pi * t) for j in (1, 2, 3, 4)])
OF_PERSONS, OF_ROWS = np.array([1, 0.49, 0.25, 0.09]), np.array([0.64, 0.36, 0.16, 0.04])
ICC = OF_PERSONS.sum() / (OF_PERSONS.sum() + OF_ROWS.sum())
NUMBERS = [0.05, 0.06, 0.09, 0.1, 0.15, 0.2, 0.35]
CELLS = [(n, epsilon, 1e-6) for n in (1000, 2000, 5000, 20_000) for epsilon in (0.5, 1.0)]
CELLS += [(n, 1.0, None) for n in (2000, 5000, 20_000)]


def cohort(persons: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    ids = np.repeat(np.arange(persons), rng.choice(np.arange(1, 8), persons, p=NUMBERS))
    curves = np.sin(np.pi * t) + ((rng.standard_normal((persons, 4)) * np.sqrt(OF_PERSONS)) @ BETWEEN)[ids]
    curves += (rng.standard_normal((len(ids), 4)) * np.sqrt(OF_ROWS)) @ WITHIN
    return curves + 0.5 * rng.standard_normal(curves.shape), ids


def captured(model: PrivateMultilevelFPCA, level: str, functions: np.ndarray, values: np.ndarray) -> float:
    half = np.sqrt(model.weights_ / model.weights_.sum())
    K = (functions * half).T * values @ (functions * half)
    Q = np.linalg.qr((model.eigenfunctions_[level][:4] * half).T)[0]
    return float(np.trace(Q.T @ K @ Q) / np.trace(K))


def fit(persons: int, epsilon: float, delta: float | None, seed: int) -> list[float]:
    curves, ids = cohort(persons, np.random.default_rng([8000 + seed, persons]))
    privacy = Privacy(epsilon, delta, n=persons, random_state=seed)
    started = time.process_time()
    model = PrivateMultilevelFPCA(n_components=4, privacy=privacy, bounds=(-8, 8), max_rows=7, allow_useless=True)
    model.fit(curves, groups=ids)
    spent = time.process_time() - started
    low, high = model.icc_interval()
    found = [captured(model, "person", BETWEEN, OF_PERSONS), captured(model, "row", WITHIN, OF_ROWS)]
    return [*found, model.icc_, low <= ICC <= high, high - low, spent]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "private-levels.md")
    given = parser.parse_args()
    lines = [
        "# Private components of persons and of their curves",
        "",
        f"`python benchmarks/private_levels.py --seeds {given.seeds}`: mean (worst) share of variance that four "
        f"private components hold; intraclass correlation (true {ICC:.3f}).",
        "",
        "| persons, ε | between | within | ICC | its sd | 95 % interval holds | its width | CPU s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for persons, epsilon, delta in CELLS:
        found = np.array([fit(persons, epsilon, delta, seed) for seed in range(given.seeds)])
        mean, worst = found.mean(axis=0), found.min(axis=0)
        held = " | ".join(f"{mean[j]:.3f} ({worst[j]:.3f})" for j in (0, 1))
        icc = f"{mean[2]:.3f} | {found[:, 2].std():.3f} | {mean[3]:.2f} | {mean[4]:.3f}"
        lines.append(f"| {persons:,}, {epsilon:g}{'' if delta else ' pure'} | {held} | {icc} | {mean[5]:.2f} |")
        print(lines[-1], flush=True)
    given.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
