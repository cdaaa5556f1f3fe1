"""Standard errors, tests, bands and intervals of models of many terms, through the public estimators."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from uneven_curves import GRIDS, T, cohort, model, rows

from fdadp import FunctionalRegression, ScalarRegression, terms
from fdadp.errors import InputError
from fdadp.solve.errors.sandwich import left_out


def bias(fitted):
    fit = fitted.fitted_.fit
    return fit.bayesian_covariance - fit.sigma2 * fit.inverse @ fit.gram @ fit.inverse


@pytest.mark.parametrize("group", [1, 4])
@pytest.mark.parametrize("gaps", [False, True])
def test_covariance_is_that_of_leaving_out(group, gaps):
    """At given smoothing parameters and centre exactly: as many refits, each without a curve or a group of them."""
    uncentred = partial(model, k="refund")
    data, _ = cohort(24, 0, group=group)
    if gaps:
        data["Y"] = np.where(np.random.default_rng(1).uniform(size=data["Y"].shape) < 0.1, np.nan, data["Y"])
    sp = uncentred().fit(data, grids=GRIDS).smoothing_parameters_
    whole = uncentred(smoothing=sp).fit(data, grids=GRIDS, groups="who")
    changes = [
        whole.fitted_.fit.coefficients
        - uncentred(smoothing=sp).fit(rows(data, data["who"] != g), grids=GRIDS).fitted_.fit.coefficients
        for g in np.unique(data["who"])
    ]
    expected = np.transpose(changes) @ changes + bias(whole)
    found = whole.vcov().to_numpy()
    assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()
    if group == 1:
        assert np.allclose(found, whole.vcov("curve"), rtol=1e-10, atol=0)


def test_points_of_their_own_are_clustered_by_their_curve():
    data, _ = cohort(30, 2)
    on_grid = model().fit(data, grids=GRIDS)
    import pandas as pd

    record, t = np.repeat(np.arange(30), T.size), np.tile(T, 30)
    table = pd.DataFrame({"row": record, "t": t, "y": data["Y"].ravel()})
    own = model(smoothing=on_grid.smoothing_parameters_)
    own.fit({k: v for k, v in data.items() if k != "Y"}, response=table, grids={"X": T})
    same = model(smoothing=on_grid.smoothing_parameters_).fit(data, grids=GRIDS)
    assert np.allclose(own.predict_se(rows(data, slice(5)), t=T), same.predict_se(rows(data, slice(5))), rtol=1e-6)


def test_smoothing_chosen_by_the_data_widens():
    """Standard errors know it: those at the same smoothing parameters, given, are smaller."""
    data, _ = cohort(60, 3)
    chosen = model().fit(data, grids=GRIDS)
    given = model(smoothing=chosen.smoothing_parameters_).fit(data, grids=GRIDS)
    ratio = chosen.coef("ff(X)", se=True)["se"] / given.coef("ff(X)", se=True)["se"]
    assert ratio.mean() > 1.005
    assert np.allclose(chosen.vcov("iid"), given.vcov("iid"), rtol=1e-9, atol=1e-12)


@pytest.fixture(scope="module")
def repeated():
    """Thirty cohorts of 60 curves with smooth, uneven errors: what covers, and what rejects."""
    found = []
    for seed in range(30):
        data, mean = cohort(60, 100 + seed)
        fitted = model().fit(data, grids=GRIDS)
        error = np.abs(fitted.fitted_values_ - mean)
        covers = {k: (error < 1.96 * fitted.predict_se(data, kind=k)).mean() for k in ("curve", "iid")}
        rejects = {k: fitted.test_terms(k).loc["w", "p"] < 0.05 for k in ("curve", "iid")}
        band = fitted.bands("z", t=T)
        holds = ((band["lower"] < 1 - T) & (band["upper"] > 1 - T)).all()
        found.append((covers["curve"], covers["iid"], rejects["curve"], rejects["iid"], holds))
    return np.mean(found, axis=0)


@pytest.mark.statistics
def test_coverage_of_means(repeated):
    assert repeated[0] > 0.9
    assert repeated[1] < 0.75


def test_level_of_term_tests(repeated):
    assert repeated[2] <= 0.15
    assert repeated[3] > 0.4


def test_simultaneous_bands_hold_the_whole_function(repeated):
    assert repeated[4] > 0.83


def test_groups_that_share_errors_need_their_own_covariance():
    """Of a number that is the same within a group: curves taken as independent miss most of its variance."""
    data, _ = cohort(120, 4, group=6)
    fitted = model().fit(data, grids=GRIDS, groups=data["who"])
    ratio = fitted.coef("w", se=True)["se"] / fitted.coef("w", se=True, kind="curve")["se"]
    assert ratio.mean() > 1.5
    assert fitted.vcov().equals(fitted.vcov("cluster"))
    assert fitted.test_terms("curve").loc["w", "p"] < fitted.test_terms().loc["w", "p"]


def test_few_curves():
    data, _ = cohort(6, 5)
    fitted = FunctionalRegression([terms.linear("z")]).fit(data, grids=GRIDS)
    band = fitted.bands("z", simultaneous=False, t=T)
    half = (band["upper"] - band["lower"]) / 2 / band["se"]
    assert np.allclose(half, 2.5705818366147395)  # Student's t with 5 degrees of freedom
    assert (fitted.bands("z", t=T)["upper"] > band["upper"]).all()
    tested = fitted.test_terms()
    assert tested["p"].between(0, 1).all()
    assert np.isfinite(fitted.predict_se(data)).all()


def test_what_one_curve_alone_determines():
    """A column that is not 0 for one curve only: nothing says by how much its coefficient varies."""
    data, _ = cohort(30, 6)
    data["w"] = np.where(np.arange(30) == 7, 1.0, 0.0)
    fitted = model().fit(data, grids=GRIDS)
    assert np.isfinite(fitted.vcov().to_numpy()).all()


def test_constant_columns():
    data, _ = cohort(30, 7)
    data["w"] = np.full(30, 2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = model().fit(data, grids=GRIDS)
    assert np.isfinite(fitted.vcov().to_numpy()).all()
    assert fitted.test_terms()["p"].between(0, 1).all()


def test_strong_and_absent_effects():
    data, _ = cohort(80, 8)
    fitted = model().fit(data, grids=GRIDS)
    tested = fitted.test_terms()
    assert tested.columns.tolist() == ["edf", "statistic", "df", "p"]
    assert tested.index.tolist() == ["s(t)", "ff(X)", "z", "w"]
    assert tested.loc["z", "p"] < 1e-3 < 0.05 < tested.loc["w", "p"]
    assert (tested["df"] <= 5).all()  # one direction for 15 curves
    assert (fitted.test_terms("iid")["df"] <= np.ceil(tested["edf"])).all()


def test_anova_compares_nested_models():
    data, _ = cohort(80, 9)
    large = model().fit(data, grids=GRIDS)
    small = FunctionalRegression([terms.ff("X"), terms.linear("w")]).fit(data, grids=GRIDS)
    table = large.anova(small)
    assert table.equals(small.anova(large))
    assert table.loc["larger", "p"] == pytest.approx(large.test_terms().loc["z", "p"])
    assert table.loc["smaller", "aic"] > table.loc["larger", "aic"]
    with pytest.raises(InputError, match="other must have some of the terms"):
        large.anova(large)
    with pytest.raises(InputError, match="same rows, got 210 observations, not 1680"):
        large.anova(FunctionalRegression([terms.linear("z")]).fit(rows(data, slice(10)), grids=GRIDS))
    with pytest.raises(InputError, match="other must be a model"):
        large.anova("small")


def test_likelihood_and_aic():
    """By their definitions, with the smoothing parameters given."""
    from scipy.stats import norm

    data, _ = cohort(40, 10)
    chosen = model().fit(data, grids=GRIDS)
    fitted = model(smoothing=chosen.smoothing_parameters_).fit(data, grids=GRIDS)
    sd = np.sqrt(np.mean(fitted.residuals_**2))
    assert fitted.loglik_ == pytest.approx(norm.logpdf(fitted.residuals_, scale=sd).sum(), rel=1e-10)
    assert fitted.aic_ == pytest.approx(-2 * fitted.loglik_ + 2 * fitted.edf_ + 2, rel=1e-10)
    assert chosen.aic_ > fitted.aic_


def test_bands():
    data, _ = cohort(60, 11)
    fitted = model().fit(data, grids=GRIDS)
    where = {"s": T[::5], "t": T[::4]}
    pointwise, band = fitted.bands("ff(X)", simultaneous=False, **where), fitted.bands("ff(X)", **where)
    assert band.columns.tolist() == ["s", "t", "value", "se", "lower", "upper"]
    assert np.allclose(band[["value", "se"]], fitted.coef("ff(X)", se=True, **where)[["value", "se"]])
    assert (band["upper"] > pointwise["upper"]).all()
    assert (fitted.bands("ff(X)", 0.99, **where)["lower"] < band["lower"]).all()
    assert band.equals(fitted.bands("ff(X)", **where))
    one = {"s": [0.5], "t": [0.5]}
    alone, same = fitted.bands("ff(X)", **one), fitted.bands("ff(X)", simultaneous=False, **one)
    assert alone["upper"].item() == pytest.approx(same["upper"].item(), rel=0.1)


def test_files_hold_the_covariance_but_no_rows(tmp_path):
    data, _ = cohort(40, 12, group=4)
    fitted = model().fit(data, grids=GRIDS, groups="who")
    expected = {k: fitted.vcov(k) for k in ("curve", "cluster", "iid")}
    loaded = FunctionalRegression.load(fitted.save(tmp_path / "model"))
    for kind, covariance in expected.items():
        assert np.array_equal(loaded.vcov(kind), covariance)
    assert loaded.test_terms().equals(fitted.test_terms())
    assert loaded.aic_ == fitted.aic_
    assert loaded.fitted_.errors.residuals is None


def test_scalar_responses():
    """Independent errors by default; uneven ones by kind, and persons by groups."""
    rng = np.random.default_rng(13)
    z = rng.normal(size=200)
    data = {"z": z, "y": z + z**2 * rng.normal(size=200)}
    fitted = ScalarRegression([terms.linear("z")]).fit(data)
    assert np.allclose(fitted.predict_se({"z": [2.0]}), fitted.predict_se({"z": [2.0]}, kind="iid"))
    assert fitted.predict_se({"z": [2.0]}, kind="curve") > 1.3 * fitted.predict_se({"z": [2.0]})
    twice = {name: np.repeat(v, 2) for name, v in data.items()}
    doubled = ScalarRegression([terms.linear("z")]).fit(twice, groups=np.repeat(np.arange(200), 2))
    assert np.allclose(doubled.predict_se({"z": [2.0]}), fitted.predict_se({"z": [2.0]}, kind="curve"), rtol=0.01)


def test_counts_with_more_variance_than_poisson():
    rng = np.random.default_rng(14)
    z = rng.normal(size=(100, 1))
    rate = np.exp(1 + 0.3 * z * (1 - T)) * rng.gamma(4, 1 / 4, size=(100, 1))
    data = {"z": z[:, 0], "Y": rng.poisson(rate).astype(float)}
    fitted = FunctionalRegression([terms.linear("z")], family="poisson").fit(data, grids={"Y": T})
    ratio = fitted.coef("z", se=True)["se"] / fitted.coef("z", se=True, kind="iid")["se"]
    assert ratio.mean() > 2


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ("nobody", "groups must be labels or a column of data, got 'nobody'"),
        (np.arange(5), r"groups must have one label a row, 20 in all, got 5"),
        (
            np.where(np.arange(20) == 3, None, "a"),
            "got a missing one in row 3: leave the row out, or give it an id of its own",
        ),
        ("x", "got 'x', which is none; did you mean 'X'"),
        (np.zeros(20), "groups must be two or more, got only 0.0"),
    ],
)
def test_groups_that_are_none(groups, message):
    with pytest.raises(InputError, match=message):
        model().fit(cohort(20, 15)[0], grids=GRIDS, groups=groups)


def test_settings_that_are_unknown():
    fitted = model().fit(cohort(20, 16)[0], grids=GRIDS)
    with pytest.raises(InputError, match="kind must be one of 'curve', 'cluster', 'iid', 'unconditional', got 'hac'"):
        fitted.vcov("hac")
    with pytest.raises(InputError, match="kind='cluster' needs groups"):
        fitted.test_terms("cluster")
    with pytest.raises(InputError, match="se must be one of 'curve', 'cluster', 'iid', got 'robust'"):
        model(se="robust").fit(cohort(20, 16)[0], grids=GRIDS)
    with pytest.raises(InputError, match="level must lie between 0 and 1, got 95"):
        fitted.bands("z", level=95)
    with pytest.raises(InputError, match="name must be a term"):
        fitted.bands("age")
    iid = model(se="iid").fit(cohort(20, 16)[0], grids=GRIDS)
    assert iid.vcov().equals(fitted.vcov("iid"))


def test_smoothing_parameters_that_are_estimated():
    """kind="unconditional" is wider by what REML's choice adds, where refund takes the choice as known."""
    data, _ = cohort(30, 19)
    fitted = model().fit(data, grids=GRIDS)
    wider = fitted.vcov("unconditional") - fitted.vcov("iid")
    assert np.linalg.eigvalsh(wider).min() > -1e-9 * np.abs(wider.to_numpy()).max()
    ratio = fitted.predict_se(data, kind="unconditional") / fitted.predict_se(data, kind="iid")
    assert (ratio >= 1).all() and ratio.mean() > 1.01
    assert fitted.coef("ff(X)", se=True, kind="unconditional")["se"].notna().all()
    assert fitted.bands("z", kind="unconditional")["se"].gt(fitted.bands("z", kind="iid")["se"]).all()
    assert fitted.test_terms("unconditional").loc["z", "p"] >= fitted.test_terms("iid").loc["z", "p"]


