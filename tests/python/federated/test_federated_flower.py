"""Masked sums on Flower: the apps on a grid in memory that loses and harms messages."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="flwr is not installed: pip install '.[federated]' (Python 3.11 or newer)")

from flwr.app import Context, Error, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity
from masked_tools import refusal_of
from typer.testing import CliRunner

from fdadp.cli.main import app as cli
from fdadp.errors import InputError, PrivacyError
from fdadp.federated import Contract, ProtocolError, federated_models, fit_in_clear
from fdadp.federated.federated_models import totals_from_bytes
from fdadp.federated.flower import APP, require_flower
from fdadp.federated.flower.apps import client, payload, record, rows, serve
from fdadp.federated.flower.localhost_run import LocalFlower, run_local
from fdadp.federated.owners.coordinator import Coordinator, RunEnded
from fdadp.federated.owners.owner_folder import OwnerFolder
from fdadp.federated.owners.signed_messages import MessageKind, Refusal, SignedMessage
from fdadp.federated.run_contract import Signer, public_key_of
from fdadp.privacy.certificate.signature import new_keys
from fdadp.privacy.study import Study

D = 3
DRAFT = Contract(
    "pca",
    {"epsilon": 2.0, "delta": 1e-6, "n_components": 1, "data_norm": 3.0, "n_features": D},
    3,
    n_max=1000,
    run="a-run",
    transport="flower",
    pause=0.0,
)
STEPS = {**DRAFT.settings, "mechanism": "power", "n_iter": 1, "mean_share": 0.0}
"""Two releases."""
DATA = np.random.default_rng(0).normal(size=(900, D)) * [1.5, 0.2, 0.2]
QUICK = {"timeout": 0.0, "patience": 0.0, "pause": 0.0, "at_once": 2}


@pytest.fixture(autouse=True)
def identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flower sets this where it starts an app."""
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keys of the owners and of a stranger, and in a folder the public ones that owners verified."""
    home = tmp_path_factory.mktemp("keys")
    (home / "verified").mkdir()
    for name in (*DRAFT.names, "stranger"):
        _, public = new_keys(home / f"{name}.pem")
        if name != "stranger":
            shutil.copy(public, home / "verified" / f"{name}.pub")
    return home


def terms(keys: Path, **changes: Any) -> Contract:
    public = tuple(public_key_of(keys / "verified" / f"{name}.pub") for name in DRAFT.names)
    return replace(DRAFT, **{"owner_keys": public, **changes})


class Grid:
    """Flower's grid in memory: real messages, real client apps, and what a network does to answers.

    ``harm[name]`` gets the answers of a node to one message and returns those that arrive.
    """

    def __init__(self, folder: Path, keys: Path, **changes: Any) -> None:
        self.folder, self.keys, self.contract = folder, keys, terms(keys, **changes)
        self.nodes: dict[int, Context] = {}
        self.names: dict[int, str] = {}
        self.numbers = itertools.count(100)
        self.harm: dict[str, Callable[[list[Message]], list[Message]]] = {}
        self.killed: set[int] = set()  # Flower has them online for a while
        self.slow: set[int] = set()  # their next message is lost: Flower takes a process for dead that starts too late
        self.sent: list[Message] = []
        self.answers: dict[str, list[bytes]] = {name: [] for name in self.contract.names}
        self.out = folder / "totals"
        for name, part in zip(self.contract.names, np.array_split(DATA, self.contract.owners), strict=True):
            np.savez(folder / f"{name}.npz", X=part)
            self.add(name)

    def add(self, name: str, **changes: Any) -> int:
        node = next(self.numbers)
        file = self.folder / f"{node}.json"
        file.write_text(self.contract.to_json())
        config = {
            "contract": str(file),
            "store": str(self.folder / f"{name}-store"),
            "data": str(self.folder / f"{name}.npz"),
            "key": str(self.keys / f"{name}.pem"),
            "verified": str(self.keys / "verified"),
            "out": str(self.folder / f"{name}-totals"),
            **{key: str(value) for key, value in changes.items()},
        }
        self.nodes[node] = Context(run_id=1, node_id=node, node_config=config, state=RecordDict(), run_config={})
        self.names[node] = name
        return node

    def get_node_ids(self) -> Iterable[int]:
        return list(self.nodes)

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        replies = []
        for i, message in enumerate(messages):
            self.sent.append(message)
            message.metadata.__dict__["_message_id"] = f"{len(self.sent)}-{i}"
            node = message.metadata.dst_node_id
            if node not in self.nodes or node in self.killed | self.slow:
                self.slow.discard(node)
                replies.append(Message(Error(3, "node is offline"), reply_to=message))
                continue
            reply, name = client(message, self.nodes[node]), self.names[node]
            self.answers[name].append(payload(reply) or b"")
            replies += self.harm[name]([reply]) if name in self.harm else [reply]
        return replies

    def run(self, **changes: Any) -> list[np.ndarray]:
        """The server app, in a process of its own each time, and its totals."""
        file = self.folder / "contract.json"
        file.write_text(self.contract.to_json())
        config = {**QUICK, "contract": str(file), "store": str(self.folder / "coordinator"), "out": str(self.out)}
        serve(self, Context(1, 1, {}, RecordDict(), {**config, **changes}))
        return totals_from_bytes(self.out.read_bytes())

    @property
    def coordinator(self) -> Coordinator:
        """What is on the coordinator's disk."""
        folder = OwnerFolder(self.folder / "coordinator")
        try:
            return Coordinator(self.contract, folder)
        finally:
            folder.close()

    def asked(self, node: int) -> list[bytes]:
        return [payload(m) or b"" for m in self.sent if m.metadata.dst_node_id == node]

    def again(self, node: int, asked: bytes) -> bytes:
        return payload(client(Message(record(asked), node, "query.ask"), self.nodes[node])) or b""


