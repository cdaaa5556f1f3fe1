"""The published schemes as printed: they say that they are not private, and the audit shows it."""

from __future__ import annotations

import ast
import inspect
import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import beta
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

import fdadp.published
from fdadp.errors import InputError, NotPrivateWarning
from fdadp.published import PublishedDPAda, PublishedGaussianNB, PublishedNoisyAdaBoost, PublishedPCA
from fdadp.published.adaboost_and_naive_bayes import SCHEMES, VARIANTS, boost, noised_rounds

ALL = [
    *(PublishedDPAda(variant=v, n_rounds=5, random_state=0) for v in VARIANTS),
    *(PublishedNoisyAdaBoost(scheme=s, n_rounds=5, random_state=0) for s in SCHEMES),
    PublishedGaussianNB(random_state=0),
    PublishedPCA(random_state=0),
]


ROOM = Path(fdadp.published.__file__).parent
SIGN = re.compile(r"not\W+(differentially )?private|none of it is differentially private", re.IGNORECASE)


def test_the_door_says_not_private():
    """The package's first words, every module's docstring and every scheme's; no scheme has another kind of name."""
    assert fdadp.published.__doc__.startswith("NOT PRIVATE")
    for path in ROOM.glob("*.py"):
        assert SIGN.search(ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))), path.name
    for name in fdadp.published.__all__:
        assert name.startswith("Published")
        assert SIGN.search(inspect.getdoc(getattr(fdadp.published, name))), name


def data(n=500):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.where(X[:, 0] + 0.5 * X[:, 1] + 0.3 * rng.normal(size=n) > 0, "yes", "no")


@pytest.mark.parametrize("model", ALL, ids=lambda m: getattr(m, "variant", getattr(m, "scheme", type(m).__name__)))
def test_it_says_that_it_is_not_private(model):
    X, y = data(60)
    with pytest.warns(NotPrivateWarning, match="NOT differentially private"):
        model.fit(X, y)
    assert model.privacy_spent_ is None
    assert "NOT differentially private" in str(model.ledger_).splitlines()[0]
    assert not model.ledger_.private and not model.ledger_.for_release
    assert model.ledger_.unnoised


@pytest.mark.filterwarnings("ignore::fdadp.errors.NotPrivateWarning")
@pytest.mark.parametrize("model", ALL, ids=lambda m: getattr(m, "variant", getattr(m, "scheme", type(m).__name__)))
def test_scikit_learns_own_checks(model):
    useless = "noise as printed leaves nothing to learn on data as small"
    expected = dict.fromkeys(["check_classifiers_train", "check_classifiers_classes"], useless)
    results = check_estimator(model, expected_failed_checks=expected, on_fail=None)
    assert {r["check_name"]: str(r["exception"])[:300] for r in results if r["status"] == "failed"} == {}


def test_wrong_settings_are_named():
    X, y = data(20)
    for model, name in (
        (PublishedDPAda(variant="DPBoost"), "variant"),
        (PublishedDPAda(tie="all"), "tie"),
        (PublishedDPAda(negative="abs"), "negative"),
        (PublishedDPAda(clamp=0.7), "clamp"),
        (PublishedDPAda(epsilon=0), "epsilon"),
        (PublishedNoisyAdaBoost(scheme="DP"), "scheme"),
        (PublishedNoisyAdaBoost(n_rounds=0), "n_rounds"),
        (PublishedPCA(n_components=9), "n_components"),
    ):
        with pytest.raises(InputError, match=name):
            model.fit(X, y)


def test_rounds_with_noise_are_those_of_each_variant():
    rng = np.random.default_rng(0)
    assert noised_rounds("DPAda", 50, rng).sum() == 49
    np.testing.assert_array_equal(np.flatnonzero(noised_rounds("DPAda_Swing", 6, rng)), [1, 3, 5])
    many = [noised_rounds("DPAda_Improved", 50, rng) for _ in range(400)]
    assert not any((r[1:] & r[:-1]).any() or r[0] for r in many)
    assert np.mean([r.sum() for r in many]) == pytest.approx(12.25, abs=0.5)
    assert np.mean([noised_rounds("DPAda_Random", 50, rng).sum() for _ in range(400)]) == pytest.approx(24.5, abs=0.7)


