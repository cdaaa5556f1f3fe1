"""Private prediction intervals where the size of errors changes over time."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp import AdditiveFunctionOnFunction, Privacy, PublicPrior, ScalarRegression, simulate_affr
from fdadp.private.denoise.empirical_bayes import profile
from fdadp.private.plan.budget_sharing import make_plan, time_blocks
from fdadp.private.release import planned_releases as releases

pytestmark = pytest.mark.filterwarnings("ignore::fdadp.errors.ExtrapolationWarning")
GRID = np.linspace(0, 1, 51)
TENTHS = np.minimum((10 * GRID).astype(int), 9)


def coverage_by_tenths(smooth, seeds):
    """Of 95 % intervals at n ε = 1000, errors of sd .1 at the start and 1.3 at the end; shape (seeds, 10)."""
    n, found = 1000, []
    root = np.eye(51)
    if smooth:
        root = np.linalg.cholesky(np.exp(-0.5 * ((GRID[:, None] - GRID) / 0.15) ** 2) + 1e-8 * root)
    for seed in seeds:
        sim = simulate_affr(1, n=2 * n, seed=seed)
        errors = np.random.default_rng([seed, 1]).normal(size=(2 * n, 51)) @ root.T
        x, y = sim.X.data_matrix[..., 0], sim.mean_function + (0.1 + 1.2 * GRID) * errors
        privacy = Privacy(1.0, 1e-6, n=n, random_state=seed)
        model = AdditiveFunctionOnFunction(privacy=privacy, bounds={"X": (-4.5, 4.5), "Y": (-8, 8)})
        low, high = model.fit(x[:n], y[:n]).predict_interval(x[n:])
        inside = (y[n:] >= low) & (y[n:] <= high)
        found.append([inside[:, b == TENTHS].mean() for b in range(10)])
    return np.array(found)


def test_the_size_of_a_number_is_as_much_of_its_variance_as_that_of_a_curve(monkeypatch):
    """Squares of geometric means: .78 of normal numbers and of such curves; half of that if ranges are cut too near."""
    right, found = releases.mean_response, []

    def seen(releases, rows):
        left, variance, energy = right(releases, rows)
        found.append(energy)
        return left, variance, energy

    monkeypatch.setattr(releases, "mean_response", seen)
    for seed in range(8):
        z, e = np.random.default_rng(seed).normal(size=(2, 2000))
        model = ScalarRegression(
            "y ~ z", privacy=Privacy(1.0, 1e-6, n=2000, random_state=seed), bounds={"z": (-4, 4), "y": (10, 90)}
        )
        model.fit({"z": z, "y": 45 + 3 * z + 4 * e})
    assert 0.65 < np.exp(np.mean(np.log(np.array(found) / 25))) < 0.95


@pytest.mark.statistics
@pytest.mark.parametrize("smooth", [False, True])
def test_intervals_cover_in_each_tenth_of_the_domain(smooth):
    """0.1 covered .998 at the start and .78 at the end, whatever the seed."""
    covered = coverage_by_tenths(smooth, range(4))
    assert (covered.mean(axis=0) > 0.9).all() and (covered.mean(axis=0) < 0.99).all()
    assert covered.min() > 0.8


@pytest.mark.long
def test_intervals_cover_in_each_tenth_on_average():
    covered = coverage_by_tenths(False, range(100, 130)).mean(axis=0)
    assert (covered > 0.9).all() and (covered < 0.98).all()


def test_the_release_is_left_out_where_it_would_say_nothing():
    design = PublicPrior().design(GRID, GRID)
    shares = [make_plan(1000.0, m, design, pure=False).budget_shares["residual profile"] for m in (4.5, 45.0)]
    assert shares[0] > 0 and shares[1] == 0
    coarse = PublicPrior().design(GRID, np.linspace(0, 1, 5))
    assert make_plan(1000.0, 4.5, coarse, pure=False).budget_shares["residual profile"] == 0


def test_blocks_of_time_are_equal_parts_of_the_domain():
    for points in (3, 7, 8, 24, 51, 500):
        blocks = time_blocks(np.linspace(0, 1, points))
        counts = np.bincount(blocks)
        assert blocks[0] == 0 and (np.diff(blocks) >= 0).all() and counts.min() >= min(points, 4) - 1
        assert counts.size == min(max(points // 4, 1), 10)


def test_a_profile_is_found_and_noise_is_not():
    averages = (np.arange(10)[:, None] == TENTHS) / np.bincount(TENTHS)[:, None]
    true = np.log(0.1 + 1.2 * GRID)
    found = profile(averages @ true, 0.01, averages, GRID)
    np.testing.assert_allclose(found[3:], true[3:], atol=0.12)
    noise = 2.0 * np.random.default_rng(0).normal(size=(200, 10))
    wild = np.array([np.ptp(profile(one, 2.0, averages, GRID)) for one in noise])
    assert np.mean(wild) < 0.3
    level = profile(np.full(10, -0.7), 0.2, averages, GRID)
    np.testing.assert_allclose(level, -0.7, atol=0.05)
