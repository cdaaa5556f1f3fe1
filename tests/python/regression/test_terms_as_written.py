"""Terms by the names that formulas give them, products of curves with columns, and hints for other programs' words."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp import FunctionalRegression, ScalarRegression, terms
from fdadp.errors import InputError

S = np.linspace(0, 1, 21)


@pytest.fixture(scope="module")
def data():
    draw = np.random.default_rng(0)
    x = draw.normal(size=(80, 4)) @ np.array([np.cos(k * np.pi * S) for k in range(4)])
    g, z = np.where(np.arange(80) % 2, "b", "a"), draw.normal(size=80)
    slope = np.where(g == "b", 2.0, -2.0)
    y = slope * (x @ np.sin(np.pi * S)) / 20 + 0.1 * draw.normal(size=80)
    return {"X": x, "g": g, "z": z, "y": y, "Y": y[:, None] * S + 0.1 * draw.normal(size=x.shape)}


def test_names_are_those_of_the_formula(data):
    model = FunctionalRegression("Y ~ C(g) + C(g):ff(X) + X").fit(data, grids={"X": S, "Y": S})
    for written, name in (("C(g)", "g"), ("C( g )", "g"), ("C(g):ff(X)", "ff(X):g"), ("X", "concurrent(X)")):
        assert model.coef(written).equals(model.coef(name))
        assert model.bands(written).equals(model.bands(name))
    with pytest.raises(InputError, match=r"name must be a term of the model .*, got 'C\(h\)'"):
        model.coef("C(h)")


@pytest.mark.parametrize("kind", ["lf", "af"])
def test_curves_by_a_column_are_their_interaction(data, kind):
    by = ScalarRegression(f"y ~ C(g) + {kind}(X, by='g')").fit(data, grids={"X": S})
    product = ScalarRegression(f"y ~ C(g) + C(g):{kind}(X)").fit(data, grids={"X": S})
    assert by.r2_ > 0.8
    if kind == "lf":
        np.testing.assert_allclose(by.fitted_values_, product.fitted_values_, atol=1e-6)
    numbers = ScalarRegression(f"y ~ z + {kind}(X, by='z')").fit(data, grids={"X": S})
    times = ScalarRegression(f"y ~ z + z:{kind}(X)").fit(data, grids={"X": S})
    np.testing.assert_allclose(numbers.fitted_values_, times.fitted_values_, atol=1e-6)


def test_surfaces_of_ranks_and_of_periods(data):
    plain = ScalarRegression([terms.af("X")]).fit(data, grids={"X": S})
    skewed = data | {"X": np.exp(2 * data["X"])}
    ranks = [
        ScalarRegression([terms.af("X", x_transform="quantile")]).fit(d, grids={"X": S}).fitted_values_
        for d in (data, skewed)
    ]
    np.testing.assert_allclose(*ranks, atol=1e-5)
    round_ = ScalarRegression([terms.af("X", period=1.05)]).fit(data, grids={"X": S})
    assert not np.allclose(round_.fitted_values_, plain.fitted_values_)


@pytest.mark.parametrize("name", ["bs", "ns", "poly"])
def test_smooths_of_other_programs(data, name):
    with pytest.raises(InputError, match=rf"got {name}\(\); did you mean s\(\)\?"):
        ScalarRegression(f"y ~ {name}(z)").fit(data)