@pytest.mark.filterwarnings("ignore::fdadp.errors.NotPrivateWarning")
def test_without_noise_it_is_adaboost():
    X, y = data(300)
    ours = PublishedDPAda(epsilon=1e12, n_rounds=20, random_state=0).fit(X, y)
    noisy = PublishedNoisyAdaBoost(epsilon=1e12, n_rounds=20, random_state=0).fit(X, y)
    theirs = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=20).fit(X, y)
    assert (ours.predict(X) == theirs.predict(X)).mean() > 0.97
    assert (noisy.predict(X) == theirs.predict(X)).mean() > 0.97
    alphas = theirs.estimator_weights_ / 2  # SAMME's log((1-e)/e) is twice that
    np.testing.assert_allclose(ours.stumps_[0, 4], alphas[0], rtol=1e-6)
    stages = list(ours.staged_predict(X))
    assert len(stages) == len(ours.stumps_)
    np.testing.assert_array_equal(stages[-1], ours.predict(X))


def test_naive_bayes_has_noise_by_class_size():
    """A minority class and a wide range: less noise than a row can move the variance, by any ε."""
    rng = np.random.default_rng(0)
    x = np.concatenate([np.zeros(20), rng.random(200)])[:, None]
    y = np.array([1] * 20 + [0] * 200)
    with pytest.warns(NotPrivateWarning):
        model = PublishedGaussianNB(epsilon=1.0, bounds=(0, 1e5), random_state=0).fit(x, y)
    variance = next(r for r in model.ledger_.releases if r.name == "variances")
    moved = np.append(np.zeros(20), 1e5).var()
    assert moved > 100 * variance.sensitivity


def test_pca_moves_by_more_than_its_sensitivity():
    X = np.concatenate([np.full((40, 1), -1.0), np.full((1, 1), 1.0)])
    scatter = [np.var(rows) * len(rows) for rows in (X, X[:-1])]
    assert scatter[0] - scatter[1] > 3.9
    with pytest.warns(NotPrivateWarning):
        model = PublishedPCA(n_components=1, data_norm=1.0, random_state=0).fit(X)
    assert model.ledger_.releases[0].sensitivity == 1.0
    assert model.ledger_.details["true sensitivity"] == 4.0


# ------------------------------------------------------------------ audit


def flips(extra, runs, variant, budget, clip0, seed):
    """How often the classifier says - at x = 1: of four (1, +), four (0, -) and perhaps (1, -)."""
    codes = np.array([[1] * 4 + [0] * 4 + [1] * extra])
    y = np.array([1.0] * 4 + [-1.0] * 4 + [-1.0] * extra)
    rng = np.random.default_rng(seed)
    hits = 0
    for _ in range(runs):
        noised = noised_rounds(variant, 50, rng)
        stumps = boost(codes, np.array([2]), y, noised, budget, 0, clip0, 1e-10, -1.0, 0, rng)
        hits += sum(alpha * (above if cut <= 1 else below) for _, cut, above, below, alpha in stumps) < 0
    return hits


def lower_bound(hits, others, runs):
    return math.log(beta.ppf(0.025, hits, runs - hits + 1) / beta.ppf(0.975, others + 1, runs - others))


def test_the_audit_breaks_the_improved_scheme():
    """Claimed 0.1; a black box shows at least 5."""
    runs = 2000
    without, with_ = (flips(extra, runs, "DPAda_Improved", 0.1, True, extra) for extra in (0, 1))
    assert without == 0
    assert lower_bound(with_, without, runs) >= 5


@pytest.mark.long
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("budget", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("clip0", [True, False])
def test_the_audit_breaks_every_variant(variant, budget, clip0):
    runs = 6000
    without, with_ = (flips(extra, runs, variant, budget, clip0, extra) for extra in (0, 1))
    assert without == 0
    bound = lower_bound(with_, without, runs)
    print(f"{variant}, clip0 {clip0}: claimed {budget}, found at least {bound:.2f}")
    assert bound > budget
    if variant == "DPAda_Improved":
        assert bound >= 5


def test_of_equally_good_stumps_the_first_is_taken_and_a_weight_of_nothing_stays():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(200) < 0.5, 1.0, -1.0)
    feature = ((y > 0) ^ (rng.random(200) < 0.2)).astype(np.uint8)
    rounds = np.zeros(1, dtype=np.bool_)
    for codes, first in ((np.stack([feature, feature]), 0), (np.stack([1 - feature, feature]), 0)):
        stump = boost(codes, np.array([2, 2]), y, rounds, 1.0, 0, True, 1e-10, -1.0, 0, rng)[0]
        assert stump[0] == first
    # Half of the smallest weights fall below 0 and are put to 0; a scale would be divided by them in the next round.
    for _ in range(20):
        out = boost(feature[None], np.array([2]), y, np.ones(9, dtype=np.bool_), 0.1, 0, True, 1e-10, -1.0, 0, rng)
        assert np.isfinite(out).all()
