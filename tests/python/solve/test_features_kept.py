"""Features of the training rows: computed once in a fit, or in blocks where they take much memory; one result."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp import FunctionalRegression, terms
from fdadp.solve.fit import observations
from fdadp.terms.curves.functional_linear import Integral
from fdadp.terms.records import Records

N = 60
S, T = np.linspace(0, 1, 21), np.linspace(0, 1, 14)
FORMULA = [terms.ff("X"), terms.ff("W", limits="s<=t", k=(5, 5)), terms.linear("z")]


def data(seed=0):
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=(N, 4)) @ np.stack([np.cos(k * np.pi * S) for k in range(4)]), rng.normal(size=N)
    return {
        "X": x,
        "W": x[::-1] ** 2,
        "z": z,
        "Y": x[:, :14] * np.sin(T) + z[:, None] * T + 0.3 * rng.normal(size=(N, 14)),
    }


def fitted(**beside):
    return FunctionalRegression(FORMULA, progress=False).fit(data(), grids={"X": S, "W": S, "Y": T}, **beside)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_fit_is_the_same_with_and_without_them(monkeypatch, weighted):
    beside = {"weights": np.linspace(1, 2, N)} if weighted else {}
    kept = fitted(**beside)
    monkeypatch.setattr(observations, "FEATURES", 0)
    again = fitted(**beside)
    np.testing.assert_allclose(again.predict(data(1)), kept.predict(data(1)), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(again.residuals_, kept.residuals_, rtol=1e-7, atol=1e-7)


def test_each_is_computed_once(monkeypatch):
    rows, own = [], Integral.features

    def counted(self, records: Records, t=None):
        rows.append(records.n)
        return own(self, records, t)

    monkeypatch.setattr(Integral, "features", counted)
    FunctionalRegression([terms.ff("X")], progress=False).fit(data(), grids={"X": S, "Y": T})
    assert rows == [N]
