"""Boosted stumps and additive histograms: what they release, and that without noise they are what they should be.

What every learner keeps (public parameters, spending, exact loss by replay) is in test_learners_common.py.
"""

from __future__ import annotations

import math
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from mutants import mutate
from privacy_tools import MODES, worst_ratio
from scipy import sparse
from scipy.special import expit, logit
from scipy.stats import beta

from fdadp.errors import InputError, PrivacyError
from fdadp.learners import Categorical, DPAdditiveHistograms, DPAdditiveRegressor, DPBoostedStumps, Numeric
from fdadp.learners.boosted_stumps import _edge
from fdadp.learners.explainable_boosting import _steps
from fdadp.learners.shared._public_bins import Bins, odds
from fdadp.privacy import Budget, Cohort, SeededNoise, TapeNoise
from fdadp.privacy import settings as privacy_settings
from fdadp.privacy.account.epsilon_mu_rho import range_from_mu
from fdadp.privacy.kernel._kernel import Kernel

FEATURES = [Numeric(0, 1, edges=[0.2, 0.4, 0.6, 0.8]), Numeric(-1, 1, edges=5), Categorical([0, 1, 2])]


def data(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = np.stack([rng.random(n), rng.uniform(-1, 1, n), rng.integers(0, 3, n)], axis=1)
    score = 4 * (X[:, 0] > 0.6) - 2 + 2 * X[:, 1] + (X[:, 2] == 1)
    return X, (rng.random(n) < expit(score)).astype(int)


def on_tape(monkeypatch, model, X, y, groups=None, tape=None):
    """Fit; the entries of the tape."""
    noise = TapeNoise(SeededNoise(0), tape)
    with monkeypatch.context() as patch:
        for module in (privacy_settings,):
            patch.setattr(module, "SeededNoise", lambda seed: noise, raising=False)
        original = Cohort.__init__

        def init(self, *args, **kwargs):
            kwargs["noise"] = noise
            original(self, *args, **kwargs)

        patch.setattr(Cohort, "__init__", init)
        model.fit(X, y, groups)
    return noise.entries


# ------------------------------------------------------------------ many features


@pytest.mark.parametrize("grouped", [False, True])
def test_memory_is_linear_in_the_number_of_features(grouped):
    """It was quadratic: 4.6 GB of 200 features. Allocations of Python and NumPy, not the process's."""

    def held(d):
        X = np.random.default_rng(0).random((60, d))
        model = DPBoostedStumps(classes=[0, 1], features=Numeric(0, 1, edges=20), n_rounds=1, random_state=0)
        tracemalloc.start()
        model.fit(X, (X[:, 0] > 0.5).astype(int), np.arange(60) // 2 if grouped else None)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    held(2)
    few, many = held(20), held(80)
    assert many < 5 * few


# ------------------------------------------------------------------ the kernel's selection of tests

TESTS = [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 0, 0, 1], [0, 1, 1, 0, 0]]


def cells(rows):
    """Cells of two features, some of them none, and a weight."""
    x = rows[0]
    return np.stack([np.minimum(np.floor(abs(x[:, 0])), 4.0), (x[:, 1] > 0) + 0 * x[:, 1]], 1), abs(x[:, 1])


def release(cohort):
    return cohort.select_test(cells, TESTS, (3, 2), share=0.1, name="t")


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(("pure", "adjacency"), MODES)
def test_sensitivity_by_brute_force(pure, adjacency, grouped):
    """Half of a person's 2^24, or all of it where a person is replaced; and attained."""
    ratio = worst_ratio(release, pure=pure, adjacency=adjacency, grouped=grouped)
    assert 0.2 < ratio <= 1.0
    if not grouped:
        assert ratio > 0.999 * (0.5 if adjacency == "replace" else 1)


def test_half_that_sensitivity_would_be_noticed(monkeypatch):
    original = Kernel.sensitivity
    monkeypatch.setattr(Kernel, "sensitivity", lambda *a: original(*a) / 2)
    assert worst_ratio(release, pure=False, adjacency="zero-out", grouped=False) > 1


def nasty(n=700):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 2)) * 1.5
    X[::17] = np.nan
    X[1::23, 1] = np.inf
    X[2::29] = 1e30
    return X


