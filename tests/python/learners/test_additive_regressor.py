"""Additive regression on public bins: what it releases, and that without noise it is least squares of bins.

What every learner keeps (public parameters, spending, exact loss by replay) is in test_learners_common.py.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from learner_registry import fit
from mutants import mutate
from privacy_tools import distance
from scipy.stats import kstest, norm

from fdadp.errors import InputError
from fdadp.learners import Categorical, DPAdditiveRegressor, Numeric, additive_regressor
from fdadp.learners.additive_regressor import _FeatureFunction, _prior, _Target
from fdadp.privacy import Budget, SeededNoise, TapeNoise
from fdadp.privacy.kernel._kernel import Kernel

FEATURES = [Numeric(0, 1, edges=[0.2, 0.4, 0.6, 0.8]), Numeric(-1, 1, edges=5), Categorical([0, 1, 2])]
STARTS = [0, 5, 10, 13]


def data(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = np.stack([rng.random(n), rng.uniform(-1, 1, n), rng.integers(0, 3, n)], axis=1)
    return X, 4 * (X[:, 0] > 0.6) + 2 * X[:, 1] ** 2 - (X[:, 2] == 1) + 0.5 * rng.standard_normal(n)


def codes(X):
    cut = [np.searchsorted(spec.cuts, X[:, j], side="right") for j, spec in enumerate(FEATURES[:2])]
    return np.stack([*cut, X[:, 2].astype(int)], axis=1)


def regressor(**more):
    settings = {"epsilon": 1.0, "features": FEATURES, "bounds_y": (-5, 10), "random_state": 0, "narrow": False}
    return DPAdditiveRegressor(**{**settings, **more})


def taped(monkeypatch, model, X, y, tape=None):
    noise = TapeNoise(SeededNoise(0), tape)
    fit(monkeypatch, noise, model, X, y)
    return noise.entries


# ------------------------------------------------------------------ what is released


NASTY = np.array(
    [[0.3, -0.9, 2], [5.0, -7.0, 0], [np.nan, 0.0, 1], [0.0, np.inf, 1], [0.5, 0.5, 7], [1e300, -1e300, 1]]
)
TARGETS = [-9.0, 10.0, 1e300, np.inf, np.nan]


def largest_change(monkeypatch, pure, adjacency):
    """Of each release, in units of its sensitivity, over pairs of extreme rows; what came before is the same."""
    settings = {"delta": None if pure else 1e-6, "adjacency": adjacency, "n": 4 if adjacency == "replace" else None}
    X, y = data(3)
    base = taped(monkeypatch, regressor(**settings), X, y)
    found = [
        taped(monkeypatch, regressor(**settings), np.vstack([X, row]), np.append(y, target), base)
        for row, target in itertools.product(NASTY, TARGETS)
    ]
    pairs = [(base, e) for e in found] if adjacency == "add-remove" else list(itertools.combinations(found, 2))
    return [max(distance(a[k], b[k]) / a[k].sensitivity for a, b in pairs) for k in range(len(base))]


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_the_largest_change_of_each_release_is_the_declared_one_at_most(monkeypatch, adjacency, pure):
    """Every pair of extreme rows, on the integers; attained, but where the first release's rows share a part."""
    first, *residuals = largest_change(monkeypatch, pure, adjacency)
    assert len(residuals) == 12
    assert 0.6 < first <= 1
    assert 0.99 < min(residuals) <= max(residuals) <= 1


def test_half_that_sensitivity_would_be_noticed(monkeypatch):
    original = Kernel.sensitivity
    monkeypatch.setattr(Kernel, "sensitivity", lambda *a: original(*a) / 2)
    assert min(largest_change(monkeypatch, False, "add-remove")) > 1


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
def test_the_ledger_has_the_sensitivities_of_the_proof(pure, adjacency):
    X, y = data()
    model = regressor(delta=None if pure else 1e-6, n=600, adjacency=adjacency, n_passes=2, residual_clip=0.5).fit(X, y)
    first, *residuals = model.ledger_.releases
    replaced = adjacency == "replace"
    linear, squared = math.sqrt(3) + math.sqrt(2) + 0.5, math.sqrt(3) + 2.25
    wanted = linear * (1 + replaced) if pure else math.sqrt(squared * (1 + replaced))
    assert first.sensitivity == pytest.approx(wanted, rel=1e-9)
    assert first.share == 0.2
    assert len(residuals) == 6
    assert len({r.sensitivity for r in residuals}) == 1
    assert [r.share for r in residuals] == pytest.approx([0.8 / 9] * 3 + [1.6 / 9] * 3)