def test_unconditional_needs_smoothing_by_reml(tmp_path):
    data, _ = cohort(30, 19)
    fitted = model().fit(data, grids=GRIDS)
    loaded = FunctionalRegression.load(fitted.save(tmp_path / "model"))
    assert np.array_equal(loaded.vcov("unconditional"), fitted.vcov("unconditional"))
    given = model(smoothing=fitted.smoothing_parameters_).fit(data, grids=GRIDS)
    for other in (given, model(smoothing="gcv").fit(data, grids=GRIDS)):
        with pytest.raises(InputError, match="kind='unconditional' needs smoothing='reml'"):
            other.vcov("unconditional")
    counts = model(family="poisson").fit({**data, "Y": np.round(np.abs(data["Y"]))}, grids=GRIDS)
    assert (counts.predict_se(data, kind="unconditional") >= 0.999 * counts.predict_se(data, kind="iid")).all()
    given = model(family="poisson", smoothing=counts.smoothing_parameters_)
    with pytest.raises(InputError, match=r"kind='unconditional' needs .*smoothing='reml'.* family='poisson'"):
        given.fit({**data, "Y": np.round(np.abs(data["Y"]))}, grids=GRIDS).predict_se(data, kind="unconditional")
    plain = ScalarRegression([terms.linear("z")]).fit({"z": data["z"], "y": data["Y"][:, 0]})  # nothing is penalised
    assert np.allclose(plain.vcov("unconditional"), plain.vcov("iid"), rtol=1e-12, atol=0)
    plain = ScalarRegression([terms.linear("z")], family="poisson").fit({"z": data["z"], "y": np.arange(30) % 4})
    assert np.allclose(plain.vcov("unconditional"), plain.vcov("iid"), rtol=1e-9, atol=0)


