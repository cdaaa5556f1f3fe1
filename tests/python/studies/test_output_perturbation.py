"""Output perturbation: spends what it says, moves by less than claimed, is correct and, as said, seldom useful."""

from __future__ import annotations

import numpy as np
import pytest
from output_perturbation import OutputPerturbation, RidgePlan, _feature_clip, plan_output

from fdadp import AdditiveFunctionOnFunction, Privacy, PublicPrior, simulate_affr
from fdadp.privacy import Budget
from fdadp.private.rows.row_functions import RowFunctions

BOUNDS = {"X": (-4.5, 4.5), "Y": (-8.0, 8.0)}
GRID = np.linspace(0, 1, 21)
OUTPUT = OutputPerturbation()


def curves(n, seed=0):
    simulated = simulate_affr(1, n, seed, n_points=21)
    return simulated.X.data_matrix[..., 0], simulated.Y.data_matrix[..., 0], simulated.mean_function


def fitted(n, X, Y, mechanism=OUTPUT, delta=1e-6, **kwargs):
    privacy = Privacy(1.0, delta, n=n, random_state=1, **kwargs)
    return AdditiveFunctionOnFunction(privacy=privacy, bounds=BOUNDS, mechanism=mechanism).fit(X, Y, s=GRID, t=GRID)


@pytest.mark.parametrize("delta", [1e-6, None])
@pytest.mark.parametrize("adjacency", ["zero-out", "add-remove", "replace"])
def test_it_spends_what_was_promised_and_every_release_has_noise(delta, adjacency):
    X, Y, _ = curves(400)
    model = fitted(None if adjacency == "add-remove" else 400, X, Y, delta=delta, adjacency=adjacency)
    releases = model.ledger_.releases
    spent = sum(r.spent for r in releases)
    total = Budget(1.0, delta).total
    assert total * 0.98 < spent <= total
    assert all(r.scale > 0 and r.clip > 0 for r in releases)
    assert "coefficients" in [r.name for r in releases]


def test_features_have_the_norm_that_the_sensitivity_counts_on():
    design = PublicPrior().design(GRID, GRID, bounds=BOUNDS["X"])
    rows = RowFunctions(design, BOUNDS["Y"])
    plan = plan_output(5000.0, 4.0, design, pure=False)
    rows.begin_regression(plan)
    X, Y, _ = curves(200)
    norms = np.linalg.norm(rows.weighted(rows.derived((3 * X, Y)))[0], axis=1)
    assert norms.max() <= _feature_clip(plan.n_features) * (1 + 1e-12)
    assert norms.max() > 0.99 * _feature_clip(plan.n_features)


@pytest.mark.statistics
@pytest.mark.filterwarnings("ignore::fdadp.errors.ExtrapolationWarning")
def test_it_learns_but_less_than_dp_aff_and_its_intervals_say_so():
    n = 6000
    X, Y, f = curves(n + 1000)
    truth = f[n:]
    explained = {}
    for name, mechanism in (("output", OUTPUT), ("dp-aff", "dp-aff")):
        model = fitted(n, X[:n], Y[:n], mechanism)
        loss = ((model.predict(X[n:]) - truth) ** 2).mean()
        explained[name] = 1 - loss / ((truth - truth.mean(axis=0)) ** 2).mean()
        low, high = model.predict_interval(X[n:], 0.95)
        assert 0.92 < ((Y[n:] >= low) & (high >= Y[n:])).mean() < 0.98
    assert 0.6 < explained["output"] < explained["dp-aff"] - 0.1


def test_the_plan_shows_the_release():
    privacy = Privacy(1.0, 1e-6, n=6000)
    plan = AdditiveFunctionOnFunction(privacy=privacy, bounds=BOUNDS, mechanism=OUTPUT).plan()
    assert "coefficients" in str(plan)
    assert isinstance(plan, RidgePlan) and plan.ridge > 0
