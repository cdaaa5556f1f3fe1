"""What public bounds that are too wide cost a private fit: numbers that fill a part of their range.

    python benchmarks/terms/wide_bounds.py [--seeds 5] [--people 300 1000 10000] [--wider 1 4 20 100]

A curve and two numbers (one off the middle of its bounds) each explain a third of what can be explained.
"""

from __future__ import annotations

import argparse

import numpy as np

from fdadp import FunctionalRegression, Privacy

S = np.linspace(0, 1, 31)


def cohort(n: int, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Columns, and the mean curves."""
    rng = np.random.default_rng([seed, n])
    root = np.linalg.cholesky(np.exp(-0.5 * ((S[:, None] - S) / 0.2) ** 2) + 1e-8 * np.eye(S.size))
    x = rng.normal(size=(n, S.size)) @ root.T
    age, lab = rng.normal(50, 15, n).clip(18, 95), rng.lognormal(1.0, 0.4, n)
    of_curves = x @ np.outer(np.sin(2 * np.pi * S), np.cos(np.pi * S)) / S.size
    parts = [of_curves, np.outer((age - 50) / 15, S), np.outer((lab - lab.mean()) / lab.std(), np.sin(np.pi * S))]
    mean = sum(p / p.std() for p in parts) + np.cos(S)
    y = mean + 0.7 * rng.normal(size=(n, S.size)) @ root.T + 0.7 * rng.normal(size=mean.shape)
    return {"X": x, "age": age, "lab": lab, "Y": y}, mean


def explained(n: int, wider: float, seed: int, epsilon: float, delta: float | None) -> float:
    """Share of the variance of the mean curves of new people."""
    data, _ = cohort(n, seed)
    new, mean = cohort(2000, seed + 1000)
    bounds = {"X": (-4, 4), "Y": (-12, 14), "age": (50 - 50 * wider, 50 + 50 * wider), "lab": (0, 8 * wider)}
    privacy = Privacy(epsilon, delta, n=n, random_state=seed)
    model = FunctionalRegression("Y ~ ff(X) + age + lab", privacy=privacy, bounds=bounds)
    found = model.fit(data, grids={"X": S, "Y": S}).predict(new)
    return 1 - float(((found - mean) ** 2).mean() / ((mean - mean.mean(axis=0)) ** 2).mean())


def main() -> None:
    """Print means over cohorts, and the worst."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--people", type=int, nargs="+", default=[300, 1000, 10_000])
    parser.add_argument("--wider", type=float, nargs="+", default=[1, 4, 20, 100])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-6, help="0: pure")
    args = parser.parse_args()
    print(f"Share explained at epsilon = {args.epsilon:g}, delta = {args.delta:g}, {args.seeds} cohorts: mean (worst)")
    print("n       " + "".join(f"  bounds x {wider:<9g}" for wider in args.wider))
    for n in args.people:
        row = []
        for wider in args.wider:
            each = [explained(n, wider, seed, args.epsilon, args.delta or None) for seed in range(args.seeds)]
            row.append(f"  {np.mean(each):.3f} ({min(each):.3f})   ")
        print(f"{n:<8,}" + "".join(row), flush=True)


if __name__ == "__main__":
    main()