def test_coverage_where_smoothing_is_uncertain():
    """Where a small effect is at times taken for a straight line."""
    held = []
    for seed in range(40):
        rng = np.random.default_rng(300 + seed)
        z = rng.uniform(size=50)
        mean = 0.6 * np.sin(2 * np.pi * z)
        data = {"z": z, "y": mean + 0.5 * rng.normal(size=50)}
        fitted = ScalarRegression([terms.s("z")]).fit(data)
        off = np.abs(fitted.fitted_values_ - mean)
        held.append([(off < 1.96 * fitted.predict_se(data, kind=k)).mean() for k in ("iid", "unconditional")])
    conditional, unconditional = np.mean(held, axis=0)
    assert conditional + 0.01 < unconditional < 0.97


def test_errors_along_curves_weight_observations():
    """Where errors are smooth, generalised least squares finds the surface; where they are white it changes little."""
    waves = np.stack([np.ones(T.size)] + [f(k * np.pi * T) for k in (2, 4) for f in (np.sin, np.cos)])
    truth = np.outer(np.sin(np.pi * T), np.cos(np.pi * T))
    off = {}
    for smooth in (0.0, 0.8):
        for errors in ("iid", "curve"):
            parts = []
            for seed in range(3):
                rng = np.random.default_rng(200 + seed)
                x = rng.normal(size=(80, 5)) @ waves + 0.2 * rng.normal(size=(80, T.size))
                white = np.sqrt(1 - smooth) * rng.normal(size=(80, T.size))
                y = x @ truth / T.size + 0.5 * (white + np.sqrt(smooth) * rng.normal(size=(80, 3)) @ waves[:3])
                term = terms.ff("X", k=(7, 7), m=((2, 2), (2, 2)))
                fitted = FunctionalRegression([term], errors=errors).fit({"X": x, "Y": y}, grids=GRIDS)
                parts.append(((fitted.coef("ff(X)", s=T, t=T)["value"] - truth.ravel()) ** 2).mean())
            off[smooth, errors] = np.sqrt(np.mean(parts))
    assert off[0.8, "curve"] < 0.7 * off[0.8, "iid"]
    assert off[0.0, "curve"] < 1.2 * off[0.0, "iid"]


