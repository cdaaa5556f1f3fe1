"""Models of terms on sparse curves, curves with gaps and numbers that are missing."""

from __future__ import annotations

import numpy as np
import pytest
from skfda.representation.irregular import FDataIrregular

from fdadp import FunctionalRegression, ScalarRegression, terms
from fdadp.errors import CompletedCurvesWarning, InputError
from fdadp.functional.quadrature import quadrature_weights

S = np.linspace(0, 1, 41)
SHAPES = np.stack([np.ones(41)] + [np.sqrt(2) * f(2 * np.pi * S) for f in (np.sin, np.cos)])
SURFACE = 2 * np.sin(np.pi * S)[:, None] * np.cos(np.pi * S) + np.outer(S, S)
NAN = float("nan")


def sparse(n, seed=0, points=8, noise=0.3):
    """Curves seen at 8 of 41 points with noise, the means of the responses, and responses."""
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(n, 3)) * [1, 0.8, 0.5]) @ SHAPES
    mean = 1 + (x * quadrature_weights(S)) @ SURFACE
    seen = np.full(x.shape, NAN)
    for i in range(n):
        at = rng.choice(41, points, replace=False)
        seen[i, at] = x[i, at] + noise * rng.normal(size=points)
    return seen, mean, mean + 0.2 * rng.normal(size=mean.shape)


def error_of_surface(model):
    found = model.coef("ff(X)", s=S, t=S)
    values = np.asarray(found["value"]).reshape(41, 41)
    return np.linalg.norm(values - SURFACE) / np.linalg.norm(SURFACE)


def fitted(n, **settings):
    seen, mean, y = sparse(n)
    model = FunctionalRegression([terms.ff("X")], **settings).fit({"X": seen, "Y": y}, grids={"X": S, "Y": S})
    return model, mean


def test_sparse_noisy_curves():
    """Relative error of the surface .04 from complete curves at n = 200 and 1,000."""
    few, _ = fitted(200, missing="pace")
    assert error_of_surface(few) < 0.14
    many, mean = fitted(1000, missing="pace")
    assert error_of_surface(many) < 0.05
    new, truth, _ = sparse(300, seed=9)
    spread = np.sqrt(((mean - mean.mean(axis=0)) ** 2).mean())
    assert np.sqrt(((np.asarray(many.predict({"X": new})) - truth) ** 2).mean()) < 0.2 * spread


def given(seen):
    """Curves given what was seen of them, by the law that they were drawn from."""
    out = np.empty(seen.shape)
    for row, curve in enumerate(seen):
        at = ~np.isnan(curve)
        weighted = np.diag([1, 0.64, 0.25]) @ SHAPES[:, at]
        scores = weighted @ np.linalg.solve(SHAPES[:, at].T @ weighted + 0.09 * np.eye(at.sum()), curve[at])
        out[row] = scores @ SHAPES
    return out


def test_standard_errors_know_that_components_were_estimated(tmp_path):
    """Of the mean given what was seen of a curve; where curves were taken as known, .64 of nominal .95 held it."""
    held, alone = [], []
    new, _, _ = sparse(200, seed=99)
    truth = 1 + (given(new) * quadrature_weights(S)) @ SURFACE
    for seed in range(3):
        seen, _, y = sparse(200, seed=seed)
        model = FunctionalRegression([terms.ff("X")], missing="pace").fit({"X": seen, "Y": y}, grids={"X": S, "Y": S})
        off = np.abs(model.predict({"X": new}) - truth)
        held.append((off < 1.96 * model.predict_se({"X": new})).mean())
        records = model.fitted_.records({"X": new}, None)
        alone.append((off < 1.96 * model.fitted_.errors.of_predictor(records, None, S)).mean())
    assert np.mean(held) > 0.88 > 0.75 > np.mean(alone)
    loaded = FunctionalRegression.load(model.save(tmp_path / "model"))
    np.testing.assert_allclose(loaded.predict_se({"X": new}), model.predict_se({"X": new}), rtol=1e-12)
    scalar = ScalarRegression([terms.lf("X")], missing="pace").fit({"X": seen, "y": y[:, 0]}, grids={"X": S})
    one = scalar.fitted_.fit.form.standard_errors(
        scalar.fitted_.records({"X": new}, None), scalar.fitted_.errors.covariance(None)
    )[:, 0]
    assert (scalar.predict_se({"X": new}) > one).all()


