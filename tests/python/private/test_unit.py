"""Whom a private fit protects is a public setting: what drops the groups cannot make rows of persons."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
import sklearn
from learner_registry import LEARNERS, toy
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score

from fdadp import DPAFF, AdditiveFunctionOnFunction, Privacy, PrivateFPCA, PrivateMean
from fdadp.errors import InputError, PrivacyError
from fdadp.learners import DPGaussianNB
from fdadp.privacy import Budget

every = pytest.mark.parametrize("learner", LEARNERS, ids=str)
PERSON, ROW = "person (all rows with one id in persons)", "row (a whole person only where nobody has several)"


def naive_bayes(**settings):
    return DPGaussianNB(**{"epsilon": 1.0, "classes": [0, 1], "bounds": (-1, 1), "random_state": 0, **settings})


@every
def test_learners_refuse_to_take_rows_for_persons_before_they_read(learner):
    X, y = toy(learner.kind)
    settings = learner.make()
    budget = Budget(settings.epsilon, settings.delta)
    with pytest.raises(PrivacyError, match="groups must be the person id"):
        learner.make(unit="person", budget=budget).fit(X, y)
    refusal = "groups must be left out" if learner.grouped else "wants one row a person"
    with pytest.raises((PrivacyError, InputError), match=refusal):
        learner.make(unit="row", budget=budget).fit(X, y, groups=np.arange(len(X)))
    with pytest.raises(PrivacyError, match="unit must be one of row, person"):
        learner.make(unit="patient", budget=budget).fit(X, y)
    assert budget.spent == budget.reserved == 0


@pytest.mark.parametrize("unit", [None, "row", "person"])
def test_the_ledger_says_the_unit(unit):
    X, y = toy("classifier")
    groups = np.arange(len(X)) // 2
    if unit != "person":
        model = naive_bayes(unit=unit).fit(X, y)
        assert model.ledger_.details["unit"] == model.privacy_spent_["unit"] == ROW
        assert f"Protected unit: {ROW}" in model.ledger_.statement
    if unit != "row":
        model = naive_bayes(unit=unit).fit(X, y, groups=groups)
        assert model.ledger_.details["unit"] == model.privacy_spent_["unit"] == PERSON


@pytest.mark.parametrize("cls", [AdditiveFunctionOnFunction, PrivateMean, PrivateFPCA])
@pytest.mark.parametrize("chunks", [False, True])
def test_curves_too(cls, chunks):
    X, Y = np.random.default_rng(0).normal(size=(2, 60, 12))
    t = np.linspace(0, 1, 12)
    budget = Budget(1.0, 1e-6)
    privacy = Privacy(1.0, 1e-6, n=60, budget=budget)
    pair = cls is AdditiveFunctionOnFunction
    own = {"mechanism": DPAFF(allow_useless=True)} if pair else {"allow_useless": True}
    own["bounds"] = {"X": (-4, 4), "Y": (-8, 8)} if pair else (-8, 8)

    def fit(unit, groups):
        model = cls(privacy=dataclasses.replace(privacy, unit=unit), **own)
        if chunks:
            grids = {"s": t, "t": t} if pair else {"t": t}
            return model.fit_chunks([(X, Y)] if pair else [Y], groups=groups, **grids)
        return model.fit(*((X, Y) if pair else (Y,)), groups=groups)

    with pytest.raises(PrivacyError, match="groups must be the person id"):
        fit("person", None)
    with pytest.raises(PrivacyError, match="groups must be left out"):
        fit("row", np.arange(60) // 3)
    assert budget.spent == budget.reserved == 0


@pytest.mark.filterwarnings("ignore:what was released speaks against")  # of so few persons noise hides the number
def test_tools_that_drop_groups_are_refused_and_with_routing_they_fit_by_person():
    """As users have it: GridSearchCV(...).fit(X, y, groups=ids) keeps the ids for its own splits only."""
    X, y = toy("classifier")
    ids = np.arange(len(X)) // 4
    budget = Budget(50.0)
    by_person = naive_bayes(unit="person", budget=budget)
    grid = {"var_floor": [1e-4, 1e-2]}
    with pytest.raises(PrivacyError, match="set_fit_request"):
        GridSearchCV(by_person, grid, cv=GroupKFold(2), error_score="raise").fit(X, y, groups=ids)
    with pytest.raises(PrivacyError, match="set_fit_request"):
        cross_val_score(by_person, X, y, cv=2, error_score="raise")
    assert budget.spent == budget.reserved == 0
    with sklearn.config_context(enable_metadata_routing=True):
        asks = naive_bayes(unit="person").set_fit_request(groups=True)
        search = GridSearchCV(asks, grid, cv=GroupKFold(2)).fit(X, y, groups=ids)
        scores = cross_val_score(asks, X, y, cv=GroupKFold(2), params={"groups": ids})
    assert search.best_estimator_.ledger_.details["unit"] == PERSON
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("integer", [np.int64, np.uint8])
def test_integers_of_numpy_are_stored_as_integers(integer):
    privacy = Privacy(1.0, n=integer(100), random_state=integer(3))
    assert (type(privacy.n), type(privacy.random_state)) == (int, int)
    for bad in (True, 1.5, "3", 0):
        with pytest.raises(PrivacyError, match="n must be a positive integer"):
            Privacy(1.0, n=bad)
    for bad in (True, 1.5, "3", -1):
        with pytest.raises(PrivacyError, match="random_state must be a non-negative integer"):
            Privacy(1.0, random_state=bad)


def test_a_saved_model_states_what_it_was_fitted_with(tmp_path):
    """Settings changed after the fit are for the next one: a reloaded model used to claim the smaller epsilon."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, 400, 12))
    spent = Privacy(1.0, 1e-6, n=np.int64(400), random_state=np.int64(0))
    bounds = {"X": (-4, 4), "Y": (-8, 8)}
    model = AdditiveFunctionOnFunction(privacy=spent, bounds=bounds).fit(X, Y)
    model.set_params(bounds={"X": (-1, 1), "Y": (-1, 1)}, mechanism="moments")
    for later in (dataclasses.replace(spent, epsilon=0.2), None):
        again = AdditiveFunctionOnFunction.load(model.set_params(privacy=later).save(tmp_path / "model.npz"))
        assert again.privacy_ == dataclasses.replace(spent, budget=None)
        assert again.ledger_ == model.ledger_
        assert (again.bounds, again.mechanism) == (bounds, "dp-aff")


def test_a_fit_on_a_shared_budget_can_be_saved_and_its_copy_cannot_spend():
    """A live budget in an estimator made ``pickle.dumps`` raise, after all was spent."""
    X, y = toy("classifier")
    budget = Budget(2.0)
    model = naive_bayes(budget=budget).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    with pytest.raises(PrivacyError, match="belongs to the process"):
        again.fit(X, y)
    curves = AdditiveFunctionOnFunction(privacy=Privacy(1.0, 1e-6, budget=Budget(1.0, 1e-6)))
    assert pickle.loads(pickle.dumps(curves)).privacy.budget.total == curves.privacy.budget.total


@every
def test_what_could_not_be_saved_is_refused_before_the_budget_is_spent(learner):
    X, y = toy(learner.kind)
    settings = learner.make()
    budget = Budget(settings.epsilon, settings.delta)
    model = learner.make(budget=budget, dataset=Name("rows"))
    with pytest.raises(InputError, match="dataset must be something that can be pickled"):
        model.fit(X, y)
    assert budget.spent == budget.reserved == 0


class Name(str):
    """A text that cannot be pickled."""

    def __reduce_ex__(self, protocol):
        raise TypeError("not this one")
