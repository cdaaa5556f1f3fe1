"""Ordered categories; that fits are mgcv's ``ocat``, r_bridge asks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar
from scipy.stats import logistic
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, cross_val_score

from fdadp import Budget, FunctionalRegression, Privacy, ScalarRegression, inference, terms
from fdadp.errors import IdentificationWarning, InputError
from fdadp.solve.form.families_by_name import family_of
from fdadp.solve.form.ordered_categories import Ordered, one_constant, probabilities

CUTS = (-1.0, 0.4, 2.0)
LABELS = ["none", "some", "much", "most"]
S = np.linspace(0, 1, 21)


def answers(n=300, seed=0, cuts=CUTS):
    """Categories 1 to 4 of a latent logistic variable."""
    rng = np.random.default_rng(seed)
    x, z = rng.uniform(size=n), rng.normal(size=n)
    eta = 1.5 * np.sin(6 * x) + 0.5 * z
    y = 1.0 + np.digitize(eta + rng.logistic(size=n), cuts)
    return {"x": x, "z": z, "y": y, "eta": eta}


def fitted(data, family="ordered", **settings):
    return ScalarRegression("y ~ s(x, bs='ps') + z", family=family, **settings).fit(data)


def in_words(data):
    frame = pd.DataFrame(data)
    return frame.assign(y=pd.Categorical.from_codes(frame["y"].astype(int) - 1, LABELS, ordered=True))


def directly(y, eta, cuts):
    ends = np.concatenate(([-np.inf], cuts, [np.inf]))
    return logistic.cdf(ends[y.astype(int)] - eta) - logistic.cdf(ends[y.astype(int) - 1] - eta)


# --- the family ---


def test_derivatives_in_the_predictor_and_in_distances_of_cut_points():
    y, eta, h = np.repeat(np.arange(1.0, 6), 4), np.tile([-3.0, -0.4, 1.1, 5.0], 5), 1e-5
    family = Ordered((-1.0, -0.2, 1.5, 1.7))
    assert_allclose(np.exp(-family.half_deviance(y, eta)), directly(y, eta, family.known), rtol=1e-11)
    at, up, down = (family.working(y, eta + step) for step in (0.0, h, -h))
    rise = family.half_deviance(y, eta + h) - family.half_deviance(y, eta - h)
    assert_allclose(at.residual, -rise / (2 * h), atol=1e-9)
    assert_allclose(at.weight, -(up.residual - down.residual) / (2 * h), atol=1e-9)
    assert_allclose(at.slope, (up.weight - down.weight) / (2 * h), atol=1e-9)
    assert (at.weight > 0).all()  # log-concave
    point, slopes = np.log(np.diff(family.known)), family.slopes(y, eta)
    for j, axis in enumerate(np.eye(3) * h):
        more, less = family.at(point + axis), family.at(point - axis)
        rise = more.half_deviance(y, eta) - less.half_deviance(y, eta)
        assert_allclose(slopes.loss[j], rise / (2 * h), atol=1e-8)
        most, least = more.working(y, eta), less.working(y, eta)
        assert_allclose(slopes.residual[j], (most.residual - least.residual) / (2 * h), atol=1e-9)
        assert_allclose(slopes.weight[j], (most.weight - least.weight) / (2 * h), atol=1e-9)


def test_far_from_its_category_a_response_has_finite_derivatives():
    family, eta = Ordered(CUTS), np.array([-800.0, 800.0])
    for y in (1.0, 2.0, 4.0):
        at = family.working(np.full(2, y), eta)
        assert np.isfinite(family.half_deviance(np.full(2, y), eta)).all()
        assert np.isfinite([at.residual, at.weight, at.slope, at.fisher]).all()


def test_means_are_those_of_the_numbers_of_categories():
    family, eta = Ordered(CUTS), np.array([-30.0, -2.0, 0.3, 4.0, 9.0])
    chance, numbers = probabilities(family, eta), np.arange(1.0, 5)
    assert_allclose(chance.sum(axis=1), 1, rtol=1e-14)
    for k in range(4):
        assert_allclose(chance[:, k], directly(np.full(5, k + 1.0), eta, family.known), rtol=1e-9, atol=1e-15)
    mean = family.mean(eta)
    assert_allclose(mean, chance @ numbers)
    assert_allclose(family.variance(mean), chance @ numbers**2 - mean**2, atol=1e-12)
    assert_allclose(family.mean_slope(eta), (family.mean(eta + 1e-6) - family.mean(eta - 1e-6)) / 2e-6, atol=1e-9)
    assert_allclose(family.predictor(mean)[1:], eta[1:], rtol=1e-10)
    assert_allclose(family.predictor(np.array([1.0, 4.0])), [-np.inf, np.inf])


def test_one_constant_is_the_likeliest():
    data, family = answers(), Ordered(CUTS)
    weights = np.random.default_rng(1).integers(0, 3, 300).astype(float)
    found = minimize_scalar(lambda eta: weights @ family.half_deviance(data["y"], np.full(300, eta)), tol=1e-12)
    assert_allclose(one_constant(family, data["y"], weights), found.x, rtol=1e-6)


# --- fits ---


def test_without_smooths_it_is_the_proportional_odds_model():
    """Statsmodels maximises the likelihood in cut points too; at its cut points coefficients are the same."""
    from statsmodels.miscmodels.ordinal_model import OrderedModel

    data = answers()
    rows = np.column_stack([data["x"], data["z"]])
    theirs = OrderedModel(data["y"], rows, distr="logit").fit(method="bfgs", gtol=1e-7, disp=False)
    cuts = theirs.model.transform_threshold_params(theirs.params)[1:-1]
    own = ScalarRegression("y ~ x + z", family=Ordered(tuple(cuts))).fit(data)
    slopes = [own.coef(name)["value"].iloc[0] for name in ("x", "z")]
    assert_allclose(slopes, theirs.params[:2], rtol=1e-5)
    assert_allclose(own.loglik_, theirs.llf, rtol=1e-9)
    assert_allclose(own.predict_proba(data), theirs.predict(rows), atol=1e-6)


def test_cut_points_are_where_reml_is_lowest():
    """The fit is one of those that are given cut points, and no other has a lower criterion."""
    data = answers()
    model = fitted(data)
    cuts = model.fitted_.family.known
    assert cuts[0] == -1
    assert_allclose(cuts, CUTS, atol=0.5)
    given = fitted(data, Ordered(tuple(cuts)))
    assert_allclose(given.criterion_, model.criterion_, rtol=1e-10)
    assert_allclose(given.fitted_values_, model.fitted_values_, rtol=1e-6)
    point, step = np.log(np.diff(cuts)), 1e-3
    for axis in np.eye(2):
        up, down = (fitted(data, Ordered().at(point + sign * step * axis)).criterion_ for sign in (1, -1))
        assert given.criterion_ < min(up, down)
        assert abs(up - down) < 2e-3 * (up + down - 2 * given.criterion_)  # the minimum is within 1e-6
    assert model.aic_ - given.aic_ > 3.99  # two cut points count where they were chosen, and what follows them
    said = " ".join(str(model.summary()).split())
    assert "ordered(-1, " in said and "REML chose the others" in said
    assert "REML chose" not in str(given.summary())
    assert "ordered(-1, " in model.summary().as_html()


def test_probabilities_are_near_the_truth():
    away = []
    for seed in range(5):
        data = answers(n=1000, seed=seed)
        model = fitted(data)
        chance, truth = model.predict_proba(data), probabilities(Ordered(CUTS), data["eta"])
        away.append(np.sqrt(np.mean((chance - truth) ** 2)))
        # what was predicted comes as often as predicted
        assert_allclose(chance.mean(axis=0), np.bincount(data["y"].astype(int))[1:] / 1000, atol=0.01)
    assert np.mean(away) < 0.025


@pytest.mark.statistics
def test_standard_errors_hold_the_truth():
    """95 % intervals of expected numbers and of a slope, in 40 cohorts; they take cut points as known."""
    x = np.linspace(0.02, 0.98, 25)
    new = {"x": x, "z": np.zeros(25)}
    truth, inside, slope = Ordered(CUTS).mean(1.5 * np.sin(6 * x)), [], []
    for seed in range(40):
        model = fitted(answers(seed=seed))
        inside.append(np.abs(model.predict(new) - truth) < 1.96 * model.predict_se(new))
        row = model.coef("z", se=True).iloc[0]
        slope.append(row["lower"] < 0.5 < row["upper"])
    assert 0.89 < np.mean(inside) < 0.98
    assert np.mean(slope) > 0.87


def test_numbers_and_ordered_categoricals_are_the_same():
    data = answers()
    model, frame = fitted(data), in_words(data)
    named = fitted(frame.set_axis([f"p{i}" for i in range(300)]))
    assert_allclose(named.predict_proba(frame), model.predict_proba(data))
    assert list(model.classes_) == [1, 2, 3, 4]
    assert list(named.classes_) == LABELS
    most = model.predict_proba(data).argmax(axis=1)
    assert (np.asarray(named.predict(frame, type="class")) == np.array(LABELS)[most]).all()
    assert (model.predict(data, type="class") == most + 1).all()
    assert_allclose(model.predict(data), model.predict_proba(data) @ [1, 2, 3, 4])
    assert_allclose(model.fitted_values_, model.predict(data))
    assert_allclose(model.residuals_, data["y"] - model.fitted_values_)
    assert_allclose(named.score(frame), model.score(data))
    assert_allclose(model.score(data), model.explained_deviance_)
    se = model.predict_se(data, type="link") * model.fitted_.family.mean_slope(model.predict(data, type="link"))
    assert_allclose(model.predict_se(data), se)
    h, eta = 1e-5, model.predict(data, type="link")
    rise = probabilities(model.fitted_.family, eta + h) - probabilities(model.fitted_.family, eta - h)
    chance_se = model.predict_se(data, type="link")[:, None] * np.abs(rise) / (2 * h)
    assert_allclose(model.predict_se(data, type="probs"), chance_se, atol=1e-9)
    given = fitted(frame, "ordered(-1, 0.4, 2)")
    assert given.fitted_.family == Ordered(CUTS)


def test_deviances():
    data = answers()
    model = fitted(data)
    family, eta = model.fitted_.family, model.predict(data, type="link")
    assert_allclose(model.deviance_, -2 * np.log(directly(data["y"], eta, family.known)).sum())
    assert_allclose(model.loglik_, -model.deviance_ / 2)
    null = minimize_scalar(lambda c: -2 * np.log(directly(data["y"], c, family.known)).sum(), tol=1e-12)
    assert_allclose(model.null_deviance_, null.fun)
    left = model.residuals("deviance")
    assert_allclose(left**2, -2 * np.log(directly(data["y"], eta, family.known)))
    assert (left[data["y"] == 4] > 0).all() and (left[data["y"] == 1] < 0).all()
    assert_allclose(np.var(model.residuals("pearson")), 1, atol=0.2)


def test_weights_are_repetitions():
    data = answers(n=120)
    twice = {name: np.concatenate((v, v[:30])) for name, v in data.items()}
    make = ScalarRegression("y ~ s(x, bs='ps') + z", family="ordered", smoothing=[3.0])
    weighted = make.fit(data, weights=np.where(np.arange(120) < 30, 2.0, 1.0))
    again = fitted(twice, smoothing=[3.0])
    assert_allclose(weighted.predict_proba(data), again.predict_proba(data), atol=1e-6)
    assert_allclose(weighted.deviance_, again.deviance_, rtol=1e-8)
    data["y"][:20] = 5.0
    with pytest.raises(InputError, match=r"in every category from 1 to 5 .* got none in 5"):
        make.fit(data, weights=(np.arange(120) >= 20) * 1.0)


def test_offsets():
    """An offset moves the latent variable."""
    data = answers(n=1000)
    data["o"] = np.random.default_rng(1).uniform(-2, 2, 1000)
    data["y"] = 1.0 + np.digitize(data["eta"] + data["o"] + np.random.default_rng(2).logistic(size=1000), CUTS)
    model = ScalarRegression("y ~ s(x, bs='ps') + z", family="ordered").fit(data, offset="o")
    assert np.corrcoef(model.predict(data, type="link"), data["eta"])[0, 1] > 0.97
    moved = probabilities(model.fitted_.family, model.predict(data, type="link") + data["o"])
    assert_allclose(model.predict_proba(data, offset="o"), moved)


def test_curves_explain_categories_in_files_and_chunks(tmp_path):
    rng = np.random.default_rng(4)
    waves = np.array([np.ones(S.size), np.sin(2 * np.pi * S), np.cos(2 * np.pi * S)])
    X = rng.normal(size=(400, 3)) @ waves
    eta = 3 * X @ np.sin(np.pi * S) / S.size
    data = {"X": X, "y": 1.0 + np.digitize(eta + rng.logistic(size=400), CUTS)}
    model = ScalarRegression("y ~ lf(X)", family="ordered").fit(data, grids={"X": S})
    assert np.corrcoef(model.predict(data, type="link"), eta)[0, 1] > 0.95
    again = ScalarRegression.load(model.save(tmp_path / "model"))
    assert_allclose(again.predict_proba(data), model.predict_proba(data))
    assert again.fitted_.family == model.fitted_.family
    assert list(again.classes_) == [1, 2, 3, 4]
    assert str(again.summary()) == str(model.summary())
    parts = [{name: v[rows] for name, v in data.items()} for rows in (slice(0, 150), slice(150, 400))]
    chunked = ScalarRegression("y ~ lf(X)", family="ordered").fit_chunks(parts, grids={"X": S})
    assert_allclose(chunked.predict_proba(data), model.predict_proba(data), atol=1e-6)
    figures = [[m.criterion_, m.aic_, m.null_deviance_] for m in (chunked, model)]
    assert_allclose(*figures, rtol=1e-8)
    assert list(chunked.classes_) == [1, 2, 3, 4]
    named = ScalarRegression("y ~ lf(X)", family="ordered").fit({"X": X, "y": in_words(data | {"X": eta})["y"]})
    assert list(ScalarRegression.load(named.save(tmp_path / "named")).classes_) == LABELS


def test_questions_after_the_fit_are_about_the_expected_number():
    data = answers()
    data["g"] = np.where(data["z"] > 0, "high", "low")
    model = ScalarRegression("y ~ s(x, bs='ps') + C(g)", family="ordered").fit(data)
    found = inference.contrasts(model, "g", "pairwise", new=data).to_frame()
    each = [np.mean(model.predict({**data, "g": np.full(300, level)})) for level in ("high", "low")]
    assert_allclose(abs(found["value"].iloc[0]), abs(each[0] - each[1]), rtol=1e-8)


@pytest.mark.parametrize("named", [False, True])
def test_cross_validation_by_scikit_learn(named):
    """Words are in another order than that of their letters."""
    frame = in_words(answers()) if named else pd.DataFrame(answers())
    model, folds = ScalarRegression("y ~ z + x", family="ordered"), StratifiedKFold(3)
    assert is_classifier(model)
    shares = cross_val_score(model, frame[["z", "x"]], frame["y"], cv=folds)
    assert ((shares > 0) & (shares < 0.2)).all()
    parts = list(folds.split(frame, frame["y"]))
    found, most = (cross_val_predict(model, frame, cv=parts, method=method) for method in ("predict_proba", "predict"))
    for train, test in parts:
        fold = clone(model).fit(frame.iloc[train])
        assert_allclose(found[test], fold.predict_proba(frame.iloc[test]))
        assert_allclose(most[test], fold.predict(frame.iloc[test]))
    true = answers()["y"].astype(int) - 1
    loss = -np.log(found[np.arange(300), true])
    assert loss.mean() < -np.log(np.bincount(true) / 300)[true].mean()  # better than without covariates
    with pytest.raises(InputError, match="numbers classes from 0 in alphabetical order: leave out its y, and the col"):
        cross_val_predict(model, frame, frame["y"], cv=folds, method="predict_proba")
    if named:  # scikit-learn's scores of probabilities take columns in the order of letters
        return
    scores = cross_val_score(model, frame[["z", "x"]], frame["y"], cv=folds, scoring="neg_log_loss")
    assert_allclose(scores, [-loss[test].mean() for _, test in parts])
    search = GridSearchCV(model, {"formula": ["y ~ 1", "y ~ z + x"]}, scoring="neg_log_loss", error_score="raise")
    assert search.fit(frame[["z", "x"]], frame["y"]).best_params_ == {"formula": "y ~ z + x"}


def test_levels_that_only_have_one_end_are_named():
    data = answers()
    data["g"] = np.where(data["x"] > 0.9, "all", "some")
    data["y"] = np.where(data["x"] > 0.9, 4.0, data["y"])
    with pytest.warns(IdentificationWarning, match=r"part of \(Intercept\), g separates the responses"):
        model = ScalarRegression("y ~ z + g", family="ordered").fit(data)
    assert (model.predict_proba(data)[data["g"] == "all", 3] > 0.999).all()


# --- what cannot be ---


@pytest.mark.parametrize(
    ("y", "family", "message"),
    [
        (
            [1, 1, 1, 1, 1, 1],
            "ordered",
            r"y must have three categories or more for family='ordered', got 1; .*'binomial'",
        ),
        ([1, 2, 1, 2, 1, 1], "ordered", "three categories or more .* got 2"),
        ([1, 2, 4, 2, 1, 1], "ordered", "y must have responses in every category from 1 to 4 .* got none in 3"),
        ([3, 2, 4, 2, 4, 4], "ordered", "every category from 1 to 4 .* got none in 1"),
        ([0, 1, 2, 2, 1, 1], "ordered", "y must have whole numbers of categories.* got 0 in row 0"),
        ([1, 2, 3, 2.5, 1, 1], "ordered", "whole numbers of categories.* got 2.5 in row 3"),
        ([1, 2, 3, 101, 1, 1], "ordered", "at most 100, .* got 101 in row 3"),
        ([1, 2, 3, 4, 1, 1], "ordered(-1, 2)", "whole numbers of categories.* got 4 in row 3"),
        ([1, 1, 1, 1, 1, 1], "ordered(-1, 2)", "y must have two categories or more .* got only 1"),
        ([3, 3, 3, 3, 3, 3], "ordered(-1, 2)", "y must have two categories or more .* got only 3"),
        (
            list("abcabc"),
            "ordered",
            r"y must hold numbers .* ordered=True\), .* got labels such as 'a' without an order",
        ),
        (pd.Categorical(list("abcabc")), "ordered", "got labels such as 'a' without an order"),
        (
            pd.Categorical(list("abcabc"), categories=list("abxc"), ordered=True),
            "ordered",
            r"y must have rows in every category .* got none in 'x'; cat\.remove_unused_categories",
        ),
        (pd.Categorical(list("abcabc"), ordered=True), "ordered(-1, 0, 1)", "y must have 4 categories for .* got 3"),
        (pd.Categorical([*"abcab", None], ordered=True), "ordered", "got none in row 5"),
    ],
)
def test_responses_that_are_no_ordered_categories(y, family, message):
    data = {"x": np.arange(6.0), "y": y}
    with pytest.raises(InputError, match=message):
        ScalarRegression("y ~ x", family=family).fit(data)


def test_chunks_with_gaps_are_refused():
    parts = [{"x": np.arange(4.0), "y": [1.0, 2.0, 4.0, 1.0]}, {"x": np.arange(3.0), "y": [1.0, 2.0, 4.0]}]
    with pytest.raises(InputError, match=r"in every category from 1 to 4 .* got none in 3"):
        ScalarRegression("y ~ x", family="ordered").fit_chunks(parts)


@pytest.mark.parametrize("cuts", [(1.0,), (1.0, 1.0), (2.0, 1.0, 3.0), (0.0, np.inf), (0.0, np.nan), 3.0, ("a", "b")])
def test_cut_points_that_are_none(cuts):
    with pytest.raises(InputError, match="cuts must be two cut points or more, which increase"):
        Ordered(cuts)


def test_names_with_cut_points():
    assert family_of("ordered(-1, 0.4,2)") == Ordered(CUTS)
    with pytest.raises(InputError, match=r"cuts of family ordered must be numbers, got .ordered.few"):
        family_of("ordered(few)")
    with pytest.raises(InputError, match="cuts must be given, or chosen by a fit, got None"):
        Ordered().mean(np.zeros(1))


def test_what_is_not_there():
    data = answers(n=100)
    model = fitted(data)
    with pytest.raises(InputError, match="predict_interval is there for numbers and counts, got family='ordered'"):
        model.predict_interval(data)
    with pytest.raises(InputError, match="family='ordered' is there for responses that are no curves"):
        FunctionalRegression([terms.linear("x")], family="ordered").fit({"x": data["x"], "Y": np.ones((100, 5))})
    with pytest.raises(InputError, match="'reml' or smoothing parameters, got 'gcv'"):
        fitted(data, smoothing="gcv")
    with pytest.raises(InputError, match=r"y must be one of .* got 'other' in row 0"):
        fitted(in_words(data)).score(pd.DataFrame(data).assign(y="other"))


@pytest.mark.parametrize("family", ["ordered", "ordered(-1, 0.4, 2)"])
def test_private_fits_refuse_it_before_the_first_read(family):
    budget = Budget(2.0, 1e-6)
    model = ScalarRegression(
        "y ~ x", family=family, privacy=Privacy(1.0, 1e-6, n=300, budget=budget), bounds={"x": (0, 1), "y": (1, 4)}
    )
    with pytest.raises(InputError, match=r"got 'ordered': its cut points depend on the data.*family='binomial'"):
        model.fit(answers())
    assert budget.spent == 0 and budget.reserved == 0