@pytest.fixture
def grid(tmp_path: Path, keys: Path) -> Grid:
    return Grid(tmp_path, keys)


def good(grid: Grid, totals: list[np.ndarray], releases: int = 1) -> None:
    """Totals of all owners, which all have, of one share each; and the model is the one of the data."""
    assert len(totals) == releases
    assert abs(federated_models.fit(grid.contract, None, totals).components_[0, 0]) > 0.95
    for name in grid.contract.names:
        assert (grid.folder / f"{name}-totals").read_bytes() == grid.out.read_bytes()
        shares = [m for m in map(SignedMessage.from_bytes, filter(None, grid.answers[name]))]
        given = {(m.index, m.body) for m in shares if m.kind == MessageKind.SHARE}
        assert len(given) == releases, name


def harmed(change: Callable[[bytes], bytes]) -> Callable[[list[Message]], list[Message]]:
    def harm(replies: list[Message]) -> list[Message]:
        for reply in replies:
            reply.content = record(change(payload(reply) or b""))
        return replies

    return harm


# ---------------------------------------------------------------- on a grid in memory


def test_a_run(grid: Grid, capsys: pytest.CaptureFixture[str]) -> None:
    totals = grid.run()
    good(grid, totals)
    said = capsys.readouterr().out
    assert "owner-2 is node 101" in said and "release 0: total of 3 owners" in said and "left out" not in said
    ledger = federated_models.fit(grid.contract, None, totals).ledger_
    assert ledger.for_release
    assert "the coordinator's program runs at every owner, where it can read rows and keys" in ledger.statement
    other = federated_models.fit(replace(grid.contract, transport="service"), None, totals).ledger_
    assert "Flower" not in other.statement