def without_noise(monkeypatch, **more):
    """Tape of a fit to rows of which some targets lie beyond their range; rows in bins, targets in [-1, 1]."""
    X, y = data(4000)
    y[:200] = np.repeat([1e6, -20.0], 100)
    model = regressor(epsilon=5000.0, delta=1e-6, bounds_y=(-5, 15), **more)
    return taped(monkeypatch, model, X, y), codes(X), (np.clip(y, -5, 15) - 5) / 10, model


def test_what_is_released_without_noise_are_counts_and_sums_of_clipped_residuals(monkeypatch):
    (first, residuals, *_), at, t, model = without_noise(monkeypatch)
    clip = model.ledger_.releases[0].sensitivity
    value = np.array(first.exact) * clip / 2**24
    weight = 3**-0.25
    counts = np.concatenate(
        [np.bincount(at[:, j], minlength=b - a) for j, (a, b) in enumerate(itertools.pairwise(STARTS))]
    )
    np.testing.assert_allclose(value[:13] / weight, counts, atol=0.01)
    np.testing.assert_allclose(model.bin_counts_, counts, atol=1)
    np.testing.assert_allclose(value[13] + value[14], 4000 * math.sqrt(2), atol=0.01)
    np.testing.assert_allclose(value[13] - value[14], t.sum() * math.sqrt(2), atol=0.01)
    np.testing.assert_allclose(value[15], 0.5 * (t**2).sum(), atol=0.01)
    clip = model.ledger_.releases[1].sensitivity
    assert clip == pytest.approx(1.5 * t.std(), rel=0.03)
    left = np.clip(t - t.mean(), -clip, clip)
    assert (abs(left) == clip).sum() > 150
    found = np.array(residuals.exact) * clip / 2**24
    np.testing.assert_allclose(found, np.bincount(at[:, 0], left), atol=0.3)


def test_residuals_that_are_not_clipped_would_be_noticed(monkeypatch):
    mutate(monkeypatch, additive_regressor, "min(clips * math.sqrt(target.variance), 2.0)", "2.0")
    with pytest.raises(AssertionError):
        test_what_is_released_without_noise_are_counts_and_sums_of_clipped_residuals(monkeypatch)


def test_the_noise_is_gaussian_as_declared():
    """Of bins that no row is in all counts are noise."""
    X, y = np.zeros((50, 2)), np.zeros(50)
    model = regressor(delta=1e-6, features=Numeric(0, 1, edges=400), n_passes=1).fit(X, y)
    noise = np.delete(model.bin_counts_, [0, 400])
    sd = model.ledger_.releases[0].sd * 2**0.25
    assert kstest(noise / sd, norm.cdf).pvalue > 1e-3
    assert kstest(2 * noise / sd, norm.cdf).pvalue < 1e-6


# ------------------------------------------------------------------ what is made of it


def test_without_noise_it_is_least_squares_of_bins():
    X, y = data(20_000)
    at = codes(X)
    design = np.concatenate(
        [at[:, [j]] == np.arange(b - a) for j, (a, b) in enumerate(itertools.pairwise(STARTS))], axis=1
    )
    exact = design @ np.linalg.lstsq(design.astype(float), y, rcond=None)[0]
    model = regressor(epsilon=5000.0, delta=1e-6, residual_clip=10.0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), exact, atol=0.03)
    shares = model.bin_counts_ / 20_000
    for a, b in itertools.pairwise(STARTS):
        assert abs(shares[a:b] @ model.scores_[a:b]) < 1e-3


