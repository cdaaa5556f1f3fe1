"""Terms written by following docs/extend/term.md alone: fitted, predicted, saved, in formulas, and private."""

from __future__ import annotations

from pathlib import Path

import mean_of
import numpy as np
import parts_of
import pytest

from fdadp import FunctionalRegression, Privacy, ScalarRegression, plan, terms
from fdadp.audit.replay import Neighbours, drawing_from, replay_audit
from fdadp.functional.quadrature import quadrature_weights
from fdadp.privacy import Budget
from fdadp.private.whitened.of_any_term import DerivedTerm
from fdadp.private.whitened.term_registry import MAKERS

GRID = np.linspace(0, 1, 21)
GRIDS = {"X": GRID, "Y": GRID}


@pytest.mark.parametrize("module", [mean_of, parts_of], ids=lambda module: module.__name__)
def test_it_is_one_file_of_sixty_lines_at_most(module):
    assert len(Path(module.__file__).read_text(encoding="utf-8").splitlines()) <= 60


def curves(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1)) + 0.5 * rng.normal(size=(n, 3)) @ np.sin(np.arange(1, 4)[:, None] * np.pi * GRID)
    truth = (x @ quadrature_weights(GRID))[:, None] * (1 + GRID)
    return x, truth + 0.2 * rng.normal(size=truth.shape), truth


PRIVACY = {"privacy": Privacy(2.0, 1e-6, n=1000, random_state=1), "bounds": {"X": (-4, 4), "Y": (-6, 6)}}
EIGEN = {"response_basis": "eigen"}


@pytest.mark.parametrize(
    ("settings", "least", "by_hand"),
    [({}, 0.999, False), (EIGEN, 0.999, False), (PRIVACY, 0.95, False), (PRIVACY, 0.95, True)],
    ids=["plain", "eigen", "private", "private by hand"],
)
def test_fits_predicts_and_saves(tmp_path, monkeypatch, settings, least, by_hand):
    if by_hand:
        monkeypatch.setitem(MAKERS, mean_of.MeanOf, mean_of.white_mean)
    (x, y, _), (new, _, truth) = curves(1000), curves(200, 1)
    model = FunctionalRegression([mean_of.MeanOf("X")], **settings).fit({"X": x, "Y": y}, grids=GRIDS)
    predicted, se = model.predict({"X": new}), model.predict_se({"X": new})
    assert 1 - ((predicted - truth) ** 2).sum() / ((truth - truth.mean(axis=0)) ** 2).sum() > least
    assert (np.abs(predicted - truth) < 4 * se).mean() > 0.9
    slope = model.coef("mean_of(X)", t=GRID)["value"]
    np.testing.assert_allclose(slope, 1 + GRID, atol=0.05 if least > 0.99 else 0.3)
    loaded = FunctionalRegression.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.predict({"X": new}), predicted)
    np.testing.assert_array_equal(loaded.predict_interval({"X": new}), model.predict_interval({"X": new}))
    assert loaded.coef("mean_of(X)", t=GRID).equals(model.coef("mean_of(X)", t=GRID))
    private = "privacy" in settings
    assert (model.ledger_ is not None and model.ledger_.private) == private == (loaded.privacy_ is not None)
    if private:
        assert isinstance(model.fitted_.fit.form.designs[-1].term, DerivedTerm) != by_hand


def test_the_derived_version_is_as_accurate_as_the_one_by_hand(monkeypatch):
    (x, y, _), (new, _, truth) = curves(1000), curves(500, 1)

    def away():
        model = FunctionalRegression([mean_of.MeanOf("X")], **PRIVACY).fit({"X": x, "Y": y}, grids=GRIDS)
        return ((model.predict({"X": new}) - truth) ** 2).mean()

    derived = away()
    monkeypatch.setitem(MAKERS, mean_of.MeanOf, mean_of.white_mean)
    assert derived == pytest.approx(away(), rel=0.05)


