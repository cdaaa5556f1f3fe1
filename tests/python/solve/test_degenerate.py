"""Designs that identify little, and units: no NaN, no impossible edf or r2, and mgcv's fitted values."""

from __future__ import annotations

import warnings
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fdadp import AdditiveFunctionOnFunction, simulate_affr
from fdadp.errors import FdadpWarning, IdentificationWarning, InputError
from fdadp.functional.quadrature import quadrature_weights
from fdadp.solve.smoothing.penalized_least_squares import PenalizedLeastSquares
from fdadp.terms._feature_rows import FeatureMap
from r_bridge import RWarning
from r_bridge.additive_beside_mgcv import AffrFits
from r_bridge.mgcv import gam_linear_functional
from r_bridge.mgcv_tensor_products import TensorProduct, te_margin

KINDS = ("level", "shape", "treatment")


def curves(kind, seed, n=60, points=31):
    """Curves X that are all multiples of one shape, and Y that follows them."""
    rng = np.random.default_rng(seed)
    s, t = np.linspace(0, 1, points), np.linspace(0, 1, 25)
    factor = rng.integers(0, 2, n).astype(float) if kind == "treatment" else rng.normal(size=n)
    shape = np.sin(2 * np.pi * s) + 0.5 * s + 0.3 if kind == "shape" else np.ones(points)
    smooth = rng.normal(size=(n, 3)) @ np.array([t**0, t, t**2])
    y = np.outer(factor, np.cos(np.pi * t)) + 0.5 * smooth + 0.2 * rng.normal(size=(n, t.size))
    return np.outer(factor, shape), y


def fit(x, y, **settings_):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FdadpWarning)
        return AdditiveFunctionOnFunction(progress=False, **settings_).fit(x, y)


def check(model, x, y):
    """What holds of every fit."""
    low, high = model.predict_interval(x)
    for values in (model.predict(x), model.predict_se(x), low, high, model.criterion_, model.coef_):
        assert np.isfinite(values).all()
    assert 0 <= model.r2_ <= 1
    over_x, over_s = model.coef_.shape[1:]
    p = (over_x - 1) * over_s + 1
    assert (model.edf_ >= 1).all()
    assert (model.edf_ <= p).all()
    assert np.abs(model.predict(x) - y.mean(axis=0)).max() <= 2 * np.abs(y - y.mean(axis=0)).max()


@pytest.mark.parametrize("smoothing", ["reml", "gcv"])
@pytest.mark.parametrize("kind", KINDS)
def test_one_shape_times_a_number(kind, smoothing):
    for seed in range(8):
        x, y = curves(kind, seed)
        model = fit(x, y, smoothing=smoothing)
        check(model, x, y)
        # One number a curve has a few degrees of freedom; a 0/1 treatment exactly one beside the intercept.
        assert (model.edf_ <= 10).all()
        if kind == "treatment":
            np.testing.assert_allclose(model.edf_, 2, atol=1e-3)
            means = np.stack([y[x[:, 0] == v].mean(axis=0) for v in (0, 1)])
            at = model.predict(np.repeat([[0.0], [1.0]], x.shape[1], axis=1))
            kept = model.eigenfunctions_ * model.eigenbasis_.weights
            np.testing.assert_allclose(at @ kept.T, means @ kept.T, atol=1e-4 * np.ptp(y))


@pytest.mark.long
@pytest.mark.parametrize("smoothing", ["reml", "gcv"])
@pytest.mark.parametrize("kind", KINDS)
def test_one_shape_times_a_number_in_sixty_sets(kind, smoothing):
    for seed in range(60):
        x, y = curves(kind, seed)
        check(fit(x, y, smoothing=smoothing), x, y)


def test_a_direction_that_is_left_out_is_named():
    with pytest.warns(IdentificationWarning, match=r"do not identify ∫ s X\(s\) ds"):
        AdditiveFunctionOnFunction().fit(*curves("level", 0))


@pytest.mark.parametrize("smoothing", ["reml", "gcv", (1.0, 1.0), (1e-30, 1e-30), (1e30, 1e30)])
def test_the_same_curve_every_time_is_refused(smoothing):
    _, y = curves("level", 0)
    x = np.sin(np.linspace(0, 6, 31))
    for same in (np.tile(x, (60, 1)), np.tile(x * 1e-9, (60, 1)), np.tile(1e6 + x, (60, 1))):
        with pytest.raises(InputError, match="X must vary between rows, got the same in all"):
            AdditiveFunctionOnFunction(smoothing=smoothing).fit(same, y)


