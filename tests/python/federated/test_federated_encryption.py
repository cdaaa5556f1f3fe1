"""Encrypted sums are exact integers, and shares of noise add up to the promised one."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fdadp.errors import InputError, PrivacyError
from fdadp.privacy import Budget, Cohort, OpenDPNoise
from fdadp.privacy.noise.distributed import DistributedNoise, NextRound, distributed_cost

pytest.importorskip("phe", reason="phe and gmpy2 are not installed: pip install '.[federated]'")
pytest.importorskip("gmpy2", reason="phe and gmpy2 are not installed: pip install '.[federated]'")


from fdadp.federated.paillier import PublicKey, Randomness, SecretKey, add, ciphertexts, pack, slots, unpack

# ---------------------------------------------------------------- packing and encryption


def extremes(width: int) -> st.SearchStrategy[int]:
    """Totals that fit their slot, the ends of their range among them."""
    half = 2 ** (width - 1)
    ends = [0, 1, -1, half - 1, -half, half - 2, 1 - half]
    return st.one_of(st.sampled_from(ends), st.integers(-half, half - 1))


@settings(max_examples=80, deadline=None)
@given(data=st.data(), width=st.integers(8, 61), owners=st.integers(2, 1000), bits=st.sampled_from([2048, 3072]))
def test_packed_totals_are_exact(data: Any, width: int, owners: int, bits: int) -> None:
    """Whatever the owners' shares are, of 2 to 1000 owners; with the smallest and the largest modulus of a size."""
    size, owners = data.draw(st.integers(1, 60)), min(owners, 2 ** (width - 1) - 1)  # a slot holds their number
    totals = data.draw(st.lists(extremes(width), min_size=size, max_size=size))
    n = data.draw(st.sampled_from([2 ** (bits - 1) + 1, 2**bits - 1]))
    seed = data.draw(st.integers(0, 2**32 - 1))
    largest = 2**62 // owners  # of a share: of this size in turns of both signs, so that every partial sum is an int64
    shares = np.random.default_rng(seed).integers(-largest, largest, size=(owners - 1, size))
    last = [t - int(c) for t, c in zip(totals, shares.sum(axis=0), strict=True)]
    packed = [pack(share, width, n) for share in (*shares, np.array(last, dtype=np.int64))]
    assert all(len(p) == ciphertexts(size, width, bits) for p in packed)
    assert all(0 <= m < n for p in packed for m in p)
    summed = [sum(column) % n for column in zip(*packed, strict=True)]
    count, values = unpack(summed, size, width, n)
    assert (count, values.tolist()) == (owners, totals)


