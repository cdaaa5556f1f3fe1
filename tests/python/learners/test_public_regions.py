"""Where rows can lie, said in one of two ways by every learner, and refused before any read where it is said wrongly;
a second step on the same rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from learner_registry import LEARNERS, toy
from sklearn.pipeline import make_pipeline

from fdadp import Study
from fdadp.errors import InputError, PrivacyError, PublicParameterMissing
from fdadp.learners import DPPCA, DPGaussianNB, DPHistogramNB, DPKMeans, Numeric
from fdadp.privacy import Budget

BOX, BALL = {"bounds": (-1, 1)}, {"data_norm": 1.5, "center": [0.1, 0.0, 0.0]}
NOTHING = dict.fromkeys(("bounds", "data_norm", "features")) | {"center": 0.0}
LABELS_ALONE = {"DPCategoricalNB"}
ON_NUMBERS = [x for x in LEARNERS if x.cls.__name__ not in LABELS_ALONE]
every = pytest.mark.parametrize("learner", ON_NUMBERS, ids=str)


def made(learner, region):
    """The learner, told where rows can lie in this way alone."""
    model = learner.make()
    return model.set_params(**{k: v for k, v in NOTHING.items() if k in model.get_params()} | region)


def test_all_learners_of_numbers_take_a_box_and_a_ball():
    names = {x.cls.__name__ for x in LEARNERS if {"bounds", "data_norm", "center"} <= set(x.make().get_params())}
    assert names == {x.cls.__name__ for x in LEARNERS} - LABELS_ALONE


@every
@pytest.mark.parametrize("region", [BOX, BALL], ids=["bounds", "data_norm"])
def test_either_is_enough_for_a_fit(learner, region):
    X, y = toy(learner.kind)
    model = made(learner, region).fit(X, y)
    new = np.clip(X[:5], -1, 1)
    found = model.transform(new) if learner.kind == "transformer" else model.predict(new)
    assert len(found) == 5 and model.ledger_.private


@every
@pytest.mark.parametrize(
    ("region", "error", "text"),
    [
        ({}, PublicParameterMissing, "bounds.*data_norm"),
        (BOX | {"data_norm": 2.0}, InputError, "data_norm must be left out"),
        (BOX | {"center": 0.5}, InputError, "center must be left out"),
        ({"data_norm": 0.0}, InputError, "data_norm must be a finite number above 0"),
        ({"bounds": (1, 1)}, InputError, "low < high"),
        ({"bounds": (-1.5e308, 1.5e308)}, InputError, "low < high and of finite width"),
    ],
    ids=["neither", "both", "a middle of a box", "no radius", "no width", "a width beyond all numbers"],
)
def test_what_cannot_be_honoured_is_refused_before_any_read(learner, region, error, text):
    X, y = toy(learner.kind)
    model = made(learner, region)
    budget = Budget(model.epsilon, model.delta)
    if learner.cls is DPKMeans and {"bounds", "data_norm"} <= set(region):
        assert model.fit(X).ledger_.private  # the box says where to start, the ball where to clip
        return
    with pytest.raises(error, match=text):
        model.set_params(budget=budget).fit(X, y)
    assert budget.spent == budget.reserved == 0


@pytest.mark.parametrize("learner", [x for x in ON_NUMBERS if "features" in x.required], ids=str)
def test_bounds_stand_for_features_that_are_all_numbers(learner):
    X, y = toy(learner.kind)
    said = made(learner, {"features": [Numeric(-1, 1)] * 3}).fit(X, y)
    short = made(learner, BOX).fit(X, y)
    says = "predict_proba" if learner.kind == "classifier" else "predict"
    np.testing.assert_array_equal(getattr(said, says)(X), getattr(short, says)(X))
    with pytest.raises(InputError, match="features must be left out"):
        made(learner, BOX | {"features": Numeric(-1, 1)}).fit(X, y)


def test_a_study_holds_bounds_of_bins_to_its_columns(tmp_path):
    X, y = toy("classifier")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    Study.new(tmp_path / "s.fdadp", name="s", epsilon=3.0, unit="row", bounds={"b": (-2, 2)})
    model = DPHistogramNB(classes=[0, 1], bounds=(-1, 1), study=str(tmp_path / "s.fdadp"), unit="row")
    with pytest.raises(PrivacyError, match="bounds of b must be those of the study"):
        model.fit(frame, y)
    model.set_params(bounds=([-1, -2, -1], [1, 2, 1])).fit(frame, y)


# ------------------------------------------------------------------ a second step on the same rows


def two_steps(budget, **first):
    settings = {"epsilon": 0.6, "delta": 1e-5, "budget": budget}
    last = DPGaussianNB(classes=[0, 1], bounds=(-2, 2), random_state=1, **settings, dataset=first.get("last"))
    here = {k: v for k, v in first.items() if k != "last"}
    return make_pipeline(DPPCA(n_components=2, data_norm=2.0, random_state=0, **settings, **here), last)


@pytest.mark.parametrize("names", [{}, {"last": "people"}, {"dataset": "people"}], ids=["none", "last", "first"])
def test_the_error_of_a_second_step_says_that_both_name_the_data(names):
    X, y = toy("classifier")
    budget = Budget(1.0, 1e-5)
    with pytest.raises(PrivacyError, match=r"another data set.*steps of a Pipeline.*the first one too.*same dataset="):
        two_steps(budget, **names).fit(X, y)
    left = budget.left
    both = Budget(1.0, 1e-5)
    two_steps(both, dataset="people", last="people").fit(X, y)
    assert both.left < left < 1


def test_another_unit_or_adjacency_gets_no_hint_that_a_name_would_help():
    X, y = toy("classifier")
    budget = Budget(1.0)
    DPGaussianNB(epsilon=0.5, classes=[0, 1], bounds=(-1, 1), budget=budget, random_state=0).fit(X, y)
    other = DPGaussianNB(epsilon=0.5, classes=[0, 1], bounds=(-1, 1), budget=budget, n=120, adjacency="replace")
    with pytest.raises(PrivacyError, match="bound to another adjacency") as caught:
        other.fit(X, y)
    assert "dataset=" not in str(caught.value)
