"""The many-owner protocol on Flower: the apps on a grid in memory that loses and harms messages, and deployed."""

from __future__ import annotations

import itertools
import stat
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("phe", reason="phe and gmpy2 are not installed: pip install '.[federated]'")
pytest.importorskip("gmpy2", reason="phe and gmpy2 are not installed: pip install '.[federated]'")
pytest.importorskip("flwr", reason="flwr is not installed: pip install '.[federated]' (Python 3.11 or newer)")

from flwr.app import Context, Error, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity
from typer.testing import CliRunner

from fdadp.cli.main import app as cli
from fdadp.errors import FdadpWarning, FileFormatError, InputError, PrivacyError
from fdadp.federated import Contract, Owner, ProtocolError, federated_models
from fdadp.federated.flower import APP, require_flower
from fdadp.federated.flower.apps import GridExchange, client, hello_of, payload, record, rows, said_hello, serve
from fdadp.federated.flower.localhost_run import LocalFlower
from fdadp.federated.flower.party_state import Store, _key_path, _write, new_key
from fdadp.federated.paillier import Randomness, SecretKey, keys
from fdadp.federated.parties import Proxy
from fdadp.federated.run_contract import USER, Signer, public_key_of
from fdadp.federated.wire_format import Kind, Totals
from fdadp.federated.wire_format import Message as Wire
from fdadp.privacy.certificate.signature import new_keys

D = 3


@cache
def the_key() -> SecretKey:
    return keys(2048)


DRAFT = Contract(
    "pca",
    {"epsilon": 2.0, "delta": 1e-6, "n_components": 1, "data_norm": 3.0, "n_features": D},
    3,
    n_max=1000,
    lost=1,
    run="a-run",
    key_bits=2048,
)
TERMS = DRAFT.with_key(the_key().public)
DATA = np.random.default_rng(0).normal(size=(900, D)) * [1.5, 0.2, 0.2]


@pytest.fixture(scope="session")
def key() -> SecretKey:
    return the_key()


@pytest.fixture(autouse=True)
def identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flower sets this where it starts an app."""
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


class Grid:
    """Flower's grid in memory: real messages, real client apps, and what a network does to answers.

    ``harm[name]`` gets the answers of a node to one message and returns those that arrive.
    """

    def __init__(self, folder: Path, contract: Contract, key: SecretKey) -> None:
        self.folder, self.contract = folder, contract
        self.nodes: dict[int, Context] = {}
        self.numbers = itertools.count(100)
        self.harm: dict[str, Callable[[list[Message]], list[Message]]] = {}
        self.killed: set[int] = set()  # Flower has them online for a while
        self.slow: set[int] = set()  # their next message is lost: Flower takes a process for dead that starts too late
        self.sent: list[Message] = []
        for name, part in zip(contract.names, np.array_split(DATA, contract.owners), strict=True):
            (folder / name).mkdir()
            np.savez(folder / name / "rows.npz", X=part)
            self.add(name)
        self.add(USER)
        self.key(contract, key)

    def add(self, name: str, contract: Contract | None = None, **changes: Any) -> int:
        node = next(self.numbers)
        terms = self.folder / f"{node}.json"
        terms.write_text((contract or self.contract).to_json())
        config = {"party": name, "contract": str(terms), "store": str(self.folder / name), **changes}
        if name != USER:
            config.setdefault("data", str(self.folder / name / "rows.npz"))
            if self.contract.owner_keys:
                config.setdefault("key", str(self.folder / f"{name}.pem"))
        self.nodes[node] = Context(run_id=1, node_id=node, node_config=config, state=RecordDict(), run_config={})
        return node

    def key(self, contract: Contract, key: SecretKey) -> None:
        """Give the user a key, so that not every test makes its own."""
        primes = dict(zip("pq", (f"{prime:x}" for prime in key.primes), strict=True))
        (self.folder / USER).mkdir()
        _write(_key_path(self.folder / USER, key.public.digest), primes)

    def get_node_ids(self) -> Iterable[int]:
        return list(self.nodes)

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        replies = []
        for i, message in enumerate(messages):
            self.sent.append(message)
            message.metadata.__dict__["_message_id"] = f"{len(self.sent)}-{i}"
            context = self.nodes.get(message.metadata.dst_node_id)
            if context is None or message.metadata.dst_node_id in self.killed | self.slow:
                self.slow.discard(message.metadata.dst_node_id)
                replies.append(Message(Error(3, "node is offline"), reply_to=message))
                continue
            name = context.node_config["party"]
            asked = message.metadata.message_type == "query.ask"
            try:
                reply = client(message, context)
            except Exception as exc:  # what Flower does
                reply = Message(Error(2, str(exc)), reply_to=message)
            replies += self.harm[name]([reply]) if asked and name in self.harm else [reply]
        return replies

    def totals(self, timeout: float | None = None) -> tuple[list[tuple[Any, int]], Proxy]:
        """A run."""
        exchange = GridExchange(self)
        exchange.meet([USER, *self.contract.names], patience=0.5)
        proxy = Proxy(self.contract, timeout=timeout)
        return proxy.run(exchange), proxy

    def state(self, name: str, contract: Contract | None = None) -> dict[str, bytes]:
        with Store(self.folder / name, contract or self.contract, name).opened() as store:
            return store.state()


@pytest.fixture
def grid(tmp_path: Path, key: SecretKey) -> Grid:
    return Grid(tmp_path, TERMS, key)


def good(totals: list[tuple[Any, int]], shares: int) -> None:
    """The totals are sums of so many owners' shares, and the model is the one of the data."""
    assert [s for _, s in totals] == [shares]
    assert abs(federated_models.fit(TERMS, None, totals).components_[0, 0]) > 0.95


