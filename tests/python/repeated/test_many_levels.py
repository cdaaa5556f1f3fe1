"""``re(id)`` of a number beyond 2,000 levels takes sums by level: the model of the coefficients side by side."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fdadp import FunctionalRegression, ScalarRegression
from fdadp.inference import variance_test
from fdadp.regression.mixed_models import mixed_model_fit


def rows(levels: int, most: int = 9, seed: int = 0) -> pd.DataFrame:
    """Rows in any order, 1 to `most` - 1 of each level, with ties of z and a factor."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(levels), rng.integers(1, most, levels))
    rng.shuffle(person)
    n = person.size
    x, z, g = rng.normal(size=n), rng.uniform(size=n).round(1), rng.choice(list("abc"), n)
    y = x + np.sin(6 * z) + rng.normal(size=levels)[person] + rng.normal(size=n)
    return pd.DataFrame({"y": y, "x": x, "z": z, "g": g, "id": person.astype(str)})


def both(formula: str, data: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> tuple[ScalarRegression, ...]:
    """The model with its coefficients side by side, and by sums."""
    found = []
    for most in (10**6, 2):
        monkeypatch.setattr(mixed_model_fit, "STACKED", most)
        found.append(ScalarRegression(formula).fit(data))
    assert found[0].persons_ is None and found[1].persons_ is not None
    return tuple(found)


@pytest.mark.parametrize("formula", ["y ~ re(id)", "y ~ 0 + x + re(id)", "y ~ x + s(z) + re(id)", "y ~ C(g) + re(id)"])
def test_sums_are_the_fit_of_coefficients_side_by_side(formula, monkeypatch):
    data = rows(150)
    new = data.head(4).assign(id=["new", "0", "1", "2"])
    stacked, sums = both(formula, data, monkeypatch)
    np.testing.assert_allclose(sums.fitted_values_, stacked.fitted_values_, atol=3e-7)
    np.testing.assert_allclose(sums.predict_se(new, kind="iid"), stacked.predict_se(new, kind="iid"), rtol=1e-6)
    assert sums.criterion_ == pytest.approx(stacked.criterion_, abs=1e-8)
    assert sums.sigma2_ == pytest.approx(stacked.sigma2_, rel=1e-7)
    one, other = (m.coef("re(id)", se=True, kind="iid").set_index("id") for m in (stacked, sums))
    np.testing.assert_allclose(other["value"], one["value"], atol=3e-7)
    np.testing.assert_allclose(other["se"], one["se"], rtol=1e-6)
    parts, others = (m.predict(new, type="terms") for m in (stacked, sums))
    assert set(parts) == set(others)
    for name in parts:
        np.testing.assert_allclose(others[name], parts[name], atol=3e-7)


def test_at_given_variances_digits_are_those_of_the_dense_law(monkeypatch):
    """At the variances that REML found: generalised least squares and best linear predictions of a dense law."""
    data = rows(60, seed=3)
    _, sums = both("y ~ x + re(id)", data, monkeypatch)
    variances = sums.persons_.variances["variance"]
    Z = (data["id"].to_numpy()[:, None] == np.array(sums.persons_.persons.levels)).astype(float)
    X = np.column_stack((np.ones(len(data)), data["x"]))
    V = variances["person"] * Z @ Z.T + variances["noise"] * np.eye(len(data))
    inverse = np.linalg.inv(V)
    beta = np.linalg.solve(X.T @ inverse @ X, X.T @ inverse @ data["y"])
    effects = variances["person"] * Z.T @ inverse @ (data["y"] - X @ beta)
    np.testing.assert_allclose(sums.fitted_values_, X @ beta + Z @ effects, atol=1e-10)
    np.testing.assert_allclose(sums.vcov("iid"), np.linalg.inv(X.T @ inverse @ X), rtol=1e-9, atol=1e-12)


def test_the_test_of_the_variance_is_that_of_the_stacked_model(monkeypatch):
    stacked, sums = both("y ~ x + re(id)", rows(40, seed=4), monkeypatch)
    one, other = (variance_test(model, "re(id)", draws=19).statistic for model in (stacked, sums))
    assert other == pytest.approx(one, rel=1e-3)  # the stacked model looks at a grid of variances


def test_awkward_levels_are_fitted_both_ways(monkeypatch):
    """One row a level, no variance of levels, none of rows, one number, large numbers, and a huge unit."""
    data = rows(80, seed=5)
    noise = np.random.default_rng(6).normal(size=len(data))
    level = data["id"].astype(float)
    for odd in (
        rows(120, 2),
        data.assign(y=data["x"] + noise),
        data.assign(y=data["x"] + level),
        data.assign(y=1.0),
        data.assign(y=1e6 + data["y"]),
        data.assign(y=1e9 * data["y"]),
    ):
        stacked, sums = both("y ~ x + re(id)", odd, monkeypatch)
        scale = np.ptp(odd["y"]) or 1.0
        assert np.abs(stacked.fitted_values_ - sums.fitted_values_).max() < 1e-4 * scale


def test_weights_or_a_model_of_levels_alone_stay_side_by_side(monkeypatch):
    data = rows(30)
    monkeypatch.setattr(mixed_model_fit, "STACKED", 2)
    assert ScalarRegression("y ~ x + re(id)").fit(data, weights=np.full(len(data), 2.0)).persons_ is None
    assert ScalarRegression("y ~ 0 + re(id)").fit(data).persons_ is None


def test_twenty_thousand_levels_and_their_summary():
    """They were refused: 35 GB of memory."""
    data = rows(20_000, 6, seed=1)
    model = ScalarRegression("y ~ x + re(id)").fit(data)
    assert model.coefficients_["x.1"] == pytest.approx(1, abs=0.05)
    said = str(model.summary())
    assert "re(id): a number each, of 20,000." in said and "penalised splines" not in said
    assert list(model.persons_.variances.index) == ["person", "noise"]
    assert list(model.coef("re(id)", at={"id": ["0", "1"]}).columns) == ["id", "value"]


def test_a_model_whose_variances_were_tested_is_saved_and_loaded(tmp_path):
    """The file kept (name, draws) as a list, and no such model could be loaded."""
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(30), 3)
    data = {"Y": rng.normal(size=(90, 20)) + rng.normal(size=30)[ids][:, None], "x": rng.normal(size=90), "id": ids}
    model = FunctionalRegression("Y ~ x + re(id, covariance='free', k=4)").fit(data)
    tested = model.test_terms(draws=19)
    loaded = FunctionalRegression.load(model.save(tmp_path / "tested"))
    pd.testing.assert_frame_equal(loaded.test_terms(draws=19), tested)
