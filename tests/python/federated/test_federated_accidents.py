"""What goes wrong in a federation: lost, late, repeated and damaged messages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fdadp.errors import FdadpWarning

pytest.importorskip("phe", reason="phe and gmpy2 are not installed: pip install '.[federated]'")
pytest.importorskip("gmpy2", reason="phe and gmpy2 are not installed: pip install '.[federated]'")

from federation_tools import PCA, D, contract, parts, rows

from fdadp.federated import Contract, DataUser, Federation, Owner, ProtocolError, Proxy
from fdadp.federated.paillier import SecretKey, add, keys
from fdadp.federated.wire_format import Kind, Message, Next, Totals, ciphertexts_from_bytes

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


def test_a_total_of_which_no_model_could_be_made_is_refused(key: SecretKey) -> None:
    """The total stands, its answer does not, as where the model failed on it: a KeyError came out of the party."""
    federation = Federation(contract(), parts(rows(), 3), key=key)
    federation.run()
    asked = [d for _, to, d in federation.traffic if to == "user"][-1]
    del federation.user.state[f"total {Message.from_bytes(asked).index}"]
    refusal = Message.from_bytes(federation.user.answer(asked))
    assert refusal.kind == Kind.REFUSAL and b"cannot be computed from the totals" in refusal.body


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
    assert Next.first_of(Next(12345, 48).to_bytes() + b"rest") == (Next(12345, 48), b"rest")
    with pytest.raises(ProtocolError, match="must be 5 bytes"):
        Next.first_of(b"\0")
    with pytest.raises(ProtocolError, match="of 512 bytes each"):
        ciphertexts_from_bytes(b"\0" * 513, 512)
