"""Models of many terms of the smallest and oddest data: everything works, or says what is wrong."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from fdadp import FunctionalRegression, ScalarRegression, terms
from fdadp.errors import InputError


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
    """All that a fitted model can say; returns it as fitted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
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
    rows = data() | {"Y": np.ones((30, 12)), "y": np.ones(30)}
    for model in (FunctionalRegression([terms.ff("X")]), ScalarRegression([terms.lf("X")])):
        fitted = everything(model, rows, tmp_path)
        assert np.isnan(fitted.r2_) and np.isnan(fitted.explained_deviance_)
        np.testing.assert_allclose(fitted.fitted_values_, 1, rtol=1e-9)


def test_perfect_fits(tmp_path):
    rows = data()
    rows |= {"Y": np.outer(rows["z"], np.ones(12)), "y": 2 * rows["z"]}
    for scale in (1.0, 1e8, 1e-9):
        scaled = rows | {"Y": scale * rows["Y"], "y": scale * rows["y"]}
        for model in (FunctionalRegression([terms.linear("z")]), ScalarRegression([terms.linear("z")])):
            assert everything(model, scaled, tmp_path).r2_ > 1 - 1e-9


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
    with pytest.raises(InputError, match="kind='curve' needs residuals of two training rows or more"):
        FunctionalRegression([]).fit(data(1)).vcov("curve")
