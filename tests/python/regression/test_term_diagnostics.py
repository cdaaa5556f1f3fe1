"""Residuals, sizes of bases and concurvity of models of many terms."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp import FunctionalRegression, ScalarRegression, terms
from fdadp.errors import InputError
from fdadp.regression.fitted.coefficient_functions import place_of


@pytest.fixture(scope="module")
def beside_mgcv():
    """At smoothing parameters by REML of mgcv 1.8-41.

    i <- 0:59; x <- ((i*7) %% 60)/59; z <- x^2 + 0.3*sin(11*i); w <- cos(3*i); y <- sin(6*x) + z^2 + w + 0.1*cos(37*i)
    b <- gam(y ~ w + s(x, bs="ps", k=8, m=c(2,2)) + s(z, bs="ps", k=6, m=c(2,2)), method="REML")
    """
    i = np.arange(60)
    x, w = (i * 7 % 60) / 59, np.cos(3 * i)
    z = x**2 + 0.3 * np.sin(11 * i)
    data = {"x": x, "z": z, "w": w, "y": np.sin(6 * x) + z**2 + w + 0.1 * np.cos(37 * i)}
    smooths = (terms.linear("w"), terms.s("x", bs="ps", k=8, m=(2, 2)), terms.s("z", bs="ps", k=6, m=(2, 2)))
    return ScalarRegression(smooths, smoothing=[0.0168289903223590, 0.0991494878501458]).fit(data), data


def test_concurvity_is_mgcvs(beside_mgcv):
    model, _ = beside_mgcv
    found = model.concurvity()  # print(concurvity(b))
    assert found.index.tolist() == ["numbers", "s(x)", "s(z)"]
    theirs = [[0.703752821862502, 0.509824721297274], [0.703898558910018, 0.645418819417241]]
    np.testing.assert_allclose(found.loc[["s(x)", "s(z)"], ["worst", "observed"]], theirs, rtol=1e-10)
    pairs = model.concurvity(pairwise=True)  # print(concurvity(b, full=FALSE))
    assert abs(pairs.loc[("s(x)", "s(z)"), "worst"] / 0.703475938345694 - 1) < 1e-10
    assert abs(pairs.loc[("s(z)", "s(x)"), "observed"] / 0.643276146139603 - 1) < 1e-10
    assert abs(pairs.loc[("s(x)", "s(z)"), "observed"] / 0.505175248942486 - 1) < 1e-10


def test_estimated_concurvity_by_the_long_form(beside_mgcv):
    """The measure that depends on coordinates, from rows of the long form instead of sums."""
    model, data = beside_mgcv
    form = model.fitted_.fit.form
    rows = form.rows(model.fitted_.records(data, None))[:, 0]
    place = form.slices[place_of(form, "s(z)")]
    others = np.delete(rows, np.arange(place.start, place.stop), axis=1)
    shared = others @ np.linalg.lstsq(others, rows[:, place], rcond=None)[0]
    expected = (shared**2).sum() / (rows[:, place] ** 2).sum()
    assert abs(model.concurvity().loc["s(z)", "estimate"] / expected - 1) < 1e-10


def test_concurvity_of_a_column_that_is_there_twice():
    draw = np.random.default_rng(0)
    x = draw.normal(size=50)
    with pytest.warns(match="do not identify"):
        model = ScalarRegression([terms.s("x", bs="ps"), terms.linear("z")]).fit({"x": x, "z": 2 * x + 1, "y": x**2})
    assert model.concurvity().loc["numbers", "worst"] > 1 - 1e-9


def test_index_of_neighbours_is_mgcvs(beside_mgcv):
    model, data = beside_mgcv
    found = model.check(data)  # k.check(b); p-values by chance were 0.9925 and 0.6600
    np.testing.assert_allclose(found["k_index"], [1.30113559333024, 1.06811017906373], rtol=1e-10)
    np.testing.assert_allclose(found["edf"], [6.62831496180621, 3.93801017879994], rtol=1e-9)
    assert found["k"].tolist() == [7, 5]
    np.testing.assert_allclose(found["p_value"], [0.9925, 0.66], atol=0.08)
    assert "p_value_t" not in found


def test_offsets_and_weights_are_checked_with():
    draw = np.random.default_rng(5)
    x, exposure = draw.uniform(0, 1, 300), draw.uniform(1, 50, 300)
    data = {"x": x, "y": draw.poisson(exposure * np.exp(np.sin(4 * x))) * 1.0, "log": np.log(exposure)}
    model = ScalarRegression([terms.s("x")], family="poisson").fit(data, offset="log")
    found = model.check(data, offset="log").loc["s(x)"]
    residuals = model.residuals()[np.argsort(x)]
    assert abs(found["k_index"] - np.mean(np.diff(residuals) ** 2) / 2 / np.mean(residuals**2)) < 1e-10
    assert model.check(data).loc["s(x)", "k_index"] != found["k_index"]


S, T = np.linspace(0, 1, 21), np.linspace(0, 1, 30)
GRIDS = {"X": S, "Y": T}


def curves(seed, n=150, waves=1.0):
    """An effect of age with `waves` waves along t, and errors that are smooth along the curve."""
    draw = np.random.default_rng(seed)
    age = draw.uniform(0, 1, n)
    x = draw.normal(size=(n, 4)) @ np.array([np.cos(k * np.pi * S) for k in range(4)])
    errors = draw.normal(size=(n, 3)) @ np.array([np.ones(T.size), np.cos(9 * T), np.sin(5 * T)])
    mean = np.sin(9 * age)[:, None] * np.cos(2 * np.pi * waves * T) + x[:, :5].mean(axis=1)[:, None] * T
    return {"X": x, "age": age, "Y": mean + 0.3 * errors + 0.2 * draw.normal(size=mean.shape)}


def test_a_basis_that_is_too_small_is_found():
    data = curves(0, waves=4)
    small = FunctionalRegression([terms.ff("X"), terms.s("age", bs="ps", k=(4, 5))]).fit(data, grids=GRIDS)
    found = small.check(data, grids=GRIDS)
    assert found.loc["s(age)", "p_value_t"] < 0.01
    assert found.loc["ff(X)", "p_value_t"] > 0.01
    data = curves(1)
    small = FunctionalRegression([terms.ff("X"), terms.s("age", bs="ps", k=(4, 5))]).fit(data, grids=GRIDS)
    found = small.check(data, grids=GRIDS)
    assert found.loc["s(age)", "p_value"] < 0.01
    assert found.loc["s(age)", "k_index"] < 0.95


def rejected(seeds):
    """Shares of p-values below 5 % where bases are large enough and errors smooth along the curve."""
    found = []
    for seed in range(seeds):
        data = curves(seed, n=80)
        model = FunctionalRegression([terms.ff("X"), terms.s("age", bs="ps", k=(12, 12))]).fit(data, grids=GRIDS)
        table = model.check(data, grids=GRIDS, n_draws=100).loc[["ff(X)", "s(age)"]]
        found.append((table["p_value"] < 0.05, table["p_value_t"] < 0.05))
    return np.mean(found, axis=(0, 2))


def test_a_basis_that_is_large_enough_is_left_alone():
    assert (rejected(6) <= 0.17).all()


@pytest.mark.long
def test_level():
    """Found: 2 % by neighbours, where the fit has taken part of the differences, and 6.5 % along t."""
    by_neighbours, along_t = rejected(100)
    assert by_neighbours <= 0.07
    assert 0.02 <= along_t <= 0.1


def test_residuals_of_weighted_curves():
    data = curves(2, n=30)
    weights = np.random.default_rng(0).uniform(0.5, 2, 30)
    data["Y"][3, 4:9] = np.nan
    model = FunctionalRegression([terms.linear("age")]).fit(data, grids=GRIDS, weights=weights)
    left = data["Y"] - model.fitted_values_
    np.testing.assert_allclose(model.residuals("response"), left)
    np.testing.assert_allclose(model.residuals("pearson"), left * np.sqrt(weights)[:, None])
    np.testing.assert_allclose(model.residuals(), left * np.sqrt(weights)[:, None], rtol=1e-7)
    with pytest.raises(InputError, match="type must be one of 'deviance', 'pearson', 'response', got 'working'"):
        model.residuals("working")


def test_shares_explained_do_not_depend_on_the_working_errors():
    """Of generalised least squares they are of the residuals too, not of whitened ones."""
    data = curves(4, n=60)
    for errors in ("iid", "curve"):
        model = FunctionalRegression([terms.s("age", bs="ps")], errors=errors).fit(data, grids=GRIDS)
        left, about = model.residuals_, data["Y"] - data["Y"].mean()
        assert abs(model.explained_deviance_ - (1 - (left**2).sum() / (about**2).sum())) < 1e-10
        assert 0 < model.explained_deviance_ - model.r2_ < 0.05


def test_residuals_of_families(tmp_path):
    """Beside those of statsmodels' generalised linear models with the same means."""
    sm = pytest.importorskip("statsmodels.api")
    draw = np.random.default_rng(3)
    x = draw.normal(size=80)
    for family, theirs, y in (
        ("poisson", sm.families.Poisson(), draw.poisson(np.exp(0.5 + x / 2))),
        ("binomial", sm.families.Binomial(), draw.uniform(size=80) < 1 / (1 + np.exp(-x))),
        ("gamma", sm.families.Gamma(sm.families.links.Log()), draw.gamma(2.0, np.exp(x / 2))),
    ):
        data = {"x": x, "y": np.asarray(y, dtype=float)}
        model = ScalarRegression([terms.linear("x")], family=family).fit(data)
        other = sm.GLM(data["y"], sm.add_constant(x), family=theirs).fit()
        np.testing.assert_allclose(model.fitted_values_, other.fittedvalues, rtol=1e-5)
        np.testing.assert_allclose(model.residuals("deviance"), other.resid_deviance, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(model.residuals("pearson"), other.resid_pearson, rtol=1e-4, atol=1e-5)
        assert abs(model.explained_deviance_ - (1 - other.deviance / other.null_deviance)) < 1e-7
        left, about = (np.var(v, ddof=1) for v in (data["y"] - other.fittedvalues, data["y"]))
        assert abs(model.r2_ - (1 - left * 79 / 78 / about)) < 1e-5  # mgcv's r.sq
    loaded = ScalarRegression.load(model.save(tmp_path / "model"))
    with pytest.raises(InputError, match="a file holds none"):
        loaded.residuals()