@pytest.mark.parametrize("spec", FEATURES[1:], ids=["numbers", "labels"])
def test_a_function_is_the_posterior_mean_of_its_prior(monkeypatch, spec):
    """Of two turns with unlike noise: the dense formula, with one line and one path."""
    monkeypatch.setattr(additive_regressor, "_LINES", (0.7,))
    monkeypatch.setattr(additive_regressor, "_PATHS", (0.4,))
    counts, noise = np.array([50.0, 20.0, 0.0, 30.0, 80.0])[: spec.n_bins], np.array([4.0, 9.0])
    function = _FeatureFunction(spec, counts, 1e-3, counts.sum())
    rng = np.random.default_rng(0)
    sums, seen = rng.normal(0, 9, (2, spec.n_bins)), []
    for total, variance in zip(sums, noise, strict=True):
        seen.append(total + function.counts * function.scores)
        function.learn(total, variance, 0.5, 0.2)
    together = (seen[0] / 4 + seen[1] / 9) / (1 / 4 + 1 / 9)
    basis, sizes = _prior(spec, np.full(spec.n_bins, 1 / spec.n_bins), counts / counts.sum())
    K = 0.5 * (basis * sizes) @ basis.T
    if isinstance(spec, Numeric):
        place = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
        about = place - counts @ place / counts.sum()
        centre = np.eye(5) - counts / counts.sum()
        walk = centre @ np.minimum.outer(place, place) @ centre.T
        np.testing.assert_allclose(K, 0.5 * (0.7 * 12 * np.outer(about, about) + 0.4 * 6 * walk), atol=1e-12)
    C = np.diag(counts)
    law = C @ K @ C + np.eye(len(counts)) / (1 / 4 + 1 / 9) + 0.3 * C
    exact = K @ C @ np.linalg.solve(law, together)
    np.testing.assert_allclose(function.scores, exact - counts @ exact / counts.sum(), atol=1e-3)


def test_counts_are_believed_as_far_as_their_noise_lets_them():
    noise = 30 * np.random.default_rng(0).standard_normal(50)
    spec, even = Numeric(0, 1, edges=50), np.full(50, 20.0)
    assert abs(_FeatureFunction(spec, even + noise, 30.0, 1000.0).counts - even).mean() < 0.3 * abs(noise).mean()
    peak = np.append(np.full(49, 2.0), 902.0)
    np.testing.assert_allclose(_FeatureFunction(spec, peak, 0.1, 1000.0).counts, peak, atol=0.1)


def test_a_turn_tells_the_intercept_by_all_its_bins_and_the_function_the_rest(monkeypatch):
    asked, told = [], []
    shifted, learn = _Target.shifted, _FeatureFunction.learn

    def ask(self, total, noise):
        found = shifted(self, total, noise)
        asked.append((total, noise, found[1]))
        return found

    def tell(self, total, *more):
        told.append((total.sum(), self.counts.sum()))
        return learn(self, total, *more)

    monkeypatch.setattr(_Target, "shifted", ask)
    monkeypatch.setattr(_FeatureFunction, "learn", tell)
    X, y = data(200)
    model = regressor(epsilon=0.5, delta=1e-6).fit(X, y)
    bins = [5, 5, 3] * 4
    wanted = [m * release.sd**2 for m, release in zip(bins, model.ledger_.releases[1:], strict=True)]
    np.testing.assert_allclose([noise for _, noise, _ in asked], wanted)
    assert min(abs(moved) for *_, moved in asked) > 0
    for (total, _, moved), (left, rows) in zip(asked, told, strict=True):
        assert left == pytest.approx(total - moved * rows)


def test_where_all_is_noise_it_says_one_number():
    X, y = data(2000)
    flat = [regressor(epsilon=0.02, delta=1e-6, random_state=k).fit(X, y).predict(X).std() for k in range(10)]
    assert np.median(flat) < 0.5 * y.std()


def test_curved_effects_are_found_where_lines_find_none():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (6000, 3))
    y = np.abs(X[:, 0] - 5) + np.sin(X[:, 1]) + 0.3 * rng.normal(size=6000)
    model = regressor(delta=1e-6, features=None, bounds=(0, 10), bounds_y=(-3, 8)).fit(X[:4000], y[:4000])
    assert model.score(X[4000:], y[4000:]) > 0.9


