"""Sums of many owners: exact, bound to their contract, and nobody sees what it must not."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from fdadp import AdditiveFunctionOnFunction, Privacy
from fdadp.cli.main import app
from fdadp.errors import FdadpWarning, InputError, PrivacyError
from fdadp.learners import DPPCA, DPLinearRegression
from fdadp.privacy import Budget, Cohort, OpenDPNoise, epsilon_from
from fdadp.privacy.distributed import DistributedNoise, NextRound, distributed_cost

pytest.importorskip("phe", reason="phe and gmpy2 are not installed: pip install '.[federated]'")
pytest.importorskip("gmpy2", reason="phe and gmpy2 are not installed: pip install '.[federated]'")

from fdadp.federated import Contract, DataUser, Federation, Owner, ProtocolError, Proxy, fit_together, models
from fdadp.federated.packing import ciphertexts, pack, slots, unpack
from fdadp.federated.paillier import PublicKey, Randomness, SecretKey, add, keys
from fdadp.federated.wire import Kind, Message, Next, Totals, ciphertexts_from_bytes

D = 3
PCA = {"epsilon": 1.0, "delta": 1e-6, "n_components": 1, "data_norm": 3.0, "n_features": D}


CURVES = {"epsilon": 1.0, "delta": 1e-6, "bounds": {"X": [0, 1], "Y": [0, 1]}}
GRIDS = {"s": [0.0, 0.25, 0.5, 1.0], "t": [0.0, 0.5, 1.0]}


@cache
def the_key() -> SecretKey:
    return keys(2048)


@pytest.fixture(scope="session")
def key() -> SecretKey:
    return the_key()


@pytest.fixture(scope="session")
def large_key() -> SecretKey:
    return keys(3072)


def rows(n: int = 600, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, D)) * [1.5, 0.3, 0.3]


def parts(X: np.ndarray, owners: int) -> list[tuple[Any, ...]]:
    return [(part,) for part in np.array_split(X, owners)]


def contract(owners: int = 3, **changes: Any) -> Contract:
    final = {"key_bits": 2048, "key": the_key().public.digest}
    return Contract(**{"model": "pca", "settings": PCA, "owners": owners, "n_max": 1000, **final, **changes})


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


# ---------------------------------------------------------------- a run


def test_totals_are_the_plaintext_sums_plus_the_owners_noise(key: SecretKey) -> None:
    """What is decrypted equals the exact integer sum of all persons plus what each owner added, to the last bit."""
    X, terms = rows(), contract()
    federation = Federation(terms, parts(X, 3), key=key, random_state=1)
    totals = federation.proxy.run(federation.exchange)
    shares = [models.fit(federation.contract, data, [], 1000 + i).share for i, data in enumerate(parts(X, 3))]
    assert totals[0][0].tolist() == sum(shares).tolist()
    sums = [_exact(terms, data) for data in parts(X, 3)]
    noise = [share - exact for share, exact in zip(shares, sums, strict=True)]
    assert sum(sums).tolist() == _exact(terms, (X,)).tolist()
    assert (totals[0][0] - _exact(terms, (X,))).tolist() == sum(noise).tolist()


def _exact(terms: Contract, data: tuple[Any, ...]) -> np.ndarray:
    class Silent(DistributedNoise):
        def _share(self, sd: float, size: int) -> np.ndarray:
            return np.zeros(size, dtype=np.int64)

    estimator = models.MODELS[terms.model].estimator(dict(terms.settings))
    from fdadp.privacy.distributed import noise_source

    with pytest.raises(NextRound) as waits, noise_source(Silent(owners=3, honest=2, n_max=1000)):
        estimator.fit(*data)
    assert waits.value.share is not None
    return waits.value.share


@pytest.mark.parametrize("values", [0.0, 3.0, -3.0, 1e30, np.inf, np.nan])
def test_one_person_moves_a_share_by_no_more_than_the_noise_is_made_for(key: SecretKey, values: float) -> None:
    """Norm of the difference on the lattice itself; the message looks the same."""
    X, terms = rows(60), contract()
    with_person = np.vstack([np.full(D, values), X])
    moved = (_exact(terms, (with_person,)) - _exact(terms, (X,))).tolist()
    assert sum(v * v for v in moved) <= 4**24  # exact, in Python's integers
    asked = next(d for _, to, d in _asked(terms, key) if to == "owner-1")
    answers = [Message.from_bytes(Owner(terms, "owner-1", (data,)).answer(asked)) for data in (X, with_person)]
    assert [a.kind for a in answers] == [Kind.SHARE] * 2
    assert len(answers[0].body) == len(answers[1].body)


def _asked(terms: Contract, key: SecretKey) -> list[tuple[str, str, bytes]]:
    federation = Federation(terms, parts(rows(60), 3), key=key)
    federation.run()
    return federation.traffic


def test_everybody_has_the_same_model(key: SecretKey) -> None:
    federation = Federation(contract(), parts(rows(), 3), key=key)
    model = federation.run()
    assert isinstance(model, DPPCA)
    assert abs(model.components_[0, 0]) > 0.95
    for owner in federation.owners:
        assert owner.result_.components_.tolist() == model.components_.tolist()
        assert owner.result_.ledger_.to_dict() == model.ledger_.to_dict()
    assert model.ledger_.for_release
    assert "collude" in model.ledger_.statement
    assert model.ledger_.details["noise"].startswith("in shares of 3 owners")
    assert model.privacy_spent_["spent"] <= 1.0


def test_the_split_of_the_rows_does_not_matter(key: SecretKey) -> None:
    """The same shares of noise give the same totals, however the persons are spread."""
    X, terms = rows(), contract(run="one")
    cuts = ([200, 400], [1, 2], [598, 599])
    totals = []
    for at in cuts:
        federation = Federation(terms, [(p,) for p in np.split(X, at)], key=key, random_state=3)
        totals.append(federation.proxy.run(federation.exchange)[0][0].tolist())
    assert totals[0] == totals[1] == totals[2]


def test_noise_counts_the_owners_that_may_fail(key: SecretKey) -> None:
    model = fit_together(contract(5, lost=1, corrupt=2), parts(rows(), 5), key=key)
    central = DPPCA(**{k: v for k, v in PCA.items() if k != "n_features"}).fit(rows())
    ratio = model.ledger_.releases[0].sd / central.ledger_.releases[0].sd
    assert ratio == pytest.approx(math.sqrt(5 / 2), rel=1e-6)
    assert model.ledger_.releases[0].rho == pytest.approx(central.ledger_.releases[0].rho, rel=1e-6)


@pytest.mark.filterwarnings("ignore::fdadp.errors.ExtrapolationWarning")
def test_regression_of_several_hospitals(key: SecretKey) -> None:
    """The moments mechanism, eleven releases: as good as with all curves in one place."""
    rng = np.random.default_rng(0)
    s = np.linspace(0, 1, 21)
    scores = rng.normal(size=(1500, 3)) / [1, 2, 3]
    X = scores @ np.array([np.sqrt(2) * np.sin(k * np.pi * s) for k in (1, 2, 3)])
    Y = np.cos(s[None, :, None] - X[:, None, :] - 0.5).mean(axis=2) * 2 + 0.1 * rng.normal(size=(1500, 21))
    settings = {
        "epsilon": 8.0,
        "delta": 1e-6,
        "bounds": {"X": [-4, 4], "Y": [-3, 3]},
        "n": 1500,
        "mechanism": "moments",
    }
    terms = Contract("regression", {**settings, "s": s.tolist(), "t": s.tolist()}, 3, n_max=1500, key_bits=2048)
    model = fit_together(terms, list(zip(np.array_split(X, 3), np.array_split(Y, 3), strict=True)), key=key)
    assert isinstance(model, AdditiveFunctionOnFunction)
    central = AdditiveFunctionOnFunction(
        privacy=Privacy(8.0, 1e-6, n=1500), bounds={"X": (-4, 4), "Y": (-3, 3)}, mechanism="moments"
    ).fit(X, Y, s, s)

    def explained(fitted: Any) -> float:
        predicted = np.asarray(fitted.predict(X))
        return 1 - float(((Y - predicted) ** 2).sum() / ((Y - Y.mean(axis=0)) ** 2).sum())

    assert explained(model) > explained(central) - 0.1
    assert explained(model) > 0.5
    assert [r.name for r in model.ledger_.releases] == [r.name for r in central.ledger_.releases]
    spent = math.fsum(r.rho for r in model.ledger_.releases)
    assert epsilon_from(spent, 1e-6) <= 8.0


def test_persons_with_several_rows(key: SecretKey) -> None:
    X = rows()
    terms = contract(groups=True)
    data = [(p, np.repeat(np.arange(100), 2)) for (p,) in parts(X, 3)]
    model = fit_together(terms, data, key=key)
    assert "all rows with one id" in model.ledger_.releases[0].unit
    assert model.noisy_n_ == pytest.approx(300, abs=6 * model.ledger_.releases[0].sd / (3 / 4) ** 2)


@pytest.mark.parametrize(
    ("model", "settings", "X", "y"),
    [
        ("linear", {"bounds": [-3, 3], "bounds_y": [-3, 3]}, rows(), rows()[:, 0]),
        ("gaussian-naive-bayes", {"bounds": [-3, 3], "classes": [0, 1]}, rows(), (rows()[:, 0] > 0).astype(float)),
        ("kmeans", {"bounds": [-3, 3], "n_clusters": 2, "random_state": 1, "n_iter": 2}, rows(), None),
    ],
)
def test_the_other_models(key: SecretKey, model: str, settings: dict[str, Any], X: Any, y: Any) -> None:
    arrays = (X,) if y is None else (X, y)
    terms = Contract(model, {"epsilon": 50.0, "delta": 1e-6, "n_features": D, **settings}, 2, n_max=1000, key_bits=2048)
    fitted = fit_together(terms, list(zip(*(np.array_split(a, 2) for a in arrays), strict=True)), key=key)
    assert fitted.ledger_.for_release
    if y is not None:
        assert np.corrcoef(fitted.predict(X), y)[0, 1] > 0.8


def test_linear_regression_is_that_of_the_pooled_rows(key: SecretKey) -> None:
    """At an epsilon where noise is small."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, D))
    y = X @ [1.0, -2.0, 0.5]
    settings = {"epsilon": 500.0, "delta": 1e-6, "bounds": [-1, 1], "bounds_y": [-4, 4]}
    terms = Contract("linear", {**settings, "n_features": D}, 3, n_max=3000, key_bits=2048)
    data = list(zip(np.array_split(X, 3), np.array_split(y, 3), strict=True))
    central = DPLinearRegression(**settings).fit(X, y)
    np.testing.assert_allclose(fit_together(terms, data, key=key).coef_, central.coef_, atol=0.05)


