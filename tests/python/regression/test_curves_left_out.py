"""The score by which models of curves are chosen: errors of curves, or of persons, that the fit does not know."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp import FunctionalRegression, ScalarRegression
from fdadp.errors import InputError
from fdadp.functional.quadrature import quadrature_weights

T = np.linspace(0, 1, 21)
GRIDS = {"X": T, "Y": T}
SMOOTH = np.linalg.cholesky(np.exp(-(np.subtract.outer(T, T) ** 2) / 0.045) + 1e-8 * np.eye(T.size))


def curves(seed=0, n=30, size=1.0):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(n, 3)) @ np.array([np.cos(k * np.pi * T) for k in range(3)])
    x, z = draw.normal(size=(2, n))
    Y = size * x[:, None] * T + X + draw.normal(size=(n, T.size)) @ SMOOTH.T + 0.3 * draw.normal(size=(n, T.size))
    return {"x": x, "z": z, "X": X, "Y": Y, "id": np.arange(n) // 3}


def fitted(data, formula="Y ~ x + ff(X)", weights=None, groups=None, **settings):
    model = FunctionalRegression(formula, progress=False, k="refund", **settings)
    return model.fit(data, grids=GRIDS, weights=weights, groups=groups)


@pytest.mark.parametrize("groups", [None, "id"])
@pytest.mark.parametrize("gaps", [False, True])
def test_it_is_the_error_of_refits(groups, gaps):
    """In the same form: a curve, or a person's curves, of weight 0."""
    data = curves()
    if gaps:
        data["Y"][np.random.default_rng(1).uniform(size=data["Y"].shape) < 0.3] = np.nan
    count = len(fitted(data).smoothing_parameters_)
    smoothing = np.full(count, 0.3)
    model = fitted(data, smoothing=smoothing, groups=groups)
    units = np.arange(30) if groups is None else data["id"]
    errors = []
    for unit in np.unique(units):
        out = units == unit
        left = fitted(data, smoothing=smoothing, weights=np.where(out, 0.0, 1.0))
        own = {name: values[out] for name, values in data.items()}
        square = (own["Y"] - np.asarray(left.predict(own))) ** 2
        weights = np.where(np.isnan(square), 0.0, quadrature_weights(T))
        errors.append((np.nansum(weights * square, axis=1) / weights.sum(axis=1)).mean())
    assert model.loo_ == pytest.approx(np.mean(errors), rel=1e-7)
    assert model.loo_se_ == pytest.approx(np.std(errors, ddof=1) / len(errors) ** 0.5, rel=1e-6)


def test_rows_of_persons_count_as_the_fit_counts_them():
    data = curves()
    data["id"] = np.repeat(np.arange(8), [1, 2, 3, 4, 5, 5, 5, 5])
    found = {law: fitted(data, groups="id", person_rows=law) for law in ("mean", "sum")}
    each = [np.mean(found["mean"].loo_), np.mean(found["sum"].loo_)]
    assert abs(each[0] - each[1]) > 1e-3


@pytest.mark.statistics
def test_a_null_covariate_is_seldom_preferred():
    """AIC takes it in eight of ten cohorts with smooth errors; beyond one standard error the score takes it in few."""
    taken, found = {"aic": 0, "loo": 0, "preferred": 0}, 0
    for seed in range(60):
        data = curves(seed, 50)
        small, large = (FunctionalRegression(f).fit(data, grids={"Y": T}) for f in ("Y ~ x", "Y ~ x + z"))
        table = large.compare(small)
        taken["aic"] += large.aic_ < small.aic_
        taken["loo"] += table.loc["larger", "gain"] > 0
        taken["preferred"] += bool(table.loc["larger", "preferred"])
        if seed < 20:
            none = FunctionalRegression("Y ~ 1").fit(data, grids={"Y": T})
            found += bool(none.compare(small).loc["larger", "preferred"])
    assert taken["aic"] >= 36
    assert taken["loo"] <= 15
    assert taken["preferred"] <= 3
    assert found >= 12


def test_summaries_of_curves_say_it_in_place_of_aic():
    data = curves()
    text = fitted(data).summary().as_text()
    assert "AIC" not in text
    assert f"{fitted(data).loo_:.4g}" in text
    numbers = ScalarRegression("y ~ x + lf(X)").fit(data | {"y": data["Y"].mean(axis=1)}, grids={"X": T})
    assert "AIC" in numbers.summary().as_text()
    assert numbers.loo_ > numbers.sigma2_ * 0.8
    assert numbers.compare(ScalarRegression("y ~ x").fit(data | {"y": data["Y"].mean(axis=1)})).shape == (2, 6)


def test_other_models_and_rows_are_refused(tmp_path):
    data = curves()
    model = fitted(data)
    with pytest.raises(InputError, match="other must be fitted to the same responses"):
        model.compare(fitted(data | {"Y": data["Y"][::-1]}))
    with pytest.raises(InputError, match="other must be fitted to the same responses"):
        model.compare(fitted(data, groups="id"))
    loaded = FunctionalRegression.load(model.save(tmp_path / "model"))
    assert (loaded.loo_, loaded.loo_se_) == (model.loo_, model.loo_se_)
    with pytest.raises(InputError, match="loo_ needs two training rows or more"):
        loaded.compare(model)
    with pytest.raises(InputError, match="loo_ is there for family='gaussian', got 'poisson'"):
        _ = ScalarRegression("y ~ x", family="poisson").fit({"x": data["x"], "y": np.arange(30.0)}).loo_