def utilities(rows):
    codes, weight = cells(rows)
    tests = np.array(TESTS)
    first, second = codes.T
    usable = np.isfinite(weight) & (first < 3) & (first >= 0) & (second >= 0)
    at = np.nan_to_num(codes).astype(int).clip(0, [2, 1])
    passes = np.where(tests[:, :3].any(axis=1), tests[:, at[:, 0]].T, tests[:, 3 + at[:, 1]].T)
    return np.where(usable[:, None], passes * weight[:, None], np.nan)


@pytest.mark.parametrize("grouped", [False, True])
def test_select_test_has_the_integers_of_select(grouped):
    X = nasty()
    persons = np.arange(700) // 3 if grouped else None
    found = []
    for ask in (
        lambda c: c.select_test(cells, TESTS, (3, 2), share=1.0, name="t"),
        lambda c: c.select(utilities, share=1.0, name="t"),
        lambda c: c.select_test(cells, sparse.coo_array(TESTS), (3, 2), share=1.0, name="t"),
    ):
        noise = TapeNoise()
        ask(Cohort(X, groups=persons, budget=Budget(1.0, 1e-6), n=700, noise=noise))
        found.append(noise.entries[0])
    assert found[0].exact == found[1].exact == found[2].exact
    assert found[0].sensitivity == found[1].sensitivity == 2**23
    assert len(set(found[0].exact)) == 4


@pytest.mark.parametrize(
    ("tests", "sizes", "what"),
    [
        ([[1, 0, 0, 1, 0], [0, 1, 0, 0, 0]], (3, 2), "of one feature"),
        ([[1, 0, 0, 0], [0, 1, 0, 0]], (3, 2), "two rows of 5"),
        ([[2, 0, 0, 0, 0], [0, 1, 0, 0, 0]], (3, 2), "0 and 1"),
        ([[1, 0, 0, 0, 0]], (3, 2), "at least two"),
        (TESTS, (3, 1, 1), "3 codes"),
    ],
)
def test_wrong_tests_are_refused_before_any_read(tests, sizes, what):
    cohort = Cohort(nasty(), budget=Budget(1.0), n=700, noise=SeededNoise(0))
    with pytest.raises(PrivacyError, match=what):
        cohort.select_test(cells, tests, sizes, share=1.0, name="t")
    assert cohort.reads == 0 and cohort.budget.spent == 0


def test_a_selection_costs_half_where_persons_are_added_or_removed():
    """Scale of the Gumbel noise in units of a person: 1/√(8ρ), and twice that where a person is replaced; 1/η with the
    range η that costs μ."""
    for adjacency, factor in (("add-remove", 1), ("replace", 2)):
        n = None if adjacency == "add-remove" else 700
        for accounting in ("zcdp", "gdp"):
            budget = Budget(1.0, 1e-6, accounting=accounting)
            cohort = Cohort(nasty(), budget=budget, adjacency=adjacency, n=n, noise=SeededNoise(0))
            cohort.select(lambda r: r[0], share=0.5, name="s")
            (release,) = cohort.releases
            eta = math.sqrt(8 * budget.total * 0.5) if accounting == "zcdp" else range_from_mu(math.sqrt(budget.total))
            assert release.scale == pytest.approx(factor / eta, rel=1e-6)
            assert release.sensitivity == factor / 2


# ------------------------------------------------------------------ stumps


