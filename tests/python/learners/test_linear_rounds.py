"""Linear regression by rounds: what is released when, and where it holds."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from learner_registry import odd_columns

from fdadp.errors import PublicInputWarning
from fdadp.learners import DPLinearRegression


def rounds(**more):
    public = {"epsilon": 1.0, "delta": 1e-6, "bounds": (-1, 1), "bounds_y": (-2, 2), "random_state": 0}
    return DPLinearRegression(**{**public, "mechanism": "rounds", **more})


def line(n, seed=0, d=3, scale=1.0, at=0.0, error=0.5):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    f = X @ np.array([1.0, -2.0, 0.5, *[0.3] * (d - 3)][:d])
    return X, (f + error * rng.standard_normal(n)) * scale + at, f * scale + at


def explained(model, X, f):
    return 1 - np.mean((model.predict(X) - f) ** 2) / np.var(f)


@pytest.mark.parametrize(("adjacency", "delta"), [("zero-out", 1e-6), ("zero-out", None), ("add-remove", 1e-6)])
def test_the_ledger_is_the_plan(adjacency, delta):
    X, y, _ = line(3000)
    model = rounds(adjacency=adjacency, n=3000 if adjacency == "zero-out" else None, delta=delta).fit(X, y)
    names = [release.name for release in model.ledger_.releases]
    after = ["number of persons"] * (adjacency == "add-remove") + [f"counts in cells {t}" for t in (1, 2, 3)]
    after += ["distances from places", "tail of targets", "second moment of features and targets"]
    assert names == after + [f"{what} {t}" for t in (1, 2) for what in ("tail of residuals", "gradient")]
    plan = model.plan(3000, 3)
    shares = 3 * plan.counts + plan.distances + 3 * plan.tail + plan.moments + 2 * plan.gradient
    assert shares == pytest.approx(plan.left, abs=1e-12)
    for name in names:
        assert name in str(plan)
    said = {
        line.split("  ")[0]: float(line.split()[-1]) for line in str(plan).splitlines() if line.split("  ")[0] in names
    }
    for release in model.ledger_.releases:  # noise over what is clipped is what the plan prints
        if release.name != "number of persons" and not release.name.startswith(("tail", "gradient")):
            norm = plan.noise_at(release.share, release.clip)
            assert said[release.name] == pytest.approx(norm, rel=2e-3), release.name


@pytest.mark.parametrize(
    ("bounds", "range_y", "at", "least"),
    [((-1, 1), (-4, 8), 0.0, 0.97), ((-12, 12), (-5000, 5000), 0.0, 0.95), ((-30, 3), (-1000, 1000), 500.0, 0.95)],
)
def test_bounds_a_thousand_times_too_wide_and_far_to_one_side_cost_little(bounds, range_y, at, least):
    X, y, f = line(2000, d=8, at=at)
    fits = [rounds(bounds=bounds, bounds_y=range_y, random_state=seed).fit(X, y) for seed in range(4)]
    assert min(explained(model, X, f) for model in fits) > least


@pytest.mark.parametrize("kind", ["heavy", "rare", "constant"])
def test_heavy_rare_and_constant_columns_hold_with_the_same_constants(kind):
    X, bounds, rng = odd_columns(kind, 10_000, 4)
    f = X @ [1.0, -1.0, 0.5, 2.0]
    y = f + 0.5 * rng.standard_normal(len(X))
    with pytest.warns(PublicInputWarning, match="hardly vary") if kind == "constant" else contextlib.nullcontext():
        model = rounds(bounds=bounds, bounds_y=(-100, 100)).fit(X, y)
    assert explained(model, X, f) > 0.97


def test_without_noise_it_is_least_squares_of_each_target():
    X, y, _ = line(2000)
    both = np.column_stack([y, 3 - 2 * y + X[:, 0]])
    model = rounds(epsilon=3e5, delta=None, bounds_y=(-9, 20)).fit(X, both)
    design = np.column_stack([np.ones(len(X)), X])
    coefficients = np.linalg.lstsq(design, both, rcond=None)[0]
    np.testing.assert_allclose(model.intercept_, coefficients[0], atol=0.02)
    np.testing.assert_allclose(model.coef_, coefficients[1:].T, atol=0.03)


def test_intervals_hold_the_truth_as_often_as_they_say():
    held = []
    for seed in range(30):
        X, y, _ = line(3000, seed)
        held.append(rounds(random_state=seed, bounds=(-5, 5), bounds_y=(-20, 20)).fit(X, y).conf_int())
    inside = np.array([(t["lower"] <= [0, 1, -2, 0.5]) & (t["upper"] >= [0, 1, -2, 0.5]) for t in held])
    assert 0.88 < inside.mean() <= 0.995


def test_a_fit_that_cannot_tell_places_says_so():
    X, y, _ = line(150, d=8)
    with pytest.warns(PublicInputWarning, match="could not be told"):
        rounds(epsilon=0.3, bounds=(-50, 50), bounds_y=(-1000, 1000)).fit(X, y)


def test_rounds_are_the_default_where_a_public_rule_says_so():
    X, y, _ = line(2000)

    def taken(**more):
        return rounds(**{"mechanism": None, "n": 2000, **more}).fit(X, y).mechanism_

    assert taken() == taken(delta=None, epsilon=3.0) == "rounds"
    assert taken(n=None) == taken(epsilon=0.2) == taken(delta=None) == taken(mechanism="moments") == "moments"
    few = rounds(mechanism=None, n=300).fit(X[:300], y[:300])
    assert few.mechanism_ == "moments" and not hasattr(few, "walls_")


def test_the_coefficients_are_those_within_the_walls():
    X, y, _ = line(5000)
    model = rounds(bounds=(-1000, 1000)).fit(X, y)
    assert (model.walls_[0] > -1000).all() and (model.walls_[1] < 1000).all() and (model.walls_[1] > 1).all()
    far = np.full((1, 3), 900.0)
    np.testing.assert_array_equal(model.predict(far), model.predict(model.walls_[1][None]))
