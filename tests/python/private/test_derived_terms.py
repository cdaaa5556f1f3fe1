"""The private version of any term, derived from its design: white, row-local, in units, and of nothing private."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from fdadp import FunctionalRegression, Privacy, PublicPrior, ScalarRegression
from fdadp.errors import InputError, PrivacyError
from fdadp.functional.quadrature import quadrature_weights
from fdadp.functional.splines.diagonal_margins import SmoothMargin
from fdadp.functional.tables.curve_sample import Curves
from fdadp.privacy import rowwise_exp, rowwise_matmul
from fdadp.privacy.rows._sealed_row_functions import probe
from fdadp.private.plan.private_design import curves_column
from fdadp.private.public.column_ranges import LabelColumn, NumberColumn, unit_grid
from fdadp.private.release.mechanisms import DPAFF
from fdadp.private.whitened.term_registry import white_term
from fdadp.terms.numbers.levels import Levels
from fdadp.terms.numbers.scalar_linear import Linear
from fdadp.terms.spec import TermDesign, TermSpec, along_response, no_penalties

PRIOR = PublicPrior()
S = np.linspace(10, 12, 31)
COLUMNS = {
    "X": curves_column(PRIOR, "X", 0, S, (30.0, 70.0)).placed(48.0, 4.0),
    "age": NumberColumn("age", 1, (20.0, 80.0)).placed(0.2, 0.25),
    "region": LabelColumn("region", 2, ("north", "south", 3)),
}
SHAPES = ((S.size,), (), ())


class OfOneColumn(TermSpec):
    """A term without penalties of its own."""

    column: str
    design: Any
    size = 1

    @property
    def name(self):
        return f"{type(self).__name__}({self.column})"

    @property
    def columns(self):
        return (self.column,)

    def fixed(self, seen, t):
        more = self.more(seen) | along_response(t, k=5, m=(2, 1))
        size = more.pop("size", 1)
        return self.design(name=self.name, columns=self.columns, own_penalties=no_penalties(size), **more)

    def more(self, seen):
        return {}


@dataclass(frozen=True, kw_only=True)
class QuadraticDesign(TermDesign):
    """``∫∫ X(s) X(u) β(s, u) ds du``."""

    over_s: SmoothMargin

    def features(self, records, t=None):
        x = records.curves(self.columns[0])
        rows = rowwise_matmul(x.values, self.over_s.design(x.grid) * quadrature_weights(x.grid)[:, None])
        j, k = np.triu_indices(self.over_s.size)
        return rows[:, j] * rows[:, k] * np.where(j == k, 1.0, 2.0)

    @property
    def axes(self):
        points = np.linspace(S[0], S[-1], 20)
        return {"s": points, "u": points}

    def effect(self, *points):
        s, u = (self.over_s.design(p) for p in points)
        both = s[:, None, :, None] * u[None, :, None, :]
        j, k = np.triu_indices(self.over_s.size)
        return ((both[..., j, k] + both[..., k, j]) / 2 * np.where(j == k, 1.0, 2.0)).reshape(-1, j.size)


@dataclass(frozen=True)
class Quadratic(OfOneColumn):
    column: str
    design = QuadraticDesign

    def more(self, seen):
        over_s = SmoothMargin.pspline(seen.curves_of(self.column).grid, 5, (2, 1), values=True)
        return {"over_s": over_s, "size": 15}


@dataclass(frozen=True, kw_only=True)
class ExponentialDesign(TermDesign):
    def features(self, records, t=None):
        return rowwise_exp(records.numbers(self.columns[0]))[:, None]


@dataclass(frozen=True)
class Exponential(OfOneColumn):
    column: str
    design = ExponentialDesign


@dataclass(frozen=True, kw_only=True)
class OverallDesign(TermDesign):
    def features(self, records, t=None):
        return rowwise_matmul(records.curves(self.columns[0]).values, np.full((S.size, 1), 1 / S.size))


@dataclass(frozen=True)
class Overall(OfOneColumn):
    """The same at all t."""

    column: str
    design = OverallDesign

    def fixed(self, seen, t):
        return super().fixed(seen, None)


@dataclass(frozen=True, kw_only=True)
class ByBlasDesign(TermDesign):
    def features(self, records, t=None):
        return records.curves(self.columns[0]).values @ np.linspace(-1, 1, 2 * S.size).reshape(S.size, 2)


@dataclass(frozen=True)
class ByBlas(OfOneColumn):
    column: str
    design = ByBlasDesign

    def more(self, seen):
        return {"size": 2}


@dataclass(frozen=True, kw_only=True)
class AmongDesign(TermDesign):
    def features(self, records, t=None):
        values = records.curves(self.columns[0]).values[:, :1]
        return values - values.mean(axis=0)


@dataclass(frozen=True)
class Among(OfOneColumn):
    """A row's place among the others."""

    column: str
    design = AmongDesign


