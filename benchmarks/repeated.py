"""Repeated curves at scale: CPU seconds and peak memory of one fit from chunks, each in a process of its own.

    python benchmarks/repeated.py             10,000 people x 7 days x 1,440 points, 60,000 x 7 x 144, and R's programs
    python benchmarks/repeated.py --people 500 --days 7 --points 144 --k 12
    python benchmarks/repeated.py --no-peers  without R

A fit is one pass over chunks of 200 people (4 features: a constant, age, sex, weekend), REML of both covariances, mean
curves smoothed by REML, effects of all persons. Making the data is not counted. `--learn` takes the number of functions
from one pass at 60 by BIC instead. R's programs (``repeated_peers.R``) get the same curves at sizes that they can take,
and 60 seconds of CPU where they are not linear in persons.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from fdadp import MultilevelFPCA
from fdadp.functional.splines.bsplines import BSplines
from fdadp.repeated.fixed_effects import MeanTerm, fixed_effects, spline_levels, terms_on
from fdadp.repeated.icc_and_tests import icc
from fdadp.repeated.person_effects import RepeatedFit
from fdadp.repeated.person_sums import PersonPass, smooth_functions
from fdadp.repeated.reml_search import choose_functions, level_covariances

SIZES = ((10_000, 7, 1440, 30, False), (10_000, 7, 1440, 60, True), (60_000, 7, 144, 30, False))
LIMITS = "limits: 10 s of CPU and 1 GB at 10,000 x 7 x 1,440"
PERSON_SD, ROW_SD = np.array([1, 0.7, 0.5, 0.3]), np.array([0.8, 0.6, 0.4, 0.2])
TRUE_ICC = float((PERSON_SD**2).sum() / ((PERSON_SD**2).sum() + (ROW_SD**2).sum()))
CHUNK = 200
SCRIPT, SCRIPTS = Path(__file__).with_name("repeated_peers.R"), Path(__file__).parents[1] / "r_bridge" / "R"
LONGEST = 60
"""CPU seconds after which a program of R is stopped."""
BESIDE = (
    ("face", 1_000, 7, 144, "mfpca.face", "components of both levels, no covariates", ("face", "reml")),
    ("face", 2_000, 7, 1440, "mfpca.face", "the same", ("face", "reml")),
    ("gam", 20, 4, 40, "gam, paraPen", "mean curves and curves of persons, penalised, white errors", ("spline",)),
    ("gam", 40, 4, 40, "gam, paraPen", "the same", ("spline",)),
    ("lmer", 1_000, 7, 144, "lmer x T", "a number a person at each t, nothing smoothed", ("mixed",)),
    ("lmer", 1_000, 7, 1440, "lmer x T", "the same", ("mixed",)),
    ("fui", 1_000, 7, 144, "fastFMM::fui", "the same, then smoothed; no errors (`var = FALSE`)", ("mixed",)),
)
"""Program of R, its persons, days and points, what it is called and fits, and what of ours stands beside it."""


def chunk(rng: np.random.Generator, ids: np.ndarray, days: int, t: np.ndarray):
    """Rows of some persons: features (m, 3), curves (m, T) and ids (m,)."""
    waves, level = 2 * np.pi * np.outer([1, 2, 3], t), np.ones((1, t.size))
    of_person, of_row = (np.vstack((np.sqrt(2) * wave(waves), level)) for wave in (np.sin, np.cos))
    n = rng.integers(days - 2, days + 3, ids.size)
    own = np.repeat(np.arange(ids.size), n)
    day = np.concatenate([np.arange(m) for m in n])
    X = np.column_stack((rng.normal(size=ids.size)[own], rng.integers(0, 2, ids.size)[own], day >= 5)).astype(float)
    Y = np.sin(np.pi * t) + np.outer(X[:, 0], 0.3 * t) + ((rng.normal(size=(ids.size, 4)) * PERSON_SD) @ of_person)[own]
    Y += (rng.normal(size=(own.size, 4)) * ROW_SD) @ of_row + rng.standard_normal((own.size, t.size), dtype=np.float32)
    return X, Y, ids[own]


def fit(people: int, days: int, points: int, k: int, learn: bool) -> dict[str, float]:
    """CPU seconds of each step, and what was found."""
    rng, t = np.random.default_rng(0), np.linspace(0, 1, points)
    phi, roughness = smooth_functions(t, k)
    one, seconds = PersonPass(phi, 3), dict.fromkeys(("pass", "functions", "REML", "mean curves", "persons"), 0.0)

    def timed(step: str, call):
        start = time.process_time()
        out = call()
        seconds[step] += time.process_time() - start
        return out

    for start in range(0, people, CHUNK):
        X, Y, ids = chunk(rng, np.arange(start, min(start + CHUNK, people)), days, t)
        timed("pass", lambda X=X, Y=Y, ids=ids: one.add(X, Y, ids))
    sums = timed("pass", one.sums)
    if learn:
        sums = timed("functions", lambda: choose_functions(sums)).sums
    levels = timed("REML", lambda: level_covariances(sums))
    fixed = timed("mean curves", lambda: fixed_effects(sums, levels, terms_on(sums, roughness)))
    timed("persons", RepeatedFit(sums, levels, fixed).effects)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    found = {"curves": sums.n_rows, "k": sums.k, "icc": icc(sums, levels), "noise": levels.noise_variance}
    return {**seconds, "all": sum(seconds.values()), "peak": peak, **found}


def row(people: int, days: int, points: int, found: dict[str, float]) -> str:
    steps = " | ".join(f"{found[name]:.2f}" for name in ("pass", "functions", "REML", "mean curves", "persons", "all"))
    size = f"{people:,} x {days} x {points:,} ({found['curves']:,} curves)"
    return f"| {size} | {found['k']} | {steps} | {found['peak']:.2f} | {found['icc']:.3f} | {found['noise']:.3f} |"


def ours(way: str, X: np.ndarray, Y: np.ndarray, ids: np.ndarray) -> float:
    """CPU seconds of a fit of ours to rows in memory: what R's program fits, or more."""
    start, t = time.process_time(), np.linspace(0, 1, Y.shape[1])
    if way in ("face", "reml"):
        MultilevelFPCA(method=way, **({"n_knots": 27} if way == "face" else {"k": 30})).fit(Y, groups=ids, t=t)
    elif way == "mixed":
        phi, roughness = smooth_functions(t, 30)
        sums = PersonPass(phi, 3).add(X, Y, ids).sums()
        levels = level_covariances(sums)
        RepeatedFit(sums, levels, fixed_effects(sums, levels, terms_on(sums, roughness))).effects()
    else:
        from scipy.linalg import eigh

        splines = BSplines.uniform(0, 1, 9)
        B, S = splines.design(t), splines.difference_penalty(2)
        s, turn = eigh(S, B.T @ B)
        own = np.column_stack((np.ones(len(X)), X))
        sums = PersonPass(B @ turn, 4, intercept=False).add(own, Y, ids).sums()
        penalty = np.where(s > 1e-9 * s.max(), s, 0.0)[None]
        levels, fixed = spline_levels(sums, [MeanTerm(e[:, None], B @ turn, penalty) for e in np.eye(4)], B, S)
        RepeatedFit(sums, levels, fixed).effects()
    return time.process_time() - start


