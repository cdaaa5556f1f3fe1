"""A curve for each person in formulas: equal to the engine and to dense laws; predictions, files, refusals."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from repeated_tools import check_against_dense_law, curves_of_persons, dense_fit, weights_alike_along
from scipy.stats import t as student

from fdadp import FunctionalRegression, Privacy, ScalarRegression, terms
from fdadp.errors import FdadpError, InputError
from fdadp.regression.mixed_models import mixed_model_fit
from fdadp.regression.mixed_models.smoothed_terms import LOGARITHMS, SmoothedTerms
from fdadp.regression.model_settings import ModelSettings
from fdadp.repeated.fixed_effects import fixed_effects
from fdadp.repeated.person_effects import RepeatedFit
from fdadp.repeated.person_sums import smooth_functions
from fdadp.repeated.reml_search import choose_functions, level_covariances
from fdadp.solve.form.long_form_design import System

FORMULA = "Y ~ x + day + re(id, covariance='free')"


def table(seed: int = 0, persons: int = 30, **kwargs) -> dict:
    c = curves_of_persons(seed, persons, **kwargs)
    names = np.array([f"p{i:03d}" for i in range(persons)])
    return {"Y": c.Y, "x": c.X[:, 0], "day": c.X[:, 1], "id": names[c.who]}


@pytest.fixture(scope="module")
def fitted():
    data = table()
    return FunctionalRegression(FORMULA).fit(data), data


def test_covariances_are_those_of_the_engine(fitted):
    model, _ = fitted
    c = curves_of_persons(0, 30)
    sums = choose_functions(c.sums(20)).sums
    levels = level_covariances(sums)
    own = model.persons_
    assert own.phi.shape == sums.phi.shape
    np.testing.assert_allclose(own.levels.G, levels.G, atol=1e-6)
    np.testing.assert_allclose(own.levels.R, levels.R, atol=1e-6)
    engine = RepeatedFit(sums, levels, fixed_effects(sums, levels))
    assert own.edf == pytest.approx(sum(np.trace(engine.levels.shrinkage(int(n))) for n in sums.counts), rel=1e-6)
    assert own.icc() == pytest.approx(1.75 / 3.15, abs=0.15)


@pytest.mark.parametrize(
    "formula",
    ["Y ~ x + day + re(id, covariance='free', k=5)", "Y ~ s(x, k=5) + C(day) + re(id, covariance='free', k=6)"],
)
def test_terms_and_persons_are_those_of_the_dense_law(formula):
    data = table(1, 9, T=20, least=2)
    model = FunctionalRegression(formula).fit(data)
    fit, own = model.fitted_.fit, model.persons_
    rows, V, (of_persons,), _ = check_against_dense_law(model, data)
    left = data["Y"].ravel() - rows @ fit.coefficients
    persons = (of_persons @ np.linalg.solve(V, left)).reshape(data["Y"].shape)
    effects = model.coef("re(id)", se=True, t=fit.form.t[[3]], id=own.persons.levels)
    _, first = np.unique(data["id"], return_index=True)
    np.testing.assert_allclose(effects["value"], persons[first, 3], atol=1e-6)


def test_intervals_of_mean_curves_are_by_students_law(fitted):
    model, _ = fitted
    found = model.coef("x", level=0.9)
    place = model.fitted_.names.index("x")
    half = student.ppf(0.95, model.persons_.degrees[place]) * found["se"]
    np.testing.assert_allclose(found["upper"] - found["value"], half, rtol=1e-10)
    assert model.persons_.degrees[place] == 30 - 2  # x and the constant are the same within persons
    bands = model.bands("x", 0.9, simultaneous=False)
    np.testing.assert_allclose(bands["upper"], found["upper"], rtol=1e-10)


def test_bands_of_persons_are_pointwise(fitted):
    model, _ = fitted
    who = list(model.persons_.persons.levels[:2])
    bands = model.bands("re(id)", 0.9, simultaneous=False, id=who)
    pd.testing.assert_frame_equal(bands, model.coef("re(id)", level=0.9, id=who))
    with pytest.raises(InputError, match=r"simultaneous must be False for re\(id\)"):
        model.bands("re(id)")


@pytest.mark.parametrize("kind", [None, "iid"])
def test_intervals_of_curves_of_persons_are_by_students_law_where_errors_do_not_count_estimates(fitted, kind):
    model, _ = fitted
    found = model.coef("re(id)", level=0.9, t=[0.5], kind=kind)
    half = student.ppf(0.95, np.inf if kind is None else 30 - 2) * found["se"]
    np.testing.assert_allclose(found["upper"] - found["value"], half, rtol=1e-10)
    np.testing.assert_allclose(found["value"] - found["lower"], half, rtol=1e-10)


def test_an_effect_in_the_direction_of_large_errors_is_not_smoothed_away():
    """Smoothing takes little of an effect, but a penalised likelihood that knows the errors takes the rest with it.

    It held such an effect in .57 of 40 samples with smoothing parameters of its own, and in .87 of 200 with those of
    independent errors, .66 of these 12; nominal .95.
    """
    held, t = [], np.linspace(0, 1, 60)
    for seed in range(12):
        c = curves_of_persons(2000 + seed, 200, most=7, least=2)
        data = {"Y": c.Y, "x": c.X[:, 0], "day": c.X[:, 1], "id": c.who}
        found = FunctionalRegression("Y ~ x + day + re(id, covariance='free', k=6)").fit(data).coef("day", se=True, t=t)
        held.append(((found["lower"] <= c.beta[2]) & (c.beta[2] <= found["upper"])).mean())
    assert np.mean(held) > 0.83


@pytest.mark.parametrize(
    ("formula", "gaps"),
    [
        (FORMULA, False),
        ("Y ~ x + day + re(id, covariance='free', k=6)", True),
        ("Y ~ x + day + re(id, covariance='spline', k=6)", False),
        ("Y ~ x + day + re(id, slopes=day, k=6)", False),
        ("Y ~ x + day + re(id, covariance='free', k=6) + re(site, covariance='free')", False),
    ],
)
def test_curves_far_from_zero_have_the_fit_of_those_near_it(formula, gaps):
    """Normal equations of the curves themselves left no digit of them at 1e9."""
    data = table(0, 30)
    data["site"] = np.array([name[-1] for name in data["id"]])
    if gaps:
        data["Y"][3, 20:50] = np.nan
    near = FunctionalRegression(formula).fit(data)
    far = FunctionalRegression(formula).fit(data | {"Y": data["Y"] + 1e9})
    np.testing.assert_allclose(np.asarray(far.fitted_values_) - 1e9, near.fitted_values_, atol=1e-4)
    np.testing.assert_allclose(far.predict_se(data), near.predict_se(data), rtol=1e-3)
    assert far.loglik_ == pytest.approx(near.loglik_, abs=1e-2)


def test_the_dense_penalty_gives_what_free_covariances_give_where_both_hold():
    """re(id, k=) is the law with G = (a I + b S)⁻¹ and R = σ² I, which is near that of such data."""
    rng, t = np.random.default_rng(3), np.linspace(0, 1, 24)
    who = np.repeat(np.arange(30), rng.integers(3, 7, 30))
    own = rng.normal(size=(30, 3)) @ np.stack([np.ones(24), np.sin(2 * np.pi * t), np.cos(2 * np.pi * t)])
    x = rng.normal(size=who.size)
    Y = np.sin(np.pi * t) + x[:, None] * t + own[who] + 0.3 * rng.normal(size=(who.size, 24))
    data = {"Y": Y, "x": x, "id": who}
    free = FunctionalRegression("Y ~ x + re(id, covariance='free')").fit(data)
    penalty = FunctionalRegression("Y ~ x + re(id, k=8)", se="iid").fit(data)
    assert np.abs(free.fitted_values_ - penalty.fitted_values_).max() < 0.35
    gap = free.coef("x")["value"] - penalty.coef("x")["value"]
    assert (gap.abs() < 1.2 * penalty.coef("x", se=True)["se"]).all()
    ratio = free.coef("x", se=True)["se"] / penalty.coef("x", se=True)["se"]
    assert ratio.between(0.8, 1.25).all()


def test_rows_in_any_order_give_one_fit(fitted):
    model, data = fitted
    order = np.random.default_rng(1).permutation(len(data["id"]))
    again = FunctionalRegression(FORMULA).fit({name: column[order] for name, column in data.items()})
    np.testing.assert_allclose(again.fitted_values_, np.asarray(model.fitted_values_)[order], atol=1e-5)
    np.testing.assert_allclose(again.predict_se(data), model.predict_se(data), rtol=1e-4)


def test_unknown_persons_have_population_curves_and_wider_intervals(fitted):
    model, data = fitted
    new = data | {"id": np.array([f"new {label}" for label in data["id"]])}
    shown = model.predict(data, type="terms")
    population = sum(part for name, part in shown.items() if name != "re(id)")
    np.testing.assert_allclose(model.predict(new), population, atol=1e-12)
    for rows in (data, new):
        low, high = model.predict_interval(rows)
        assert 0.92 < ((low < data["Y"]) & (data["Y"] < high)).mean() < 0.98
    wide = [np.subtract(*model.predict_interval(rows)[::-1]).mean() for rows in (data, new)]
    assert wide[1] > 1.2 * wide[0]


def test_predictions_between_points_of_the_grid(fitted):
    model, data = fitted
    t = np.linspace(0, 1, 60)
    between = (t[1:] + t[:-1]) / 2
    whole, half = model.predict(data), model.predict(data, t=between)
    smooth = (whole[:, 1:] + whole[:, :-1]) / 2
    assert np.abs(half - smooth).max() < 0.02 * np.abs(whole).max()
    assert model.predict_se(data, t=between).shape == half.shape


def test_files_hold_persons_or_leave_them_out(fitted, tmp_path):
    model, data = fitted
    written = model.save(tmp_path / "kept")
    kept = FunctionalRegression.load(written)
    np.testing.assert_array_equal(kept.predict(data), model.predict(data))
    np.testing.assert_array_equal(kept.predict_interval(data)[0], model.predict_interval(data)[0])
    assert kept.persons_.icc() == model.persons_.icc()
    assert "ICC" in str(kept.summary())
    left_out = model.save(tmp_path / "out", people=False)
    out = FunctionalRegression.load(left_out)
    new = data | {"id": np.full(len(data["id"]), "nobody")}
    np.testing.assert_array_equal(out.predict(data), model.predict(new))
    np.testing.assert_array_equal(out.predict_interval(data)[0], model.predict_interval(new)[0])
    assert b"p003" in written.read_bytes() and b"p003" not in left_out.read_bytes()
    assert out.persons_.persons.levels == () and out.persons_.effects.size == 0 and out.persons_.sums is None


def test_summary_says_where_the_variance_is_and_whether_slopes_agree(fitted):
    model, _ = fitted
    said = str(model.summary())
    for words in (
        "person",
        "noise",
        "ICC",
        "least BIC",
        "Hausman",
        "Successive rows",
        "count that smoothing is estimated; covariances are estimated, too",
    ):
        assert words in said
    tests = model.test_terms()
    assert tests.loc["re(id)", "p"] == pytest.approx(0.005)
    assert model.term_names_[-1] == "re(id)"
    assert model.persons_.icc_curve().shape == (60,)
    assert model.persons_.variances.loc["noise", "variance"] == pytest.approx(0.25, rel=0.05)


def test_the_test_of_persons_keeps_its_level_without_an_effect():
    rng = np.random.default_rng(5)
    who = np.repeat(np.arange(30), 4)
    data = {"Y": rng.normal(size=(120, 12)), "id": who}
    model = FunctionalRegression("Y ~ re(id, covariance='free', k=4)").fit(data)
    assert model.test_terms().loc["re(id)", "p"] > 0.05


def test_errors_by_person_are_those_of_dense_scores():
    data = table(2, 12, T=20, least=2)
    asked = FunctionalRegression(
        "Y ~ x + day + re(id, covariance='free', k=5)", se="cluster", smoothing=[0.1, 1.0, 9.0]
    )
    model = asked.fit(data, groups="id")
    rows, V, *_ = dense_fit(model, data)
    fit = model.fitted_.fit
    left = data["Y"].ravel() - rows @ fit.coefficients
    parts = rows.T * np.linalg.solve(V, left)
    who = np.repeat(np.unique(data["id"], return_inverse=True)[1], 20)
    scores = np.stack([parts[:, who == i].sum(axis=1) for i in range(12)])
    weights = weights_alike_along(model, data, rows, V, np.ones(left.size, dtype=bool))
    penalty = np.diag(fit.smoothing_parameters @ fit.form.stacked_penalties) / fit.sigma2
    smoother = np.linalg.inv(weights + penalty)
    turn = smoother @ weights @ np.linalg.inv(rows.T @ np.linalg.solve(V, rows))
    bias = smoother @ penalty @ smoother
    wanted = 12 / (12 - 2) * turn @ scores.T @ scores @ turn.T + bias
    np.testing.assert_allclose(model.vcov(), wanted, atol=1e-6 * np.abs(wanted).max())
    np.testing.assert_allclose(model.vcov("iid"), fit.bayesian_covariance, rtol=1e-12)
    assert "within a person" in str(model.summary())


def test_a_number_for_each_person_stays_what_it_was():
    data = table(4, 12, T=20)
    number = FunctionalRegression("Y ~ x + re(id)").fit(data)
    assert number.persons_ is None and number.coef("re(id)").columns.tolist() == ["id", "value"]


@pytest.mark.parametrize(
    ("change", "formula", "said"),
    [
        (lambda d: d | {"id": np.arange(len(d["id"]))}, FORMULA, "all .* people have one row.*errors='curve'"),
        (
            lambda d: d | {"id": np.where(np.arange(len(d["id"])) < 14, None, d["id"])},
            FORMULA,
            "id must have a label in every row, got none in row 0 and 13 more",
        ),
        (dict, "Y ~ re(id, covariance='free', k=55)", r"re\(id\): k=55 needs at least 55 rows beyond one a person"),
        (dict, "Y ~ re(id, covariance='free', k=60)", "k must be"),
        (dict, "Y ~ re(id, covariance='other')", "covariance of re.id. must be"),
        (dict, "Y ~ re(id, covariance='free') + re(site)", "only random effect"),
        (
            dict,
            "Y ~ X + x + re(site, covariance='free') + re(id, covariance='free')",
            "covariates are the same at all t beside persons within sites, got .*(X)",
        ),
        (dict, "Y ~ c(re(id, covariance='free'))", r"c\(\) must have a term"),
        (dict, "Y ~ re(id, covariance='free'):x", "got 'x': a number goes into slopes"),
    ],
)
def test_refusals(change, formula, said):
    data = table(6, 20, most=4)
    data["site"], data["X"] = np.where(data["x"] > 0, "A", "B"), data["Y"] ** 2
    with pytest.raises(InputError, match=said):
        FunctionalRegression(formula).fit(change(data))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"errors": "curve"}, "errors of its own"),
        ({"response_basis": "eigen"}, "errors of its own"),
        ({"smoothing": "gcv"}, "smoothing must be 'reml'"),
        ({"family": "poisson"}, "family='gaussian'"),
    ],
)
def test_settings_that_leave_it_no_meaning(settings, said):
    with pytest.raises(InputError, match=said):
        FunctionalRegression(FORMULA, **settings).fit(table(6, 12))


def test_rows_of_a_person_may_be_in_several_chunks(fitted):
    model, data = fitted
    parts = np.array_split(np.arange(len(data["id"])), 7)
    chunks = [{name: column[rows] for name, column in data.items()} for rows in parts]
    found = FunctionalRegression(FORMULA, se="cluster").fit_chunks(chunks, groups="id")
    np.testing.assert_allclose(found.persons_.levels.G, model.persons_.levels.G, atol=1e-5)
    np.testing.assert_allclose(found.predict(data), model.predict(data), atol=1e-5)
    np.testing.assert_allclose(found.predict_se(data, kind="iid"), model.predict_se(data, kind="iid"), rtol=1e-4)
    assert found.persons_.successive == pytest.approx(model.persons_.successive, abs=1e-6)
    assert found.loglik_ == pytest.approx(model.loglik_, rel=1e-7) and found.fitted_.fit.rss > 0
    whole = FunctionalRegression(FORMULA, se="cluster").fit(data, groups="id")
    np.testing.assert_allclose(found.vcov(), whole.vcov(), atol=1e-4 * np.abs(whole.vcov()).to_numpy().max())
    assert "within a person" in str(found.summary())
    with pytest.raises(InputError, match=r"groups must be the levels of re\(id\), got 'day'"):
        FunctionalRegression(FORMULA, se="cluster").fit_chunks(chunks, groups="day")


def test_dask_arrays_are_chunks_of_persons(fitted):
    array = pytest.importorskip("dask.array")
    model, data = fitted
    columns = {name: array.from_array(column, chunks=(40, *column.shape[1:])) for name, column in data.items()}
    found = FunctionalRegression(FORMULA).fit_chunks(columns)
    np.testing.assert_allclose(found.predict(data), model.predict(data), atol=1e-5)


def test_numbers_groups_weights_and_private_fits_are_refused():
    data = table(6, 12)
    with pytest.raises(InputError, match="must explain curves"):
        ScalarRegression("y ~ re(id, covariance='free')").fit({"y": data["x"], "id": data["id"]})
    with pytest.raises(InputError, match="groups must be the levels of re"):
        FunctionalRegression(FORMULA).fit(data, groups=data["x"] > 0)
    with pytest.raises(InputError, match="weights must be None"):
        FunctionalRegression(FORMULA).fit(data, weights=np.ones(len(data["id"])))
    bounds = {"Y": (-9, 9), "x": (-4, 4), "day": (0, 1), "id": sorted(set(data["id"]))}
    with pytest.raises(FdadpError, match="max_rows must be given with re"):  # of test_private_mixed.py the rest
        FunctionalRegression(FORMULA, privacy=Privacy(1.0, 1e-6, n=400), bounds=bounds).fit(data)


def test_a_data_frame_with_an_offset_and_factor(fitted):
    _, data = fitted
    frame = pd.DataFrame(data["Y"]).add_prefix("t")
    plain = FunctionalRegression("Y ~ C(day) + re(id, covariance='free', k=6)").fit(data)
    moved = FunctionalRegression("Y ~ C(day) + re(id, covariance='free', k=6)").fit(
        data | {"Y": data["Y"] + 100.0}, offset=np.full(len(frame), 100.0)
    )
    np.testing.assert_allclose(moved.persons_.effects, plain.persons_.effects, atol=1e-5)


def test_the_check_of_bases_takes_residuals_of_rows_not_of_persons():
    """A covariate of the person has rows of one person beside each other, and their common curve is no misfit."""
    data = table(7, 40, least=3)
    model = FunctionalRegression("Y ~ s(x, k=5) + re(id, covariance='free', k=5)").fit(data)
    found = model.check(data)
    assert found.loc["s(x)", "p_value"] > 0.05 and found.loc["s(x)", "k_index"] > 0.9


def waves(seed: int, persons: int, T: int = 24):
    rng, t = np.random.default_rng(seed), np.linspace(0, 1, T)
    who = np.repeat(np.arange(persons), rng.integers(2, 5, persons))
    own = rng.normal(size=(persons, 3)) @ np.stack([np.ones(T), np.sin(2 * np.pi * t), np.cos(2 * np.pi * t)])
    x = rng.normal(size=who.size)
    Y = np.sin(np.pi * t) + x[:, None] * t + own[who] + 0.3 * rng.normal(size=(who.size, T))
    return {"Y": Y, "x": x, "id": who}


def test_splines_by_sums_are_the_fit_of_the_stacked_coefficients():
    """re(id, k=8) is equal to R's recorded values; covariance='spline' is the same model at linear cost."""
    data = waves(3, 20)
    stacked = FunctionalRegression("Y ~ x + re(id, k=8)", se="iid").fit(data)
    sums = FunctionalRegression("Y ~ x + re(id, k=8, covariance='spline')", se="iid").fit(data)
    check_against_dense_law(sums, data)
    np.testing.assert_allclose(sums.fitted_values_, stacked.fitted_values_, atol=1e-6)
    one, other = stacked.coef("x", se=True), sums.coef("x", se=True)
    np.testing.assert_allclose(one["se"], other["se"], rtol=1e-6)
    np.testing.assert_allclose(sums.predict_se(data, kind="iid"), stacked.predict_se(data, kind="iid"), rtol=1e-6)
    mine, theirs = sums.fitted_.fit, stacked.fitted_.fit
    assert mine.sigma2 == pytest.approx(theirs.sigma2, rel=1e-6)
    assert mine.criterion == pytest.approx(theirs.criterion, abs=1e-6)
    np.testing.assert_allclose(mine.smoothing_parameters, theirs.smoothing_parameters[:2], rtol=1e-4)
    again = FunctionalRegression("Y ~ x + re(id, k=8, covariance='spline')", se="iid", smoothing=[4.0, 9.0]).fit(data)
    np.testing.assert_allclose(again.fitted_.fit.smoothing_parameters, [4.0, 9.0])
    assert again.fitted_.fit.criterion > mine.criterion


