"""Gradients in pure ε: which features and outputs they measure, with which weights, and what that promises."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize

from fdadp import AdditiveFunctionOnFunction, Privacy, PublicPrior, simulate_affr
from fdadp.private.plan.budget_plan import plan_rows
from fdadp.private.plan.budget_sharing import make_plan, rank_one_weights

FEATURES = np.array([0.3, 0.3, 0.2, 0.1, 0.06, 0.04])
OUTPUTS = np.array([0.6, 0.3, 0.09, 0.01])
GRID = np.linspace(0, 1, 51)


def loss(p, noise, tau2, lam):
    """Expected loss of the pairs that are measured, written from its definition: signal and noise of each pair."""
    d, k = len(tau2), len(lam)
    typical = np.sqrt(lam).sum()  # E|u∘f|²|v∘r|², v = λ^(-1/4), Σ u² = 1
    variance = noise * (d + k) * typical * np.sqrt(lam) / np.maximum(p, 1e-300)[:, None]
    signal = np.outer(tau2, lam)
    return float((signal * variance / (signal + variance)).sum())


def best_of(noise, tau2, lam):
    """Shares and loss by a general optimiser."""

    def of(logits):
        p = np.exp(logits - logits.max())
        return loss(p / p.sum(), noise, tau2, lam)

    found = min(
        (minimize(of, start, method="BFGS") for start in (np.zeros(len(tau2)), np.log(tau2))), key=lambda r: r.fun
    )
    p = np.exp(found.x - found.x.max())
    return p / p.sum(), found.fun


@pytest.mark.parametrize("noise", [1e-6, 1e-4, 1e-3, 1e-2])
def test_the_weights_are_those_of_the_least_expected_loss(noise):
    weights = rank_one_weights(noise, FEATURES, OUTPUTS)
    d, k = weights.shape
    u, v = weights[:, 0] / np.linalg.norm(weights[:, 0]), weights[0] / weights[0, 0]
    np.testing.assert_allclose(v, (OUTPUTS[0] / OUTPUTS[:k]) ** 0.25)
    np.testing.assert_allclose(weights, np.outer(u, v) / np.outer(u, v).max())
    assert (np.diff(u) <= 1e-12).all() and weights.max() == 1.0

    def whole(d, k, rest):
        return rest + FEATURES.sum() * OUTPUTS.sum() - FEATURES[:d].sum() * OUTPUTS[:k].sum()

    ours = whole(d, k, loss(u**2, noise, FEATURES[:d], OUTPUTS[:k]))
    assert ours == pytest.approx(whole(d, k, best_of(noise, FEATURES[:d], OUTPUTS[:k])[1]), rel=2e-3)
    others = [whole(i, j, best_of(noise, FEATURES[:i], OUTPUTS[:j])[1]) for i in range(2, 7) for j in range(1, 5)]
    assert ours <= min(others) * (1 + 2e-3)


def test_for_one_output_the_shares_are_a_water_filling():
    noise = 0.01
    weights = rank_one_weights(noise, FEATURES, np.array([1.0]))
    p = (weights[:, 0] / np.linalg.norm(weights[:, 0])) ** 2
    unit = noise * (p.size + 1)
    level = p + unit / FEATURES[: p.size]  # the same where a feature gets anything
    np.testing.assert_allclose(level[p > 0], level[0], rtol=2e-3)


def test_more_noise_is_spread_over_no_more_and_without_noise_all_is_measured():
    shapes = [rank_one_weights(noise, FEATURES, OUTPUTS).shape for noise in (1e-9, 1e-5, 1e-3, 1e-1, 10.0)]
    assert shapes[0] == (6, 4) and shapes[-1] == (2, 1)
    assert all(a[0] * a[1] >= b[0] * b[1] for a, b in itertools.pairwise(shapes))
    assert rank_one_weights(1e-9, FEATURES, np.array([1.0, 0.0])).shape == (6, 1)  # no output of no variance


def test_what_is_given_out_is_nobodys_to_change():
    first = rank_one_weights(1e-3, FEATURES, OUTPUTS)
    first[:] = -1
    assert (rank_one_weights(1e-3, FEATURES, OUTPUTS) > 0).all()


@pytest.mark.parametrize("epsilon_n", [30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 1e6])
def test_plans_in_pure_epsilon_spend_all_and_no_more(epsilon_n):
    plan = make_plan(epsilon_n, math.sqrt(2), PublicPrior().design(GRID, GRID), pure=True)
    spent = math.fsum(share * plan.times(key) for key, share in plan.budget_shares.items())
    assert spent <= 1 + 1e-12 and spent == pytest.approx(1.0) and min(plan.budget_shares.values()) >= 0
    u, v = plan.factors
    np.testing.assert_allclose(np.outer(u, v), plan.weights)
    assert plan.n_pairs == plan.n_features * plan.n_outputs
    assert 2 <= plan.rounds <= (16 if epsilon_n > 2e4 else 8)


@pytest.mark.filterwarnings("ignore::fdadp.errors.FdadpWarning")
def test_the_noise_that_a_plan_shows_is_that_of_the_releases():
    sim = simulate_affr(1, 600, np.random.default_rng(2), n_points=31)
    model = AdditiveFunctionOnFunction(
        privacy=Privacy(1.0, n=600, random_state=1), bounds={"X": (-4.5, 4.5), "Y": (-8, 8)}, progress=False
    ).fit(sim.X.data_matrix[..., 0], sim.Y.data_matrix[..., 0])
    shown = {row.release: row.noise for row in plan_rows(model.plan_)}
    of = {release.name: release.sd / release.clip / 600 for release in model.ledger_.releases}
    for name in ("location of X", "mean of Y", "gradient", "scale of residuals"):
        assert shown[name] == pytest.approx(of[name + " 1" if name == "gradient" else name], rel=1e-3), name
    split = model.plan_.tuning.residual_split  # the rest of its share is the energy outside the response functions
    assert shown["covariance of residuals"] == pytest.approx(of["covariance of residuals"] * split, rel=1e-3)