def rows_of(people: int, days: int, points: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return chunk(np.random.default_rng(1), np.arange(people), days, np.linspace(0, 1, points))


def in_r(method: str, X: np.ndarray, Y: np.ndarray, ids: np.ndarray) -> str:
    """CPU seconds and peak memory of a program of R, or why there are none."""
    rscript = shutil.which("Rscript")
    if rscript is None:
        return "not run: no Rscript | "
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "shape.txt").write_text(f"{len(Y)} {Y.shape[1]}")
        for name, values in (("Y", Y), ("X", X), ("id", ids)):
            np.asarray(values, dtype=np.float64).T.tofile(Path(folder) / f"{name}.bin")
        limit = f"ulimit -t {LONGEST}; exec " if method == "gam" else "exec "
        command = f'{limit}"{rscript}" "{SCRIPT}" {method} "{folder}" "{SCRIPTS}"'
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    if done.returncode and "there is no package called" in done.stderr:
        return "not run: the package is not installed | "
    if done.returncode < 0 or done.returncode > 128:
        return f"stopped after {LONGEST} s | "
    if done.returncode:
        return f"not run: {done.stderr.strip().splitlines()[-1]} | "
    seconds, peak, _, version = done.stdout.split()[-4:]
    return f"{float(seconds):.2f} ({version}) | {float(peak):.2f}"


def beside_r() -> list[str]:
    rows = [PEERS_HEAD]
    for way in ("face", "reml", "mixed", "spline"):  # compiled and loaded before anything counts
        ours(way, *rows_of(20, 4, 40))
    for method, people, days, points, called, fits, ways in BESIDE:
        X, Y, ids = rows_of(people, days, points)
        found = in_r(method, X, Y, ids)
        own = ", ".join(f"{way} {ours(way, X, Y, ids):.2f}" for way in ways)
        rows.append(f"| {people:,} x {days} x {points:,} | `{called}` | {fits} | {found} | {own} |")
        print(rows[-1], flush=True)
    return rows


PEERS_HEAD = (
    "| people x days x points | program of R | what it fits | CPU s (version) | peak GB | ours, CPU s |\n"
    "|---|---|---|---|---|---|"
)
OURS = (
    "Ours: `face` and `reml` are `MultilevelFPCA` (27 knots, k = 30); `spline` is gam's model by its own REML; `mixed` "
    "is REML of both covariances at k = 30, smooth mean curves and effects of all persons. `lmer x T` is three points "
    "times a third of all."
)
HEAD = (
    "| people x days x points | k | pass | choosing k | REML | mean curves | persons | all, CPU s | peak GB | ICC "
    "| noise |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|"
)


def main(arguments: list[str] | None = None) -> str:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("people", None), ("days", 7), ("points", 144), ("k", 30)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--learn", action="store_true", help="choose k by BIC, from a pass at --k functions")
    parser.add_argument("--no-peers", action="store_true", help="leave out R's programs")
    parser.add_argument("--out", type=Path, help="file for the table")
    asked = parser.parse_args(arguments)
    if asked.people is not None:
        table = row(
            asked.people, asked.days, asked.points, fit(asked.people, asked.days, asked.points, asked.k, asked.learn)
        )
        print(table)
        return table
    rows = []
    for people, days, points, k, learn in SIZES:
        command = [sys.executable, __file__, "--people", people, "--days", days, "--points", points, "--k", k]
        command += ["--learn"] if learn else []
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True)
        rows.append(done.stdout.strip())
        print(rows[-1], flush=True)
    table = "\n".join((HEAD, *rows, "", f"True ICC {TRUE_ICC:.3f}, noise 1; {LIMITS}. One BLAS thread."))
    if not asked.no_peers:
        table = "\n".join((table, "", "## Beside R, on the same curves", "", *beside_r(), "", OURS))
    if asked.out:
        asked.out.write_text(f"# Repeated curves\n\n`python benchmarks/repeated.py`\n\n{table}\n", encoding="utf-8")
    return table


if __name__ == "__main__":
    main()
