"""Lost answers, dead proxies, bogus questions: a run goes on, and nobody draws a second share of a release."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("phe", reason="phe and gmpy2 are not installed: pip install 'fdadp[federated]'")
pytest.importorskip("gmpy2", reason="phe and gmpy2 are not installed: pip install 'fdadp[federated]'")

from fdadp.federated import Contract, DataUser, Federation, Owner, ProtocolError, Proxy, federated_models, parties
from fdadp.federated.paillier import SecretKey, add, keys
from fdadp.federated.wire_format import Kind, Message, Totals, ciphertexts_from_bytes, ciphertexts_to_bytes, with_count

D, BITS = 3, 512
KMEANS = {"epsilon": 1.0, "delta": 1e-6, "bounds": [-3, 3], "n_clusters": 2, "n_iter": 2, "random_state": 0}
ROWS = np.random.default_rng(0).normal(size=(600, D)) * [1.5, 0.3, 0.3]
DATA = [(part,) for part in np.array_split(ROWS, 3)]


@cache
def the_key() -> SecretKey:
    return keys(BITS)


def contract(**changes: Any) -> Contract:
    """Several releases, short keys."""
    terms = {"model": "kmeans", "settings": {**KMEANS, "n_features": D}, "owners": 3, "n_max": 1000, "run": "one"}
    final = {"simulation": True, "key_bits": BITS, "key": the_key().public.digest}
    return Contract(**{**terms, **final, **changes})


def federation(**changes: Any) -> Federation:
    return Federation(contract(**changes), DATA, key=the_key(), random_state=1)


def values(totals: list[tuple[np.ndarray, int]]) -> list[tuple[list[int], int]]:
    return [(v.tolist(), shares) for v, shares in totals]


@cache
def undisturbed() -> list[tuple[list[int], int]]:
    parts = federation()
    return values(parts.proxy.run(parts.exchange))


def shares_given(parts: Federation) -> dict[tuple[str, int], set[bytes]]:
    """All shares that left an owner, by release."""
    out: dict[tuple[str, int], set[bytes]] = {}
    for sender, _, data in parts.traffic:
        message = Message.from_bytes(data)
        if message.kind == Kind.SHARE:
            out.setdefault((sender, message.index), set()).add(data)
    return out


class Accident(Exception):
    """The proxy is gone."""


class Line:
    """The transport in memory; something happens to the proxy at one message, or to an answer of one party."""

    def __init__(self, at: int, *, lost: str = "", dies: str = "") -> None:
        self.parts, self.at, self.lost, self.dies, self.seen = federation(), at, lost, dies, 0

    def __call__(self, requests: Mapping[str, bytes], timeout: float | None) -> Mapping[str, list[bytes]]:
        if self.lost and self.lost not in requests:
            return self.parts.exchange(requests, timeout)
        self.seen += 1
        now = self.seen - 1 == self.at
        if now and self.dies == "before it sends":
            raise Accident
        replies = self.parts.exchange(requests, timeout)
        if now and self.dies:
            raise Accident
        return {name: found for name, found in replies.items() if not (now and name == self.lost)}


@pytest.mark.parametrize("dies", ["before it sends", "before it hears the answers"])
def test_a_proxy_may_die_at_any_message(dies: str) -> None:
    """Another one takes over, the totals are the same, and no owner gives a second share of a release."""
    assert len(undisturbed()) == 3
    for at in range(8):  # for the key, for shares and sum of three releases, with the last totals
        line = Line(at, dies=dies)
        with pytest.raises(Accident):
            line.parts.proxy.run(line)
        totals = Proxy(line.parts.contract).run(line.parts.exchange)
        assert values(totals) == undisturbed()
        assert all(len(given) == 1 for given in shares_given(line.parts).values())
    whole = Line(8, dies=dies)
    assert values(whole.parts.proxy.run(whole)) == undisturbed()


@pytest.mark.parametrize("who", ["owner-2", "user"])
def test_one_lost_answer_is_asked_for_again(who: str) -> None:
    """With lost=0 nobody may be missing: every single answer of a party is lost once."""
    for at in range(3):
        line = Line(at, lost=who)
        assert values(line.parts.proxy.run(line)) == undisturbed()
        assert line.seen > at
        assert all(len(given) == 1 for given in shares_given(line.parts).values())


def test_asking_again_has_an_end() -> None:
    parts, asked = federation(), 0

    def exchange(requests: Mapping[str, bytes], timeout: float | None) -> Mapping[str, list[bytes]]:
        nonlocal asked
        asked += "owner-1" in requests
        return {name: found for name, found in parts.exchange(requests, timeout).items() if name != "owner-1"}

    with pytest.raises(ProtocolError, match="at least 3 of 3 owners must deliver a share for release 0, got 2"):
        Proxy(parts.contract, retries=4).run(exchange)
    assert asked == 5


# ---------------------------------------------------------------- messages that are refused


def asked_of(parts: Federation, name: str, kind: int) -> list[Message]:
    found = [Message.from_bytes(data) for _, to, data in parts.traffic if to == name]
    return [message for message in found if message.kind == kind]


def bogus_asks(message: Message) -> dict[str, Message]:
    size, body = BITS // 8, message.body
    other = keys(BITS).public.modulus
    fourth = Totals.one_to_bytes(np.zeros(5, dtype=np.int64), 3)
    return {
        "another key": replace(message, body=other + body[size:]),
        "totals of another size": replace(message, index=1, body=body[:size] + fourth),
        "more totals than releases": replace(message, index=9, body=body[:size] + 9 * fourth),
        "totals cut off": replace(message, body=body + fourth[:-1]),
        "another release": replace(message, index=3),
        "another contract": replace(message, digest=b"\0" * 32),
        "another kind": replace(message, kind=Kind.ASK_TOTAL),
        "no key": replace(message, body=b""),
    }


def test_a_bogus_question_leaves_no_trace_at_an_owner() -> None:
    done = federation()
    done.run()
    first = asked_of(done, "owner-1", Kind.ASK)[0]
    parts = federation()
    for what, message in bogus_asks(first).items():
        for owner in parts.owners:
            before = dict(owner.state)
            answer = Message.from_bytes(owner.answer(message.to_bytes()))
            assert answer.kind == Kind.REFUSAL, what
            assert owner.state == before == {}, what
    assert values(parts.proxy.run(parts.exchange)) == undisturbed()


def test_a_bogus_question_leaves_no_trace_at_the_user() -> None:
    done = federation()
    done.run()
    first = asked_of(done, "user", Kind.ASK_TOTAL)[0]
    parts = federation()
    before = dict(parts.user.state)
    for body in (b"", b"\0\0\0", first.body[:4], first.body[:-1], first.body[:4] + b"\0" * (len(first.body) - 4)):
        assert Message.from_bytes(parts.user.answer(replace(first, body=body).to_bytes())).kind == Kind.REFUSAL
    for index in (1, 7):
        assert Message.from_bytes(parts.user.answer(replace(first, index=index).to_bytes())).kind == Kind.REFUSAL
    assert parts.user.state == before
    assert values(parts.proxy.run(parts.exchange)) == undisturbed()


def test_an_owner_that_dies_over_its_share_has_given_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn, but not noted, and nobody has it: the next one is the first."""
    parts = federation()

    def dies(*_: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(parties, "pack", dies)
        parts.proxy.run(parts.exchange)
    assert parts.owners[0].state == {}
    assert values(Proxy(parts.contract).run(parts.exchange)) == undisturbed()
    assert all(len(given) == 1 for given in shares_given(parts).values())


# ---------------------------------------------------------------- an active proxy


def sum_of(message: Message, found: list[int], shares: int) -> Message:
    body = ciphertexts_to_bytes(found, the_key().public.size)
    return replace(message, body=with_count(shares, body))


@pytest.mark.parametrize("claimed", [1, 2, 3])
def test_the_user_opens_no_sum_of_too_few_shares(claimed: int) -> None:
    """One owner's ciphertext, or the sum of two, sent as "the sum", whatever number the proxy writes on it."""
    done = federation()
    done.run()
    shares = [Message.from_bytes(d) for a, _, d in done.traffic if a.startswith("owner")]
    first = [m for m in shares if m.kind == Kind.SHARE and m.index == 0]
    found = [ciphertexts_from_bytes(m.body, the_key().public.size) for m in first]
    asked = asked_of(done, "user", Kind.ASK_TOTAL)[0]
    for some in (found[:1], found[:2], [found[0], found[0]]):
        user = DataUser(done.contract, key=the_key())
        before = dict(user.state)
        request = sum_of(asked, add(the_key().public, some), claimed)
        answer = Message.from_bytes(user.answer(request.to_bytes()))
        assert answer.kind == Kind.REFUSAL
        assert b"must be of 3 to 3 shares" in answer.body or b"must hold the 3 shares" in answer.body
        assert user.state == before


def test_owners_encrypt_for_the_key_of_the_contract_alone() -> None:
    """A proxy that gives owners a key of its own gets nothing, also where it asks first."""
    terms, own = contract(), keys(BITS).public
    asked = Message(Kind.ASK, BITS, 0, "proxy", terms.digest, own.modulus)
    owner = Owner(terms, "owner-1", DATA[0])
    answer = Message.from_bytes(owner.answer(asked.to_bytes()))
    assert (answer.kind, owner.state) == (Kind.REFUSAL, {})
    assert b"public key must be that of the contract" in answer.body
    assert terms.with_key(own).digest != terms.digest


def test_the_secret_key_is_forgotten_when_the_run_is_done() -> None:
    parts = federation()
    user = parts.user
    assert not user.done and user._key is not None
    parts.run()
    assert user.done and user._key is None
    again = DataUser(parts.contract, key=None, state=user.state)  # what is left answers a proxy that comes late
    parts.user = again
    assert values(Proxy(parts.contract).run(parts.exchange)) == undisturbed()
    empty = DataUser(parts.contract, key=None)
    assert b"key is not here" in empty.answer(asked_of(parts, "user", Kind.ASK_KEY)[0].to_bytes())


# ---------------------------------------------------------------- a proxy in a process of its own, killed

PATIENCE = 300.0
"""Seconds to wait for another process; each wait takes a few, and a process that hangs is a failure."""

PROXY = """
import sys
from multiprocessing.connection import Client
from pathlib import Path
from fdadp.federated import Contract, Proxy
from fdadp.federated.wire_format import Totals

terms, out, address = sys.argv[1:]
with Client(address, family="AF_UNIX") as line:
    def exchange(requests, timeout):
        line.send(dict(requests))
        return line.recv()
    totals = Proxy(Contract.from_json(Path(terms).read_text())).run(exchange)
Path(out).write_bytes(Totals.to_bytes(totals))
"""


def serve(
    parts: Federation, folder: Path, wait: Callable[[Mapping[str, bytes], subprocess.Popen[bytes]], bool]
) -> bool:
    """Let a proxy in a process of its own carry the run on; return whether it lived to its end.

    ``wait`` sees each request before it is answered, and may kill the proxy.
    """
    folder.mkdir(exist_ok=True)
    (folder / "contract.json").write_text(parts.contract.to_json())
    address = str(folder / "line")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        listener.settimeout(PATIENCE)
        command = [sys.executable, "-c", PROXY, str(folder / "contract.json"), str(folder / "totals"), address]
        proxy = subprocess.Popen(command)
        with Connection(listener.accept()[0].detach()) as line:
            try:
                while True:
                    assert line.poll(PATIENCE), "the proxy does not answer"
                    requests = line.recv()
                    if wait(requests, proxy):
                        parts.exchange(requests)  # the answers find nobody
                        break
                    line.send(parts.exchange(requests))
            except EOFError:
                pass
        return proxy.wait(PATIENCE) == 0


def regression() -> tuple[Contract, list[tuple[np.ndarray, np.ndarray]]]:
    rng = np.random.default_rng(0)
    s = np.linspace(0, 1, 11)
    X = rng.normal(size=(600, 3)) / [1, 2, 3] @ np.array([np.sqrt(2) * np.sin(k * np.pi * s) for k in (1, 2, 3)])
    Y = np.cos(s[None, :, None] - X[:, None, :] - 0.5).mean(axis=2) * 2 + 0.1 * rng.normal(size=(600, 11))
    grids = {"s": s.tolist(), "t": s.tolist(), "bounds": {"X": [-4, 4], "Y": [-3, 3]}}
    terms = Contract("regression", {"epsilon": 8.0, "delta": 1e-6, "n": 600, **grids}, 2, n_max=300, key_bits=2048)
    final = replace(terms, simulation=True, key_bits=BITS, key=the_key().public.digest, run="one")
    return final, list(zip(np.array_split(X, 2), np.array_split(Y, 2), strict=True))


def kill_at(kind: int, index: int) -> Callable[[Mapping[str, bytes], subprocess.Popen[bytes]], bool]:
    def wait(requests: Mapping[str, bytes], proxy: subprocess.Popen[bytes]) -> bool:
        message = Message.from_bytes(next(iter(requests.values())))
        if (message.kind, message.index) != (kind, index):
            return False
        os.kill(proxy.pid, signal.SIGKILL)
        proxy.wait()
        return True

    return wait


def test_a_killed_proxy_changes_nothing(tmp_path: Path) -> None:
    """SIGKILL before the second sum is answered; another process ends the run with the same totals."""
    parts = federation()
    assert not serve(parts, tmp_path / "a", kill_at(Kind.ASK_TOTAL, 1))
    assert serve(parts, tmp_path / "b", lambda requests, proxy: False)
    assert values(Totals.from_bytes((tmp_path / "b" / "totals").read_bytes())) == undisturbed()
    assert all(len(given) == 1 for given in shares_given(parts).values())


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::fdadp.errors.ExtrapolationWarning")
def test_a_proxy_killed_twice_in_a_regression_of_25_rounds_and_more(tmp_path: Path) -> None:
    """Before round 9's sum is answered, and as round 18 begins: the same model to the bit as without."""
    terms, data = regression()
    plain = Federation(terms, data, key=the_key(), random_state=1)
    plain.proxy.run(plain.exchange)
    parts = Federation(terms, data, key=the_key(), random_state=1)
    assert not serve(parts, tmp_path / "a", kill_at(Kind.ASK_TOTAL, 9))
    assert not serve(parts, tmp_path / "b", kill_at(Kind.ASK, 18))
    assert not (tmp_path / "b" / "totals").exists()
    assert serve(parts, tmp_path / "c", lambda requests, proxy: False)
    totals = Totals.from_bytes((tmp_path / "c" / "totals").read_bytes())
    assert len(totals) >= 25
    assert (tmp_path / "c" / "totals").read_bytes() == plain.user.state["totals"] == parts.user.state["totals"]
    assert all(len(given) == 1 for given in shares_given(parts).values())
    one, other = plain.user.result_, federated_models.fit(terms, None, totals)
    X = data[0][0][:20]
    assert np.asarray(one.predict(X)).tobytes() == np.asarray(other.predict(X)).tobytes()
    assert one.ledger_.to_dict() == other.ledger_.to_dict()
