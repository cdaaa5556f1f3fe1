"""Private fits that nothing adds up, and scores without noise, are said to be so; once."""

from __future__ import annotations

import gc
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from fdadp import AdditiveFunctionOnFunction, FunctionalRegression, Privacy, PrivateFPCA, PrivateMean, ScalarRegression
from fdadp.errors import NotAccountedWarning
from fdadp.learners import DPGaussianNB, DPKMeans, DPLinearRegression
from fdadp.privacy import Budget, Ledger

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (200, 3))
Y = (X[:, 0] > 0).astype(int)
FITTED = "fitted before"
SCORE = "this number is not"


def model(**settings):
    return DPGaussianNB(**{"epsilon": 1.0, "classes": [0, 1], "bounds": (-1, 1), **settings})


def told(call):
    """Texts of the warnings of a call that something is not accounted for; what noise may bring about is not asked."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if issubclass(w.category, NotAccountedWarning)]


def fresh():
    """Rows that nobody has fitted."""
    return X.copy(), Y.copy()


def test_the_second_fit_of_an_estimator_warns_once():
    one = model()
    assert told(lambda: one.fit(*fresh())) == []
    assert [FITTED in text for text in told(lambda: one.fit(*fresh()))] == [True]
    assert told(lambda: one.fit(*fresh())) == []
    assert one.ledger_.others == 2
    assert "for this fit alone; 2 fits before it are not accounted for" in one.ledger_.headline
    assert Ledger.from_json(one.ledger_.to_json()) == one.ledger_


def test_the_warning_names_the_line_that_fits():
    """It named a line of fdadp, which the user can do nothing about."""
    one = model().fit(*fresh())
    with pytest.warns(NotAccountedWarning) as caught:
        one.fit(*fresh())
    assert {warning.filename for warning in caught if warning.category is NotAccountedWarning} == {__file__}


def test_clones_are_of_the_family_others_are_not():
    one = model()
    assert told(lambda: clone(one).fit(*fresh())) == []
    assert len(told(lambda: clone(clone(one)).fit(*fresh()))) == 1
    assert told(lambda: model().fit(*fresh())) == []


def test_the_same_rows_warn_whoever_fits_them():
    x, y = fresh()
    assert told(lambda: model().fit(x, y)) == []
    assert len(told(lambda: DPKMeans(epsilon=1.0, n_clusters=2, bounds=(-1, 1)).fit(x))) == 1


def test_parts_of_one_array_are_different_rows():
    """Owners' rows cut out of one array, as simulations have them."""
    x, y = fresh()
    assert told(lambda: [model().fit(x[:100], y[:100]), model().fit(x[100:], y[100:])]) == []


@pytest.fixture
def only_own_garbage():
    """Collections look at nothing that was there before: after hundreds of tests that takes half a second each."""
    gc.freeze()
    yield
    gc.unfreeze()


def test_rows_that_took_the_place_of_others_in_memory_are_others(only_own_garbage):
    for _ in range(20):
        x, y = fresh()
        assert told(lambda x=x, y=y: model().fit(x, y)) == []
        del x, y
        gc.collect()


def test_names_of_data_decide():
    one = model(dataset="this test, first half")
    x, y = fresh()
    assert told(lambda: one.fit(x, y)) == []
    assert told(lambda: one.set_params(dataset="this test, second half").fit(x, y)) == []
    assert len(told(lambda: clone(one).fit(*fresh()))) == 1


def test_a_shared_budget_and_simulations_are_silent():
    x, y = fresh()
    budget = Budget(3.0)
    one = model(budget=budget, dataset="x")
    assert told(lambda: [one.fit(x, y), one.fit(x, y), clone(one).fit(x, y)]) == []
    assert one.ledger_.others == 0
    seeded = model(random_state=0)
    assert told(lambda: [seeded.fit(x, y), clone(seeded).fit(x, y), seeded.score(x, y)]) == []


@pytest.mark.filterwarnings("ignore::fdadp.errors.NotAccountedWarning")
def test_the_best_of_a_grid_claims_its_own_fit_only():
    """It said "differentially private end to end, epsilon = 1" after seven fits and choices by exact scores."""
    x, y = fresh()
    search = GridSearchCV(model(), {"var_floor": [1e-4, 1e-2, 0.1]}, cv=2).fit(x, y)
    ledger = search.best_estimator_.ledger_
    assert ledger.others == 6
    assert "alone; 6 fits before it are not accounted for" in ledger.headline.replace("for this fit ", "")


def test_a_grid_warns_of_its_fits_and_of_its_scores_once_each():
    x, y = fresh()
    texts = told(lambda: GridSearchCV(model(), {"var_floor": [1e-4, 1e-2]}, cv=2).fit(x, y))
    assert sorted(FITTED in text for text in texts) == [False, True]
    assert sum(SCORE in text for text in texts) == 1
    texts = told(lambda: cross_val_score(model(), x, y, cv=2))
    assert sorted(FITTED in text for text in texts) == [False, True]


@pytest.mark.parametrize(
    ("one", "y"),
    [
        (model(), Y),
        (DPLinearRegression(epsilon=1.0, bounds=(-1, 1), bounds_y=(0, 1)), Y.astype(float)),
        (DPKMeans(epsilon=1.0, n_clusters=2, bounds=(-1, 1)), None),
    ],
    ids=["classifier", "regressor", "clusters"],
)
def test_a_score_says_that_it_is_not_private(one, y):
    one.fit(X.copy(), y)
    assert [SCORE in text for text in told(lambda: one.score(X, y))] == [True]
    assert told(lambda: one.score(X, y)) == []


def test_curves_too():
    curves = RNG.normal(size=(2, 400, 12))
    privacy = Privacy(1.0, 1e-6, n=400)
    one = AdditiveFunctionOnFunction(privacy=privacy, bounds={"X": (-4, 4), "Y": (-8, 8)})
    assert told(lambda: one.fit(*curves)) == []
    assert [SCORE in text for text in told(lambda: one.score(*curves))] == [True]
    assert len(told(lambda: clone(one).fit(*curves))) == 1
    y = curves[1].copy()
    assert told(lambda: PrivateMean(privacy=privacy, bounds=(-8, 8)).fit(y)) == []
    assert len(told(lambda: PrivateFPCA(n_components=1, privacy=privacy, bounds=(-8, 8)).fit(y))) == 1
    shared = {"privacy": Privacy(1.0, 1e-6, n=400, budget=Budget(3.0, 1e-6)), "bounds": (-8, 8)}
    z = y.copy()
    assert told(lambda: [PrivateMean(**shared).fit(z), PrivateFPCA(n_components=1, **shared).fit(z)]) == []


@pytest.mark.parametrize("kind", [FunctionalRegression, ScalarRegression])
def test_models_of_terms_too(kind):
    """Models that had only the Gaussian family in common warned of each other, and a clone's scores were silent."""

    def one():
        y = {"y": (-4, 4)} if kind is ScalarRegression else {"Y": (-8, 8)}
        return kind(f"{min(y)} ~ z", privacy=Privacy(1.0, 1e-6, n=400), bounds={"z": (-4, 4), **y})

    def people():
        return {"z": RNG.normal(size=400), "y": RNG.normal(size=400), "Y": RNG.normal(size=(400, 12))}

    model, data = one(), people()
    assert told(lambda: [model.fit(data), one().fit(people())]) == []
    assert [SCORE in text for text in told(lambda: model.score(data))] == [True]
    assert len(told(lambda: clone(model).fit(people()))) == 1
    assert len(told(lambda: one().fit(data))) == 1