@pytest.mark.parametrize("errors", ["iid", "curve"])
@pytest.mark.parametrize("clusters", [None, np.arange(40) // 2])
@pytest.mark.parametrize("more", [[], [terms.concurrent("X")]], ids=["same", "varying"])
def test_matrices_of_functions_and_of_coefficients_say_the_same(errors, clusters, more, monkeypatch):
    fitted = model(*more, errors=errors).fit(cohort(40, 22)[0], grids=GRIDS)
    asked = fitted.fitted_.fit.form, fitted.fitted_.fit.inverse, fitted.fitted_.errors.residuals, clusters
    assert fitted.fitted_.errors.residuals.rank(fitted.fitted_.fit.form) < fitted.fitted_.fit.form.size
    of_functions = left_out(*asked)
    monkeypatch.setattr(type(fitted.fitted_.errors.residuals), "rank", lambda _, form: form.size)
    of_coefficients = left_out(*asked)
    size = np.sqrt(fitted.fitted_.fit.gram.diagonal())
    assert np.abs((of_functions - of_coefficients) * size).max() < 1e-6 * np.abs(of_functions * size).max()


def test_covariance_knows_that_the_errors_were_learned():
    """Refits without a curve learn the covariance of the errors anew; taken as known, variances are too small.

    In refund's form, which has no centre that would move without the curve.
    """
    data, _ = cohort(40, 21)
    whole = model(errors="curve", k="refund").fit(data, grids=GRIDS)
    fit, own = whole.fitted_.fit, whole.fitted_.errors.residuals
    size = np.linalg.cholesky(fit.gram + 1e-6 * np.trace(fit.gram) * np.eye(len(fit.gram)))
    counted, known = (left_out(fit.form, fit.inverse, of) @ size for of in (own, replace(own, learned=None)))
    refits = []
    chosen = np.argsort(np.linalg.norm(counted - known, axis=1))[
        20:24
    ]  # of usual influence: to first order it is exact
    for i in chosen:
        others, sp = rows(data, np.arange(40) != i), fit.smoothing_parameters
        for _ in range(2):  # in units of the white noise, which change as well
            without = model(errors="curve", smoothing=sp, k="refund").fit(others, grids=GRIDS)
            units = without.fitted_.errors.residuals.learned.precision.factor / own.learned.precision.factor
            sp = fit.smoothing_parameters * units
        refits.append((fit.coefficients - without.fitted_.fit.coefficients) @ size)
    away, as_known = (np.linalg.norm(each[chosen] - refits) for each in (counted, known))
    assert away < 0.5 * as_known


def test_generalised_least_squares_is_a_whole_model(tmp_path):
    data, _ = cohort(60, 17)
    fitted = model(errors="curve").fit(data, grids=GRIDS, groups="who")
    sizes = {d.name: d.along.size for d in fitted.fitted_.fit.form.designs}
    assert sizes == {"(Intercept)": 1, "s(t)": 19, "ff(X)": 15, "z": 15, "w": 15}
    assert model(terms.linear("x0", k=6), errors="curve").formula[-1].k == 6
    assert fitted.loglik_ > model().fit(data, grids=GRIDS).loglik_
    assert 0 < fitted.explained_deviance_ < 1
    assert fitted.sigma2_ == pytest.approx(np.mean(fitted.residuals_**2), rel=0.3)
    loaded = FunctionalRegression.load(fitted.save(tmp_path / "model"))
    assert np.array_equal(loaded.predict_se(data), fitted.predict_se(data))


def uneven(data, how, seed=0):
    """Arguments of `fit` for the same curves with gaps, weights, or as a table of single points."""
    rng = np.random.default_rng(seed)
    if how == "gaps":
        gone = rng.uniform(size=data["Y"].shape) < 0.3
        return {"data": {**data, "Y": np.where(gone, np.nan, data["Y"])}, "grids": GRIDS}
    if how == "weights":
        return {"data": data, "grids": GRIDS, "weights": np.ones(len(data["z"]))}
    import pandas as pd

    record, t = np.repeat(np.arange(len(data["z"])), T.size), np.tile(T, len(data["z"]))
    table = pd.DataFrame({"row": record, "t": t, "y": data["Y"].ravel()})
    return {"data": {k: v for k, v in data.items() if k != "Y"}, "response": table, "grids": {"X": T}}


def test_generalised_least_squares_of_uneven_curves():
    """The same curves as a table of points and with weights of 1 have one fit, near that of whole curves."""
    data, _ = cohort(80, 18)
    whole = model(errors="curve").fit(data, grids=GRIDS)
    se = whole.predict_se(data).mean()
    fits = {how: model(errors="curve").fit(**uneven(data, how)) for how in ("weights", "points", "gaps")}
    for how, fitted in fits.items():
        away = np.sqrt(np.mean((fitted.predict(data) - whole.fitted_values_) ** 2)) if how != "points" else 0.0
        assert away < se / 2
        assert fitted.predict_se(data, t=T).mean() == pytest.approx(se, rel=0.3)
        assert np.isfinite(fitted.loglik_) and fitted.test_terms()["p"].between(0, 1).all()
        assert fitted.sigma2_ == pytest.approx(whole.sigma2_, rel=0.2)
    assert np.allclose(fits["points"].vcov(), fits["weights"].vcov(), rtol=1e-4, atol=1e-6)
    assert fits["points"].loglik_ == pytest.approx(fits["weights"].loglik_, rel=1e-6)
    drawn = fits["gaps"].bootstrap(20).coef("z")["se"].mean()
    assert drawn == pytest.approx(fits["gaps"].coef("z", se=True)["se"].mean(), rel=0.5)


def test_weights_of_generalised_least_squares_are_relative():
    data, _ = cohort(40, 18)
    one, four = (model(errors="curve").fit(data, grids=GRIDS, weights=np.full(40, weight)) for weight in (1.0, 4.0))
    assert np.allclose(one.fitted_values_, four.fitted_values_, rtol=0, atol=1e-6)
    assert four.sigma2_ == pytest.approx(4 * one.sigma2_, rel=1e-6)
    assert np.allclose(one.predict_se(data), four.predict_se(data), rtol=1e-5)
    shift = np.random.default_rng(0).normal(size=40)
    moved = model(errors="curve").fit(
        {**data, "Y": data["Y"] + shift[:, None]}, grids=GRIDS, weights=np.ones(40), offset=shift
    )
    assert np.allclose(moved.fitted_values_ - shift[:, None], one.fitted_values_, rtol=0, atol=1e-6)


@pytest.mark.parametrize("how", ["gaps", "points"])
def test_generalised_least_squares_finds_surfaces_through_gaps(how):
    """Errors that are smooth along the curve: far nearer than least squares that take them as independent."""
    waves = np.stack([np.ones(T.size)] + [f(k * np.pi * T) for k in (2, 4) for f in (np.sin, np.cos)])
    truth, off = np.outer(np.sin(np.pi * T), np.cos(np.pi * T)), {"iid": 0.0, "curve": 0.0}
    for seed in range(2):
        rng = np.random.default_rng(400 + seed)
        x = rng.normal(size=(100, 5)) @ waves + 0.2 * rng.normal(size=(100, T.size))
        y = x @ truth / T.size + 0.6 * rng.normal(size=(100, 3)) @ waves[:3] + 0.1 * rng.normal(size=(100, T.size))
        asked = uneven({"X": x, "z": np.zeros(100), "Y": y}, how)
        for errors in off:
            fitted = FunctionalRegression([terms.ff("X", k=(7, 7), m=((2, 2), (2, 2)))], errors=errors).fit(**asked)
            off[errors] += ((fitted.coef("ff(X)", s=T, t=T)["value"] - truth.ravel()) ** 2).mean()
    assert off["curve"] < 0.3 * off["iid"]


def test_generalised_least_squares_needs_curves():
    data, _ = cohort(20, 18)
    few = rows(data, slice(5))
    for asked, message in [
        ({"data": few, "grids": GRIDS}, "and 8 curves or more, got 21 and 5"),
        (uneven(few, "gaps"), "8 curves or more with two observations, got 21 and 5"),
    ]:
        with pytest.raises(InputError, match=message):
            FunctionalRegression([terms.linear("z")], errors="curve").fit(**asked)
    with pytest.raises(InputError, match="errors='curve' is there for family='gaussian', got 'poisson'"):
        model(errors="curve", family="poisson").fit({**data, "Y": np.round(np.abs(data["Y"]))}, grids=GRIDS)
    with pytest.raises(InputError, match="errors must be one of 'iid', 'curve'"):
        model(errors="ar1").fit(data, grids=GRIDS)