def harmed(change: Callable[[bytes], bytes]) -> Callable[[list[Message]], list[Message]]:
    def harm(replies: list[Message]) -> list[Message]:
        for reply in replies:
            reply.content = record(change(payload(reply) or b""))
        return replies

    return harm


# ---------------------------------------------------------------- on a grid in memory


def test_a_run(grid: Grid) -> None:
    totals, proxy = grid.totals()
    good(totals, 3)
    assert proxy.refused_ == []
    for name in (USER, *TERMS.names):  # everybody can make the model from what is in its folder
        assert Totals.to_bytes(totals) == grid.state(name)["totals"]


def signed_terms(folder: Path) -> Contract:
    """The terms with keys of the owners, whose secret halves are in a folder."""
    public = [new_keys(folder / f"{name}.pem")[1] for name in TERMS.names]
    return replace(TERMS, owner_keys=tuple(map(public_key_of, public)))


def test_the_server_app_writes_the_totals(tmp_path: Path, key: SecretKey, capsys: pytest.CaptureFixture[str]) -> None:
    grid = Grid(tmp_path, signed_terms(tmp_path), key)
    terms, out = grid.folder / "contract.json", grid.folder / "totals"
    terms.write_text(grid.contract.to_json())
    config = {"contract": str(terms), "out": str(out), "timeout": 0.0, "patience": 1.0, "at_once": 2, "n_jobs": 1}
    config |= {"retries": 0, "pause": 0.0}
    context = Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config=config)
    serve(grid, context)
    good(Totals.from_bytes(out.read_bytes()), 3)
    assert "owner-1, owner-2, owner-3, user" in capsys.readouterr().out
    with pytest.raises(InputError, match="run configuration must give out, a file, got ''"):
        serve(grid, replace(context, run_config={**config, "out": ""}))
    terms.write_text(TERMS.to_json())
    with pytest.raises(InputError, match="the contract must name owner_keys"):
        serve(grid, context)


def run_of(grid: Grid) -> list[tuple[Any, int]]:
    exchange = GridExchange(grid, contract=grid.contract)
    exchange.meet([USER, *grid.contract.names], patience=0.5)
    return Proxy(grid.contract).run(exchange)