def plain_stumps(X, y, rounds):
    """Greedy boosting with w = 1/(1 + exp(yF)), by hand; the scores of the rows."""
    tests = [X[:, 0] >= c for c in (0.2, 0.4, 0.6, 0.8)]
    tests += [X[:, 1] >= c for c in np.linspace(-1, 1, 6)[1:-1]]
    tests += [X[:, 2] == c for c in range(3)]
    H = np.stack([2.0 * t - 1 for t in tests], axis=1)
    H = np.concatenate([H, -H], axis=1)
    sign, F = 2.0 * y - 1, np.zeros(len(y))
    for _ in range(rounds):
        w = expit(-sign * F)
        h = H[:, ((w * sign)[:, None] * H).sum(axis=0).argmax()]
        right, wrong = w[h == sign].sum(), w[h != sign].sum()
        r = min(max((right - wrong) / (right + wrong), 0), 0.95)
        F = F + min(2.0, math.log((1 + r) / (1 - r))) * h
    return F


def test_without_noise_stumps_are_greedy_boosting():
    X, y = data()
    model = DPBoostedStumps(epsilon=1e7, classes=[0, 1], features=FEATURES, n_rounds=12, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), plain_stumps(X, y, 12), atol=2e-3)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expit(model.decision_function(X)))


def test_stumps_do_not_take_noise_for_a_finding():
    """Labels of fair coins, 300 rows: released steps at their word had log-losses of 2.3 to 3.4, a coin's is 0.69."""
    rng = np.random.default_rng(0)
    X, y, new = rng.random((300, 5)), rng.integers(0, 2, 300), rng.random((500, 5))
    for epsilon, delta in ((0.1, 1e-5), (0.5, 1e-5), (0.5, None)):
        losses = []
        for seed in range(3):
            settings = {"epsilon": epsilon, "delta": delta, "classes": [0, 1], "features": Numeric(0, 1)}
            share = DPBoostedStumps(**settings, random_state=seed).fit(X, y).predict_proba(new)
            losses.append(-np.log(share).mean())  # over both labels of each row: what a coin gives
        assert np.mean(losses) < math.log(2) + 0.15


def test_an_edge_is_the_released_one_without_noise_and_little_where_there_is_nothing_else():
    assert _edge(700.0, 300.0, 1e-3) == pytest.approx(0.4, abs=1e-6)
    assert 0 <= _edge(300.0, 700.0, 1e-3) < 1e-3
    assert 0.1 < _edge(700.0, 300.0, 100.0) < 0.4
    for right, wrong in ((900.0, -300.0), (-500.0, -600.0), (0.0, 0.0)):
        assert 0 < _edge(right, wrong, 1e4) < 0.1


def test_stumps_release_a_test_and_a_step_a_round():
    X, y = data()
    for adjacency, factor, select in (("add-remove", 1, 0.5), ("replace", math.sqrt(2), 1)):
        n = 600 if adjacency == "replace" else None
        model = DPBoostedStumps(
            epsilon=1.0,
            delta=1e-6,
            n=n,
            adjacency=adjacency,
            classes=[0, 1],
            features=FEATURES,
            n_rounds=3,
            random_state=0,
        ).fit(X, y)
        releases = model.ledger_.releases
        assert [r.name.split(": ")[1] for r in releases] == ["test", "step"] * 3
        assert {r.sensitivity for r in releases[::2]} == {select}
        assert all(r.sensitivity == pytest.approx(factor, rel=1e-9) for r in releases[1::2])
        assert sum(r.share for r in releases) == pytest.approx(1)
        assert releases[0].share == pytest.approx(0.7 / 3)
        assert "features" in str(model.ledger_)


def test_the_model_can_be_read_and_staged():
    X, y = data()
    model = DPBoostedStumps(epsilon=50.0, classes=[0, 1], features=FEATURES, n_rounds=8, random_state=0).fit(X, y)
    first = model.model_[0]
    assert (first.label, first.feature, first.test, first.polarity) == (1, 0, 0.6, 1)
    by_hand = np.zeros(len(X))
    for stump in model.model_:
        column = X[:, stump.feature]
        holds = column == stump.test if stump.feature == 2 else column >= stump.test
        by_hand += stump.step * stump.polarity * np.where(holds, 1, -1)
    np.testing.assert_allclose(by_hand, model.decision_function(X), atol=1e-12)
    stages = list(model.staged_predict(X))
    assert len(stages) == 8
    np.testing.assert_array_equal(stages[-1], model.predict(X))


