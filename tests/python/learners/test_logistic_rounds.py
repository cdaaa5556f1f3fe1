"""Logistic regression by rounds: what is released when, and where it holds."""

from __future__ import annotations

import numpy as np
import pytest
from learner_registry import fit
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from fdadp.errors import InputError, PublicInputWarning
from fdadp.learners import DPLogisticRegression
from fdadp.privacy import Budget, SeededNoise, TapeNoise

NAMES = [*(f"counts in cells {t}" for t in (1, 2, 3)), "distances from places"]
NAMES += ["second moment of features and targets", *(f"gradient {t}" for t in (1, 2, 3))]


def rounds(**more):
    public = {"epsilon": 1.0, "delta": 1e-6, "classes": [0, 1], "bounds": (-1, 1), "random_state": 0}
    return DPLogisticRegression(**(public | {"mechanism": "rounds"} | more))


def taped(monkeypatch, model, X, y, tape=None):
    noise = TapeNoise(SeededNoise(0), tape)
    fit(monkeypatch, noise, model, X, y)
    return noise.entries


def classes(n, seed=0, scale=1.0, at=0.0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 4))
    p = expit(0.5 + X @ [2.0, -2.0, 1.0, 0.0])
    return X * scale + at, (rng.random(n) < p).astype(int), p


def explained(model, X, p):
    return 1 - np.mean((model.predict_proba(X)[:, 1] - p) ** 2) / np.var(p)


@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("n", [None, 20_000])
def test_releases_come_in_order_and_their_shares_are_the_budget(n, delta):
    X, y, _ = classes(20_000)
    budget = Budget(1.0, delta)
    model = rounds(n=n, delta=delta, budget=budget).fit(X, y)
    assert [r.name for r in model.ledger_.releases] == ["number of persons"] * (n is None) + NAMES
    assert budget.spent == pytest.approx(budget.total)
    by_name = {release.name: release for release in model.ledger_.releases}
    assert by_name["gradient 1"].sensitivity == pytest.approx(1.0)
    assert by_name["counts in cells 2"].sensitivity == pytest.approx(4.0 if delta is None else 2.0)


@pytest.mark.parametrize(
    ("bounds", "scale", "at"), [((-1, 1), 1.0, 0.0), ((-1000, 1000), 1.0, 0.0), ((0, 1e4), 3, 900)]
)
def test_bounds_a_thousand_times_too_wide_and_far_to_one_side_cost_little(bounds, scale, at):
    X, y, p = classes(5000, scale=scale, at=at)
    fits = [rounds(bounds=bounds, n=5000, random_state=seed).fit(X, y) for seed in range(4)]
    assert min(explained(model, X, p) for model in fits) > 0.97
    if bounds[1] > 1:
        plain = rounds(bounds=bounds, n=5000, mechanism="objective").fit(X, y)
        assert explained(plain, X, p) < 0.5
        assert (np.abs(fits[0].walls_ - at) < 200 * scale).all()


def test_heavy_columns_have_the_coefficients_of_the_model():
    """Rows that are shortened count less, but tell the same: weights depend on features alone."""
    rng = np.random.default_rng(1)
    X = np.clip(rng.standard_t(2, (40_000, 3)), -100, 100)
    y = (rng.random(len(X)) < expit(X @ [1.0, -0.5, 0.0])).astype(int)
    model = rounds(epsilon=5.0, bounds=(-100, 100), n=len(X)).fit(X, y)
    np.testing.assert_allclose(model.coef_[0], [1.0, -0.5, 0.0], atol=0.08)


def test_without_noise_it_is_maximum_likelihood():
    X, y, _ = classes(4000)
    exact = LogisticRegression(C=1e9).fit(X, y)
    model = rounds(epsilon=1e5, delta=None, n=4000).fit(X, y)
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=0.05)
    np.testing.assert_allclose(model.intercept_, exact.intercept_, atol=0.05)


def test_walls_are_those_of_rounds_alone():
    X, y, _ = classes(6000)
    model = rounds(n=6000).fit(X, y)
    assert model.mechanism_ == "rounds" and model.walls_.shape == (2, 4)
    assert not hasattr(model.set_params(mechanism="objective").fit(X, y), "walls_")
    assert rounds(n=6000, mechanism="auto").fit(X, y).mechanism_ == "objective"


def test_three_classes_are_refused_before_any_read():
    budget = Budget(1.0, 1e-6)
    X, y, _ = classes(50)
    with pytest.raises(InputError, match="mechanism must be another one"):
        rounds(classes=[0, 1, 2], budget=budget).fit(X, y)
    assert budget.spent == budget.reserved == 0


def test_a_fit_that_cannot_tell_places_says_so():
    X, y, _ = classes(100)
    with pytest.warns(PublicInputWarning, match="could not be told"):
        rounds(epsilon=0.3, bounds=(-50, 50)).fit(X, y)


def test_unknown_classes_and_missing_values_count_as_no_rows(monkeypatch):
    X, y, _ = classes(200)
    tape = taped(monkeypatch, rounds(n=200), X, y)
    more = np.vstack([X, [[np.nan, 0, 0, 0], [0.5, 0.5, 0.5, 0.5], [np.inf, 0, 0, 0]]])
    again = taped(monkeypatch, rounds(n=200), more, np.append(y, [1, 7, 0]), tape)
    assert [e.exact for e in tape] == [e.exact for e in again]
