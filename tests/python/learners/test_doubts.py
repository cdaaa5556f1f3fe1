"""What fits say of themselves: total failures are said from released values, ordinary fits say nothing."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from learner_registry import LEARNERS, toy

from fdadp.errors import PublicInputWarning
from fdadp.learners import (
    DPPCA,
    DPAdditiveHistograms,
    DPAdditiveRegressor,
    DPBoostedStumps,
    DPCategoricalNB,
    DPForestClassifier,
    DPForestRegressor,
    DPGaussianNB,
    DPHistogramNB,
    DPKMeans,
    DPLinearRegression,
    DPLogisticRegression,
)
from fdadp.learners.shared._declared_vs_released import LEVEL, Doubts, _far

CLASSES, BOX, RANGE = {"classes": [0, 1]}, {"bounds": (-3, 3)}, {"bounds_y": (-4, 4)}
CLASSIFIERS = {
    DPGaussianNB: CLASSES | BOX,
    DPHistogramNB: CLASSES | BOX,
    DPAdditiveHistograms: CLASSES | BOX | {"n_passes": 1},
    DPBoostedStumps: CLASSES | BOX | {"n_rounds": 3},
    DPForestClassifier: CLASSES | BOX,
}
COUNTERS = CLASSIFIERS | {
    DPLogisticRegression: CLASSES | BOX | {"mechanism": "gradient"},
    DPForestRegressor: BOX | RANGE,
    DPLinearRegression: BOX | RANGE,
    DPAdditiveRegressor: BOX | RANGE | {"n_passes": 1},
    DPPCA: {"data_norm": 5.0},
    DPKMeans: BOX | {"n_clusters": 3},
}
SAYS_CLASSES = [DPGaussianNB, DPHistogramNB, DPAdditiveHistograms, DPForestClassifier]
SAYS_UNITS = [DPGaussianNB, DPHistogramNB, DPAdditiveHistograms, DPForestClassifier, DPForestRegressor]
SAYS_UNITS += [DPAdditiveRegressor, DPLinearRegression, DPPCA]
N = 3000


def people(seed, n=N):
    """X (n, 3), labels, and numbers."""
    rng = np.random.default_rng(seed)
    X = rng.normal(0, 1, (n, 3))
    number = X @ [1.0, -0.5, 0.25] + 0.5 * rng.standard_normal(n)
    return X, (number > 0).astype(int), number


def doubts_of(cls, X, y, seed, epsilon=30.0, **more):
    """What a fit with little noise says, pure or with a δ."""
    delta = 1e-6 if seed % 2 else None
    model = cls(epsilon=epsilon, delta=delta, random_state=seed, **{**COUNTERS[cls], **more})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PublicInputWarning)
        model.fit(X, y)
    assert [str(w.message).count("; ") >= len(model.doubts_) - 1 for w in caught] == [True] * bool(model.doubts_)
    return " ".join(model.doubts_)


SEEDS = range(6)


def said_in_most(cls, make, *texts, **more):
    """Whether these texts are in what fits to the tables of `make` say, but for one in six: noise may be large."""
    found = [doubts_of(cls, *make(seed), seed, **more) for seed in SEEDS]
    return sum(any(text in said for text in texts) for said in found) >= len(SEEDS) - 1


def target(cls, y, number):
    return number if "bounds_y" in COUNTERS[cls] else y


# ------------------------------------------------------------------ total failures are said


@pytest.mark.each_once
@pytest.mark.parametrize("n", [None, N])
@pytest.mark.parametrize("cls", [cls for cls in COUNTERS if cls is not DPHistogramNB])
def test_a_fit_that_used_no_row_says_so(cls, n):
    def nothing(seed):
        X, y, number = people(seed)
        return X * np.nan, target(cls, y, number)

    if cls is DPLogisticRegression and n is not None:  # no number of rows is released where it is declared
        assert not said_in_most(cls, nothing, "hardly", n=n)
    else:
        assert said_in_most(cls, nothing, "hardly any row", n=n)


def test_histograms_leave_missing_values_out_and_say_so():
    assert said_in_most(DPHistogramNB, lambda seed: (people(seed)[0] * np.nan, people(seed)[1]), "hardly any value of")


@pytest.mark.parametrize("cls", [*CLASSIFIERS, DPLogisticRegression])
def test_labels_none_of_which_is_a_class_are_said(cls):
    def otherwise(seed):
        X, y, _ = people(seed)
        return X, np.where(y > 0, "yes", "no")

    assert said_in_most(cls, otherwise, "hardly any row")


@pytest.mark.parametrize("cls", SAYS_CLASSES)
def test_a_class_without_rows_is_named(cls):
    def shifted(seed):
        X, y, _ = people(seed)
        return X, y + 1  # 1 and 2, of the classes 0 and 1

    assert said_in_most(cls, shifted, "class 0 ")
    assert not any("class 1 " in doubts_of(cls, *shifted(seed), seed) for seed in SEEDS)


def test_of_three_classes_the_one_that_is_misspelt_is_named():
    for cls in SAYS_CLASSES:
        X, y, _ = people(0)
        y = np.where(np.arange(N) % 3 == 0, 2, y)
        assert "class 3 " in doubts_of(cls, X, y, 0, classes=[0, 1, 3])
        assert doubts_of(cls, X, y, 0, classes=[0, 1, 2]) == ""


@pytest.mark.each_once
@pytest.mark.parametrize("cls", SAYS_UNITS)
@pytest.mark.parametrize("scale", [1000.0, 0.001])
def test_features_in_other_units_are_said(cls, scale):
    def scaled(seed):
        X, y, number = people(seed, n=20_000 if cls is DPPCA else N)
        return scale * (X + 100) if scale > 1 else scale * X + 0.5, target(cls, y, number)

    center = {"center": [0.5, 0.5, 3.0]} if cls is DPPCA else {}
    assert said_in_most(cls, scaled, "in the units of the data?", **center)


def test_a_feature_of_several_is_named():
    X, y, number = people(0)
    X[:, 1] = 0.001 * X[:, 1] + 0.5
    frame = pd.DataFrame(X, columns=["age", "dose", "weight"])
    for cls in (DPGaussianNB, DPLinearRegression):
        said = doubts_of(cls, frame, target(cls, y, number), 0)
        assert "'dose'" in said and "'age'" not in said


def test_a_target_in_other_units_is_said():
    def scaled(seed):
        X, _, number = people(seed, n=20_000)
        return X, 1000 * (number + 10)

    for cls in (DPLinearRegression, DPForestRegressor):
        assert said_in_most(cls, scaled, "'y'")


def test_categories_that_are_spelt_otherwise_are_said():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N)
    X = np.column_stack([rng.choice(["a", "b"], N), rng.choice(["left", "right"], N)])

    def make(second):
        return DPCategoricalNB(epsilon=30.0, **CLASSES, categories=[["a", "b"], second], random_state=0)

    assert make(["left", "right"]).fit(X, y).doubts_ == ()
    with pytest.warns(PublicInputWarning, match="hardly any value of 'x1' is a number or a declared label"):
        make(["Left", "Right"]).fit(X, y)


# ------------------------------------------------------------------ ordinary fits say nothing


ORDINARY = [x for x in LEARNERS if x.cls is not DPCategoricalNB and not str(x).endswith(("rounds", "narrowed"))]
"""The toy of the first is one; what is asked to find places where they cannot be told says so."""


@pytest.mark.each_once
@pytest.mark.parametrize("learner", ORDINARY, ids=str)
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 3.0])
def test_tables_of_three_hundred_rows_or_more_say_nothing_at_any_epsilon(learner, epsilon):
    for seed in range(4):
        X, y = toy(learner.kind, seed=seed, n=400)
        for of_n in {}, {"n": 400, "adjacency": "replace"}:
            model = learner.make(epsilon=epsilon, random_state=seed, **of_n).fit(X, y)
            assert model.doubts_ == ()


@pytest.mark.each_once
@pytest.mark.parametrize("share", [0.1, 0.9])
@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_a_rare_class_or_a_feature_of_mostly_zeros_is_no_failure(cls, share):
    for seed in range(4):
        X, y, number = people(seed)
        y = (number > np.quantile(number, share)).astype(int)
        X[:, 2] = np.where(np.arange(N) % 10 == 0, 2.0, -3.0)
        for epsilon in (0.1, 1.0, 30.0):
            assert doubts_of(cls, X, y, seed, epsilon=epsilon) == ""


# ------------------------------------------------------------------ the level


class Told:
    """What doubts ask a cohort."""

    def __init__(self, pure, n=None):
        self.pure, self.n = pure, n


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("copies", [1, 2, 20])
def test_noise_exceeds_what_is_called_far_no_more_often_than_said(pure, copies):
    rng = np.random.default_rng(0)
    draws = (rng.laplace(0, 1, (400_000, copies)) if pure else rng.normal(0, 2**0.5, (400_000, copies))).sum(axis=1)
    sd = (2 * copies) ** 0.5
    for level in (0.05, LEVEL):
        exceeded = np.mean(draws > _far(level, pure, copies) * sd)
        assert exceeded <= level + 4 * (level / 400_000) ** 0.5
        if copies == 1:
            assert exceeded >= level - 4 * (level / 400_000) ** 0.5


@pytest.mark.parametrize("pure", [True, False])
def test_what_is_as_large_as_ordinary_is_rarely_called_nothing_and_nothing_mostly_is(pure):
    rng = np.random.default_rng(1)
    noise = rng.laplace(0, 1, 400_000) if pure else rng.normal(0, 2**0.5, 400_000)
    doubts, sd = Doubts(Told(pure)), 2**0.5
    for ordinary in (1.0, 6.0, 10.0, 100.0):
        assert doubts.small(ordinary + noise, sd, ordinary).mean() <= LEVEL + 4 * (LEVEL / 400_000) ** 0.5
    assert doubts.small(noise, sd, 100.0).mean() > 0.96


def test_the_level_is_shared_among_comparisons():
    assert Doubts(Told(False), 100).small(1.0, 1.0, 4.5) < Doubts(Told(False)).small(1.0, 1.0, 4.5)


def test_a_fit_whose_warning_is_an_error_keeps_its_ledger():
    X, y, _ = people(0)
    model = DPGaussianNB(epsilon=30.0, **CLASSES, **BOX, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PublicInputWarning, match="speaks against what was declared"):
            model.fit(X, y + 5)
    assert model.ledger_.releases and model.privacy_spent_["spent"] > 0