@dataclass(frozen=True, kw_only=True)
class LabelsDesign(TermDesign):
    levels: Levels

    def features(self, records, t=None):
        return self.levels.indicators(records)

    @property
    def axes(self):
        return {self.columns[0]: self.levels.levels}

    def effect(self, *points):
        return np.eye(len(self.levels))[self.levels.codes(points[0])]


@dataclass(frozen=True)
class OfLabels(OfOneColumn):
    column: str
    design = LabelsDesign

    def more(self, seen):
        levels = Levels("region", seen.levels_of(self.column))
        return {"levels": levels, "size": len(levels)}


@dataclass(frozen=True)
class Slope(Linear):
    """``linear`` by another name: its private version is derived."""


def white(spec, curves=True):
    return white_term(spec, COLUMNS, PRIOR, curves=curves, t=S if curves else None)


def seen_of(block):
    return {name: column.seen(block[column.at])[0] for name, column in COLUMNS.items()}


def block_of(n, seed=0):
    rng = np.random.default_rng(seed)
    x = 48 + 4 * PublicPrior(seed=seed).x.curves(unit_grid(S), n_per_length=-(-n // 40))[:n]
    return x, rng.uniform(30, 70, n), rng.integers(0, 3, n).astype(float)


@pytest.mark.parametrize("spec", [Quadratic("X"), OfLabels("region"), Slope("age")], ids=lambda spec: spec.name)
@pytest.mark.parametrize("curves", [True, False])
def test_features_are_white_and_each_row_is_a_matter_of_its_own(spec, curves):
    term = white(spec, curves)
    count = term.shares.size
    assert term.shares.sum() == pytest.approx(1.0 if spec.columns == ("X",) else 0.5)
    assert (np.diff(term.shares) <= 1e-15).all() and (term.shares > 0).all()

    def features(block):
        return term.features(seen_of(block), count)

    probe(features, SHAPES, spec.name)
    block = block_of(4000)
    want = features(block)
    order = np.random.default_rng(1).permutation(4000)
    np.testing.assert_array_equal(features(tuple(a[order] for a in block)), want[order])
    np.testing.assert_array_equal(features(tuple(a[5:6] for a in block)), want[5:6])
    np.testing.assert_array_equal(term.features(seen_of(block), 1), want[:, :1])
    if spec.columns != ("age",):
        np.testing.assert_allclose(np.cov(want[:, :4].T), np.eye(min(count, 4)), atol=0.5)


def test_products_are_about_the_location_in_units_of_the_column():
    term = white(Quadratic("X"))
    assert term.about
    block = block_of(200, 3)
    x = 48 + (block[0] - 48) / 3  # within ±4 standard deviations
    features = term.features(seen_of((x, *block[1:])), 6)
    beta = term.effect(COLUMNS, 6, S, S).reshape(S.size, S.size, 6)
    weighted = (x - 48) * quadrature_weights(S)
    found = np.einsum("ns,suf,nu->nf", weighted, beta, weighted)
    np.testing.assert_allclose(found - found[0], features - features[0], atol=1e-8)
    axes = term.axes(COLUMNS)
    assert list(axes) == ["s", "u"] and (axes["s"][0], axes["s"][-1]) == (10, 12)


def test_a_derived_slope_is_the_one_by_hand():
    block = block_of(50)
    derived, by_hand = white(Slope("age")), white(Linear("age"))
    assert type(derived) is not type(by_hand)
    for values in (derived.features(seen_of(block), 1), derived.effect(COLUMNS, 1)):
        other = by_hand.features(seen_of(block), 1) if len(values) > 1 else by_hand.effect(COLUMNS, 1)
        np.testing.assert_allclose(
            (values - values.mean()) * np.sign(values[0] * other[0]), other - other.mean(), rtol=1e-3
        )
    np.testing.assert_allclose(np.abs(derived.effect(COLUMNS, 1)), by_hand.effect(COLUMNS, 1), rtol=1e-3)


def test_what_is_no_public_level_is_a_row_of_zeros():
    term = white(OfLabels("region"))
    x, age, _ = block_of(4)
    features = term.features(seen_of((x, age, np.array([0.0, 2.0, np.nan, 7.0]))), 2)
    np.testing.assert_array_equal(features[2:], 0)
    np.testing.assert_allclose(term.effect(COLUMNS, 2, ["north", 3]), features[:2], atol=1e-14)
    assert term.axes(COLUMNS) == {"region": ("north", "south", 3)}
    with pytest.raises(InputError, match="region must be one of its levels"):
        term.effect(COLUMNS, 2, ["atlantis"])


def test_new_grids_give_the_same_features():
    term, fine = white(Quadratic("X")), np.linspace(0, 1, 301)
    x = np.sin(6 * fine)[None] * [[1.0], [0.5]]
    both = [Curves(np.stack([np.interp(g, fine, one) for one in x]), g) for g in (fine, unit_grid(S))]
    np.testing.assert_allclose(*(term.features({"X": one}, 3) for one in both), atol=0.02)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (Exponential("age"), r"features of Exponential\(age\) must change linearly with the units of age"),
        (Overall("X"), r"Overall\(X\) cannot be the same at all t in a private fit"),
        (Quadratic("weight"), r"bounds of weight must be public for Quadratic\(weight\): give its range, or all its"),
        (Quadratic("age"), r"data must have the column 'age' \(curves\), got age \(numbers\)"),
    ],
    ids=lambda v: getattr(v, "name", ""),
)
def test_what_has_no_private_meaning_is_refused(spec, message):
    with pytest.raises(InputError, match=message):
        white(spec)