@pytest.mark.parametrize("law", ["normal", "lognormal"])
def test_functions_are_found_where_rows_are_crowded(law):
    """Functions were about their means over the range: .90 was explained of normal columns, .86 of lognormal ones."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(24_000, 3))
    X, bounds = (z / 3, (-1, 1)) if law == "normal" else (np.exp(z), (0, 20))
    f = np.sin(2 * z[:, 0]) + np.abs(z[:, 1]) + z[:, 2]
    y = f + rng.normal(size=len(f))
    model = regressor(delta=1e-6, features=None, bounds=bounds, bounds_y=(-8, 8)).fit(X[:20_000], y[:20_000])
    away = model.predict(X[20_000:]) - f[20_000:]
    assert 1 - (away**2).mean() / f.var() > {"normal": 0.96, "lognormal": 0.93}[law]


# ------------------------------------------------------------------ rows


def test_beyond_the_range_is_its_end_and_unknown_is_no_row(monkeypatch):
    X, y = data(100)
    X[:3], y[:3] = [[5.0, -9.0, 1], [-1e30, 1e30, 2], [0.5, np.inf, 0]], [1e9, -50, 0.0]
    inside, known = X.copy(), y.copy()
    inside[:3], known[:3] = [[1.0, -1.0, 1], [0.0, 1.0, 2], [0.5, 1.0, 0]], [10.0, -5.0, 0.0]
    tape = taped(monkeypatch, regressor(n=100), X, y)
    again = taped(monkeypatch, regressor(n=100), inside, known, tape)
    assert [e.exact for e in tape] == [e.exact for e in again]
    unknown = np.concatenate([X, [[0.5, 0.5, 7], [np.nan, 0.5, 1], [0.5, 0.5, 1], [0.5, 0.5, 1]]])
    again = taped(monkeypatch, regressor(n=100), unknown, np.append(y, [1, 1, np.nan, np.inf]), tape)
    assert [e.exact for e in tape] == [e.exact for e in again]


def test_tables_with_text_and_columns_that_are_not_used():
    X, y = data(3000)
    frame = pd.DataFrame({"id": np.arange(3000), "work": np.array(["x", "y", "z"])[X[:, 2].astype(int)], "a": X[:, 0]})
    spec = {"a": Numeric(0, 1), "work": Categorical(["x", "y", "z"])}
    model = regressor(epsilon=5.0, delta=1e-6, features=spec).fit(frame, y)
    assert model.score(frame, y) > 0.7
    odd = frame.head(2).assign(work=["none such", None], a=[np.nan, 0.9])
    first, second = model.predict(odd)
    assert first == model.intercept_ and abs(second - model.intercept_) > 0.5


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_passes": 0},
        {"n_passes": 1.5},
        {"n_passes": 17},
        {"count_share": 1.0},
        {"residual_clip": 0.0},
        {"residual_clip": math.inf},
        {"bounds_y": (1, 1)},
        {"features": [Categorical([1])] * 3},
    ],
)
def test_wrong_settings_are_refused_before_any_read(wrong):
    X, y = data(50)
    budget = Budget(1.0)
    with pytest.raises(InputError, match=next(iter(wrong))):
        regressor(budget=budget, **wrong).fit(X, y)
    assert budget.spent == budget.reserved == 0


def test_it_takes_one_target():
    X, y = data(50)
    budget = Budget(1.0)
    with pytest.raises(InputError, match="y must be of shape"):
        regressor(budget=budget).fit(X, np.stack([y, y], axis=1))
    assert budget.spent == 0
    assert regressor().fit(X, y[:, None]).predict(X).shape == (50,)


def test_a_clip_that_noise_blows_up_is_not_believed():
    """It was: of 200 rows at ε = 0.5 more than twice the right one, and predictions varied more than the target."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (200, 10))
    y = X[:, 0] + 0.3 * rng.standard_normal(200)
    settings = {"delta": 1e-6, "features": None, "bounds": (0, 1), "bounds_y": (-1.5, 2.5)}
    fits = [regressor(epsilon=0.5, random_state=k, **settings).fit(X, y) for k in range(12)]
    right = 1.5 * y.std() / 2
    assert max(model.ledger_.releases[1].sensitivity for model in fits) < 1.5 * right
    assert max(model.predict(X).std() for model in fits) < 2 * y.std()
    wide = regressor(epsilon=100.0, random_state=0, **(settings | {"bounds_y": (0, 1)})).fit(X, 1.0 * (y > 0.5))
    assert wide.ledger_.releases[1].sensitivity == pytest.approx(1.5, abs=0.1)  # a variance of 1, which is there


def test_one_bin_may_hold_nearly_all_rows():
    """Amounts that are mostly zero: 7,300 rows in a narrow bin were believed to be 935, so steps grew (R² of -13.6)."""
    counts = np.zeros(39)
    counts[0] = 7300.0
    spec = Numeric(0, 100_000, edges=np.geomspace(1, 99_000, 38).tolist())
    assert abs(_FeatureFunction(spec, counts, 66.0, 8000.0).counts[0] - 7300.0) <= 3 * 66.0
