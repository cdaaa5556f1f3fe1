"""Families, weights and offsets of the public regressions; that fits are refund's and mgcv's, r_bridge asks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from skfda import FDataGrid

from fdadp import FunctionalRegression, ScalarRegression, terms
from fdadp.errors import InputError
from fdadp.solve.form.families_with_theta import NegativeBinomial, ThetaSlopes

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


# --- counts that vary more than Poisson's ---


def visits(n=300, theta=2.0, seed=0, mean=3.0):
    """Counts; independent of everything but x and z, Poisson's where theta is infinite."""
    rng = np.random.default_rng(seed)
    x, z = rng.uniform(size=n), rng.normal(size=n)
    rate = mean * np.exp(np.sin(6 * x) + 0.3 * z)
    own = rate if np.isinf(theta) else rate * rng.gamma(theta, 1 / theta, n)
    return {"x": x, "z": z, "rate": rate, "y": rng.poisson(own).astype(float)}


def counted(data, family="negative_binomial", **settings):
    return ScalarRegression("y ~ s(x, bs='ps') + z", family=family, **settings).fit(data)


@pytest.mark.parametrize("theta", [0.4, 2.0, 30.0])
def test_derivatives_of_the_negative_binomial(theta):
    """In η and in log θ, by differences."""
    y, eta, h = np.repeat([0.0, 1.0, 7.0, 60.0], 3), np.tile([-1.5, 0.7, 3.0], 4), 1e-5
    family = NegativeBinomial(theta)
    at, up, down = (family.working(y, eta + step) for step in (0.0, h, -h))
    rise = family.half_deviance(y, eta + h) - family.half_deviance(y, eta - h)
    assert_allclose(at.residual, -rise / (2 * h), rtol=1e-6, atol=1e-8)
    assert_allclose(at.weight, -(up.residual - down.residual) / (2 * h), rtol=1e-6, atol=1e-8)
    assert_allclose(at.slope, (up.weight - down.weight) / (2 * h), rtol=1e-6, atol=1e-8)
    more, less = (NegativeBinomial(theta * np.exp(step)) for step in (h, -h))
    slopes, ones = ThetaSlopes(*(slope for (slope,) in family.slopes(y, eta))), np.ones(1)
    loss = [
        [f.half_deviance(y, eta)[i] - f.saturated(y[i : i + 1], ones, 1.0)[0] for i in range(12)] for f in (more, less)
    ]
    assert_allclose(slopes.loss, np.subtract(*loss) / (2 * h), rtol=1e-5, atol=1e-6)
    moved = [f.working(y, eta) for f in (more, less)]
    assert_allclose(slopes.residual, (moved[0].residual - moved[1].residual) / (2 * h), rtol=1e-6, atol=1e-8)
    assert_allclose(slopes.weight, (moved[0].weight - moved[1].weight) / (2 * h), rtol=1e-6, atol=1e-8)


def test_expected_weights_are_means_of_observed_ones():
    family, eta = NegativeBinomial(1.5), np.array([-1.0, 0.5, 2.0])
    y = np.arange(3000.0)[:, None]
    chance = family.law(eta, np.zeros(3), 1.0).pmf(y)
    at = family.working(y + 0 * eta, eta + 0 * y)
    assert_allclose((chance * at.weight).sum(axis=0), at.fisher[0], rtol=1e-6)
    assert_allclose((chance * at.residual).sum(axis=0), 0, atol=1e-7)
    assert_allclose((chance * (y - np.exp(eta)) ** 2).sum(axis=0), family.variance(np.exp(eta)), rtol=1e-6)


def test_theta_is_where_reml_is_lowest():
    """It is the minimum of the criterion of fits that are given θ, and the fit is one of these."""
    data = visits()
    model = counted(data)
    theta = model.fitted_.family.theta
    assert 1 < theta < 4
    at, up, down = (counted(data, f"negative_binomial({theta * r!r})").criterion_ for r in (1.0, 1.001, 1 / 1.001))
    assert_allclose(model.criterion_, at, rtol=1e-9)
    assert at < min(up, down)
    assert abs(up - down) < 2e-3 * (up + down - 2 * at)  # the minimum is within 1e-6 of log θ
    given = counted(data, NegativeBinomial(theta))
    assert_allclose(model.fitted_values_, given.fitted_values_, rtol=1e-6)
    assert_allclose(model.predict_se(data), given.predict_se(data), rtol=1e-6)
    assert 2 < model.aic_ - given.aic_ < 2.02  # θ counts where it was chosen, and that coefficients follow it
    assert "theta" not in str(given.summary())
    assert f"REML chose theta = {theta:.6g}" in str(model.summary()).replace("\n", " ")


