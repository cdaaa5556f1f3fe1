"""Models of many terms in scikit-learn's tools, with data frames whose columns hold curves."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score, train_test_split

from fdadp import FunctionalRegression, ScalarRegression, terms
from fdadp.errors import InputError
from fdadp.functional.metrics import functional_r2

skfda = pytest.importorskip("skfda")

N = 60
S, T = np.linspace(0, 2, 25), np.linspace(0, 1, 20)
CURVES = (terms.ff("X"), terms.linear("age"), terms.factor("region"))


@pytest.fixture(scope="module")
def frame():
    draw = np.random.default_rng(0)
    x = draw.normal(size=(N, 6)) @ np.array([np.cos(k * np.pi * S / 2) / (1 + k) for k in range(6)])
    age, region = draw.uniform(20, 60, N), draw.choice(list("abc"), N)
    y = x[:, :5].mean(axis=1)[:, None] * np.cos(3 * T) + age[:, None] / 40 * T + 0.1 * draw.normal(size=(N, T.size))
    table = pd.DataFrame({"age": age, "region": region, "y": y.mean(axis=1)}, index=[f"p{i}" for i in range(N)])
    table["group"] = np.where(table["y"] + 0.5 * draw.normal(size=N) > table["y"].median(), "high", "low")
    table["X"], table["Y"] = skfda.FDataGrid(x, S), skfda.FDataGrid(y, T)
    return table


def by_hand(model, frame):
    found = []
    for train, test in KFold(3).split(frame):
        fitted = clone(model).fit(frame.iloc[train])
        observed = frame["Y"].array[test]
        found.append(functional_r2(observed, fitted.predict(frame.iloc[test])))
    return found


def test_cross_validation_of_curves(frame):
    model = FunctionalRegression(CURVES)
    scores = cross_val_score(model, frame, cv=KFold(3))
    np.testing.assert_allclose(scores, by_hand(model, frame), rtol=1e-12)
    assert scores.min() > 0.9
    for y in (frame["Y"], frame["Y"].array, frame["Y"].array.data_matrix[..., 0]):
        np.testing.assert_allclose(cross_val_score(model, frame, y, cv=KFold(3)), scores, atol=0.02)


def test_cross_validation_of_numbers(frame):
    model = ScalarRegression((terms.lf("X"), terms.linear("age")))
    scores = cross_val_score(model, frame, cv=3)
    assert scores.min() > 0.9
    np.testing.assert_allclose(cross_val_score(model, frame, frame["y"], scoring="r2", cv=3), scores, rtol=1e-12)
    assert cross_val_predict(model, frame, cv=3).shape == (N,)


def test_columns_of_a_dictionary_are_no_rows_for_scikit_learn(frame):
    """It counts and takes the entries of a dictionary, before a model sees them: the page says so, and what to do."""
    model = ScalarRegression("y ~ lf(X) + age")
    X = frame["X"].array.data_matrix[..., 0]
    columns = {"X": X, "age": frame["age"].to_numpy()}
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        cross_val_score(model, columns, frame["y"].to_numpy(), cv=3)
    with pytest.raises(KeyError):
        cross_val_score(model, columns | {"y": frame["y"].to_numpy()}, cv=3)
    made = pd.DataFrame({"X": list(X), "age": columns["age"]})
    scores = cross_val_score(model, made, frame["y"].to_numpy(), cv=3)
    np.testing.assert_allclose(scores, cross_val_score(model, frame, cv=3), atol=0.02)


def test_cross_validation_of_classes(frame):
    model = ScalarRegression([terms.lf("X", k=6)], family="binomial", response="group")
    assert is_classifier(model) and not is_classifier(ScalarRegression([terms.lf("X")]))
    scores = cross_val_score(model, frame, frame["group"], scoring="roc_auc", cv=KFold(3))
    expected = []
    for train, test in KFold(3).split(frame):
        second = clone(model).fit(frame.iloc[train]).predict_proba(frame.iloc[test])[:, 1]
        expected.append(roc_auc_score(frame["group"].iloc[test] == "low", second))
    np.testing.assert_allclose(scores, expected)


def test_grid_search_over_smoothing(frame):
    train, test = train_test_split(frame, test_size=0.3, random_state=0)
    heavy = [1e12] * 6
    search = GridSearchCV(FunctionalRegression(CURVES), {"smoothing": [heavy, "reml"]}, cv=3, error_score="raise")
    search.fit(train)
    assert search.best_params_ == {"smoothing": "reml"}
    assert search.score(test) > 0.9
    assert search.best_estimator_.smoothing_parameters_.shape == (6,)


def test_clones_and_parameters(frame):
    model = FunctionalRegression(CURVES).fit(frame)
    again = clone(model)
    assert not hasattr(again, "fitted_")
    assert again.get_params() == model.get_params()
    assert again.set_params(smoothing="gcv", intercept=False).smoothing == "gcv"
    assert model.smoothing == "reml"
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(basis=3)
    with pytest.raises(ValueError, match="not fitted"):
        again.coef("age")


def test_score_of_curves_with_gaps(frame):
    model = FunctionalRegression(CURVES).fit(frame)
    y = frame["Y"].array.data_matrix[..., 0].copy()
    complete = model.score(frame, y)
    assert abs(complete - model.score(frame)) < 1e-12
    y[:, 7] = np.nan  # a point that nobody observed counts for nothing
    assert abs(model.score(frame, y) - complete) < 0.05
    with pytest.raises(InputError, match="t must lie within"):
        model.score(frame, skfda.FDataGrid(y[:, 10:], T[10:] + 1))


def test_score_of_curves_at_points_of_their_own(frame):
    draw = np.random.default_rng(1)
    y = frame["Y"].array.data_matrix[..., 0]
    points = [np.sort(draw.choice(T.size, 9, replace=False)) for _ in range(N)]
    own = skfda.FDataIrregular(
        start_indices=np.arange(N) * 9,
        points=np.concatenate([T[p] for p in points]),
        values=np.concatenate([row[p] for row, p in zip(y, points, strict=True)]),
    )
    model = FunctionalRegression(CURVES).fit(frame, own)
    seen = np.concatenate([row[p] for row, p in zip(y, points, strict=True)])
    left = np.concatenate([row[p] for row, p in zip(y - model.predict(frame, t=T), points, strict=True)])
    expected = 1 - (left**2).sum() / ((seen - seen.mean()) ** 2).sum()
    assert abs(model.score(frame, own) - expected) < 1e-12
    assert abs(model.explained_deviance_ - expected) < 1e-9
