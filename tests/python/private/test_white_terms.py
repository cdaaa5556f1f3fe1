"""White features of private terms: white under the prior, each row by itself, with effects in units of the columns."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from fdadp import PublicPrior, terms
from fdadp.errors import InputError
from fdadp.functional.curves import Curves
from fdadp.functional.quadrature import quadrature_weights
from fdadp.privacy._local import BLOCK, probe
from fdadp.private.columns import CurvesColumn, LabelColumn, NumberColumn, unit_grid
from fdadp.private.design import curves_column
from fdadp.private.groups import FeatureGroups
from fdadp.private.white.made import white_term
from fdadp.private.whiten import WhitenedTerm
from fdadp.terms.additive import Additive
from fdadp.terms.base import Covariate

PRIOR = PublicPrior()
S = np.linspace(10, 12, 31)
REGIONS = ("north", "south", "east", "west")
COLUMNS = {
    "X": curves_column(PRIOR, "X", 0, S, (30.0, 70.0)).placed(48.0, 4.0),
    "age": NumberColumn("age", 1, (20.0, 80.0)),
    "dose": NumberColumn("dose", 2, (0.0, 5.0)),
    "region": LabelColumn("region", 3, REGIONS),
}
SHAPES = ((S.size,), (), (), ())

OF_CURVES = [
    terms.ff("X"),
    terms.ff("X", k=(14, 5)),
    terms.sff("X"),
    terms.sff("X", k=(5, 6, 9)),
    terms.linear("age"),
    terms.fosr(("age", "dose")),
    terms.factor("region"),
]
OF_NUMBERS = [terms.lf("X"), terms.af("X"), terms.linear("age", constant=True), terms.factor("region", constant=True)]
ALL = [*[(spec, True) for spec in OF_CURVES], *[(spec, False) for spec in OF_NUMBERS]]
each_term = pytest.mark.parametrize(("spec", "curves"), ALL, ids=lambda v: getattr(v, "name", ""))


@pytest.fixture(scope="module")
def made():
    kept = {}

    def white(spec, curves=True):
        if (spec, curves) not in kept:
            kept[spec, curves] = white_term(spec, COLUMNS, PRIOR, curves=curves)
        return kept[spec, curves]

    return white


def seen_of(block, columns=COLUMNS):
    return {name: column.seen(block[column.at])[0] for name, column in columns.items()}


@cache
def from_prior(n, seed):
    """Rows of the law that terms are whitened under, in units of the columns; of `n` a multiple of 40."""
    rng = np.random.default_rng(seed)
    x = PublicPrior(seed=seed).x.curves(unit_grid(S), n_per_length=n // 40)
    return 48 + 4 * x, rng.uniform(20, 80, n), rng.uniform(0, 5, n), rng.integers(0, len(REGIONS), n).astype(float)


@each_term
def test_features_are_white_under_the_prior(made, spec, curves):
    white = made(spec, curves)
    count = min(white.shares.size, 8)
    own = white.features(seen_of(from_prior(4000, PRIOR.seed)), count)
    np.testing.assert_allclose(own.mean(axis=0), 0, atol=0.06)
    np.testing.assert_allclose(np.cov(own.T).reshape(count, count), np.eye(count), atol=0.08)
    # Curves of 40 other lengths and scales than those that it was whitened under differ by more than chance.
    few = min(count, 6)
    other = np.cov(white.features(seen_of(from_prior(4000, 1)), few).T).reshape(few, few)
    np.testing.assert_allclose(other, np.eye(few), atol=0.3)


@each_term
def test_shares_fall_and_sum_to_the_importance(made, spec, curves):
    shares = made(spec, curves).shares
    of_curves = isinstance(COLUMNS[spec.columns[0]], CurvesColumn)
    assert shares.sum() == pytest.approx(1.0 if of_curves else 0.5)
    assert (np.diff(shares) <= 0).all() and (shares > 0).all()


@each_term
def test_a_row_is_a_matter_of_its_own(made, spec, curves):
    white = made(spec, curves)
    count = white.shares.size

    def features(block):
        return white.features(seen_of(block), count)

    probe(features, SHAPES, spec.name)
    block = tuple(a[:400].copy() for a in from_prior(4000, 2))
    block[0][5], block[1][6], block[3][7] = np.nan, np.nan, np.nan
    block[0][8, :4], block[1][9], block[2][9], block[3][9] = np.nan, 1e30, -np.inf, 17
    want = features(block)
    order = np.random.default_rng(0).permutation(400)
    np.testing.assert_array_equal(features(tuple(a[order] for a in block)), want[order])
    padded = tuple(np.concatenate([a, np.zeros((BLOCK - 400, *a.shape[1:]))]) for a in block)
    np.testing.assert_array_equal(features(padded)[:400], want)
    for i in (0, 7, 8, 399):
        np.testing.assert_array_equal(features(tuple(a[i : i + 1] for a in block)), want[i : i + 1])
    for fewer in (1, count // 2 + 1):  # what a plan affords does not change a feature
        np.testing.assert_array_equal(white.features(seen_of(block), fewer), want[:, :fewer])


@each_term
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30, -1e300, 17.5])
def test_whatever_a_row_holds_its_features_are_finite(made, spec, curves, bad):
    block = tuple(np.full((3, *shape), bad) for shape in SHAPES)
    block[0][1:, 3] = 50.0
    white = made(spec, curves)
    features = white.features(seen_of(block), white.shares.size)
    assert np.isfinite(features).all() and np.abs(features).max() < 1e3
    if spec.columns == ("region",):
        np.testing.assert_array_equal(features, 0)  # no public level


@pytest.mark.parametrize("spec", [terms.ff("X"), terms.lf("X")], ids=str)
def test_the_slope_of_curves_is_in_their_units(made, spec):
    white = made(spec, spec == terms.ff("X"))
    x, *rest = (a[:50] for a in from_prior(4000, 3))
    x = 48 + (x - 48) / 3  # within ±4 standard deviations
    features = white.features(seen_of((x, *rest)), 6)
    effect = white.effect(COLUMNS, 6, S)
    weights = quadrature_weights(S)
    np.testing.assert_allclose((x[1:] - x[:-1]) * weights @ effect, np.diff(features, axis=0), atol=1e-9)
    (axis,) = white.axes(COLUMNS).items()
    assert axis[0] == "s" and (axis[1][0], axis[1][-1]) == (10, 12)


@pytest.mark.parametrize("spec", [terms.sff("X"), terms.af("X")], ids=str)
def test_surfaces_are_in_units_of_the_curves(made, spec):
    white = made(spec, spec == terms.sff("X"))
    block = tuple(a[:20] for a in from_prior(4000, 3))
    features = white.features(seen_of(block), 6)
    x, weights = np.clip(block[0], 48 - 16, 48 + 16), quadrature_weights(S)
    for i in range(20):
        at = np.stack([white.effect(COLUMNS, 6, [s], [v])[0] for s, v in zip(S, x[i], strict=True)])
        np.testing.assert_allclose(weights @ at, features[i], atol=1e-9)
    axes = white.axes(COLUMNS)
    assert list(axes) == ["s", "x"] and (axes["x"][0], axes["x"][-1]) == (32, 64)
    both = white.effect(COLUMNS, 6, [10.0, 11.0], [40.0, 45.0, 50.0]).reshape(2, 3, 6)
    np.testing.assert_allclose(both[1, 2], white.effect(COLUMNS, 6, [11.0], [50.0])[0], rtol=1e-12)


def test_a_surface_is_the_additive_term(made):
    unit = unit_grid(S)
    term = Additive().standard(Covariate(unit, (-4.0, 4.0)), PRIOR)
    old = WhitenedTerm.of(term, PRIOR.x.standard(unit), unit, PRIOR, PRIOR.max_features)
    seen = {"X": Curves(PRIOR.x.standard(unit)[:300], unit)}
    new = made(terms.sff("X"))
    np.testing.assert_array_equal(new.features(seen, 60), old.features(seen, 60))
    np.testing.assert_array_equal(new.shares, old.shares)


def test_slopes_of_numbers_are_in_their_units(made):
    placed = {**COLUMNS, "age": COLUMNS["age"].placed(-0.2, 0.4)}
    block = tuple(a[:100] for a in from_prior(4000, 4))
    for spec in (terms.linear("age"), terms.fosr(("age", "dose"))):
        white = made(spec)
        q = white.shares.size
        slopes = white.effect(placed, q, *white.axes(placed).values())
        np.testing.assert_allclose(
            np.diff(np.stack(block[1 : 1 + q], axis=1), axis=0) @ slopes,
            np.diff(white.features(seen_of(block, placed), q), axis=0),
            atol=1e-12,
        )
    assert made(terms.linear("age")).axes(placed) == {}


def test_effects_of_levels_are_differences_from_the_first(made):
    white = made(terms.factor("region"))
    assert white.axes(COLUMNS) == {"region": REGIONS}
    block = (np.full((4, S.size), 48.0), np.zeros(4), np.zeros(4), np.arange(4.0))
    features = white.features(seen_of(block), 3)
    np.testing.assert_allclose(white.effect(COLUMNS, 3, REGIONS), features - features[0], atol=1e-15)
    np.testing.assert_allclose(features.T @ features / 4, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(features.sum(axis=0), 0, atol=1e-14)
    with pytest.raises(InputError, match=r"region must be one of its levels .* got 'atlantis'"):
        white.effect(COLUMNS, 3, ["north", "atlantis"])


def test_terms_of_all_kinds_are_merged(made):
    groups = FeatureGroups.merged([made(spec) for spec in (terms.ff("X"), terms.linear("age"))], 10)
    features = groups.features(seen_of(from_prior(4000, 5)), 10)
    assert features.shape == (4000, 10) and groups.counts(10) == [9, 1]
    assert groups.shares.sum() == pytest.approx(1)


REFUSALS = [
    (terms.re("person"), True, r"got re\(person\): its levels are private, as people are"),
    (terms.concurrent("X"), True, r"got concurrent\(X\): features that differ between points of t are not there yet"),
    (terms.ff("X", limits="s<t"), True, r"limits of ff\(X\) must be None .* historical effects are not there yet"),
    (terms.ffpc("X"), True, r"got ffpc\(X\): its components are those of the private curves; use ff\(X\)"),
    (terms.fpcr("X"), False, r"got fpcr\(X\): its components are those of the private curves; use lf\(X\)"),
    (terms.ff("X"), False, r"ff\(X\) must have a response that is a curve"),
    (terms.sff("X"), False, r"sff\(X\) must have a response that is a curve"),
    (terms.lf("X"), True, r"lf\(X\) must have a response that is a number"),
    (terms.af("X"), True, r"af\(X\) must have a response that is a number"),
    (terms.ff("X", k=(10, 8)), True, r"k of ff\(X\) must be 5, its default, along t .* got 8"),
    (terms.ff("X", k=(41, 5)), True, r"k of ff\(X\) must be from 5 to 40 .* got 41"),
    (terms.ff("X", m=((2, 2), (2, 1))), True, r"m of ff\(X\) must be .* got .*: how smooth"),
    (terms.lf("X", rule="simpson_legacy"), False, r"rule of lf\(X\) must be 'trapezoid' in a private fit"),
    (terms.sff("X", k=(6, 5, 5)), True, r"k of sff\(X\) must be 5, its default, along t"),
    (terms.af("X", k=(4, 8)), False, r"k of af\(X\) must be from 5 to 40 .* got 4"),
    (terms.af("X", m=(2, 1)), False, r"m of af\(X\) must be \(2, 2\)"),
    (terms.linear("age", constant=True), True, r"c\(age\) cannot be the same at all t in a private fit"),
    (terms.linear("age", k=7), True, r"k of age must be 5, its default, along t"),
    (
        terms.linear("weight"),
        True,
        r"bounds of weight must be public for weight: give a range, as in bounds=\{\"weight",
    ),
    (terms.linear("region"), True, r"bounds of region must be a range, as in .* got the levels \('north'"),
    (terms.linear("X"), True, r"X must hold numbers for X, got a column of curves"),
    (terms.ff("age"), True, r"age must hold curves for ff\(age\), got a column of numbers"),
    (terms.ff("Z"), True, r"bounds of Z must be public for ff\(Z\): give a range"),
    (terms.factor("city"), True, r"bounds of city must be public for city: give all its levels, as in bounds=\{\"city"),
    (terms.factor("age"), True, r"bounds of age must be all its levels, as in .* got the range \(20.0, 80.0\)"),
    (terms.factor("X"), True, r"X must hold labels for X, got a column of curves"),
    (terms.factor("region", coding="levels"), True, r"coding of region must be 'treatment' in a private fit"),
    (terms.factor("region", m=(2, 2)), True, r"m of region must be \(2, 1\)"),
    (terms.factor("region", constant=True), True, r"c\(region\) cannot be the same at all t"),
    (terms.fosr(("age",)), False, r"fosr\(age\) must have a response that is a curve"),
    (terms.fosr(("age",), k=20), True, r"k of fosr\(age\) must be 15, its default, along t"),
    (terms.fosr(()), True, r"numbers of fosr\(\) must be a tuple of columns"),
]


@pytest.mark.parametrize(("spec", "curves", "message"), REFUSALS, ids=lambda v: getattr(v, "name", ""))
def test_what_a_private_fit_cannot_do_is_refused(spec, curves, message):
    with pytest.raises(InputError, match=message):
        white_term(spec, COLUMNS, PRIOR, curves=curves)


def test_terms_of_others_are_refused_by_their_class():
    with pytest.raises(InputError, match=r"must be of AdditiveFunctional, .* got SimpleNamespace"):
        white_term(SimpleNamespace(name="peak(X)", columns=("X",)), COLUMNS, PRIOR, curves=True)
