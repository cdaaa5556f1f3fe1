"""Level and power of tests that random curves are 0: persons, slopes, sites, persons within sites, rows with gaps.

    python benchmarks/variance_tests.py                         200 samples of each kind and size of effect
    python benchmarks/variance_tests.py --kinds sites --sites 6 8 12 --sizes 0 --runs 1000

Samples are small: 12 persons, or 6 to 12 sites of 2, on 3 functions. Statistics are simulated 19 times at most, so
that p is up to .05 where none is as large. Sizes are standard deviations of what is tested, beside those of rows.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from fdadp.repeated.icc_and_tests import NoPersons, NoPersonsWithGaps, NoSites, NoSlopes, VarianceNull
from fdadp.repeated.nested_sites import nested_covariances, site_sums
from fdadp.repeated.person_sums import PersonPass
from fdadp.repeated.random_slopes import slope_covariances, slope_sums
from fdadp.repeated.reml_search import level_covariances
from fdadp.repeated.reml_with_gaps import gap_covariances, gap_rows

DRAWS, POINTS, K = 19, 8, 3
PHI = np.linalg.qr(np.vander(np.linspace(-1, 1, POINTS), K, increasing=True))[0]
SIZES = (0.0, 0.4, 0.8)
KINDS = ("persons", "slopes", "sites", "persons within sites", "persons, rows with gaps")


def null_of(kind: str, size: float, seed: int, sites: int = 8) -> VarianceNull:
    """Fits to rows of persons, of whom what is tested has a standard deviation of `size`, and what is not of 1."""
    rng = np.random.default_rng([seed, KINDS.index(kind), *([sites] if "sites" in kind else [])])
    site = np.repeat(np.arange(sites), 2) if "sites" in kind else np.zeros(12, dtype=np.int64)
    who = np.repeat(np.arange(site.size), rng.integers(2, 7, site.size))
    x, scale = rng.normal(size=who.size), np.array([1.0, 0.7, 0.5])

    def curves(n: int, sd: float) -> np.ndarray:
        return sd * rng.normal(size=(n, K)) * scale

    C = x[:, None] + curves(who.size, 1.0) + curves(site.size, 1.0 if kind in ("slopes", "sites") else size)[who]
    if "gaps" in kind:
        off = rng.uniform(size=(who.size, POINTS)) < 0.4
        off[::3] = off[:, 0] = False
        Y = np.where(off, np.nan, C @ PHI.T + 0.3 * rng.normal(size=off.shape))
        X = np.column_stack((np.ones(who.size), x))
        levels, _ = gap_covariances(PHI, X, Y, who, np.linspace(0, 1, POINTS))
        return NoPersonsWithGaps(gap_rows(PHI, X, Y, who), levels)
    if kind == "slopes":
        C += x[:, None] * curves(site.size, size)[who]
    if "sites" in kind:
        C += curves(sites, size if kind == "sites" else 1.0)[site][who]
    X = np.column_stack((np.ones(who.size), x))
    sums = PersonPass(np.eye(K), 2, intercept=False, cross=True).add(X, C, who).sums()
    if kind == "persons":
        return NoPersons(sums, level_covariances(sums))
    if kind == "slopes":
        s = slope_sums(sums, np.eye(2))
        return NoSlopes(s, slope_covariances(s), (0,))
    own = site_sums(sums, dict(enumerate(site)))
    return NoSites(own, nested_covariances(own), persons=kind != "sites")


def found(kind: str, size: float, seed: int, sites: int) -> bool:
    """Whether p is up to .05 by 19 draws: none is as large as the statistic. Drawing ends with the first that is."""
    null, rng = null_of(kind, size, seed, sites), np.random.default_rng([seed, 99] if "sites" in kind else seed)
    statistic = max(null.statistic(), 0.0)
    return all(max(null.drawn(rng), 0.0) < statistic for _ in range(DRAWS))


def row(kind: str, sites: int, sizes: Sequence[float], runs: int) -> str:
    start, cells = time.process_time(), []
    for size in sizes:
        count = runs if size == 0 else max(runs // 5, 2)
        share = np.mean([found(kind, size, seed, sites) for seed in range(count)])
        cells.append(f"{share:.3f} ± {np.sqrt(share * (1 - share) / count):.3f}")
    what = f"{kind}, {sites} sites" if "sites" in kind else kind
    return f"| {what} | {' | '.join(cells)} | {time.process_time() - start:.0f} |"


def main(arguments: list[str] | None = None) -> str:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--sites", nargs="+", type=int, default=[8], help="how many, one line each")
    parser.add_argument("--sizes", nargs="+", type=float, default=SIZES, help="of the effect, 0 for the level")
    parser.add_argument("--runs", type=int, default=200, help="samples without an effect, and a fifth with")
    parser.add_argument("--out", type=Path, help="file for the table")
    asked = parser.parse_args(arguments)
    columns = ("tested", *(f"p ≤ .05 at {size:g}" for size in asked.sizes), "CPU s")
    rows = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for kind in asked.kinds:
        for sites in asked.sites if "sites" in kind else asked.sites[:1]:
            rows.append(row(kind, sites, asked.sizes, asked.runs))
            print(rows[-1], flush=True)
    table = "\n".join(rows)
    if asked.out:
        said = (
            f"`python benchmarks/variance_tests.py --runs {asked.runs}`: shares of as many samples (a fifth with an "
            "effect) with a p-value up to .05, by the size of what is tested, 0 being the level. 12 persons of 2 to 6 "
            f"rows, or sites of 2 such persons, on k = {K} functions; {DRAWS} draws at most of the restricted "
            "likelihood ratio under the null."
        )
        asked.out.write_text(f"# Tests of random curves\n\n{said}\n\n{table}\n", encoding="utf-8")
    return table


if __name__ == "__main__":
    main()
