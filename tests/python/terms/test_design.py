"""The feature kernel against its definition, and the row-local property that the private fits rely on."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fdadp.functional.quadrature import quadrature_weights
from fdadp.functional.splines.bsplines import BSplines
from fdadp.terms._feature_rows import FeatureMap


def feature_map(degree_x=3, degree_s=3, n_x=7, n_s=6, grid=None):
    grid = np.linspace(0, 1, 23) if grid is None else grid
    x_basis, s_basis = BSplines.uniform(-2, 2, n_x, degree=degree_x), BSplines.uniform(0, 1, n_s, degree=degree_s)
    return FeatureMap(x_basis, s_basis, grid, quadrature_weights(grid))


@settings(deadline=None)
@given(seed=st.integers(0, 2**32 - 1), degree_x=st.integers(1, 4), degree_s=st.integers(1, 4), scale=st.floats(0.1, 10))
def test_rows_are_the_integrals(seed, degree_x, degree_s, scale):
    rng = np.random.default_rng(seed)
    grid = np.sort(np.concatenate(([0.0, 1.0], rng.uniform(size=9))))
    if (np.diff(grid) <= 0).any():
        return
    features = feature_map(degree_x, degree_s, grid=grid)
    x = scale * rng.normal(size=(5, grid.size))  # beyond the range too
    bx = features.x_basis.design(x.ravel()).reshape(5, grid.size, -1)
    expected = np.einsum("ijl,jm,j->ilm", bx, features.s_basis.design(grid), features.weights).reshape(5, -1)
    np.testing.assert_allclose(features.rows(x), expected, atol=1e-11 * max(scale, 1))
    rows, basis_sums = np.ones((5, features.n_features + 2)), np.zeros((grid.size, features.x_basis.n_basis))
    features.add_to(x, rows, basis_sums)
    np.testing.assert_allclose(rows[:, :-2] - 1, expected, atol=1e-11 * max(scale, 1))
    assert (rows[:, -2:] == 1).all()
    np.testing.assert_allclose(basis_sums, bx.sum(axis=0), atol=1e-10 * max(scale, 1))


def test_a_row_depends_on_its_own_curve_alone_bit_for_bit():
    rng = np.random.default_rng(1)
    features = feature_map()
    x = rng.normal(size=(300, 23))
    rows = features.rows(x)
    order = rng.permutation(300)
    assert np.array_equal(features.rows(x[order]), rows[order])
    assert np.array_equal(np.vstack([features.rows(x[i : i + 7]) for i in range(0, 300, 7)]), rows)


@settings(deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_row_norm_skips_nothing(seed):
    rng = np.random.default_rng(seed)
    features = feature_map()
    x = rng.uniform(-2, 2, size=(20, 23))
    cx, cs = rng.normal(size=(7, 7)), rng.normal(size=(6, 6))
    by_x = np.abs(features.x_basis.design(x.ravel()) @ cx).sum(axis=1).reshape(x.shape)
    by_s = np.abs(features.s_basis.design(features.grid) @ cs).sum(axis=1)
    np.testing.assert_allclose(features.row_norm(cx, cs)(x), (by_x * by_s).max(), rtol=1e-12)


def test_row_norm_beyond_the_range_does_not_depend_on_the_order_of_the_curves():
    """It was .45 of the largest here: points outside were skipped by the bounds of points inside."""
    rng = np.random.default_rng(4)
    features = feature_map()
    x = rng.normal(0, 3, size=(40, 23))  # as with fit_chunks(x_range=) narrower than the curves
    cx, cs = rng.normal(size=(7, 7)), rng.normal(size=(6, 6))
    by_x = np.abs(features.x_basis.design(x.ravel()) @ cx).sum(axis=1).reshape(x.shape)
    by_s = np.abs(features.s_basis.design(features.grid) @ cs).sum(axis=1)
    for order in (np.arange(40), np.argsort(-by_x.max(axis=1)), np.argsort(by_x.max(axis=1))):
        np.testing.assert_allclose(features.row_norm(cx, cs)(x[order]), (by_x * by_s).max(), rtol=1e-12)
