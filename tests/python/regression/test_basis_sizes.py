"""The default sizes of the bases: by n and the grid alone, the same from chunks, and harmless where they are large."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp import AdditiveFunctionOnFunction, simulate_affr
from fdadp.errors import InputError
from fdadp.functional.metrics import rmspe
from fdadp.terms.additive_surface import basis_sizes

BOTH = ("auto", "auto")


@pytest.mark.parametrize(
    ("n", "sizes"),
    [(3, (7, 7)), (10, (8, 7)), (35, (10, 7)), (100, (12, 7)), (200, (14, 8)), (1100, (20, 10)), (10**7, (20, 10))],
)
def test_sizes_by_n(n, sizes):
    assert basis_sizes(BOTH, n, 51, 3) == sizes
    assert basis_sizes(BOTH, n, 51, 2) == (sizes[0] - 1, sizes[1] - 1)  # the same intervals between knots


def test_they_never_fall_and_end_where_n_is_not_known():
    sizes = np.array([basis_sizes(BOTH, n, 101, 3) for n in range(1, 2000)])
    assert (np.diff(sizes, axis=0) >= 0).all()
    assert tuple(sizes[-1]) == basis_sizes(BOTH, None, 101, 3)


def test_a_short_grid_and_given_sizes_are_kept():
    assert basis_sizes(BOTH, 5000, 12, 3) == (20, 7)
    assert basis_sizes(("auto", 9), 100, 51, 3) == (12, 9)
    assert basis_sizes((5, "auto"), 5000, 51, 3) == (5, 10)


@pytest.mark.parametrize("n", [60, 1200])
@pytest.mark.parametrize("known", [True, False])
def test_chunks_get_the_sizes_of_all_curves(n, known):
    data = simulate_affr(2, n, 0, n_points=21)
    x, y = data.X.data_matrix[..., 0], data.Y.data_matrix[..., 0]
    reads = []

    def source():
        reads.append(1)
        return ((x[k : k + 50], y[k : k + 50]) for k in range(0, n, 50))

    x_range = (float(x.min()), float(x.max())) if known else None
    chunked = AdditiveFunctionOnFunction(n_components=2).fit_chunks(source, x_range=x_range)
    whole = AdditiveFunctionOnFunction(n_components=2).fit(x, y)
    assert chunked.coef_.shape == whole.coef_.shape
    np.testing.assert_allclose(chunked.predict(x[:5]), whole.predict(x[:5]), rtol=1e-6, atol=1e-6)
    assert len(reads) == (2 + (n < 1100) if known else 2)  # the first chunk alone, then all


@pytest.mark.parametrize("n", [20, 50, 200])
@pytest.mark.parametrize("scenario", [1, 2, 3])
def test_errors_are_no_larger_than_with_few_functions(scenario, n):
    errors = {}
    for name, sizes in {"auto": {}, "few": {"n_basis_x": 7, "n_basis_s": 7}}.items():
        errors[name] = []
        for seed in range(6):
            train, new = simulate_affr(scenario, n, seed), simulate_affr(scenario, 100, seed + 1000)
            fitted = AdditiveFunctionOnFunction(progress=False, **sizes).fit(train.X, train.Y)
            x = np.clip(new.X.data_matrix[..., 0], *fitted.x_range_)
            predicted = fitted.predict(x, s=np.linspace(0, 1, 51)).data_matrix[..., 0]
            errors[name].append(rmspe(new.mean_function, predicted))
    assert np.mean(errors["auto"]) < 1.05 * np.mean(errors["few"])


def test_what_is_no_size():
    x, y = np.zeros((9, 20)), np.zeros((9, 20))
    with pytest.raises(InputError, match="n_basis_s must be 'auto' or a number of B-splines, got 'many'"):
        AdditiveFunctionOnFunction(n_basis_s="many").fit(x, y)
    with pytest.raises(InputError, match="penalty_order must be at least 1 and below n_basis_x, got 7"):
        AdditiveFunctionOnFunction(penalty_order=7).fit(x, y)
