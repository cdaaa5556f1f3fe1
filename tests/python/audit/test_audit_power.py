"""Audits find noise that is too small by the square root of 2, say how often they do, and raise few false alarms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fdadp.audit import black_box_audit, one_run_audit
from fdadp.privacy.account.epsilon_mu_rho import mu_from

DELTA, DRAWS, REPEATS = 1e-6, 4000, 60


def found(epsilon, factor, of, repeats=REPEATS, **claim):
    """Share of audits of a Gaussian release, with noise too small by the factor, that find a violation."""
    shift, results = of * factor, []
    for seed in range(repeats):
        scores = np.random.default_rng(seed).normal(size=(2, DRAWS))
        results.append(black_box_audit(scores[0] + shift, scores[1], epsilon=epsilon, delta=DELTA, **claim))
    return np.mean([not r.passed for r in results]), results[0]


@pytest.mark.statistics
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_the_power_that_is_printed_is_the_power(epsilon):
    mu = mu_from(epsilon, DELTA)
    share, result = found(epsilon, math.sqrt(2), mu, mu=mu)
    assert abs(share - result.power) <= 0.15
    assert f"power against noise too small by sqrt(2): {result.power:.2f}" in str(result)
    if epsilon == 4:
        assert share >= 0.9 and result.power >= 0.9
        assert found(epsilon, math.sqrt(2), mu)[0] == 0  # one point of the curve finds nothing, and says so
        assert found(epsilon, math.sqrt(2), mu, 1)[1].power < 0.05
    assert found(epsilon, 2.0, mu, mu=mu)[0] >= (0.95 if epsilon == 4 else 0.85)  # at epsilon 1: .88
    assert found(epsilon, 1.0, mu, mu=mu)[0] <= 0.05


def test_pure_claims_and_one_run_say_their_power():
    rng = np.random.default_rng(1)
    shift, few = 4 * math.sqrt(2), []
    for _ in range(REPEATS):
        scores = rng.laplace(size=(2, DRAWS))
        few.append(black_box_audit(scores[0] + shift, scores[1], epsilon=4.0))
    assert abs(np.mean([not a.passed for a in few]) - few[0].power) <= 0.2
    told = []
    for _ in range(REPEATS):
        included = rng.random(200) < 0.5
        scores = rng.laplace(size=200) + included * math.sqrt(2)
        told.append(one_run_audit(included, scores, epsilon=1.0))
    assert abs(np.mean([not a.passed for a in told]) - told[0].power) <= 0.15
    assert all("power against noise too small by sqrt(2)" in str(a) for a in (few[0], told[0]))
