"""``x_transform="quantile"``: ranks as in refund, skewed X, curves beyond the range, files, hints."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import rankdata

from fdadp import AdditiveFunctionOnFunction, Privacy, simulate_affr
from fdadp.errors import ExtrapolationWarning, InputError
from fdadp.functional.tables.curve_sample import Curves
from fdadp.published import PublishedNoise
from fdadp.terms.additive_surface import QuantileTransform

GRID = np.linspace(0, 1, 31)


def lognormal(n, seed, sigma=1.5):
    """Skewed X = exp(Z), and Y that is a smooth function of Z; the noiseless mean of Y too."""
    rng = np.random.default_rng(seed)
    z = sigma * rng.normal(size=(n, 3)) @ np.array([GRID**0, np.sin(2 * np.pi * GRID) / 2, np.cos(np.pi * GRID) / 2])
    mean = np.outer((z * (1 + GRID)).mean(axis=1), np.ones(31)) + np.outer(np.sin(z).mean(axis=1), np.cos(np.pi * GRID))
    y = mean + 0.4 * rng.normal(size=(n, 1)) + 0.2 * rng.normal(size=(n, 31))
    return np.exp(z), y, mean


def explained(x, y, new, mean, **settings):
    model = AdditiveFunctionOnFunction(n_components=0.99, **settings).fit(x, y)
    predicted = model.predict(new)
    return 1 - ((predicted - mean) ** 2).sum() / ((mean - mean.mean(axis=0)) ** 2).sum()


@pytest.mark.filterwarnings("ignore::fdadp.errors.ExtrapolationWarning")
def test_skewed_x():
    shares = {"plain": [], "quantile": [], "log": []}
    for seed in range(3):
        x, y, _ = lognormal(300, seed)
        new, _, mean = lognormal(300, seed + 50)
        shares["plain"].append(explained(x, y, new, mean))
        shares["quantile"].append(explained(x, y, new, mean, x_transform="quantile"))
        shares["log"].append(explained(np.log(x), y, np.log(new), mean))
    means = {name: np.mean(values) for name, values in shares.items()}
    assert means["plain"] < 0.7
    assert min(shares["quantile"]) > 0.9
    assert means["quantile"] > means["log"] - 0.05


@pytest.mark.parametrize("rounded", [False, True])
def test_ranks_are_refunds(rounded):
    """(rank - 1)/(n - 1) in each column, ties at their mean rank: af(Qtransform = TRUE)."""
    x = np.random.default_rng(0).normal(size=(40, 31))
    x = np.round(x, 1) if rounded else x
    curves = Curves(x, GRID)
    expected = (rankdata(x, axis=0) - 1) / 39
    np.testing.assert_allclose(QuantileTransform.of(curves)(curves), expected, atol=1e-12)


def test_many_curves_keep_a_table_of_a_fixed_size():
    x = np.random.default_rng(0).lognormal(size=(5000, 31))
    transform = QuantileTransform.of(Curves(x, GRID))
    assert transform.table.shape == (31, 257)
    np.testing.assert_allclose(transform(Curves(x, GRID)), (rankdata(x, axis=0) - 1) / 4999, atol=5e-3)


def test_beyond_the_range_the_surface_is_constant():
    x, y, _ = lognormal(200, 0)
    model = AdditiveFunctionOnFunction(x_transform="quantile").fit(x, y)
    assert model.x_range_ == (x.min(), x.max())
    far, farther = x[:2].copy(), x[:2].copy()
    far[0, 3:5], farther[0, 3:5] = 1e4, 1e9
    with pytest.warns(ExtrapolationWarning, match="2 of 62 points of X lie outside the training range at their s"):
        one = model.predict(far)
    with pytest.warns(ExtrapolationWarning):
        np.testing.assert_array_equal(model.predict(farther), one)


def test_surface_integrates_to_the_prediction():
    x, y, _ = lognormal(200, 1)
    model = AdditiveFunctionOnFunction(x_transform="quantile").fit(x, y)
    weights = np.full(31, 1 / 30)
    weights[[0, -1]] /= 2
    integral = np.stack(
        [
            sum(w * model.surface(curve[j : j + 1], GRID[j : j + 1], GRID)[0, 0] for j, w in enumerate(weights))
            for curve in x[:5]
        ]
    )
    predicted = model.predict(x[:5]) - model.mean_
    np.testing.assert_allclose(integral - integral[0], predicted - predicted[0], atol=1e-8 * np.abs(predicted).max())
    # In any order of s, and with several x at once.
    both = model.surface([0.5, 2.0], GRID[[20, 4]], GRID[:3])
    np.testing.assert_allclose(both[:, 1], model.surface([0.5, 2.0], GRID[[4]], GRID[:3])[:, 0])


@pytest.mark.filterwarnings("ignore::fdadp.errors.ExtrapolationWarning")
def test_new_grids_files_and_refits(tmp_path):
    x, y, _ = lognormal(150, 2)
    model = AdditiveFunctionOnFunction(x_transform="quantile").fit(x, y)
    fine = np.linspace(0, 1, 91)
    finer = np.stack([np.interp(fine, GRID, row) for row in x[:5]])
    close = np.abs(model.predict(finer, s=fine) - model.predict(x[:5])).max()
    assert close < 0.05 * np.ptp(model.predict(x))
    again = AdditiveFunctionOnFunction.load(model.save(tmp_path / "model.npz"))
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    np.testing.assert_array_equal(again.surface([1.0], [0.3], [0.2]), model.surface([1.0], [0.3], [0.2]))
    # The same object fitted without the transform forgets it.
    plain = AdditiveFunctionOnFunction().fit(np.log(x), y)
    other = model.set_params(x_transform=None).fit(np.log(x), y)
    np.testing.assert_array_equal(other.predict(np.log(x)), plain.predict(np.log(x)))


def test_monotone_changes_of_x_change_nothing():
    """What ranks are for."""
    x, y, _ = lognormal(150, 3)
    one, other = (AdditiveFunctionOnFunction(x_transform="quantile").fit(v, y).predict(v) for v in (x, np.log(x)))
    np.testing.assert_allclose(one, other, atol=1e-8)


def test_the_summary_hints_where_cells_are_empty(tmp_path):
    x, y, _ = lognormal(200, 0)
    hint = "x_transform='quantile' may fit better"
    crowded = AdditiveFunctionOnFunction().fit(x, y)
    assert hint in str(crowded.summary())
    assert "do not release" in str(crowded.summary())
    assert str(AdditiveFunctionOnFunction.load(crowded.save(tmp_path / "m.npz")).summary()) == str(crowded.summary())
    assert hint not in str(AdditiveFunctionOnFunction(x_transform="quantile").fit(x, y).summary())
    assert hint not in str(AdditiveFunctionOnFunction().fit(np.log(x), y).summary())
    for scenario in (1, 2, 3):
        data = simulate_affr(scenario, 300, 0)
        assert hint not in str(AdditiveFunctionOnFunction().fit(data.X, data.Y).summary())


def test_where_it_is_refused():
    x, y, _ = lognormal(60, 0)
    with pytest.raises(InputError, match="x_transform must be None or 'quantile', got 'log'"):
        AdditiveFunctionOnFunction(x_transform="log").fit(x, y)
    with pytest.raises(InputError, match="x_transform must be None when fitting from chunks"):
        AdditiveFunctionOnFunction(x_transform="quantile").fit_chunks([(x, y)])

    class Unread:
        """Curves that nobody may look at."""

        shape, ndim = (60, 31), 2

        def __array__(self, *_, **__):
            raise AssertionError("read before the settings were checked")

    for mechanism in ("dp-aff", "moments", PublishedNoise()):
        privacy = Privacy(epsilon=1.0, delta=1e-6, n=60)
        private = {"privacy": privacy, "bounds": {"X": (0, 50), "Y": (-9, 9)}, "mechanism": mechanism}
        with pytest.raises(InputError, match="x_transform must be None in a private fit, got 'quantile'"):
            AdditiveFunctionOnFunction(x_transform="quantile", **private).fit(Unread(), Unread())