def test_many_curves_of_persons_go_through_the_sums(monkeypatch):
    """As many coefficients as 400 here, so that few persons do."""
    assert mixed_model_fit.STACKED == 2000
    monkeypatch.setattr(mixed_model_fit, "STACKED", 400)
    data = waves(4, 52)
    few = {name: column[data["id"] < 48] for name, column in data.items()}
    assert FunctionalRegression("Y ~ x + re(id, k=4)").fit(few).persons_ is None
    many = FunctionalRegression("Y ~ x + re(id, k=8)").fit(data)
    assert many.persons_.kind == "spline" and "within a person" in str(many.summary())  # not by white errors
    with_curves = FunctionalRegression("Y ~ concurrent(X) + re(id, k=8)")
    small = {name: column[data["id"] < 51] for name, column in data.items()} | {"X": data["Y"][data["id"] < 51] ** 2}
    assert with_curves.fit(small).persons_ is None


@pytest.mark.parametrize("chunks", [False, True])
def test_curves_of_a_given_covariance_are_those_of_the_dense_law(chunks, tmp_path):
    data, t = waves(5, 15), np.linspace(0, 1, 24)
    functions = np.stack([np.ones(24), np.sin(2 * np.pi * t), np.cos(2 * np.pi * t)])
    given = terms.re("id", covariance="given", functions=functions, values=[1.0, 2.0, 0.5])
    formula = [terms.linear("x"), given]
    model = FunctionalRegression(formula)
    split = np.array_split(np.arange(len(data["id"])), 3)
    parts = [{name: column[rows] for name, column in data.items()} for rows in split]
    model = model.fit_chunks(parts) if chunks else model.fit(data)
    check_against_dense_law(model, data)
    own = model.persons_
    inner = own.phi.T @ functions.T
    G = inner @ np.diag([1.0, 2.0, 0.5]) @ inner.T
    factor = np.trace(own.levels.G) / np.trace(G)
    np.testing.assert_allclose(own.levels.G, factor * G, atol=1e-8 * np.trace(G))
    np.testing.assert_allclose(own.levels.R, own.levels.noise_variance * np.eye(3), rtol=1e-12)
    assert own.levels.noise_variance == pytest.approx(0.09, rel=0.1)
    kept = FunctionalRegression.load(model.save(tmp_path / "given"))
    np.testing.assert_array_equal(kept.predict_se(data), model.predict_se(data))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"covariance": "spline"}, "needs k with covariance='spline'"),
        ({"covariance": "given"}, "needs functions and values"),
        ({"functions": [[1.0]], "values": [1.0]}, "needs functions and values with covariance='given', and only"),
        ({"covariance": "given", "functions": [[1.0, 2.0]], "values": [-1.0]}, "one positive value"),
        ({"covariance": "spline", "k": 5, "slopes": "x"}, "needs covariance='free' with slopes"),
    ],
)
def test_options_of_white_errors_that_are_refused(options, said):
    with pytest.raises(InputError, match=said):
        terms.re("id", **options)


