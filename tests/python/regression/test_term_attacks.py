"""Models of many terms beside data as users have them: odd units, odd labels, odd settings, refits."""

from __future__ import annotations

import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from fdadp import FunctionalRegression, ScalarRegression, terms
from fdadp.errors import IdentificationWarning, InputError

N, S, T = 40, np.linspace(0, 1, 21), np.linspace(0, 1, 11)
GRIDS = {"X": S, "Y": T}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, 4)) @ np.cos(np.outer(np.arange(4), np.pi * S))
    x, z = rng.normal(size=(2, N))
    Y = X @ np.outer(np.sin(np.pi * S), np.cos(T)) / S.size + np.outer(x, T) + 0.2 * rng.normal(size=(N, T.size))
    eta = Y.mean(axis=1) + np.sin(2 * z)
    return {
        "X": X,
        "Y": Y,
        "x": x,
        "z": z,
        "g": np.array(list("abcd"))[rng.integers(0, 4, N)],
        "binomial": (eta + rng.logistic(size=N) > 0) * 1.0,
        "poisson": rng.poisson(np.exp(eta)) * 1.0,
        "gamma": rng.gamma(3, np.exp(eta) / 3),
    }


@pytest.mark.each_once
@pytest.mark.parametrize("family", ["binomial", "poisson", "gamma"])
@pytest.mark.parametrize(("column", "unit"), [("X", 1e-9), ("X", 1e9), ("x", 1e-9), ("x", 1e9), ("s", 1e9)])
def test_fits_of_families_do_not_depend_on_units(data, family, column, unit):
    def fit(changed, s):
        model = ScalarRegression([terms.lf("X", k=8), terms.linear("x")], response=family, family=family)
        return model.fit(changed, grids={"X": s})

    usual = fit(data, S)
    other = fit(data, S * unit) if column == "s" else fit({**data, column: data[column] * unit}, S)
    assert np.abs(other.fitted_values_ - usual.fitted_values_).max() < 1e-6 * np.abs(usual.fitted_values_).max()
    assert other.edf_ == pytest.approx(usual.edf_, rel=1e-6)


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (np.zeros(N), "is 0 in all rows"),
        (np.ones(N), "is constant, or varies by less"),
        (0.1 + 1e-12 * np.linspace(0, 1, N), "is constant, or varies by less"),
        ("x", "repeats other terms"),
    ],
)
def test_what_is_not_identified_comes_with_a_reason(data, column, why):
    odd = data[column] if isinstance(column, str) else column
    model = FunctionalRegression([terms.linear("x"), terms.linear("odd")])
    with pytest.warns(IdentificationWarning, match=rf"do not identify all of odd: .*\. odd {why}"):
        model.fit({**data, "odd": odd}, grids={"Y": T})
    assert f"odd {why}" in " ".join(str(model.summary()).split())


@pytest.mark.each_once(("unit", "column"))
@pytest.mark.parametrize("errors", ["iid", "curve"])
@pytest.mark.parametrize("unit", [1e-17, 1e17])
@pytest.mark.parametrize("column", ["x", "X", "s"])
def test_fits_do_not_depend_on_units(data, errors, unit, column):
    """Fitted values, standard errors, tests and intervals, of numbers, curves and their points."""

    def fit(changed, s):
        model = FunctionalRegression([terms.ff("X", k=(5, 5)), terms.linear("x")], errors=errors)
        return model.fit(changed, grids={"X": s, "Y": T})

    usual = fit(data, S)
    other, new = fit(data, S * unit), data
    if column != "s":
        new = {**data, column: data[column] * unit}
        other = fit(new, S)
    for found, wanted in (
        (other.fitted_values_, usual.fitted_values_),
        (other.predict_se(new), usual.predict_se(data)),
        (other.test_terms()["p"].to_numpy(), usual.test_terms()["p"].to_numpy()),
        (other.predict_interval(new)[1], usual.predict_interval(data)[1]),
    ):
        assert np.abs(found - wanted).max() < 1e-7 * np.abs(wanted).max()


