"""How often intervals of private means, variances, quantiles, shares and counts hold the truth, and how wide they are.

    python benchmarks/summaries.py [--samples 1000] [--n 200 3000] [--epsilon 0.1 1] [--laws normal ...]
        [--private-n] [--out benchmarks/results]
    python benchmarks/summaries.py --suggested

Three laws, on public ranges that subject knowledge would give; nominal 95 %, noise and sampling; pure ε, and δ = 1e-6
in Gaussian DP; seeded noise: for simulation only. Widths are over that of the usual interval without privacy (of
variances: of √((μ₄ - σ⁴)/n); of shares: Wald's), of counts in persons. "Share" is of a histogram, "cell" of a
cross-table (a share of some 10 %, and the count of the same cell); "count" is ``private_count``, for which n is
private. "No privacy" is how often the usual intervals hold the same: t's of the mean, binomial quantiles, Wilson's
of the share. Writes summaries.md and summaries.json; lines that stand in --out's with as many samples are not run
again.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import math
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import binom, lognorm, norm, poisson, t

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fdadp import Privacy
from fdadp._common.threads import one_thread
from fdadp.privacy import Budget
from fdadp.summaries import (
    private_count,
    private_cross_table,
    private_histogram,
    private_mean,
    private_quantiles,
    private_variance,
    suggest_bounds,
)

POINTS = 400_001
LEVEL = 0.95
QUANTILES = (0.25, 0.5, 0.9)
LAWS = {
    "normal": (norm(50, 10), (0.0, 100.0), None),
    "lognormal": (lognorm(1.0), (0.0, 30.0), None),
    "discrete": (poisson(3), (0.0, 20.0), 1.0),
}
"""A law, its public range, and the step of its values."""
COLUMNS = (
    *("mean", "variance"),
    *(f"quantile {q:g}" for q in QUANTILES),
    *("share", "cell: share", "cell: count", "count"),
)
USUAL = ("mean", *(f"quantile {q:g}" for q in QUANTILES), "share")
"""Of which there are intervals without privacy to compare with."""
RARE = 0.2
"""Share of a class of the second column of the cross-table, which does not depend on the first."""


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
    out["cell: share"] = share * RARE
    for name in ("share", "cell: share"):
        out[f"sd {name}"] = math.sqrt(out[name] * (1 - out[name]))
    for q in QUANTILES:
        at = out[f"quantile {q:g}"]
        out[f"sd quantile {q:g}"] = math.sqrt(q * (1 - q)) / of.pdf(at) if step is None else math.nan
    return out


def intervals(law: str, n: int, privacy: Callable[..., Privacy], seed: int) -> dict[str, tuple[float, float, float]]:
    """One sample, and of six releases of it, each with the whole ε, the intervals: ends and what they should hold."""
    of, bounds, step = LAWS[law]
    rng, true = np.random.default_rng([seed, n]), truth(law)
    x = of.rvs(n, random_state=rng).astype(float)
    rare = (rng.random(n) < RARE) + 0.0
    below = (x < true["mean"]) + 0.0
    out = {"mean": private_mean(x, bounds=bounds, privacy=privacy(6 * seed)).interval}
    spread = private_variance(x, bounds=bounds, privacy=privacy(6 * seed + 1)).frame.loc["variance"]
    out["variance"] = spread["low"], spread["high"]
    found = private_quantiles(x, QUANTILES, bounds=bounds, step=step, privacy=privacy(6 * seed + 2)).frame
    out |= {f"quantile {q:g}": (found.loc[q, "low"], found.loc[q, "high"]) for q in QUANTILES}
    shares = private_histogram(below, edges=[0, 0.5, 1], privacy=privacy(6 * seed + 3)).frame
    cells = private_cross_table(
        pd.DataFrame({"below": below, "rare": rare}),
        {"below": [0, 1], "rare": [0, 1]},
        privacy=privacy(6 * seed + 4),
    ).frame
    for name, row in (
        ("share", shares.loc[("share", "[0.5, 1]")]),
        ("cell: share", cells.loc[("share", 1, 1)]),
        ("cell: count", cells.loc[("count", 1, 1)]),
    ):
        out[name] = row["low"], row["high"]
    out["count"] = private_count(x, privacy=privacy(6 * seed + 5, n=None)).interval
    inside = {"cell: count": float((below * rare).sum()), "count": float(n)}
    return {name: (*ends, inside.get(name, true.get(name, math.nan))) for name, ends in out.items()}


def usual(law: str, n: int, seed: int) -> dict[str, bool]:
    """Whether intervals without privacy, of the same sample, hold the same."""
    of, bounds, _ = LAWS[law]
    true = truth(law)
    x = np.sort(of.rvs(n, random_state=np.random.default_rng([seed, n])).astype(float))
    inside = np.clip(x, *bounds)
    z = float(norm.ppf((1 + LEVEL) / 2))
    half = float(t.ppf((1 + LEVEL) / 2, n - 1)) * float(inside.std(ddof=1)) / math.sqrt(n)
    held = {"mean": abs(float(inside.mean()) - true["mean"]) <= half}
    for q in QUANTILES:
        low, high = (int(binom.ppf(p, n, q)) for p in ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
        held[f"quantile {q:g}"] = bool(x[max(low - 1, 0)] <= true[f"quantile {q:g}"] <= x[min(high, n - 1)])
    p = float((x < true["mean"]).mean())
    middle, reach = (p + z * z / (2 * n)) / (1 + z * z / n), math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    held["share"] = abs(true["share"] - middle) <= z * reach / (1 + z * z / n)
    return held


def measure(
    law: str, n: int, epsilon: float, delta: float | None, *, private_n: bool, samples: int
) -> dict[str, object]:
    """Coverage and relative width of each kind of interval."""
    true = truth(law)
    held = dict.fromkeys(COLUMNS, 0)
    width = dict.fromkeys(COLUMNS, 0.0)

    def privacy(seed: int, n: int | None = None if private_n else n) -> Privacy:
        own = zlib.crc32(f"{law} {size} {epsilon} {delta} {seed}".encode())  # other noise in each line
        return Privacy(epsilon, delta, n=n, random_state=own)

    size = n
    with one_thread():
        for seed in range(samples):
            for name, (low, high, inside) in intervals(law, n, privacy, seed).items():
                held[name] += low <= inside <= high
                width[name] += (high - low) / samples
    one = 2 * float(norm.ppf((1 + LEVEL) / 2)) / math.sqrt(n)
    ratio = {name: width[name] / (one * true.get(f"sd {name}", math.nan)) for name in COLUMNS}
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


def without(law: str, n: int, samples: int) -> str:
    """Row of the table: how often intervals without privacy hold."""
    found = [usual(law, n, seed) for seed in range(samples)]
    cells = [f"{np.mean([one[name] for one in found]):.3f}" if name in USUAL else "" for name in COLUMNS]
    return f"| {law}, {n:,}, no privacy | " + " | ".join(cells) + " |"


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


def markdown(rows: list[dict[str, object]], plain: list[str] = ()) -> str:
    """A table of all."""
    lines = ["| law, n, ε, δ | " + " | ".join(COLUMNS) + " |", "|---" * (1 + len(COLUMNS)) + "|"]
    for row in rows:
        what = f"{row['law']}, {row['n']:,}, {row['epsilon']:g}, {'pure' if row['delta'] is None else row['delta']}"
        cells = []
        for name in COLUMNS:
            width, absolute = row["width"][name], row["absolute"][name]
            cells.append(f"{row['held'][name]:.3f}, " + (f"×{width:.2f}" if width is not None else f"{absolute:.2f}"))
        lines.append(f"| {what}{', n private' if row['private_n'] else ''} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, *plain]) + "\n"


def main(argv: list[str] | None = None) -> list[dict[str, object]]:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--n", type=int, nargs="+", default=[200, 3000])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 1.0])
    parser.add_argument("--laws", nargs="+", default=list(LAWS), choices=list(LAWS))
    parser.add_argument("--private-n", action="store_true", help="n is private too")
    parser.add_argument("--suggested", action="store_true", help="what suggest_bounds is worth, and nothing else")
    parser.add_argument("--out", type=Path, help="folder")
    given = parser.parse_args(argv)
    if given.suggested:
        for n in (1000, 10_000):
            for factor in (1, 2, 10, 100):
                print(n, factor, *(f"{width:.3f}" for width in suggested(n, factor, 40)), flush=True)
        return []
    name = "summaries-private-n" if given.private_n else "summaries"
    rows = []
    if given.out and (given.out / f"{name}.json").exists():
        rows = json.loads((given.out / f"{name}.json").read_text(encoding="utf-8"))
    rows = [row for row in rows if row["samples"] == given.samples]
    for key in itertools.product(given.laws, given.n, given.epsilon, (None, 1e-6)):
        if any(key == _key(row) for row in rows):
            continue
        found = measure(*key, private_n=given.private_n, samples=given.samples)
        rows = sorted(
            [*rows, found], key=lambda row: (list(LAWS).index(row["law"]), *_key(row)[1:3], _key(row)[3] or 0)
        )
        print(markdown([found]).splitlines()[-1], flush=True)
        if given.out:
            (given.out / f"{name}.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    if given.out:
        text = (
            f"`python benchmarks/summaries.py{' --private-n' if given.private_n else ''}`, {given.samples:,} samples a "
        )
        text += "line. Share of intervals that held the truth (nominal 0.95), and\nwidth over that without privacy (of "
        text += "counts in persons, of quantiles of discrete numbers in units).\n\n"
        sizes = dict.fromkeys((row["law"], row["n"]) for row in rows)
        plain = [without(law, n, given.samples) for law, n in sizes]
        (given.out / f"{name}.md").write_text(text + markdown(rows, plain), encoding="utf-8")
    return rows


def _key(row: dict[str, object]) -> tuple[object, ...]:
    return row["law"], row["n"], row["epsilon"], row["delta"]


if __name__ == "__main__":
    main()