# ---------------------------------------------------------------- what each party sees


def test_what_proxy_and_user_could_learn_together_is_what_the_statement_says(key: SecretKey) -> None:
    """A single share, decrypted, carries noise of 1/h of the variance: h times the rho."""
    federation = Federation(contract(4, lost=1), parts(rows(), 4), key=key)
    model = federation.run()
    share = next(
        Message.from_bytes(data)
        for name, _, data in federation.traffic
        if name == "owner-2" and Message.from_bytes(data).kind == Kind.SHARE
    )
    terms = federation.owners[0].contract
    waits = models.fit(terms, None, [])
    plain = key.decrypt(ciphertexts_from_bytes(share.body, key.public.size))
    _, alone = unpack(plain, waits.size, waits.width, int(key.public.n))
    away = (alone - _exact(terms, parts(rows(), 4)[1])) * 2.0**-24 * model.ledger_.releases[0].clip
    share_sd = model.ledger_.releases[0].sd / math.sqrt(4)
    assert 0.2 * share_sd < away.std() < 2.5 * share_sd
    assert "at 2 times the rho" in model.ledger_.statement


# ---------------------------------------------------------------- accidents


class Network:
    """The in-memory transport with accidents: a function may change the replies to each request of a kind."""

    def __init__(self, federation: Federation, change: Any) -> None:
        self.federation, self.change = federation, change

    def __call__(self, requests: Mapping[str, bytes], timeout: float | None) -> dict[str, list[bytes]]:
        replies = self.federation.exchange(requests, timeout)
        return self.change(requests, replies)


