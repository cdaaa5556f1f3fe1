"""sff at smoothing parameters 10¹⁵ apart: normal equations keep the digits that a QR of all rows keeps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import qr, solve_triangular

from fdadp import FunctionalRegression, terms
from fdadp.functional.tables.curve_sample import Curves
from fdadp.terms.records import Records

S, T = np.linspace(0, 1, 25), np.linspace(0, 1, 21)


@pytest.mark.parametrize("smoothing", [[1e3, 1e-2, 1e-4, 1e-6], [1e10, 1e-5, 1e-5, 1e-5], [1e8, 1e7, 1e-8, 1e-7]])
def test_beside_qr_of_the_long_form(smoothing):
    """The basis holds nothing that the data do not identify: what is linear in s alone is the intercept's."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3)) @ np.stack([np.ones(25), np.sin(3 * S), np.cos(3 * S)])
    y = np.sin(x) @ np.outer(S, T) / 25 + 0.1 * rng.normal(size=(40, 21))
    model = FunctionalRegression([terms.sff("X")], smoothing=smoothing).fit({"X": x, "Y": y}, grids={"X": S, "Y": T})
    form = model.fitted_.fit.form
    rows = form.rows(Records(40, {"X": Curves(x, S)})).reshape(y.size, -1)
    penalty = smoothing @ form.stacked_penalties
    stacked = np.vstack((rows, np.diag(np.sqrt(penalty))[penalty > 0]))
    scale = 1 / np.sqrt((stacked**2).sum(axis=0))
    q, r, order = qr(stacked * scale, mode="economic", pivoting=True)
    coefficients = np.empty(form.size)
    coefficients[order] = solve_triangular(r, q[: y.size].T @ y.ravel())
    expected = (rows @ (coefficients * scale)).reshape(y.shape)
    assert np.abs(model.fitted_values_ - expected).max() < 1e-11 * np.abs(expected).max()
