"""Shares of noise add up to the promised one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fdadp.errors import PrivacyError
from fdadp.privacy import Budget, Cohort, OpenDPNoise
from fdadp.privacy.noise.distributed import DistributedNoise, NextRound, distributed_cost


@settings(max_examples=40, deadline=None)
@given(honest=st.integers(1, 50), size=st.integers(1, 500), amount=st.floats(1e-4, 5.0))
def test_honest_shares_cost_what_was_allowed(honest: int, size: int, amount: float) -> None:
    noise = DistributedNoise(owners=honest + 1, honest=honest, n_max=1000)
    sampler = noise.prepare("gaussian", size, 2.0**24, amount)
    assert sampler.spent <= amount
    assert sampler.spent == pytest.approx(amount, rel=1e-6)
    share_sd = sampler.sd / math.sqrt(honest + 1)
    assert distributed_cost(2.0**24, share_sd, honest, size) <= amount
    assert distributed_cost(2.0**24, share_sd, max(honest - 1, 1), size) >= amount * (1 - 1e-6)


def test_cost_of_sums_of_discrete_gaussians_counts_their_difference_from_one() -> None:
    """σ = 1: τ = 10 Σ_k exp(-2π² k/(k + 1)); the second bound of the two is the smaller one for few entries."""
    tau = 10 * (math.exp(-(math.pi**2)) + math.exp(-4 * math.pi**2 / 3))
    whole = 1 / math.sqrt(3)
    expected = min(math.sqrt(whole**2 + tau / 2), whole + tau) ** 2 / 2
    assert distributed_cost(1.0, 1.0, 3, 1) == pytest.approx(expected, rel=1e-12)
    assert distributed_cost(1.0, 1.0, 3, 1) > whole**2 / 2


def test_shares_add_up_to_the_right_law() -> None:
    """Mean 0 and the variance of the ledger, from OpenDP's sampler."""
    sums = np.zeros(4000, dtype=np.int64)
    sd = 0.0
    for _ in range(4):
        sampler = DistributedNoise(owners=4, honest=2, n_max=10).prepare("gaussian", 4000, 1024.0, 0.5)
        with pytest.raises(NextRound) as waits:
            sampler(np.zeros(4000, dtype=np.int64))
        sums += waits.value.share
        sd = sampler.sd
    central = OpenDPNoise().prepare("gaussian", 4000, 1024.0, 0.5).sd
    assert sd == pytest.approx(central * math.sqrt(2), rel=1e-6)  # 4 shares where 2 would do
    assert abs(sums.mean()) < 5 * sd / math.sqrt(4000)
    assert sums.std() == pytest.approx(sd, rel=5 / math.sqrt(2 * 4000))


@pytest.mark.parametrize(
    ("release", "match"),
    [
        (lambda c: c.select(lambda r: r[0], share=0.5, name="s"), "cannot be added in shares"),
        (lambda c: c.principal_directions(lambda r: r[0], 1, clip=1.0, share=0.5, name="s"), "cannot be added"),
        (lambda c: c.wishart_moment(lambda r: r[0], clip=1.0, share=1.0, name="s"), "cannot be added in shares"),
        (
            lambda c: c.perturbed_minimum(
                lambda r: (r[0], r[0][:, :1]), loss="logistic", ridge=1.0, clip=1.0, share=1.0, name="m"
            ),
            "a minimiser is no sum",
        ),
    ],
)
def test_what_is_no_sum_is_refused_before_a_read(release: Any, match: str) -> None:
    noise = DistributedNoise(owners=3, honest=2, n_max=100)
    cohort = Cohort(np.zeros((9, 2)), budget=Budget(1.0, 1e-6), noise=noise)
    with pytest.raises(PrivacyError, match=match):
        release(cohort)
    assert cohort.reads == 0


def test_noise_says_what_is_wrong() -> None:
    with pytest.raises(PrivacyError, match="honest must be from 1 to the number of owners, 3, got 4"):
        DistributedNoise(owners=3, honest=4, n_max=10)
    with pytest.raises(PrivacyError, match="n_max must be at least 1"):
        DistributedNoise(owners=3, honest=2, n_max=0)
    with pytest.raises(PrivacyError, match="n_max must be smaller"):
        DistributedNoise(owners=3, honest=2, n_max=2**40).prepare("gaussian", 1, 2.0**24, 1.0)
    with pytest.raises(PrivacyError, match="shares of at least 64 lattice steps"):
        DistributedNoise(owners=3, honest=2, n_max=10).prepare("gaussian", 1, 1.0, 1.0)
    known = DistributedNoise(owners=3, honest=2, n_max=10, totals=[np.zeros(2, np.int64)])
    with pytest.raises(PrivacyError, match="total 0 must have 3 entries, got 2"):
        known.prepare("gaussian", 3, 1024.0, 0.5)
