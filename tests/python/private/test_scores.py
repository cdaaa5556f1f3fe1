"""Gradients at several points, near the solution and far from it, tell of one vector of coefficients."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from fdadp.private.denoise.posterior_from_gradients import ReleasedGradients, gaussian_draws
from fdadp.private.rows.count_and_binary_rows import BoundedResponse, bins_of, count_table, interpolated, level_of
from fdadp.solve.form.families_by_name import FAMILIES

THETA = np.array([0.3, 1.2, -0.8, 0.5])[:, None]
ONES_AND_ZEROS = BoundedResponse(FAMILIES["binomial"], (0.0, 1.0))


def norms(features):
    return np.sqrt((features**2).sum(axis=1))


def population(law, count=40_000):
    half = law(np.random.default_rng(1), (count // 2, 3))
    return np.hstack((np.ones((count, 1)), np.concatenate((half, -half))))


def normal(rng, size):
    return rng.standard_normal(size)


def wide(rng, size):
    """Longer tails, and one feature twice as variable as the prior says."""
    return rng.standard_normal(size) * np.exp(0.2 * rng.standard_normal((size[0], 1))) * [1.4, 1.0, 1.0]


def gradient(f, response, at, largest):
    """Expected gradient at a point, of a clipped population."""
    mean = response.mean(f @ at)[:, 0]
    weight = np.minimum(1, largest / (response.reach(mean) * norms(f)))
    return f.T @ (weight * (response.mean(f @ THETA)[:, 0] - mean)) / response.width / len(f)


def scores(response, n=1e6, shares=(0.4, 0.3, 0.3), variance=1e-6):
    return ReleasedGradients(response, n, 4, np.array(shares), np.zeros(len(shares), dtype=int), 2.0, variance, norms)


@pytest.mark.parametrize("response", [ONES_AND_ZEROS, BoundedResponse(FAMILIES["poisson"], (0.0, 3.0))])
def test_one_gradient_at_zero_is_enough_where_features_are_gaussian(response):
    """No iterations at other points are needed: the draws know how curved the likelihood is, and what clips take."""
    found = scores(response)
    start = np.zeros((4, 1))
    found.add(gradient(population(normal), response, start, 1.0), np.full(4, 1e-4), start, 1.0)
    np.testing.assert_allclose(found.solve(30).mean, THETA, atol=0.05)


def test_rounds_make_up_for_another_law_of_the_features():
    f, found, away = population(wide), scores(ONES_AND_ZEROS, variance=0.03), []
    for _ in range(6):
        at = found.theta
        found.add(gradient(f, ONES_AND_ZEROS, at, 1.0), np.full(4, 1e-4), at, 1.0)
        away.append(float(np.abs(found.solve(4).mean - THETA).max()))
    assert away[0] > 0.2 and away[-1] < 0.02


def test_features_that_were_not_measured_are_as_the_prior_says():
    found = scores(ONES_AND_ZEROS, shares=(0.35, 0.25, 0.2, 0.2))
    at = np.zeros((4, 1))
    found.add(gradient(population(normal), ONES_AND_ZEROS, at, 1.0), np.full(4, 1e-3), at, 1.0)
    last = found.solve(10)
    assert last.mean.shape == (5, 1) and last.mean[4] == 0
    assert last.covariance[0, 4, 4] > 20 * np.diag(last.covariance[0])[1:4].max()
    np.testing.assert_array_equal(last.covariance[0, 4, :4], 0)


def test_a_mean_residual_tells_of_the_constant_alone():
    """It sets the level right where slopes are known, and leaves them."""
    f, found = population(normal), scores(ONES_AND_ZEROS)
    start = np.zeros((4, 1))
    g = gradient(f, ONES_AND_ZEROS, start, 1.0)
    found.add(g, np.array([10.0, 1e-3, 1e-3, 1e-3]), start, 1.0)
    before = found.solve(20).mean
    mean, sd = np.zeros(4), np.full(4, np.inf)
    mean[0], sd[0] = (expit(f @ THETA) - expit(f @ before)).mean(), 1e-4
    found.add(mean, sd, before)
    after = found.solve(20).mean
    assert abs(before[0, 0] - 0.3) > 0.2 and abs(after[0, 0] - 0.3) < 0.03
    np.testing.assert_allclose(after[1:], before[1:], atol=0.05)


def test_draws_are_public_white_and_symmetric():
    draws = gaussian_draws(5)
    np.testing.assert_array_equal(draws, gaussian_draws(5))
    np.testing.assert_allclose(draws.T @ draws / len(draws), np.eye(5), atol=1e-12)
    np.testing.assert_array_equal(gaussian_draws(1), np.ones((len(draws), 1)))


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.0, 20.0), (3.0, 9.0), (0.0, 500.0)])
def test_means_of_cut_counts_are_poissons(low, high):
    from scipy.stats import poisson

    table, eta = count_table(low, high), np.array([-30.0, -5.0, -0.3, 0.0, 1.234567, 3.0, 6.0, 40.0])
    counts = np.arange(3000)
    mass = poisson.pmf(counts, np.exp(np.minimum(eta, 7))[:, None])
    cut = np.clip(counts, low, high)
    mean = mass @ cut
    # At the last one the law is far beyond 3000 counts: everybody is at the cut.
    np.testing.assert_allclose(interpolated(table, table.mean, eta), mean, atol=2e-5 * high)
    variance = mass @ cut**2 - mean**2
    np.testing.assert_allclose(interpolated(table, table.variance, eta), variance, atol=5e-4 * high)
    assert table.mean.min() >= low and table.mean.max() <= high


def test_means_of_cut_counts_are_the_same_at_every_place():
    table = count_table(0.0, 7.0)
    eta = np.concatenate([np.random.default_rng(0).normal(0, 3, 1001), [np.nan, np.inf, -np.inf, 1e300]])
    found = interpolated(table, table.mean, eta)
    for shift in (1, 2, 3, 5):
        np.testing.assert_array_equal(interpolated(table, table.mean, eta[shift:]), found[shift:])
    assert np.isnan(found[1001]) and found[1002] == found[1004] == table.mean[-1] and found[1003] == table.mean[0]


def test_bins_hold_each_count_once():
    np.testing.assert_array_equal(bins_of(0.0, 20.0), [0, 1, 2, 3, 5, 9, 17])
    np.testing.assert_array_equal(bins_of(0.0, 1.0), [0, 1])
    np.testing.assert_array_equal(bins_of(2.0, 4.0), [2, 3, 4])
    assert bins_of(0.0, 1e9).size < 40


@pytest.mark.parametrize("top", [20.0, 1000.0])
def test_a_histogram_tells_level_and_spread_of_expected_counts(top):
    rng = np.random.default_rng(0)
    eta, edges = rng.normal(0.4, 0.8, 20_000), bins_of(0.0, top)
    y = np.minimum(rng.poisson(np.exp(eta)), top)
    masses = np.array([((y >= a) & (y < b)).sum() for a, b in zip(edges, [*edges[1:], np.inf], strict=True)])
    level = level_of(masses + rng.normal(0, 20.0, masses.size), 20.0, 20_000.0, edges)
    assert abs(level.location - 0.4) < 0.05 and abs(level.energy - 0.64) < 0.12
    lost = level_of(np.zeros(edges.size), 1e9, 300.0, edges)
    assert abs(lost.location - 0.5) < 1 and 0.1 < lost.energy < 1.5


@pytest.mark.parametrize("sd", [1e-4, 0.05])
def test_standard_errors_know_how_far_shrinkage_pulls(sd):
    """Along the coefficients found, whose shrinkage pulls all large linear predictors the same way."""
    found = scores(ONES_AND_ZEROS)
    at = np.zeros((4, 1))
    found.add(gradient(population(normal), ONES_AND_ZEROS, at, 1.0), np.full(4, sd), at, 1.0)
    last = found.solve(30)
    more = found.covariance(1.0)[0] - last.covariance[0]
    along, pulled = last.mean[:, 0], THETA[:, 0] - last.mean[:, 0]
    if sd < 1e-3:  # nothing is pulled
        assert np.abs(more).max() < 1e-3
    else:
        assert np.linalg.norm(pulled) > 0.2
        assert along @ more @ along > 0.3 * (along @ pulled) ** 2 > 0
