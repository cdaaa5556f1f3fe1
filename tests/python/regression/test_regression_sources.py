"""What a fit is given: chunks that change between passes, parts of a grid that nobody observed."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp import AdditiveFunctionOnFunction, simulate_affr
from fdadp.errors import InputError


@pytest.fixture(scope="module")
def arrays():
    data = simulate_affr(2, 90, 0, n_points=25)
    return data.X.data_matrix[..., 0], data.Y.data_matrix[..., 0]


def source(*passes):
    """A source of chunks that gives other pairs on each pass."""
    at = iter(passes)

    def read():
        x, y = next(at)
        return iter([(x[:40], y[:40]), (x[40:], y[40:])])

    return read


def test_another_number_of_curves_on_the_second_pass(arrays):
    x, y = arrays
    with pytest.raises(InputError, match="same rows each time they are read, got 90 rows at first and 80 later"):
        AdditiveFunctionOnFunction().fit_chunks(source((x, y), (x[:80], y[:80])))


@pytest.mark.parametrize("which", ["X", "Y"])
def test_other_values_on_the_second_pass(arrays, which):
    x, y = arrays
    rng = np.random.default_rng(0)
    other = (x + 0.1 * rng.uniform(size=x.shape), y) if which == "X" else (x, y + 0.1 * rng.uniform(size=y.shape))
    with pytest.raises(InputError, match=f"same rows each time they are read, got a sum of (the response )?{which} of"):
        AdditiveFunctionOnFunction().fit_chunks(source((x, y), other))


def test_another_order_is_the_same_curves(arrays):
    x, y = arrays
    order = np.random.default_rng(1).permutation(90)
    again = AdditiveFunctionOnFunction().fit_chunks(source((x, y), (x[order], y[order])))
    np.testing.assert_allclose(again.predict(x), AdditiveFunctionOnFunction().fit(x, y).predict(x), rtol=1e-6)


@pytest.mark.parametrize("missing", ["smooth", "fpca"])
@pytest.mark.parametrize("which", ["X", "Y"])
@pytest.mark.parametrize(
    ("columns", "text"),
    [
        (slice(19, None), r"at \[19, 24\] \(6 of 25 points\)"),
        (slice(0, 3), r"at \[0, 2\] \(3 of 25 points\)"),
        ([7, 12, 13], r"at 7, \[12, 13\] \(3 of 25 points\)"),
    ],
)
def test_a_region_that_nobody_observed_is_refused(arrays, missing, which, columns, text):
    data = {"X": arrays[0].copy(), "Y": arrays[1].copy()}
    data[which][:, columns] = np.nan
    with pytest.raises(InputError, match=f"{which} must be observed by at least one curve.*{text}"):
        AdditiveFunctionOnFunction(missing=missing).fit(data["X"], data["Y"], s=np.arange(25.0), t=np.arange(25.0))


def test_one_curve_there_is_enough(arrays):
    x, y = arrays[0].copy(), arrays[1]
    x[1:, 20:] = np.nan
    model = AdditiveFunctionOnFunction(missing="smooth").fit(x, y)
    assert np.isfinite(model.predict(x)).all()