def test_an_owner_is_who_has_its_key(tmp_path: Path, key: SecretKey) -> None:
    """Nodes that only say a name, with no key, another owner's or their own, are left out while it is offline."""
    grid = Grid(tmp_path, signed_terms(tmp_path), key)
    good(run_of(grid), 3)
    new_keys(tmp_path / "stranger.pem")
    again = tmp_path / "again"
    again.mkdir()
    for name in TERMS.names:
        (again / f"{name}.pem").write_bytes((tmp_path / f"{name}.pem").read_bytes())
        (again / f"{name}.pem").chmod(0o600)
    grid = Grid(again, replace(grid.contract, run="another-run"), key)
    del grid.nodes[100]
    for other in (tmp_path / "stranger.pem", again / "owner-2.pem"):
        grid.add("owner-1", key=str(other))
    plain = grid.add("owner-1")
    del grid.nodes[plain].node_config["key"]
    with pytest.warns(FdadpWarning, match="without owner-1"):
        good(run_of(grid), 2)
    assert not (again / "owner-1").joinpath("totals").exists()


def test_a_second_node_of_an_owners_name_does_not_end_the_run(tmp_path: Path, key: SecretKey) -> None:
    grid = Grid(tmp_path, signed_terms(tmp_path), key)
    grid.add("owner-2", key=str(tmp_path / "owner-1.pem"))
    good(run_of(grid), 3)


def test_shares_are_signed(tmp_path: Path, key: SecretKey) -> None:
    """A share that another party signed, or nobody, is left out; a greeting of another run is none."""
    grid = Grid(tmp_path, signed_terms(tmp_path), key)
    other = Signer(tmp_path / "owner-2.pem")
    grid.harm["owner-1"] = harmed(lambda data: data[:-64] + other.sign(data[:-64]))
    grid.harm["owner-3"] = harmed(lambda data: data)
    exchange = GridExchange(grid, contract=grid.contract)
    exchange.meet([USER, *grid.contract.names], patience=0.5)
    proxy = Proxy(grid.contract, retries=0)
    with pytest.warns(FdadpWarning, match="without owner-1"):
        good(proxy.run(exchange), 2)
    assert ("owner-1", "message must be signed with the key that the contract names for owner-1") in proxy.refused_
    mine, number = Signer(tmp_path / "owner-1.pem"), b"1" * 32
    answer = hello_of("owner-1", number, grid.contract, mine)
    assert said_hello(answer, number, grid.contract) == "owner-1"
    for asked, terms in ((b"2" * 32, grid.contract), (number, replace(grid.contract, run="another"))):
        with pytest.raises(ProtocolError, match="must be signed with the key"):
            said_hello(answer, asked, terms)
    with pytest.raises(ProtocolError, match="must sign that"):
        said_hello(b"owner-1", number, grid.contract)


def test_keys_in_contracts(tmp_path: Path) -> None:
    keys_of = signed_terms(tmp_path).owner_keys
    alias = (bytes.fromhex("ee") + b"\xff" * 30 + bytes.fromhex("7f")).hex()  # the same point as of 1
    for wrong, said in (
        ((keys_of[0], keys_of[1], keys_of[0]), "one key cannot be two owners"),
        (keys_of[:2], "one of each of 3 owners"),
        (("a", "b", "c"), "64 hexadecimal digits"),
        ((*keys_of[:2], alias), "64 hexadecimal digits"),
    ):
        with pytest.raises(InputError, match=said):
            replace(TERMS, owner_keys=wrong)
    terms = Contract.from_json(signed_terms_again(keys_of).to_json())
    assert terms.owner_keys == keys_of
    with pytest.raises(ProtocolError, match="the key must be the one that the contract names for owner-2"):
        Owner(terms, "owner-2", (DATA,), signer=Signer(tmp_path / "owner-1.pem"))
    (tmp_path / "owner-1.pem").chmod(0o644)
    with pytest.raises(PrivacyError, match="its owner alone may read"):
        Signer(tmp_path / "owner-1.pem")


def signed_terms_again(found: tuple[str, ...]) -> Contract:
    return replace(TERMS, owner_keys=found)