@pytest.mark.parametrize("width", range(8, 62))
@pytest.mark.parametrize("owners", [2, 1000])
def test_every_slot_at_the_end_of_its_range(width: int, owners: int) -> None:
    half, size = 2 ** (width - 1), 200
    owners = min(owners, half - 1)
    for n in (2**2047 + 1, 2**2048 - 1):
        for total in (-half, half - 1):
            shares = [total // owners] * (owners - 1)
            shares.append(total - sum(shares))
            packed = [pack(np.full(size, v), width, n) for v in set(shares)]
            times = [shares.count(v) for v in set(shares)]
            summed = [
                sum(t * m for t, m in zip(times, column, strict=True)) % n for column in zip(*packed, strict=True)
            ]
            count, values = unpack(summed, size, width, n)
            assert count == owners and set(values.tolist()) == {total}


@pytest.mark.parametrize("which", ["key", "large_key"])
def test_decrypted_sums_are_exact(which: str, request: pytest.FixtureRequest) -> None:
    """Negative, zero and extreme totals, of both key sizes, through encryption, addition and decryption."""
    secret: SecretKey = request.getfixturevalue(which)
    public, width = secret.public, 40
    edge = 2 ** (width - 1)
    totals = np.array([0, 1, -1, edge - 1, -edge, 12345, -67890] * 20, dtype=np.int64)
    rng = np.random.default_rng(0)
    first, second = (rng.integers(-(2**61), 2**61, size=len(totals)) for _ in range(2))
    shares = [first, second, totals - first - second]  # whatever the shares are: their sum counts
    randomness = Randomness(public)
    sent = [public.encrypt(pack(share, width, int(public.n)), randomness) for share in shares]
    summed = add(public, sent)
    assert all(map(public.valid, summed))
    count, values = unpack(secret.decrypt(summed), len(totals), width, int(public.n))
    assert (count, values.tolist()) == (3, totals.tolist())


def test_a_slot_more_than_full_shows_nothing_but_the_totals() -> None:
    """It is read wrongly then; the plaintext is still that of the totals, however they came about."""
    n, width = 2**2047 + 1, 20
    over, none = np.array([2 ** (width - 1), 5]), np.zeros(2, dtype=np.int64)
    summed = [
        [sum(c) % n for c in zip(pack(a, width, n), pack(b, width, n), strict=True)]
        for a, b in ((over, none), (over + 77, none - 77), (over - 2**40, none + 2**40))
    ]
    assert summed[0] == summed[1] == summed[2]
    assert unpack(summed[0], 2, width, n)[1].tolist() != over.tolist()


def test_packing_saves_what_it_should() -> None:
    size = 618 * 619 // 2  # 617 features and a constant
    width = math.ceil(math.log2(10 * 7797 * 2**24)) + 2
    assert ciphertexts(size, width, 2048) <= 5000
    assert slots(width, 2048) >= 30


def test_randomness_is_used_once_and_sums_are_randomised_again(key: SecretKey) -> None:
    public = key.public
    randomness = Randomness(public).prepare(4)
    assert randomness.left == 4
    a, b = public.encrypt([7, 7], randomness)
    assert randomness.left == 2
    assert a != b
    product = a * b % int(public.square)
    (summed,) = add(public, [[a], [b]])
    assert summed != product
    assert key.decrypt([summed, product]) == [14, 14]


def test_prepared_randomness_leaves_one_product_a_ciphertext(key: SecretKey, monkeypatch: pytest.MonkeyPatch) -> None:
    randomness = Randomness(key.public).prepare(3)
    monkeypatch.setattr("fdadp.federated.paillier._powers", lambda *_: pytest.fail("a power was computed"))
    assert len(key.public.encrypt([1, 2, 3], randomness)) == 3


def test_several_processes_do_the_same(key: SecretKey, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random factors, sums and decryption, each in two processes."""
    monkeypatch.setattr("fdadp.federated.paillier._LONG_JOB", 1)
    randomness = Randomness(key.public, n_jobs=2).prepare(12)
    assert len(set(randomness.take(12))) == 12
    sent = [key.public.encrypt(list(range(60)), Randomness(key.public)) for _ in range(2)]
    summed = add(key.public, sent, n_jobs=2)
    assert key.decrypt(summed, n_jobs=2) == key.decrypt(summed) == [2 * m for m in range(60)]


def test_keys_and_plaintexts_are_checked(key: SecretKey) -> None:
    with pytest.raises(PrivacyError, match="public key must be an odd number of 3072 bits, got one of 2048"):
        PublicKey(int(key.public.n), 3072)
    with pytest.raises(InputError, match="plaintexts must be from 0 to the modulus"):
        key.public.encrypt([-1], Randomness(key.public))
    assert key.public.digest == hashlib.sha256(int(key.public.n).to_bytes(256, "big")).hexdigest()
    assert not key.public.valid(0)
    assert not key.public.valid(int(key.public.n))
    assert not key.public.valid(int(key.public.square) + 1)
    assert "2048" in repr(key)
    assert str(int(key._private.p)) not in repr(key)


# ---------------------------------------------------------------- the noise


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
    known = DistributedNoise(owners=3, honest=2, n_max=10, totals=[(np.zeros(2, np.int64), 3)])
    with pytest.raises(PrivacyError, match="total 0 must have 3 entries, got 2"):
        known.prepare("gaussian", 3, 1024.0, 0.5)
