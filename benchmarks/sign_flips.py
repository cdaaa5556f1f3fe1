"""Level and power of the test of `re(id)` on curves by flipped signs, where persons and curves are few.

    python benchmarks/sign_flips.py > benchmarks/results/sign-flips.md

Curves of 31 points have errors of sd .6 or so: white, smooth, or smooth with a chi-square of 3 degrees for each curve
(Student's t). Persons differ by a constant, tested as `re(id)` tests it, or by a smooth curve, tested along six
functions. Where persons have 10 and 5 curves, errors may be larger by half in the persons with more curves or with
fewer.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from fdadp.solve.errors.term_tests import flip_test

T = np.linspace(0, 1, 31)
SMOOTH = np.linalg.cholesky(np.exp(-(np.subtract.outer(T, T) ** 2) / (2 * 0.15**2)) + 1e-8 * np.eye(T.size))
ALONG = {
    "constant": np.full((T.size, 1), T.size**-0.5),
    "curve": np.linalg.qr(np.vander(2 * T - 1, 6, increasing=True))[0],
}
"""What persons may differ by, and in which orthonormal functions it is tested."""

SIZES = (0.0, 0.15, 0.3, 0.6)
DESIGNS: dict[str, Sequence[int]] = {
    "30 persons of 3 curves": (3,) * 30,
    "10 persons of 5": (5,) * 10,
    "5 persons of 10": (10,) * 5,
    "6 persons of 10, 6 of 5": (10,) * 6 + (5,) * 6,
    "5 persons of 2, 10 curves": (2,) * 5,
    "2 persons of 5, 10 curves": (5,) * 2,
    "5 curves of 2 persons": (3, 2),
}
MIXED = "6 persons of 10, 6 of 5"
ERRORS = ("white", "smooth", "smooth, t")
UNEQUAL = ("larger of 10", "larger of 5")


def errors(kind: str, counts: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """Errors of curves, by whose person's number of curves they may be larger."""
    e = 0.6 * draw.normal(size=(len(counts), T.size))
    if kind != "white":
        e = e @ SMOOTH.T
    if kind == "smooth, t":
        e /= np.sqrt(draw.chisquare(3, size=(len(counts), 1)) / 3)
    if kind in UNEQUAL:
        e *= np.where(counts == (10 if kind == "larger of 10" else 5), 1.5, 1.0)[:, None]
    return e


def p_value(design: str, kind: str, what: str, size: float, seed: int) -> float:
    """The p-value of one sample; its mean is the constant."""
    draw = np.random.default_rng([seed, list(DESIGNS).index(design), (*ERRORS, *UNEQUAL).index(kind)])
    person = np.repeat(np.arange(len(DESIGNS[design])), DESIGNS[design])
    counts = np.bincount(person)[person]
    n, persons = len(person), person[-1] + 1
    own = draw.normal(size=(persons, 1)) if what == "constant" else draw.normal(size=(persons, T.size)) @ SMOOTH.T
    y = size * own[person] + errors(kind, counts, draw)
    return flip_test(y @ ALONG[what], np.ones((n, 1)), person, np.arange(n), seed).p


def row(design: str, kind: str, runs: int) -> str:
    cells = []
    for what in ALONG:
        for size in SIZES:
            count = runs if size == 0 else max(runs // 4, 2)
            share = np.mean([p_value(design, kind, what, size, seed) <= 0.05 for seed in range(count)])
            cells.append(f"{share:.3f}" if size == 0 else f"{share:.2f}")
    return f"| {design} | {kind} | " + " | ".join(cells) + " |"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000, help="samples without persons' effects, and a quarter with")
    parser.add_argument("--designs", nargs="+", choices=DESIGNS, default=list(DESIGNS))
    asked = parser.parse_args(arguments)
    print("# The test of random effects on curves by flipped signs\n")
    print(
        f"`python benchmarks/sign_flips.py --runs {asked.runs}`: shares of as many samples (a quarter with an effect) "
        "with p ≤ .05, by what persons differ by and its standard deviation, 0 being the level. Errors have .6, and "
        "half as much again where they are larger. At .05 the standard error of a level is "
        f"{np.sqrt(0.0475 / asked.runs):.3f}.\n"
    )
    sizes = [f"{what} {size:g}" for what in ALONG for size in SIZES]
    print(f"| persons | errors | {' | '.join(sizes)} |\n" + "|---" * (2 + len(sizes)) + "|")
    for design in asked.designs:
        for kind in (*ERRORS, *(UNEQUAL if design == MIXED else ())):
            print(row(design, kind, asked.runs), flush=True)


if __name__ == "__main__":
    main()
