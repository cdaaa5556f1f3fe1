"""Families, weights and offsets of the public regressions; that fits are refund's and mgcv's, r_bridge asks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from skfda import FDataGrid

from fdadp import FunctionalRegression, ScalarRegression, terms
from fdadp.errors import InputError

S, T = np.linspace(0, 1, 21), np.linspace(0, 1, 15)


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    waves = np.array([np.ones(S.size), np.sin(2 * np.pi * S), np.cos(2 * np.pi * S)])
    data = {"X": rng.normal(size=(n, 3)) @ waves, "x": rng.normal(size=n)}
    eta = (data["X"] @ np.sin(np.pi * S) / S.size)[:, None] * np.cos(T) + 0.5 * data["x"][:, None] * T
    data |= {"eta": eta, "counts": rng.poisson(np.exp(eta)).astype(float)}
    data["hits"] = (rng.uniform(size=eta.shape) < 1 / (1 + np.exp(-eta))).astype(float)
    data["times"] = rng.gamma(4.0, np.exp(eta) / 4)
    data["level"] = eta + 0.3 * rng.normal(size=eta.shape)
    return data


TERMS = [terms.ff("X"), terms.linear("x")]
GRIDS = {"X": S, **dict.fromkeys(("counts", "hits", "times", "level"), T)}
RESPONSE = {"poisson": "counts", "binomial": "hits", "gamma": "times", "gaussian": "level"}


def fitted(family, data, smoothing="reml", **kwargs):
    model = FunctionalRegression(TERMS, response=RESPONSE[family], family=family, smoothing=smoothing)
    return model.fit(data, grids=GRIDS, **kwargs)


@pytest.mark.parametrize("family", RESPONSE)
def test_means_are_near_the_truth(family):
    data = table()
    model = fitted(family, data)
    eta = model.predict(data, type="link")
    assert np.mean((eta - data["eta"]) ** 2) < 0.05 * np.var(data["eta"]) + 0.005
    mean = model.fitted_.family.mean(eta)
    assert_allclose(model.predict(data), mean)
    assert_allclose(model.fitted_values_, mean)
    assert_allclose(model.residuals_, data[RESPONSE[family]] - mean)
    assert_allclose(model.predict_se(data), model.predict_se(data, type="link") * model.fitted_.family.mean_slope(eta))
    assert 0 < model.score(data) < 1
    assert_allclose(model.explained_deviance_, 1 - model.deviance_ / model.null_deviance_)
    assert "Family" in str(model.summary())


@pytest.mark.parametrize("family", ["poisson", "binomial", "gaussian"])
def test_standard_errors_hold_the_truth(family):
    """Pointwise 95 % intervals of the linear predictor, over cohorts with independent errors."""
    inside = []
    for seed in range(5):
        data = table(seed=seed)
        model = fitted(family, data)
        away = np.abs(model.predict(data, type="link") - data["eta"])
        inside.append(np.mean(away <= 1.96 * model.predict_se(data, type="link", kind="iid")))
    assert 0.88 < np.mean(inside) <= 1


@pytest.mark.parametrize("family", RESPONSE)
def test_rows_that_were_not_observed_do_not_matter(family):
    """A gap is what a weight of 0 is; and rows twice are rows of weight 2."""
    data = table(n=40)
    name = RESPONSE[family]
    smoothing = [2.0, 0.3, 5.0, 1.0]
    rng = np.random.default_rng(1)
    gaps = rng.uniform(size=data[name].shape) < 0.2
    gaps[3] = True  # a row without any observation
    with_gaps = {**data, name: np.where(gaps, np.nan, data[name])}
    a = fitted(family, with_gaps, smoothing)
    b = fitted(family, data, smoothing, weights=np.where(gaps, 0.0, 1.0))
    assert_allclose(a.fitted_values_, b.fitted_values_, rtol=1e-9)
    assert_allclose([a.edf_, a.criterion_, a.sigma2_], [b.edf_, b.criterion_, b.sigma2_], rtol=1e-9)
    assert np.isfinite(a.fitted_values_).all()
    assert np.isnan(a.residuals_[gaps]).all()


def test_weights_are_repetitions():
    data = table(n=30)
    twice = {name: np.concatenate((v, v[:10])) for name, v in data.items()}
    weights = np.where(np.arange(30) < 10, 2.0, 1.0)
    for family in ("gaussian", "poisson", "binomial"):
        smoothing = [2.0, 0.3, 5.0, 1.0]
        a = fitted(family, data, smoothing, weights=weights)
        b = fitted(family, twice, smoothing)
        # The mean curve and the bases are the same, for both have the same grid and range.
        assert_allclose(a.fitted_values_, b.fitted_values_[:30], rtol=1e-7)
        assert_allclose(a.deviance_, b.deviance_, rtol=1e-8)


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_offsets(family):
    """An offset in the linear predictor is taken off the response, or off its logarithm."""
    data = table()
    rng = np.random.default_rng(2)
    data["added"] = rng.uniform(0, 1, size=len(data["x"]))
    if family == "gaussian":
        data["level"] = data["level"] + data["added"][:, None]
    else:
        data["counts"] = rng.poisson(np.exp(data["eta"] + data["added"][:, None])).astype(float)
    model = fitted(family, data, offset="added")
    eta = model.predict(data, type="link")
    assert np.mean((eta - data["eta"]) ** 2) < 0.05 * np.var(data["eta"]) + 0.005
    same = fitted(family, data, offset=np.repeat(data["added"][:, None], T.size, axis=1))
    assert_allclose(same.fitted_values_, model.fitted_values_, rtol=1e-6)
    assert_allclose(model.predict(data, type="link", offset="added"), eta + data["added"][:, None])
    assert_allclose(model.predict(data, offset=data["added"]), model.fitted_values_)


def test_many_blocks_are_one(monkeypatch):
    from fdadp.terms import records

    data = table(n=50)
    data["counts"][0, 2] = np.nan
    a = fitted("poisson", data)
    monkeypatch.setattr(records, "RECORDS_AT_A_TIME", 7)
    b = fitted("poisson", data)
    assert_allclose(a.fitted_values_, b.fitted_values_, rtol=1e-5)
    assert_allclose(a.criterion_, b.criterion_, rtol=1e-8)


def test_fdatagrids_come_back_as_they_were():
    data = table()
    given = {"X": FDataGrid(data["X"], S), "x": data["x"], "counts": FDataGrid(data["counts"], T)}
    model = FunctionalRegression(TERMS, response="counts", family="poisson").fit(given)
    assert isinstance(model.fitted_values_, FDataGrid)
    assert_allclose(model.predict(given).data_matrix[..., 0], fitted("poisson", data).fitted_values_, rtol=1e-6)


# --- numbers ---


def stays(n=400, seed=0):
    rng = np.random.default_rng(seed)
    waves = np.array([np.ones(S.size), np.sin(2 * np.pi * S), np.cos(2 * np.pi * S)])
    X, age = rng.normal(size=(n, 3)) @ waves, rng.normal(size=n)
    eta = 2 * X @ np.sin(np.pi * S) / S.size + 0.8 * age - 0.5
    died = rng.uniform(size=n) < 1 / (1 + np.exp(-eta))
    return {"X": X, "age": age, "died": died, "eta": eta, "counts": rng.poisson(np.exp(eta / 2)).astype(float)}


def logistic(data, response="died", **kwargs):
    model = ScalarRegression([terms.lf("X"), terms.linear("age")], response=response, family="binomial")
    return model.fit(data, grids={"X": S}, **kwargs)


@pytest.mark.parametrize(
    "labels", [None, np.array([False, True]), np.array(["alive", "dead"]), np.array([0, 1])], ids=str
)
def test_two_classes(labels):
    data = stays()
    given = {**data, "died": data["died"] if labels is None else labels[data["died"].astype(int)]}
    model = logistic(given)
    p = model.predict_proba(given)
    assert p.shape == (400, 2)
    assert_allclose(p.sum(axis=1), 1)
    assert_allclose(p[:, 1], model.predict(given))
    assert_allclose(p[:, 1], model.fitted_values_)
    assert list(model.classes_) == list([0, 1] if labels is None else labels)
    assert (model.predict(given, type="class") == model.classes_[(p[:, 1] > 0.5).astype(int)]).all()
    assert np.corrcoef(model.predict(given, type="link"), data["eta"])[0, 1] > 0.9
    assert 0 < model.score(given) < 1
    assert set(model.predict(given, type="terms")) == {"(Intercept)", "lf(X)", "age"}


def test_categories_and_frames():
    data = stays()
    frame = pd.DataFrame({"age": data["age"], "died": pd.Categorical(np.where(data["died"], "yes", "no"))})
    model = ScalarRegression([terms.s("age")], response="died", family="binomial").fit(frame)
    assert list(model.classes_) == ["no", "yes"]
    assert model.predict(frame).shape == (400,)


def test_shares_with_numbers_of_trials_are_grouped_responses():
    rng = np.random.default_rng(0)
    x = np.repeat(np.linspace(-1, 1, 20), 6)
    y = (rng.uniform(size=x.size) < 1 / (1 + np.exp(-2 * x))).astype(float)
    single = ScalarRegression([terms.linear("x")], family="binomial").fit({"x": x, "y": y})
    grouped = {"x": x[::6], "y": y.reshape(-1, 6).mean(axis=1), "n": np.full(20, 6.0)}
    model = ScalarRegression([terms.linear("x")], family="binomial").fit(grouped, weights="n")
    assert_allclose(model.predict(grouped), single.predict(grouped), rtol=1e-7)
    assert_allclose(model.predict_se(grouped, kind="iid"), single.predict_se(grouped, kind="iid"), rtol=1e-7)
    assert len(model.classes_) == 2


def test_files_keep_families(tmp_path):
    data = stays()
    given = {**data, "died": np.where(data["died"], "dead", "alive")}
    model = logistic(given)
    again = ScalarRegression.load(model.save(tmp_path / "model"))
    assert_allclose(again.predict_proba(given), model.predict_proba(given))
    assert list(again.classes_) == ["alive", "dead"]
    assert again.family == "binomial"
    curves = fitted("poisson", table())
    again = FunctionalRegression.load(curves.save(tmp_path / "curves"))
    assert_allclose(again.predict(table()), curves.predict(table()))


# --- what cannot be ---


@pytest.mark.parametrize(
    ("change", "settings", "kwargs", "message"),
    [
        ({}, {"family": "tweedie"}, {}, "family must be one of 'gaussian', 'binomial', 'poisson', 'gamma', got 'twee"),
        ({"y": [0, 1, 2, -1]}, {"family": "poisson"}, {}, "y must have counts of 0 or more .* got -1 in row 3"),
        ({"y": [0, 1, 2, 0]}, {"family": "gamma"}, {}, "numbers above 0 .* got 0 in row 0"),
        ({"y": [0, 1, 2, 1]}, {"family": "binomial"}, {}, "0 or 1 .* got 2 in row 2"),
        ({"y": [0, 0, 0, 0]}, {"family": "binomial"}, {}, "both 0 and 1 .* got only 0"),
        ({"y": [0, 0, 0, 0]}, {"family": "poisson"}, {}, "a count above 0 .* got only 0"),
        ({"y": list("abca")}, {"family": "binomial"}, {}, "y must have two classes .* got 3: 'a', 'b', 'c'"),
        ({"y": list("aaaa")}, {"family": "binomial"}, {}, "two classes .* got 1: 'a'"),
        ({"y": list("abab")}, {}, {}, "y must hold numbers for family='gaussian', got labels such as 'a'"),
        ({}, {"family": "poisson", "smoothing": "gcv"}, {}, "smoothing .* 'reml' or smoothing parameters, got 'gcv'"),
        ({}, {}, {"weights": [1, 1, -1, 1]}, "weights must not be negative, got -1 in row 2"),
        ({}, {}, {"weights": [0, 0, 0, 0]}, "weights must not all be 0"),
        ({}, {}, {"weights": [1, 1]}, r"weights must be of shape \(4,\) or \(4, 1\), got \(2,\)"),
        ({}, {}, {"weights": "w"}, "must have the column 'w'"),
        ({}, {}, {"offset": [0, np.nan, 0, 0]}, "offset must be finite, got another number in row 1"),
    ],
)
def test_bad_responses_weights_and_offsets(change, settings, kwargs, message):
    data = {"x": np.array([0.0, 1.0, 2.0, 4.0]), "y": [1, 3, 2, 4], **change}
    model = ScalarRegression([terms.linear("x")], **settings)
    with pytest.raises(InputError, match=message):
        model.fit(data, **kwargs)


def test_what_only_some_families_have():
    data = stays()
    model = logistic(data)
    with pytest.raises(InputError, match=r"predict_interval is there for family='gaussian', got 'binomial'"):
        model.predict_interval(data)
    counts = ScalarRegression([terms.lf("X")], response="counts", family="poisson").fit(data, grids={"X": S})
    with pytest.raises(InputError, match=r"predict_proba is there for family='binomial', got 'poisson'"):
        counts.predict_proba(data)
    with pytest.raises(InputError, match=r"type='class' is there for family='binomial'"):
        counts.predict(data, type="class")
    assert not hasattr(counts, "classes_")
    with pytest.raises(InputError, match="type must be"):
        counts.predict(data, type="odds")
