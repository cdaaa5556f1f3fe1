"""Many irregular curves on one grid."""

from __future__ import annotations

import numpy as np
import pytest
from skfda.representation.irregular import FDataIrregular

from fdadp import FunctionalRegression, terms
from fdadp.functional.tables import curve_inputs as irregular
from fdadp.functional.tables.curve_inputs import read_column


def curves(n, points=10, seed=0):
    """Lines through 0 with a slope each, seen at random points."""
    rng = np.random.default_rng(seed)
    slope = rng.normal(size=n)
    at = np.sort(rng.random((n, points)), axis=1)
    at[0, [0, -1]] = 0.0, 1.0
    data = FDataIrregular(np.arange(n) * points, at.reshape(-1, 1), (slope[:, None] * at).reshape(-1, 1))
    return data, slope


def test_few_curves_keep_their_points():
    data, _ = curves(20)
    assert irregular.binned(data) is None
    assert read_column(data, "X").values.grid.size == 200


def test_points_are_rounded_and_values_averaged(monkeypatch):
    monkeypatch.setattr(irregular, "CELLS", 100)
    data, slope = curves(20)
    found = read_column(data, "X").values
    assert found.values.shape == (20, irregular.POINTS)
    expected = slope[:, None] * found.grid
    seen = ~np.isnan(found.values)
    assert (
        np.abs(found.values - expected)[seen] <= np.abs(np.broadcast_to(slope[:, None], seen.shape))[seen] / 399
    ).all()
    near = FDataIrregular(
        [0, 4], np.array([[0.0], [0.5], [0.501], [1.0], [0.0]]), np.array([[0.0], [1], [3], [4], [5]])
    )
    monkeypatch.setattr(irregular, "CELLS", 1)
    averaged = irregular.binned(near).values
    assert averaged[0, 100] == 2
    assert np.isnan(averaged[1, 1:]).all()


def test_ten_thousand_sparse_covariates():
    """On the union of their points they would take 8 GB."""
    data, slope = curves(10_000)
    y = slope[:, None] * np.linspace(0, 1, 11) + np.random.default_rng(1).normal(size=(10_000, 11))
    model = FunctionalRegression([terms.ff("X")], missing="pace").fit({"X": data, "Y": y})
    new, own = curves(50, points=4, seed=2)
    predicted = np.asarray(model.predict({"X": new}))
    assert np.corrcoef(predicted[:, -1], own)[0, 1] == pytest.approx(1, abs=0.01)