@pytest.mark.parametrize("spec", [ByBlas("X"), Among("X")], ids=lambda spec: spec.name)
def test_a_design_whose_rows_know_of_each_other_is_refused_before_anything_is_read(spec):
    x, *_ = block_of(200)
    model = FunctionalRegression(
        [spec], privacy=Privacy(8.0, 1e-6, n=200, random_state=0), bounds={"X": (30, 70), "Y": (-6, 6)}
    )
    with pytest.raises(PrivacyError, match=r"features of .*\(X\) must be row-local, bit for bit"):
        model.fit({"X": x, "Y": x - 48}, grids={"X": S, "Y": S})


def test_a_quadratic_effect_is_found(tmp_path):
    rng = np.random.default_rng(0)
    waves = np.stack([np.ones(S.size), np.sin(np.pi * S), np.cos(np.pi * S)])

    def people(n):
        scores = rng.normal(size=(n, 3)) * [1, 0.7, 0.5]
        return 48 + 4 * scores @ waves, np.outer(scores[:, 0] ** 2 + scores[:, 0] * scores[:, 1], np.cos(S))

    (x, y), (new, truth) = people(4000), people(500)
    privacy, bounds = Privacy(2.0, 1e-6, n=4000, random_state=0), {"X": (32, 64), "Y": (-6, 6)}
    model = FunctionalRegression([Quadratic("X")], privacy=privacy, bounds=bounds)
    model.fit({"X": x, "Y": y + 0.2 * rng.normal(size=y.shape)}, grids={"X": S, "Y": S})
    predicted = model.predict({"X": new})
    assert 1 - ((predicted - truth) ** 2).mean() / truth.var() > 0.85
    loaded = FunctionalRegression.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.predict({"X": new}), predicted)
    assert loaded.coef("Quadratic(X)").equals(model.coef("Quadratic(X)"))


def test_more_features_than_are_kept_of_all_terms():
    """The last ones of a term that multiplies a number are not among the 60 that are kept."""
    rng = np.random.default_rng(0)
    data = {name: rng.uniform(-1, 1, 400) for name in "abcd"} | {"y": rng.uniform(-1, 1, 400)}
    model = ScalarRegression(
        "y ~ te(a, b) + te(c, d) + s(a, by=b)",
        privacy=Privacy(2.0, 1e-6, n=400, random_state=0),
        bounds=dict.fromkeys("abcdy", (-1.0, 1.0)),
        mechanism=DPAFF(allow_useless=True),
    ).fit(data)
    assert np.isfinite(model.predict(data)).all()
    assert np.isfinite(model.coef("s(a):b").select_dtypes(float)).all(axis=None)
