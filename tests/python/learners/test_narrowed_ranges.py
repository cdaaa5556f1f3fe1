"""Additive regression where public ranges are too wide: what is released when, and the gain."""

from __future__ import annotations

import contextlib
import math

import numpy as np
import pandas as pd
import pytest
from learner_registry import odd_columns

from fdadp.errors import InputError, PublicInputWarning
from fdadp.learners import Categorical, DPAdditiveRegressor, Numeric
from fdadp.privacy import Budget

COUNTED = [*(f"counts in cells {t}" for t in (1, 2, 3)), "distances from places"]


def additive(**more):
    public = {"epsilon": 1.0, "delta": 1e-6, "bounds": (-1, 1), "bounds_y": (-4, 4), "random_state": 0, "narrow": True}
    return DPAdditiveRegressor(**(public | more))


def curved(n, seed=0, scale=1.0, at=0.0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    f = np.sin(3 * X[:, 0]) + 1.5 * np.abs(X[:, 1]) + X[:, 2]
    return X, (f + 0.5 * rng.standard_normal(n)) * scale + at, f * scale + at


def explained(model, X, f):
    return 1 - np.mean((model.predict(X) - f) ** 2) / np.var(f)


@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("n", [None, 20_000])
def test_counts_come_first_and_all_shares_are_the_budget(n, delta):
    X, y, _ = curved(20_000)
    budget = Budget(1.0, delta)
    model = additive(n=n, delta=delta, budget=budget, n_passes=1).fit(X, y)
    names = [release.name for release in model.ledger_.releases]
    first = ["number of persons"] * (n is None) + COUNTED
    assert names == [*first, "rows in the bins, and the target", *(f"pass 1: residuals by x{j}" for j in range(3))]
    assert budget.spent == pytest.approx(budget.total)
    counts = model.ledger_.releases[names.index(COUNTED[0])]
    assert counts.sensitivity == pytest.approx(4.0 if delta is None else 2.0)  # one of 3 features and the target each
    assert counts.share <= 0.02


@pytest.mark.parametrize(("bounds", "top", "at"), [((-1, 1), 4.0, 0.0), ((-12, 12), 3500.0, 0.0), ((-30, 3), 1e3, 5e2)])
def test_ranges_a_thousand_times_too_wide_and_far_to_one_side_cost_little(bounds, top, at):
    X, y, f = curved(5000, at=at)
    fits = [additive(bounds=bounds, bounds_y=(-top, top), random_state=seed).fit(X, y) for seed in range(4)]
    assert min(explained(model, X, f) for model in fits) > 0.93
    if top > 1e3:
        plain = additive(bounds=bounds, bounds_y=(-top, top), narrow=False).fit(X, y)
        assert explained(plain, X, f) < 0.9
        low, high = fits[0].walls_y_
        assert -40 < low < 0 < high < 40


@pytest.mark.parametrize("kind", ["heavy", "rare", "constant"])
def test_heavy_rare_and_constant_columns_hold(kind):
    X, bounds, rng = odd_columns(kind, 20_000, 3)
    f = 4 * np.tanh(X[:, 0]) + np.abs(X[:, 1]) + X[:, 2]
    y = f + 0.5 * rng.standard_normal(len(X))
    with pytest.warns(PublicInputWarning, match="hardly vary") if kind == "constant" else contextlib.nullcontext():
        model = additive(bounds=bounds, bounds_y=(-100, 100)).fit(X, y)
    assert explained(model, X, f) > {"heavy": 0.9, "rare": 0.93, "constant": 0.96}[kind]


def test_labels_and_numbers_with_edges_stay_as_declared_in_a_frame():
    rng = np.random.default_rng(0)
    X, y, _ = curved(5000, scale=10.0, at=300.0)
    ward = rng.choice(["A", "B"], 5000)
    table = pd.DataFrame({"id": range(5000), "ward": ward, "a": X[:, 1], "b": 1000 * X[:, 0], "c": X[:, 2]})
    spec = {
        "a": Numeric(-1, 1, edges=20),
        "ward": Categorical(["A", "B"]),
        "b": Numeric(-1e6, 1e6),
        "c": Numeric(-9, 9),
    }
    model = additive(features=spec, bounds=None, bounds_y=(0, 1e5)).fit(table, y + 20 * (ward == "A"))
    assert model.score(table, y + 20 * (ward == "A")) > 0.75
    np.testing.assert_array_equal(model.walls_[:, 0], [-1, 1])
    assert np.isnan(model.walls_[:, 1]).all()
    (b_low, c_low), (b_high, c_high) = model.walls_[:, 2:]
    assert -5000 < b_low < -800 and 800 < b_high < 5000 and -5 < c_low < -0.9 and 0.9 < c_high < 5
    at_walls, beyond = (table.head(1).assign(b=b, c=c) for b, c in ((b_high, c_low), (9e5, -9.0)))
    assert model.predict(at_walls) == model.predict(beyond)
    assert model.predict(table.head(1).assign(ward=None, a=np.nan, b=None, c="?")) == model.intercept_


def test_ranges_that_fit_stay_as_they_are():
    """Less than half of a range is a narrower one: what is near the ends of a range that fits may tell most."""
    X, y, _ = curved(3000)
    model = additive(n=3000).fit(X, y)
    assert model.walls_.tolist() == [[-1.0] * 3, [1.0] * 3] and model.walls_y_.tolist() == [-4, 4]


def test_it_is_the_default_where_a_public_rule_says_so():
    X, y, _ = curved(20_000)

    def counted(n, rows=20_000, **more):
        model = additive(n=n, narrow=None, n_passes=1, **more).fit(X[:rows], y[:rows])
        return "counts in cells 1" in [release.name for release in model.ledger_.releases]

    assert counted(20_000) and counted(20_000, delta=None) and counted(5000, 5000)
    assert not counted(None) and not counted(1000, 1000) and not counted(20_000, epsilon=0.1)
    assert not counted(5000, 5000, delta=None) and counted(5000, 5000, delta=None, epsilon=5.0)


def test_a_fit_that_cannot_tell_places_says_so():
    X, y, _ = curved(60)
    with pytest.warns(PublicInputWarning, match="could not be told"):
        additive(epsilon=0.3, bounds=(-50, 50), bounds_y=(-1000, 1000)).fit(X, y)


@pytest.mark.parametrize("wrong", ["yes", 2, 0.5])
def test_narrow_is_yes_or_no(wrong):
    budget = Budget(1.0)
    X, y, _ = curved(50)
    with pytest.raises(InputError, match="narrow must be"):
        additive(budget=budget, delta=None, narrow=wrong).fit(X, y)
    assert budget.spent == budget.reserved == 0


@pytest.mark.parametrize("width", [1e-290, 1e-6, 1e12, 1e290])
def test_any_unit_is_fitted_silently(width):
    X, y, f = curved(3000)
    low, high = 7 * width, 8 * width
    model = additive(bounds=(low - 50 * width, high + 50 * width), bounds_y=(-50, 50))
    model.fit(low + (X + 1) / 2 * width, y)
    assert math.isfinite(explained(model, low + (X + 1) / 2 * width, f))