@pytest.mark.parametrize("cls", [DPBoostedStumps, DPAdditiveHistograms])
def test_three_classes(cls):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 3, (4000, 1))
    y = np.array(["a", "b", "c"])[np.floor(X[:, 0]).astype(int)]
    model = cls(epsilon=5.0, delta=1e-6, classes=["c", "a", "b"], features=Numeric(0, 3, edges=9), random_state=0)
    model.fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.decision_function(X).shape == (4000, 3)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert list(model.classes_) == ["a", "b", "c"]
    assert model.privacy_spent_["spent"] == pytest.approx(5.0, rel=1e-3)


# ------------------------------------------------------------------ histograms


def test_without_noise_histograms_are_newton_steps_in_turn():
    X, y = data()
    model = DPAdditiveHistograms(epsilon=1e7, classes=[0, 1], features=FEATURES, n_passes=3, random_state=0).fit(X, y)
    codes = [np.searchsorted(spec.cuts, X[:, j], side="right") for j, spec in enumerate(FEATURES[:2])]
    codes.append(X[:, 2].astype(int))
    scores = [np.zeros(5), np.zeros(5), np.zeros(3)]
    start = logit(y.mean())
    for _ in range(3):
        for j in range(3):
            F = start + sum(s[c] for s, c in zip(scores, codes, strict=True))
            total = np.bincount(codes[j], y - expit(F), len(scores[j]))
            count = np.bincount(codes[j], minlength=len(scores[j]))
            scores[j] = scores[j] + 0.7 * np.clip(4 * total / count, -2, 2)
    assert model.intercept_ == pytest.approx(start, abs=1e-3)
    np.testing.assert_allclose(model.scores_, np.concatenate(scores), atol=2e-3)
    np.testing.assert_allclose(model.bin_counts_, np.concatenate([np.bincount(c) for c in codes]), atol=0.1)


@pytest.mark.parametrize("pure", [False, True])
def test_sensitivities_of_the_histograms(pure):
    X, y = data()
    for adjacency in ("zero-out", "replace"):
        model = DPAdditiveHistograms(
            epsilon=1.0,
            delta=None if pure else 1e-6,
            n=600,
            adjacency=adjacency,
            classes=[0, 1],
            features=FEATURES,
            n_passes=2,
            random_state=0,
        ).fit(X, y)
        counts, *residuals = model.ledger_.releases
        replaced = adjacency == "replace"
        weight = math.sqrt(3)  # of the class: √d
        wanted = ((weight + 3) * (1 + replaced)) if pure else math.sqrt((weight**2 + 3) * (1 + replaced))
        assert counts.sensitivity == pytest.approx(wanted, rel=1e-9)
        assert len(residuals) == 6
        assert all(r.sensitivity == pytest.approx(1 + replaced) for r in residuals)
        assert counts.share == 0.2


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("shares", "n", "d", "epsilon"),
    [((0.9, 0.1), 3000, 20, 0.1), ((0.3, 0.7), 400, 30, 0.1), ((0.4, 0.4, 0.2), 150, 13, 0.5)],
)
def test_histograms_of_noise_end_near_the_shares_of_the_classes(shares, n, d, epsilon):
    """Features that say nothing: scores were noise about even classes, as noisy counts were taken for curvature.

    The mean of twelve log-losses, over that of the shares, was .098, .078 and .068 too large.
    """
    losses = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y = rng.uniform(0, 1, (2 * n, d)), rng.choice(len(shares), 2 * n, p=shares)
        model = DPAdditiveHistograms(
            epsilon=epsilon,
            delta=1e-5,
            classes=list(range(len(shares))),
            features=Numeric(0, 1),
            random_state=seed,
        ).fit(X[:n], y[:n])
        p = model.predict_proba(X[n:])
        losses.append(-np.log(p[np.arange(n), y[n:]]).mean() + np.log(np.take(shares, y[n:])).mean())
    assert np.mean(losses) < 0.05


