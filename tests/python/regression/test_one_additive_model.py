"""``AdditiveFunctionOnFunction`` and ``sff`` on eigenfunctions are one model: with defaults they explain the same."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp import AdditiveFunctionOnFunction, FunctionalRegression, simulate_affr, terms


@pytest.mark.filterwarnings("ignore::fdadp.errors.ExtrapolationWarning")
@pytest.mark.parametrize("scenario", [1, 2, 3])
def test_with_defaults_both_explain_the_same(scenario):
    train, new = (simulate_affr(scenario=scenario, n=n, seed=seed) for n, seed in ((300, 1), (500, 9)))
    one = AdditiveFunctionOnFunction().fit(train.X, train.Y)
    other = FunctionalRegression([terms.sff("X")], response_basis="eigen").fit({"X": train.X, "Y": train.Y})
    assert abs(one.score(new.X, new.Y) - other.score({"X": new.X, "Y": new.Y})) < 0.01


def test_at_the_same_sizes_they_are_equal():
    data = simulate_affr(scenario=2, n=100, seed=3)
    one = AdditiveFunctionOnFunction(n_basis_x=8, n_basis_s=7, n_components=2).fit(data.X, data.Y)
    term = terms.sff("X", k=(5, 7, 8))
    other = FunctionalRegression([term], response_basis="eigen", n_components=2).fit({"X": data.X, "Y": data.Y})
    np.testing.assert_allclose(one.predict(data.X).data_matrix, other.predict({"X": data.X}).data_matrix, atol=1e-7)