def test_numbers_whose_squares_are_none(data):
    model = FunctionalRegression([terms.ff("X"), terms.linear("x")])
    for column in ("x", "X", "Y"):
        with pytest.raises(InputError, match=rf"{column} must be below 1e\+100 in size, got .*; choose other units"):
            model.fit({**data, column: data[column] * 1e150}, grids={"X": S, "Y": T})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: terms.ff("X", k=("a", 5)), r"each entry of k of ff\(X\) must be a whole number, got 'a'"),
        (lambda: terms.ff("X", rule=3), r"rule of ff\(X\) must be text such as 'trapezoid', got 3"),
        (lambda: terms.linear("x", k=5.0), r"k of x must be a whole number, got 5\.0"),
        (lambda: terms.factor("g", constant="yes"), r"constant of c\(g\) must be True or False"),
        (lambda: terms.by("x", "ff(X)"), "term of By must be a term"),
    ],
)
def test_settings_of_terms_are_checked_where_the_term_is_written(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_lists_and_numpy_integers_are_settings_too():
    assert terms.ff("X", k=[5, np.int64(6)]) == terms.ff("X", k=(5, 6))


@pytest.mark.parametrize("bs", [["tp"], ("tp", "tp")])
def test_bases_of_smooths_are_text(data, bs):
    with pytest.raises(InputError, match=r"bs of s\(z\) must be text such as 'tp'"):
        ScalarRegression([terms.s("z", bs=bs)], response="gamma").fit(data)


@pytest.mark.parametrize("m", [2.5, True, object])
def test_orders_of_smooths_are_whole_numbers(data, m):
    with pytest.raises(InputError, match=r"m of s\(z\) must be a whole number"):
        FunctionalRegression([terms.s("z", m=m)]).fit(data, grids={"Y": T})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"smoothing": ["a", "b"]}, "smoothing must be numbers"),
        ({"intercept": "no"}, "intercept must be True or False"),
        ({"response": 3}, "response must be the name of a column, got 3"),
        ({"formula": [terms.linear(3)]}, "columns of terms must be named by text, got 3"),
        ({"formula": "Y ~ 0"}, "formula must have at least one term"),
        ({"formula": [], "intercept": False}, "formula must have at least one term"),
        ({"formula": [terms.ff("Y")]}, "must not explain Y by itself"),
    ],
)
def test_settings_that_make_no_model(data, settings, message):
    with pytest.raises(InputError, match=message):
        FunctionalRegression(**{"formula": [terms.linear("x")], **settings}).fit(data, grids=GRIDS)


def test_grids_are_of_columns(data):
    model = FunctionalRegression([terms.ff("X")])
    with pytest.raises(InputError, match="grids must be of columns: data must have the column 'x1'"):
        model.fit({"X": data["X"], "Y": data["Y"]}, grids={"x1": S, "Y": T})
    with pytest.raises(InputError, match="grids must be points by column"):
        model.fit(data, grids=[S, T])
    with pytest.raises(InputError, match=r"grids must be points by column.* got ndarray"):
        FunctionalRegression("Y ~ ff(X)").fit(data, grids=S)
    with pytest.raises(InputError, match=r"grids must be points by column.* got ndarray"):
        model.fit(data, grids=GRIDS).predict(data, grids=S)
    model.predict({"X": data["X"]}, grids=GRIDS)  # the response's grid does no harm
    with pytest.raises(InputError, match="must have the column 'W'"):
        model.predict({"X": data["X"]}, grids={"W": S})


@pytest.mark.parametrize("what", ["weights", "offset", "groups"])
def test_what_is_beside_the_table_has_its_row_labels(data, what):
    index = [f"p{i}" for i in range(N)]
    table = {"x": pd.Series(data["x"], index=index), "Y": data["Y"]}
    beside = pd.Series(np.arange(1.0, N + 1), index=index)
    model = FunctionalRegression([terms.linear("x")])
    model.fit(table, grids={"Y": T}, **{what: beside})
    with pytest.raises(InputError, match=f"data and {what} must have the same row labels in the same order"):
        model.fit(table, grids={"Y": T}, **{what: beside[::-1]})
    with pytest.raises(InputError, match=f"data and {what} must have the same row labels"):
        model.fit(pd.DataFrame({"x": table["x"]}), data["Y"], grids={"Y": T}, **{what: beside[::-1]})


