"""Models of many terms of the smallest and oddest data: everything works, or says what is wrong."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from fdadp import FunctionalRegression, ScalarRegression, terms
from fdadp.errors import IdentificationWarning, InputError


def data(n=30, S=10, T=12):
    draw = np.random.default_rng(n + S + T)
    z = draw.normal(size=n)
    return {
        "X": draw.normal(size=(n, S)),
        "C": np.ones((n, S)),
        "z": z,
        "one": np.ones(n),
        "g": np.array(["a", "b"] * n)[:n],
        "Y": draw.normal(size=(n, T)) + z[:, None],
        "y": draw.normal(size=n) + z,
    }


def everything(model, rows, path):
    """All that a fitted model can say, without a warning of NumPy's; returns it as fitted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        model.fit(rows)
        predicted = np.asarray(model.predict(rows))
        assert np.isfinite(predicted).all()
        assert "Records" in str(model)
        for name in model.term_names_:
            model.coef(name, se=True)
        for values in (model.predict_se(rows), *model.predict_interval(rows)):
            assert np.isfinite(np.asarray(values)).all()
        model.check(rows, n_draws=10)
        model.concurvity()
        model.residuals()
        model.test_terms()
        loaded = type(model).load(model.save(path / "model"))
        np.testing.assert_allclose(loaded.predict(rows), predicted, rtol=1e-12, atol=1e-12)
    return model


@pytest.mark.parametrize(
    "sizes", [(1, 10, 10), (2, 10, 10), (3, 10, 10), (3, 3, 3), (30, 10, 2), (30, 2, 10), (5, 30, 30)]
)
def test_few_curves_and_few_points(sizes, tmp_path):
    rows = data(*sizes)
    for model in ([], [terms.ff("X")], [terms.linear("z")]):
        fitted = everything(FunctionalRegression(model), rows, tmp_path)
        assert fitted.edf_ <= rows["Y"].size


@pytest.mark.parametrize("n", [3, 5])
def test_few_numbers(n, tmp_path):
    for model in ([], [terms.linear("z")], [terms.factor("g")]):
        everything(ScalarRegression(model), data(n), tmp_path)


def test_columns_without_information(tmp_path):
    """Constant columns, one level, the same column twice: what is not identified is 0, and said so."""
    with pytest.warns(match="do not identify all of one"):
        model = FunctionalRegression([terms.linear("one")]).fit(data())
    assert "do not identify all of one" in str(model)
    for terms_ in ([terms.linear("one")], [terms.ff("C")], [terms.linear("z"), terms.linear("z", constant=True)]):
        everything(FunctionalRegression(terms_), data(), tmp_path)
    everything(ScalarRegression([terms.lf("C")]), data(), tmp_path)


