"""The zero of a unit is of no effect: curves and numbers are centred where the model has a mean curve."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp import FunctionalRegression, ScalarRegression, load_canadian_weather, terms

S = np.linspace(0, 1, 24)


@pytest.fixture(scope="module")
def data():
    weather = load_canadian_weather()
    x, y = (np.asarray(c.data_matrix[:, ::15, 0][:, :24]) for c in (weather.X, weather.Y))
    return {"X": x, "Y": y, "y": y.mean(axis=1), "g": np.asarray(weather.covariates["region"]), "z": x[:, 0] / 10}


MODELS = {
    "ff": "Y ~ ff(X)",
    "history": "Y ~ ff(X, limits='s<=t')",
    "concurrent": "Y ~ X",
    "levels": "Y ~ C(g) + C(g):ff(X)",
    "number": "Y ~ z + ff(X, by='z')",
    "eigen": "Y ~ ff(X)",
}


@pytest.mark.parametrize("name", MODELS)
def test_a_level_changes_nothing(data, name):
    smoothing = "reml" if name in ("ff", "concurrent", "eigen") else "gcv"
    more = {"response_basis": "eigen"} if name == "eigen" else {"smoothing": smoothing}
    fits = []
    for level in (0.0, 1e6):
        moved = data | {"X": data["X"] + level}
        model = FunctionalRegression(MODELS[name], progress=False, **more).fit(moved, grids={"X": S, "Y": S})
        fits.append((model.r2_, np.asarray(model.predict({k: v[:5] for k, v in moved.items()}))))
    assert abs(fits[0][0] - fits[1][0]) < 1e-6
    np.testing.assert_allclose(fits[1][1], fits[0][1], atol=1e-4)


def test_a_level_changes_no_regression_of_a_number(data):
    fits = [ScalarRegression("y ~ lf(X)").fit(data | {"X": data["X"] + a}, grids={"X": S}) for a in (0.0, 1e6)]
    np.testing.assert_allclose(fits[1].fitted_values_, fits[0].fitted_values_, atol=1e-6)
    plain = ScalarRegression("y ~ lf(X)")
    plain.k = "refund"  # not centred: the same model, for a constant has no penalty
    plain.fit(data, grids={"X": S})
    np.testing.assert_allclose(fits[0].fitted_values_, plain.fitted_values_, atol=1e-7)


def test_chunks_and_new_grids_have_the_same_centre(data):
    table = {name: data[name] for name in ("X", "Y")}
    whole = FunctionalRegression("Y ~ ff(X)", progress=False).fit(table, grids={"X": S, "Y": S})
    parts = [{name: v[rows] for name, v in table.items()} for rows in (slice(0, 9), slice(9, 35))]
    chunked = FunctionalRegression("Y ~ ff(X)", progress=False).fit_chunks(parts, grids={"X": S, "Y": S})
    np.testing.assert_allclose(np.asarray(chunked.predict(table)), np.asarray(whole.predict(table)), atol=1e-6)
    finer = np.linspace(0, 1, 47)
    x = np.array([np.interp(finer, S, row) for row in data["X"]])
    moved = FunctionalRegression("Y ~ ff(X)", progress=False).fit(
        table | {"X": data["X"] + 1e6}, grids={"X": S, "Y": S}
    )
    again = (np.asarray(m.predict({"X": v}, grids={"X": finer})) for m, v in ((whole, x), (moved, x + 1e6)))
    np.testing.assert_allclose(*again, atol=1e-4)


def test_refunds_curves_are_not_centred(data):
    """So that the effect of a curve of zeros is 0; ours is 0 at the mean curve."""
    grids = {"X": S, "Y": S}
    ours, theirs = (FunctionalRegression([terms.ff("X")], k=k).fit(data, grids=grids) for k in ("auto", "refund"))
    mean, none = {"X": data["X"].mean(axis=0, keepdims=True)}, {"X": np.zeros((1, S.size))}
    assert np.abs(ours.predict(mean, type="terms")["ff(X)"]).max() < 1e-12
    assert np.abs(theirs.predict(none, type="terms")["ff(X)"]).max() < 1e-12


@pytest.mark.parametrize("formula", ["Y ~ year", "Y ~ year + ff(X) + C(g)", "Y ~ year + X"])
def test_the_level_of_a_number_changes_nothing(data, formula):
    """A year of 2001 to 2035 instead of 1 to 35 lost a fifth of R2: effect and mean curve are both penalised."""
    fits = []
    for level in (0.0, 2000.0, 1e6):
        moved = data | {"year": 5 * data["y"] + np.arange(35.0) / 7 + level}
        model = FunctionalRegression(formula, progress=False).fit(moved, grids={"X": S, "Y": S})
        new = {name: values[:5] for name, values in moved.items()}
        fits.append((model.r2_, np.asarray(model.predict(new)), np.asarray(model.coef(model.term_names_[2])["value"])))
    for r2, predicted, effect in fits[1:]:
        assert r2 == pytest.approx(fits[0][0], abs=1e-6)
        np.testing.assert_allclose(predicted, fits[0][1], atol=1e-4)
        np.testing.assert_allclose(effect, fits[0][2], atol=1e-4)


def test_products_of_numbers_are_as_they_are_written(data):
    """The effect of the one is where the other is 0, in the data's own unit."""
    table = data | {"x": data["y"] + 3}
    model = FunctionalRegression("Y ~ x * z", progress=False).fit(table, grids={"Y": S})
    new = {"x": np.array([0.0, 1.0]), "z": np.zeros(2)}
    difference = np.diff(np.asarray(model.predict(new)), axis=0)[0]
    np.testing.assert_allclose(difference, model.coef("x", t=S)["value"], atol=1e-8)
