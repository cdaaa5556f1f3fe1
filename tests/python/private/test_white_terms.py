"""White features of private terms: white under the prior, each row by itself, with effects in units of the columns."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from fdadp import PublicPrior, terms
from fdadp.errors import InputError
from fdadp.files.dataclass_json import pack, unpack
from fdadp.functional.quadrature import quadrature_weights
from fdadp.functional.tables.curve_sample import Curves
from fdadp.privacy.rows._sealed_row_functions import BLOCK, probe
from fdadp.private.plan.private_design import FeatureGroups, curves_column
from fdadp.private.public.column_ranges import CurvesColumn, LabelColumn, NumberColumn, unit_grid
from fdadp.private.whitened.of_additive_surfaces import WhiteSurface
from fdadp.private.whitened.of_any_term import law_of_numbers
from fdadp.private.whitened.term_registry import white_term
from fdadp.terms.times_column import By

PRIOR = PublicPrior()
S = np.linspace(10, 12, 31)
REGIONS = ("north", "south", "east", "west")
COLUMNS = {
    "X": curves_column(PRIOR, "X", 0, S, (30.0, 70.0)).placed(48.0, 4.0),
    "age": NumberColumn("age", 1, (20.0, 80.0)).placed(0.0, 0.25),
    "dose": NumberColumn("dose", 2, (0.0, 5.0)),
    "region": LabelColumn("region", 3, REGIONS),
    "weight": NumberColumn("weight", 4, (-1.0, 1.0)).placed(0.0, 0.25),
    "height": NumberColumn("height", 5, (-1.0, 1.0)).placed(0.0, 0.25),
}
SHAPES = ((S.size,), (), (), (), (), ())

OF_CURVES = [
    terms.ff("X"),
    terms.ff("X", k=(14, 5)),
    terms.sff("X"),
    terms.sff("X", k=(5, 6, 9)),
    terms.linear("age"),
    terms.fosr(("age", "dose")),
    terms.factor("region"),
    terms.s("age"),
    terms.s("age", k=(8, 5)),
    terms.te("age", "weight"),
    terms.te("age", "weight", "height"),
    terms.ff("X", by="dose"),
    terms.s("age", by="dose"),
    terms.s("age", by="region"),
    terms.by("region", terms.ff("X")),
    terms.by("region", terms.ff("X"), coding="treatment"),
    terms.by("region", terms.by("dose", terms.sff("X"))),
    terms.by("dose", terms.factor("region")),
    terms.concurrent("X"),
    terms.ff("X", limits="s<=t"),
    terms.ff("X", k=(8, 5), limits="s<t"),
    terms.ff("X", limits="s<=t", by="dose"),
    terms.by("region", terms.concurrent("X")),
    terms.by("region", terms.concurrent("X"), coding="treatment"),
]
OF_NUMBERS = [
    terms.lf("X"),
    terms.af("X"),
    terms.linear("age", constant=True),
    terms.factor("region", constant=True),
    terms.s("age", k=9),
]
ALL = [*[(spec, True) for spec in OF_CURVES], *[(spec, False) for spec in OF_NUMBERS]]
each_term = pytest.mark.parametrize(("spec", "curves"), ALL, ids=lambda v: getattr(v, "name", ""))


@pytest.fixture(scope="module")
def made():
    kept = {}

    def white(spec, curves=True):
        if (spec, curves) not in kept:
            kept[spec, curves] = white_term(spec, COLUMNS, PRIOR, curves=curves, t=S)
        return kept[spec, curves]

    return white


def seen_of(block, columns=COLUMNS):
    return {name: column.seen(block[column.at])[0] for name, column in columns.items()}


@cache
def from_prior(n, seed):
    """Rows of the law that terms are whitened under, in units of the columns; of `n` a multiple of 40."""
    rng = np.random.default_rng(seed)
    x = PublicPrior(seed=seed).x.curves(unit_grid(S), n_per_length=n // 40)
    age, weight, height = (rng.permutation(law_of_numbers(n)) for _ in range(3))
    dose, region = rng.uniform(0, 5, n), rng.integers(0, len(REGIONS), n).astype(float)
    return 48 + 4 * x, 50 + 7.5 * age, dose, region, weight / 4, height / 4


def over_points(features):
    """Of features that differ between points of the response those at all points, such that sums are integrals."""
    if features.ndim == 2:
        return features
    weighted = features * np.sqrt(S.size * quadrature_weights(unit_grid(S)))
    return np.moveaxis(weighted, 1, 2).reshape(-1, features.shape[1])


@each_term
def test_features_are_white_under_the_prior(made, spec, curves):
    white = made(spec, curves)
    count = min(white.shares.size, 8)
    own = over_points(white.features(seen_of(from_prior(4000, PRIOR.seed)), count))
    chance = 0.15 if len(spec.columns) > 1 else 0.08  # products of rare numbers are few in 4000 rows
    np.testing.assert_allclose(own.mean(axis=0), 0, atol=chance)
    np.testing.assert_allclose(np.cov(own.T).reshape(count, count), np.eye(count), atol=chance)
    # Curves of 40 other lengths and scales than those that it was whitened under differ by more than chance.
    few = min(count, 6)
    other = np.cov(over_points(white.features(seen_of(from_prior(4000, 1)), few)).T).reshape(few, few)
    np.testing.assert_allclose(other, np.eye(few), atol=0.3)


def importance(spec):
    """1 of curves, 0.5 of others; of products that bring their column along 0.5 more."""
    if getattr(spec, "by", None):
        return importance(replace(spec, by=None)) + (0.0 if spec == terms.s("age", by="region") else 0.5)
    if isinstance(spec, By):
        return importance(spec.term) + 0.5
    return 1.0 if isinstance(COLUMNS[spec.columns[0]], CurvesColumn) else 0.5


@each_term
def test_shares_fall_and_sum_to_the_importance(made, spec, curves):
    shares = made(spec, curves).shares
    assert shares.sum() == pytest.approx(importance(spec))
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
    if spec.columns[-1] == "region":
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


def test_surfaces_that_are_kept_are_those_of_their_grid_and_prior():
    """Those of a pilot are not kept: two samples of curves are not compared."""
    pilots = (PublicPrior.from_pilot(np.random.default_rng(seed).normal(size=(30, 15))) for seed in range(2))
    for prior in (PRIOR, replace(PRIOR, seed=7), replace(PRIOR, surface_x=0.4), *pilots):
        for grid in (S, np.linspace(10, 12, 16), S**1.5):
            column = curves_column(prior, "X", 0, grid, (30.0, 70.0))
            wanted = WhiteSurface.on("sff(X)", "X", grid, prior)
            sizes = np.sqrt(prior.x.standard(unit_grid(grid)) ** 2 @ quadrature_weights(unit_grid(grid)))
            assert column.geometric_scale == pytest.approx(np.exp(np.log(sizes).mean()))
            for _ in range(2):
                found = white_term(terms.sff("X"), {"X": column}, prior, curves=True, t=S)
                np.testing.assert_array_equal(found.whitening, wanted.whitening)
                np.testing.assert_array_equal(found.centre, wanted.centre)
                np.testing.assert_array_equal(found.grid, wanted.grid)


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
    old = PRIOR.design(S, np.linspace(0, 1, 11)).only  # of AdditiveFunctionOnFunction
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


def test_effects_of_levels_are_about_their_mean(made):
    white = made(terms.factor("region"))
    assert white.axes(COLUMNS) == {"region": REGIONS}
    block = (np.full((4, S.size), 48.0), *np.zeros((2, 4)), np.arange(4.0), *np.zeros((2, 4)))
    features = white.features(seen_of(block), 3)
    np.testing.assert_allclose(white.effect(COLUMNS, 3, REGIONS), features, atol=1e-15)
    np.testing.assert_allclose(features.T @ features / 4, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(features.sum(axis=0), 0, atol=1e-14)
    with pytest.raises(InputError, match=r"region must be one of its levels .* got 'atlantis'"):
        white.effect(COLUMNS, 3, ["north", "atlantis"])


@pytest.mark.parametrize("spec", [terms.s("age"), terms.te("age", "weight")], ids=str)
def test_the_effect_of_a_smooth_is_its_values(made, spec):
    white = made(spec)
    block = tuple(a[:30] for a in from_prior(4000, 6))
    points = [block[COLUMNS[name].at] for name in spec.columns]
    features = white.features(seen_of(block), 5)
    at = np.stack([white.effect(COLUMNS, 5, *([p[i]] for p in points))[0] for i in range(30)])
    np.testing.assert_array_equal(at, features)
    axes = white.axes(COLUMNS)
    assert tuple(axes) == spec.columns and (axes["age"][0], axes["age"][-1]) == (20, 80)
    product = white.effect(COLUMNS, 5, *(p[:3] for p in points)).reshape(*(3,) * len(points), 5)
    for i in range(3):
        np.testing.assert_array_equal(product[(i,) * len(points)], features[i])


def test_a_private_smooth_follows_functions_as_smooth_as_its_prior(made):
    z = np.linspace(30, 70, 200)
    for spec, want in ((terms.s("age"), np.sin(z / 8)), (terms.s("age", k=20), np.sin(z / 4))):
        features = made(spec).effect(COLUMNS, 12, z)
        design = np.column_stack((np.ones(200), features))
        assert np.abs(design @ np.linalg.lstsq(design, want, rcond=None)[0] - want).max() < 0.02


LEVELS = np.array([1.0, -0.3, 2.0, 0.5])


@pytest.mark.parametrize("beside", [(), ("ff(X)",), ("age", "region"), ("ff(X)", "age", "region")])
@pytest.mark.parametrize("coding", ["numbers", "levels", "treatment"])
def test_products_explain_what_they_do_without_privacy(made, coding, beside):
    """Of curves and columns as they are, not about their means, whatever else is in the model."""
    if coding == "treatment":
        beside = ("ff(X)", *beside[1:])  # differences from what is in the model
    spec = terms.by("age" if coding == "numbers" else "region", terms.ff("X"), coding)
    white = white_term(spec, COLUMNS, PRIOR, curves=True, beside=beside)
    count = white.shares.size
    x, *rest = (a[:600] for a in from_prior(4000, 7))
    block = (48 + (x - 48) / 3, *rest)  # within ±4 standard deviations
    seen = seen_of(block)
    also = {"ff(X)": terms.ff("X"), "age": terms.linear("age"), "region": terms.factor("region")}
    parts = [made(also[name]).features(seen, made(also[name]).shares.size) for name in beside]
    factor = block[1] if coding == "numbers" else LEVELS[block[3].astype(int)]
    want = factor * ((block[0] * quadrature_weights(S)) @ slope(S))
    design = np.hstack((np.ones((600, 1)), white.features(seen, count), *parts))
    found = np.linalg.lstsq(design, want, rcond=1e-13)[0]
    np.testing.assert_allclose(design @ found, want, atol=2e-3 * want.std())
    if coding == "levels" and "ff(X)" in beside:
        return  # what is common to all levels is there twice
    axes = white.axes(COLUMNS)
    shape = tuple(len(points) for points in axes.values())
    estimated = (white.effect(COLUMNS, count, *axes.values()) @ found[1 : 1 + count]).reshape(shape)
    true = slope(axes["s"])
    if coding != "numbers":
        true = np.outer(LEVELS - LEVELS.mean() * (coding == "treatment"), true)
    np.testing.assert_allclose(estimated, true, atol=0.1)


def slope(s):
    return np.exp(-((s - 10.7) ** 2))


def test_effects_of_products_are_slopes(made):
    x, age, dose, region, *rest = (a[:50] for a in from_prior(4000, 8))
    white = made(terms.s("age", by="dose"))
    slopes = white.effect(COLUMNS, 8, age)
    more = [white.features(seen_of((x, age, d, region, *rest)), 8) for d in (dose / 2, dose / 2 + 1)]
    np.testing.assert_allclose(more[1] - more[0], slopes, atol=1e-12)
    white = made(terms.s("age", by="region"))
    features = white.features(seen_of((x, age, dose, region, *rest)), 8)
    at = white.effect(COLUMNS, 8, REGIONS, age).reshape(4, 50, 8)
    np.testing.assert_allclose(at[region.astype(int), np.arange(50)], features, atol=1e-14)
    white = made(terms.by("age", terms.factor("region")))
    year = [white.features(seen_of((x, np.full(50, a), dose, region, *rest)), 4) for a in (50, 51)]
    at = white.effect(COLUMNS, 4, [REGIONS[int(r)] for r in region])
    np.testing.assert_allclose((year[1] - year[0])[:, 1:], at[:, 1:], atol=1e-12)
    np.testing.assert_array_equal(at[:, 0], 0)  # what age does by itself


@each_term
def test_terms_go_into_files_and_come_back(made, spec, curves):
    white = made(spec, curves)
    tree, numbers = pack(white, "white")
    back = unpack(json.loads(json.dumps(tree)), numbers, lambda kind: True)
    block = tuple(a[:40] for a in from_prior(4000, 9))
    count = white.shares.size
    np.testing.assert_array_equal(back.features(seen_of(block), count), white.features(seen_of(block), count))
    points = [p[:3] for p in back.axes(COLUMNS).values()]
    np.testing.assert_array_equal(back.effect(COLUMNS, count, *points), white.effect(COLUMNS, count, *points))


def test_terms_of_all_kinds_are_merged(made):
    groups = FeatureGroups.merged([made(spec) for spec in (terms.ff("X"), terms.linear("age"))], 10)
    features = groups.features(seen_of(from_prior(4000, 5)), 10)
    assert features.shape == (4000, 10) and groups.counts(10) == [9, 1]
    assert groups.shares.sum() == pytest.approx(1)
