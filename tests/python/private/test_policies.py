"""What every private fit does alike: shrinks by known noise, counts persons, shares out the budget by named numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from fdadp.privacy import Budget, Cohort, SeededNoise
from fdadp.privacy.account.epsilon_mu_rho import noise_multiplier, unit_noise
from fdadp.private.denoise.empirical_bayes import (
    level_and_spread,
    shrunk_coefficients,
    shrunk_scale,
    shrunk_shift,
)
from fdadp.private.plan.budget_sharing import expected_left, least_n_epsilon, release_n
from fdadp.private.public.tuned_constants import GAUSSIAN, PURE
from fdadp.rounds.budget_plan import Aux
from fdadp.rounds.posterior_means import gain, shrunk
from fdadp.summaries.curves.mean_and_covariance import COVARIANCE, MEAN


def test_what_is_known_stays_and_what_is_noise_goes_to_the_prior():
    assert shrunk(3.0, 0.0, 1.0, 2.0) == 3.0 and shrunk(3.0, 2.0, 1.0, 2.0) == 2.0
    assert shrunk(3.0, 1e9, 1.0, 2.0) == pytest.approx(1.0)
    assert shrunk_shift(1.0, 0.0, 2.0, 1.5) == 1.0 and shrunk_shift(9.0, 0.0, 2.0, 1.5) == 3.0
    assert shrunk_scale(8.0, 0.0, 2.0, 0.5) == pytest.approx(8.0)
    assert shrunk_scale(8.0, math.sqrt(0.5), 2.0, 0.5) == pytest.approx(4.0)  # half the way, in logarithms
    assert gain(0.0, 0.0) == 0.0 and gain(1.0, 3.0) == 0.25


@pytest.mark.parametrize("unit", [1.0, 0.01, 300.0])
def test_level_and_spread_are_estimated_together(unit):
    """From a released root mean square and a level, both with Laplace noise, and a guess of the spread."""

    def both(rms, error, level, sd, guess=1.0):
        shift, spread = level_and_spread(rms * unit, error, level * unit, sd * unit, guess * unit, 0.36)
        return shift / unit, spread / unit

    assert both(1.25, 0.01, 0.75, 0.01) == pytest.approx((0.75, 1.0), abs=0.03)  # 1.25² = 0.75² + 1²
    assert both(2.7, 0.05, -2.5, 0.2) == pytest.approx((-2.5, 1.0), abs=0.15)  # curves far from the middle of a range
    shift, spread = both(1.0, 0.1, 2.0, 0.3)  # a level above the root mean square: noise
    assert 0 < shift < 1.2 and spread > 0.2  # the square root of a difference is 0 there
    shift, spread = both(1.0, 0.1, 0.6, 3.0)
    assert abs(shift) < 0.2 and spread == pytest.approx(1.0, abs=0.1)  # a level that says nothing
    assert both(1.0, 5.0, 0.0, 0.1)[1] == pytest.approx(1.0, abs=0.3)
    assert both(3.0, 0.1, -1.0, 0.5)[0] == pytest.approx(-both(3.0, 0.1, 1.0, 0.5)[0])


def test_coefficients_are_shrunk_by_their_prior_shares():
    noisy, shares = np.array([2.0, 2.0, 0.1]), np.array([0.9, 0.05, 0.05])
    mean, variance = shrunk_coefficients(noisy, 0.5, shares)
    assert (np.abs(mean) < np.abs(noisy)).all() and mean[0] / 2.0 > mean[1] / 2.0
    np.testing.assert_allclose(variance / 0.25, mean / noisy)  # the posterior's, less where less is believed
    nothing, _ = shrunk_coefficients(np.full(3, 0.1), 0.5, shares)
    assert not nothing.any()


@pytest.mark.parametrize("delta", [1e-6, None])
@pytest.mark.parametrize("n", [40, 4000])
def test_a_released_n_leaves_what_was_expected(n, delta):
    pure = delta is None
    cohort = Cohort(np.zeros((n, 1)), budget=Budget(1.0, delta), noise=SeededNoise(0))
    multiplier = noise_multiplier(cohort.amount, "add-remove", pure=pure)
    assert unit_noise(cohort, 1.0) == multiplier
    found, left = release_n(cohort)
    assert left == pytest.approx(1 - math.fsum(r.share for r in cohort.releases))
    assert 0 < abs(found - n) < 3 * multiplier / (0.01 if pure else 0.1)  # of the first count alone
    assert (expected_left(n, multiplier, pure=pure) == 0.99) == (n == 4000 and not pure)
    assert 0.9 <= expected_left(n, multiplier, pure=pure) <= 0.99
    assert least_n_epsilon("replace") == 2 * least_n_epsilon("zero-out") == 100


def test_a_release_costs_what_its_accuracy_needs_up_to_a_cap_and_nothing_where_that_is_too_inaccurate():
    aux = Aux(target=0.1, cap=0.04, max_error=0.5)
    assert aux.share(0.01, pure=False) == pytest.approx(0.01) and aux.share(0.001, pure=True) == pytest.approx(0.01)
    assert aux.share(0.05, pure=False) == 0.04 and aux.share(0.11, pure=False) == 0.0
    assert replace(GAUSSIAN, rounds=4) != GAUSSIAN != PURE
    assert GAUSSIAN.x_scale.range(3.0) == (3.0 / 16, 4.5) and GAUSSIAN.x_scale.reach == pytest.approx(math.log(24) / 2)


@pytest.mark.parametrize("tuning", [MEAN, COVARIANCE])
def test_the_budget_of_a_summary_is_shared_out(tuning):
    names = ("observed", "outside", "level", "size", "rough_mean", "spread", "tail", "mean", "covariance", "rest")
    assert math.fsum(getattr(tuning, name) for name in names) == pytest.approx(1.0)
    assert math.fsum(getattr(tuning.scaled(0.9), name) for name in names) == pytest.approx(0.9)
    assert tuning.share == max(getattr(tuning, name) for name in names)
