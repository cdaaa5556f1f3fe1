"""Standard errors of predicted mean curves cover the truth, whatever the number of components kept."""

from __future__ import annotations

import importlib
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import trapezoid

from fdadp import AdditiveFunctionOnFunction, simulate_affr
from fdadp.errors import ExtrapolationWarning

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


@pytest.fixture(scope="module")
def cohorts():
    """The five simulators: S1 to S3, and A and B with rough or skewed curves and heavy tails."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return importlib.import_module("cohorts")
    finally:
        sys.path.remove(str(BENCHMARKS))


def covered_by_default(cohorts, scenario, n, seed):
    """Share of the true mean curves of new X within 1.96 standard errors, at the default settings."""
    rng = np.random.default_rng([seed, n, cohorts.SCENARIOS.index(scenario)])
    train, new = (cohorts.draw(scenario, size, rng, x_noise=False) for size in (n, 400))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        model = AdditiveFunctionOnFunction(progress=False).fit(train.X, train.Y)
        return float((np.abs(model.predict(new.X) - new.f) <= 1.96 * model.predict_se(new.X)).mean())


@pytest.mark.parametrize(("scenario", "n", "seeds"), [("S2", 200, 6), ("A", 200, 6), ("B", 200, 6), ("B", 2000, 3)])
def test_cover_at_the_default_settings(cohorts, scenario, n, seeds):
    """With 7 x 7 splines it was .77, .86, .76 and .54: what a basis cannot follow is in no standard error."""
    assert 0.88 <= np.mean([covered_by_default(cohorts, scenario, n, seed) for seed in range(seeds)]) <= 0.99


@pytest.mark.long
@pytest.mark.parametrize("n", [200, 2000])
@pytest.mark.parametrize("scenario", ["S1", "S2", "S3", "A", "B"])
def test_cover_on_five_simulators(cohorts, scenario, n):
    shares = [covered_by_default(cohorts, scenario, n, seed) for seed in range(20 if n == 200 else 10)]
    assert 0.90 <= np.mean(shares) <= 0.98


def covered(scenario, n, seed, **settings):
    """Share of the true mean curves of new X within 1.96 standard errors. X without noise: E[Y | X] is known."""
    train = simulate_affr(scenario, n, seed, x_noise=0.0)
    new = simulate_affr(scenario, 200, seed + 1000, x_noise=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        model = AdditiveFunctionOnFunction(**settings).fit(train.X, train.Y)
        predicted, se = (f(new.X).data_matrix[..., 0] for f in (model.predict, model.predict_se))
    return float((np.abs(predicted - new.mean_function) <= 1.96 * se).mean())


@pytest.mark.each_once
@pytest.mark.parametrize("n_components", [1, 2, 0.95, 0.99])
@pytest.mark.parametrize("scenario", [1, 2, 3])
def test_cover_with_few_components(scenario, n_components):
    """A basis that is large enough, and components that may be too few: what they cannot follow is in the errors."""
    shares = [covered(scenario, 1000, seed, n_basis_x=12, n_components=n_components) for seed in range(3)]
    assert 0.90 <= np.mean(shares) <= 0.98
    assert min(shares) >= 0.87


@pytest.mark.statistics
@pytest.mark.parametrize("n", [200, 2000])
@pytest.mark.parametrize("scenario", [1, 2, 3])
def test_cover_at_two_sample_sizes(scenario, n):
    shares = [covered(scenario, n, seed, n_basis_x=12) for seed in range(12 if n == 200 else 5)]
    assert 0.92 <= np.mean(shares) <= 0.98


def test_what_is_omitted_moves_from_the_residuals_to_the_standard_errors():
    """Prediction intervals stay what they were: R(t, t) about the predicted curve is in one part or the other."""
    data = simulate_affr(2, 1000, 0)
    few, many = (AdditiveFunctionOnFunction(n_components=k).fit(data.X, data.Y) for k in (1, 6))
    grid = few.t_
    about = ((data.Y.data_matrix[..., 0] - few.predict(data.X).data_matrix[..., 0]) ** 2).mean(axis=0)
    low, high = few.predict_interval(data.X)
    np.testing.assert_allclose(((high - low).data_matrix[..., 0] / 3.92).mean(axis=0), np.sqrt(about), rtol=0.05)
    assert trapezoid(few.residual_variance_, grid) < 0.9 * trapezoid(about, grid)
    # What is left is the errors' own variance, as the fit with more components finds it.
    np.testing.assert_allclose(few.residual_variance_, many.residual_variance_, rtol=0.1)