@pytest.mark.parametrize(
    ("model", "old", "new"),
    [
        (DPAdditiveHistograms, "hit - share + 0", "hit - share.mean() + 0"),
        (DPAdditiveRegressor, "in_bins(left[:, None]", "in_bins((left - np.nanmean(left))[:, None]"),
    ],
)
def test_residuals_that_look_at_other_rows_are_refused(monkeypatch, model, old, new):
    """Once they were not: of rows in bins all that the kernel tried were rows without a bin."""
    X, y = data(100)
    labels = {"classes": [0, 1]} if model is DPAdditiveHistograms else {"bounds_y": (0, 1)}
    mutate(monkeypatch, sys.modules[model.__module__], old, new)
    with pytest.raises(PrivacyError, match="must be row-local"):
        model(features=FEATURES, **labels).fit(X, y)


# ------------------------------------------------------------------ rows


@pytest.mark.parametrize("cls", [DPBoostedStumps, DPAdditiveHistograms])
def test_beyond_the_range_is_its_end_and_unknown_is_no_row(cls, monkeypatch):
    X, y = data(100)
    settings = {"epsilon": 1.0, "classes": [0, 1], "features": FEATURES, "random_state": 0, "n": 100}
    X[:3] = [[5.0, -9.0, 1], [-1e30, 1e30, 2], [0.5, np.inf, 0]]
    inside = X.copy()
    inside[:3] = [[1.0, -1.0, 1], [0.0, 1.0, 2], [0.5, 1.0, 0]]
    tape = on_tape(monkeypatch, cls(**settings), X, y)
    again = on_tape(monkeypatch, cls(**settings), inside, y, tape=tape)
    assert [e.exact for e in tape] == [e.exact for e in again]
    unknown = np.concatenate([X, [[0.5, 0.5, 7], [np.nan, 0.5, 1], [0.5, 0.5, 1]]])
    labels = np.concatenate([y, [1, 1, 5]])
    again = on_tape(monkeypatch, cls(**settings), unknown, labels, tape=tape)
    assert [e.exact for e in tape] == [e.exact for e in again]


@pytest.mark.parametrize("cls", [DPBoostedStumps, DPAdditiveHistograms])
def test_tables_with_text_and_columns_that_are_not_used(cls):
    X, y = data(2000)
    frame = pd.DataFrame({"id": np.arange(2000), "work": np.array(["x", "y", "z"])[X[:, 2].astype(int)], "a": X[:, 0]})
    model = cls(
        epsilon=5.0,
        delta=1e-6,
        classes=["no", "yes"],
        features={"a": Numeric(0, 1), "work": Categorical(["x", "y", "z"])},
        random_state=0,
    ).fit(frame, np.where(y == 1, "yes", "no"))
    assert model.score(frame, np.where(y == 1, "yes", "no")) > 0.75
    odd = frame.head(2).assign(work=["none such", None], a=[np.nan, 0.9])
    assert np.isfinite(model.decision_function(odd)).all()
    assert model.decision_function(odd)[0] == getattr(model, "intercept_", 0)


def test_weights_are_products_that_stay_finite():
    bins = Bins(FEATURES, 3)
    scores = np.zeros((bins.total, 1))
    scores[[0, 5]] = [[800.0], [-799.0]]
    codes = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [np.nan, 0, 0], [7, 0, 0], [0.5, 0, 0]])
    found = odds(codes, bins.starts, scores)[:, 0]
    assert 1e149 < found[0] <= 1e150
    assert np.isfinite(found[:2]).all() and np.isnan(found[2:]).all()
    scores = np.random.default_rng(0).normal(size=(bins.total, 1))
    codes = np.array([[1.0, 2.0, 2.0], [4.0, 0.0, 1.0]])
    np.testing.assert_allclose(np.log(odds(codes, bins.starts, scores)[:, 0]), bins.scores(codes, scores)[:, 0])


