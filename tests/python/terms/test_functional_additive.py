"""sff and af: integrals of surfaces along curves."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from fdadp import terms
from fdadp.errors import ExtrapolationWarning, InputError
from fdadp.functional.quadrature import quadrature_weights
from fdadp.functional.tables.curve_sample import Curves
from fdadp.terms.records import Records, TrainingSummary

S, T = np.linspace(0, 2, 31), np.linspace(-1, 1, 12)


def records(n=20, grid=S, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, 3)) @ np.stack([np.ones(grid.size), np.sin(3 * grid), np.cos(5 * grid)])
    return Records(n, {"X": Curves(values, grid)})


def seen(*blocks):
    return TrainingSummary.of(blocks)


@pytest.mark.parametrize("rule", ["trapezoid", "simpson"])
def test_features_are_integrals_of_the_surface(rule):
    data = records()
    design = terms.af("X", k=(6, 7), rule=rule).fixed(seen(data), None)
    weights = quadrature_weights(S, rule)
    for i, x in enumerate(data.curves("X").values[:4]):
        along_curve = np.stack([design.effect(np.array([s]), np.array([v]))[0] for s, v in zip(S, x, strict=True)])
        np.testing.assert_allclose(design.features(data)[i], weights @ along_curve, atol=1e-12)


def test_order_of_smoothing_parameters_is_that_of_refund():
    """sff: t, s, x; af: s, x."""
    data = records()
    three = terms.sff("X", k=(5, 6, 7)).fixed(seen(data), T)
    in_t, in_s, in_x = three.penalties
    shape = np.zeros(three.kept.shape)
    by_margin = {}
    for name, diagonal in (("t", in_t), ("s", in_s), ("x", in_x)):
        full = shape.copy()
        full[three.kept] = diagonal
        by_margin[name] = full.reshape(7, 6, 5)
    free = 2  # constant and linear functions are not penalised
    assert (by_margin["t"][:, :, :free] == 0).all()
    assert (by_margin["t"][1:, :, free:] > 0).all()
    assert (by_margin["s"][:, :free] == 0).all()
    assert (by_margin["s"][1:, free:] > 0).all()
    assert (by_margin["x"][:free] == 0).all()
    assert (by_margin["x"][free:] > 0).all()
    assert three.penalty_names == ("sff(X).t", "sff(X).1", "sff(X).2")
    assert len(terms.af("X").fixed(seen(data), None).penalties) == 2


def test_what_is_left_out_is_the_same_for_all_curves():
    """A constant, and a line in s: multiples of the intercept, on whatever curves."""
    data = records()
    design = terms.af("X").fixed(seen(data), None)
    features = design.features(data)
    constant = np.ptp(features, axis=0) < 1e-12
    lost = ~design.kept
    assert lost.sum() == 2
    assert constant[lost].all()
    assert (~terms.sff("X").fixed(seen(data), T).kept).sum() == 3  # with t: 1, and a line in s times 1 and t


def test_norm_is_the_largest_row_of_all_blocks():
    data = records(60)
    whole = terms.sff("X").fixed(seen(data), T)
    assert terms.sff("X").fixed(seen(data[:25], data[25:]), T).own_norm == pytest.approx(whole.own_norm, rel=1e-14)
    rows_x = np.abs(whole.over_x.basis.design(data.curves("X").values.ravel()) @ whole.over_x.to_basis).sum(axis=1)
    rows_s = np.abs(whole.over_s.basis.design(S) @ whole.over_s.to_basis).sum(axis=1)
    assert whole.own_norm == pytest.approx((rows_x.reshape(60, -1) * rows_s).max(), rel=1e-12)


def test_new_grids_and_values_beyond_the_range():
    data, fine = records(), records(grid=np.linspace(0, 2, 121))
    low, high = data.curves("X").values.min(), data.curves("X").values.max()
    fine = Records(fine.n, {"X": Curves(np.clip(fine.curves("X").values, low, high), fine.curves("X").grid)})
    design = terms.af("X").fixed(seen(data), None)
    np.testing.assert_allclose(design.features(fine), design.features(data), atol=0.03)
    with pytest.warns(ExtrapolationWarning, match=r"1 of 620 points of X lie outside the training range"):
        values = data.curves("X").values.copy()
        values[0, 0] = high + 1
        design.features(Records(20, {"X": Curves(values, S)}))
    with pytest.raises(InputError, match=r"X must lie on the training domain \[0, 2\], got \[0, 1\]"):
        design.features(records(grid=np.linspace(0, 1, 31)))


def test_wrong_responses_and_sizes():
    data = seen(records())
    with pytest.raises(InputError, match="response that is a number; for curves use sff"):
        terms.af("X").fixed(data, T)
    with pytest.raises(InputError, match="response that is a curve; for a scalar response use af"):
        terms.sff("X").fixed(data, None)
    with pytest.raises(InputError, match=r"k of sff\(X\) must be an integer of at least degree \+ 1 = 4, got 3"):
        terms.sff("X", k=(5, 3, 5)).fixed(data, T)
    for spec, text in (
        (terms.sff("X", k=("auto", 5, 5)), r"k of sff\(X\) must begin with the number of B-splines over t, got 'auto'"),
        (terms.sff("X", k=(5, "many", 5)), r"k of sff\(X\) must be of numbers of B-splines, or 'auto', got 'many'"),
        (terms.sff("X", period=1.5), r"period of sff\(X\) must be at least the length of the grid of X, 2, got 1.5"),
        (terms.sff("X", period=0), r"period of sff\(X\) must be a number above 0 or None, got 0"),
        (terms.sff("X", x_transform="log"), r"x_transform of sff\(X\) must be None or 'quantile', got 'log'"),
    ):
        with pytest.raises(InputError, match=text):
            spec.fixed(data, T)
    with pytest.raises(InputError, match="rule must be one of"):
        terms.af("X", rule="gauss").fixed(data, None)


def test_long_curves_need_memory_for_themselves_only():
    """10⁴ points: a matrix of points by points would take 800 MB."""
    data = records(40, np.linspace(0, 2, 10_000))
    tracemalloc.start()
    design = terms.sff("X").fixed(seen(data), T)
    features = design.features(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert features.shape == (40, 25)
    assert peak < 50e6
