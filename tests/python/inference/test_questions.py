"""Contrasts, differences, slopes, derivatives, draws and peaks: by hand, in all containers, private, from files."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pandas as pd
import pytest
from skfda import FDataGrid

from fdadp import AdditiveFunctionOnFunction, FunctionalRegression, Privacy, ScalarRegression, inference, terms
from fdadp.errors import InputError, PrivacyError
from fdadp.privacy.rows._vault import Vault

S = np.linspace(0, 1, 21)
FORMULA = "Y ~ C(g) + x + s(z, k=(6, 5)) + ff(X)"


def people(n=80, seed=0):
    rng = np.random.default_rng(seed)
    g, x, z = rng.choice(["a", "b", "c"], n), rng.normal(size=n), rng.uniform(-1, 1, n)
    X = rng.normal(size=(n, 3)) @ [np.ones(21), np.sin(np.pi * S), np.cos(np.pi * S)]
    shift = {"a": 0 * S, "b": 0.4 * np.sin(np.pi * S), "c": S**2}
    Y = np.stack([shift[k] for k in g]) + x[:, None] * np.cos(S) + np.sin(2 * z)[:, None] * S + X.mean(axis=1)[:, None]
    return {"g": g, "x": x, "z": z, "X": X, "Y": Y + 0.3 * rng.normal(size=(n, 21))}


def of(data, *rows):
    return {name: column[list(rows)] for name, column in data.items() if name != "Y"}


@pytest.fixture(scope="module")
def data():
    return people()


@pytest.fixture(scope="module")
def model(data):
    return FunctionalRegression(FORMULA, progress=False).fit(data, grids={"X": S, "Y": S})


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(1)
    n = 150
    g, z, o = rng.choice(["a", "b", "c"], n), rng.uniform(-2, 2, n), rng.uniform(0, 1, n)
    y = rng.poisson(np.exp(0.3 + (g == "b") * 0.7 + np.sin(z) + o)).astype(float)
    frame = pd.DataFrame({"g": g, "z": z, "o": o, "y": y}, index=[f"p{i}" for i in range(n)])
    return frame, ScalarRegression("y ~ C(g) + s(z) + offset(o)", family="poisson").fit(frame)


def test_rows_times_coefficients_are_predictions(model, data, counts):
    rows = inference.design_rows(model, of(data, 3, 5), t=[0.2, 0.4])
    values = rows @ model.coefficients_
    np.testing.assert_allclose(values, np.ravel(model.predict(of(data, 3, 5), t=[0.2, 0.4])), atol=1e-10)
    assert rows.columns.tolist() == model.vcov().columns.tolist() and rows.index.names == ["row", "t"]
    frame, fit = counts
    link = inference.design_rows(fit, frame.iloc[:4]) @ fit.coefficients_ + frame["o"].iloc[:4]
    pd.testing.assert_series_equal(link, fit.predict(frame.iloc[:4], type="link"), check_names=False)


@pytest.mark.parametrize("kind", ["curve", "iid"])
def test_differences_are_those_of_predictions_and_of_coefficient_functions(model, data, kind):
    one, two = of(data, 3, 5), of(data, 4, 6)
    found = inference.difference(model, one, two, kind=kind)
    np.testing.assert_allclose(found.value, np.ravel(model.predict(one) - model.predict(two)), atol=1e-12)
    changed = {**one, "x": one["x"] + 1}
    effect = model.coef("x", se=True, t=S, kind=kind)
    frame = inference.difference(model, changed, one, kind=kind).to_frame()
    for row in (0, 1):
        own = frame[frame["row"] == row].reset_index(drop=True)
        np.testing.assert_allclose(own["value"], effect["value"], atol=1e-10)
        np.testing.assert_allclose(own["se"], effect["se"], rtol=1e-8)
    band = model.bands("x", t=S, kind=kind)
    np.testing.assert_allclose(own["upper_all"], band["upper"], atol=0.12 * own["se"].max())
    averaged = inference.difference(model, changed, one, average=True, kind=kind)
    np.testing.assert_allclose(averaged.value, effect["value"], atol=1e-10)
    assert averaged.to_frame().columns.tolist()[0] == "t"


def test_contrasts_of_levels(model, data):
    found = inference.contrasts(model, "g")
    frame = found.to_frame()
    assert frame["contrast"].drop_duplicates().tolist() == ["b - a", "c - a", "c - b"]
    effect = model.coef("g", se=True, t=S).set_index("g")
    own = frame.set_index("contrast").loc["c - a"]
    np.testing.assert_allclose(own["value"], effect.loc["c", "value"].to_numpy() - effect.loc["a", "value"], atol=1e-10)
    levels = found.value.reshape(3, -1)
    np.testing.assert_allclose(levels[1] - levels[0], levels[2], atol=1e-12)
    by = {
        how: inference.contrasts(model, "g", how).value.reshape(-1, 21) for how in ("reference", "sequential", "mean")
    }
    np.testing.assert_allclose(by["reference"], levels[:2], atol=1e-12)
    np.testing.assert_allclose(by["sequential"], levels[[0, 2]], atol=1e-12)
    np.testing.assert_allclose(by["mean"].sum(axis=0), 0, atol=1e-12)
    at = inference.contrasts(model, "g", at={"x": 1, "z": 0.5, "X": data["X"][0]}, grids={"X": S})
    np.testing.assert_allclose(at.value, found.value, atol=1e-10)  # no interaction
    p = found.test()
    assert p.index.tolist() == ["b - a", "c - a", "c - b"] and p["p"].loc["c - a"] < 0.01
    assert str(found).startswith("contrasts of g (95 % intervals; not private)") and "<table" in found._repr_html_()


def test_the_average_of_means_is_that_of_the_rows_and_not_of_their_link(counts):
    frame, fit = counts
    found = inference.contrasts(fit, "g", "reference")
    means = [fit.predict(frame.assign(g=level)).mean() for level in "abc"]
    np.testing.assert_allclose(found.value, [means[1] - means[0], means[2] - means[0]], rtol=1e-10)
    ratios = inference.contrasts(fit, "g", "reference", scale="link", new=frame.iloc[:1])
    np.testing.assert_allclose(ratios.value, fit.coef("g")["value"][1:] - fit.coef("g")["value"][0], atol=1e-10)
    assert found.to_frame().columns.tolist()[:2] == ["contrast", "value"] and len(found.test()) == 2
    wide = found.to_frame()
    assert (wide["upper_all"] > wide["upper"]).all()  # a band of two numbers


def test_slopes(model, data, counts):
    found = inference.slopes(model, "x")
    np.testing.assert_allclose(found.value, model.coef("x", t=S)["value"], atol=1e-8)
    np.testing.assert_allclose(found.se, model.coef("x", se=True, t=S)["se"], rtol=1e-6)
    frame, fit = counts
    h = 1e-3
    own = [fit.predict(frame.assign(z=frame["z"] + sign * h)).mean() for sign in (1, -1)]
    np.testing.assert_allclose(inference.slopes(fit, "z").value, (own[0] - own[1]) / (2 * h), rtol=1e-4)
    each = inference.slopes(fit, "z", new=frame.iloc[:3], average=False).to_frame()
    assert each["row"].tolist() == ["p0", "p1", "p2"]


def test_twicing_adds_the_slope_that_the_same_smoothing_finds_in_the_residuals(data, model):
    first = inference.slopes(model, "z", new=data)
    left = data | {"Y": data["Y"] - model.predict(data)}
    again = FunctionalRegression(FORMULA, smoothing=model.smoothing_parameters_, progress=False)
    again.fit(left, grids={"X": S, "Y": S})
    both = inference.slopes(model, "z", new=data, twicing=1)
    np.testing.assert_allclose(both.value, first.value + inference.slopes(again, "z", new=data).value, atol=1e-7)
    assert np.abs(both.value - first.value).max() > 1e-3
    assert (both.se > first.se).all()
    left["Y"] = left["Y"] - again.predict(data)
    third = FunctionalRegression(FORMULA, smoothing=model.smoothing_parameters_, progress=False)
    third.fit(left, grids={"X": S, "Y": S})
    twice = inference.slopes(model, "z", new=data, twicing=2)
    np.testing.assert_allclose(twice.value, both.value + inference.slopes(third, "z", new=data).value, atol=1e-7)


def test_twicing_changes_nothing_without_a_penalty():
    x = np.linspace(0, 1, 30)
    model = ScalarRegression("y ~ x + I(x**2)").fit({"x": x, "y": x**2 + np.cos(40 * x)})
    one, two = (inference.slopes(model, "x", new={"x": [0.5]}, twicing=twicing) for twicing in (0, 2))
    np.testing.assert_allclose([two.value, two.se], [one.value, one.se], rtol=1e-9)
    with pytest.raises(InputError, match="twicing must be a whole number of at least 0, got True"):
        inference.slopes(model, "x", new={"x": [0.5]}, twicing=True)


def test_twicing_is_refused_where_the_residuals_have_another_smoothing(data):
    eigen = FunctionalRegression("Y ~ s(z)", response_basis="eigen", progress=False).fit(data, grids={"Y": S})
    several = data | {"person": np.repeat(np.arange(20), 4)}
    formula = "Y ~ s(z) + re(person, covariance='free', k=12)"
    free = FunctionalRegression(formula, progress=False).fit(several, grids={"Y": S})
    for model, what in ((eigen, "response_basis='eigen'"), (free, "a fit with covariances of persons")):
        with pytest.raises(InputError, match=f"twicing must be 0 for {what}, got 1"):
            inference.slopes(model, "z", new=several, twicing=1)


def test_slopes_of_a_column_that_is_transformed():
    rng = np.random.default_rng(0)
    x = rng.uniform(1, 3, 60)
    data = {"x": x, "y": 2 * np.log(x) + 0.01 * rng.normal(size=60)}
    model = ScalarRegression("y ~ log(x)").fit(data)
    with pytest.raises(InputError, match=r"new must be given: the model holds log\(x\) of its training rows, not x"):
        inference.slopes(model, "x")
    slope = float(model.coef("log(x)")["value"].iloc[0])
    np.testing.assert_allclose(inference.slopes(model, "x", new=data).value, slope * np.mean(1 / x), rtol=1e-6)


def test_derivatives_and_peaks_of_curves_that_are_known():
    rng = np.random.default_rng(3)
    t = np.linspace(0, 2, 41)
    f = {"a": (t - 0.8) ** 2, "b": np.sin(3 * t)}
    g = np.repeat(["a", "b"], 30)
    Y = np.stack([f[k] for k in g]) + 0.05 * rng.normal(size=(60, 1)) + 0.05 * rng.normal(size=(60, 41))
    model = FunctionalRegression("Y ~ C(g, k=15)", progress=False).fit({"g": g, "Y": Y}, grids={"Y": t})
    own = inference.derivative(model, {"g": ["a"]}, t=t[4:-4]).to_frame()
    assert np.abs(own["value"] - 2 * (t[4:-4] - 0.8)).max() < 0.25
    both = inference.derivative(model, {"g": ["b"]}, {"g": ["a"]}, t=[0.5, 1.0])
    np.testing.assert_allclose(
        both.value, 3 * np.cos(3 * np.array([0.5, 1])) - 2 * (np.array([0.5, 1]) - 0.8), atol=0.3
    )
    low = inference.peak(model, {"g": ["a"]}, of="min").iloc[0]
    assert abs(low["t"] - 0.8) < 0.06 and low["lower"] <= low["t"] <= low["upper"] and low["share"] == 1
    high = inference.peak(model, {"g": ["a", "b"]})
    ends = high[high["row"] == 0]["t"].iloc[0]
    assert ends == 2.0 and abs(high[high["row"] == 1]["t"].iloc[0] - np.pi / 6) < 0.05  # an end; a maximum
    cross = inference.peak(model, {"g": ["b", "a"]}, of="crossing", value=0.5).set_index("row")
    assert abs(cross.loc[0, "t"] - np.arcsin(0.5) / 3) < 0.05 and cross["share"].groupby("row").sum().le(1).all()
    never = inference.peak(model, {"g": ["a"]}, of="crossing", value=9.0)
    assert np.isnan(never["t"]).all() and never["share"].tolist() == [0.0]


def test_two_peaks_are_told_with_their_shares():
    rng = np.random.default_rng(4)
    t = np.linspace(0, 1, 61)
    mean = np.exp(-((t - 0.25) ** 2) / 0.005) + np.exp(-((t - 0.75) ** 2) / 0.005)
    Y = mean + 0.5 * rng.normal(size=(40, 61))
    model = FunctionalRegression("Y ~ x", k="auto", progress=False).fit(
        {"x": rng.normal(size=40), "Y": Y}, grids={"Y": t}
    )
    found = inference.peak(model, {"x": [0.0]})
    assert len(found) == 2 and found["share"].sum() == pytest.approx(1, abs=0.02) and found["share"].min() > 0.05
    np.testing.assert_allclose(sorted(found["t"]), [0.25, 0.75], atol=0.04)


@pytest.mark.parametrize("at", [23.5, 12.0])
def test_peaks_of_a_day_go_round_midnight(at):
    """The estimate and the interval of a turned day are those of the day, turned."""
    draw, hours = np.random.default_rng(5), np.arange(24.0)
    day = np.exp(2 * np.cos(2 * np.pi * (hours - at) / 24))
    Y = day + 0.5 * draw.normal(size=(60, 1)) + draw.normal(size=(60, 24))
    model = FunctionalRegression("Y ~ 1", t_period=24, progress=False).fit({"Y": Y}, grids={"Y": hours})
    (high,) = inference.peak(model, {"Y": Y[:1]}).to_dict("records")
    assert high["lower"] < high["t"] < high["upper"] < high["lower"] + 3 and high["share"] == 1
    assert high["lower"] < at < high["upper"] and 0 <= high["t"] < 24
    (low,) = inference.peak(model, {"Y": Y[:1]}, of="min", seed=1).to_dict("records")
    assert abs((low["t"] - at) % 24 - 12) < 4 and low["lower"] < low["t"] < low["upper"] and low["share"] == 1


def test_a_peak_between_the_last_hour_and_the_first_is_in_the_gap():
    hours = np.arange(2.0, 22.0)
    Y = np.cos(2 * np.pi * (hours - 23.9) / 24) + 0.05 * np.random.default_rng(1).normal(size=(40, 20))
    model = FunctionalRegression("Y ~ 1", t_period=24, progress=False).fit({"Y": Y}, grids={"Y": hours})
    (high,) = inference.peak(model, {"Y": Y[:1]}).to_dict("records")
    assert abs(high["t"] - 23.9) < 0.5 and high["lower"] < 23.9 < high["upper"]
    crossing = inference.peak(model, {"Y": Y[:1]}, of="crossing", value=0.9)  # on the way up, in the gap
    assert abs(crossing["t"].iloc[0] - (23.9 - np.arccos(0.9) * 24 / (2 * np.pi))) < 0.5


def test_draws_have_the_law_of_the_coefficients(model, data):
    drawn = inference.draws(model, 4000)
    found = inference.difference(model, of(data, 3), of(data, 4))
    values = drawn.of(found)
    np.testing.assert_allclose(values.mean(axis=0), found.value, atol=4 * found.se.max() / np.sqrt(4000))
    np.testing.assert_allclose(values.std(axis=0), found.se, rtol=0.08)
    assert drawn.of(inference.design_rows(model, of(data, 3), t=[0.5])).shape == (4000, 1)
    assert drawn.of_term("ff(X)", s=[0.2, 0.5], t=[0.1]).shape == (4000, 2, 1)
    again = inference.draws(model, 4000)
    assert np.array_equal(again.coefficients, drawn.coefficients)


def test_draws_do_not_depend_on_the_order_of_rows():
    """Signs of eigenvectors, which rounding chooses, had chosen the draws."""
    rng = np.random.default_rng(3)
    z, x = rng.uniform(0, 5, 60), np.round(rng.normal(size=60), 1)
    y, ask, found = np.sin(z) + x**2 + 0.3 * rng.normal(size=60), {"z": [1.0, 2.0], "x": [0.0, 1.0]}, []
    for order in (np.arange(60), *(rng.permutation(60) for _ in range(4))):
        model = ScalarRegression("y ~ s(z) + s(x)").fit({"z": z[order], "x": x[order], "y": y[order]})
        found.append(inference.draws(model, 5).of(inference.design_rows(model, ask)))
    np.testing.assert_allclose(found, found[:1] * 5, rtol=1e-8)


def test_hypotheses_are_f_tests():
    import statsmodels.api as sm

    rng = np.random.default_rng(5)
    x, z = rng.normal(size=(2, 50))
    y = 0.2 * x + rng.normal(size=50)
    model = ScalarRegression("y ~ x + z").fit({"x": x, "z": z, "y": y})
    rows = inference.design_rows(model, {"x": [1.0, 0.0], "z": [0.0, 1.0]}) - inference.design_rows(
        model, {"x": [0.0, 0.0], "z": [0.0, 0.0]}
    )
    found = inference.hypothesis(model, rows, [0.1, 0.0]).iloc[0]
    ols = sm.OLS(y, sm.add_constant(np.column_stack([x, z]))).fit()
    theirs = ols.f_test((np.eye(3)[1:], [0.1, 0.0]))
    np.testing.assert_allclose(
        [found["statistic"], found["p"]], [float(theirs.fvalue), float(theirs.pvalue)], rtol=1e-6
    )
    with pytest.raises(InputError, match="linearly independent combinations"):
        inference.hypothesis(model, np.vstack([rows, rows.iloc[0]]))
    with pytest.raises(InputError, match="must have 3 columns"):
        inference.hypothesis(model, [[1.0, 2.0]])


def test_containers_and_the_order_of_rows_say_nothing(model, data):
    rows = of(data, *range(10))
    wanted = inference.contrasts(model, "g", new=rows).value
    frame = pd.DataFrame({name: rows[name] for name in "gxz"}, index=[f"p{i}" for i in range(10)])
    curves = pd.DataFrame(rows["X"], columns=S, index=frame.index)
    assert np.array_equal(inference.contrasts(model, "g", new={**rows, "X": FDataGrid(rows["X"], S)}).value, wanted)
    mixed = {**{name: frame[name] for name in "gxz"}, "X": curves}
    assert np.array_equal(inference.contrasts(model, "g", new=mixed).value, wanted)
    order = np.random.default_rng(0).permutation(10)
    again = inference.contrasts(model, "g", new={name: column[order] for name, column in rows.items()})
    np.testing.assert_allclose(again.value, wanted, atol=1e-12)
    labelled = inference.difference(model, mixed, mixed).to_frame()
    assert labelled["row"].drop_duplicates().tolist() == frame.index.tolist()


def test_files_and_chunks_answer_for_rows_that_are_given(model, data, tmp_path):
    again = FunctionalRegression.load(model.save(tmp_path / "model.npz"))
    rows = of(data, *range(10))
    for ask in (lambda m: inference.contrasts(m, "g", new=rows), lambda m: inference.slopes(m, "x", new=rows)):
        one, two = ask(model), ask(again)
        np.testing.assert_allclose(two.value, one.value, atol=1e-12)
        np.testing.assert_allclose(two.se, one.se, rtol=1e-10)
    for ask in (lambda: inference.contrasts(again, "g"), lambda: inference.slopes(again, "x")):
        with pytest.raises(InputError, match="new must be given: models from files and chunks hold no training rows"):
            ask()


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda m, d: inference.contrasts(m, "x"), r"column must be a factor of the model \(g\), got 'x'"),
        (lambda m, d: inference.contrasts(m, "g", "all"), "how must be one of"),
        (lambda m, d: inference.contrasts(m, "g", at={}, new=d), "at and new must not both be given"),
        (lambda m, d: inference.contrasts(m, "g", at=[1]), "at must be a mapping"),
        (lambda m, d: inference.contrasts(m, "g", at={"x": 1}), "at must have a value for each .* got none for z"),
        (lambda m, d: inference.slopes(m, "age"), r"column must be one that the model reads \(g, x, z, X\), got 'age'"),
        (lambda m, d: inference.slopes(m, "g"), "^column must hold numbers, got labels in 'g': contrasts"),
        (lambda m, d: inference.slopes(m, "X", new=of(d, 1)), "column must hold one number a row"),
        (lambda m, d: inference.difference(m, of(d, 1), of(d, 1, 2)), "as many rows"),
        (lambda m, d: inference.difference(m, of(d, 1), of(d, 2), t=[2.0]), "t must lie within"),
        (lambda m, d: inference.difference(m, of(d, 1), of(d, 2), level=95), "level"),
        (lambda m, d: inference.difference(m, of(d, 1), of(d, 2), scale="odds"), "scale must be one of"),
        (lambda m, d: inference.slopes(m, "x", new=[1, 2]), "new must be a data frame or a mapping"),
        (lambda m, d: inference.difference(AdditiveFunctionOnFunction(), d, d), "model must be a FunctionalRegression"),
        (lambda m, d: inference.peak(m, of(d, 1), of="top"), "of must be one of"),
    ],
)
def test_what_is_refused(model, data, ask, message):
    with pytest.raises(InputError, match=message):
        ask(model, data)


def test_numbers_have_no_derivative(counts):
    frame, fit = counts
    for ask in (inference.derivative, inference.peak):
        with pytest.raises(InputError, match="model must have curves as responses"):
            ask(fit, frame)
    with pytest.raises(InputError, match="t must be left out"):
        inference.difference(fit, frame, frame, t=[0.5])


@pytest.mark.filterwarnings("ignore:n \\* epsilon is", "ignore:what was released speaks against")
def test_private_fits_answer_from_what_was_released():
    data = people(300)
    bounds = {"Y": (-5, 5), "g": ["a", "b", "c"], "x": (-4, 4), "z": (-1, 1), "X": (-5, 5)}
    model = FunctionalRegression(
        FORMULA, privacy=Privacy(4.0, 1e-6, n=300, random_state=0), bounds=bounds, progress=False
    ).fit(data, grids={"X": S, "Y": S})
    spent = str(model.ledger_)
    with mock.patch.object(Vault, "__init__", side_effect=AssertionError("rows were read")):
        found = inference.contrasts(model, "g", at={"x": 0, "z": 0, "X": np.zeros(21)}, grids={"X": S})
        inference.slopes(model, "x", new=of(data, 1))
        inference.peak(model, of(data, 1))
        for ask in (lambda: inference.contrasts(model, "g"), lambda: inference.slopes(model, "x")):
            with pytest.raises(PrivacyError, match="the training rows of a private fit are private"):
                ask()
        with pytest.raises(InputError, match="twicing must be 0 for a private fit, got 2"):
            inference.slopes(model, "x", new=of(data, 1), twicing=2)
    assert str(model.ledger_) == spent and found.private and "nothing more is spent" in str(found)
    assert np.isfinite(found.se).all() and (found.se > 0).all()


def test_pictures(model, counts):
    import matplotlib

    matplotlib.use("Agg")
    found = inference.contrasts(model, "g").plot()
    assert [ax.get_title() for ax in found.axes] == ["b - a", "c - a", "c - b"]
    labels = [text.get_text() for text in inference.contrasts(counts[1], "g").plot().axes[0].get_yticklabels()]
    assert labels == ["b - a", "c - a", "c - b"]
    assert len(inference.slopes(model, "x").plot().axes) == 1


def test_a_person_s_curve_is_no_part_of_the_population():
    rng = np.random.default_rng(0)
    ids, week = np.repeat(np.arange(30), 5), rng.uniform(0, 4, 150)
    own = rng.normal(size=(30, 1)) @ np.ones((1, 21))
    Y = own[ids] + np.outer(week, np.sin(np.pi * S)) + 0.3 * rng.normal(size=(150, 21))
    data = {"week": week, "id": ids, "Y": Y}
    model = FunctionalRegression("Y ~ week + re(id, covariance='free')", progress=False).fit(data, grids={"Y": S})
    new = {"week": np.array([1.0, 1.0]), "id": np.array([3, -1])}
    found = inference.difference(model, {**new, "week": np.array([2.0, 2.0])}, new).value.reshape(2, -1)
    np.testing.assert_allclose(found[0], model.coef("week", t=S)["value"], atol=1e-10)
    np.testing.assert_allclose(found[1], found[0], atol=1e-12)
    between = inference.difference(model, {"week": [1.0], "id": [3]}, {"week": [1.0], "id": [-1]})
    assert not between.value.any()
    assert inference.slopes(model, "week", new=new).degrees[0] == pytest.approx(
        model.fitted_.errors.degrees(None, "week")
    )


def test_linear_terms_that_are_listed():
    data = people(60)
    model = FunctionalRegression([terms.linear("x"), terms.s("z", by="g")], response="Y", progress=False)
    model.fit(data, grids={"Y": S})
    assert inference.contrasts(model, "g").value.shape == (63,)
