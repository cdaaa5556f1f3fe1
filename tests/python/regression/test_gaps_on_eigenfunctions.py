"""Curves with gaps on eigenfunctions: a model of the observed points, not of filled-in scores."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fdadp import FunctionalRegression
from fdadp.errors import InputError

S, T = np.linspace(0, 1, 31), np.linspace(0, 2, 25) ** 1.3
GRIDS = {"X": S, "Y": T}
FORMULA = "Y ~ ff(X) + x + C(g)"


def table(n, seed, noise=0.1, share=0.7):
    """A table, its mean curves, and its responses with a share of the points not observed."""
    rng = np.random.default_rng(seed)
    curves = rng.normal(size=(n, 4)) @ np.array([np.ones(31), np.sin(3 * S), np.cos(5 * S), S**2])
    data = {"X": curves, "x": rng.normal(size=n), "g": np.resize(list("abc"), n)}
    truth = 2 * (curves @ np.exp(-S) / 31)[:, None] * (1 + T) + np.outer(data["x"], np.cos(T))
    truth = truth + 0.3 * (data["g"] == "b")[:, None] * T**2
    errors = 0.4 * rng.normal(size=(n, 1)) * np.sin(3 * T) + noise * rng.normal(size=truth.shape)
    y = np.where(rng.uniform(size=truth.shape) < share, np.nan, truth + errors)
    return data, truth, y


def fit(data, y, **settings):
    return FunctionalRegression(FORMULA, response_basis="eigen", **settings).fit(data | {"Y": y}, grids=GRIDS)


@pytest.fixture(scope="module")
def sparse():
    return table(120, 0)


@pytest.fixture(scope="module")
def model(sparse):
    data, _, y = sparse
    return fit(data, y)


def held(n, seed, **settings):
    data, truth, y = table(n, seed, **settings)
    model = fit(data, y)
    off = model.predict(data) - truth
    return np.mean(np.abs(off) < 1.96 * model.predict_se(data)), np.sqrt((off**2).mean())


def test_standard_errors_hold_mean_curves_of_few_points():
    found = np.array([held(120, seed, share=0.8) for seed in range(4)])
    assert 0.9 < found[:, 0].mean() < 0.995
    assert found[:, 1].mean() < 0.12  # of means with standard deviation 1.2


@pytest.mark.long
@pytest.mark.parametrize("share", [0.5, 0.8, 0.9])
@pytest.mark.parametrize("noise", [0.1, 0.5])
def test_standard_errors_hold_mean_curves(share, noise):
    found = np.array([held(150, 100 + seed, share=share, noise=noise)[0] for seed in range(25)])
    assert 0.925 < found.mean() < 0.99


def test_points_of_their_own_are_as_gaps_on_a_grid(sparse, model):
    data, _, y = sparse
    row, at = np.nonzero(~np.isnan(y))
    long = pd.DataFrame({"row": row, "t": T[at], "y": y[row, at]})
    own = FunctionalRegression(FORMULA, response_basis="eigen").fit(data, grids={"X": S}, response=long)
    np.testing.assert_allclose(own.predict(data, t=T), model.predict(data), atol=1e-9)
    np.testing.assert_allclose(own.predict_se(data, t=T), model.predict_se(data), rtol=1e-7)


def test_offsets_are_taken_off(sparse, model):
    data, _, y = sparse
    offset = np.outer(data["x"] ** 2, 1 + T)
    own = FunctionalRegression(FORMULA, response_basis="eigen")
    own.fit(data | {"Y": y + offset}, grids=GRIDS, offset=offset)
    np.testing.assert_allclose(own.predict(data), model.predict(data), atol=1e-9)


def test_files_keep_what_it_says(sparse, model, tmp_path):
    data, _, _ = sparse
    model.save(tmp_path / "model.fdadp")
    loaded = FunctionalRegression.load(tmp_path / "model.fdadp")
    for kind in ("curve", "iid"):
        np.testing.assert_array_equal(loaded.predict_se(data, kind=kind), model.predict_se(data, kind=kind))
    np.testing.assert_array_equal(loaded.predict_interval(data)[0], model.predict_interval(data)[0])


def test_given_smoothing_parameters_mean_what_they_mean_without_gaps():
    data, _, y = table(120, 3, share=0.0)
    gaps = np.where(np.random.default_rng(0).uniform(size=y.shape) < 0.2, np.nan, y)
    for sp in (0.1, 10.0):
        whole, own = (fit(data, each, n_components=2, smoothing=[sp]) for each in (y, gaps))
        assert own.edf_ == pytest.approx(whole.edf_, rel=0.1)


def test_more_points_tell_more():
    data, _, y = table(120, 3, share=0.0)
    order = np.random.default_rng(0).uniform(size=y.shape)
    se = [np.median(fit(data, np.where(order < share, np.nan, y)).predict_se(data)) for share in (0.1, 0.8)]
    assert se[1] > 1.1 * se[0]


def test_eigenfunctions_that_are_given_are_kept(sparse, model):
    data, _, y = sparse
    basis = model.eigenbasis_
    own = fit(data, y, n_components=basis)
    np.testing.assert_array_equal(own.eigenbasis_.functions, basis.functions)
    np.testing.assert_allclose(own.predict(data), model.predict(data), atol=1e-8)
    other = FunctionalRegression(FORMULA, response_basis="eigen", n_components=basis)
    with pytest.raises(InputError, match="n_components must be a basis on the grid of Y"):
        other.fit(data | {"Y": y[:, ::2]}, grids={"X": S, "Y": T[::2]})


def test_too_few_curves_or_points_are_refused(sparse):
    data, _, y = sparse
    few = {name: values[:7] for name, values in data.items()}
    with pytest.raises(InputError, match="8 curves or more with two observations, got 24 and 7"):
        fit(few, y[:7])
    with pytest.raises(InputError, match="weights must be None with response_basis='eigen'"):
        FunctionalRegression(FORMULA, response_basis="eigen").fit(
            data | {"Y": y}, grids=GRIDS, weights=np.full(120, 2.0)
        )
    with pytest.raises(InputError, match="n_components must be at most 25 for 120 curves, got 30"):
        fit(data, y, n_components=30)
