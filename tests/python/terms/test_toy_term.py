"""A term written by following docs/extend/term.md alone: fitted, predicted, saved, and private."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from fdadp import FunctionalRegression, Privacy
from fdadp.functional.quadrature import quadrature_weights
from fdadp.privacy import rowwise_matmul
from fdadp.private.columns import unit_grid
from fdadp.private.white.base import WhiteTerm
from fdadp.private.white.made import MAKERS
from fdadp.terms.spec import TermDesign, TermSpec, along_response, no_penalties

GRID = np.linspace(0, 1, 21)


def means(values, grid):
    weights = quadrature_weights((grid - grid[0]) / (grid[-1] - grid[0]))
    return rowwise_matmul(values, weights[:, None])


@dataclass(frozen=True)
class MeanOf(TermSpec):
    """The mean of a curve over its domain, times a function of t."""

    column: str

    @property
    def name(self):
        return f"mean_of({self.column})"

    @property
    def columns(self):
        return (self.column,)

    def fixed(self, seen, t):
        seen.curves_of(self.column)
        along = along_response(t, k=5, m=(2, 1))
        return MeanDesign(name=self.name, columns=self.columns, own_penalties=no_penalties(1), **along)


@dataclass(frozen=True, kw_only=True)
class MeanDesign(TermDesign):
    def features(self, records, t=None):
        x = records.curves(self.columns[0])
        return means(x.values, x.grid)


@dataclass(frozen=True, kw_only=True)
class WhiteMean(WhiteTerm):
    sd: float

    def features(self, seen, count):
        x = seen[self.columns[0]]
        return (means(x.values, x.grid) / self.sd)[:, :count]

    def effect(self, columns, count, *points):
        return np.full((1, 1), 1 / (self.sd * columns[self.columns[0]].scale))[:, :count]


def white_mean(asked, spec):
    column = asked.curves_of(spec.column)
    unit = unit_grid(column.grid)
    sd = means(asked.prior.x.standard(unit), unit).std()
    return WhiteMean(name=spec.name, columns=spec.columns, shares=np.ones(1), sd=sd)


def curves(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1)) + 0.5 * rng.normal(size=(n, 3)) @ np.sin(np.arange(1, 4)[:, None] * np.pi * GRID)
    truth = (x @ quadrature_weights(GRID))[:, None] * (1 + GRID)
    return x, truth + 0.2 * rng.normal(size=truth.shape), truth


PRIVACY = {"privacy": Privacy(2.0, 1e-6, n=1000, random_state=1), "bounds": {"X": (-4, 4), "Y": (-6, 6)}}
EIGEN = {"response_basis": "eigen"}


@pytest.mark.parametrize(
    ("settings", "least"), [({}, 0.999), (EIGEN, 0.999), (PRIVACY, 0.95)], ids=["plain", "eigen", "private"]
)
def test_fits_predicts_and_saves(tmp_path, monkeypatch, settings, least):
    monkeypatch.setitem(MAKERS, MeanOf, white_mean)
    (x, y, _), (new, _, truth) = curves(1000), curves(200, 1)
    model = FunctionalRegression([MeanOf("X")], **settings).fit({"X": x, "Y": y}, grids={"X": GRID, "Y": GRID})
    predicted, se = model.predict({"X": new}), model.predict_se({"X": new})
    assert 1 - ((predicted - truth) ** 2).sum() / ((truth - truth.mean(axis=0)) ** 2).sum() > least
    assert (np.abs(predicted - truth) < 4 * se).mean() > 0.9
    slope = model.coef("mean_of(X)", t=GRID)["value"]
    np.testing.assert_allclose(slope, 1 + GRID, atol=0.05 if least > 0.99 else 0.3)
    loaded = FunctionalRegression.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.predict({"X": new}), predicted)
    np.testing.assert_array_equal(loaded.predict_interval({"X": new}), model.predict_interval({"X": new}))
    private = "privacy" in settings
    assert (model.ledger_ is not None and model.ledger_.private) == private == (loaded.privacy_ is not None)