def test_standard_errors_that_take_completed_curves_as_known_say_so():
    seen, _, y = sparse(60)
    model = FunctionalRegression([terms.ff("X")], missing="pace", errors="curve")
    model.fit({"X": seen, "Y": y}, grids={"X": S, "Y": S})
    with pytest.warns(CompletedCurvesWarning, match="take X as known, which missing='pace' completed"):
        model.predict_se({"X": seen})


def test_new_rows_and_files(tmp_path):
    model, _ = fitted(100, missing="fpca")
    new, _, _ = sparse(5, seed=3)
    predicted = np.asarray(model.predict({"X": new}))
    one = np.asarray(model.predict({"X": new[2:3]}))
    np.testing.assert_allclose(one[0], predicted[2], rtol=1e-10)
    loaded = FunctionalRegression.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(np.asarray(loaded.predict({"X": new})), predicted)


def test_irregular_curves():
    """Points of their own: as scikit-fda has them, the same as a matrix with gaps."""
    seen, _, y = sparse(60)
    rows, at = np.nonzero(~np.isnan(seen))
    starts = np.searchsorted(rows, np.arange(60))
    irregular = FDataIrregular(starts, S[at][:, None], seen[rows, at][:, None], domain_range=(0, 1))
    term = [terms.ff("X")]
    own = FunctionalRegression(term, missing="pace").fit({"X": irregular, "Y": y}, grids={"Y": S})
    matrix = FunctionalRegression(term, missing="pace").fit({"X": seen, "Y": y}, grids={"X": S, "Y": S})
    np.testing.assert_allclose(np.asarray(own.fitted_values_), np.asarray(matrix.fitted_values_), atol=1e-9)


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 3)) @ SHAPES
    age = rng.normal(50, 10, size=120)
    y = x @ quadrature_weights(S) + 0.1 * age + rng.normal(size=120)
    gone = rng.random(120) < 0.2
    y[gone] += 3  # whose age is missing differ
    return {"X": x, "age": np.where(gone, NAN, age), "y": y}, gone


def test_indicator(people):
    data, gone = people
    model = ScalarRegression([terms.lf("X"), terms.linear("age")], missing="indicator").fit(data, grids={"X": S})
    filled = {**data, "age": np.where(gone, np.nanmean(data["age"]), data["age"]), "lost": gone.astype(float)}
    by_hand = ScalarRegression([terms.lf("X"), terms.linear("age"), terms.linear("lost")])
    by_hand.fit(filled, grids={"X": S})
    np.testing.assert_allclose(model.fitted_values_, by_hand.fitted_values_, rtol=1e-10)
    assert model.term_names_ == ("(Intercept)", "lf(X)", "age", "missing(age)")
    effect = float(model.predict(data, type="terms")["missing(age)"][gone][0])
    assert 2 < effect < 4
    new = {"X": data["X"][:3], "age": np.array([NAN, 40.0, 60.0])}
    np.testing.assert_allclose(model.predict(new)[1:], model.predict({k: v[1:] for k, v in new.items()}), rtol=1e-12)


def test_each_column_its_treatment(people):
    data, _ = people
    x = data["X"].copy()
    x[4, 10:14] = NAN
    model = ScalarRegression([terms.lf("X"), terms.s("age")], missing={"X": "linear", "age": "indicator"})
    model.fit({**data, "X": x}, grids={"X": S})
    assert np.isfinite(model.fitted_values_).all()
    with pytest.raises(InputError, match="X must be finite"):
        ScalarRegression([terms.lf("X"), terms.s("age")], missing="indicator").fit({**data, "X": x}, grids={"X": S})
    cure = r"age must have a finite number in every row.*Fit with missing={'X': 'linear', 'age': 'indicator'}"
    with pytest.raises(InputError, match=cure):  # which followed to the letter left the gaps of X as they were
        ScalarRegression([terms.lf("X"), terms.s("age")], missing="linear").fit({**data, "X": x}, grids={"X": S})
    ScalarRegression([terms.lf("X"), terms.s("age")], missing={"X": "linear", "age": "indicator"}).fit(
        {**data, "X": x}, grids={"X": S}
    )
    with pytest.raises(InputError, match="missing must be one of"):
        ScalarRegression([terms.lf("X")], missing="mean").fit(data, grids={"X": S})


def test_a_response_without_a_number_says_how_to_leave_rows_out():
    table = {"y": np.array([1.0, np.nan, 2.0, 3.0, 4.0]), "z": np.arange(5.0)}
    with pytest.raises(InputError, match=r"none in row 1\. Leave such rows out, as data\[data\['y'\]\.notna\(\)\]"):
        ScalarRegression("y ~ z").fit(table)
