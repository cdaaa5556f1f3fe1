"""Responses observed at a few points: what is filled in is not taken for observed."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from fdadp import AdditiveFunctionOnFunction, Privacy, simulate_affr
from fdadp.errors import NotPrivateWarning
from fdadp.published import PublishedNoise


def sparse(y, points, rng):
    """Keep about so many points of each curve."""
    out = np.full_like(y, np.nan)
    for i, row in enumerate(y):
        seen = rng.choice(row.size, rng.integers(points - 2, points + 3), replace=False)
        out[i, seen] = row[seen]
    return out


def covered(scenario, points, seed, smooth_noise, n=200):
    """Coverage of complete new curves by 95 % intervals, and of their means by 1.96 standard errors."""
    train, new = (
        simulate_affr(scenario, m, seed + k, x_noise=0.0, smooth_noise=smooth_noise) for k, m in ((100, n), (900, 200))
    )
    rng = np.random.default_rng([seed, points])
    x, y = train.X.data_matrix[..., 0], sparse(train.Y.data_matrix[..., 0], points, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = AdditiveFunctionOnFunction(missing="fpca", n_basis_x=10).fit(x, y)
        low, high = model.predict_interval(new.X.data_matrix[..., 0])
        mean, se = (f(new.X.data_matrix[..., 0]) for f in (model.predict, model.predict_se))
    observed = new.Y.data_matrix[..., 0]
    inside = np.abs(mean - new.mean_function) <= 1.96 * se
    return ((low <= observed) & (observed <= high)).mean(), inside.mean()


@pytest.mark.statistics
@pytest.mark.parametrize("smooth_noise", [0.3, 1.0])
@pytest.mark.parametrize(("scenario", "points"), [(1, 5), (3, 10), (2, 10)])
def test_intervals_cover_complete_curves(scenario, points, smooth_noise):
    found = np.array([covered(scenario, points, seed, smooth_noise) for seed in range(2)])
    assert 0.92 <= found[:, 0].mean() <= 0.97
    assert 0.88 <= found[:, 1].mean() <= 0.998  # of two cohorts; of gaps that are filled .69 to .92


def test_standard_errors_grow_with_what_is_missing():
    data = simulate_affr(1, 150, 0)
    x, y = data.X.data_matrix[..., 0], data.Y.data_matrix[..., 0]
    rng = np.random.default_rng(0)
    settings = {"missing": "fpca", "n_components": 3, "smoothing": (10.0, 10.0)}
    every, half, few = (
        np.median(AdditiveFunctionOnFunction(**settings).fit(x, part).predict_se(x))
        for part in (y, sparse(y, 25, rng), sparse(y, 5, rng))
    )
    assert half == pytest.approx(every, rel=0.1)  # the errors are smooth: half of the points tell nearly all
    assert few > 1.08 * every


def test_nothing_changes_where_nothing_is_missing():
    data = simulate_affr(1, 60, 0)
    plain, ready = (AdditiveFunctionOnFunction(missing=m).fit(data.X, data.Y) for m in ("raise", "fpca"))
    np.testing.assert_array_equal(plain.coef_, ready.coef_)


def test_the_published_noise_is_drawn_once():
    data = simulate_affr(1, 60, 0)
    x, y = data.X.data_matrix[..., 0], sparse(data.Y.data_matrix[..., 0], 30, np.random.default_rng(0))
    published = {"privacy": Privacy(epsilon=1e12, random_state=0), "mechanism": PublishedNoise()}
    with pytest.warns(NotPrivateWarning) as caught:
        noisy = AdditiveFunctionOnFunction(missing="fpca", n_components=2, **published).fit(x, y)
    assert len([w for w in caught if w.category is NotPrivateWarning]) == 1
    plain = AdditiveFunctionOnFunction(missing="fpca", n_components=2).fit(x, y)
    np.testing.assert_allclose(noisy.coef_, plain.coef_, atol=1e-6 * np.abs(plain.coef_).max())
