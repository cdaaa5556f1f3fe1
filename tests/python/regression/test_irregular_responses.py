"""Responses at points of their own, through the public regression; that fits are refund's, r_bridge asks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from skfda import FDataIrregular

from fdadp import FunctionalRegression, terms
from fdadp.errors import InputError

S = np.linspace(0, 1, 21)


def cohort(n=80, seed=0, points=8):
    rng = np.random.default_rng(seed)
    waves = np.array([np.ones(S.size), np.sin(2 * np.pi * S), np.cos(2 * np.pi * S)])
    data = {"X": rng.normal(size=(n, 3)) @ waves, "x": rng.normal(size=n)}
    record = np.repeat(np.arange(n), points)
    t = np.concatenate([np.sort(rng.uniform(size=points)) for _ in range(n)])
    eta = mean(data, record, t)
    return data, pd.DataFrame({"row": record, "t": t, "y": eta + 0.2 * rng.normal(size=t.size)}), eta


def mean(data, record, t):
    return (data["X"] @ np.sin(np.pi * S) / S.size)[record] * np.cos(t) + 0.5 * data["x"][record] * t + np.sin(3 * t)


MODELS = {
    "same at all t": [terms.ff("X"), terms.linear("x")],
    "some vary with t": [terms.ff("X", limits="s<=t"), terms.linear("x")],
    "at the same t": [terms.concurrent("X"), terms.linear("x")],
}


@pytest.mark.parametrize("model", MODELS)
def test_observations_on_a_grid_are_curves(model):
    """The same fit as to curves, where all happen to share a grid; in any order."""
    data, _, _ = cohort(n=40)
    rng, t = np.random.default_rng(1), np.linspace(0, 1, 11)
    Y = mean(data, np.repeat(np.arange(40), 11), np.tile(t, 40)).reshape(40, 11) + 0.2 * rng.normal(size=(40, 11))
    long = pd.DataFrame({"row": np.repeat(np.arange(40), 11), "t": np.tile(t, 40), "y": Y.ravel()})
    curves = FunctionalRegression(MODELS[model]).fit({**data, "Y": Y}, grids={"X": S, "Y": t})
    points = FunctionalRegression(MODELS[model]).fit(data, response=long.sample(frac=1, random_state=0), grids={"X": S})
    assert_allclose(points.fitted_values_, curves.fitted_values_.ravel(), atol=1e-6)
    assert_allclose(points.residuals_, curves.residuals_.ravel(), atol=1e-6)
    assert_allclose(points.criterion_, curves.criterion_, rtol=1e-8)
    assert_allclose(points.edf_, curves.edf_, rtol=1e-4)
    assert_allclose(points.t_, t)
    assert_allclose(points.predict(data), curves.predict(data), atol=1e-6)
    assert_allclose(points.predict_se(data, kind="iid"), curves.predict_se(data, kind="iid"), rtol=1e-4)


@pytest.mark.parametrize("model", ["same at all t", "some vary with t"])
def test_gaps_are_points_that_were_not_observed(model):
    """Weights of 0 on a grid, and single observations, are two ways to the same sums."""
    data, _, _ = cohort(n=40)
    rng, t = np.random.default_rng(1), np.linspace(0, 1, 11)
    Y = rng.normal(size=(40, 11)) + data["x"][:, None]
    Y[rng.uniform(size=Y.shape) < 0.3] = np.nan
    Y[:, [0, -1]] = 1.0  # the same range, so that bases are the same
    smoothing = [0.3, 5.0, 1.0]
    # Without the mean curve, which is centred over the observations or over the grid.
    make = lambda: FunctionalRegression(MODELS[model], smoothing=smoothing, intercept=False)  # noqa: E731
    curves = make().fit({**data, "Y": Y}, grids={"X": S, "Y": t})
    seen = ~np.isnan(Y)
    long = pd.DataFrame({"row": np.nonzero(seen)[0], "t": t[np.nonzero(seen)[1]], "y": Y[seen]})
    points = make().fit(data, response=long, grids={"X": S})
    assert_allclose(points.fitted_values_, curves.fitted_values_[seen], atol=1e-9)
    assert_allclose([points.edf_, points.sigma2_], [curves.edf_, curves.sigma2_], rtol=1e-9)
    # REML depends on units of penalties, which are those of the rows seen.
    assert points.criterion_ == pytest.approx(curves.criterion_, rel=1e-8)


def test_means_are_near_the_truth():
    data, long, eta = cohort(n=200)
    model = FunctionalRegression(MODELS["same at all t"]).fit(data, response=long, grids={"X": S})
    assert model.fitted_values_.shape == (1600,)
    assert np.mean((model.fitted_values_ - eta) ** 2) < 0.05 * np.var(eta)
    seen = model.observed_at_
    assert_allclose(seen.y - model.fitted_values_, model.residuals_)
    assert model.t_.size == 101
    assert model.predict(data).shape == (200, 101)
    new, _, _ = cohort(n=20, seed=9)
    at = np.array([0.25, 0.75])
    truth = mean(new, np.repeat(np.arange(20), 2), np.tile(at, 20)).reshape(20, 2)
    assert np.mean((model.predict(new, t=at) - truth) ** 2) < 0.05 * np.var(truth)
    assert model.coef("ff(X)").shape[0] > 100


def test_irregular_curves_of_scikit_fda():
    data, long, _ = cohort(n=30)
    starts = np.arange(0, 240, 8)
    irregular = FDataIrregular(starts, long["t"].to_numpy(), long["y"].to_numpy())
    a = FunctionalRegression(MODELS["same at all t"]).fit({**data, "Y": irregular}, grids={"X": S})
    b = FunctionalRegression(MODELS["same at all t"]).fit(data, irregular, grids={"X": S})
    c = FunctionalRegression(MODELS["same at all t"]).fit(data, response=long, grids={"X": S})
    assert_allclose(a.fitted_values_, c.fitted_values_)
    assert_allclose(b.fitted_values_, c.fitted_values_)


@pytest.mark.parametrize("family", ["gaussian", "poisson", "binomial"])
def test_weights_and_offsets_belong_to_rows(family):
    """A row of weight 0 was not observed; an offset is taken off all observations of its row."""
    data, long, eta = cohort(n=40)
    rng = np.random.default_rng(3)
    draws = {
        "gaussian": long["y"],
        "poisson": rng.poisson(np.exp(eta)),
        "binomial": (rng.uniform(size=eta.size) < 1 / (1 + np.exp(-eta))) * 1.0,
    }
    long["y"] = draws[family]
    make = lambda **kwargs: FunctionalRegression(MODELS["some vary with t"], family=family).fit(  # noqa: E731
        data, response=long, grids={"X": S}, **kwargs
    )
    model = make(weights=np.ones(40), offset=np.zeros(40))
    assert_allclose(model.fitted_values_, make().fitted_values_, rtol=1e-6)
    shifted = make(offset=np.full(40, 0.7))
    assert_allclose(shifted.fitted_values_, model.fitted_values_, rtol=1e-3)
    assert_allclose(model.predict(data, type="link") - shifted.predict(data, type="link"), 0.7, atol=2e-3)
    weights = (np.arange(40) % 4 > 0).astype(float)
    part = make(weights=weights)
    assert part._fit.n_rows == weights.sum() * 8


def test_files_keep_no_observation(tmp_path):
    data, long, _ = cohort(n=30)
    model = FunctionalRegression(MODELS["same at all t"]).fit(data, response=long, grids={"X": S})
    again = FunctionalRegression.load(model.save(tmp_path / "model"))
    assert_allclose(again.predict(data), model.predict(data))
    assert not hasattr(again, "observed_at_")
    assert again._fit.form.t.size == 101


def test_impossible_counts_at_points_are_named():
    data, long, _ = cohort(n=10)
    with pytest.raises(InputError, match="Y must have counts of 0 or more"):
        FunctionalRegression(MODELS["same at all t"], family="poisson").fit(data, response=long, grids={"X": S})
    with pytest.raises(InputError, match=r"weights must be of shape \(10,\), got \(80,\)"):
        FunctionalRegression(MODELS["same at all t"]).fit(data, response=long, grids={"X": S}, weights=np.ones(80))