def test_a_lost_owner(grid: Grid) -> None:
    grid.harm["owner-2"] = lambda replies: []
    with pytest.warns(FdadpWarning, match="without owner-2"):
        totals, proxy = grid.totals(timeout=1.0)
    good(totals, 2)
    assert proxy.refused_ == [("owner-2", "no answer in time")]


def test_an_owner_that_never_came(grid: Grid) -> None:
    del grid.nodes[101]
    with pytest.warns(FdadpWarning, match="without owner-2"):
        good(grid.totals()[0], 2)


def test_below_the_threshold_nothing_is_decrypted(grid: Grid) -> None:
    grid.harm = dict.fromkeys(("owner-1", "owner-3"), lambda replies: [])
    with pytest.raises(ProtocolError, match="at least 2 of 3 owners"):
        grid.totals()
    assert not [name for name in grid.state(USER) if name.startswith("total")]


def test_a_late_answer_is_left_out(tmp_path: Path, key: SecretKey) -> None:
    """The answer to one round that comes in the next, of a model with several rounds."""
    steps = {**TERMS.settings, "mechanism": "power", "n_iter": 2, "mean_share": 0.0}
    grid = Grid(tmp_path, replace(TERMS, settings=steps), key)
    kept: list[Message] = []

    def late(replies: list[Message]) -> list[Message]:
        out, kept[:] = list(kept), replies
        return out

    grid.harm["owner-3"] = late
    with pytest.warns(FdadpWarning, match="without owner-3"):
        totals, proxy = grid.totals()
    assert len(totals) > 1 and {shares for _, shares in totals} == {2}
    assert proxy.refused_[:2] == [
        ("owner-3", "no answer in time"),
        ("owner-3", "message belongs to another run, release or step"),
    ]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda data: data[:-40] + bytes([data[-40] ^ 1]) + data[-39:], id="one bit"),
        pytest.param(lambda data: data[: len(data) // 2], id="cut off"),
        pytest.param(lambda data: b"", id="empty"),
    ],
)
def test_a_damaged_answer_is_left_out(grid: Grid, change: Callable[[bytes], bytes]) -> None:
    grid.harm["owner-1"] = harmed(change)
    with pytest.warns(FdadpWarning, match="without owner-1"):
        totals, proxy = grid.totals()
    good(totals, 2)
    assert ("owner-1", "message is damaged or no message: its hash does not fit") in proxy.refused_


def test_errors_of_the_engine_and_foreign_messages_are_no_answers(grid: Grid) -> None:
    grid.harm["owner-1"] = lambda replies: [Message(Error(2, "died"), reply_to=grid.sent[-1])]
    with pytest.warns(FdadpWarning, match="without owner-1"):
        good(grid.totals()[0], 2)
    foreign = Message(RecordDict(), 100, "query.ask")
    assert payload(foreign) is None


def test_a_duplicate_counts_once(grid: Grid) -> None:
    grid.harm["owner-1"] = lambda replies: replies * 2
    totals, proxy = grid.totals()
    good(totals, 3)
    assert proxy.refused_ == []


def test_a_message_replayed_from_another_run_is_refused(grid: Grid, tmp_path: Path, key: SecretKey) -> None:
    earlier: list[bytes] = []
    (tmp_path / "before").mkdir()
    before = Grid(tmp_path / "before", replace(TERMS, run="before"), key)
    before.harm["owner-1"] = harmed(lambda data: earlier.append(data) or data)
    before.totals()
    assert Wire.from_bytes(earlier[0]).kind == Kind.SHARE
    grid.harm["owner-1"] = harmed(lambda data: earlier[0])
    with pytest.warns(FdadpWarning, match="without owner-1"):
        totals, proxy = grid.totals()
    good(totals, 2)
    assert ("owner-1", "message belongs to another run, release or step") in proxy.refused_