def run(change: Any, key: SecretKey, **changes: Any) -> tuple[Federation, list[Any]]:
    federation = Federation(contract(4, lost=1, **changes), parts(rows(), 4), key=key, random_state=0)
    return federation, federation.proxy.run(Network(federation, change))


def is_share(data: bytes) -> bool:
    return Message.from_bytes(data).kind == Kind.SHARE


def test_a_lost_owner(key: SecretKey) -> None:
    def lose(requests: Any, replies: Any) -> Any:
        return {name: found for name, found in replies.items() if name != "owner-3"}

    with pytest.warns(FdadpWarning, match="release 0 goes without owner-3"):
        federation, totals = run(lose, key)
    assert totals[0][1] == 3
    assert federation.proxy.refused_ == [("owner-3", "no answer in time")]
    release = federation.user.result_.ledger_.releases[0]
    full = Federation(contract(4, lost=1), parts(rows(), 4), key=key).run().ledger_.releases[0]
    assert release.sd == pytest.approx(full.sd * math.sqrt(3 / 4), rel=1e-9)


def test_too_few_owners(key: SecretKey) -> None:
    def lose(requests: Any, replies: Any) -> Any:
        return {name: found for name, found in replies.items() if name not in ("owner-3", "owner-1")}

    with pytest.raises(ProtocolError, match="at least 3 of 4 owners must deliver a share for release 0, got 2"):
        run(lose, key)


