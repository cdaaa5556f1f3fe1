"""How often intervals of private means, variances, quantiles and shares hold the truth, and how wide they are.

    python benchmarks/summaries.py [--samples 300] [--n 300 3000 30000] [--epsilon 0.1 1] [--laws normal ...]
        [--private-n] [--out benchmarks/results]
    python benchmarks/summaries.py --suggested

Three laws, on public ranges that subject knowledge would give; nominal 95 %, noise and sampling; pure ε, and δ = 1e-6
in Gaussian DP; seeded noise: for simulation only. Widths are over that of the usual interval without privacy (of
variances: of √((μ₄ - σ⁴)/n); of shares: Wilson's). Writes summaries.md and summaries.json.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import lognorm, norm, poisson

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fdadp import Privacy
from fdadp.privacy import Budget
from fdadp.summaries import private_histogram, private_mean, private_quantiles, private_variance, suggest_bounds

POINTS = 400_001
LEVEL = 0.95
QUANTILES = (0.25, 0.5, 0.9)
LAWS = {
    "normal": (norm(50, 10), (0.0, 100.0), None),
    "lognormal": (lognorm(1.0), (0.0, 30.0), None),
    "discrete": (poisson(3), (0.0, 20.0), 1.0),
}
"""A law, its public range, and the step of its values."""
COLUMNS = ("mean", "variance", *(f"quantile {q:g}" for q in QUANTILES), "share")


@functools.cache
def truth(law: str) -> dict[str, float]:
    """What intervals should hold, of numbers within the range, and √n times the sd of each estimate without privacy."""
    of, (low, high), step = LAWS[law]
    if step is None:
        values = np.clip(of.ppf((np.arange(POINTS) + 0.5) / POINTS), low, high)
        weights = np.full(POINTS, 1 / POINTS)
    else:
        values = np.arange(low, high + step, step)
        weights = of.pmf(values)
        weights[-1] += of.sf(high)
    mean = float(weights @ values)
    variance = float(weights @ (values - mean) ** 2)
    share = float(weights @ (values < mean))
    out = {"mean": mean, "variance": variance, "share": share, "sd mean": math.sqrt(variance)}
    out |= {f"quantile {q:g}": float(of.ppf(q)) for q in QUANTILES}
    out["sd variance"] = math.sqrt(float(weights @ (values - mean) ** 4) - variance**2)
    out["sd share"] = math.sqrt(share * (1 - share))
    for q in QUANTILES:
        at = out[f"quantile {q:g}"]
        out[f"sd quantile {q:g}"] = math.sqrt(q * (1 - q)) / of.pdf(at) if step is None else math.nan
    return out


def intervals(law: str, n: int, privacy: Callable[[int], Privacy], seed: int) -> dict[str, tuple[float, float]]:
    """One sample, and the intervals of four releases of it, each with the whole ε."""
    of, bounds, step = LAWS[law]
    x = of.rvs(n, random_state=np.random.default_rng([seed, n])).astype(float)
    out = {"mean": private_mean(x, bounds=bounds, privacy=privacy(4 * seed)).interval}
    spread = private_variance(x, bounds=bounds, privacy=privacy(4 * seed + 1)).frame.loc["variance"]
    out["variance"] = spread["low"], spread["high"]
    found = private_quantiles(x, QUANTILES, bounds=bounds, step=step, privacy=privacy(4 * seed + 2)).frame
    out |= {f"quantile {q:g}": (found.loc[q, "low"], found.loc[q, "high"]) for q in QUANTILES}
    below = np.where(x < truth(law)["mean"], "below", "above")
    shares = private_histogram(below, levels=["below", "above"], privacy=privacy(4 * seed + 3)).frame
    share = shares.loc[("share", "below")]
    out["share"] = share["low"], share["high"]
    return out


def measure(
    law: str, n: int, epsilon: float, delta: float | None, *, private_n: bool, samples: int
) -> dict[str, object]:
    """Coverage and relative width of each kind of interval."""
    true = truth(law)
    held = dict.fromkeys(COLUMNS, 0)
    width = dict.fromkeys(COLUMNS, 0.0)

    def privacy(seed: int) -> Privacy:
        own = zlib.crc32(f"{law} {n} {epsilon} {delta} {seed}".encode())  # other noise in each line
        return Privacy(epsilon, delta, n=None if private_n else n, random_state=own)

    for seed in range(samples):
        for name, (low, high) in intervals(law, n, privacy, seed).items():
            held[name] += low <= true[name] <= high
            width[name] += (high - low) / samples
    usual = 2 * float(norm.ppf((1 + LEVEL) / 2)) / math.sqrt(n)
    ratio = {name: width[name] / (usual * true[f"sd {name}"]) for name in COLUMNS}
    return {
        "law": law,
        "n": n,
        "epsilon": epsilon,
        "delta": delta,
        "private_n": private_n,
        "samples": samples,
        "held": {name: held[name] / samples for name in COLUMNS},
        "width": {name: None if math.isnan(value) else value for name, value in ratio.items()},
        "absolute": width,
    }


def suggested(n: int, factor: float, samples: int) -> tuple[float, float]:
    """Mean widths of intervals of a mean: with too wide bounds, and with bounds suggested first; equal budgets."""
    of, half = norm(80, 12), 40.0 * factor
    bounds, widths = (80 - half, 80 + half), np.zeros(2)
    for seed in range(samples):
        x = of.rvs(n, random_state=np.random.default_rng(seed))
        plain = private_mean(x, bounds=bounds, privacy=Privacy(1.0, 1e-6, n=n, random_state=seed))
        told = functools.partial(Privacy, delta=1e-6, n=n, budget=Budget(1.0, 1e-6), dataset="numbers")
        found = suggest_bounds(x, within=bounds, privacy=told(0.2, random_state=seed))
        after = private_mean(x, bounds=found.bounds, privacy=told(0.97, random_state=seed + samples))
        widths += [high - low for low, high in (plain.interval, after.interval)]
    return tuple(widths / samples)


def markdown(rows: list[dict[str, object]]) -> str:
    """A table of all."""
    lines = ["| law, n, ε, δ | " + " | ".join(COLUMNS) + " |", "|---" * (1 + len(COLUMNS)) + "|"]
    for row in rows:
        what = f"{row['law']}, {row['n']:,}, {row['epsilon']:g}, {'pure' if row['delta'] is None else row['delta']}"
        cells = []
        for name in COLUMNS:
            width, absolute = row["width"][name], row["absolute"][name]
            cells.append(f"{row['held'][name]:.3f}, " + (f"×{width:.2f}" if width is not None else f"{absolute:.2f}"))
        lines.append(f"| {what}{', n private' if row['private_n'] else ''} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> list[dict[str, object]]:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--n", type=int, nargs="+", default=[300, 3000, 30_000])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 1.0])
    parser.add_argument("--laws", nargs="+", default=list(LAWS), choices=list(LAWS))
    parser.add_argument("--private-n", action="store_true", help="n is private too")
    parser.add_argument("--suggested", action="store_true", help="what suggest_bounds is worth, and nothing else")
    parser.add_argument("--out", type=Path, help="folder")
    given = parser.parse_args(argv)
    rows = []
    if given.suggested:
        for n in (1000, 10_000):
            for factor in (1, 2, 10, 100):
                print(n, factor, *(f"{width:.3f}" for width in suggested(n, factor, 40)), flush=True)
        return rows
    for law in given.laws:
        for n in given.n:
            for epsilon in given.epsilon:
                for delta in (None, 1e-6):
                    found = measure(law, n, epsilon, delta, private_n=given.private_n, samples=given.samples)
                    rows.append(found)
                    print(markdown([found]).splitlines()[-1], flush=True)
    if given.out:
        name = "summaries-private-n" if given.private_n else "summaries"
        command = f"python benchmarks/summaries.py{' --private-n' if given.private_n else ''}"
        text = (
            f"`{command}`, {given.samples} samples a line. Share of intervals that held the truth (nominal 0.95), and\n"
        )
        text += "width over that without privacy (of quantiles of discrete numbers: width).\n\n"
        (given.out / f"{name}.md").write_text(text + markdown(rows), encoding="utf-8")
        (given.out / f"{name}.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return rows


if __name__ == "__main__":
    main()