def test_a_wrong_key_size_is_refused(grid: Grid) -> None:
    """By an owner whose own copy of the terms wants a longer key; and no share leaves it."""
    del grid.nodes[100]
    grid.add("owner-1", replace(TERMS, key_bits=3072))
    with pytest.warns(FdadpWarning, match="without owner-1"):
        totals, proxy = grid.totals()
    good(totals, 2)
    assert any(party == "owner-1" and "key must have 3072 bits, got 2048" in why for party, why in proxy.refused_)
    assert not grid.state("owner-1", replace(TERMS, key_bits=3072))


def test_two_nodes_of_one_name_end_the_run(grid: Grid) -> None:
    grid.add("owner-2")
    with pytest.raises(ProtocolError, match="each party must be one node, got two that say they are 'owner-2': 101, "):
        grid.totals()


def test_a_node_that_was_started_again_takes_its_place(grid: Grid) -> None:
    exchange = GridExchange(grid)
    exchange.meet([USER, *TERMS.names], 0.5)
    first = exchange.nodes["owner-2"]
    del grid.nodes[first]
    again = grid.add("owner-2")
    good(Proxy(TERMS).run(exchange), 3)
    assert exchange.nodes["owner-2"] == again != first


@pytest.mark.parametrize("party", ["owner-2", USER])
def test_a_node_is_started_again_while_flower_has_the_killed_one_online(
    tmp_path: Path, key: SecretKey, party: str
) -> None:
    """Two nodes are two if both answer."""
    terms = replace(TERMS, lost=0)
    grid = Grid(tmp_path, terms, key)
    first = next(node for node, context in grid.nodes.items() if context.node_config["party"] == party)

    def killed(replies: list[Message]) -> list[Message]:
        grid.killed.add(first)
        grid.harm.clear()
        grid.add(party)
        return []

    grid.harm[party] = killed
    exchange = GridExchange(grid)
    exchange.meet([USER, *terms.names], 0.5)
    good(Proxy(terms).run(exchange), 3)
    assert first in grid.get_node_ids() and exchange.nodes[party] != first


def test_a_node_whose_first_process_started_too_late_is_greeted_again(grid: Grid) -> None:
    grid.slow = set(grid.nodes)
    good(grid.totals()[0], 3)
    assert grid.slow == set()


def test_an_owner_that_missed_the_last_totals_is_told_again(grid: Grid) -> None:
    """As many as may not be lost have the model in the end."""
    missed: list[str] = []

    def late(name: str) -> Callable[[list[Message]], list[Message]]:
        def harm(replies: list[Message]) -> list[Message]:
            if name in missed or Wire.from_bytes(payload(replies[0]) or b"").kind != Kind.DONE:
                return replies
            missed.append(name)
            return []

        return harm

    grid.harm = {name: late(name) for name in ("owner-1", "owner-2")}
    asked: list[list[str]] = []
    exchange = GridExchange(grid)
    exchange.meet([USER, *TERMS.names], 0.5)
    Proxy(TERMS).run(lambda requests, timeout: asked.append(list(requests)) or exchange(requests, timeout))
    assert asked[-2:] == [list(TERMS.names), missed] == [list(TERMS.names), ["owner-1", "owner-2"]]


def test_an_owner_gives_the_same_bytes_again_and_never_fresh_noise(grid: Grid) -> None:
    answers: list[bytes] = []
    grid.harm["owner-1"] = harmed(lambda data: answers.append(data) or data)
    grid.totals()
    asked = [m for m in grid.sent if m.metadata.dst_node_id == 100 and m.metadata.message_type == "query.ask"]
    grid.harm.clear()
    for message, answer in zip(asked, answers, strict=True):
        assert payload(client(message, grid.nodes[100])) == answer
    wire = Wire.from_bytes(payload(asked[0]) or b"")
    other = replace(wire, body=wire.body + b"\0" * 8)  # another question in the place of the first
    refusal = payload(client(Message(record(other.to_bytes()), 100, "query.ask"), grid.nodes[100])) or b""
    assert Wire.from_bytes(refusal).kind == Kind.REFUSAL