def test_given_functions_must_be_at_the_points_of_the_response():
    data = waves(6, 8)
    for functions, said in (
        (np.ones((1, 9)), "at 24 points, got 9"),
        (np.ones((2, 24)), "linear functions of each other"),
    ):
        given = terms.re("id", covariance="given", functions=functions, values=np.ones(len(functions)))
        with pytest.raises(InputError, match=said):
            FunctionalRegression([terms.linear("x"), given]).fit(data)


def test_smoothed_curves_have_a_floor_of_noise():
    """Bases of the terms reach beyond the directions in which smoothed curves vary; such fits were refused.

    Effects must lie in these directions, so that they vary by less: 95 % held .95 and .92 of x and day in 40 samples.
    """
    data = table(8, 40, T=40)
    phi = smooth_functions(np.linspace(0, 1, 40), 13)[0][:, :7]
    smooth = data | {"Y": data["Y"] @ phi @ phi.T}
    model, raw = FunctionalRegression(FORMULA).fit(smooth), FunctionalRegression(FORMULA).fit(data)
    assert "Curves have no noise" in str(model.summary()) and "Curves have no noise" not in str(raw.summary())
    one, other = model.coef("x", se=True), raw.coef("x", se=True)
    assert (one["se"] / other["se"]).between(0.4, 1.4).all()
    assert ((one["value"] - other["value"]).abs() < 1.2 * other["se"]).all()
    assert np.abs(model.residuals_).max() < 5 and model.persons_.icc() == pytest.approx(raw.persons_.icc(), abs=0.05)


