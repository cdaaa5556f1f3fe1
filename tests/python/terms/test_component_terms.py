"""lf, fpcr, ffpc and fosr: integrals against β, and scores of principal components."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp import FPCA, terms
from fdadp.errors import InputError
from fdadp.functional.quadrature import quadrature_weights
from fdadp.functional.tables.curve_sample import Curves
from fdadp.terms.records import Records, TrainingSummary

S, T = np.linspace(0, 2, 41), np.linspace(-1, 1, 12)


def records(n=30, grid=S, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, 3)) * [3, 2, 1]
    shapes = np.stack([np.ones(grid.size), np.sin(3 * grid), np.cos(5 * grid)])
    return Records(n, {"X": Curves(1 + scores @ shapes, grid), "a": rng.normal(size=n)})


def seen(*blocks):
    return TrainingSummary.of(blocks)


def features(term, data, t=None):
    return term.fixed(seen(data), t).features(data)


def test_lf_is_an_integral_and_keeps_simpson_on_uneven_grids():
    data = records()
    design = terms.lf("X", k=9).fixed(seen(data), None)
    weights = quadrature_weights(S)
    np.testing.assert_allclose(design.features(data), data.curves("X").values * weights @ design.effect(S), atol=1e-12)
    assert (design.penalties[0] > 0).sum() == 7

    uneven = records(grid=S**1.5)
    grid = uneven.curves("X").grid
    simpson = np.concatenate(([1], np.resize([4, 2], S.size - 2), [1])) * (grid[-1] - grid[0]) / S.size / 3
    np.testing.assert_allclose(quadrature_weights(grid, "simpson_legacy", uneven_simpson=True), simpson, rtol=1e-14)
    legacy = terms.lf("X", k=9, rule="simpson_legacy").fixed(seen(uneven), None)
    np.testing.assert_allclose(
        legacy.features(uneven), uneven.curves("X").values * simpson @ legacy.effect(grid), atol=1e-12
    )
    np.testing.assert_array_equal(  # those of ff and sff become the trapezoid
        features(terms.ff("X", rule="simpson_legacy"), uneven, T), features(terms.ff("X"), uneven, T)
    )


def test_fpcr_from_blocks_and_by_shares():
    data = records()
    term = terms.fpcr("X", n_components=3, n_basis=12)
    whole, parts = term.fixed(seen(data), None), term.fixed(seen(data[:7], data[7:]), None)
    np.testing.assert_allclose(np.abs(parts.features(data)), np.abs(whole.features(data)), rtol=1e-8)
    np.testing.assert_allclose(whole.features(data).mean(axis=0), 0, atol=1e-12)
    x = data.curves("X").values
    expected = ((x - x.mean(axis=0)) * quadrature_weights(S)) @ whole.effect(S)
    np.testing.assert_allclose(whole.features(data), expected, atol=1e-12)
    on_splines = ((x - x.mean(axis=0)) * quadrature_weights(S)) @ whole.splines.design(S)
    singular = np.linalg.svd(on_splines, compute_uv=False)
    share = singular[:1].sum() / singular.sum()
    for wanted, number in ((share - 1e-6, 1), (share + 1e-6, 2), (0.999, 3)):
        assert terms.fpcr("X", n_components=wanted, n_basis=12).fixed(seen(data), None).n_features == number


def test_fpcr_on_other_grids():
    data, fine = records(), records(grid=np.linspace(0, 2, 401))
    design = terms.fpcr("X", n_components=3).fixed(seen(data), None)
    np.testing.assert_allclose(design.features(fine), design.features(data), atol=0.05)
    with pytest.raises(InputError, match=r"X must be on the 41 training points where fpcr\(X\) is a sum"):
        terms.fpcr("X", n_components=3, rule="sum").fixed(seen(data), None).features(fine)


@pytest.mark.parametrize("method", ["face", "dense", "sc"])
def test_ffpc_has_the_scores_of_an_fpca(method):
    data, new = records(), records(8, seed=1)
    design = terms.ffpc("X", n_components=2, method=method).fixed(seen(data[:9], data[9:]), T)
    fpca = FPCA(n_components=2, method=method).fit(data.curves("X").values, t=S)
    np.testing.assert_allclose(design.features(new), fpca.transform(new.curves("X").values), atol=1e-12)
    given = terms.ffpc("X", method=method, basis=fpca.basis_).fixed(seen(new), T)
    np.testing.assert_allclose(given.features(new), design.features(new), atol=1e-12)
    assert design.penalties.shape == (1, 2 * min(15, T.size))
    np.testing.assert_allclose(design.effect(S), fpca.eigenfunctions_.T, atol=1e-12)


def test_ffpc_caps_shares_but_not_numbers():
    rng = np.random.default_rng(0)
    noise = Records(60, {"X": Curves(rng.normal(size=(60, 41)), S)})
    assert terms.ffpc("X", method="dense").fixed(seen(noise), T).n_features == 15
    assert terms.ffpc("X", n_components=20, method="dense").fixed(seen(noise), T).n_features == 20


def test_ffpc_scores_sparse_curves():
    data = records(60)
    values = data.curves("X").values.copy()
    values[np.random.default_rng(0).random(values.shape) < 0.7] = np.nan
    sparse = Records(60, {"X": Curves(values, S)})
    scores = features(terms.ffpc("X", n_components=3, method="sc"), sparse, T)
    whole = features(terms.ffpc("X", n_components=3, method="sc"), data, T)
    left = whole - scores @ np.linalg.lstsq(scores, whole, rcond=None)[0]
    assert left.var(axis=0).sum() < 0.02 * whole.var(axis=0).sum()


def test_fosr_shares_one_smoothing_parameter():
    data = records()
    design = terms.fosr(("a",), k=9).fixed(seen(data), T)
    np.testing.assert_array_equal(design.features(data), np.column_stack((np.ones(30), data.numbers("a"))))
    coefficients = np.random.default_rng(0).normal(size=9)
    fine = np.linspace(-1, 1, 4001)
    bend = np.gradient(np.gradient(design.along.design(fine) @ coefficients, fine), fine)
    penalty = design.penalties[0].reshape(2, 9)
    assert penalty.shape == (2, 9)
    assert penalty[1] @ coefficients**2 == pytest.approx(quadrature_weights(fine) @ bend**2, rel=1e-2)
    assert terms.fosr(("a",), intercept=False).fixed(seen(data), T).n_features == 1


@pytest.mark.parametrize(
    ("term", "t", "message"),
    [
        (terms.lf("X"), T, "for curves use ff"),
        (terms.fpcr("X"), T, "for curves use ffpc"),
        (terms.ffpc("X"), None, "for a scalar response use fpcr"),
        (terms.fosr(("a",)), None, "for a scalar response use linear"),
        (terms.fosr("a"), T, "must be a tuple of columns, got 'a'"),
        (terms.fosr(("b",)), T, "data must have the column 'b'"),
        (terms.lf("a"), None, "data must have the column 'a' .curves."),
        (terms.fpcr("X", n_components=50), None, r"n_components of fpcr\(X\) must be from 1 to \d+ here, got 50"),
        (terms.fpcr("X", n_components=1.5), None, "must be a whole number or a share"),
        (terms.fpcr("X", rule="gauss"), None, r"rule of fpcr\(X\) must be one of"),
        (terms.ffpc("X", method="pace"), T, r"method of ffpc\(X\) must be one of"),
        (terms.ffpc("X", n_components=99), T, r"ffpc\(X\): n_components must be at least 1"),
    ],
)
def test_wrong_terms(term, t, message):
    with pytest.raises(InputError, match=message):
        term.fixed(seen(records()), t)


def test_given_components_must_be_on_the_grid():
    basis = FPCA(n_components=2).fit(records(grid=np.linspace(0, 2, 21)).curves("X").values).basis_
    with pytest.raises(InputError, match=r"basis of ffpc\(X\) must be on the grid of X"):
        terms.ffpc("X", basis=basis).fixed(seen(records()), T)
