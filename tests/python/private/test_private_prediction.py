"""Private predictions for curves unlike any other: limited by what was released; all others exactly as before."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from output_perturbation import OutputPerturbation

from fdadp import AdditiveFunctionOnFunction, Privacy, coverage, simulate_affr
from fdadp.regression.fitted import coefficient_errors as predictions

pytestmark = pytest.mark.filterwarnings("ignore::fdadp.errors.ExtrapolationWarning")

N = 300
GRID = np.linspace(0.0, 1.0, 51)


def arrays(seed, n=N):
    sim = simulate_affr(scenario=2, n=n, seed=seed)
    return sim.X.data_matrix[..., 0], sim.Y.data_matrix[..., 0]


def make(mechanism="dp-aff"):
    privacy = Privacy(epsilon=1.0, delta=1e-6, n=N, random_state=7)
    return AdditiveFunctionOnFunction(privacy=privacy, bounds={"X": (-4.5, 4.5), "Y": (-8, 8)}, mechanism=mechanism)


@pytest.fixture(scope="module")
def model():
    return make().fit(*arrays(0))


@pytest.fixture(scope="module")
def curves():
    """Some like the training curves, and the same ones up to a million times as large."""
    x = arrays(1, 200)[0]
    return np.vstack([x * size for size in (1.0, 2.0, 10.0, 1e6)])


def away(model, x):
    """Norms of predictions about the mean curve, with the limit that is in force."""
    return np.sqrt((model.predict(x) - model.mean_) ** 2 @ model.eigenbasis_.weights)


def limit_of(model):
    # The domain of Y has length one: values are mean squares.
    return predictions.FARTHEST * np.sqrt(model.eigenvalues_.sum() + model.noise_variance_)


@pytest.mark.parametrize("farthest", [0.3, 1.0, predictions.FARTHEST])
def test_only_the_excess_is_shrunk_and_by_a_quarter_of_its_own_variance(model, curves, farthest, monkeypatch):
    monkeypatch.setattr(predictions, "FARTHEST", np.inf)
    free, size = model.predict(curves), away(model, curves)
    variance = model.predict_se(curves) ** 2 @ model.eigenbasis_.weights
    monkeypatch.setattr(predictions, "FARTHEST", farthest)
    bounded = model.predict(curves)
    excess = size - limit_of(model)
    inside = excess <= 0
    if farthest < predictions.FARTHEST:
        assert 0 < inside.sum() < len(curves)
    np.testing.assert_array_equal(bounded[inside], free[inside])
    excess, variance, size = excess[~inside], variance[~inside], size[~inside]
    wanted = limit_of(model) + excess**3 / (excess**2 + variance / 4)
    assert (wanted < size).all()
    expected = model.mean_ + (free[~inside] - model.mean_) * (wanted / size)[:, None]
    np.testing.assert_allclose(bounded[~inside], expected, rtol=1e-9, atol=1e-9)


@given(seed=st.integers(0, 50), size=st.floats(1, 1e6))
@settings(max_examples=20, deadline=None)
def test_however_large_a_curve_its_prediction_is_bounded(model, seed, size):
    x = arrays(seed, 5)[0] + 0.5
    huge = np.where(x > 0, 1e9, -1e9)  # everywhere beyond the range, where the surface is continued as a constant
    np.testing.assert_array_equal(model.predict(huge), model.predict(huge * size))
    assert np.isfinite(model.predict(x * size)).all()
    reach = limit_of(model) + np.sqrt(model.predict_se(x * size) ** 2 @ model.eigenbasis_.weights)
    assert (away(model, x * size) <= np.maximum(reach, 2 * limit_of(model))).all()


def test_intervals_are_about_the_bounded_prediction_and_as_wide_as_before(model, curves, monkeypatch):
    low, high = model.predict_interval(curves)
    np.testing.assert_allclose((low + high) / 2, model.predict(curves), rtol=1e-9, atol=1e-9)
    monkeypatch.setattr(predictions, "FARTHEST", np.inf)
    free_low, free_high = model.predict_interval(curves)
    np.testing.assert_allclose(high - low, free_high - free_low, rtol=1e-9)


def test_intervals_cover_with_a_limit_that_binds(model, monkeypatch):
    monkeypatch.setattr(predictions, "FARTHEST", 1.0)
    x, y = arrays(2, 2000)
    assert away(model, x).max() > limit_of(model)
    assert coverage(y, *model.predict_interval(x)) > 0.9


def test_the_limit_is_kept_in_files_and_the_same_from_chunks(model, curves, tmp_path, monkeypatch):
    monkeypatch.setattr(predictions, "FARTHEST", 0.5)
    wanted = model.predict(curves)
    loaded = AdditiveFunctionOnFunction.load(model.save(tmp_path / "model.fdadp"))
    np.testing.assert_array_equal(loaded.predict(curves), wanted)
    x, y = arrays(0)
    chunks = [(x[:100], y[:100]), (x[100:], y[100:])]
    again = make().fit_chunks(chunks, s=GRID, t=GRID)
    np.testing.assert_array_equal(again.predict(curves), wanted)


@pytest.mark.parametrize("mechanism", ["moments", OutputPerturbation()], ids=["moments", "output"])
def test_other_private_mechanisms_are_limited_too(mechanism, curves, monkeypatch):
    model = make(mechanism).fit(*arrays(0))
    monkeypatch.setattr(predictions, "FARTHEST", np.inf)
    free = away(model, curves)
    monkeypatch.setattr(predictions, "FARTHEST", 0.3)
    far = free > limit_of(model)
    assert far.any()
    assert (away(model, curves)[far] < free[far]).all()


def test_a_fit_without_privacy_is_continued_linearly_without_limit(curves):
    model = AdditiveFunctionOnFunction().fit(*arrays(0))
    assert away(model, curves[-1:])[0] > 1e3 * away(model, curves[:1])[0]