@pytest.mark.parametrize("errors", ["model", "cluster"])
def test_an_effect_that_reml_takes_for_constant_need_not_be_so(errors):
    """REML's derivatives are 0 where a smoothing parameter is infinite: nominal 95 % held .15 of these effects.

    How the likelihood falls towards other smoothing parameters says how far the effect may be from constant.
    """
    held, t = [], np.linspace(0, 1, 40)
    for seed in (18, 19, 20, 53):
        c, rng = curves_of_persons(seed, 12, T=40, least=2), np.random.default_rng(seed)
        x = rng.normal(size=12)[c.who] + rng.normal(size=len(c.who))
        data = {"Y": c.Y - c.X @ c.beta[1:] + np.outer(x, c.beta[1]), "x": x, "id": c.who}
        model = FunctionalRegression("Y ~ x + re(id, covariance='free', k=5)")
        model = model.fit(data, groups="id" if errors == "cluster" else None)
        assert model.fitted_.fit.smoothing_parameters[1] > 1e9
        found = model.coef("x", se=True, t=t)
        held.append(((found["lower"] <= c.beta[1]) & (c.beta[1] <= found["upper"])).mean())
    assert np.mean(held) > 0.85


def test_smoothing_is_integrated_over_as_fits_with_other_parameters_have_it():
    model = FunctionalRegression("Y ~ s(x, k=5) + day + re(id, covariance='free', k=5)").fit(table(1, 15, T=20))
    own, rng = model.fitted_.fit, np.random.default_rng(0)
    form, scale = own.form, own.sigma2
    root = rng.normal(size=(2 * form.size, form.size)) @ np.linalg.cholesky(own.gram).T / 9
    gram, cross = root.T @ root, root.T @ rng.normal(size=len(root))
    system, weights = System(gram, cross, 2.0 * len(root), len(root)), own.gram / scale
    smoothed = SmoothedTerms.of(ModelSettings.of(model), form, weights, system, 100, scale)
    spread = scale * np.linalg.inv(gram)
    plain, chosen = np.linalg.solve(gram, cross), smoothed.fit.smoothing_parameters

    def at(m: int, logarithm: float):
        penalty = form.stacked_penalties[m]
        alike = own.gram.diagonal()[penalty > 0].sum() / penalty.sum()
        factors = np.where(np.arange(len(chosen)) == m, alike * np.exp(logarithm), chosen)
        pull = np.diag(factors @ form.stacked_penalties)
        taken = np.linalg.solve(own.gram + pull, own.gram)
        covariance = taken @ spread @ taken.T + scale * (np.eye(form.size) - taken) @ np.linalg.inv(own.gram + pull)
        beta = taken @ plain
        squares = ((plain - beta) @ own.gram @ (plain - beta) + beta @ pull @ beta) / scale
        free = np.diag(pull)[np.diag(pull) > 0]
        against = squares + np.linalg.slogdet(own.gram + pull)[1] - np.log(free).sum() + logarithm
        apart = beta - smoothed.fit.coefficients
        return -against / 2, covariance + np.outer(apart, apart)

    taken = np.linalg.solve(own.gram + np.diag(chosen @ form.stacked_penalties), own.gram)
    known = smoothed.outcome().bayesian_covariance
    np.testing.assert_allclose(smoothed.fit.coefficients, taken @ plain, atol=1e-8 * np.abs(plain).max())
    wanted = np.zeros_like(known)
    for m in range(len(chosen)):
        logs, covariances = zip(*(at(m, place) for place in LOGARITHMS), strict=True)
        share = np.exp(np.array(logs) - max(logs))
        more = np.tensordot(share / share.sum(), np.stack(covariances), axes=1) - known
        size, axes = np.linalg.eigh((more + more.T) / 2)
        wanted += (axes * np.maximum(size, 0)) @ axes.T
    np.testing.assert_allclose(smoothed.unsure(), wanted, atol=1e-6 * np.abs(wanted).max())