def test_responses_without_information(tmp_path):
    rows = data() | {"Y": np.full((30, 12), 3.7), "y": np.full(30, 3.7)}
    smooth = [terms.s("z", by="g"), terms.factor("g")]
    for model in (
        FunctionalRegression([terms.ff("X")]),
        FunctionalRegression(smooth, errors="curve"),
        ScalarRegression([terms.lf("X")]),
    ):
        fitted = everything(model, rows, tmp_path)
        assert np.isnan(fitted.r2_) and np.isnan(fitted.explained_deviance_)
        np.testing.assert_allclose(fitted.fitted_values_, 3.7, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:smooth terms tell all responses apart")
def test_what_equal_responses_explain_is_not_known():
    """Rounding about the mean of responses of 3.7 had been explained by 100 %."""
    for family in ("gaussian", "poisson", "gamma"):
        rows = data() | {"y": np.full(30, 3.0 if family == "poisson" else 3.7)}
        for weights in (None, np.arange(30) % 3):
            model = ScalarRegression([terms.linear("z")], family=family)
            assert np.isnan(model.fit(rows, weights=weights).explained_deviance_)
            halves = [{name: column[half::2] for name, column in rows.items()} for half in (0, 1)]
            assert np.isnan(model.fit_chunks(halves).explained_deviance_)


def test_perfect_fits(tmp_path):
    rows = data()
    rows |= {"Y": np.outer(rows["z"], np.ones(12)), "y": 2 * rows["z"]}
    for scale in (1.0, 1e8, 1e-9):
        scaled = rows | {"Y": scale * rows["Y"], "y": scale * rows["y"]}
        for model in (FunctionalRegression([terms.linear("z")]), ScalarRegression([terms.linear("z")])):
            assert everything(model, scaled, tmp_path).r2_ > 1 - 1e-9


@pytest.mark.parametrize("family", ["binomial", "poisson", "gamma", "scaled_t"])
def test_families_with_a_column_of_zeros(family):
    """The smoothing parameter of a term that is 0 in all rows had overflowed."""
    rows = data() | {"zero": np.zeros(30)}
    rows["y"] = {"binomial": rows["y"] > 0, "poisson": np.round(np.exp(rows["z"])), "gamma": np.exp(rows["y"])}.get(
        family, rows["y"]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.warns(IdentificationWarning, match="do not identify all of s.z.:zero"):
            model = ScalarRegression([terms.s("z", k=4, by="zero")], family=family).fit(rows)
    assert model.edf_ == pytest.approx(1)
    np.testing.assert_allclose(model.fitted_values_, model.fitted_values_[0], rtol=1e-9)


def test_a_number_twice_with_long_tails():
    """A likelihood without a maximum in this direction had been asked for the logarithm of 0."""
    rows = {"z": np.array([3.2, 1.3, 0.2]), "y": np.array([0.1, -0.5, 0.4])}
    rows["z2"] = rows["z"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.warns(IdentificationWarning, match="do not identify all of z2"):
            ScalarRegression([terms.linear("z"), terms.linear("z2")], family="scaled_t").fit(rows)


@pytest.mark.parametrize("smoothing", ["curves", "groups"])
def test_smoothing_by_curves_that_are_all_zero(smoothing, tmp_path):
    """Errors of 0 had divided what they are compared with."""
    rows = data() | {"Y": np.zeros((30, 12))}
    groups = np.arange(30) // 2 if smoothing == "groups" else None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = FunctionalRegression([terms.linear("z")], smoothing=smoothing).fit(rows, groups=groups)
    assert not model.fitted_values_.any() and not model.predict_se(rows).any()


def test_a_covariate_with_one_value_far_away(tmp_path):
    """The variance of the row far away, learned without it from rows that were all alike, had overflowed."""
    rows = data(40)
    rows["z"][0] = 1e6
    model = everything(FunctionalRegression([terms.s("z")]), rows, tmp_path)
    lower, upper = model.predict_interval(rows)
    assert (upper - lower)[1:].max() < 10


def test_gaps(tmp_path):
    rows = data()
    rows["Y"][:, 3], rows["Y"][4] = np.nan, np.nan
    everything(FunctionalRegression([terms.linear("z"), terms.ff("X")]), rows, tmp_path)


@pytest.mark.parametrize(
    ("model", "sizes", "message"),
    [
        (
            [terms.linear("z")],
            (30, 10, 1),
            "Y must be observed at two points or more, got 0 alone; use ScalarRegression",
        ),
        ([terms.ff("X")], (30, 1, 10), "k of ff.X. is for a variable with two different values or more, got 0 alone"),
        (
            [terms.sff("C")],
            (30, 10, 12),
            "k of sff.C. is for a variable with two different values or more, got 1 alone",
        ),
        ([terms.factor("one")], (30, 10, 12), "one must have at least two levels, got 1 in all rows"),
        ([terms.s("one")], (30, 10, 12), "must have a column that varies, got 1 in all rows"),
    ],
)
def test_what_no_curves_can_be_fitted_to(model, sizes, message):
    rows = data(*sizes)
    grids = {name: np.linspace(0, 1, rows[name].shape[1]) for name in ("X", "C", "Y")}
    with pytest.raises(InputError, match=message):
        FunctionalRegression(model).fit(rows, grids=grids)


def test_what_no_numbers_can_be_fitted_to():
    with pytest.raises(InputError, match="n must be above the 2 unpenalised coefficients, got 2 observations"):
        ScalarRegression([terms.linear("z")]).fit(data(2))
    with pytest.raises(InputError, match="n must be above the 2 unpenalised coefficients, got 2 observations"):
        ScalarRegression([terms.linear("z")], family="gamma").fit(data(2) | {"y": np.array([1.0, 2.0])})
    with pytest.raises(InputError, match="kind='curve' needs residuals of two training rows or more"):
        FunctionalRegression([]).fit(data(1)).vcov("curve")
