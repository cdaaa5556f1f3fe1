"""``check()`` tells bases that are too small from adequate ones."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from fdadp import AdditiveFunctionOnFunction, Privacy, simulate_affr
from fdadp.errors import InputError
from fdadp.published import PublishedNoise


def checked(scenario, n, seed, **settings):
    data = simulate_affr(scenario, n, seed)
    model = AdditiveFunctionOnFunction(**settings).fit(data.X, data.Y)
    found = model.check(data.X, data.Y)
    return found, {size.name: size for size in found.sizes}


def test_too_small_is_flagged_and_the_remedy_named():
    found, sizes = checked(2, 600, 0, n_basis_x=7, n_basis_s=7)
    assert not found.adequate
    assert not sizes["n_basis_x"].adequate
    assert sizes["n_basis_x"].lost > 0.02  # this basis explains some 95 % of what can be
    assert sizes["n_basis_s"].adequate
    text = str(found)
    for part in ("5-fold cross-validation over 600 curves", "TOO SMALL", "Try n_basis_x=11"):
        assert part in text
    assert "<table" in found._repr_html_()


def test_adequate_is_not():
    found, sizes = checked(2, 600, 0, n_basis_x=12, n_basis_s=7, n_components=4)
    assert found.adequate
    assert [s.size for s in found.sizes][:2] == [12, 7]
    assert "TOO SMALL" not in str(found)
    assert "Try" not in str(found)
    assert all(abs(s.lost) < 0.01 for s in sizes.values())


def test_too_few_components_are_flagged():
    found, sizes = checked(1, 400, 0, n_components=1)
    assert not sizes["n_components"].adequate
    assert sizes["n_components"].lost > 0.1
    assert "n_components=" in str(found)


def test_false_alarms_are_rare():
    verdicts = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        grid = np.linspace(0, 1, 21)
        x = rng.normal(size=(100, 3)) @ np.array([grid**0, grid, np.sin(np.pi * grid)])
        y = np.outer(x @ grid / 21, 1 + grid) + rng.normal(size=(100, 1)) + 0.2 * rng.normal(size=(100, 21))
        model = AdditiveFunctionOnFunction(n_basis_x=5, n_basis_s=5, n_components=2).fit(x, y)
        verdicts += [size.adequate for size in model.check(x, y).sizes]
    assert np.mean(verdicts) > 0.85


def test_gaps_grids_and_given_smoothing_are_taken_as_in_the_fit():
    data = simulate_affr(1, 60, 0, n_points=21)
    x, y, grid = data.X.data_matrix[..., 0], data.Y.data_matrix[..., 0].copy(), np.linspace(0, 24, 21)
    y[3, 4:6] = np.nan
    model = AdditiveFunctionOnFunction(missing="smooth", smoothing=(1.0, 1.0), n_components=2)
    sizes = model.fit(x, y, s=grid, t=grid).check(x, y).sizes
    assert np.isfinite([size.z for size in sizes]).all()


def test_what_cannot_be_checked_is_refused():
    data = simulate_affr(1, 60, 0)
    model = AdditiveFunctionOnFunction().fit(data.X, data.Y)
    with pytest.raises(InputError, match="at least 25, got 20 and 20"):
        model.check(data.X[:20], data.Y[:20])
    with pytest.raises(InputError, match="got 60 and 59"):
        model.check(data.X, data.Y[:59])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        noisy = AdditiveFunctionOnFunction(n_components=2, privacy=Privacy(1.0), mechanism=PublishedNoise()).fit(
            data.X, data.Y
        )
    with pytest.raises(InputError, match="privacy must be None to check sizes"):
        noisy.check(data.X, data.Y)
