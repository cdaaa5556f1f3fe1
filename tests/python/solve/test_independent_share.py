"""How many points errors along a curve are worth, by Box's effective number, as a share of the points."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp.solve.errors.leave_one_out_residuals import independent_share

T = np.linspace(0, 1, 25)
COVARIANCE = np.exp(-(np.subtract.outer(T, T) ** 2) / 0.02) + 0.1 * np.eye(T.size)
SHARE = np.trace(COVARIANCE) ** 2 / np.trace(COVARIANCE @ COVARIANCE) / T.size


def drawn(n, seed, covariance=COVARIANCE):
    return np.random.default_rng(seed).normal(size=(n, T.size)) @ np.linalg.cholesky(covariance).T


@pytest.mark.parametrize("covariance", [COVARIANCE, np.eye(T.size)], ids=["smooth", "white"])
def test_it_is_that_of_the_covariance_whatever_the_scale_of_curves(covariance):
    truth = np.trace(covariance) ** 2 / np.trace(covariance @ covariance) / T.size
    left, seen = drawn(2000, 0, covariance), np.ones((2000, T.size), dtype=bool)
    assert independent_share(left, seen, 0.0) == pytest.approx(truth, rel=0.03)
    assert independent_share(1e6 * left, seen, 0.0) == pytest.approx(independent_share(left, seen, 0.0))
    scaled = left * np.random.default_rng(1).standard_t(5, size=(2000, 1))
    assert independent_share(scaled, seen, 0.0) == pytest.approx(truth, rel=0.15)


def test_of_white_errors_it_is_one_also_with_gaps():
    draw = np.random.default_rng(2)
    seen = draw.random((1000, T.size)) < 0.5
    assert independent_share(np.where(seen, draw.normal(size=seen.shape), 0.0), seen, 0.0) == pytest.approx(1, rel=0.05)


def test_what_a_fit_took_away_is_no_dependence():
    """Residuals of least squares at each point go together from curve to curve, which is not along the curve."""
    n, q, found = 30, 10, []
    seen = np.ones((n, T.size), dtype=bool)
    for seed in range(200):
        draw = np.random.default_rng([seed, 3])
        basis = np.linalg.qr(draw.normal(size=(n, q)))[0]
        errors = draw.normal(size=(n, T.size))
        left = errors - basis @ (basis.T @ errors)
        found.append([independent_share(left, seen, edf) for edf in (q * T.size, 0.0)])
    told, untold = 1 / np.mean(1 / np.array(found), axis=0)
    assert told == pytest.approx(1, abs=0.12)
    assert untold < 0.82


def test_what_cannot_be_told_is_nan():
    seen = np.ones((5, 4), dtype=bool)
    assert np.isnan(independent_share(np.zeros((5, 4)), seen, 0.0))
    assert np.isnan(independent_share(np.ones((1, 4)), seen[:1], 0.0))
    alone = np.eye(4, dtype=bool)
    assert np.isnan(independent_share(np.where(alone, 1.0, 0.0), alone, 0.0))
