"""Private fits of terms other than the additive one: nothing but releases about neighbouring data tells them apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from fdadp import Privacy
from fdadp.audit.canaries import canary
from fdadp.audit.replay import Neighbours, replay_audit
from fdadp.errors import PrivacyError
from fdadp.functional.curves import Curves
from fdadp.privacy import Budget, rowwise_matmul
from fdadp.regression.eigen import EigenRegression
from fdadp.terms.base import Standardised, Term

GRID = np.linspace(0, 1, 21)
BOUNDS = {"X": (-4.0, 4.0), "Y": (-6.0, 6.0)}


@dataclass(frozen=True)
class Halves(Term):
    """Means of the first and of the second half of a curve."""

    column: str = "X"

    @property
    def n_features(self):
        return 2

    def rows(self, x):
        first = x.grid < 0.5 * (x.grid[0] + x.grid[-1])
        return rowwise_matmul(x.values, np.stack([first / first.sum(), ~first / (~first).sum()], axis=1))


@dataclass(frozen=True)
class Leaky(Halves):
    """Features that depend on other people's."""

    def rows(self, x):
        rows = super().rows(x)
        return rows - rows.mean(axis=0)


def curves(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1)) + rng.normal(size=(n, 1)) * GRID
    return x, 2 * x[:, :10].mean(axis=1)[:, None] * (1 + GRID) + 0.2 * rng.normal(size=x.shape)


def pair(term, kind, seed, delta=1e-6):
    n = 60
    x, y = curves(n, seed)
    x[7], y[7] = canary(kind, GRID)
    keep = np.arange(n) != 7
    model = EigenRegression(
        terms=[term], privacy=Privacy(8.0, delta, n=n), bounds=BOUNDS, progress=False, mechanism="dp-aff"
    )

    def run(data, noise):
        fitted = EigenRegression(**model.get_params(deep=False))
        fitted._check_settings()
        fitted._fit_private(*data, s=GRID, t=GRID, noise=noise)
        return {"attributes": vars(fitted), "predictions": fitted.predict_interval(np.outer([-1.0, 2.0], 1 + 0 * GRID))}

    return Neighbours(f"{kind} {delta}", run, (x, y), (x[keep], y[keep]), Budget(8.0, delta).total)


@pytest.mark.parametrize("delta", [1e-6, None])
def test_a_term_costs_at_most_the_budget_and_shows_nothing_else(delta):
    result = replay_audit([pair(Halves(), kind, i, delta) for i, kind in enumerate(("high", "outside"))])
    assert result.passed, str(result)
    assert result.finished == 2 and 0 < result.changes.max() <= 1


def test_a_term_whose_rows_know_of_each_other_is_refused():
    """Also after a term that is row-local: its check had vouched for others in the same place."""
    for term, refused in ((Halves(), False), (Leaky(), True)):
        x, y = curves(60, 0)
        model = EigenRegression(terms=[term], privacy=Privacy(8.0, 1e-6, n=60, random_state=0), bounds=BOUNDS)
        if refused:
            with pytest.raises(PrivacyError, match="row-local, bit for bit"):
                model.fit({"X": x}, y, s=GRID, t=GRID)
        else:
            model.fit({"X": x}, y, s=GRID, t=GRID)


def test_a_term_whose_rows_know_of_each_other_is_found_out(monkeypatch):
    """Where the check on public rows does not see it."""
    monkeypatch.setattr("fdadp.privacy._local._same_everywhere", lambda *_: True)
    result = replay_audit([pair(Leaky(), "high", 0)])
    assert not result.passed
    assert result.finished == 1


def test_a_private_fit_of_a_term_finds_its_coefficients():
    x, y = curves(3000, 5)
    model = EigenRegression(terms=[Halves()], privacy=Privacy(2.0, 1e-6, n=3000, random_state=1), bounds=BOUNDS)
    model.fit({"X": x}, y, s=GRID, t=GRID)
    (term,) = model._fitted.terms
    assert isinstance(term, Standardised)
    effect = (model.coef_[0].T / term.scale) @ model.eigenfunctions_  # (2, T), per unit of X
    np.testing.assert_allclose(effect[0], 2 * (1 + GRID), atol=0.4)
    np.testing.assert_allclose(effect[1], 0 * GRID, atol=0.4)


def test_a_standardised_term_is_that_of_standardised_curves_on_any_grid():
    rng = np.random.default_rng(0)
    grid = np.linspace(10, 30, 41)
    x = Curves(rng.normal(size=(5, 41)) * 9, grid)
    term = Standardised(Halves(), 1.0, 2.0, grid)
    np.testing.assert_array_equal(
        term.rows(x), Halves().rows(Curves(np.clip((x.values - 1) / 2, -4, 4), (grid - 10) / 20))
    )
    some = np.array([3, 1])
    np.testing.assert_array_equal(term.rows(Curves(x.values[some], grid)), term.rows(x)[some])
