"""Gaps filled within a curve: what the rules are, and that no other curve has a say, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fdadp.functional.gap_filling import fill_linear, fill_smooth

FILLS = {"linear": fill_linear, "smooth": fill_smooth}
GRID = np.sort(np.random.default_rng(0).uniform(-3, 9, 31))


def curves(n=40, seed=1, share=0.4):
    rng = np.random.default_rng(seed)
    values = np.cumsum(rng.normal(size=(n, GRID.size)), axis=1)
    values[rng.random(values.shape) < share] = np.nan
    return values


@pytest.mark.parametrize("fill", FILLS.values(), ids=FILLS)
def test_observed_values_stay_and_everything_else_is_filled(fill):
    values = curves()
    values[3], values[4, 1:], values[4, 0], values[5, 7] = np.nan, np.nan, 2.5, np.inf
    filled = fill(values, GRID)
    seen = np.isfinite(values)
    np.testing.assert_array_equal(filled[seen], values[seen])
    assert np.isnan(filled[3]).all() and np.isfinite(np.delete(filled, 3, axis=0)).all()
    np.testing.assert_allclose(filled[4], 2.5)


def test_linear_is_interpolation_and_ends_are_carried_on():
    values = curves()
    for row, filled in zip(values, fill_linear(values, GRID), strict=True):
        seen = ~np.isnan(row)
        np.testing.assert_allclose(filled, np.interp(GRID, GRID[seen], row[seen]), rtol=1e-12, atol=1e-12)


def test_the_smoother_is_the_minimum_of_its_criterion():
    """Against the equations written down anew, dense, from the docstring."""
    from fdadp.functional.gap_filling import DECAY, LENGTH

    values = curves(n=10)
    unit = (GRID - GRID[0]) / (GRID[-1] - GRID[0])
    h = np.diff(unit)
    weights = np.append(h, 0) / 2 + np.insert(h, 0, 0) / 2
    slopes = np.diff(np.eye(31), axis=0) / h[:, None]
    middle = (h[1:] + h[:-1]) / 2
    bends = np.diff(slopes, axis=0) / middle[:, None]
    penalty = LENGTH**4 * ((bends.T * middle) @ bends + (slopes.T * h) @ slopes / DECAY**2)
    for row, filled in zip(values, fill_smooth(values, GRID), strict=True):
        seen = ~np.isnan(row)
        best = np.linalg.solve(np.diag(weights * seen) + penalty, weights * np.where(seen, row, 0))
        np.testing.assert_allclose(filled[~seen], best[~seen], atol=1e-8)


@pytest.mark.parametrize("fill", FILLS.values(), ids=FILLS)
@given(seed=st.integers(0, 10**6), share=st.floats(0, 1))
@settings(max_examples=25, deadline=None)
def test_a_curve_gets_the_same_bits_alone_and_among_others(fill, seed, share):
    values = curves(n=9, seed=seed, share=share)
    together = fill(values, GRID)
    for i in range(9):
        assert fill(values[i : i + 1], GRID).tobytes() == together[i : i + 1].tobytes()
    assert fill(values[::-1], GRID)[::-1].tobytes() == together.tobytes()