def test_totals_are_those_of_shares_in_clear(tmp_path: Path, keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fdadp.federated.owners import data_owner

    seeds = {part.tobytes(): 1000 + i for i, part in enumerate(np.array_split(DATA, 3))}
    plain = data_owner.ContractProgram
    monkeypatch.setattr(data_owner, "ContractProgram", lambda terms, data: plain(terms, data, seeds[data[0].tobytes()]))
    grid = Grid(tmp_path, keys, settings=STEPS, simulation=True)
    totals = grid.run()
    clear = fit_in_clear(grid.contract, [(part,) for part in np.array_split(DATA, 3)], random_state=1)
    model = federated_models.fit(grid.contract, None, totals)
    assert model.components_.tolist() == clear.components_.tolist() and not model.ledger_.for_release


def test_the_run_configuration_and_the_contract_are_checked(grid: Grid, keys: Path) -> None:
    for name in ("contract", "store", "out"):
        with pytest.raises(InputError, match=f"run configuration must give {name}, a path, got ''"):
            grid.run(**{name: ""})
    grid.contract = terms(keys, transport="service")
    with pytest.raises(ProtocolError, match="must have transport='flower' here, got 'service'"):
        grid.run()
    grid.contract = replace(DRAFT, owner_keys=())
    with pytest.raises(ProtocolError, match="must name a key of each owner"):
        grid.run()
    with pytest.raises(ProtocolError, match="must have transport='flower' here, got 'service'"):
        run_local(replace(DRAFT, transport="service"), [], grid.folder)


@pytest.mark.parametrize("setting", ["data", "key", "verified", "store", "contract", "out"])
def test_a_node_must_say_where_things_are(grid: Grid, caplog: pytest.LogCaptureFixture, setting: str) -> None:
    grid.nodes[100].node_config[setting] = ""
    with pytest.raises(ProtocolError, match="none did of owner-1"):
        grid.run()
    assert f"--node-config must give {setting}, a text" in caplog.text


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        pytest.param(lambda grid: {"key": grid.keys / "stranger.pem"}, "and names other ones", id="a stranger's key"),
        pytest.param(lambda grid: {"verified": grid.folder / "none"}, "must hold at least 1", id="too few verified"),
        pytest.param(lambda grid: {"contract": grid.folder / "other"}, "transport='flower' here", id="other transport"),
    ],
)
def test_an_owner_that_may_not_take_part_gives_nothing(
    grid: Grid, caplog: pytest.LogCaptureFixture, harm: Callable[[Grid], dict[str, Path]], said: str
) -> None:
    (grid.folder / "none").mkdir()
    (grid.folder / "other").write_text(replace(grid.contract, transport="service").to_json())
    del grid.nodes[100]
    grid.add("owner-1", **harm(grid))
    with pytest.raises(ProtocolError, match="none did of owner-1"):
        grid.run()
    assert said in caplog.text and not any(grid.answers["owner-1"])


def test_a_node_charges_its_study_once(grid: Grid, caplog: pytest.LogCaptureFixture) -> None:
    """Two owners, one of which has not got enough at first."""
    poor = Study.new(grid.folder / "poor.fdadp", name="Poor", epsilon=1.0, delta=1e-6, unit="row")
    study = Study.new(grid.folder / "own.fdadp", name="Own", epsilon=2.0, delta=1e-6, unit="row")
    grid.nodes[100].node_config["study"] = str(study.path)
    grid.nodes[101].node_config["study"] = str(poor.path)
    with pytest.raises(ProtocolError, match="none did of owner-2"):
        grid.run()
    assert "epsilon must be at most what study 'Poor' has left" in caplog.text
    assert (poor.left, study.left) == (1, 0)
    grid.nodes[101].node_config["study"] = str(grid.folder / "none.fdadp")
    with pytest.raises(ProtocolError, match="none did of owner-2"):
        grid.run()
    del grid.nodes[101].node_config["study"]
    assert len(grid.run()) == 1
    assert [fit.state for fit in study.fits] == ["spent"]


def test_an_owner_is_who_has_its_key(grid: Grid) -> None:
    """Another owner's node that comes with the rows and the store of the first does not stand for it."""
    del grid.nodes[100]
    grid.add("owner-1", key=grid.keys / "owner-2.pem", store=grid.folder / "new")
    with pytest.raises(ProtocolError, match="none did of owner-1"):
        grid.run()
    assert grid.coordinator.missing == {1}


