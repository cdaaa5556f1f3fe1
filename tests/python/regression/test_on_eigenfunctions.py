"""``response_basis="eigen"``: scores of curves are regressions of numbers, and together one model of curves."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from fdadp import AdditiveFunctionOnFunction, FunctionalRegression, ScalarRegression, simulate_affr, terms
from fdadp.errors import IdentificationWarning, InputError
from fdadp.solve.errors.leave_one_out_residuals import Residuals
from fdadp.solve.errors.sandwich import left_out

S, T = np.linspace(0, 1, 31), np.linspace(0, 2, 25) ** 1.3
GRIDS = {"X": S, "Y": T}
FORMULA = "Y ~ ff(X) + s(z, k=8) + x + C(g)"


def table(n, seed, noise=0.1):
    rng = np.random.default_rng(seed)
    x_curves = rng.normal(size=(n, 4)) @ np.array([np.ones(31), np.sin(3 * S), np.cos(5 * S), S**2])
    data = {"X": x_curves, "z": rng.uniform(-2, 2, n), "x": rng.normal(size=n), "g": np.resize(list("abc"), n)}
    truth = 2 * (x_curves @ np.exp(-S) / 31)[:, None] * (1 + T) + np.sin(data["z"])[:, None] * T
    truth = truth + np.outer(data["x"], np.cos(T)) + 0.3 * (data["g"] == "b")[:, None] * T**2
    errors = 0.4 * rng.normal(size=(n, 1)) * np.sin(3 * T) + noise * rng.normal(size=(n, T.size))
    return data | {"Y": truth + errors}, truth


@pytest.fixture(scope="module")
def data():
    return table(150, 0)[0]


@pytest.fixture(scope="module")
def model(data):
    return FunctionalRegression(FORMULA, response_basis="eigen").fit(data, grids=GRIDS)


def scores_of(model, y):
    basis = model.eigenbasis_
    return (y - basis.mean) @ (basis.functions * basis.weights).T


# --- what it is ---


@pytest.mark.parametrize("smoothing", ["reml", "gcv", "given"])
def test_sff_alone_is_the_additive_function_on_function_model(smoothing):
    sim = simulate_affr(1, 100, np.random.default_rng(0), n_points=31)
    x, y = (np.array(curves.data_matrix[..., 0]) for curves in (sim.X, sim.Y))
    given = [[3.0, 0.5], [1.0, 20.0], [0.1, 4.0]] if smoothing == "given" else smoothing
    settings = {"n_components": 3, "progress": False}
    own = AdditiveFunctionOnFunction(n_basis_x=7, n_basis_s=6, smoothing=given, **settings).fit(x, y)
    given = np.array(given)[:, ::-1] if smoothing == "given" else smoothing  # F's over x first there, over s here
    model = FunctionalRegression([terms.sff("X", k=(5, 6, 7))], response_basis="eigen", smoothing=given, **settings)
    grid = np.linspace(0, 1, 31)
    model.fit({"X": x, "Y": y}, grids={"X": grid, "Y": grid})
    exact = {"rtol": 1e-10, "atol": 1e-10} if smoothing == "given" else {"rtol": 1e-6, "atol": 1e-6}
    new = 0.9 * x[:9] + 0.1
    np.testing.assert_allclose(model.fitted_values_, own.predict(x), **exact)
    np.testing.assert_allclose(model.predict({"X": new}), own.predict(new), **exact)
    np.testing.assert_allclose(model.predict_se({"X": new}, kind="iid"), own.predict_se(new), **exact)
    at = [0.0, 0.21, 0.5, 0.99]
    np.testing.assert_allclose(model.predict({"X": new}, t=at), own.predict(new, t=at), **exact)
    np.testing.assert_allclose(model.eigenbasis_.functions, own.eigenfunctions_)
    np.testing.assert_allclose(model.criterion_, own.criterion_.sum(), rtol=1e-10)
    np.testing.assert_allclose(model.term_edf_["sff(X)"], (own.edf_ - 1).sum(), rtol=exact["rtol"])
    found, wanted = (
        np.minimum(np.log(sp), 15) for sp in (model.smoothing_parameters_[:, ::-1], own.smoothing_parameters_)
    )
    np.testing.assert_allclose(found, wanted, atol=1e-3)  # beyond that the criterion is flat


@pytest.mark.parametrize("own", [{}, {"period_s": 1.25}, {"x_transform": "quantile"}])
def test_its_sizes_periods_and_ranks_are_those_of_sff(own):
    sim = simulate_affr(2, 80, np.random.default_rng(1), n_points=31)
    x, y = (np.array(curves.data_matrix[..., 0]) for curves in (sim.X, sim.Y))
    settings = {"n_components": 2, "progress": False}
    model = AdditiveFunctionOnFunction(smoothing=(3.0, 0.5), **settings, **own).fit(x, y)
    term = terms.sff("X", k=(5, "auto", "auto"), period=own.get("period_s"), x_transform=own.get("x_transform"))
    other = FunctionalRegression([term], response_basis="eigen", smoothing=(0.5, 3.0), **settings)
    grid = np.linspace(0, 1, 31)
    other.fit({"X": x, "Y": y}, grids={"X": grid, "Y": grid})
    new = 0.8 * x[:9] + 0.1
    np.testing.assert_allclose(other.predict({"X": new}), model.predict(new), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(other.predict_se({"X": new}, kind="iid"), model.predict_se(new), rtol=1e-9, atol=1e-10)
    found = other.coef("sff(X)", s=[0.2, 0.7], x=[-0.5, 0.0, 1.0], t=[0.5])["value"].to_numpy().reshape(2, 3)
    wanted = model.surface([-0.5, 0.0, 1.0], [0.2, 0.7], [0.5])[:, :, 0].T  # functions of s alone are not identified
    np.testing.assert_allclose(found - found[:, :1], wanted - wanted[:, :1], rtol=1e-8, atol=1e-9)


def test_each_score_is_a_scalar_regression(data):
    formula = "lf(X) + s(z, k=8) + x + C(g)"
    sp = np.array([[20.0, 0.3], [5.0, 40.0]])
    model = FunctionalRegression(f"Y ~ {formula}", response_basis="eigen", n_components=2, smoothing=sp)
    model.fit(data, grids=GRIDS)
    new = {name: column[:20] for name, column in table(20, 9)[0].items()}
    basis, scores = model.eigenbasis_, scores_of(model, data["Y"])
    single = [
        ScalarRegression(f"y ~ {formula}", smoothing=own).fit(data | {"y": y}, grids={"X": S})
        for own, y in zip(sp, scores.T, strict=True)
    ]
    predicted = np.stack([one.predict(new) for one in single], axis=1)
    np.testing.assert_allclose(model.predict(new), basis.mean + predicted @ basis.functions, rtol=1e-9, atol=1e-10)
    surface = model.coef("lf(X)", s=[0.1, 0.7], t=T).pivot(index="s", columns="t", values="value").to_numpy()
    slopes = np.stack([one.coef("lf(X)", s=[0.1, 0.7])["value"] for one in single], axis=1)
    np.testing.assert_allclose(surface, slopes @ basis.functions, rtol=1e-8, atol=1e-9)
    se = np.stack([one.coef("lf(X)", se=True, s=[0.1, 0.7])["se"] for one in single], axis=1)
    found = model.coef("lf(X)", se=True, kind="iid", s=[0.1, 0.7], t=T)["se"].to_numpy().reshape(2, -1)
    np.testing.assert_allclose(found**2, se**2 @ basis.functions**2, rtol=1e-7)
    np.testing.assert_allclose(model.criterion_, sum(one.criterion_ for one in single) - np.log(150), rtol=1e-9)
    for name in ("lf(X)", "s(z)", "x", "g"):
        np.testing.assert_allclose(model.term_edf_[name], sum(one.term_edf_[name] for one in single), rtol=1e-7)


def test_reml_chooses_for_each_score_what_it_chooses_for_a_number(data):
    model = FunctionalRegression("Y ~ lf(X) + s(z)", response_basis="eigen", n_components=2).fit(data, grids=GRIDS)
    for own, y in zip(model.smoothing_parameters_, scores_of(model, data["Y"]).T, strict=True):
        one = ScalarRegression("y ~ lf(X) + s(z)").fit(data | {"y": y}, grids={"X": S})
        found, wanted = (np.minimum(np.log(sp), 15) for sp in (own, one.smoothing_parameters_))
        np.testing.assert_allclose(found, wanted, atol=1e-3)  # beyond that the criterion is flat
    assert model.smoothing_names_ == one.smoothing_names_


@pytest.mark.parametrize(
    ("formula", "names"),
    [
        ("Y ~ ff(X, by='g') + te(z, x)", ("ff(X):g", "te(z, x)")),
        ("Y ~ x * C(g) + C(g):ff(X)", ("x", "g", "x:g", "ff(X):g")),
        ("Y ~ ffpc(X) + s(z, by='x')", ("ffpc(X)", "s(z):x")),
        ("Y ~ af(X, k=(6, 6)) + re(g)", ("af(X)", "re(g)")),
        ("Y ~ sff(X, k=(5, 6, 6)) + fpcr(X)", ("sff(X)", "fpcr(X)")),
    ],
)
def test_terms_that_factor_over_t_are_all_there(data, formula, names):
    model = FunctionalRegression(formula, response_basis="eigen", n_components=2).fit(data, grids=GRIDS)
    assert model.term_names_[:2] == ("(Intercept)", "s(t)") and set(model.term_names_[2:]) == set(names)
    parts = model.predict(data, type="terms")
    np.testing.assert_allclose(sum(parts.values()), model.fitted_values_, atol=1e-9)
    basis = model.eigenbasis_
    for name in names:  # each is a combination of eigenfunctions
        beyond = parts[name] - (parts[name] @ (basis.functions * basis.weights).T) @ basis.functions
        assert np.abs(beyond).max() < 1e-9 * max(np.abs(parts[name]).max(), 1.0)
        assert np.isfinite(model.coef(name, se=True)[["value", "se"]]).all(axis=None)
    assert set(model.test_terms().index) == {"s(t)", *names}


def test_the_mean_curve_is_a_constant_and_a_curve_that_sums_to_zero(data, model):
    curve = model.coef("s(t)", t=T)["value"].to_numpy()
    assert abs(curve.sum()) < 1e-10
    rest = sum(part for name, part in model.predict(data, type="terms").items() if name not in ("(Intercept)", "s(t)"))
    level = float(model.coef("(Intercept)")["value"].iloc[0])
    np.testing.assert_allclose(level + curve + rest.mean(axis=0), data["Y"].mean(axis=0), atol=1e-10)


def test_responses_that_are_constants_have_a_mean_curve():
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    y = (x + 0.1 * rng.normal(size=60))[:, None] * np.ones(5)
    model = FunctionalRegression("Y ~ x", response_basis="eigen").fit({"x": x, "Y": y}, grids={"Y": np.arange(5.0)})
    np.testing.assert_allclose(model.coef("x")["value"], np.polyfit(x, y[:, 0], 1)[0])
    np.testing.assert_allclose(model.coef("s(t)")["value"], 0, atol=1e-12)


# --- how sure it is ---


@pytest.mark.parametrize(
    "groups", [None, np.repeat(np.arange(50), 3), np.arange(150) % 2], ids=["each", "three", "half"]
)
def test_changes_without_a_cluster_are_those_of_a_full_precision(model, groups):
    own, fit = model.fitted_.errors.residuals, model.fitted_.fit
    low = left_out(fit.form, fit.inverse, own, groups)
    precision = own.precision.root @ own.precision.root.T
    full = left_out(fit.form, fit.inverse, Residuals(own.records, own.values, precision=precision), groups)
    np.testing.assert_allclose(low, full, rtol=1e-4, atol=1e-6 * np.abs(full).max())


def test_changes_without_a_curve_are_those_of_another_fit(data, model):
    basis = model.eigenbasis_
    onto = (basis.functions * basis.weights).T
    other = FunctionalRegression("Y ~ ff(X) + x + C(g)", response_basis="eigen", n_components=basis, smoothing=[10.0])
    mine = clone(other).fit(data, grids=GRIDS)
    changes = left_out(mine.fitted_.fit.form, mine.fitted_.fit.inverse, mine.fitted_.errors.residuals)
    for i in (3, 77):
        without = {name: np.delete(column, i, axis=0) for name, column in data.items()}
        moved = mine.fitted_.fit.form.predictor(mine.fitted_.errors.residuals.records, changes[i])
        wanted = mine.fitted_values_ - other.fit(without, grids=GRIDS).predict(data)
        np.testing.assert_allclose(moved @ onto, wanted @ onto, rtol=1e-6, atol=1e-8)


def test_standard_errors_know_of_what_no_coefficient_does(data):
    few, many = (
        FunctionalRegression(FORMULA, response_basis="eigen", n_components=k).fit(data, grids=GRIDS) for k in (1, 4)
    )
    away = np.abs(few.fitted_values_ - many.fitted_values_).mean()
    assert few.predict_se(data).mean() > 0.5 * away > 2 * many.predict_se(data).mean()


@pytest.mark.parametrize("variance", ["auto", "constant"])
def test_intervals_hold_new_responses(variance):
    held = []
    for seed in range(8):
        new, _ = table(400, 1000 + seed)
        model = FunctionalRegression(FORMULA, response_basis="eigen", variance=variance)
        lower, upper = model.fit(table(150, seed)[0], grids=GRIDS).predict_interval(new, level=0.9, grids=GRIDS)
        held.append(((lower < new["Y"]) & (new["Y"] < upper)).mean())
    assert 0.875 < np.mean(held) < 0.915


def test_mean_curves_are_covered_where_errors_are_smooth():
    held = []
    for seed in range(12):
        data, truth = table(150, 100 + seed)
        model = FunctionalRegression(FORMULA, response_basis="eigen", n_components=4).fit(data, grids=GRIDS)
        held.append((np.abs(model.fitted_values_ - truth) < 1.96 * model.predict_se(data)).mean())
    assert 0.92 < np.mean(held) < 0.99


def test_groups_are_taken_as_independent(data):
    twice = {name: np.repeat(column, 2, axis=0) for name, column in data.items()}
    person = np.repeat(np.arange(150), 2)
    model = FunctionalRegression(FORMULA, response_basis="eigen", n_components=2)
    by_curve = model.fit(twice, grids=GRIDS).coef("x", se=True)["se"]
    by_person = model.fit(twice, grids=GRIDS, groups=person).coef("x", se=True)["se"]
    np.testing.assert_allclose(by_person / by_curve, np.sqrt(2), rtol=0.1)  # the same rows twice tell nothing new


# --- what every model has ---


def test_tests_bands_checks_and_pictures_are_there(data, model):
    tests = model.test_terms()
    assert (tests["p"] < 1e-3).all() and tests.loc["x", "df"] == model.eigenbasis_.n_components
    band, pointwise = (model.bands("ff(X)", simultaneous=whole) for whole in (True, False))
    assert (band["upper"] - band["lower"] > pointwise["upper"] - pointwise["lower"]).all()
    assert model.concurvity().loc["ff(X)", "worst"] < 1 and np.isfinite(model.aic_)
    assert set(model.check(data, grids=GRIDS, n_draws=50).index) == {"s(t)", "ff(X)", "s(z)", "x", "g"}
    text = str(model.summary())
    assert "Eigenfunctions" in text and "ff(X).1" in text and "[2]" in text
    model.plot("ff(X)").clf()
    boot = model.bootstrap(50).coef("x", t=[0.5])
    assert boot["lower"].iloc[0] < model.coef("x", t=[0.5])["value"].iloc[0] < boot["upper"].iloc[0]
    smaller = FunctionalRegression("Y ~ ff(X) + s(z, k=8)", response_basis="eigen").fit(data, grids=GRIDS)
    assert model.anova(smaller).loc["larger", "p"] < 1e-6
    with pytest.raises(InputError, match="response_basis='splines'"):
        model.vcov("unconditional")


def test_a_file_predicts_the_same(model, data, tmp_path):
    loaded = FunctionalRegression.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.predict(data, t=[0.3, 0.77]), model.predict(data, t=[0.3, 0.77]))
    np.testing.assert_array_equal(loaded.predict_se(data), model.predict_se(data))
    for a, b in zip(loaded.predict_interval(data), model.predict_interval(data), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(loaded.smoothing_parameters_, model.smoothing_parameters_)
    np.testing.assert_array_equal(loaded.eigenbasis_.functions, model.eigenbasis_.functions)


def test_chunks_give_the_same(model, data):
    chunks = [{name: column[a : a + 40] for name, column in data.items()} for a in range(0, 150, 40)]
    other = FunctionalRegression(FORMULA, response_basis="eigen").fit_chunks(chunks, grids=GRIDS)
    np.testing.assert_allclose(other.predict(data), model.fitted_values_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(other.predict_se(data), model.predict_se(data), rtol=1e-4)
    for a, b in zip(other.predict_interval(data), model.predict_interval(data), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_an_offset_is_taken_away_first(data, model):
    shift = np.outer(data["x"], np.cos(T))
    shifted = data | {"Y": data["Y"] + shift}
    other = FunctionalRegression(FORMULA, response_basis="eigen").fit(shifted, grids=GRIDS, offset=shift)
    np.testing.assert_allclose(other.fitted_values_, model.fitted_values_ + shift, atol=1e-8)
    np.testing.assert_allclose(other.predict(data, offset=shift), other.fitted_values_, atol=1e-10)


def test_a_second_fit_on_splines_keeps_nothing(data):
    model = FunctionalRegression("Y ~ x", response_basis="eigen").fit(data, grids={"Y": T})
    model.set_params(response_basis="splines").fit(data, grids={"Y": T})
    assert model.eigenbasis_ is None and model.fitted_.basis is None
    other = FunctionalRegression("Y ~ x").fit(data, grids={"Y": T})
    np.testing.assert_array_equal(model.predict_se(data), other.predict_se(data))


# --- what is refused ---


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        ("Y ~ X", r"concurrent\(X\) must go with response_basis='splines', not 'eigen': its features differ"),
        ("Y ~ x + ff(X, limits='s<=t')", r"ff\(X\) must go with .* its limits depend on the point"),
        ("Y ~ C(g):X", r"concurrent\(X\) must go with"),
        ("Y ~ c(s(z))", r"c\(s\(z\)\) must go with .* the same at all points"),
        ("Y ~ fosr(x)", r"fosr\(x\) must go with .* use linear\(\)"),
        ("Y ~ s(z, k=(8, 5))", r"k of s\(z\) must be one number"),
        ("Y ~ 1", "at least one term"),
        ("Y ~ x - 1", "an intercept and a mean curve"),
    ],
)
def test_terms_that_do_not_factor_are_named(data, formula, text):
    with pytest.raises(InputError, match=text):
        FunctionalRegression(formula, response_basis="eigen").fit(data, grids=GRIDS if "X" in formula else {"Y": T})


@pytest.mark.parametrize(
    ("settings", "asked", "text"),
    [
        ({"response_basis": "fourier"}, {}, "response_basis must be"),
        ({"n_components": 0}, {}, "n_components must be at least 1"),
        ({"n_components": 99}, {}, "n_components must be at most 25"),
        ({"family": "poisson"}, {}, "family='gaussian', got 'poisson'"),
        ({"errors": "curve"}, {}, "errors must be 'iid' with response_basis='eigen'"),
        ({"smoothing": [1.0, 2.0, 3.0]}, {}, r"smoothing must hold 1 smoothing parameters \(ff\(X\).1\), or as many"),
        ({}, {"weights": np.ones(150)}, "weights must be None"),
    ],
)
def test_settings_are_checked(data, settings, asked, text):
    model = FunctionalRegression(**{"formula": "Y ~ ff(X)", "response_basis": "eigen"} | settings)
    with pytest.raises(InputError, match=text):
        model.fit(data, grids=GRIDS, **asked)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"Y": np.outer(np.ones(150), T)}, "Y must vary between rows, got the same in all"),
        ({"X": np.ones((150, 31))}, r"ff\(X\) must vary between rows"),
        ({"x": np.full(150, 3.0)}, "x must vary between rows"),
    ],
)
def test_what_does_not_vary_is_refused(data, change, text):
    with pytest.raises(InputError, match=text):
        FunctionalRegression("Y ~ ff(X) + x", response_basis="eigen").fit(data | change, grids=GRIDS)


@pytest.mark.parametrize("n", [4, 5, 8])
def test_few_rows_and_perfect_fits_have_finite_answers(n):
    few, _ = table(n, 3)
    for columns in (few, few | {"Y": 1 + np.outer(few["x"], T)}):
        model = FunctionalRegression("Y ~ ff(X) + x", response_basis="eigen").fit(columns, grids=GRIDS)
        assert np.isfinite(model.predict_se(columns)).all() and np.isfinite(model.predict_interval(columns)).all()
        assert model.test_terms()["p"].between(0, 1).all()


def test_what_the_data_do_not_identify_is_named(data):
    with pytest.warns(IdentificationWarning, match="twice repeats other terms"):
        model = FunctionalRegression("Y ~ x + twice", response_basis="eigen")
        model.fit(data | {"twice": 2 * data["x"]}, grids={"Y": T})
    alone = FunctionalRegression("Y ~ x", response_basis="eigen").fit(data, grids={"Y": T})
    np.testing.assert_allclose(model.fitted_values_, alone.fitted_values_, atol=1e-8)