@cache
def held_in_sample(seed: int, persons: int, gaps: float) -> tuple[float, float]:
    """Of one sample, which several tests count."""
    t = np.linspace(0, 1, 30)
    phi = smooth_functions(t, 5)[0]
    c = curves_of_persons(seed, persons, T=30, least=2)
    rng = np.random.default_rng(seed)
    x = rng.normal(size=persons)[c.who] + rng.normal(size=len(c.who))
    Y = (c.Y - c.X @ c.beta[1:] + np.outer(x, c.beta[1])) @ phi @ phi.T
    Y += 0.5 * rng.normal(size=Y.shape) @ (np.eye(30) - phi @ phi.T)
    if gaps:
        off = rng.uniform(size=Y.shape) < gaps
        off[::3] = False
        Y = np.where(off, np.nan, Y)
    model = FunctionalRegression("Y ~ x + re(id, covariance='free', k=5)").fit({"Y": Y, "x": x, "id": c.who})
    found = model.coef("x", se=True, t=t)
    own = model.coef("re(id)", se=True, t=t)
    truth = (c.b @ phi @ phi.T).ravel()
    effect = (found["lower"] <= c.beta[1]) & (c.beta[1] <= found["upper"])
    return float(effect.mean()), float(((own["lower"] <= truth) & (truth <= own["upper"])).mean())


