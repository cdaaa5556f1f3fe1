"""Posterior means of released values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import truncnorm

from fdadp.rounds.posterior_means import above_zero


@pytest.mark.parametrize("at", [-1e12, -1e8, -1e5, -1e3, -30.0, -5.0, 0.0, 2.0, 1e3, 1e9])
def test_what_is_above_zero_is_so_however_little_the_law_says_of_it(at):
    """Far below zero two exponents of some 1e17 were taken off each other: of (-1, 1e-18) it said 4e46."""
    wanted = truncnorm(-at, np.inf).mean() + at if -1e3 < at < 1e3 else at if at > 0 else -1 / at
    np.testing.assert_allclose(above_zero(3 * at, 9.0), 3 * wanted, rtol=1e-5)
    np.testing.assert_allclose(above_zero(at, 1.0), wanted, rtol=1e-5)