@pytest.mark.mgcv
@pytest.mark.parametrize("method", ["REML", "GCV.Cp"])
@pytest.mark.parametrize("kind", ["level", "shape"])
def test_fitted_values_are_mgcvs(kind, method):
    """mgcv drops the same directions. (With a 0/1 treatment its REML ends at sp = 1e-32 and fits something else.)"""
    for seed in (0, 1):
        x, y = curves(kind, seed, points=21)
        s = np.linspace(0, 1, 21)
        theirs = gam_linear_functional(x, y[:, 10], s, method=method)
        ours = AffrFits(x, s, y[:, 10])
        given_ = ours.problem
        problem = PenalizedLeastSquares(given_.gram, given_.cross, given_.total, given_.n, given_.penalties)
        assert np.flatnonzero(~problem.identified).size == 1
        at, (own,) = problem.solve(theirs.smoothing_parameters), problem.optimize(method[:4].lower().rstrip(".c"))
        size = np.ptp(theirs.fitted)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IdentificationWarning)
            fitted = ours.predict(ours.fit(theirs.smoothing_parameters), x)[0]
        np.testing.assert_allclose(fitted, theirs.fitted, atol=1e-5 * size)
        np.testing.assert_allclose(at.edf_total, theirs.edf_total, rtol=1e-5)
        name = "reml" if method == "REML" else "gcv"
        assert getattr(own, name) <= getattr(at, name) * (1 + 1e-6) + 1e-6


@pytest.mark.mgcv
def test_a_treatment_has_the_fitted_values_of_mgcvs_gcv():
    x, y = curves("treatment", 1, points=21)
    s = np.linspace(0, 1, 21)
    with pytest.warns(RWarning, match="larger than number of unique covariates"):
        theirs = gam_linear_functional(x, y[:, 10], s, method="GCV.Cp")
    ours = AffrFits(x, s, y[:, 10])
    for criterion in ("reml", "gcv"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IdentificationWarning)
            fitted = ours.predict(ours.fit(criterion), x)[0]
        np.testing.assert_allclose(fitted, theirs.fitted, atol=1e-6 * np.ptp(theirs.fitted))


# --- effective degrees of freedom, as they come ---


def problem_of(kind, seed):
    """Penalised least squares of three responses on the features of curves that are multiples of one shape."""
    x, y = curves(kind, seed)
    s = np.linspace(0, 1, x.shape[1])
    x_margin, s_margin = (
        te_margin(x.min(), x.max(), 7),
        te_margin(0, 1, 7),
    )
    features = FeatureMap(x_margin.basis, s_margin.basis, s, quadrature_weights(s))
    smooth = TensorProduct(x_margin, s_margin, features.row_norm(x_margin.to_basis, s_margin.to_basis)(x))
    z, y = features.rows(x) @ smooth.raw_rotation, y[:, [0, 10, 20]]
    z, y = z - z.mean(axis=0), y - y.mean(axis=0)
    return PenalizedLeastSquares(z.T @ z, z.T @ y, (y**2).sum(axis=0), len(z), smooth.penalties)


@pytest.mark.parametrize("kind", KINDS)
def test_edf_lie_between_the_unpenalised_coordinates_and_all_of_them(kind):
    """``0 <= diag(A⁻¹G) <= 1``, whatever the penalties, and nothing is cut off to make it so."""
    for seed in range(4):
        problem = problem_of(kind, seed)
        free = (problem.penalties == 0).all(axis=0) & problem.identified
        for log_sp in [
            *product(np.linspace(-70, 60, 14), repeat=2),
            *np.log([f.smoothing_parameters for f in problem.optimize()]),
        ]:
            edf = problem.solve(np.exp(log_sp)).edf
            assert edf.min() >= -1e-6
            assert edf.max() <= 1 + 1e-6
            assert free.sum() - 1e-6 <= edf.sum() <= problem.identified.sum() + 1e-6
            assert (edf[~problem.identified] == 0).all()