def held_with_few_persons(persons: int, runs: int, gaps: float = 0.0) -> tuple[float, float]:
    """Share of points at which nominal 95 % intervals hold the effect of a covariate that varies both ways, and curves
    of persons; the truth is what the functions hold of it. Two rows of three may lack a share of their points."""
    effect, curves = np.mean([held_in_sample(seed, persons, gaps) for seed in range(runs)], axis=0)
    return effect, curves


def test_intervals_of_few_persons_count_that_covariances_are_estimated():
    """Curves of persons held .88 at 12 persons where covariances counted as known, and .97 where all entries of that
    of persons counted as free, also those at their bound."""
    effect, curves = held_with_few_persons(12, 40)
    assert effect > 0.88 and 0.93 < curves < 0.965


def test_intervals_of_few_persons_with_gaps_count_that_covariances_are_estimated():
    """Where covariances counted as known, 95 % held .89 of curves of 8 persons."""
    effect, curves = held_with_few_persons(8, 15, gaps=0.35)
    assert effect > 0.88 and 0.93 < curves < 0.995


@pytest.mark.parametrize("term", ["re(id, covariance='free', k=4)", "re(id, slopes=z, k=4)"])
def test_two_persons_say_nothing_of_their_covariance_beside_a_covariate_of_the_person(term):
    """Errors that counted what estimating it adds were 0 and NaN."""
    c = curves_of_persons(2, 2, T=24, most=8, least=5)
    data = {"Y": c.Y, "x": 1.0 * c.who, "z": np.random.default_rng(0).normal(size=len(c.who)), "id": c.who}
    model = FunctionalRegression(f"Y ~ x + z + {term}").fit(data)
    for name in ("x", "re(id)"):
        se = model.coef(name, se=True)["se"]
        assert np.isfinite(se).all() and (se > 0).all()


@pytest.mark.statistics
@pytest.mark.parametrize("persons", [8, 12, 20])
@pytest.mark.parametrize("gaps", [0.0, 0.35])
def test_coverage_with_few_persons(persons, gaps):
    """Of 100 samples, between which shares differ by .07 to .13 of the effect and .06 to .07 of curves (standard
    deviations): .88 of curves, as where covariances count as known, is eight standard errors away. Bands that are too
    wide, .97 of curves, are found in about three runs of four."""
    effect, curves = held_with_few_persons(persons, 100, gaps=gaps)
    print(f"{persons} persons, gaps {gaps}: effect {effect:.3f}, curves of persons {curves:.3f}")
    assert 0.93 <= effect <= 0.985 and 0.93 <= curves <= 0.965  # effects: that smoothing is estimated is in them
