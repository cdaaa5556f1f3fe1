"""Level and power of tests that random curves are 0: persons, slopes, sites, persons within sites, rows with gaps.

    python benchmarks/variance_tests.py                         200 samples of each kind and size of effect
    python benchmarks/variance_tests.py --kinds sites --runs 50

Samples are small: 12 persons, or 8 sites of 2, on k = 4 functions. Statistics are simulated 19 times at most, so that p
is up to .05 where none is as large. Sizes are standard deviations of what is tested, beside those of rows.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from fdadp import FunctionalRegression
from fdadp.repeated.person_sums import smooth_functions

DRAWS, POINTS, K = 19, 16, 4
T = np.linspace(0, 1, POINTS)
PHI = smooth_functions(T, K)[0]
SIZES = (0.0, 0.4, 0.8)
OWN = f"re(id, covariance='free', k={K})"
KINDS = {
    "persons": (f"Y ~ x + {OWN}", "re(id)"),
    "slopes": (f"Y ~ x + re(id, slopes=x, k={K})", "re(id):x"),
    "sites": (f"Y ~ x + {OWN} + re(site, covariance='free')", "re(site)"),
    "persons within sites": (f"Y ~ x + {OWN} + re(site, covariance='free')", "re(id)"),
    "persons, rows with gaps": (f"Y ~ x + {OWN}", "re(id)"),
}
COLUMNS = ("tested", *(f"p ≤ .05 at {size:g}" for size in SIZES), "draws a test at 0", "CPU s a test")
HEAD = f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}"


def sample(kind: str, size: float, seed: int) -> dict[str, np.ndarray]:
    """Rows of persons, of whom what is tested has a standard deviation of `size`, and what is not of 1."""
    rng = np.random.default_rng([seed, list(KINDS).index(kind)])
    sited = "sites" in kind
    site = np.repeat(np.arange(8), 2) if sited else np.zeros(12, dtype=np.int64)
    who = np.repeat(np.arange(site.size), rng.integers(2, 7, site.size))
    x = rng.normal(size=who.size)

    def curves(n: int, sd: float) -> np.ndarray:
        return sd * rng.normal(size=(n, K)) * np.array([1.0, 0.7, 0.5, 0.3]) @ PHI.T * np.sqrt(POINTS)

    Y = np.sin(np.pi * T) + np.outer(x, T) + curves(who.size, 1.0) + 0.5 * rng.normal(size=(who.size, POINTS))
    Y += curves(site.size, 1.0 if kind in ("slopes", "sites") else size)[who]
    if kind == "slopes":
        Y += x[:, None] * curves(site.size, size)[who]
    if sited:
        Y += curves(8, size if kind == "sites" else 1.0)[site][who]
    if "gaps" in kind:
        off = rng.uniform(size=Y.shape) < 0.4
        off[::3] = False
        Y = np.where(off, np.nan, Y)
    return {"Y": Y, "x": x, "id": who, "site": site[who]}


def share(kind: str, size: float, runs: int) -> tuple[float, float, float]:
    """Share of samples with p up to .05, mean number of draws, and CPU seconds a test."""
    (formula, name), found, start = KINDS[kind], [], time.process_time()
    for seed in range(runs):
        model = FunctionalRegression(formula).fit(sample(kind, size, seed))
        own = model.persons_.tested(name, draws=DRAWS, seed=seed)
        found.append((own.p_value <= 0.05, own.simulated.size))
    held, draws = np.mean(found, axis=0)
    return float(held), float(draws), (time.process_time() - start) / runs


def row(kind: str, runs: int) -> str:
    counts = [runs if size == 0 else max(runs // 5, 2) for size in SIZES]
    shares = [share(kind, size, count) for size, count in zip(SIZES, counts, strict=True)]
    cells = [f"{held:.3f} ± {np.sqrt(held * (1 - held) / n):.3f}" for (held, *_), n in zip(shares, counts, strict=True)]
    return f"| {kind} | {' | '.join(cells)} | {shares[0][1]:.0f} | {np.mean([one[2] for one in shares]):.2f} |"


def main(arguments: list[str] | None = None) -> str:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS))
    parser.add_argument("--runs", type=int, default=200, help="samples without an effect, and a fifth with")
    parser.add_argument("--out", type=Path, help="file for the table")
    asked = parser.parse_args(arguments)
    rows = []
    for kind in asked.kinds:
        rows.append(row(kind, asked.runs))
        print(rows[-1], flush=True)
    table = "\n".join((HEAD, *rows))
    if asked.out:
        said = (
            f"`python benchmarks/variance_tests.py --runs {asked.runs}`: shares of as many samples (a fifth with an "
            "effect) with a p-value up to .05, by the size of what is tested, 0 being the level. 12 persons of 2 to 6 "
            f"rows, or 8 sites of 2 such persons, on k = {K} functions; {DRAWS} draws at most of the restricted "
            "likelihood ratio under the null."
        )
        asked.out.write_text(f"# Tests of random curves\n\n{said}\n\n{table}\n", encoding="utf-8")
    return table


if __name__ == "__main__":
    main()
