"""Intervals that hold the noise alone: of the same exact sums, as many draws of noise, they hold as often as they say.

No kernel and no sampling: each part of the noise that an interval must know of is in a line of its own.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from fdadp.privacy.rows._rowwise_arithmetic import of_table
from fdadp.summaries.questions.column_questions import AskCells
from fdadp.summaries.questions.moments_and_quantiles import AskDistribution, AskMoments, NumberMoments
from fdadp.summaries.questions.table1_plan import parts_of
from fdadp.summaries.table1 import rows_of

MODES = pytest.mark.parametrize(
    ("pure", "copies", "declared"),
    [(False, 1, True), (False, 1, False), (False, 4, False), (True, 1, True), (True, 3, False)],
)
VALUES = np.concatenate([np.linspace(0.2, 1.0, 300), np.full(60, np.nan)])
"""On [-1, 1]; some are missing."""


def draws(asked, exact, sd, copies, pure):
    """Answers to a question, of exact sums with noise."""
    rng = np.random.default_rng(0)
    for _ in range(250 if pure else 2000):
        shape = (copies, len(exact))
        noise = rng.laplace(0, sd / math.sqrt(2), shape) if pure else rng.normal(0, sd, shape)
        yield asked.answer(exact + noise.sum(axis=0), sd, copies)


def shares(answers, asks):
    """How often each interval held what it should, by name."""
    held = dict.fromkeys(asks, 0)
    many = 0
    for answer in answers:
        many += 1
        for name, (ask, true) in asks.items():
            low, high = ask(answer)[1:3]
            held[name] += low - 1e-9 <= true <= high + 1e-9
    return {name: count / many for name, count in held.items()}


def about(share, pure):
    """Within four standard errors of .95."""
    return abs(share - 0.95) < (0.06 if pure else 0.02)


@MODES
def test_moments(pure, copies, declared):
    asked = AskMoments((-1.0, 1.0), float(len(VALUES)) if declared else None, pure=pure)
    there = VALUES[np.isfinite(VALUES)]
    asks = {
        "count": (lambda found: found.count(0.95), len(there)),
        "mean": (lambda found: found.mean(0.95, sampling=False), there.mean()),
        "variance": (lambda found: found.variance(0.95, sampling=False), there.var()),
    }
    exact = asked.rows(VALUES).sum(axis=0)
    found = shares(draws(asked, exact, 6.0, copies, pure), asks)
    assert all(about(share, pure) for share in found.values()), found
    assert asked.answer(exact, 6.0, copies).count(0.95).noise_sd == pytest.approx(6 * math.sqrt(copies))


@MODES
def test_cells(pure, copies, declared):
    codes = np.repeat([0.0, 1.0, 2.0, np.nan], [40, 200, 60, 60])
    asked = AskCells(3, float(len(codes)) if declared else None, pure=pure)
    asks = {
        "count": (lambda found: found.count(1, 0.95), 200),
        "missing": (lambda found: found.count(-1, 0.95), 60),
        "everybody": (lambda found: found.everybody(0.95), 360),
        "small": (lambda found: found.share(0, 0.95, sampling=False), 40 / 300),
        "large": (lambda found: found.share(1, 0.95, sampling=False), 200 / 300),
    }
    found = shares(draws(asked, asked.rows(codes).sum(axis=0), 6.0, copies, pure), asks)
    assert all(about(share, pure) for share in found.values()), found


@pytest.mark.statistics
@MODES
def test_quantiles(pure, copies, declared):
    """No less often than they say, and all but always only where a cell is all that can be told: it is a small one."""
    asked = AskDistribution(np.linspace(-1, 1, 257), float(len(VALUES)) if declared else None, pure=pure)
    there = VALUES[np.isfinite(VALUES)]
    asks = {
        q: (lambda found, q=q: found.quantile(q, 0.95, sampling=False), np.quantile(there, q))
        for q in (0.25, 0.5, 0.75)
    }
    exact = np.nansum(of_table(asked.table, asked.rows(VALUES)), axis=0)  # NaN is a row that the kernel leaves out
    found = shares(draws(asked, exact, 3.0, copies, pure), asks)
    assert min(found.values()) > (0.89 if pure else 0.93), found
    narrow = {q: (lambda answer, q=q: answer.quantile(q, 0.5, sampling=False), true) for q, (_, true) in asks.items()}
    found = shares(draws(asked, exact, 3.0, copies, pure), narrow)
    assert max(found.values()) < 0.9, found


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("law", ["zeros", "beyond", "whole"])
def test_quantiles_that_many_share_are_held(law, pure):
    """Most are 0, or beyond the range, or whole numbers of which nobody said so: quantiles are anywhere in a cell."""
    edges, rng, held = np.linspace(0, 100, 257 if pure else 513), np.random.default_rng(0), []
    asked = AskDistribution(edges, None, pure=pure)
    for _ in range(150):
        x = np.where(rng.random(1000) < 0.6, 0.0, rng.exponential(20, 1000))
        x = {"zeros": x, "beyond": np.where(x > 0, 100 - x, 150), "whole": rng.normal(60.3, 3, 1000).round()}[law]
        exact, sd = of_table(asked.table, asked.rows(x)).sum(axis=0), 20.0
        shape = exact.shape
        noise = rng.laplace(0, sd / math.sqrt(2), shape) if pure else rng.normal(0, sd, shape)
        found = asked.answer(exact + noise, sd, 1)
        for q, true in {"zeros": {0.5: 0}, "beyond": {0.5: 100}, "whole": {0.25: 58, 0.5: 60, 0.75: 62}}[law].items():
            low, high = found.quantile(q, 0.95)[1:3]
            held.append(low <= true <= high)
    assert np.mean(held) > 0.93, np.mean(held)


def test_the_noise_of_a_mean_takes_nothing_off_a_variance():
    """Noise in the sum of u alone: its square would come off, .09 of .25."""
    rng, n = np.random.default_rng(0), 20.0
    values = [
        NumberMoments(
            np.array([0, 6 * rng.standard_normal(), n * (0.25 - 0.5), 0, 0]), 6.0 * np.eye(5)[1], 1, n, (-1, 1), False
        )
        .variance(0.95, sampling=False)
        .value
        for _ in range(4000)
    ]
    assert np.mean(values) == pytest.approx(0.25, abs=0.02)


def test_the_column_of_all_has_the_noise_of_all_groups():
    """Two groups and those in none: three blocks, each with noise of its own, add up."""
    facts = {"arm": ["a", "b"], "sex": ["f", "m"]}
    parts = parts_of(facts, "arm", (), {}, None, pure=False)
    exact = [np.array([[100.0, 80.0, 5.0]]), np.array([[60.0, 40.0, 0.0], [50.0, 30.0, 0.0], [2.0, 3.0, 0.0]])]
    rng, held = np.random.default_rng(0), []
    for _ in range(1000):
        released = [(sums + 4.0 * rng.standard_normal(sums.shape), 4.0) for sums in exact]
        rows = {
            name: estimate for name, estimate, _ in rows_of(parts, released, ["all", "a", "b"], facts, (), 0.95, False)
        }
        one = rows["sex", "f", "n", "all"]
        held.append(one.low <= 112 <= one.high)
    assert 0.92 < np.mean(held) < 0.98


def test_the_median_of_a_number_that_is_mostly_zero_is_zero():
    """It was the middle of the first cell: .43 of 0 to 700."""
    from fdadp import Privacy
    from fdadp.summaries import private_quantiles

    rng, n = np.random.default_rng(0), 3000
    z = np.where(rng.random(n) < 0.8, 0.0, rng.gamma(2.0, 10.0, n))
    for bounds, values, end in (((0, 700), z, 0.0), ((-700, 0), -z, 0.0)):
        found = private_quantiles(values, bounds=bounds, privacy=Privacy(1.0, 1e-6, n=n, random_state=1), q=[0.5]).frame
        assert found["value"].tolist() == [end] and (found["low"] <= end).all() and (found["high"] >= end).all()
    even = private_quantiles(
        rng.uniform(0, 100, n), bounds=(0, 100), q=[0.001], privacy=Privacy(1.0, 1e-6, n=n, random_state=1)
    )
    assert even.frame["value"].iloc[0] > 0


@pytest.mark.parametrize("delta", [1e-6, None])
def test_of_few_persons_too(delta):
    """One cell beside it has too much noise: the median of 300 persons was within the first cell, .02 to .07."""
    from fdadp import Privacy
    from fdadp.summaries import private_quantiles

    def medians(law):
        found = []
        for seed in range(8):
            values, privacy = law(np.random.default_rng(seed)), Privacy(1.0, delta, n=300, random_state=seed)
            found.append(private_quantiles(values, bounds=(0, 40), privacy=privacy, q=[0.5]).frame["value"].iloc[0])
        return np.array(found)

    assert (medians(lambda rng: np.where(rng.random(300) < 0.6, 0.0, rng.exponential(6, 300))) == 0).all()
    assert (medians(lambda rng: np.exp(rng.normal(-3, 1, 300))) > 0).all()  # in the first cells, none of them at 0
    assert (medians(lambda rng: rng.exponential(0.1, 300)) > 0).all()