def test_a_second_node_with_an_owners_key_does_not_end_the_run(grid: Grid) -> None:
    """One of both gives the share that counts; the other one refuses what does not follow from what it said."""
    grid.add("owner-2", store=grid.folder / "second", out=grid.folder / "second-totals")
    totals = grid.run()
    assert len(totals) == 1
    given = [SignedMessage.from_bytes(a) for a in grid.answers["owner-2"]]
    assert len({m.body for m in given if m.kind == MessageKind.SHARE}) == 1


@pytest.mark.parametrize("gone", ["no answer arrives", "it never came", "it was killed"])
def test_a_run_waits_for_a_lost_owner_and_ends_without(grid: Grid, gone: str) -> None:
    """No total without all of them; once it is back the run goes on."""
    if gone == "it never came":
        lost = grid.nodes.pop(101)
    elif gone == "it was killed":
        grid.killed.add(101)
    else:
        grid.harm["owner-2"] = lambda replies: []
    with pytest.raises(ProtocolError, match="all owners must answer, and within 0 s none did of owner-2"):
        grid.run()
    assert not grid.out.exists() and grid.coordinator.totals_ == []
    assert not any(m.kind == MessageKind.SHARE for o in (1, 3) for m in _said(grid, o))
    if gone == "it never came":
        grid.nodes[101] = lost
    grid.killed.clear()
    grid.harm.clear()
    good(grid, grid.run())


def _said(grid: Grid, number: int) -> list[SignedMessage]:
    return [SignedMessage.from_bytes(answer) for answer in grid.answers[f"owner-{number}"] if answer]


def test_an_owner_that_refuses_for_good_ends_the_run(grid: Grid, keys: Path) -> None:
    def final(data: bytes) -> bytes:
        found = SignedMessage.from_bytes(data)
        plain = SignedMessage(MessageKind.REFUSAL, 2, found.index, found.digest, bytes([Refusal.MODEL]))
        return plain.to_bytes()[:-64] + Signer(keys / "owner-2.pem").sign(plain.signed)

    grid.harm["owner-2"] = harmed(lambda data: data if data[5] == MessageKind.CONSENT else final(data))
    with pytest.raises(RunEnded, match="owner 2 refuses release 0: the model cannot be computed"):
        grid.run(patience=60.0)