def test_theta_at_given_smoothing_and_with_repeated_rows():
    data = visits(n=80)
    fixed = counted(data, smoothing=[30.0])
    theta = fixed.fitted_.family.theta
    near = [counted(data, f"negative_binomial({theta * r!r})", smoothing=[30.0]).criterion_ for r in (0.99, 1, 1.01)]
    assert near[1] < min(near[0], near[2])
    twice = {name: np.concatenate((v, v[:20])) for name, v in data.items()}
    weights = np.where(np.arange(80) < 20, 2.0, 1.0)
    again = counted(twice, smoothing=[30.0])
    weighted = ScalarRegression("y ~ s(x, bs='ps') + z", family="negative_binomial", smoothing=[30.0])
    weighted.fit(data, weights=weights)
    assert_allclose(weighted.fitted_.family.theta, again.fitted_.family.theta, rtol=1e-6)


def test_counts_that_are_poissons():
    """REML then has no finite θ: the search stops, and the fit is Poisson's."""
    data = visits(theta=np.inf)
    data["y"] = np.round(data["rate"])  # they vary less
    model, poisson = counted(data), counted(data, "poisson")
    assert_allclose(model.fitted_.family.theta, 1e5)
    assert_allclose(model.fitted_values_, poisson.fitted_values_, rtol=1e-3)
    assert_allclose(model.loglik_, poisson.loglik_, atol=0.05)
    assert "Poisson" in str(model.summary())


@pytest.mark.statistics
def test_intervals_of_counts_hold_new_ones():
    """95 % of new counts of 20 cohorts; Poisson's hold too few of the same."""
    held = {"negative_binomial": [], "poisson": []}
    for seed in range(20):
        data, new = visits(n=150, seed=seed), visits(n=400, seed=100 + seed)
        for family, shares in held.items():
            low, high = counted(data, family).predict_interval(new)
            assert (low == np.floor(low)).all() and (low <= high).all()
            shares.append(np.mean((new["y"] >= low) & (new["y"] <= high)))
    assert 0.94 < np.mean(held["negative_binomial"]) < 0.985
    assert np.mean(held["poisson"]) < 0.85


def test_intervals_of_positive_numbers_and_of_curves():
    rng = np.random.default_rng(0)
    data = visits(n=400)
    data["y"] = rng.gamma(3.0, data["rate"] / 3)
    model = counted(data, "gamma")
    low, high = model.predict_interval(data, level=0.9)
    assert 0.86 < np.mean((data["y"] >= low) & (data["y"] <= high)) < 0.94
    curves = table()
    model = fitted("poisson", curves)
    low, high = model.predict_interval({name: curves[name] for name in ("X", "x")}, level=0.9)
    assert 0.89 < np.mean((curves["counts"] >= low) & (curves["counts"] <= high)) < 0.99
    with pytest.raises(InputError, match=r"simultaneous=True.* is there for family='gaussian', got 'poisson'"):
        model.predict_interval({name: curves[name] for name in ("X", "x")}, simultaneous=True)


def test_exposure_in_intervals():
    data = visits()
    model = counted(data)
    _, high = model.predict_interval(data)
    _, more = model.predict_interval(data, offset=np.full(300, np.log(10)))
    assert 5 < more.sum() / high.sum() < 10


def test_curves_of_negative_binomial_counts_in_memory_chunks_and_files(tmp_path):
    data = table(n=80)
    rng = np.random.default_rng(3)
    data["counts"] = rng.poisson(np.exp(data["eta"]) * rng.gamma(1.5, 1 / 1.5, data["eta"].shape)).astype(float)
    make = FunctionalRegression(TERMS, response="counts", family="negative_binomial")
    model = make.fit(data, grids=GRIDS)
    theta = model.fitted_.family.theta
    assert 1 < theta < 2.5
    assert np.mean((model.predict(data, type="link") - data["eta"]) ** 2) < 0.1 * np.var(data["eta"]) + 0.01
    parts = [{name: data[name][rows] for name in ("X", "x", "counts")} for rows in (slice(0, 30), slice(30, 80))]
    chunked = FunctionalRegression(TERMS, response="counts", family="negative_binomial")
    chunked.fit_chunks(parts, grids={"X": S, "counts": T})
    assert_allclose(chunked.fitted_.family.theta, theta, rtol=1e-5)
    assert_allclose([chunked.criterion_, chunked.aic_], [model.criterion_, model.aic_], rtol=1e-6)
    new = {name: data[name][:5] for name in ("X", "x")}
    assert_allclose(chunked.predict(new), model.predict(new), rtol=1e-4)
    again = FunctionalRegression.load(model.save(tmp_path / "curves"))
    assert again.family == "negative_binomial"
    assert again.fitted_.family == model.fitted_.family
    assert_allclose(again.predict_interval(new), model.predict_interval(new))
    assert_allclose(again.aic_, model.aic_)
    assert str(again.summary()) == str(model.summary())


