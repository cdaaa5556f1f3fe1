"""Accuracy that costs nothing: the same guarantee counted better, or the same question asked better.

python benchmarks/free_accuracy.py clones: ε of shuffled reports, with the clones of 2021 and of 2023.
python benchmarks/free_accuracy.py strategies: noise of cumulative counts, about zero and about a centre.
python benchmarks/free_accuracy.py replaced: the linear term of objective perturbation where persons are replaced.
python benchmarks/free_accuracy.py choice: a choice among two models at n = 500, of which the second has a term more.
python benchmarks/free_accuracy.py selections: what plans of selections and sums would gain if counted exactly.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from scipy import optimize, stats

from fdadp import Privacy, ScalarRegression, choose_privately
from fdadp.errors import PrivacyError
from fdadp.federated import shuffled_epsilon
from fdadp.privacy.account.epsilon_mu_rho import (
    gaussian_multiplier,
    mu_from,
    range_from_mu,
    replaced_multiplier,
    rho_from,
)
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


def plan_delta(epsilon: float, steps: Sequence[tuple[str, float]], width: float) -> float:
    """δ of a plan of selections ("select", η) and sums ("sum", μ), from above; η are multiples of the width.

    D(y) is the best δ that an adversary reaches from the likelihood ratio y = Q/P: convex, and falling from 1 at 0.
    Chords of D between the points of a grid are above it. ``docs/theory/gaussian-dp.md#plans``.
    """
    at = np.arange(-math.ceil((epsilon + 3) / width), math.ceil((epsilon + 1) / width) + 1)
    y = np.exp(width * at)
    D = np.maximum(1 - math.exp(epsilon) * y, 0.0)
    for kind, size in reversed(steps):
        D = _selected(D, y, round(size / width)) if kind == "select" else _summed(D, y, size)
    return float(D[at == 0][0])


def _selected(D: np.ndarray, y: np.ndarray, cells: int) -> np.ndarray:
    """Longest chord above y of any interval [a, a e^η]; between points of the grid its height is concave in a."""
    far = (y[1] / y[0]) ** np.arange(1, cells + 2)
    grow = far[cells - 1]
    every = np.concatenate((y[0] / far[cells - 1 :: -1], y, y[-1] * far))
    held = np.concatenate((np.ones(cells), D, np.full(cells + 1, D[-1])))
    slope = np.diff(held) / np.diff(every)
    cut = held[:-1] - slope * every[:-1]
    best = D.copy()
    for back in range(1, cells + 1):
        left = np.arange(y.size) + cells - back  # a is in this piece, a e^η in that of `right`
        right = left + cells
        bend, fall = grow * np.maximum(slope[right] - slope[left], 0.0), y * np.maximum(cut[left] - cut[right], 0.0)
        a = np.sqrt(np.divide(fall, bend, out=np.full_like(fall, np.inf), where=bend > 0))
        a = np.clip(a, every[left], every[left + 1])
        weight = (a * grow - y) / (a * (grow - 1))
        height = weight * (cut[left] + slope[left] * a) + (1 - weight) * (cut[right] + slope[right] * a * grow)
        best = np.maximum(best, height)
    return np.minimum(best, 1.0)


def _summed(D: np.ndarray, y: np.ndarray, mu: float) -> np.ndarray:
    """Mean over a log-normal factor of mean 1: chords are sums of puts, priced by Black and Scholes (1973)."""
    slope = np.concatenate(((D[:1] - 1) / y[:1], np.diff(D) / np.diff(y), [0.0]))
    apart = math.log(y[1] / y[0]) * np.arange(-(y.size - 1), y.size)
    place = (apart + mu**2 / 2) / mu
    put = np.exp(apart) * stats.norm.cdf(place) - stats.norm.cdf(place - mu)
    out = np.convolve(np.diff(slope), put[::-1])[y.size - 1 : 2 * y.size - 1] * y + D[-1]
    return np.minimum(np.maximum(out, D), 1.0)


def attacked(epsilon: float, eta: float, count: int, cells: int) -> float:
    """δ that an adversary reaches in so many selections, who picks t among multiples of η / cells by what was lost."""
    most = count * cells
    lost = eta / cells * np.arange(-most, most + 1)
    D = np.maximum(1 - np.exp(epsilon - lost), 0.0)
    t = eta / cells * np.arange(1, cells)
    p = (math.exp(eta) - np.exp(t)) / math.expm1(eta)
    for _ in range(count):
        padded = np.concatenate((np.zeros(cells), D, np.full(cells, D[-1])))
        n = D.size
        ways = [q * padded[cells + d : cells + d + n] + (1 - q) * padded[d : d + n] for d, q in enumerate(p, 1)]
        D = np.maximum(D, np.max(ways, axis=0))
    return float(D[most])


def selections(epsilon: float = 1.0, delta: float = 1e-6) -> None:
    """Largest ranges that plans allow, counted in Gaussian DP, in zCDP and exactly."""
    mu, rho = mu_from(epsilon, delta), rho_from(epsilon, delta)
    for count, cells in ((4, 64), (16, 32), (64, 16)):
        gdp, zcdp = range_from_mu(mu / math.sqrt(count)), math.sqrt(8 * rho / count)
        plan = partial(_selections_delta, epsilon, count, cells)
        most = _most(lambda eta, plan=plan: plan(eta) <= delta, zcdp)
        print(
            f"{count} selections at ({epsilon:g}, {delta:g}): range {gdp:.4f} (Gaussian DP), {zcdp:.4f} (zCDP), "
            f"{most:.4f} (exactly): noise x {gdp / most:.2f}, {zcdp / most:.2f}; an adversary reaches delta "
            f"{attacked(epsilon, most, count, cells):.3g} of {plan(most):.3g}"
        )
    for rounds in (10, 50):
        most = _most(lambda amount, rounds=rounds: _stumps_delta(epsilon, rounds, amount) <= delta, rho)
        print(f"boosted stumps, {rounds} rounds: noise x {math.sqrt(rho / most):.2f} of zCDP's")


def _selections_delta(epsilon: float, count: int, cells: int, eta: float) -> float:
    return plan_delta(epsilon, [("select", eta)] * count, eta / cells)


def _stumps_delta(epsilon: float, rounds: int, amount: float) -> float:
    """Of DPBoostedStumps: .7 of each round selects a test, .3 weighs it."""
    eta, mu = math.sqrt(8 * 0.7 * amount / rounds), math.sqrt(2 * 0.3 * amount / rounds)
    return plan_delta(epsilon, [("select", eta), ("sum", mu)] * rounds, eta / 12)


def _most(holds: Callable[[float], bool], start: float) -> float:
    low, high = start, start
    while holds(high):
        low, high = high, 1.5 * high
    return low if high == low else optimize.bisect(lambda x: 0.5 - holds(x), low, high, xtol=1e-4 * low)


PARTS: dict[str, Callable[[], None]] = {
    "clones": clones,
    "strategies": strategies,
    "replaced": replaced,
    "choice": choice,
    "selections": selections,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()