def test_duplicates_count_once(key: SecretKey) -> None:
    _, totals = run(lambda requests, replies: {name: found * 3 for name, found in replies.items()}, key)
    _, plain = run(lambda requests, replies: replies, key)
    assert totals[0][1] == 4
    assert totals[0][0].tolist() == plain[0][0].tolist()


def damaged(data: bytes) -> bytes:
    return data[:-40] + bytes([data[-40] ^ 1]) + data[-39:]


def other_release(data: bytes) -> bytes:
    return replace(Message.from_bytes(data), index=7).to_bytes()


def other_run(data: bytes) -> bytes:
    return replace(Message.from_bytes(data), digest=b"\1" * 32).to_bytes()


def other_sender(data: bytes) -> bytes:
    return replace(Message.from_bytes(data), sender="owner-1").to_bytes()


def other_size(data: bytes) -> bytes:
    return replace(Message.from_bytes(data), bits=3072).to_bytes()


def no_ciphertext(data: bytes) -> bytes:
    message = Message.from_bytes(data)
    return replace(message, body=b"\0" * len(message.body)).to_bytes()


def too_short(data: bytes) -> bytes:
    message = Message.from_bytes(data)
    return replace(message, body=message.body[:-512]).to_bytes()


@pytest.mark.parametrize(
    "harm", [damaged, other_release, other_run, other_sender, other_size, no_ciphertext, too_short, lambda d: d[:50]]
)
def test_bad_shares_are_left_out(key: SecretKey, harm: Any) -> None:
    def change(requests: Any, replies: Any) -> Any:
        if "owner-2" in replies and is_share(replies["owner-2"][0]):
            return {**replies, "owner-2": [harm(replies["owner-2"][0])]}
        return replies

    with pytest.warns(FdadpWarning, match="goes without owner-2"):
        federation, totals = run(change, key)
    assert totals[0][1] == 3
    assert [name for name, _ in federation.proxy.refused_] == ["owner-2"]


def test_a_good_share_after_a_bad_one_counts(key: SecretKey) -> None:
    def change(requests: Any, replies: Any) -> Any:
        if "owner-2" in replies and is_share(replies["owner-2"][0]):
            return {**replies, "owner-2": [damaged(replies["owner-2"][0]), replies["owner-2"][0]]}
        return replies

    _, totals = run(change, key)
    assert totals[0][1] == 4