def of_halves(n, seed=0):
    """Curves about 50 on [10, 12], and responses to their first third."""
    s, (x, _, _) = 10 + 2 * GRID, curves(n, seed)
    weights = quadrature_weights(s) * (s < 10 + 2 / 3)
    truth = np.outer(x @ weights, 1 + GRID)
    return s, 50 + 5 * x, truth, truth + 0.2 * np.random.default_rng(seed).normal(size=truth.shape)


def test_its_name_works_in_formulas_and_coefficients_are_in_units(monkeypatch):
    monkeypatch.setitem(terms.KINDS, "parts_of", "parts_of.PartsOf")
    assert terms.parts_of("X", parts=6).parts == 6
    s, x, _, y = of_halves(6000)
    privacy = Privacy(4.0, 1e-6, n=6000, random_state=0)
    private = {"privacy": privacy, "bounds": {"X": (30, 70), "Y": (-6, 6)}}
    for settings, close in (({}, 0.01), (private, 0.06)):
        model = FunctionalRegression("Y ~ parts_of(X)", **settings).fit({"X": x, "Y": y}, grids={"X": s, "Y": GRID})
        first, last = model.coef("parts_of(X)", s=[10.2, 11.9], t=GRID)["value"].to_numpy().reshape(2, -1)
        np.testing.assert_allclose(first, (1 + GRID) / 5, atol=close)
        np.testing.assert_allclose(last, 0, atol=close)


def test_it_is_private_with_a_response_that_is_a_number_and_planned():
    s, x, truth, _ = of_halves(3000)
    y = truth.mean(axis=1)
    model = ScalarRegression(
        [parts_of.PartsOf("X")],
        privacy=Privacy(2.0, 1e-6, n=3000, random_state=0),
        bounds={"X": (30, 70), "y": (-3, 3)},
    )
    model.fit({"X": x, "y": y}, grids={"X": s})
    assert 1 - ((model.predict({"X": x}) - y) ** 2).mean() / y.var() > 0.95


def test_it_multiplies_columns_too():
    s, x, truth, _ = of_halves(4000)
    g = np.random.default_rng(0).choice(["a", "b"], 4000)
    y = np.where(g == "a", 1.0, -1.0)[:, None] * truth
    spec = terms.by("g", parts_of.PartsOf("X"))
    bounds = {"X": (30, 70), "g": ["a", "b"], "Y": (-6, 6)}
    model = FunctionalRegression([spec], privacy=Privacy(4.0, 1e-6, n=4000, random_state=0), bounds=bounds)
    model.fit({"X": x, "g": g, "Y": y}, grids={"X": s, "Y": GRID})
    assert 1 - ((model.predict({"X": x, "g": g}) - y) ** 2).mean() / y.var() > 0.9


@pytest.mark.parametrize("delta", [1e-6, None])
def test_neighbouring_data_cost_at_most_the_budget(delta):
    n = 60
    x, y, _ = curves(n, 3)
    x[7], y[7] = 1e6, -1e6
    keep = np.arange(n) != 7

    def run(data, noise):
        fitted = FunctionalRegression([parts_of.PartsOf("X")], **PRIVACY | {"privacy": Privacy(8.0, delta, n=n)})
        with drawing_from(fitted, noise):
            fitted.fit(data, grids=GRIDS)
        return {"attributes": vars(fitted), "predictions": fitted.predict_interval({"X": np.ones((2, GRID.size))})}

    both = {"X": x, "Y": y}, {"X": x[keep], "Y": y[keep]}
    result = replay_audit([Neighbours("outside", run, *both, Budget(8.0, delta).total)])
    assert result.passed, str(result)
    assert result.finished == 1 and 0 < result.changes.max() <= 1


@pytest.mark.usefixtures("four_cohorts")
def test_plans_know_its_curves_by_their_grid(monkeypatch):
    monkeypatch.setitem(terms.KINDS, "parts_of", "parts_of.PartsOf")
    found = plan("Y ~ parts_of(X)", n=1000, epsilon=1.0, delta=1e-6, bounds={"X": (-4, 4), "Y": (-6, 6)}, grids=GRIDS)
    assert "parts_of(X)" in str(found)
