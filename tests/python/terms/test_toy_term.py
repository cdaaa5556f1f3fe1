"""A term written by following docs/extend/term.md alone: fitted, predicted, saved, and private."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from fdadp import Privacy
from fdadp.functional.quadrature import quadrature_weights
from fdadp.privacy import rowwise_matmul
from fdadp.regression.eigen import EigenRegression
from fdadp.terms.base import Term

GRID = np.linspace(0, 1, 21)


@dataclass(frozen=True)
class MeanOf(Term):
    """The mean of a curve over its domain, times a function of t."""

    column: str = "X"

    @property
    def n_features(self):
        return 1

    def rows(self, x):
        weights = quadrature_weights((x.grid - x.grid[0]) / (x.grid[-1] - x.grid[0]))
        return rowwise_matmul(x.values, weights[:, None])


def curves(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1)) + 0.5 * rng.normal(size=(n, 3)) @ np.sin(np.arange(1, 4)[:, None] * np.pi * GRID)
    truth = (x @ quadrature_weights(GRID))[:, None] * (1 + GRID)
    return x, truth + 0.2 * rng.normal(size=truth.shape), truth


PRIVACY = {"privacy": Privacy(2.0, 1e-6, n=1000, random_state=1), "bounds": {"X": (-4, 4), "Y": (-6, 6)}}


@pytest.mark.parametrize(("settings", "least"), [({}, 0.999), (PRIVACY, 0.95)], ids=["plain", "private"])
def test_fits_predicts_and_saves(tmp_path, settings, least):
    (x, y, _), (new, _, truth) = curves(1000), curves(200, 1)
    model = EigenRegression(terms=[MeanOf()], **settings).fit({"X": x}, y, s=GRID, t=GRID)
    predicted, se = model.predict({"X": new}), model.predict_se({"X": new})
    assert 1 - ((predicted - truth) ** 2).sum() / ((truth - truth.mean(axis=0)) ** 2).sum() > least
    assert (np.abs(predicted - truth) < 4 * se).mean() > 0.9
    loaded = EigenRegression.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.predict({"X": new}), predicted)
    np.testing.assert_array_equal(loaded.predict_interval({"X": new}), model.predict_interval({"X": new}))
    assert (model.ledger_ is not None and model.ledger_.private) == bool(settings) == (loaded.privacy_ is not None)
