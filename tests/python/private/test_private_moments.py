"""``mechanism="moments"``: spends what it says, bounded, useful; its statistic gives the model again."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp import AdditiveFunctionOnFunction, Privacy, PublicPrior, simulate_affr
from fdadp.privacy import Budget
from fdadp.private.denoise.empirical_bayes import posterior, posteriors
from fdadp.private.release.mechanisms import SHORT
from fdadp.private.release.noisy_moments import joint_of, plan_moments
from fdadp.private.rows.row_functions import RowFunctions

BOUNDS = {"X": (-4.5, 4.5), "Y": (-8.0, 8.0)}
GRID = np.linspace(0, 1, 21)


def curves(n, seed=0, scenario=1):
    simulated = simulate_affr(scenario, n, seed, n_points=21)
    return simulated.X.data_matrix[..., 0], simulated.Y.data_matrix[..., 0], simulated.mean_function


def model_of(n, delta=1e-6, **kwargs):
    privacy = Privacy(1.0, delta, n=n, random_state=1, **kwargs)
    return AdditiveFunctionOnFunction(privacy=privacy, bounds=BOUNDS, mechanism="moments")


@pytest.mark.parametrize("delta", [1e-6, None])
@pytest.mark.parametrize("adjacency", ["zero-out", "add-remove", "replace"])
def test_it_spends_what_was_promised_and_every_release_has_noise(delta, adjacency):
    X, Y, _ = curves(400)
    declared = None if adjacency == "add-remove" else 400
    model = model_of(declared, delta, adjacency=adjacency).fit(X, Y)
    releases = model.ledger_.releases
    spent = sum(r.spent for r in releases)
    total = Budget(1.0, delta).total
    assert total * 0.98 < spent <= total
    assert all(r.scale > 0 and r.clip > 0 for r in releases)
    assert "second moment" in [r.name for r in releases]
    assert model.ledger_.mechanism == "moments"


@pytest.mark.parametrize("delta", [1e-6, None])
@pytest.mark.parametrize("mechanism", ["moments", "dp-aff"])
def test_to_exchange_a_person_moves_a_second_moment_by_the_root_of_two(mechanism, delta):
    """Not by twice the clip: both are positive semidefinite. In L1, for pure epsilon, that does not help."""
    X, Y, _ = curves(400)
    model = model_of(400, delta, adjacency="replace").set_params(mechanism=SHORT[mechanism](allow_useless=True))
    releases = model.fit(X, Y).ledger_.releases
    ratios = {r.name: r.sensitivity / r.clip for r in releases}
    moments = {"second moment", "covariance of residuals"} & set(ratios)
    assert len(moments) == (2 if mechanism == "moments" else 1)
    for name in moments:
        assert ratios.pop(name) == pytest.approx(np.sqrt(2) if delta else 2.0, rel=1e-5)
    assert ratios["mean of Y"] == 2.0


@pytest.mark.parametrize("pure", [False, True])
def test_the_norm_that_sets_the_clip_is_that_of_the_contribution(pure):
    design = PublicPrior().design(GRID, GRID, bounds=BOUNDS["X"])
    rows = RowFunctions(design, BOUNDS["Y"])
    plan = plan_moments(1000.0, 4.0, design, pure=pure)
    rows.begin_regression(plan)
    rows.coefficients = np.zeros(plan.weights.shape)
    X, Y, _ = curves(5)
    vector, norm = joint_of(rows, 0.7)
    block = rows.derived((X, Y))
    v = vector(block)
    products = v[:, :, None] * v[:, None]
    wanted = np.linalg.norm(products, "nuc" if pure else "fro", axis=(1, 2))
    np.testing.assert_allclose(norm(block), wanted, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::fdadp.errors.ExtrapolationWarning")
def test_it_explains_and_its_statistic_gives_another_model_for_nothing():
    X, Y, f = curves(6000)
    model = model_of(5000).fit(X[:5000], Y[:5000], s=GRID, t=GRID)
    test = f[5000:]
    loss = ((model.predict(X[5000:]) - test) ** 2).mean()
    assert 1 - loss / ((test - test.mean(axis=0)) ** 2).mean() > 0.9
    low, high = model.predict_interval(X[5000:], 0.95)
    assert 0.92 < ((Y[5000:] >= low) & (high >= Y[5000:])).mean() < 0.98
    statistic = model.moments_
    d = len(statistic.features)
    assert np.linalg.eigvalsh(statistic.features).max() < 5
    assert np.abs(statistic.features - np.eye(d)).mean() < 0.3  # white, as the prior meant them to be
    (theta, _, edf), _ = posterior(
        statistic.cross[:, 0], np.full(d, statistic.cross_sd**2), np.eye(d), 1e-4, np.full(d, 1 / d), 1.0
    )
    assert 1 < edf <= d
    assert np.isfinite(theta).all()


def test_missing_bounds_are_refused_before_anything_is_read():
    with pytest.raises(ValueError, match="bounds"):
        AdditiveFunctionOnFunction(privacy=Privacy(1.0, 1e-6, n=300), mechanism="moments").fit(*curves(300)[:2])


def test_a_response_that_is_located_again_leaves_less_for_the_moments():
    """The moments took their share of the first plan; then the last release had none, after all reads."""
    sim = simulate_affr(scenario=1, n=1000, seed=0, n_points=21)
    grid = np.linspace(0, 1, 21)
    model = AdditiveFunctionOnFunction(
        privacy=Privacy(1.0, None, n=1000, random_state=0),
        bounds={"X": (-4.5, 4.5), "Y": (-500.0, 20.0)},
        mechanism="moments",
        progress=False,
    ).fit(sim.X(grid)[..., 0], sim.Y(grid)[..., 0], s=grid, t=grid)
    names = [release.name for release in model.ledger_.releases]
    assert "location of Y 2" in names and "calibration of intervals" in names
    assert sum(release.share for release in model.ledger_.releases) <= 1 + 1e-9


def test_of_an_output_that_is_not_measured_nothing_is_known():
    rng = np.random.default_rng(0)
    y, v, active = rng.normal(size=(4, 3)), np.full((4, 3), 0.1), np.ones((4, 3), dtype=bool)
    active[:, 1] = False
    known = np.eye(4), active, np.full(3, 1 / 3), np.ones(3), 100.0
    mean, covariance, edf = posteriors(y, v, *known)
    assert not mean[:, 1].any() and not covariance[1].any() and edf[1] == 0
    others = posteriors(y[:, [0, 2]], v[:, [0, 2]], known[0], active[:, [0, 2]], known[2], np.ones(2), 100.0)
    np.testing.assert_allclose(mean[:, [0, 2]], others[0], rtol=1e-12)