@pytest.mark.parametrize("family", ["poisson", "gamma", "negative_binomial(1.5)"])
def test_how_reml_is_curved_and_coefficients_follow(family):
    """By differences of fits at smoothing parameters that are given; the scale of the gamma family among them."""
    data = visits(n=200)
    data["y"] += family == "gamma"
    data["w"] = np.random.default_rng(5).uniform(size=200)
    data["y"] = data["y"] * (1 + (data["w"] > 0.7))
    formula = "y ~ s(x, bs='ps') + s(w, bs='ps', k=6)"
    model = ScalarRegression(formula, family=family).fit(data)
    fit, h = model.fitted_.fit, 0.02

    def at(*steps):
        sp = model.smoothing_parameters_ * np.exp(np.array(steps))
        return ScalarRegression(formula, family=family, smoothing=sp).fit(data)

    moves = [(at(*step).coefficients_ - at(*-step).coefficients_) / (2 * h) for step in h * np.eye(2)]
    assert_allclose(fit.chosen.moves, moves, atol=2e-3 * np.abs(moves).max())
    joint = fit.chosen.hessian
    inner = joint[:2, :2] - (np.outer(joint[:2, 2], joint[2, :2]) / joint[2, 2] if family == "gamma" else 0.0)
    corners = [[at(a, b).criterion_ for b in (h, 0.0, -h)] for a in (h, 0.0, -h)]
    (pp, p0, pm), (zp, zz, zm), (mp, m0, mm) = corners
    found = [[p0 - 2 * zz + m0, (pp - pm - mp + mm) / 4], [(pp - pm - mp + mm) / 4, zp - 2 * zz + zm]]
    assert_allclose(inner * h**2, found, atol=2e-3 * np.abs(found).max())


def test_smoothing_adds_to_errors_of_families(tmp_path):
    data = visits()
    model = counted(data, "poisson")
    wider = model.predict_se(data, kind="unconditional") / model.predict_se(data, kind="iid")
    assert wider.min() > 0.999
    assert wider.max() > 1.01
    again = ScalarRegression.load(model.save(tmp_path / "model"))
    assert_allclose(again.vcov("unconditional"), model.vcov("unconditional"))
    assert_allclose(again.aic_, model.aic_)
    given = counted(data, "poisson", smoothing=model.smoothing_parameters_)
    with pytest.raises(InputError, match=r"kind='unconditional' needs .*smoothing='reml'"):
        given.vcov("unconditional")


# --- what cannot be ---


@pytest.mark.parametrize(
    ("change", "settings", "kwargs", "message"),
    [
        ({}, {"family": "tweedie"}, {}, "one of 'gaussian', 'binomial', 'poisson', 'gamma', 'negative_bin.* got 'twee"),
        ({}, {"family": "negative_binomial(-2)"}, {}, r"theta must be a positive number or None, got -2"),
        (
            {},
            {"family": "negative_binomial(few)"},
            {},
            r"theta of family negative_binomial must be numbers, got 'negative_binomial.few",
        ),
        (
            {"y": [0, 1, 2, 0.5]},
            {"family": "negative_binomial"},
            {},
            "y must have counts of 0 or more .* got 0.5 in row",
        ),
        ({"y": [0, 0, 0, 0]}, {"family": "negative_binomial(3)"}, {}, "a count above 0 .* got only 0"),
        ({}, {"family": "negative_binomial", "smoothing": "gcv"}, {}, "smoothing .* 'reml' or smoothing parameters"),
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
    with pytest.raises(InputError, match=r"predict_interval is there for numbers and counts, got family='binomial'"):
        model.predict_interval(data)
    counts = ScalarRegression([terms.lf("X")], response="counts", family="poisson").fit(data, grids={"X": S})
    with pytest.raises(InputError, match=r"predict_proba is there for family='binomial' and 'ordered', got 'poisson'"):
        counts.predict_proba(data)
    with pytest.raises(InputError, match=r"type='class' is there for family='binomial'"):
        counts.predict(data, type="class")
    assert not hasattr(counts, "classes_")
    with pytest.raises(InputError, match="type must be"):
        counts.predict(data, type="odds")
