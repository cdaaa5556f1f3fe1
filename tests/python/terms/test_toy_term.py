"""A term written by following docs/extend/term.md alone: fitted, predicted, saved, and private."""

from __future__ import annotations

from pathlib import Path

import mean_of
import numpy as np
import pytest

from fdadp import FunctionalRegression, Privacy
from fdadp.functional.quadrature import quadrature_weights
from fdadp.private.whitened.registry import MAKERS

GRID = np.linspace(0, 1, 21)


def test_it_is_one_file_of_sixty_lines_at_most():
    assert len(Path(mean_of.__file__).read_text(encoding="utf-8").splitlines()) <= 60


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
    monkeypatch.setitem(MAKERS, mean_of.MeanOf, mean_of.white_mean)
    (x, y, _), (new, _, truth) = curves(1000), curves(200, 1)
    model = FunctionalRegression([mean_of.MeanOf("X")], **settings).fit({"X": x, "Y": y}, grids={"X": GRID, "Y": GRID})
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
