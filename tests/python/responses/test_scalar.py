"""Numbers as responses: the same fit, on one output."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp.errors import InputError
from fdadp.functional.curves import Curves
from fdadp.functional.records import Records
from fdadp.responses.scalar import Scalar
from fdadp.solve.fitted import Fitted
from fdadp.solve.least_squares import fit_scores
from fdadp.solve.sums import add_up
from fdadp.terms.functional_additive import surface_on
from r_bridge.affr import AffrFits, recorded_fit, smoothing_parameters

pytestmark = pytest.mark.filterwarnings("ignore::fdadp.errors.ExtrapolationWarning")

GRID = np.linspace(0, 1, 21)


def fit_scalar(x, grid, y, smoothing, sizes=(7, 7)):
    records, response = Records(len(x), {"X": Curves(x, grid)}), Scalar.curves(y)
    term = surface_on("X", "X", grid, (x.min(), x.max()), sizes, (2, 2), ("k", "k", "period"), centred=True)
    sums = add_up([term], [(records, response.values)], response.grid)
    given = smoothing if isinstance(smoothing, str) else np.reshape(smoothing, (1, 2))
    return Fitted.of(fit_scores(sums, Scalar().fixed(sums.n, sums.y.mean, sums.y.scatter, sums.t), given))


@pytest.mark.parametrize("case", ["affr_canadian", "affr_dti2", "affr_lip"])
def test_a_number_is_fitted_as_mgcv_fits_it(reference, case):
    """``gam(score ~ te(X, S, by = L))`` at mgcv's smoothing parameters: values, standard errors, edf, variance."""
    record = reference(case)
    ours, i = AffrFits.of_case(record), record["input"]
    train, test = (i[which].astype(int) - 1 for which in ("train", "test"))
    for k in range(ours.n_responses):
        fit = recorded_fit(record["output"]["fits"][k], "fixed1")
        fitted = fit_scalar(i["X"][train], i["s"], i["scores"][train][:, k], smoothing_parameters(fit))
        new = Records(len(test), {"X": Curves(i["X"][test], i["s"])})
        size = np.abs(fit["fitted"]).max()
        np.testing.assert_allclose(fitted.predict(new)[0][:, 0], fit["predicted"], rtol=1e-9, atol=1e-10 * size)
        np.testing.assert_allclose(fitted.standard_errors(new)[0][:, 0], fit["predicted_se"], rtol=1e-9)
        np.testing.assert_allclose(fitted.edf[0], fit["edf_total"][0], rtol=1e-9)
        np.testing.assert_allclose(fitted.residual.variance[0], fit["sig2"][0], rtol=1e-9)


def test_intervals_of_numbers_cover():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 1)) + rng.normal(size=(600, 21)).cumsum(axis=1) * 0.2
    y = np.sin(x).mean(axis=1) + 0.1 * rng.normal(size=600)
    fitted = fit_scalar(x[:400], GRID, y[:400], "reml")
    low, high, _ = fitted.interval(Records(200, {"X": Curves(x[400:], GRID)}), 0.9)
    assert low.shape == (200, 1)
    assert 0.84 < ((low[:, 0] <= y[400:]) & (y[400:] <= high[:, 0])).mean() < 0.96


def test_numbers_have_one_dimension():
    with pytest.raises(InputError, match=r"y must be one-dimensional, one number a curve, got shape \(3, 2\)"):
        Scalar.curves(np.zeros((3, 2)))
