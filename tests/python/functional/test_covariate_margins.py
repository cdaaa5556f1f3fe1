"""Thin plates, cubic splines and margins of covariates against their definitions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.interpolate import CubicSpline

from fdadp.errors import InputError
from fdadp.functional.splines.mgcv_bases import (
    MOST_CENTRES,
    CubicSplines,
    ThinPlate,
    _sums_of_powers,
    covariate_margin,
)

KNOTS = np.array([0.0, 0.4, 0.7, 1.5, 2.0, 2.2])


@pytest.mark.parametrize("cyclic", [False, True])
def test_cubic_splines_are_scipys(cyclic):
    splines = CubicSplines(KNOTS, cyclic=cyclic)
    values = np.random.default_rng(0).normal(size=splines.n_basis)
    full = np.append(values, values[0]) if cyclic else values
    theirs = CubicSpline(KNOTS, full, bc_type="periodic" if cyclic else "natural")
    x = np.linspace(0, 2.2, 200)
    np.testing.assert_allclose(splines.design(x) @ values, theirs(x), atol=1e-13)
    bending = sum(quad(lambda u: theirs(u, 2) ** 2, a, b)[0] for a, b in itertools.pairwise(KNOTS))
    np.testing.assert_allclose(values @ splines.penalty @ values, bending, rtol=1e-10)
    if cyclic:
        np.testing.assert_allclose(splines.design(x + 2.2), splines.design(x), atol=1e-12)
        np.testing.assert_allclose(splines.design([-0.5]), splines.design([1.7]), atol=1e-13)
    else:  # linear beyond the knots
        slopes = theirs([0.0, 2.2], 1)
        np.testing.assert_allclose(splines.design([-2.0]) @ values, values[0] - 2 * slopes[0], atol=1e-13)
        np.testing.assert_allclose(splines.design([3.2]) @ values, values[-1] + slopes[1], atol=1e-13)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_thin_plates_have_the_penalty_that_they_say(order):
    """Pieces between centres are polynomials, derivatives up to 2 order - 2 are continuous, polynomials are free."""
    z = np.random.default_rng(1).normal(size=30)
    basis = ThinPlate.of(z, 7, order)
    np.testing.assert_allclose(np.mean(basis.design(z) ** 2, axis=0), 1, rtol=1e-12)
    inside = np.sort(z)
    coefficients = np.random.default_rng(2).normal(size=7)
    total = 0.0
    nodes, weights = np.polynomial.legendre.leggauss(8)
    for a, b in itertools.pairwise(inside):
        x = (a + b) / 2 + (b - a) / 2 * nodes
        piece = np.polynomial.Polynomial.fit(x, basis.design(x) @ coefficients, 2 * order - 1)
        np.testing.assert_allclose(piece(x), basis.design(x) @ coefficients, atol=1e-9)
        total += (b - a) / 2 * weights @ piece.deriv(order)(x) ** 2
    # |r|^(2m-1) kernel: beyond the data the pieces are polynomials below `order`, without a penalty
    np.testing.assert_allclose(coefficients @ basis.penalty @ coefficients, total, rtol=1e-5)
    gap = basis.design(inside + 1e-12) - basis.design(inside - 1e-12)
    assert np.abs(gap).max() < 1e-9
    far = basis.design(np.linspace(5, 9, 9)) @ coefficients
    assert np.abs(np.diff(far, n=order)).max() < 1e-8 * np.abs(far).max()
    null = basis.null
    np.testing.assert_allclose(basis.design(z) @ null[:, 0], 1, atol=1e-12)
    assert np.abs(basis.penalty @ null).max() == 0


def test_thin_plates_with_a_function_for_each_value_are_mgcvs():
    """``smoothCon(s(z, k = 4), data.frame(z = c(0, 1, 2, 5)), scale.penalty = FALSE)`` of mgcv 1.8-41."""
    z = np.array([0.0, 1.0, 2.0, 5.0])
    basis = ThinPlate.of(z, 4)
    first = [1.166308910659640, 0.693587433032415, 0.447809819744381, 1.399330683932835]
    second = [1.086526556986842, 0.899110000468116, -0.179104720769770, -1.406763216400871]
    np.testing.assert_allclose(basis.design(z)[:, :2].T, [first, second], rtol=1e-12)
    bend = [[0.275645391048763, 0.046221075347114], [0.046221075347114, 1.805858482693647]]
    np.testing.assert_allclose(basis.penalty[:2, :2], bend, rtol=1e-12)


@pytest.mark.parametrize("kind", ["normal", "uniform", "standard_cauchy", "rounded"])
def test_thin_plates_are_sums_of_radial_functions(kind):
    """Wherever a point is: among centres that are even or crowded, at one of them, or beyond."""
    rng = np.random.default_rng(5)
    z = rng.normal(size=3000).round(2) if kind == "rounded" else getattr(rng, kind)(size=3000)
    basis = ThinPlate.of(z, 8)
    x = np.concatenate((z[:500], basis.centres[::7], [z.min() - 2, z.max() + 1, np.nan]))
    jumps = np.diff(basis.pieces[-1], axis=0)  # by twice a centre's weight
    radial = np.abs(x[:, None] - basis.centres) ** 3 @ jumps / 2
    wanted = np.column_stack((radial, np.ones(x.size), x - basis.mean)) / basis.scale
    found = basis.design(x)
    assert np.isnan(found[-1]).all()
    np.testing.assert_allclose(found[:-1], wanted[:-1], atol=1e-10 * np.abs(wanted[:-1]).max())
    np.testing.assert_array_equal(found[::3], basis.design(x[::3]))  # each point by itself


@pytest.mark.parametrize("order", [1, 2, 3])
def test_sums_along_centres_keep_the_digits_of_their_terms(order):
    """Among centres far apart, too, where powers of distances from one point would lose those of near neighbours."""
    centres = np.sort(np.random.default_rng(7).standard_cauchy(size=700))
    values, most = np.random.default_rng(8).normal(size=(700, 3)), 2 * order - 1
    far = centres.astype(np.longdouble)[:, None] - centres
    for power, found in enumerate(_sums_of_powers(centres, values, most)):
        terms = np.where(far >= 0, 1, -1) * far**power
        size = np.abs(terms) @ np.abs(values)
        assert (np.abs(found - terms @ values) < 1e-13 * size).all()


def test_the_functions_of_many_centres_have_the_largest_eigenvalues():
    z = np.sort(np.random.default_rng(6).standard_exponential(size=400))
    eigenvalues, vectors = np.linalg.eigh(np.abs(z[:, None] - z) ** 3 / 12)
    largest = np.argsort(-np.abs(eigenvalues))[:7]
    basis = ThinPlate.of(z, 7)
    jumps = np.diff(basis.pieces[-1], axis=0)
    inside = vectors[:, largest]
    np.testing.assert_allclose(inside @ (inside.T @ jumps), jumps, atol=1e-8 * np.abs(jumps).max())
    np.testing.assert_allclose(np.vander(z, 2).T @ jumps, 0, atol=1e-8 * np.abs(jumps).max() * z.sum())


def test_thin_plates_of_many_values_use_some_of_them():
    z = np.random.default_rng(0).normal(size=3 * MOST_CENTRES)
    basis = ThinPlate.of(z, 8)
    assert basis.centres.size == MOST_CENTRES
    assert basis.centres[0] == z.min() and basis.centres[-1] == z.max()
    assert (basis.centres == ThinPlate.of(z, 8).centres).all()
    few = ThinPlate.of(z[:1500], 8)  # the space is nearly the same for any sample of centres
    grid = np.linspace(-2, 2, 50)
    assert (
        np.abs(
            basis.design(grid) @ np.linalg.lstsq(basis.design(grid), few.design(grid), rcond=None)[0] - few.design(grid)
        ).max()
        < 0.05
    )


@pytest.mark.parametrize("tensor", [False, True])
@pytest.mark.parametrize("bs", ["tp", "ps", "cr", "cc"])
def test_constraints_and_null_spaces(bs, tensor):
    z = np.random.default_rng(3).uniform(0, 2, 80)
    margin = covariate_margin(z, 9, bs, name="s(z)", tensor=tensor)
    columns = margin.design(z)
    n_free = 1 if bs == "cc" else 2
    assert (margin.eigenvalues == 0).sum() == n_free
    np.testing.assert_allclose(columns[:, 0], columns[0, 0], rtol=1e-9)
    assert np.linalg.matrix_rank(columns) == margin.size == (8 if bs == "cc" else 9)
    before = covariate_margin(z, 9, bs, name="s(z)", tensor=tensor, sums_to_zero=True)
    after = margin.centred(z)
    for centred in (before, after):
        assert centred.size == margin.size - 1
        assert np.abs(centred.design(z).mean(axis=0)).max() < 1e-10
    if tensor:
        np.testing.assert_allclose(np.linalg.eigvalsh(margin.penalty)[-1], 1)
        np.testing.assert_allclose(np.linalg.eigvalsh(before.penalty)[-1], 1)
    free = columns[:, :n_free]  # straight lines
    lines = np.column_stack((np.ones(80), z))[:, :n_free]
    assert np.abs(free @ np.linalg.lstsq(free, lines, rcond=None)[0] - lines).max() < 1e-9


def test_a_cycle_may_be_longer_than_the_data():
    z = np.random.default_rng(4).uniform(1, 20, 60)
    margin = covariate_margin(z, 8, "cc", name="s(hour)", period=(0, 24))
    np.testing.assert_allclose(margin.design([0.0]), margin.design([24.0]), atol=1e-12)
    np.testing.assert_allclose(margin.design([-1.0]), margin.design([23.0]), atol=1e-12)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bs": "re"}, "bs of s(z) must be one of 'tp', 'ps', 'cr', 'cc', got 're'; for random effects use re()"),
        ({"bs": "ts"}, "bs of s(z) must be one of 'tp', 'ps', 'cr', 'cc', got 'ts'"),
        ({"k": 2}, "k of s(z) must be an integer above 2 and at most the number of different values, 40, got 2"),
        ({"k": 41}, "k of s(z) must be an integer above 2 and at most the number of different values, 40, got 41"),
        ({"k": 5.5}, "k of s(z) must be an integer above 2 and at most the number of different values, 40, got 5.5"),
        ({"bs": "cr", "k": 2}, "k of s(z) must be an integer of at least 3 and at most"),
        ({"bs": "cc", "k": 3}, "k of s(z) must be an integer of at least 4 and at most"),
        ({"bs": "ps", "k": 3}, "k of s(z) must be an integer of at least degree + 1 = 4, got 3"),
        ({"m": (2, 2)}, "m of s(z) must be a whole number of at least 1, or of P-splines a pair of them, got (2, 2)"),
        ({"bs": "ps", "m": 0}, "m of s(z) must be a whole number of at least 1"),
        ({"bs": "cr", "m": 3}, "m of s(z) must be 2 or None with bs='cr', got 3"),
        ({"period": (0, 1)}, "period of s(z) must come with bs='cc', got bs='tp'"),
        ({"bs": "cc", "period": (0, 0.5)}, "period of s(z) must be an interval that holds all values"),
    ],
)
def test_settings_are_checked(settings, message):
    z = np.random.default_rng(5).uniform(0, 2, 40)
    with pytest.raises(InputError) as caught:
        covariate_margin(z, **{"k": 8, "name": "s(z)", **settings})
    assert message in str(caught.value)


def test_a_column_must_vary():
    with pytest.raises(InputError, match="must have a column that varies, got 3 in all rows"):
        covariate_margin(np.full(20, 3.0), 8, name="s(z)")


@pytest.mark.parametrize("n", [40, 400, 401])
@pytest.mark.parametrize("k", [7, 8])
def test_functions_of_even_numbers_that_sum_to_zero_are_told_apart(n, k):
    """Of eight functions of symmetric numbers four odd ones sum to zero; seven even points tell three."""
    z = np.linspace(20, 80, n)
    margin = covariate_margin(z, k, name="s(z)", tensor=True, sums_to_zero=True)
    design = margin.design(z)
    assert np.linalg.cond(design) < 1e3
    np.testing.assert_allclose(design.sum(axis=0), 0, atol=1e-9 * np.abs(design).sum())
