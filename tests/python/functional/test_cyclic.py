"""Periodic s: mgcv's cyclic margin, ends that meet, and a day count that may start anywhere."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp import AdditiveFunctionOnFunction, Privacy
from fdadp.errors import InputError
from fdadp.functional.quadrature import quadrature_weights
from fdadp.functional.splines.diagonal_margins import SmoothMargin
from fdadp.solve.form.training_sums import Moments
from fdadp.solve.smoothing.penalized_least_squares import PenalizedLeastSquares
from fdadp.terms._feature_rows import FeatureMap
from r_bridge._rpy2 import call
from r_bridge.mgcv import gam_linear_functional
from r_bridge.mgcv_tensor_products import TensorProduct, te_margin

DAYS = np.arange(1.0, 61.0)
SHIFT = 17


def seasonal(seed=0, n=120):
    """Curves over a "year" of 60 days whose end meets its beginning, and a response to them."""
    rng = np.random.default_rng(seed)
    angle, t = 2 * np.pi * DAYS / 60, np.linspace(0, 1, 21)
    waves = np.array([angle**0, np.sin(angle), np.cos(angle), np.sin(2 * angle)])
    x = (rng.normal(size=(n, 4)) * [1, 0.8, 0.6, 0.4]) @ waves
    score = (np.sin(x) * (1 + np.cos(angle + 0.5))).mean(axis=1)
    y = np.outer(score, 1 + t) + 0.2 * rng.normal(size=(n, 1)) + 0.1 * rng.normal(size=(n, 21))
    return x, y


@pytest.mark.mgcv
@pytest.mark.parametrize("k", [4, 7, 12])
def test_margin_is_mgcvs_cc(k):
    margin = SmoothMargin.periodic(0.5, 365.0, k)
    at = np.linspace(0.5, 365.5, 200)
    theirs = call("cyclic_margin", "mgcv", x=at, knots=np.linspace(0.5, 365.5, k + 1))
    np.testing.assert_allclose(margin.basis.design(at) @ margin.to_basis, theirs["X"], atol=1e-10)
    penalty = theirs["S"] / np.linalg.eigvalsh(theirs["S"])[-1]
    np.testing.assert_allclose(margin.penalty, penalty, atol=1e-10)


@pytest.mark.mgcv
@pytest.mark.parametrize("method", ["REML", "GCV.Cp"])
def test_fit_is_mgcvs(method):
    x, y = seasonal()
    s, k = np.linspace(0, 1, 60), (6, 5)
    theirs = gam_linear_functional(x, y[:, 4], s, k=k, method=method, period=1.0)
    x_margin, s_margin = (
        te_margin(x.min(), x.max(), k[0]),
        SmoothMargin.periodic(0.0, 1.0, k[1]),
    )
    features = FeatureMap(x_margin.basis, s_margin.basis, s, quadrature_weights(s))
    norm = features.row_norm(x_margin.to_basis, s_margin.to_basis)(x)
    smooth = TensorProduct(x_margin, s_margin, norm)
    z = features.rows(x) @ smooth.raw_rotation
    m = Moments.of(np.column_stack((z, y[:, 4])))
    problem = PenalizedLeastSquares(m.scatter[:-1, :-1], m.scatter[:-1, -1], m.scatter[-1, -1], m.n, smooth.penalties)
    np.testing.assert_allclose(smooth.penalty_scales, theirs.penalty_scales, rtol=1e-10)
    at, (own,) = problem.solve(theirs.smoothing_parameters), problem.optimize("reml" if method == "REML" else "gcv")
    for solution, digits in ((at, 1e-8), (own, 1e-3)):
        fitted = m.mean[-1] + (z - m.mean[:-1]) @ solution.coefficients
        np.testing.assert_allclose(fitted, theirs.fitted, atol=digits * np.ptp(theirs.fitted))
    assert at.edf_total == pytest.approx(theirs.edf_total, rel=1e-7)
    assert at.noise_variance == pytest.approx(theirs.noise_variance, rel=1e-7)


def test_ends_meet():
    x, y = seasonal()
    model = AdditiveFunctionOnFunction(period_s=60.0).fit(x, y, s=DAYS)
    design = model.fitted_.surface.term.over_s.basis.design
    for order in range(3):
        ends = design([1 + 1e-9, 61 - 1e-9], order) @ model.fitted_.surface.term.over_s.to_basis @ model.coef_[0].T
        np.testing.assert_allclose(ends[0], ends[1], atol=1e-6 * np.abs(ends).max())
    free = AdditiveFunctionOnFunction().fit(x, y, s=DAYS)
    levels = np.linspace(-1.5, 1.5, 9)
    for fitted, allowed in ((model, 0.1), (free, np.inf)):  # day 60 is next to day 1
        first, last = (fitted.surface(levels, [day], [0.5])[:, 0, 0] for day in (1.0, 60.0))
        assert np.abs(first - last).max() <= allowed * np.ptp(first)


@pytest.mark.filterwarnings("ignore::fdadp.errors.ExtrapolationWarning")
def test_the_year_may_begin_anywhere():
    """Where the knots fall changes as little as it should; a basis that is not periodic changes more."""
    x, y = seasonal()
    turned = np.roll(x, -SHIFT, axis=1)
    changes = []
    for settings in ({"period_s": 60.0}, {}):
        here, there = (AdditiveFunctionOnFunction(n_components=1, **settings).fit(v, y, s=DAYS) for v in (x, turned))
        new, _ = seasonal(seed=1)
        difference = here.predict(new, s=DAYS) - there.predict(np.roll(new, -SHIFT, axis=1), s=DAYS)
        changes.append(np.sqrt((difference**2).mean()) / here.predict(new, s=DAYS).std())
    assert changes[0] < 0.02
    assert changes[0] < changes[1]


def test_shifting_by_whole_knots_changes_nothing():
    x, y = seasonal()
    here, there = (
        AdditiveFunctionOnFunction(n_basis_s=6, period_s=60.0).fit(v, y, s=DAYS) for v in (x, np.roll(x, -20, axis=1))
    )
    size = np.ptp(here.predict(x, s=DAYS))
    np.testing.assert_allclose(
        here.predict(x, s=DAYS), there.predict(np.roll(x, -20, axis=1), s=DAYS), atol=1e-6 * size
    )


def test_file_and_bad_periods(tmp_path):
    x, y = seasonal()
    model = AdditiveFunctionOnFunction(period_s=60.0, n_basis_s=9).fit(x, y, s=DAYS)
    assert model.coef_.shape[2] == 9
    again = AdditiveFunctionOnFunction.load(model.save(tmp_path / "model.npz"))
    np.testing.assert_array_equal(again.predict(x, s=DAYS), model.predict(x, s=DAYS))
    with pytest.raises(InputError, match="period_s must be at least the length of the grid of X, 59, got 50"):
        AdditiveFunctionOnFunction(period_s=50.0).fit(x, y, s=DAYS)
    for bad in (0, -1.0, "year", float("nan")):
        with pytest.raises(InputError, match="period_s must be a number above 0 or None"):
            AdditiveFunctionOnFunction(period_s=bad).fit(x, y, s=DAYS)
    private = {"privacy": Privacy(epsilon=1.0, delta=1e-6, n=120), "bounds": {"X": (-5, 5), "Y": (-5, 5)}}
    with pytest.raises(InputError, match="period_s must be None in a private fit"):
        AdditiveFunctionOnFunction(period_s=60.0, **private).fit(x, y, s=DAYS)