@pytest.mark.parametrize("log_sp", [(0, 0), (-12, 3), (-40, -40), (-69, -69), (-60, -50), (40, -60), (69, 69)])
def test_edf_and_fit_of_whole_numbers_are_exact(log_sp):
    """Of a design of rank 3 with six coefficients, against rational arithmetic at the smoothing parameters as given."""
    rng = np.random.default_rng(1)
    z = rng.integers(-4, 5, (30, 3)) @ rng.integers(-2, 3, (3, 6))
    z = np.vstack((z, -z))
    y = rng.integers(-9, 10, 30)
    y = np.concatenate((y, -y))
    penalties = np.array([[0, 1, 2, 0, 1, 3], [0, 0, 1, 2, 2, 1]])
    sp = np.exp(np.array(log_sp, dtype=float))
    ours = PenalizedLeastSquares(z.T @ z, z.T @ y, y @ y, 60, penalties).solve(sp)
    weight = [sum(Fraction(a) * int(d) for a, d in zip(sp.tolist(), column, strict=True)) for column in penalties.T]
    gram = [[Fraction(int(v)) for v in row] for row in z.T @ z]
    a = [[v + (weight[i] if i == j else 0) for j, v in enumerate(row)] for i, row in enumerate(gram)]
    right = [[*row, Fraction(int(c))] for row, c in zip(gram, z.T @ y, strict=True)]
    solved = solve_exactly(a, right)
    edf, beta = [float(solved[i][i]) for i in range(6)], np.array([float(row[-1]) for row in solved])
    np.testing.assert_allclose(ours.edf.sum(), sum(edf), atol=1e-6)
    np.testing.assert_allclose(ours.edf, edf, atol=1e-6)
    np.testing.assert_allclose(z @ ours.coefficients, z @ beta, atol=1e-6 * np.abs(y).max())


def solve_exactly(a, b):
    """Gauss and Jordan's elimination, of lists of fractions."""
    rows = [[*left, *right] for left, right in zip(a, b, strict=True)]
    for i in range(len(rows)):
        pivot = next(r for r in range(i, len(rows)) if rows[r][i])
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [v / rows[i][i] for v in rows[i]]
        for r in range(len(rows)):
            if r != i and rows[r][i]:
                rows[r] = [v - rows[r][i] * w for v, w in zip(rows[r], rows[i], strict=True)]
    return [row[len(a) :] for row in rows]


# --- units ---


@pytest.fixture(scope="module")
def sim():
    data = simulate_affr(scenario=2, n=80, seed=3, n_points=31)
    return data.X.data_matrix[..., 0], data.Y.data_matrix[..., 0]


@pytest.fixture(scope="module")
def in_plain_units(sim):
    grid = np.linspace(0, 1, 31)
    models = {}
    for smoothing in ("reml", "gcv"):
        model = AdditiveFunctionOnFunction(smoothing=smoothing).fit(*sim, s=grid, t=grid)
        models[smoothing] = model, model.predict(sim[0]), model.predict_se(sim[0])
    return models


UNITS = st.integers(-9, 9).map(lambda e: 10.0**e)


@settings(deadline=None, max_examples=12)
@given(x=UNITS, y=UNITS, s=UNITS, t=UNITS, sign=st.sampled_from([-1, 1]), smoothing=st.sampled_from(["reml", "gcv"]))
def test_units_of_x_y_and_time_do_not_matter(sim, in_plain_units, x, y, s, t, sign, smoothing):
    plain, predicted, se = in_plain_units[smoothing]
    grid = np.linspace(0, 1, 31)
    model = AdditiveFunctionOnFunction(smoothing=smoothing).fit(sim[0] * x, sim[1] * y * sign, s=grid * s, t=grid * t)
    size = np.ptp(predicted)
    np.testing.assert_allclose(model.predict(sim[0] * x) / (y * sign), predicted, atol=1e-6 * size)
    np.testing.assert_allclose(model.predict_se(sim[0] * x) / y, se, rtol=1e-5)
    np.testing.assert_allclose(model.edf_, plain.edf_, rtol=1e-5)
    assert model.r2_ == pytest.approx(plain.r2_, abs=1e-7)


# --- anything ---


@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(5, 40),
    rank=st.integers(1, 3),
    levels=st.integers(0, 3),
    offset=st.sampled_from([0.0, 1.0, 1e4]),
    smoothing=st.sampled_from(["reml", "gcv", (1e-12, 1e-12), (1e12, 1e-12)]),
)
def test_random_designs_of_low_rank(seed, n, rank, levels, offset, smoothing):
    rng = np.random.default_rng(seed)
    s = np.linspace(0, 1, 21)
    factors = rng.normal(size=(n, rank))
    if levels:  # curves that repeat
        factors = np.round(factors * levels) / levels
    x = factors @ np.array([s**k for k in range(rank)]) + offset
    y = np.outer(factors[:, 0] ** 2, np.sin(3 * s)) + 0.3 * rng.normal(size=(n, 1)) + 0.1 * rng.normal(size=(n, 21))
    if np.ptp(factors, axis=0).max() == 0:
        return
    check(fit(x, y, smoothing=smoothing), x, y)