def test_an_owner_that_died_over_its_share_has_given_none(grid: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is drawn first and noted then, at once with its question: what is not on the disk has not left."""
    from fdadp.federated import parties

    def dies(*_: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(parties, "pack", dies)
        with pytest.raises(ProtocolError, match="at least 2 of 3"):
            grid.totals()
    assert grid.state("owner-1") == {}
    good(grid.totals()[0], 3)
    assert {"share 0?", "share 0", "totals"} <= grid.state("owner-1").keys()


def test_an_owner_that_died_before_its_share_was_written_has_given_none(
    grid: Grid, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[bytes] = []

    save = Store.save

    def dies(self: Store, state: Any) -> None:
        if "share 0" in state:
            raise OSError("disk full")
        save(self, state)

    grid.harm["owner-1"] = harmed(lambda data: left.append(data) or data)
    with monkeypatch.context() as patch, pytest.raises(ProtocolError, match="at least 2 of 3"):
        patch.setattr(Store, "save", dies)
        grid.totals()
    assert len(left) == 3 and all(Wire.from_bytes(data).kind == Kind.REFUSAL for data in left)
    assert grid.state("owner-1") == {}
    grid.harm.clear()
    good(grid.totals()[0], 3)


@pytest.mark.parametrize("at", range(1, 6))
def test_a_server_app_that_died_is_started_again(tmp_path: Path, key: SecretKey, at: int) -> None:
    """At any message to a node; each party is a new process for each message, and has its folder only."""
    steps = {**TERMS.settings, "mechanism": "power", "n_iter": 1, "mean_share": 0.0}
    grid = Grid(tmp_path, replace(TERMS, settings=steps), key)
    answers: dict[str, list[bytes]] = {name: [] for name in (USER, *TERMS.names)}
    asked = 0

    def dies(name: str) -> Callable[[list[Message]], list[Message]]:
        def harm(replies: list[Message]) -> list[Message]:
            nonlocal asked
            asked += 1
            answers[name] += [payload(reply) or b"" for reply in replies]
            if asked == at:
                raise KeyboardInterrupt
            return replies

        return harm

    grid.harm = {name: dies(name) for name in answers}
    with pytest.raises(KeyboardInterrupt):
        grid.totals()
    totals, proxy = grid.totals()
    assert {shares for _, shares in totals} == {3} and proxy.refused_ == []
    for name in TERMS.names:
        shares = [Wire.from_bytes(data) for data in answers[name]]
        given = {(m.index, m.body) for m in shares if m.kind == Kind.SHARE}
        assert len(given) == len(totals)
        assert grid.state(name, grid.contract)["totals"] == Totals.to_bytes(totals)


def test_the_key_is_deleted_when_the_run_is_done_and_not_before(grid: Grid) -> None:
    where = _key_path(grid.folder / USER, the_key().public.digest)
    kept: list[bool] = []
    grid.harm[USER] = lambda replies: kept.append(where.exists()) or replies
    totals, _ = grid.totals()
    assert kept == [True, False]  # after it has sent the key, and after the last total
    assert not list((grid.folder / USER).glob("**/key*"))
    again, _ = grid.totals()  # a proxy that comes late gets the same
    assert Totals.to_bytes(again) == Totals.to_bytes(totals)


def test_a_user_without_its_key_says_so(grid: Grid) -> None:
    _key_path(grid.folder / USER, the_key().public.digest).unlink()
    with pytest.raises(ProtocolError, match="the data user's key is not here"):
        grid.totals()


def test_what_fails_at_an_owner_stays_there(grid: Grid, caplog: pytest.LogCaptureFixture) -> None:
    """The text of an error may hold a private value; the proxy must not get it."""
    del grid.nodes[100]
    grid.add("owner-1", data=f"{__name__}:tells_a_secret")
    with pytest.warns(FdadpWarning, match="without owner-1"):
        totals, proxy = grid.totals()
    good(totals, 2)
    assert proxy.refused_[0] == ("owner-1", "refused: owner-1 failed; why is in the log of its node")
    assert "4711" in caplog.text


def tells_a_secret() -> Any:
    raise ValueError("could not convert '4711'")


def gives_rows() -> list[np.ndarray]:
    return [np.ones((2, D))]


def test_data_come_from_a_file_or_a_function(tmp_path: Path) -> None:
    np.savez(tmp_path / "two.npz", X=np.ones((2, 3)), y=np.zeros(2))
    X, y = rows(str(tmp_path / "two.npz"))
    assert X.shape == (2, 3) and y.shape == (2,)
    assert rows(f"{__name__}:gives_rows")[0].shape == (2, D)
    with pytest.raises(InputError, match=r"data must be an \.npz file or module:function, got 'rows.csv'"):
        rows("rows.csv")


def test_a_store_is_for_its_owner_alone_and_survives(tmp_path: Path) -> None:
    public = new_key(tmp_path, 2048)
    terms = DRAFT.with_key(public)
    with Store(tmp_path, terms, USER).opened() as store:
        store.save({"a": b"\0\xff"})
    folder = next(path for path in tmp_path.iterdir() if path.is_dir())
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    files = [folder / "state.json", _key_path(tmp_path, public.digest)]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    with Store(tmp_path, terms, USER).opened() as store:
        key = store.key()
        assert key is not None and key.public.n == public.n and store.state() == {"a": b"\0\xff"}
        message = int(public.n) - 5
        (cipher,) = public.encrypt([message], Randomness(public))
        assert key.decrypt([cipher]) == [message]
        store.forget_key()
        assert store.key() is None
        store.forget_key()
    with Store(tmp_path, TERMS, USER).opened() as store:
        assert store.state() == {} and store.key() is None
    (folder / "state.json").write_text("{")
    with Store(tmp_path, terms, USER).opened() as store, pytest.raises(FileFormatError, match="as this party wrote it"):
        store.state()


def test_the_user_makes_the_key_and_the_terms_final_by_command(tmp_path: Path) -> None:
    draft, final = tmp_path / "draft.json", tmp_path / "contract.json"
    draft.write_text(DRAFT.to_json())
    options = ["federated", "key", str(draft), str(final), "--store", str(tmp_path / "store")]
    done = CliRunner().invoke(cli, options)
    assert done.exit_code == 0, done.output
    terms = Contract.from_json(final.read_text())
    assert terms.key is not None and terms.key in done.output.replace("\n", "")
    assert replace(terms, key=None) == DRAFT
    with Store(tmp_path / "store", terms, USER).opened() as store:
        key = store.key()
        assert key is not None and key.public.digest == terms.key
    again = CliRunner().invoke(cli, ["federated", "key", str(final), str(draft), "--store", str(tmp_path / "store")])
    assert again.exit_code == 2 and "has a key already" in again.output


def test_without_flower_it_is_named_with_the_versions_that_suit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("fdadp.federated.flower.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'flwr>=1\.41,<1\.42'"):
        require_flower()
    assert "flwr>=1.41,<1.42" in (Path(__file__).parents[3] / "setup.cfg").read_text()
    with pytest.raises(InputError, match="needs flwr"), LocalFlower(tmp_path, {}):
        pass


def test_the_command_says_what_is_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "here").write_text("")
    result = CliRunner().invoke(cli, ["federated", "demo", "--out", str(tmp_path)])
    assert result.exit_code == 2 and "--out must be a new or empty folder" in result.output
    monkeypatch.setattr("fdadp.federated.flower.find_spec", lambda name: None)
    result = CliRunner().invoke(cli, ["federated", "demo"])
    assert result.exit_code == 2 and "pip install 'flwr>=1.41,<1.42'" in result.output


def test_the_protocol_is_imported_without_flower() -> None:
    code = "import sys; sys.modules['flwr'] = None; import fdadp.federated, fdadp.federated.flower.localhost_run"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_the_app_names_what_there_is() -> None:
    text = (APP / "pyproject.toml").read_text()
    assert 'serverapp = "fdadp.federated.flower.apps:server"' in text
    assert 'clientapp = "fdadp.federated.flower.apps:client"' in text