@pytest.mark.parametrize(
    ("cls", "wrong"),
    [
        (DPBoostedStumps, {"n_rounds": 0}),
        (DPBoostedStumps, {"select_share": 1.0}),
        (DPBoostedStumps, {"max_step": -1}),
        (DPBoostedStumps, {"features": [Categorical([1])] * 3}),
        (DPAdditiveHistograms, {"n_passes": True}),
        (DPAdditiveHistograms, {"learning_rate": 0}),
        (DPAdditiveHistograms, {"count_share": 0}),
        (DPAdditiveHistograms, {"prior_sd": math.inf}),
    ],
)
def test_wrong_settings_are_refused_before_any_read(cls, wrong):
    X, y = data(50)
    budget = Budget(1.0)
    model = cls(**{"epsilon": 1.0, "budget": budget, "classes": [0, 1], "features": FEATURES} | wrong)
    with pytest.raises(InputError, match=next(iter(wrong))):
        model.fit(X, y)
    assert budget.spent == budget.reserved == 0


@pytest.mark.parametrize("small", [1e-3, 1e-9, 1e-100])
def test_steps_of_histograms_are_right_for_whatever_is_believed(small):
    """A step between neighbours of 1e-9 gave a singular matrix, when all was spent."""
    count, total, sd = np.full(6, 40.0), np.array([[3.0], [-2.0], [1.0], [5.0], [0.0], [-1.0]]), 2.0
    H = count[0] / 4
    alike = _steps(total, count, sd, ordered=True, prior_sd=0.5, smooth_sd=small)
    np.testing.assert_allclose(alike, H * total.sum() / (6 * H**2 + sd**2 / 0.5**2), rtol=1e-4)
    np.testing.assert_allclose(_steps(total, count, sd, ordered=True, prior_sd=small, smooth_sd=small), 0, atol=2e-3)
    wide = {"prior_sd": 1 / small, "smooth_sd": 1 / small}
    for ordered in (True, False):
        np.testing.assert_allclose(_steps(total, count, sd, ordered=ordered, **wide), total / H, rtol=1e-3, atol=1e-6)
    some = np.array([40.0, 0.0, 8.0, 400.0, 3.0, 0.0])
    known = _steps(total, some, sd, ordered=True, prior_sd=0.5, smooth_sd=1.5)
    D = np.diff(np.eye(6), axis=0)
    precision = np.diag((some / 4 / sd) ** 2 + 1 / (6 * 0.5**2)) + D.T @ D * 5 / 1.5**2
    np.testing.assert_allclose(known, np.linalg.solve(precision, (some / 4 / sd**2)[:, None] * total), rtol=1e-10)


# ------------------------------------------------------------------ audit


def lower_bound(hits, others, runs):
    """Clopper-Pearson: ε at least, with 95 %, from how often an event occurs with and without a person."""
    low = beta.ppf(0.025, hits, runs - hits + 1) if hits else 0.0
    high = beta.ppf(0.975, others + 1, runs - others) if others < runs else 1.0
    return math.log(low / high) if low > 0 else -math.inf


@pytest.mark.statistics
def test_the_stump_flip_pair_stays_below_epsilon():
    """Four (1, +) and four (0, -), with and without (1, -): the pair that breaks the published scheme."""
    X = np.array([[1.0]] * 4 + [[0.0]] * 4 + [[1.0]])
    y = np.array([1] * 4 + [0] * 4 + [0])
    runs = 300

    def flips(rows, epsilon):
        scores = []
        for seed in range(runs):
            model = DPBoostedStumps(
                epsilon=epsilon, classes=[0, 1], features=[Numeric(0, 1, edges=[0.5])], n_rounds=2, random_state=seed
            ).fit(X[:rows], y[:rows])
            scores.append(model.decision_function(np.array([[1.0]]))[0])
        return np.array(scores)

    for epsilon in (0.1, 1.0):
        with_, without = flips(9, epsilon), flips(8, epsilon)
        bounds = [
            lower_bound(int((a < t).sum()), int((b < t).sum()), runs)
            for a, b in ((with_, without), (-without, -with_))
            for t in (-0.5, 0.0, 0.5)
        ]
        assert max(bounds) <= epsilon