def test_a_late_share_of_an_earlier_release_is_refused(key: SecretKey) -> None:
    """k-means has several releases: what comes one release late is left out, and the owner takes part again."""
    kept: list[bytes] = []

    def change(requests: Any, replies: Any) -> Any:
        if "owner-2" not in replies:
            return replies
        found = list(kept)
        kept[:] = replies["owner-2"]
        return {**replies, "owner-2": found}

    settings = {"epsilon": 1.0, "delta": 1e-6, "n_features": D, "bounds": [-3, 3], "n_clusters": 2, "n_iter": 2}
    terms = Contract("kmeans", {**settings, "random_state": 0}, 4, n_max=1000, lost=1, key_bits=2048)
    federation = Federation(terms, parts(rows(), 4), key=key)
    with pytest.warns(FdadpWarning, match="goes without owner-2"):
        totals = federation.proxy.run(Network(federation, change))
    assert {shares for _, shares in totals} == {3}
    assert any("another run, release or step" in reason for _, reason in federation.proxy.refused_)


def test_an_owner_answers_once(key: SecretKey) -> None:
    """The same question again: the same bytes. Another one for that release: nothing, or noise would average out."""
    terms = contract()
    federation = Federation(terms, parts(rows(), 3), key=key)
    federation.run()
    owner = federation.owners[0]
    asked = next(d for a, b, d in federation.traffic if b == "owner-1")
    first = next(d for a, b, d in federation.traffic if a == "owner-1")
    again = Owner(terms, "owner-1", parts(rows(), 3)[0], state=owner.state)  # as after a restart
    assert again.answer(asked) == first
    fresh = Owner(terms, "owner-1", parts(rows(), 3)[0])
    assert fresh.answer(asked) != first  # the share is drawn: another object would draw another one
    message = Message.from_bytes(asked)
    other = keys(2048).public.modulus
    refusal = Message.from_bytes(again.answer(replace(message, body=other + message.body[256:]).to_bytes()))
    assert refusal.kind == Kind.REFUSAL
    assert b"public key must be that of the contract" in refusal.body


