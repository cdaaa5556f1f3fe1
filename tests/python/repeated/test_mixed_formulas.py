"""A curve for each person in formulas: equal to the engine and to dense laws; predictions, files, refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from repeated_tools import check_against_dense_law, curves_of_persons, dense_fit
from scipy.stats import t as student

from fdadp import FunctionalRegression, Privacy, ScalarRegression
from fdadp.errors import FdadpError, InputError
from fdadp.repeated.fixed_effects import fixed_effects
from fdadp.repeated.person_effects import RepeatedFit
from fdadp.repeated.search import choose_functions, level_covariances

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


def test_an_effect_in_the_direction_of_large_errors_is_not_smoothed_away():
    """Smoothing by REML that knows the errors held the weekend's effect in .57 of 40 samples, nominal .95."""
    held, t = [], np.linspace(0, 1, 60)
    for seed in range(12):
        c = curves_of_persons(1000 + seed, 40, most=7, least=2)
        data = {"Y": c.Y, "x": c.X[:, 0], "day": c.X[:, 1], "id": c.who}
        found = FunctionalRegression("Y ~ x + day + re(id, covariance='free', k=6)").fit(data).coef("day", se=True, t=t)
        held.append(((found["lower"] <= c.beta[2]) & (c.beta[2] <= found["upper"])).mean())
    assert np.mean(held) > 0.8


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
    terms = model.predict(data, type="terms")
    population = sum(part for name, part in terms.items() if name != "re(id)")
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
    for words in ("person", "noise", "ICC", "least BIC", "Hausman", "Successive rows", "know the covariances"):
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
    asked = FunctionalRegression("Y ~ x + day + re(id, covariance='free', k=5)", se="cluster", smoothing=[1e-9] * 3)
    model = asked.fit(data, groups="id")
    rows, V, _ = dense_fit(model, data)
    fit = model.fitted_.fit
    left = data["Y"].ravel() - rows @ fit.coefficients
    parts = rows.T * np.linalg.solve(V, left)
    who = np.repeat(np.unique(data["id"], return_inverse=True)[1], 20)
    scores = np.stack([parts[:, who == i].sum(axis=1) for i in range(12)])
    bread = fit.bayesian_covariance
    wanted = 12 / (12 - 2) * bread @ scores.T @ scores @ bread
    np.testing.assert_allclose(model.vcov(), wanted, atol=1e-5 * np.abs(wanted).max())
    np.testing.assert_allclose(model.vcov("iid"), bread, rtol=1e-12)
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
        (lambda d: d | {"Y": np.where(d["Y"] > 3, np.nan, d["Y"])}, FORMULA, "got gaps"),
        (dict, "Y ~ X + re(id, covariance='free')", "covariates are the same at all t"),
        (dict, "Y ~ c(re(id, covariance='free'))", r"c\(\) must have a term"),
        (dict, "Y ~ re(id, covariance='free'):x", "must explain curves"),
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
