"""Regression of numbers on terms."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from fdadp import FunctionalRegression, ScalarRegression, terms
from fdadp.errors import IdentificationWarning, InputError

RNG = np.random.default_rng(0)
DATA = {"a": RNG.normal(size=60), "b": RNG.normal(size=60)}
DATA["y"] = 1 + 2 * DATA["a"] + RNG.normal(size=60)


def test_without_smooth_terms_it_is_least_squares():
    model = ScalarRegression([terms.linear("a"), terms.linear("b")]).fit(DATA)
    ols = sm.OLS(DATA["y"], sm.add_constant(np.column_stack((DATA["a"], DATA["b"])))).fit()
    np.testing.assert_allclose(model.fitted_values_, ols.fittedvalues, rtol=1e-12)
    np.testing.assert_allclose(model.sigma2_, ols.mse_resid, rtol=1e-12)
    expected = ols.get_prediction().summary_frame(alpha=0.05)
    np.testing.assert_allclose(model.predict_se(DATA, kind="iid"), expected["mean_se"], rtol=1e-10)
    lower, upper = model.predict_interval(DATA)
    assert model.edf_ == pytest.approx(3)
    assert (lower < model.fitted_values_).all() and (upper > model.fitted_values_).all()


def test_terms_add_up():
    model = ScalarRegression([terms.linear("a"), terms.linear("b")]).fit(DATA)
    parts = model.predict(DATA, type="terms")
    assert list(parts) == ["(Intercept)", "a", "b"]
    np.testing.assert_allclose(sum(parts.values()), model.predict(DATA), rtol=1e-12)


def test_unknown_column_is_named():
    with pytest.raises(InputError, match="'age'"):
        ScalarRegression([terms.linear("age")]).fit(DATA)


def test_a_term_that_repeats_the_intercept_is_the_one_that_is_named():
    """The intercept itself was named where rounding had put it behind a constant curve."""
    t = np.linspace(0, 1, 21)
    data = {"X": np.ones((60, 31)), "Y": RNG.normal(size=(60, 21)) + t}
    with pytest.warns(IdentificationWarning, match=r"identify all of ff\(X\):"):
        FunctionalRegression([terms.ff("X")]).fit(data, grids={"Y": t})


@pytest.mark.parametrize("far", [1e-9, 1e3, 1e6, 1e9])
def test_neither_the_unit_nor_the_level_of_the_response_matters(far):
    """Sums of squares about zero had lost 2e-3 of the fit at a level of 1e5, and all of it at 1e7."""
    t = np.linspace(0, 1, 21)
    data = {"x": RNG.normal(size=60), "Y": RNG.normal(size=(60, 21)) + t}
    model = FunctionalRegression([terms.linear("x")])
    fitted = model.fit(data, grids={"Y": t}).fitted_values_
    for times, plus in ((1.0, far), (far, 0.0)):
        moved = model.fit({**data, "Y": data["Y"] * times + plus}, grids={"Y": t}).fitted_values_
        np.testing.assert_allclose((moved - plus) / times, fitted, rtol=0, atol=1e-8 + 1e-15 * plus)


def test_a_formula_is_the_terms_that_it_names():
    t = np.linspace(0, 1, 21)
    group = np.array(list("ab") * 30, dtype=object)
    data = {**DATA, "X": RNG.normal(size=(60, 31)), "g": group, "Y": np.exp(RNG.normal(size=(60, 21)) + t)}
    written = FunctionalRegression("log(Y) ~ ff(X, k=(6, 5)) + a + C(g)").fit(data, grids={"Y": t})
    listed = [terms.ff("X", k=(6, 5)), terms.linear("a"), terms.factor("g")]
    model = FunctionalRegression(listed).fit({**data, "Y": np.log(data["Y"])}, grids={"Y": t})
    np.testing.assert_allclose(written.fitted_values_, model.fitted_values_, rtol=1e-12)
    np.testing.assert_allclose(written.predict(data), written.fitted_values_, rtol=1e-10)
    assert written.score(data) == pytest.approx(model.score({**data, "Y": np.log(data["Y"])}))
    assert written.response_name_ == "log(Y)"
    without = ScalarRegression("y ~ a - 1").fit(DATA)
    assert without.term_names_ == ("a",)
    flat = FunctionalRegression("Y ~ c(1) + a").fit(data, grids={"Y": t})
    assert flat.term_names_ == ("(Intercept)", "a")


def test_a_response_is_named_once():
    with pytest.raises(InputError, match="response must be left out where a formula has one, got 'b'"):
        ScalarRegression("y ~ a", response="b").fit(DATA)
    with pytest.raises(InputError, match="formula must be a formula, or a sequence of terms"):
        ScalarRegression(3).fit(DATA)
    with pytest.raises(InputError, match="formula must be a formula, or a sequence of terms"):
        ScalarRegression(["a"]).fit(DATA)


def test_grids_of_the_fit_serve_for_new_rows_too():
    """One dictionary of grids for all models of a table; new rows have only the columns that they need."""
    t = np.linspace(0, 1, 21)
    data = {"X": RNG.normal(size=(60, 31)), "Z": RNG.normal(size=(60, 21)), "Y": RNG.normal(size=(60, 21))}
    grids = {"X": np.linspace(0, 1, 31), "Z": t, "Y": t}
    model = FunctionalRegression("Y ~ ff(X)").fit(data, grids=grids)
    assert model.predict({"X": data["X"][:2]}, grids=grids).shape == (2, 21)
    with pytest.raises(InputError, match="grids must be of columns"):
        model.predict({"X": data["X"][:2]}, grids={"W": t})


def test_clusters_need_groups():
    t = np.linspace(0, 1, 21)
    data = {"x": RNG.normal(size=60), "Y": RNG.normal(size=(60, 21)), "who": np.repeat(np.arange(20), 3)}
    model = FunctionalRegression("Y ~ x", se="cluster")
    with pytest.raises(InputError, match="se='cluster' needs groups"):
        model.fit(data, grids={"Y": t})
    by_name = model.fit(data, grids={"Y": t}, groups="who").predict_se(data)
    told = FunctionalRegression("Y ~ x").fit(data, grids={"Y": t}, groups=data["who"])
    np.testing.assert_allclose(by_name, told.predict_se(data, kind="cluster"), rtol=1e-12)
    assert not np.allclose(by_name, told.predict_se(data, kind="curve"))


def test_classes_of_a_categorical_keep_its_order():
    """As a factor of R: sorting would have modelled survival where death was meant."""
    died = RNG.uniform(size=60) < 1 / (1 + np.exp(-2 * DATA["a"]))
    labels = np.where(died, "died", "survived")
    levels = pd.Categorical(labels, ["survived", "died", "unknown"])
    model = ScalarRegression("outcome ~ a", family="binomial").fit(pd.DataFrame({"a": DATA["a"], "outcome": levels}))
    assert model.classes_.tolist() == ["survived", "died"]
    numbers = ScalarRegression("outcome ~ a", family="binomial").fit({"a": DATA["a"], "outcome": died.astype(float)})
    np.testing.assert_allclose(model.predict(DATA), numbers.predict(DATA), rtol=1e-10)
    sorted_ = ScalarRegression("outcome ~ a", family="binomial").fit({"a": DATA["a"], "outcome": labels})
    assert sorted_.classes_.tolist() == ["died", "survived"]


def test_units_of_evenly_spaced_numbers_do_not_matter_at_given_smoothing():
    """Signs of rounding had chosen the thin plates by whose size mgcv measures smoothing parameters."""
    z = np.arange(60) % 13 - 6.0
    model, y = ScalarRegression([terms.s("z")], smoothing=[0.5]), DATA["y"] + np.sin(z)
    fitted = model.fit({"z": z, "y": y}).fitted_values_
    for unit, origin in ((3.0, 0.0), (1.0, 0.1), (1e-3, 0.0), (1 / 7, 1.0)):
        moved = model.fit({"z": z * unit + origin, "y": y}).fitted_values_
        np.testing.assert_allclose(moved, fitted, rtol=0, atol=1e-9)