def test_text_that_reads_as_numbers_is_named(data):
    text = data["x"].astype(str).astype(object)
    with pytest.raises(InputError, match=r"x must hold numbers, got '.*' in row 0: text; pandas.to_numeric"):
        FunctionalRegression([terms.linear("x")]).fit({**data, "x": text}, grids=GRIDS)
    with pytest.raises(InputError, match=r"x must have fewer levels, got 40 in 40 rows.*to_numeric"):
        FunctionalRegression("Y ~ x").fit({**data, "x": text}, grids=GRIDS)


@pytest.mark.parametrize("odd", ["1_0", "\uff11\uff12", "12\u00a0"])
def test_a_text_that_python_alone_takes_for_a_number_is_no_level(data, odd):
    """Few numbers and one such text were a factor, without a word."""
    text = np.array(["1", "2", "3", "4"] * 10, dtype=object)
    text[3] = odd
    with pytest.raises(InputError, match=r"x must hold numbers, or labels, got '.*' in row 3 among numbers"):
        FunctionalRegression("Y ~ x").fit({**data, "x": text}, grids=GRIDS)


def test_whole_numbers_beyond_all_floats_are_infinite(data):
    with pytest.raises(InputError, match="x must have a finite number in every row, got -inf in row 3"):
        FunctionalRegression("Y ~ x").fit({**data, "x": [*range(3), -(10**400), *range(4, 40)]}, grids=GRIDS)
    with pytest.raises(InputError, match="Y must be numeric with one curve per row"):
        FunctionalRegression("Y ~ x").fit({**data, "Y": [[10**400] * 9] * 40}, grids={})


def test_decimals_are_numbers(data):
    decimals = [Decimal(repr(float(v))) for v in data["x"]]
    model = FunctionalRegression("Y ~ x")
    usual = model.fit(data, grids=GRIDS).fitted_values_
    assert np.array_equal(model.fit({**data, "x": decimals}, grids=GRIDS).fitted_values_, usual)


def test_a_fit_that_fails_leaves_the_one_before(data):
    model = FunctionalRegression([terms.ff("X"), terms.linear("x")]).fit(data, grids=GRIDS)
    before, state = model.predict(data), dict(vars(model))
    for bad in ({"x": data["x"][:-1]}, {"x": data["g"]}, {"Y": data["x"]}, {"Y": np.full((N, 11), np.nan)}):
        with pytest.raises(InputError):
            model.fit({**data, **bad}, grids={"X": 2 * S, "Y": T} if "Y" not in bad else None)
        assert vars(model) == state
        assert np.array_equal(model.predict(data), before)