def test_answers_are_signed(grid: Grid, keys: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What another party signed, or nobody, is left out."""
    other = Signer(keys / "owner-2.pem")

    def forged(data: bytes) -> bytes:
        return data[:-64] + other.sign(data)

    grid.harm["owner-1"] = harmed(lambda data: data if data[5] == MessageKind.CONSENT else forged(data))
    with pytest.raises(ProtocolError, match="none did of owner-1"):
        grid.run()
    assert "left out: owner-1: message is refused: it is not signed with the key" in capsys.readouterr().out
    grid.harm["owner-1"] = harmed(forged)
    with pytest.raises(ProtocolError, match="none did of owner-1"):
        grid.run()
    assert "node 100 is no owner: message is refused: it is not signed with the key" in capsys.readouterr().out
    grid.harm.clear()
    good(grid, grid.run())


def test_late_answers_are_left_out_and_come_again(tmp_path: Path, keys: Path) -> None:
    """Each answer but to a greeting comes one message late."""
    grid = Grid(tmp_path, keys, settings=STEPS)
    kept: list[Message] = []

    def late(replies: list[Message]) -> list[Message]:
        if (payload(replies[0]) or b"")[5] == MessageKind.CONSENT:
            return replies
        out, kept[:] = list(kept), replies
        return out

    grid.harm["owner-3"] = late
    good(grid, grid.run(patience=60.0), 2)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda data: data[:-70] + bytes([data[-70] ^ 1]) + data[-69:], id="one bit"),
        pytest.param(lambda data: data[: len(data) // 2], id="cut off"),
        pytest.param(lambda data: b"", id="empty"),
        pytest.param(lambda data: data + b"x", id="longer"),
    ],
)
def test_a_damaged_answer_is_left_out(grid: Grid, change: Callable[[bytes], bytes]) -> None:
    """Each one once; it is asked for again."""
    seen: set[bytes] = set()

    def once(data: bytes) -> bytes:
        found = data if data in seen else change(data)
        seen.add(data)
        return found

    grid.harm["owner-1"] = harmed(once)
    good(grid, grid.run(patience=60.0))
    assert len(seen) == 4  # consent, ready, share, done


def test_errors_of_the_engine_and_foreign_messages_are_no_answers(grid: Grid) -> None:
    grid.harm["owner-1"] = lambda replies: [Message(Error(2, "died"), reply_to=grid.sent[-1])]
    with pytest.raises(ProtocolError, match="none did of owner-1"):
        grid.run()
    assert payload(Message(RecordDict(), 100, "query.ask")) is None


def test_a_duplicate_counts_once(grid: Grid) -> None:
    grid.harm["owner-1"] = lambda replies: replies * 2
    good(grid, grid.run(patience=60.0))


def test_a_message_replayed_from_another_run_is_refused(grid: Grid, tmp_path: Path, keys: Path) -> None:
    (tmp_path / "before").mkdir()
    before = Grid(tmp_path / "before", keys, run="before")
    before.run()
    replayed = iter(before.answers["owner-1"])
    grid.harm["owner-1"] = harmed(lambda data: next(replayed, data))
    good(grid, grid.run(patience=60.0))
    assert not list(replayed)


def test_a_node_is_started_again_while_flower_has_the_killed_one_online(grid: Grid) -> None:
    def killed(replies: list[Message]) -> list[Message]:
        if (payload(replies[0]) or b"")[5] != MessageKind.READY:
            return replies
        grid.killed.add(101)
        grid.harm.clear()
        grid.add("owner-2")
        return []

    grid.harm["owner-2"] = killed
    good(grid, grid.run(patience=60.0))
    assert 101 in grid.killed and 101 in grid.get_node_ids()


def test_a_node_whose_first_process_started_too_late_is_greeted_again(grid: Grid) -> None:
    grid.slow = set(grid.nodes)
    good(grid, grid.run(patience=60.0))
    assert grid.slow == set()


def test_an_owner_gives_the_same_bytes_again_and_never_fresh_noise(grid: Grid) -> None:
    grid.run()
    for asked, answer in list(zip(grid.asked(100), grid.answers["owner-1"], strict=True))[-1:]:
        assert grid.again(100, asked) == answer
    (tmp := grid.folder / "two").mkdir()
    other = Grid(tmp, grid.keys)
    other.harm["owner-1"] = harmed(lambda data: b"" if data[5] == MessageKind.SHARE else data)
    with pytest.raises(ProtocolError):
        other.run()
    go = other.asked(100)[-1]
    share = other.again(100, go)
    assert share == other.answers["owner-1"][-1]
    message = SignedMessage.from_bytes(go)  # another question in the place of the first
    refused = other.again(100, replace(message, body=message.body[:-1] + bytes([message.body[-1] ^ 1])).to_bytes())
    assert refusal_of(refused) == Refusal.ANSWERED
    assert other.again(100, go) == share


@pytest.mark.parametrize("kind", ["state", "answered", "total-0"])
def test_an_owner_that_died_before_it_had_written_has_given_nothing(
    grid: Grid, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    write, full = OwnerFolder.write, [True]

    def dies(self: OwnerFolder, name: str, data: bytes) -> None:
        if full[0] and name.endswith(kind) and "owner-1" in self._path:
            raise OSError("disk full")
        write(self, name, data)

    monkeypatch.setattr(OwnerFolder, "write", dies)
    with pytest.raises(ProtocolError, match="none did of owner-1"):
        grid.run()
    assert grid.answers["owner-1"][-1] == b""
    full[0] = False
    good(grid, grid.run())


def test_a_message_waits_while_an_earlier_one_is_at_work(grid: Grid) -> None:
    """Processes of a node may overlap: each answers, one after the other."""
    folder, found = OwnerFolder(grid.folder / "owner-1-store"), list[bytes]()
    thread = threading.Thread(target=lambda: found.append(grid.again(100, b"")))
    thread.start()
    thread.join(0.5)
    assert thread.is_alive() and not found
    folder.close()
    thread.join(60)
    assert SignedMessage.from_bytes(found[0]).kind == MessageKind.CONSENT
    with pytest.raises(PrivacyError, match="one process at a time"):
        kept = OwnerFolder(grid.folder / "owner-1-store", wait=True)
        OwnerFolder(grid.folder / "owner-1-store")
    kept.close()


@pytest.mark.parametrize("at", range(1, 14, 2))
def test_a_server_app_that_died_is_started_again(tmp_path: Path, keys: Path, at: int) -> None:
    """At any message to a node: it asks the same bytes, and nobody gives a second share of a release."""
    grid = Grid(tmp_path, keys, settings=STEPS)
    left = at

    def dies(replies: list[Message]) -> list[Message]:
        nonlocal left
        left -= 1
        if left == 0:
            raise KeyboardInterrupt
        return replies

    grid.harm = dict.fromkeys(DRAFT.names, dies)
    with pytest.raises(KeyboardInterrupt):
        grid.run()
    good(grid, grid.run(), 2)
    requests: dict[tuple[int, int], set[bytes]] = {}
    for asked in {a for node in grid.nodes for a in grid.asked(node) if a}:
        message = SignedMessage.from_bytes(asked)
        requests.setdefault((message.kind, message.index), set()).add(asked)
    assert len(requests) == 5 and all(len(found) == 1 for found in requests.values())
    again = grid.out.read_bytes()
    grid.out.unlink()
    grid.run()  # one that comes late has the totals
    assert grid.out.read_bytes() == again


def test_answers_leave_at_multiples_of_the_pause(tmp_path: Path, keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fdadp.federated.flower import apps

    grid, slept = Grid(tmp_path, keys, pause=7.0), list[float]()
    monkeypatch.setattr(apps.time, "sleep", slept.append)
    grid.again(100, b"")
    assert 0 < slept[-1] < 7
    assert [grid.contract.rest_of_pause(took) for took in (0.0, 3.0, 7.0, 8.0)] == [7.0, 4.0, 0.0, 6.0]
    assert terms(keys).rest_of_pause(3.0) == 0


def test_what_fails_at_an_owner_stays_there(grid: Grid, caplog: pytest.LogCaptureFixture) -> None:
    """The text of an error may hold a private value; the coordinator must not get it."""
    grid.nodes[100].node_config["data"] = f"{__name__}:tells_a_secret"
    with pytest.raises(ProtocolError, match="none did of owner-1"):
        grid.run()
    assert set(grid.answers["owner-1"]) == {b""}
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


def test_keys_in_contracts(keys: Path) -> None:
    public = terms(keys).owner_keys
    alias = (bytes.fromhex("ee") + b"\xff" * 30 + bytes.fromhex("7f")).hex()  # the same point as of 1
    for wrong, said in (
        ((public[0], public[1], public[0]), "one key cannot be two owners"),
        (public[:2], "one of each of 3 owners"),
        (("a", "b", "c"), "64 hexadecimal digits"),
        ((*public[:2], alias), "64 hexadecimal digits"),
    ):
        with pytest.raises(InputError, match=said):
            replace(DRAFT, owner_keys=wrong)
    assert Contract.from_json(terms(keys).to_json()).owner_keys == public
    (keys / "owner-1.pem").chmod(0o644)
    with pytest.raises(PrivacyError, match="its owner alone may read"):
        Signer(keys / "owner-1.pem")
    (keys / "owner-1.pem").chmod(0o600)


def test_without_flower_it_is_named_with_the_versions_that_suit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("fdadp.federated.flower.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'flwr>=1\.41,<1\.42'"):
        require_flower()
    assert "flwr>=1.41,<1.42" in (Path(__file__).parents[3] / "pyproject.toml").read_text()
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
