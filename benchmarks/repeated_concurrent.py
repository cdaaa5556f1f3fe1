"""Coverage of 95 % intervals of repeated curves beside a covariate that varies with t, ``concurrent(Z)``.

    python benchmarks/repeated_concurrent.py                      20, 40 and 200 persons, 200 samples each
    python benchmarks/repeated_concurrent.py --persons 40 --runs 50

Persons and days are those of ``repeated_coverage.py``, which has a weekend of standard deviation .45. Z differs between
and within persons, with a standard deviation of .44 (a weak covariate) or of .97 (a strong one), and its effect is
``.3 sin 2πt + .2 t``; or ("rough") another in each sample, whose spline coefficients are a random walk of steps .2, as
the penalty of first differences has them.

Intervals count squares of what a penalty takes off an effect as its law has them: all of them for a rough effect. A
smooth one lies where penalties take little, so that its intervals hold too much where it is well known, most in the
middle; at the ends they hold less. It is the mean over effects, t and samples that is nominal.
"""

from __future__ import annotations

import os
from functools import partial

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import repeated_coverage
from repeated_coverage import POINTS, ROOT, TRUTH, K, Sample, T, days_of, inside
from scipy.interpolate import BSpline

from fdadp import FunctionalRegression

PERSONS = (20, 40, 200)
EFFECT = 0.3 * np.sin(2 * np.pi * T) + 0.2 * T
KNOTS = np.arange(-3, 16) / 12  # of 15 cubic splines
STEP = 0.2
WAVES = np.stack([np.ones(POINTS), ROOT * np.cos(np.pi * T), ROOT * np.sin(3 * np.pi * T)])
WEAK, STRONG = 0.45, 1.0
FORMULA = f"Y ~ x + weekend + concurrent(Z) + re(id, covariance='free', k={K})"
KINDS = (
    "effect, weak",
    "effect, strong",
    "effect, strong, rough",
    "weekend",
    "curve of a person",
    "new day of a known person",
    "of a new person",
)
HEAD = f"| persons | days | {' | '.join(KINDS)} | CPU s a sample |\n|{'---|' * (len(KINDS) + 3)}"


def covariate(rng: np.random.Generator, who: np.ndarray, size: float) -> np.ndarray:
    """Z of rows: a number of the person, and three waves of the row."""
    persons = 0.5 * rng.normal(size=(int(who.max()) + 1, 1))
    return size * (persons[who] + (rng.normal(size=(who.size, 3)) * [0.6, 0.4, 0.4]) @ WAVES)


def rough_effect(rng: np.random.Generator) -> np.ndarray:
    """An effect whose spline coefficients are a random walk."""
    return BSpline(KNOTS, STEP * rng.normal(size=len(KNOTS) - 4).cumsum(), 3)(T)


def shares(sample: Sample, rng: np.random.Generator, size: float, effect: np.ndarray = EFFECT) -> list[float]:
    """Held by intervals of the effect, of the weekend's, of curves of persons, of their next days, of new persons."""
    Z, x = covariate(rng, sample.who, size), sample.X[:, 0]
    data = {"Y": sample.Y + Z * effect, "Z": Z, "x": x, "weekend": sample.X[:, 1], "id": sample.who}
    model = FunctionalRegression(FORMULA).fit(data)
    held = []
    for name, truth in (("concurrent(Z)", effect), ("weekend", TRUTH[2])):
        found = model.coef(name, se=True, t=T)
        held.append(inside(found["lower"], found["upper"], truth))
    own = model.coef("re(id)", se=True, t=T)
    truth = sample.own[own["id"].to_numpy(), np.tile(np.arange(POINTS), len(sample.own))]
    held.append(inside(own["lower"], own["upper"], truth))
    first, persons = np.unique(sample.who, return_index=True)[1], len(sample.own)
    for who, curves in ((np.arange(persons), sample.own), (np.full(50, -1), Sample.draw(rng, 50, (1, 1)).own)):
        n = len(who)
        Z, x = covariate(rng, np.arange(n), size), sample.X[first, 0][np.arange(n) % persons]
        day = TRUTH[0] + x[:, None] * TRUTH[1] + Z * effect + curves + days_of(rng, n)
        held.append(inside(*model.predict_interval({"x": x, "weekend": np.zeros(n), "Z": Z, "id": who}), day))
    return held


def of_sample(sample: Sample, rng: np.random.Generator) -> list[float]:
    """Shares held in the order of :data:`KINDS`."""
    weak, strong = (shares(sample, rng, size) for size in (WEAK, STRONG))
    rough = shares(sample, rng, STRONG, rough_effect(rng))
    return [weak[0], strong[0], rough[0], *weak[1:]]


covers = partial(repeated_coverage.covers, held_of=of_sample)


def main(arguments: list[str] | None = None) -> str:
    about = str(__doc__).split("\n\n", 2)[2].strip()
    said = f"# Coverage beside covariates that vary with t\n\n{about}\n\n{{runs}} samples each."
    return repeated_coverage.print_table(arguments, str(__doc__), PERSONS, HEAD, of_sample, said)


if __name__ == "__main__":
    main()
