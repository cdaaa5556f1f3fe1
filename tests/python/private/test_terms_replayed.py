"""Private fits of a term of one's own: nothing but releases about neighbouring data tells them apart."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import numpy as np
import pytest

from fdadp import FunctionalRegression, Privacy
from fdadp._common.typing import FloatArray
from fdadp.audit.private_regression_audits import canary
from fdadp.audit.replay import Neighbours, drawing_from, replay_audit
from fdadp.errors import PrivacyError
from fdadp.privacy import Budget, rowwise_matmul
from fdadp.private.public.column_ranges import unit_grid
from fdadp.private.whitened.term_registry import MAKERS
from fdadp.private.whitened.white_term import WhiteTerm, white_axes
from fdadp.terms.spec import TermSpec

GRID = np.linspace(0, 1, 21)
GRIDS = {"X": GRID, "Y": GRID}
BOUNDS = {"X": (-4.0, 4.0), "Y": (-6.0, 6.0)}


def halves(values, grid):
    first = grid < 0.5 * (grid[0] + grid[-1])
    return rowwise_matmul(values, np.stack([first / first.sum(), ~first / (~first).sum()], axis=1))


@dataclass(frozen=True)
class Halves(TermSpec):
    """Means of the first and of the second half of a curve."""

    column: str

    @property
    def name(self):
        return f"halves({self.column})"

    @property
    def columns(self):
        return (self.column,)

    def fixed(self, seen, t):
        raise NotImplementedError


@dataclass(frozen=True)
class Leaky(Halves):
    """With features that depend on other people's."""


@dataclass(frozen=True, kw_only=True)
class WhiteHalves(WhiteTerm):
    centre: FloatArray
    whitening: FloatArray

    def features(self, seen, count):
        x = seen[self.columns[0]]
        return rowwise_matmul(halves(x.values, x.grid) - self.centre, np.ascontiguousarray(self.whitening[:, :count]))

    def axes(self, columns):
        return {"half": ("first", "second")}

    def effect(self, columns, count, *points):
        of = np.array([("first", "second").index(half) for half in points[0]])
        return self.whitening[of, :count] / columns[self.columns[0]].scale


@dataclass(frozen=True, kw_only=True)
class WhiteLeaky(WhiteHalves):
    def features(self, seen, count):
        rows = super().features(seen, count)
        return rows - rows.mean(axis=0)


def white(kind):
    def make(asked, spec):
        unit = unit_grid(asked.curves_of(spec.column).grid)
        centre, whitening, variances = white_axes(halves(asked.prior.x.standard(unit), unit), np.eye(2), 2)
        shares = variances / variances.sum()
        return kind(name=spec.name, columns=spec.columns, shares=shares, centre=centre, whitening=whitening)

    return make


@pytest.fixture(autouse=True)
def makers(monkeypatch):
    monkeypatch.setitem(MAKERS, Halves, white(WhiteHalves))
    monkeypatch.setitem(MAKERS, Leaky, white(WhiteLeaky))


def curves(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1)) + rng.normal(size=(n, 1)) * GRID
    return x, 2 * x[:, :10].mean(axis=1)[:, None] * (1 + GRID) + 0.2 * rng.normal(size=x.shape)


def pair(term, kind, seed, delta=1e-6):
    n = 60
    x, y = curves(n, seed)
    x[7], y[7] = canary(kind, GRID)
    keep = np.arange(n) != 7

    def run(data, noise):
        fitted = FunctionalRegression([term], privacy=Privacy(8.0, delta, n=n), bounds=BOUNDS)
        with drawing_from(fitted, noise):
            fitted.fit(data, grids=GRIDS)
        new = {"X": np.outer([-1.0, 2.0], 1 + 0 * GRID)}
        return {"attributes": vars(fitted), "predictions": fitted.predict_interval(new)}

    data = {"X": x, "Y": y}
    without = {name: values[keep] for name, values in data.items()}
    return Neighbours(f"{kind} {delta}", run, data, without, Budget(8.0, delta).total)


@pytest.mark.parametrize("delta", [1e-6, None])
def test_a_term_costs_at_most_the_budget_and_shows_nothing_else(delta):
    result = replay_audit([pair(Halves("X"), kind, i, delta) for i, kind in enumerate(("high", "outside"))])
    assert result.passed, str(result)
    assert result.finished == 2 and 0 < result.changes.max() <= 1


def test_a_term_whose_rows_know_of_each_other_is_refused():
    """Also after a term that is row-local: its check had vouched for others in the same place."""
    for term, refused in ((Halves("X"), False), (Leaky("X"), True)):
        x, y = curves(60, 0)
        model = FunctionalRegression([term], privacy=Privacy(8.0, 1e-6, n=60, random_state=0), bounds=BOUNDS)
        if refused:
            with pytest.raises(PrivacyError, match="row-local, bit for bit"):
                model.fit({"X": x, "Y": y}, grids=GRIDS)
        else:
            model.fit({"X": x, "Y": y}, grids=GRIDS)


def test_a_term_whose_rows_know_of_each_other_is_found_out(monkeypatch):
    """Where the check on public rows does not see it."""
    monkeypatch.setattr("fdadp.privacy.rows._sealed_row_functions._same_everywhere", lambda *_: True)
    monkeypatch.setattr("fdadp.privacy.rows._sealed_row_functions._checked", weakref.WeakKeyDictionary())
    result = replay_audit([pair(Leaky("X"), "high", 0)])
    assert not result.passed
    assert result.finished == 1


def test_a_private_fit_of_a_term_finds_its_coefficients():
    x, y = curves(3000, 5)
    model = FunctionalRegression([Halves("X")], privacy=Privacy(2.0, 1e-6, n=3000, random_state=1), bounds=BOUNDS)
    model.fit({"X": x, "Y": y}, grids=GRIDS)
    effect = model.coef("halves(X)", t=GRID)["value"].to_numpy().reshape(2, -1)  # per unit of X
    np.testing.assert_allclose(effect[0], 2 * (1 + GRID), atol=0.4)
    np.testing.assert_allclose(effect[1], 0 * GRID, atol=0.4)
