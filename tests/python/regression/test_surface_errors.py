"""Standard errors of surfaces: beside fits to new errors of the same curves, and beside the true surface."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp import AdditiveFunctionOnFunction, Privacy, simulate_affr
from fdadp.errors import InputError

BOUNDS = {"X": (-4.5, 4.5), "Y": (-8, 8)}


def held(model, data):
    """Share of points of the true surface, where nine tenths of the values are, within 1.96 standard errors.

    Both surfaces less their means over the curves at each (s, t): that of a private fit is centred over its prior's.
    """
    grid, values = data.X.grid_points[0], data.X.data_matrix[..., 0]
    s, t = grid[5:-5:10], model.t_[5:-5:10]
    x, fine = np.linspace(*np.quantile(values, [0.05, 0.95]), 9), np.linspace(values.min(), values.max(), 60)
    over_fine = model.surface(fine, s, t) - data.surface(fine, s, t)
    error = model.surface(x, s, t) - data.surface(x, s, t)
    for a, point in enumerate(s):
        column = values[:, np.abs(grid - point).argmin()]
        error[:, a] -= [np.interp(column, fine, over_fine[:, a, b]).mean() for b in range(t.size)]
    return float((np.abs(error) <= 1.96 * model.surface_se(x, s, t)).mean())


def test_fits_to_new_errors_vary_as_said():
    """At fixed smoothing, next to none, about means that the bases hold: what they do not would count as errors."""
    rng = np.random.default_rng(0)
    data = simulate_affr(scenario=2, n=150, seed=3)
    x, s, t = np.array([-1.5, 0.0, 1.0]), np.array([0.2, 0.5, 0.8]), np.array([0.1, 0.6])
    settings = {"n_basis_x": 6, "n_basis_s": 5, "n_components": 0.99, "smoothing": np.array([1e-6, 1e-6])}
    first = AdditiveFunctionOnFunction(**settings).fit(data.X, data.Y)
    settings["n_components"] = first.eigenbasis_
    mean = np.asarray(first.predict(data.X).data_matrix[..., 0])
    found, said = [], []
    for _ in range(40):
        y = mean + rng.normal(size=mean.shape)
        model = AdditiveFunctionOnFunction(**settings).fit(data.X, y, t=data.Y.grid_points[0])
        found.append(model.surface(x, s, t))
        said.append(model.surface_se(x, s, t) ** 2)
    ratio = np.std(found, axis=0) / np.sqrt(np.mean(said, axis=0))
    assert 0.9 < ratio.mean() < 1.05
    assert ratio.max() < 1.35  # forty fits: a standard deviation is known to 11 %


@pytest.mark.statistics
@pytest.mark.parametrize("scenario", [1, 2, 3])
def test_surfaces_are_held(scenario):
    shares = []
    for seed in range(2):
        data = simulate_affr(scenario=scenario, n=1000, seed=seed)
        shares.append(held(AdditiveFunctionOnFunction().fit(data.X, data.Y), data))
    assert np.mean(shares) > 0.9


@pytest.mark.statistics
def test_private_surfaces_are_held_and_know_of_the_noise():
    data = simulate_affr(scenario=3, n=3000, seed=1)
    shares, sizes = [], []
    for epsilon in (0.3, 3.0):
        privacy = Privacy(epsilon=epsilon, delta=1e-6, n=3000, random_state=2)
        model = AdditiveFunctionOnFunction(privacy=privacy, bounds=BOUNDS).fit(data.X, data.Y)
        shares.append(held(model, data))
        sizes.append(model.surface_se([0.0], [0.5], [0.3, 0.7]).mean())
    assert min(shares) > 0.9
    assert sizes[0] > 1.5 * sizes[1]


def test_order_of_points_and_domains(tmp_path):
    data = simulate_affr(scenario=1, n=60, seed=0)
    model = AdditiveFunctionOnFunction().fit(data.X, data.Y)
    x, s, t = [-1.0, 0.5], [0.1, 0.6, 0.9], [0.3, 0.7]
    se = model.surface_se(x, s, t)
    assert se.shape == model.surface(x, s, t).shape == (2, 3, 2)
    assert (se > 0).all()
    np.testing.assert_allclose(model.surface_se(x[::-1], s[::-1], t[::-1]), se[::-1, ::-1, ::-1], rtol=1e-9)
    np.testing.assert_array_equal(AdditiveFunctionOnFunction.load(model.save(tmp_path / "m")).surface_se(x, s, t), se)
    for points in ((x, [1.2], t), (x, s, [-0.1])):
        with pytest.raises(InputError, match="must lie within"):
            model.surface_se(*points)
