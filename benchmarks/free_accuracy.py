"""Accuracy that costs nothing: the same guarantee counted better, or the same question asked better.

python benchmarks/free_accuracy.py clones: ε of shuffled reports, with the clones of 2021 and of 2023.
python benchmarks/free_accuracy.py strategies: noise of cumulative counts, about zero and about a centre.
python benchmarks/free_accuracy.py replaced: the linear term of objective perturbation where persons are replaced.
python benchmarks/free_accuracy.py choice: a choice among two models at n = 500, of which the second has a term more.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable

import numpy as np
from scipy import optimize, stats

from fdadp import Privacy, ScalarRegression, choose_privately
from fdadp.errors import PrivacyError
from fdadp.federated import shuffled_epsilon
from fdadp.privacy.account.epsilon_mu_rho import gaussian_multiplier, replaced_multiplier
from fdadp.privacy.rows._rowwise_arithmetic import diameter_of
from fdadp.summaries.questions.moments_and_quantiles import strategy

SHUFFLED = ((0.5, 1_000, 1e-5), (1.0, 10_000, 1e-6), (2.0, 10_000, 1e-6), (4.0, 100_000, 1e-6))
"""ε of one report, users, δ."""


def pair_delta(epsilon: float, epsilon0: float, n: int, clone: float) -> float:
    """δ of the pair with C ~ Bin(n - 1, clone) clones, by plain summation: not the package's way."""
    truth = 1 / (1 + math.exp(-epsilon0))
    sd = math.sqrt((n - 1) * clone * (1 - clone))
    middle = (n - 1) * clone
    total = 0.0
    for c in range(max(0, int(middle - 9 * sd)), min(n - 1, int(middle + 9 * sd)) + 1):
        half = 9 * math.sqrt(c + 1) / 2
        a = np.arange(max(0, int(c / 2 - half)), min(c + 1, int(c / 2 + half) + 1) + 1)
        more, same = stats.binom.pmf(a - 1, c, 0.5), stats.binom.pmf(a, c, 0.5)
        one, other = truth * more + (1 - truth) * same, (1 - truth) * more + truth * same
        total += stats.binom.pmf(c, n - 1, clone) * np.maximum(one - math.exp(epsilon) * other, 0).sum()
    return float(total)


def clones() -> None:
    """ε of shuffled reports."""
    for epsilon0, n, delta in SHUFFLED:
        before = optimize.brentq(
            lambda e, e0=epsilon0, n=n, d=delta: math.log(max(pair_delta(e, e0, n, math.exp(-e0)), 1e-300) / d),
            1e-3,
            epsilon0 * 0.999,
            xtol=1e-5,
        )
        now = shuffled_epsilon(epsilon0, n, delta)
        print(
            f"shuffled, epsilon0 {epsilon0:g}, n {n:,}, delta {delta:g}: {before:.4f} -> {now:.4f}, "
            f"ratio {before / now:.2f}"
        )


def strategies() -> None:
    """Clip of a person, and what exchanging one costs, of cumulative counts with Gaussian noise."""
    for cells in (16, 64, 256, 1024):
        plain, centred = (strategy(cells, pure=False, total=total) for total in (False, True))
        before, after = math.sqrt(2) * plain.clip, diameter_of(centred.rows)
        print(
            f"cumulative counts, {cells} cells: clip {plain.clip:.3f} -> {centred.clip:.3f}, noise x "
            f"{centred.clip / plain.clip:.2f}; exchange {before:.3f} -> {after:.3f}, noise x {after / before:.2f}"
        )


def replaced() -> None:
    """Sd of the linear term, as two steps of adding or removing and as one doubled term."""
    for problems, ridge in ((1, 1.0), (1, 3.0), (1, 10.0), (1, 100.0), (3, 3.0), (3, 10.0), (3, 100.0)):
        try:
            two = f"{1 / gaussian_multiplier(0.5, 1e-6 / (1 + math.exp(0.5)), ridge, problems):.2f}"
        except PrivacyError:
            two = "refused"
        one = 1 / replaced_multiplier(1.0, 1e-6, ridge, problems)
        ratio = "" if two == "refused" else f", noise x {one / float(two):.2f}"
        print(f"replaced, {problems} problem(s), ridge {ridge:g}: sd {two} -> {one:.2f}{ratio}")


def choice(cohorts: int = 16) -> None:
    """Share of the variance of E[Y] over new people that the chosen model explains; the same in any checkout."""
    explained, right = [], 0
    for seed in range(300, 300 + cohorts):
        rng = np.random.default_rng(seed)
        columns, means = [], []
        for n in (500, 2000):
            age = rng.normal(55, 14, n).clip(18, 100)
            X = rng.normal(size=(n, 1)) + rng.normal(size=(n, 1)) * np.linspace(-1, 1, 40)
            means.append(X.mean(axis=1) + 0.03 * (age - 55))
            columns.append({"X": X, "age": age, "y": means[-1] + 0.6 * rng.normal(size=n)})
        bounds = {"X": (-4, 4), "age": (18, 100), "y": (-8, 8)}
        models = [ScalarRegression(formula, bounds=bounds) for formula in ("y ~ lf(X)", "y ~ lf(X) + age")]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = choose_privately(models, columns[0], None, Privacy(1.0, 1e-6, n=500, random_state=seed))
            off = found.estimator.predict(columns[1]) - means[1]
        explained.append(1 - float((off**2).mean() / means[1].var()))
        right += found.index == 1
    print(
        f"choice at n 500: {np.mean(explained):.3f} ({min(explained):.3f}), the better one {right} of {cohorts} times"
    )


PARTS: dict[str, Callable[[], None]] = {
    "clones": clones,
    "strategies": strategies,
    "replaced": replaced,
    "choice": choice,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()
