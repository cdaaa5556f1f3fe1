"""Private naive Bayes: sensitivities by brute force, the non-private limit, an audit, Adult."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from learner_registry import LEARNERS, exact, fit
from sklearn.naive_bayes import CategoricalNB, GaussianNB

from fdadp.audit import black_box_audit
from fdadp.errors import InputError, PrivacyError, PublicParameterMissing
from fdadp.learners import Categorical, DPCategoricalNB, DPGaussianNB, DPHistogramNB, Numeric
from fdadp.learners.naive_bayes import _believed
from fdadp.privacy import Budget, SeededNoise, TapeNoise

SPECS = [Numeric(0, 4, edges=4), Categorical(["a", "b"]), Numeric(0, 1)]
CORNERS = [(x, c, z) for x in (-9.0, 0.0, 3.9) for c in ("a", "b", "?") for z in (0.0, np.nan)]


def sums(monkeypatch, model, X, y):
    tape = TapeNoise(SeededNoise(0))
    fit(monkeypatch, tape, model, X, y)
    return tape.entries[0]


def distance(a, b):
    moves = np.array(a.exact) - np.array(b.exact)
    return np.abs(moves).sum() if a.kind == "laplace" else np.sqrt((moves.astype(float) ** 2).sum())


def gaussian(delta, n, **more):
    return DPGaussianNB(epsilon=1, delta=delta, n=n, classes=[0, 1], bounds=(-1, 3), random_state=0, **more)


def histogram(delta, n, **more):
    return DPHistogramNB(epsilon=1, delta=delta, n=n, classes=[0, 1], features=SPECS, random_state=0, **more)


LEARNER = next(x for x in LEARNERS if x.cls is DPHistogramNB)
BASE = np.array([[0.5, 0.5], [2.0, -0.5], [9.0, 9.0]]), np.array([0, 1, 1])
MIXED = pd.DataFrame([[1.0, "a", 0.5], [2.0, "b", 0.1]]), np.array([0, 1])


@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("kind", ["gaussian", "histogram"])
def test_no_record_moves_the_sums_by_more_than_declared_and_the_worst_reaches_it(kind, delta, monkeypatch):
    """Corners, the centre, values beyond the bounds and changes of class, on the integers."""
    if kind == "gaussian":
        make, (X, y) = gaussian, BASE
        records = [np.array([r]) for r in itertools.product((-5.0, -1.0, 1.0, 3.0), repeat=2)]
        stack = np.vstack
    else:
        make, (X, y) = histogram, MIXED
        records = [pd.DataFrame([r]) for r in CORNERS]
        stack = pd.concat
    whole = sums(monkeypatch, make(delta, None), X, y)
    added = [sums(monkeypatch, make(delta, None), stack([X, r]), np.append(y, c)) for r in records for c in (0, 1, 7)]
    ratios = [distance(whole, other) / whole.sensitivity for other in added]
    assert max(ratios) <= 1
    assert max(ratios) > 0.9999
    n = len(X) + 1
    ends = [
        sums(monkeypatch, make(delta, n, adjacency="replace"), stack([X, r]), np.append(y, c))
        for r in records
        for c in (0, 1, 7)
    ]
    ratios = [distance(a, b) / a.sensitivity for a, b in itertools.combinations(ends, 2)]
    assert max(ratios) <= 1
    # Gaussian moments with a δ: √2 |v| or 2 √d, where the kernel takes 2 |v|.
    loose = kind == "gaussian" and delta is not None
    assert max(ratios) > (max(np.sqrt(3.5 * 2), 2 * np.sqrt(2)) / (2 * np.sqrt(3.5)) if loose else 1) - 1e-4


def test_without_noise_it_is_gaussian_naive_bayes():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 3000)
    X = rng.normal(y[:, None] * [1.0, -0.5], [0.5, 1.0], (3000, 2))
    ours = DPGaussianNB(epsilon=1e6, classes=[0, 1, 2], bounds=(-9, 9), random_state=0)
    ours.set_params(correlation=0, evidence_share=0).fit(X, y)
    theirs = GaussianNB().fit(X, y)
    np.testing.assert_allclose(ours.theta_, theirs.theta_, atol=1e-3)
    np.testing.assert_allclose(ours.var_, theirs.var_, rtol=2e-3)
    np.testing.assert_allclose(ours.predict_proba(X[:50]), theirs.predict_proba(X[:50]), atol=5e-3)
    assert (ours.predict(X) == theirs.predict(X)).mean() > 0.999


def test_without_noise_it_is_categorical_naive_bayes():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 2000)
    X = (rng.integers(0, 3, (2000, 4)) + y[:, None]) % 3
    of = Categorical([0, 1, 2])
    ours = DPCategoricalNB(epsilon=1e6, classes=[0, 1], categories=of, random_state=0)
    ours.set_params(correlation=0, evidence_share=0).fit(X, y)
    theirs = CategoricalNB(alpha=1.0).fit(X, y)
    for a, b in zip(ours.feature_log_prob_, theirs.feature_log_prob_, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=2e-3)


def test_records_out_of_bounds_count_as_at_the_bounds(monkeypatch):
    one = sums(monkeypatch, gaussian(None, None), np.array([[99.0, -99.0], [1.0, 2.0]]), [0, 1])
    other = sums(monkeypatch, gaussian(None, None), np.array([[3.0, -1.0], [1.0, 2.0]]), [0, 1])
    assert one.exact == other.exact
    infinite = sums(monkeypatch, gaussian(None, None), np.array([[3.0, -1.0], [1.0, 2.0], [np.inf, 1.0]]), [0, 1, 1])
    assert infinite.exact == other.exact  # infinity is no number: no row, rather than one at the bound


def test_rows_to_predict_for_are_moved_into_the_bounds_as_those_of_the_fit():
    """Beyond them the class of the larger variance was certain, on the side of the other, too."""
    rng = np.random.default_rng(8)
    y = rng.integers(0, 2, 2000)
    X = rng.normal(np.where(y == 1, 2.0, 0.0), np.where(y == 1, 0.3, 1.0))[:, None]
    model = DPGaussianNB(epsilon=50.0, classes=[0, 1], bounds=(-1, 2.5), random_state=0).fit(X, y)
    inside, beyond = model.predict_proba([[-1.0], [2.5]]), model.predict_proba([[-1e6], [1e6]])
    np.testing.assert_array_equal(beyond, inside)
    ball = DPGaussianNB(epsilon=50.0, classes=[0, 1], data_norm=1.75, center=0.75, random_state=0).fit(X, y)
    np.testing.assert_array_equal(ball.predict_proba([[-1e6], [1e6]]), inside)


def test_labels_of_features_by_name_are_refused_before_any_read():
    """Names were taken for labels: "age" for a, g and e."""
    budget = Budget(1.0)
    for wrong in ({"work": ["a", "b"]}, "ab", {"a", "b"}):
        with pytest.raises(InputError, match=r"categories must be a sequence .* got .*features"):
            DPCategoricalNB(classes=[0, 1], categories=wrong, budget=budget).fit(np.array([["a"], ["b"]]), [0, 1])
    with pytest.raises(InputError, match="labels, in their order, got 'ab'"):
        DPCategoricalNB(classes=[0, 1], categories=["ab"], budget=budget).fit(np.array([["a"], ["b"]]), [0, 1])
    assert budget.spent == budget.reserved == 0


def test_text_numbers_and_missing_values_together():
    rng = np.random.default_rng(2)
    yes = rng.random(4000) < 0.4
    frame = pd.DataFrame(
        {
            "extra": rng.normal(size=4000),
            "city": np.where(rng.random(4000) < 0.9, np.where(yes, "Rome", "Oslo"), None),
            "age": np.where(rng.random(4000) < 0.9, rng.normal(30 + 20 * yes, 8), np.nan),
        }
    )
    labels = np.where(yes, "yes", "no")
    features = {"age": Numeric(0, 100, edges=[40, 60]), "city": Categorical(["Rome", "Oslo"])}
    model = DPHistogramNB(epsilon=1e5, classes=["no", "yes"], features=features, random_state=0).fit(frame, labels)
    assert [p.shape for p in model.feature_log_prob_] == [(2, 3), (2, 2)]
    new = pd.DataFrame({"extra": [0, 0, 0], "city": ["Rome", "Paris", None], "age": [np.nan, 70, np.nan]})
    log_proba = model.predict_log_proba(new)
    # What is missing is left out of the product; with nothing known the prior is left.
    np.testing.assert_allclose(np.exp(log_proba[2]), [0.6, 0.4], atol=0.03)
    odds = model.feature_log_prob_[0][:, 2] * model.evidence_weight_
    np.testing.assert_allclose(np.diff(log_proba[1] - log_proba[2]), np.diff(odds))
    assert list(model.predict(new)) == ["yes", "yes", "no"]
    assert model.score(frame, labels) > 0.9


def believed(exact, sd, draws=400):
    """What is believed of these sums, of as many draws of noise: means and variances, (draws, K, d)."""
    rng = np.random.default_rng(0)
    found = [_believed(exact + sd * rng.standard_normal(exact.shape), sd, sd)[1:] for _ in range(draws)]
    return tuple(np.array(part) for part in zip(*found, strict=True))


def test_the_common_mean_is_drawn_to_the_middle_by_the_noise_of_all_classes():
    """Ten classes of 20 rows in the middle of the range, noise as large as a class: it has ten times that of one."""
    means, _ = believed(np.tile([20.0, 0.0, -10.0], (10, 1)), 20.0)
    assert np.sqrt((means.mean(axis=(1, 2)) ** 2).mean()) < 0.28  # 0.24; 0.34 with the noise of one


def test_predictions_know_how_uncertain_the_means_are():
    """Rows with hardly any variance, and noise of .4 on their mean: predictions are as far off as they say."""
    exact = np.array([[100.0, 30.0, 100 * (0.09 + 0.001 - 0.5)], [100.0, -30.0, 100 * (0.09 + 0.001 - 0.5)]])
    means, variances = believed(exact, 40.0)
    off = ((means - [[0.3], [-0.3]]) ** 2).mean() + 0.001
    assert off < 0.6 * variances.mean()  # .46, as variances are no better known; .73 without what is not known of means


def log_loss(model, X, y):
    return -model.predict_log_proba(X)[np.arange(len(y)), y].mean()


@pytest.mark.parametrize("kind", [DPGaussianNB, DPHistogramNB])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_features_that_are_all_noise_say_nothing(kind, epsilon):
    """400 rows, one of 40 features tells the classes apart: probabilities stay near the shares, the one is found."""
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 800)
    X = rng.normal(0, 0.3, (800, 40))
    X[:, 0] += 1.2 * (2 * y - 1)
    known = {"bounds": (-2, 2)} if kind is DPGaussianNB else {"features": Numeric(-2, 2, edges=8)}
    losses, right = [], []
    for seed in range(4):
        model = kind(epsilon=epsilon, delta=1e-5, classes=[0, 1], random_state=seed, **known).fit(X[:400], y[:400])
        losses.append(log_loss(model, X[400:], y[400:]))
        right.append((model.predict(X[400:]) == y[400:]).mean())
    assert np.mean(losses) < np.log(2) + 0.05
    if epsilon == 1 and kind is DPGaussianNB:
        assert np.mean(right) > 0.9


def test_probabilities_of_correlated_features_are_not_too_sure():
    """Ten copies of one feature are one feature: without the guess the log-loss is that of certainty."""
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 2000)
    X = (rng.normal(2 * y - 1, 1.5)[:, None] + 0.3 * rng.normal(size=(2000, 10))) / 4
    known = {"epsilon": 5.0, "classes": [0, 1], "bounds": (-2, 2), "random_state": 0}
    losses = {
        (c, share): log_loss(DPGaussianNB(**known, correlation=c, evidence_share=share).fit(X, y), X, y)
        for c, share in ((1, 0), (0, 0), (0, 0.04))
    }
    assert losses[1, 0] < 0.56 < 0.8 < losses[0, 0]
    assert losses[0, 0.04] < 0.56  # the rows say that it was a wrong guess


@pytest.mark.parametrize("kind", [DPGaussianNB, DPHistogramNB])
def test_the_weight_of_the_evidence_is_learnt_where_laws_are_not_those_assumed(kind):
    """Six features with rare large values: Gaussian ones were too sure (log-loss .11 above that of the shares)."""
    rng = np.random.default_rng(6)
    y = (rng.random(8000) < 0.3).astype(int)
    rare = rng.random((8000, 6)) < np.where(y == 1, 0.12, 0.06)[:, None]
    X = np.where(rare, rng.uniform(4, 10, (8000, 6)), rng.exponential(0.3, (8000, 6)))
    known = {"bounds": (0, 12)} if kind is DPGaussianNB else {"features": Numeric(0, 12, edges=12)}
    model = kind(epsilon=5.0, delta=1e-5, classes=[0, 1], random_state=0, **known).fit(X[:5000], y[:5000])
    share = y[:5000].mean()
    shares = -np.log(np.where(y[5000:] == 1, share, 1 - share)).mean()
    assert log_loss(model, X[5000:], y[5000:]) < shares - 0.02


@pytest.mark.parametrize("kind", [DPGaussianNB, DPHistogramNB])
def test_shares_of_classes_are_seen_beside_many_features(kind):
    """As one count beside 40 features they were lost in noise: .20 and .17 nats from the truth in the mean."""
    away = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        y = (rng.random(400) < 0.1).astype(int)
        X = rng.uniform(0, 1, (400, 40))
        known = {"bounds": (0, 1)} if kind is DPGaussianNB else {"features": Numeric(0, 1, edges=4)}
        model = kind(epsilon=0.2, delta=1e-5, classes=[0, 1], random_state=seed, **known).fit(X, y)
        found = model.class_prior_ if kind is DPGaussianNB else np.exp(model.class_log_prior_)
        away.append(0.1 * np.log(0.1 / found[1]) + 0.9 * np.log(0.9 / found[0]))
    assert np.mean(away) < 0.05


@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("kind", ["gaussian", "histogram"])
def test_no_record_moves_the_slopes_of_the_evidence_by_more_than_declared(kind, delta, monkeypatch):
    """Given what was released before them; a record in the other class moves them nearly so far."""
    rng = np.random.default_rng(7)
    y = np.arange(400) % 2
    X = np.column_stack([2.0 * y, 2.0 * y]) + rng.normal(0, 0.1, (400, 2))
    if kind == "gaussian":
        make = gaussian
    else:

        def make(delta, n, **more):
            return histogram(delta, n, **more).set_params(features=Numeric(-1, 3, edges=4))

    records = [np.array([r]) for r in itertools.product((-5.0, 0.0, 2.0, np.nan), repeat=2)]
    for adjacency, n in (("add-remove", None), ("replace", 401)):

        def entries(row, label, tape=None, adjacency=adjacency, n=n):
            noise = TapeNoise(SeededNoise(0), tape)
            own = make(delta, n, adjacency=adjacency, correlation=0).set_params(epsilon=50.0)
            fit(monkeypatch, noise, own, np.vstack([X, row]), np.append(y, label))
            return noise.entries

        tapes = entries(records[0], 7)
        found = [entries(row, label, tapes) for row in records for label in (0, 1, 7)]
        moved = [
            distance(a[step], b[step]) / a[step].sensitivity
            for step in (1, 2)
            for a, b in itertools.combinations(found, 2)
        ]
        assert len(tapes) == 3
        assert max(moved) <= 1
        assert max(moved) > (0.6 if n is None else 0.3)  # the kernel doubles the clip where a person is replaced


def test_a_ball_instead_of_bounds_is_the_box_around_it():
    known = {"epsilon": 1.0, "classes": [0, 1], "random_state": 0}
    box = DPGaussianNB(**known, bounds=(-1, 3)).fit(*BASE)
    ball = DPGaussianNB(**known, data_norm=2.0, center=1.0).fit(*BASE)
    np.testing.assert_array_equal(ball.theta_, box.theta_)
    with pytest.raises(InputError, match="data_norm must be left out"):
        DPGaussianNB(**known, bounds=(-1, 3), data_norm=2.0).fit(*BASE)


def test_labels_that_are_no_class_add_nothing(monkeypatch):
    X, y = MIXED
    one = sums(monkeypatch, histogram(None, None), X, y)
    other = sums(monkeypatch, histogram(None, None), pd.concat([X, X]), [*y, "zero", None])
    assert one.exact == other.exact


def test_people_with_several_rows_count_once(monkeypatch):
    rng = np.random.default_rng(3)
    X, y = rng.uniform(-1, 1, (30, 2)), rng.integers(0, 2, 30)
    groups = np.arange(30) // 3
    tape = TapeNoise(SeededNoise(0))
    model = gaussian(None, 10).fit(X, y, groups=groups)
    fit(monkeypatch, tape, gaussian(None, 10), X, y, groups)
    counts = np.array(tape.entries[0].exact).reshape(2, 5)[:, 0] * (1 + 1.5 * 2) * 2.0**-24
    np.testing.assert_allclose(counts.sum(), 10, atol=1e-5)
    assert model.privacy_spent_["unit"].startswith("person")


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: DPGaussianNB(classes=[0], bounds=(0, 1)), InputError, "at least two"),
        (lambda: DPGaussianNB(classes=[0, 0], bounds=(0, 1)), PrivacyError, "distinct"),
        (lambda: DPGaussianNB(classes=[0, 1], bounds=(1, 0)), InputError, "low < high"),
        (lambda: DPGaussianNB(classes=[0, 1], bounds=(0, 1), var_floor=0), InputError, "var_floor"),
        (lambda: DPGaussianNB(classes=[0, 1], bounds=(0, 1), priors=[1, 1]), InputError, "priors"),
        (lambda: DPGaussianNB(classes=[0, 1], bounds=(0, 1), correlation=1.5), InputError, "correlation"),
        (lambda: DPHistogramNB(classes=[0, 1], features=Numeric(0, 1), correlation=None), InputError, "correlation"),
        (lambda: DPHistogramNB(classes=[0, 1], features=Numeric(0, 1), alpha=0), InputError, "alpha"),
        (lambda: DPHistogramNB(classes=[0, 1], features=Numeric(0, 1), n_bins=1), InputError, "n_bins"),
        (lambda: DPHistogramNB(classes=[0, 1], features="age"), InputError, "features"),
        (lambda: DPCategoricalNB(classes=[0, 1]), PublicParameterMissing, "categories"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_spent(make, error, text):
    budget = Budget(1.0)
    with pytest.raises(error, match=text):
        make().set_params(budget=budget).fit(BASE[0], BASE[1])
    assert budget.spent == budget.reserved == 0


@pytest.mark.statistics
def test_black_box_audit_of_the_last_person_of_a_class():
    """Class removal: whether the one person of a class is there must not show by more than ε; and shows if it may."""
    epsilon = 2.0
    X, y = np.tile([[1.0]], (6, 1)), np.array([0, 0, 0, 0, 0, 1])

    def scores(rows, claimed):
        out = []
        for seed in range(600):
            rng = np.random.default_rng([seed, rows, 1])
            model = DPHistogramNB(epsilon=claimed, classes=[0, 1], features=[Numeric(0, 2, edges=2)])
            with pytest.MonkeyPatch.context() as patch:
                fit(patch, SeededNoise(rng), model.set_params(random_state=0), X[:rows], y[:rows])
            out.append(model.class_log_prior_[1] + model.feature_log_prob_[0][1, 1])
        return np.array(out)

    present, absent = scores(6, epsilon), scores(5, epsilon)
    assert black_box_audit(present, absent, epsilon=epsilon).passed
    assert not black_box_audit(present, absent, epsilon=epsilon / 8).passed  # it would notice


def test_ledger_names_what_is_public(monkeypatch):
    _, _, model = exact(monkeypatch, LEARNER, np.zeros((9, 3)), np.zeros(9))
    assert any("features" in key for key in model.ledger_.details)


def adult(name):
    path = Path(os.environ.get("FDADP_DATA", "")) / f"adult_{name}.csv.gz"
    if not path.is_file():
        pytest.skip(f"{path.name} is not here: set FDADP_DATA to the folder that holds it")
    return pd.read_csv(path, skipinitialspace=True)


def test_adult():
    """A prototype had an accuracy of .829 at ε = 1.

    docs/decisions/0017-learners-account-in-zcdp.md#figures-that-tests-hold-learners-to
    """
    train, test = adult("train"), adult("test")
    few = np.geomspace(1000, 1e5, 15)[:-1]
    features = {
        "age": Numeric(0, 120),
        "education-num": Numeric(1, 16),
        "capital-gain": Numeric(0, 1e5, edges=[1, *few]),
        "capital-loss": Numeric(0, 5000, edges=[1, *np.geomspace(1000, 5000, 15)[:-1]]),
        "hours-per-week": Numeric(0, 100),
    }
    truth = test["income"].str.rstrip(".")
    for epsilon, expected in ((0.1, 0.815), (1.0, 0.827)):
        model = DPHistogramNB(epsilon=epsilon, classes=["<=50K", ">50K"], features=features, random_state=0)
        assert model.fit(train, train["income"]).score(test, truth) > expected