def test_a_refit_keeps_nothing_of_the_fit_before(data, tmp_path):
    model = FunctionalRegression([terms.ff("X")])
    model.attached = "by others"
    model.fit(data, grids=GRIDS, weights=np.linspace(1, 2, N), groups=np.arange(N) // 2)
    model.set_params(formula=[terms.linear("x")]).fit(data, grids=GRIDS)
    new = FunctionalRegression([terms.linear("x")]).fit(data, grids=GRIDS)
    assert vars(model).pop("attached") == "by others"
    assert vars(model).keys() == vars(new).keys()
    assert np.array_equal(model.predict_se(data), new.predict_se(data))
    loaded = FunctionalRegression.load(model.save(tmp_path / "model"))
    assert vars(loaded.fit(data, grids=GRIDS)).keys() == vars(new).keys()


def test_parameters_that_are_set_after_a_fit_wait_for_the_next(data):
    model = ScalarRegression([terms.linear("x")], response="poisson").fit(data)
    before = model.predict(data)
    model.set_params(family="poisson")
    assert np.array_equal(model.predict(data), before)
    assert (model.fit(data).predict(data) > 0).all()


def test_scores_that_are_not_defined(data):
    model = ScalarRegression([terms.linear("x")], response="gamma")
    for unfitted in (model, FunctionalRegression([terms.linear("x")])):
        with pytest.raises(NotFittedError):
            unfitted.score(data)
    model.fit(data)
    with pytest.raises(InputError, match="gamma must have two different values or more for a score, got 2 alone"):
        model.score({"x": data["x"], "gamma": np.full(N, 2.0)})
    with pytest.raises(InputError, match="two different values or more for a score"):
        model.score({name: column[:1] for name, column in data.items()})


def test_responses_that_leave_no_finite_mean_are_named(data):
    with pytest.raises(InputError, match="died must have both 0 and 1 for family='binomial', got only 0"):
        ScalarRegression("died ~ x", family="binomial").fit({**data, "died": np.zeros(N)})
    exposures = np.full(N, 1e4)
    with pytest.raises(InputError, match=r"offset must be the logarithm of an exposure.*got 10000 in row 0"):
        ScalarRegression("poisson ~ x", family="poisson").fit(data, offset=exposures)


@pytest.mark.parametrize("term", [terms.concurrent("X"), terms.ff("X", limits="s<=t"), terms.ff("X")])
def test_curves_that_act_at_the_same_t_are_dated_from_the_same_day(data, term):
    days = pd.date_range("2020-01-01", periods=21)
    X = pd.DataFrame(data["X"], columns=days)
    Y = pd.DataFrame(data["X"], columns=days + pd.Timedelta("60D"))
    model = FunctionalRegression([term])
    if term == terms.ff("X"):  # an integral over its own axis
        model.fit({"X": X, "Y": Y})
        with pytest.raises(InputError, match=r"t must be numbers in the unit of the response, .*2020-03-01, got dates"):
            model.predict({"X": X}, t=Y.columns[:2])
        return
    with pytest.raises(InputError, match=r"X must be on the axis of Y.*2020-01-01 and .*2020-03-01"):
        model.fit({"X": X, "Y": Y})
    model.fit({"X": X, "Y": Y.set_axis(days, axis=1)})


def test_columns_without_a_header_are_named_by_their_number(data):
    table = pd.DataFrame({0: data["x"], 1: data["gamma"]})
    model = ScalarRegression([terms.linear("0")], response="1").fit(table)
    usual = ScalarRegression([terms.linear("x")], response="gamma").fit(data)
    assert np.array_equal(model.predict(table), usual.predict(data))


def test_tables_of_other_packages_are_named(data):
    class Frame:
        def compute(self):
            return data

    with pytest.raises(InputError, match=r"got Frame; use \.compute\(\), or fit_chunks"):
        FunctionalRegression([terms.linear("x")]).fit(Frame(), data["Y"])


def test_a_factor_of_many_levels_fits_in_little_memory(data):
    import tracemalloc

    levels = np.array([f"v{i % 20:02}" for i in range(N)])
    tracemalloc.start()
    FunctionalRegression([terms.factor("levels", k=4)], smoothing="gcv").fit({**data, "levels": levels}, grids=GRIDS)
    tracemalloc.reset_peak()
    FunctionalRegression([terms.factor("levels", k=4)]).fit({**data, "levels": levels}, grids=GRIDS)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6


def test_a_fit_of_many_curves_takes_less_than_twice_their_memory():
    import tracemalloc

    rng, t = np.random.default_rng(0), np.linspace(0, 1, 101)
    z = rng.normal(size=40_000)
    y = np.outer(np.sin(z), t) + rng.normal(size=(z.size, t.size))
    few = {"Y": y[:500], "z": z[:500]}
    FunctionalRegression("Y ~ s(z)").fit(few, grids={"Y": t})
    tracemalloc.start()
    model = FunctionalRegression("Y ~ s(z)").fit({"Y": y, "z": z}, grids={"Y": t})
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * y.nbytes and kept < 1.2 * y.nbytes
    np.testing.assert_allclose(model.fitted_values_, y - model.residuals_, rtol=0, atol=1e-13)


@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize(
    ("basis", "beside"),
    [
        ("splines", {}),
        ("splines", {"weights": np.linspace(1, 2, N)}),
        ("splines", {"offset": np.linspace(0, 1, N)}),
        ("eigen", {}),
        ("eigen", {"offset": np.linspace(0, 1, N)}),
    ],
)
def test_fitted_values_and_residuals_add_up_to_the_responses(data, basis, beside, gap):
    y = data["Y"].copy()
    if gap:
        y[3, 2:4] = np.nan
    model = FunctionalRegression("Y ~ s(x)", response_basis=basis, progress=False)
    model.fit({**data, "Y": y}, grids=GRIDS, **beside)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.fitted_values_, model.fitted_values_)
    np.testing.assert_allclose(model.fitted_values_ + model.residuals_, y, rtol=0, atol=1e-12)
    predicted = model.predict(data, **({"offset": beside["offset"]} if "offset" in beside else {}))
    np.testing.assert_allclose(model.fitted_values_, predicted, rtol=0, atol=1e-9)