def test_the_user_decrypts_one_sum_of_a_release(key: SecretKey, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two sums that differ in one owner the difference would be that owner's share: the first answer comes again."""
    federation = Federation(contract(4, lost=1), parts(rows(), 4), key=key)
    federation.run()
    asked = [d for _, to, d in federation.traffic if to == "user"][-1]
    told = [d for a, _, d in federation.traffic if a == "user"][-1]
    message = Message.from_bytes(asked)
    shares = [Message.from_bytes(d) for a, _, d in federation.traffic if a.startswith("owner")]
    found = [ciphertexts_from_bytes(m.body, key.public.size) for m in shares if m.kind == Kind.SHARE]
    body = (3).to_bytes(4, "big") + b"".join(c.to_bytes(key.public.size, "big") for c in add(key.public, found[:3]))
    monkeypatch.setattr(SecretKey, "decrypt", lambda *_: pytest.fail("a second sum was decrypted"))
    assert federation.user.answer(replace(message, body=body).to_bytes()) == told
    assert federation.user.answer(asked) == told


@pytest.mark.parametrize("shares", [0, 2, 5])
def test_the_user_decrypts_no_sum_of_too_few(key: SecretKey, shares: int) -> None:
    federation = Federation(contract(4, lost=1), parts(rows(), 4), key=key)

    def lie(requests: Mapping[str, bytes], timeout: float | None) -> dict[str, list[bytes]]:
        if "user" in requests and Message.from_bytes(requests["user"]).kind == Kind.ASK_TOTAL:
            message = Message.from_bytes(requests["user"])
            requests = {"user": replace(message, body=shares.to_bytes(4, "big") + message.body[4:]).to_bytes()}
        return federation.exchange(requests, timeout)

    with pytest.raises(ProtocolError, match=f"a sum must be of 3 to 4 shares, got {shares}"):
        federation.proxy.run(lie)
    assert "totals" not in federation.user.state


def test_another_contract_is_refused(key: SecretKey) -> None:
    ours = contract()
    theirs = replace(ours, settings={**PCA, "epsilon": 2.0})
    federation = Federation(ours, parts(rows(), 3), key=key)
    federation.owners[1] = Owner(theirs, "owner-2", parts(rows(), 3)[1])
    with pytest.raises(ProtocolError, match=r"got 2; nothing was decrypted.*contract must be the same"):
        federation.run()
    federation = Federation(ours, parts(rows(), 3), key=key)
    federation.user = DataUser(replace(ours, run="another"), key=key)
    with pytest.raises(ProtocolError, match="data user must answer, got: refused: the contract must be the same"):
        federation.run()


def test_no_user_no_run() -> None:
    with pytest.raises(ProtocolError, match="data user must answer, got: no answer"):
        Proxy(contract()).run(lambda requests, timeout: {})


@pytest.mark.parametrize("noise", [b"", b"FDAF", b"\0" * 200])
def test_what_is_no_message_is_refused(key: SecretKey, noise: bytes) -> None:
    for party in (Owner(contract(), "owner-1", parts(rows(), 3)[0]), DataUser(contract(), key=key)):
        assert Message.from_bytes(party.answer(noise)).kind == Kind.REFUSAL


@settings(max_examples=50, deadline=None)
@given(
    kind=st.integers(1, 8),
    index=st.integers(0, 2**32 - 1),
    sender=st.text("abc-123", max_size=20),
    body=st.binary(max_size=300),
    flip=st.integers(0, 10_000),
)
def test_messages_survive_and_damage_does_not(kind: int, index: int, sender: str, body: bytes, flip: int) -> None:
    message = Message(kind, 2048, index, sender, b"\7" * 32, body)
    data = message.to_bytes()
    assert Message.from_bytes(data) == message
    at = flip % len(data)
    with pytest.raises(ProtocolError):
        Message.from_bytes(data[:at] + bytes([data[at] ^ 64]) + data[at + 1 :])


@given(totals=st.lists(st.tuples(st.lists(st.integers(-(2**62), 2**62), max_size=5), st.integers(0, 1000)), max_size=4))
def test_totals_survive(totals: list[tuple[list[int], int]]) -> None:
    data = Totals.to_bytes([(np.array(v, dtype=np.int64), n) for v, n in totals])
    assert [(v.tolist(), n) for v, n in Totals.from_bytes(data)] == totals
    if data:
        with pytest.raises(ProtocolError, match="as long as they say"):
            Totals.from_bytes(data[:-1])


def test_next_survives() -> None:
    assert Next.from_bytes(Next(12345, 48).to_bytes()) == Next(12345, 48)
    with pytest.raises(ProtocolError, match="must be 5 bytes"):
        Next.from_bytes(b"\0")
    with pytest.raises(ProtocolError, match="of 512 bytes each"):
        ciphertexts_from_bytes(b"\0" * 513, 512)


# ---------------------------------------------------------------- the contract


@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"owners": 1}, InputError, "owners must be an integer of at least 2, got 1"),
        ({"owners": 2.0}, InputError, "owners must be an integer"),
        ({"n_max": 0}, InputError, "n_max must be an integer of at least 1"),
        ({"corrupt": 0}, InputError, "corrupt must be an integer of at least 1"),
        ({"lost": -1}, InputError, "lost must be an integer of at least 0"),
        ({"lost": 2}, PrivacyError, "owners must be more than lost \\+ corrupt, 2 \\+ 1"),
        ({"key_bits": 1024}, PrivacyError, "key_bits must be one of \\(2048, 3072\\)"),
        ({"run": ""}, InputError, "run must be a name"),
        ({"key": "abc"}, InputError, "key must be a SHA-256 in 64 hexadecimal digits, got 'abc'"),
        ({"key_bits": 100, "simulation": True}, PrivacyError, "key_bits must be one of"),
        ({"simulation": 1}, InputError, "simulation must be True or False, got 1"),
        ({"settings": {**PCA, "n": 3001}}, InputError, "n must be at most owners times n_max, 3000, got 3001"),
        ({"model": "forest"}, InputError, "model must be one of pca, .*got 'forest'"),
        ({"settings": {**PCA, "center": np.zeros(3)}}, InputError, "settings must be what JSON can hold"),
        ({"settings": {**PCA, "delta": None}}, InputError, "settings must give delta"),
        ({"settings": {k: v for k, v in PCA.items() if k != "data_norm"}}, PrivacyError, "data_norm must be given"),
        ({"settings": {k: v for k, v in PCA.items() if k != "n_features"}}, InputError, "must give n_features"),
        ({"settings": {**PCA, "mechanism": "bingham"}}, PrivacyError, "cannot be added in shares"),
        ({"settings": {**PCA, "colour": 1}}, InputError, "settings must be parameters of DPPCA: .*colour"),
        ({"settings": {**PCA, "epsilon": -1.0}}, PrivacyError, "epsilon must be a number above 0"),
        ({"n_max": 2**45}, PrivacyError, "n_max must be smaller"),
        (
            {"model": "regression", "settings": CURVES},
            InputError,
            "settings must give s, the grid of the curves, got N",
        ),
        (
            {"model": "regression", "settings": {**CURVES, **GRIDS, "bounds": {"Y": [0, 1]}}},
            PrivacyError,
            "bounds must give a public",
        ),
    ],
)
def test_contracts_say_what_is_wrong(changes: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        contract(**changes)


def test_contracts_travel_as_text() -> None:
    terms = contract(5, lost=1, run="x")
    text = terms.to_json()
    assert Contract.from_json(text) == terms
    assert Contract.from_json(text).digest == terms.digest
    assert replace(terms, n_max=1001).digest != terms.digest
    with pytest.raises(InputError, match="must be a contract in JSON"):
        Contract.from_json("{}")
    old = {**json.loads(text), "fdadp": "0.0.1"}
    with pytest.raises(InputError, match="of this version of fdadp"):
        Contract.from_json(json.dumps(old))
    assert contract().run != contract().run


@pytest.mark.parametrize(
    "data", [(np.zeros((5, 2)),), (np.zeros((5, D)), np.zeros(5)), np.zeros((5, D)), (np.zeros((5, D, 1)),)]
)
def test_owners_check_the_shape_of_their_data(data: Any) -> None:
    with pytest.raises(InputError, match="data must be a tuple of 1 arrays"):
        Owner(contract(), "owner-1", data)


def test_parties_check_their_names_and_keys(key: SecretKey) -> None:
    with pytest.raises(ProtocolError, match="name must be one of owner-1, owner-2, owner-3, got 'me'"):
        Owner(contract(), "me", (np.zeros((5, D)),))
    with pytest.raises(ProtocolError, match="key must have 3072 bits, got 2048"):
        DataUser(contract(key_bits=3072), key=key)
    with pytest.raises(ProtocolError, match="key must be the one whose SHA-256 is in the contract"):
        DataUser(contract(key="0" * 64), key=key)
    for party in (lambda c: Owner(c, "owner-1", parts(rows(), 3)[0]), lambda c: DataUser(c, key=key)):
        with pytest.raises(ProtocolError, match="contract must name the data user's public key"):
            party(contract(key=None))
    with pytest.raises(InputError, match="key must be the one whose SHA-256 is in the contract, got None"):
        Federation(contract(), parts(rows(), 3))
    with pytest.raises(InputError, match="data must be of 3 owners, got 2"):
        Federation(contract(), parts(rows(), 2), key=key)


def test_rows_outside_the_bounds_and_no_rows_at_all(key: SecretKey) -> None:
    """Clipped, zeroed, or nobody: never an error, whatever the values are."""
    odd = np.array([[np.nan, 0, 0], [np.inf, 1, 1], [1e30, 0, 0], [0, 0, 0]])
    model = fit_together(contract(), [(odd,), (np.zeros((1, D)),), (rows(50),)], key=key)
    assert np.isfinite(model.components_).all()


# ---------------------------------------------------------------- the comparison and its command


def test_the_command_compares_hospitals(tmp_path: Path) -> None:
    options = [
        "--owners",
        "2",
        "--n",
        "400",
        "--epsilon",
        "4",
        "--mechanism",
        "moments",
        "--key-bits",
        "2048",
        "--out",
        str(tmp_path / "out"),
    ]
    found = CliRunner().invoke(app, ["federated", "regression", *options])
    assert found.exit_code == 0, found.output
    table = pd.read_csv(tmp_path / "out" / "results.csv").set_index("how")
    assert table.loc["together", "releases"] == 18
    assert table.loc["no privacy", "explained"] > table.loc["together", "explained"]
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"results.csv", "settings.json", "explained.png"}


def test_the_command_says_what_is_wrong(tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "out")]
    found = CliRunner().invoke(app, ["federated", "regression", "--owners", "1", *out])
    assert found.exit_code == 2
    assert "owners must be an integer of at least 2, got 1" in found.output
    assert not (tmp_path / "out").exists()
