"""Owners and coordinator over HTTP: what strangers, wrong messages, deaths and restarts change, which is nothing."""

from __future__ import annotations

import asyncio
import inspect
import re
import socket
import socketserver
import ssl
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("starlette", reason="starlette is not installed: pip install '.[service]'")
pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install '.[service]'")
pytest.importorskip("httpx", reason="httpx is not installed: pip install '.[service]'")

import httpx
from masked_tools import PCA, signed, signers
from typer.testing import CliRunner

from fdadp.cli.main import app
from fdadp.errors import InputError, PrivacyError
from fdadp.federated import Contract, ProtocolError, fit_in_clear
from fdadp.federated.federated_models import totals_from_bytes
from fdadp.federated.owners.data_owner import ContractProgram, DataOwner
from fdadp.federated.owners.owner_folder import MemoryKeeper, OwnerFolder
from fdadp.federated.owners.signed_messages import MessageKind
from fdadp.federated.run_contract import Signer
from fdadp.federated.service import coordinator_service
from fdadp.federated.service.coordinator_service import CoordinatorService, coordinate, listening
from fdadp.federated.service.owner_client import OwnerClient, Waits, own_part, take_part
from fdadp.federated.service.run_certificates import new_certificates, owner_connections, server_connections
from fdadp.privacy.certificate.signature import new_keys

OWNERS, HOST = 3, "127.0.0.1"
X = np.random.default_rng(0).normal(size=(300, 3)) * [1.5, 0.3, 0.3]
ROWS = [(part,) for part in np.array_split(X, OWNERS)]
QUICK = Waits(poll=0.02, longest=0.1, patience=60.0, farewell=1.0)
LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ [a-z]+ \d+ sender \d+: [a-z0-9 ,]+")


@dataclass
class Run:
    """Files of a run, made once."""

    home: Path
    contract: Contract

    @property
    def tls(self) -> Path:
        return self.home / "tls"

    def key(self, number: int) -> Path:
        return self.home / f"owner-{number}.pem"

    def connections(self, number: int) -> ssl.SSLContext:
        return owner_connections(self.tls / "ca.crt", self.tls / f"owner-{number}.crt", self.key(number))

    def owner(self, number: int, folder: Any, contract: Contract | None = None) -> DataOwner:
        terms = self.contract if contract is None else contract
        program = ContractProgram(terms, ROWS[number - 1], random_state=5000 + number - 1)
        signer = Signer(self.key(number))
        return DataOwner(terms, number, program, signer=signer, folder=folder, verified=terms.owner_keys)


def new_run(home: Path) -> Run:
    keys = tuple(Signer(new_keys(home / f"owner-{i}.pem")[0]).public for i in range(1, OWNERS + 1))
    contract = Contract("pca", PCA, OWNERS, n_max=1000, owner_keys=keys, simulation=True, pause=0.02)
    new_certificates(contract, HOST, home / "tls")
    return Run(home, contract)


@pytest.fixture(scope="module")
def a_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return new_run(tmp_path_factory.mktemp("run"))


def lines_of(log: list[str]) -> Any:
    def line(kind: str, index: int, sender: int, code: str) -> None:
        log.append(f"{kind.lower()} {index} sender {sender}: {code.lower()}")

    return line


@contextmanager
def served(run: Run, folder: Any, out: Path, log: list[str]) -> Iterator[str]:
    """A coordinator that listens, in a thread."""
    listener = listening(HOST, 0)
    arguments = (run.contract, folder, listener, server_connections(run.tls), out)
    thread = threading.Thread(
        target=coordinate, args=arguments, kwargs={"log": lines_of(log), "linger": 0.5, "patience": 1.0}
    )
    thread.start()
    yield f"https://{HOST}:{listener.getsockname()[1]}"
    thread.join(60.0)
    assert not thread.is_alive()


@pytest.mark.parametrize(("more", "stays"), [([], 600.0), (["--linger", "7"], 7.0)])
def test_a_coordinator_of_the_shell_stays_ten_minutes_after_the_end_or_as_it_is_told(
    a_run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, more: list[str], stays: float
) -> None:
    """An owner that missed the last reply asks again within them."""
    lingers: list[float] = []
    right = inspect.signature(coordinator_service._serve)

    async def told(*args: Any) -> None:
        given = right.bind(*args).arguments
        given["listener"].close()
        lingers.append(given["linger"])

    monkeypatch.setattr(coordinator_service, "_serve", told)
    (tmp_path / "contract.json").write_text(a_run.contract.to_json(), encoding="utf-8")
    files = {
        "--tls": a_run.tls,
        "--store": tmp_path / "store",
        "--out": tmp_path / "totals",
        "--host": HOST,
        "--port": 0,
    }
    words = [str(word) for pair in files.items() for word in pair]
    ran = CliRunner().invoke(app, ["federated", "coordinator", str(tmp_path / "contract.json"), *words, *more])
    assert ran.exit_code == 0, ran.output
    assert lingers == [stays]
    if not more:
        coordinate(
            a_run.contract, MemoryKeeper(), listening(HOST, 0), server_connections(a_run.tls), tmp_path / "totals"
        )
        assert lingers == [stays, stays]


class Proxy(socketserver.ThreadingTCPServer):
    """Forwards bytes of CONNECT requests, as the proxy of a hospital does; `asked` has their first lines."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__((HOST, 0), _Connect)
        self.asked: list[bytes] = []
        self.url = f"http://{HOST}:{self.server_address[1]}"


class _Connect(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        line = self.rfile.readline()
        self.server.asked.append(line)
        while self.rfile.readline().strip():
            pass
        host, port = line.split()[1].decode().split(":")
        with socket.create_connection((host, int(port))) as there:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=self._forward, args=(there, self.connection))
            back.start()
            self._forward(self.connection, there)
            back.join()

    @staticmethod
    def _forward(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


def all_take_part(run: Run, url: str, proxy: str) -> list[DataOwner]:
    """The first owner goes through a proxy."""
    found: list[DataOwner] = []

    def part(number: int) -> None:
        party, way = run.owner(number, MemoryKeeper()), proxy if number == 1 else None
        client = OwnerClient(party, url, run.connections(number), proxy=way, log=lines_of([]), waits=QUICK)
        take_part(client, MemoryKeeper())
        found.append(party)

    threads = [threading.Thread(target=part, args=(i,)) for i in range(1, OWNERS + 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    assert len(found) == OWNERS
    return found


@cache
def in_clear(text: str) -> Any:
    return fit_in_clear(Contract.from_json(text), ROWS, random_state=5)


def check_model(fitted: Any, run: Run) -> None:
    central = in_clear(run.contract.to_json())
    np.testing.assert_array_equal(fitted.components_, central.components_)
    np.testing.assert_array_equal(fitted.explained_variance_, central.explained_variance_)


# ---------------------------------------------------------------- strangers


@contextmanager
def connected(run: Run, url: str, wait: float = 5.0) -> Iterator[ssl.SSLSocket]:
    """A connection of owner 1."""
    host, port = url.removeprefix("https://").split(":")
    with (
        socket.create_connection((host, int(port)), timeout=wait) as plain,
        run.connections(1).wrap_socket(plain, server_hostname=host) as stream,
    ):
        yield stream


def raw(run: Run, url: str, head: bytes, body: bytes = b"", wait: float = 5.0) -> bytes:
    """What the coordinator says to bytes of owner 1."""
    with connected(run, url, wait) as stream:
        stream.sendall(head + b"\r\nhost: coordinator\r\n\r\n" + body)
        return stream.recv(1000)


def check_wrong_certificates(run: Run, url: str, home: Path) -> None:
    """None, of another authority, of another role, without TLS 1.3: no connection; and the owner sees who serves."""
    other = home / "other"
    new_certificates(run.contract, HOST, other)
    plain = ssl.create_default_context(cafile=str(run.tls / "ca.crt"))
    strange = owner_connections(run.tls / "ca.crt", other / "owner-1.crt", run.key(1))
    server = owner_connections(run.tls / "ca.crt", run.tls / "coordinator.crt", run.tls / "coordinator.key")
    deceived = owner_connections(other / "ca.crt", run.tls / "owner-1.crt", run.key(1))
    old = run.connections(1)
    old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2
    for context in (plain, strange, server, deceived, old):
        with pytest.raises(httpx.TransportError), httpx.Client(verify=context, trust_env=False) as client:
            client.post(f"{url}/{run.contract.digest.hex()}/1", content=b"")
    with httpx.Client(verify=run.connections(1), trust_env=False) as client:
        assert client.post(f"{url}/", content=b"").status_code == 404
        assert client.get(f"{url}/").status_code == 405
        with pytest.raises(httpx.TransportError):
            client.post(f"{url.replace(HOST, 'localhost')}/", content=b"")  # another name than the certificate's
    with pytest.raises(PrivacyError, match="PEM files of one run, with this party's key"):
        owner_connections(run.tls / "ca.crt", run.tls / "owner-2.crt", run.key(1))


def check_lengths(run: Run, url: str, log: list[str]) -> None:
    """Undeclared, oversized, cut off: refused, and without reading what is too long."""
    post = b"POST /" + run.contract.digest.hex().encode() + b"/1 HTTP/1.1\r\n"
    for head, body, status, line in (
        (b"content-length: 9999999", b"", b"413", "message 0 sender 1: oversized"),
        (b"transfer-encoding: chunked", b"0\r\n\r\n", b"411", "message 0 sender 1: length"),
        (b"content-length: 300", b"x" * 300, b"413", "message 0 sender 1: oversized"),
        (b"content-length: 100", b"x" * 99, b"408", "message 0 sender 1: cut off"),
        (b"content-length: 3", b"xyz", b"400", "message 0 sender 1: form"),
    ):
        log.clear()
        assert raw(run, url, post + head, body).startswith(b"HTTP/1.1 " + status)
        assert log == [line]


@contextmanager
def slow_strangers(run: Run, url: str, count: int) -> Iterator[None]:
    """Twice as many as the coordinator has places. Each says a byte now and then, until it is cut."""
    post = b"POST /" + run.contract.digest.hex().encode() + b"/1 HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n"
    cut = list[int]()

    def drip(at: int) -> None:
        with suppress(OSError), connected(run, url) as stream:
            stream.sendall(post + b"\r\n" if at % 4 == 0 else post)
            while True:
                time.sleep(0.05)
                stream.sendall(b"a")
        cut.append(at)

    threads = [threading.Thread(target=drip, args=(at,)) for at in range(count)]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join(30.0)
    assert sorted(cut) == list(range(count))


def test_a_run_with_strangers(a_run: Run, tmp_path: Path) -> None:
    """They come first; then the owners, whose model is that of shares added in clear."""
    out, log = tmp_path / "totals", []
    with closing(OwnerFolder(tmp_path / "coordinator")) as folder, served(a_run, folder, out, log) as url:
        check_wrong_certificates(a_run, url, tmp_path)
        check_lengths(a_run, url, log)
        log.clear()
        with slow_strangers(a_run, url, 2 * (4 * OWNERS + 4)), Proxy() as proxy:
            threading.Thread(target=proxy.serve_forever, daemon=True).start()
            parties = all_take_part(a_run, url, proxy.url)
            proxy.shutdown()
    assert {line.split()[0] for line in proxy.asked} == {b"CONNECT"}
    for party in parties:
        check_model(party.result_, a_run)
    (total,) = totals_from_bytes(out.read_bytes())
    np.testing.assert_array_equal(total, parties[0].totals_[0])
    expected = [(kind, index) for kind, index in (("consent", 0), ("ready", 0), ("share", 0), ("done", 1))]
    log = [line for line in log if line != "message 0 sender 1: cut off"]
    assert sorted(log) == sorted(f"{k} {i} sender {n}: taken" for k, i in expected for n in range(1, OWNERS + 1))


# ---------------------------------------------------------------- messages, without a network


class InThisThread(httpx.BaseTransport):
    """Requests to a service without a network."""

    def __init__(self, service: CoordinatorService, sent: list[bytes]) -> None:
        self._app, self._sent = httpx.ASGITransport(service.app), sent

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self._sent.append(request.content)

        async def answered() -> httpx.Response:
            reply = await self._app.handle_async_request(request)
            content = await reply.aread()
            return httpx.Response(reply.status_code, headers=reply.headers, stream=httpx.ByteStream(content))

        return asyncio.run(answered())


class Network:
    """Coordinator and owners in this thread; whoever has died comes back with its folder."""

    def __init__(self, run: Run) -> None:
        self.run, self.log, self.sent = run, list[str](), list[bytes]()
        self.folders: dict[int, MemoryKeeper] = {i: MemoryKeeper() for i in range(OWNERS + 1)}
        self.owners = {i: run.owner(i, self.folders[i]) for i in range(1, OWNERS + 1)}
        self.ended: set[int] = set()
        self.begin()

    def begin(self) -> None:
        self.service = CoordinatorService(self.run.contract, self.folders[0], log=lines_of(self.log))

    def post(self, number: int, message: bytes, digest: bytes | None = None) -> httpx.Response:
        name = (self.run.contract.digest if digest is None else digest).hex()
        with self.client() as client:
            return client.post(f"https://a/{name}/{number}", content=message)

    def client(self) -> httpx.Client:
        return httpx.Client(transport=InThisThread(self.service, self.sent))

    def step(self, number: int) -> None:
        """One question of an owner, and its answer."""
        party, log = self.owners[number], lines_of(self.log)
        owner = OwnerClient(party, "https://a", None, log=log, waits=QUICK, sleep=id)
        with self.client() as client:
            if owner._step(client):
                self.ended.add(number)

    def finish(self) -> None:
        for _ in range(20):
            for number in self.owners.keys() - self.ended:
                self.step(number)
        assert self.ended == self.owners.keys()
        for party in self.owners.values():
            check_model(party.result_, self.run)


def check_refused(network: Network, number: int, message: bytes, line: str, digest: bytes | None = None) -> None:
    before = dict(network.folders[0])
    network.log.clear()
    assert network.post(number, message, digest).status_code >= 400
    assert network.log == [line]
    assert network.folders[0] == before


def test_wrong_messages_change_nothing(a_run: Run) -> None:
    network = Network(a_run)
    first, second = network.owners[1], network.owners[2]
    consent, poll = first.consent(), first.poll()
    other = replace(a_run.contract, run="another")
    strange = signed(1, MessageKind.CONSENT, 0, b"")  # of a contract of other keys
    assert Signer(a_run.key(1)).public != signers(3)[0].public
    check_refused(network, 1, consent, "message 0 sender 0: address", other.digest)
    check_refused(network, 4, consent, "message 0 sender 0: address")
    check_refused(network, 0, consent, "message 0 sender 0: address")
    check_refused(network, 2, consent, "consent 0 sender 2: sender")
    check_refused(network, 1, strange, "consent 0 sender 1: contract")
    check_refused(network, 1, consent[:-1], "message 0 sender 1: form")
    check_refused(network, 1, consent[:-1] + bytes([consent[-1] ^ 1]), "consent 0 sender 1: signature")
    check_refused(network, 2, poll, "poll 0 sender 2: sender")
    reply = network.post(1, poll)
    assert (reply.status_code, reply.content) == (200, b"")
    check_refused(network, 1, poll, "poll 0 sender 1: answered")
    network.step(1)
    assert network.post(1, first.poll()).status_code == 204
    network.step(2)
    network.step(3)
    check_refused(network, 1, consent, "consent 0 sender 1: order")
    check_refused(network, 2, second.consent(), "consent 0 sender 2: order")
    network.finish()


def test_an_owner_that_cannot_go_on_ends_the_run(a_run: Run) -> None:
    network = Network(a_run)
    refusals = {code: network.owners[1]._message(MessageKind.REFUSAL, 0, bytes([code])) for code in (4, 11, 77)}
    for code, name in ((4, "order"), (77, "unknown")):
        assert network.post(1, refusals[code]).status_code == 204
        assert network.log[-1] == f"refusal 0 sender 1: {name}"
    assert not network.service.ended.is_set()
    assert network.post(1, refusals[11]).status_code == 204
    assert network.service.ended.is_set()
    assert "owner 1 refuses release 0: the model cannot be computed" in str(network.service.failure)


def test_an_owner_ends_where_it_cannot_go_on(a_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network(a_run)
    for number in (1, 2, 3):
        network.step(number)
    monkeypatch.setattr(DataOwner, "_expired", True)
    with pytest.raises(ProtocolError, match="and refuses: expired"):
        network.step(1)
    assert network.log[-2:] == ["refusal 0 sender 1: expired", "refusal 0 sender 1: expired"]


def replied(status: int, content: bytes = b"", headers: dict[str, str] | None = None) -> httpx.Response:
    return httpx.Response(status, headers=headers, stream=httpx.ByteStream(content))


def test_an_owner_reads_no_more_than_can_be_asked(a_run: Run) -> None:
    """And believes nobody without a signature, nor a reply that says that all is over."""
    party, log = a_run.owner(1, MemoryKeeper()), list[str]()
    client = OwnerClient(party, "https://a", a_run.connections(1), log=lines_of(log), waits=QUICK, sleep=id)
    replies, long = list[httpx.Response](), b"x" * (party.longest_request + 1)
    transport = httpx.MockTransport(lambda request: replies.pop(0))
    with httpx.Client(transport=transport) as network:
        for reply, line in (
            (replied(200, long, {"content-length": str(len(long))}), "oversized"),
            (replied(200, long), "oversized"),
            (replied(404), "status 404"),
            (replied(302, headers={"location": "https://b"}), None),
            (replied(205), None),
        ):
            log.clear()
            replies.append(reply)
            assert client._step(network) is False
            assert log == ([] if line is None else [f"reply 0 sender 0: {line}"])
        replies += [replied(200, long[1:]), replied(204)]
        client._step(network)
    assert log[-1] == "refusal 0 sender 1: form" and party._state is None


def test_patience_and_farewell(a_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """An owner without a coordinator gives up after its patience; one that has the model ends in peace.

    Its clock goes on by what it sleeps: on a busy machine one try took longer than the patience.
    """
    with closing(listening(HOST, 0)) as closed:
        url = f"https://{HOST}:{closed.getsockname()[1]}"
    waits, slept = replace(QUICK, patience=0.3, farewell=0.1), list[float]()
    monkeypatch.setattr("fdadp.federated.service.owner_client.time", SimpleNamespace(monotonic=lambda: sum(slept)))
    party, sleep = a_run.owner(1, MemoryKeeper()), slept.append
    with pytest.raises(ProtocolError, match=r"must be heard of within 0\.3 seconds"):
        OwnerClient(party, url, a_run.connections(1), log=lines_of([]), waits=waits, sleep=sleep).run()
    assert slept == [0.04, 0.08, 0.1, 0.1]
    party.result_ = "a model"
    OwnerClient(party, url, a_run.connections(1), log=lines_of([]), waits=waits, sleep=sleep).run()
    assert slept[4:] == [0.04, 0.08]


def test_answers_leave_at_multiples_of_the_pause(a_run: Run) -> None:
    contract, slept = replace(a_run.contract, pause=5.0), list[float]()
    party = a_run.owner(1, MemoryKeeper(), contract)
    client = OwnerClient(party, "https://a", a_run.connections(1), sleep=slept.append)
    for elapsed in (0.0, 0.1, 4.9, 5.0, 5.1, 12.0):
        client._pause(elapsed)
    np.testing.assert_allclose(slept, [5.0, 4.9, 0.1, 0.0, 4.9, 3.0])
    for wrong in (-1.0, float("nan"), True, "5"):
        with pytest.raises(InputError, match="pause must be from 0 to 3600 seconds"):
            replace(contract, pause=wrong)


def test_a_fault_goes_into_the_folder_and_not_to_the_log(a_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    party, folder = a_run.owner(1, MemoryKeeper()), MemoryKeeper()
    client = OwnerClient(party, "https://a", a_run.connections(1))

    def fails(self: Any) -> None:
        raise KeyError("a row of somebody")

    monkeypatch.setattr(OwnerClient, "run", fails)
    with pytest.raises(ProtocolError, match="ended by a KeyError: see traceback in its folder") as caught:
        take_part(client, folder)
    assert "somebody" not in str(caught.value) and caught.value.__suppress_context__
    assert b"a row of somebody" in folder["traceback"]


def test_certificates_are_made_once(a_run: Run) -> None:
    with pytest.raises(PrivacyError, match=r"must hold no certificates yet, got .*, which has ca\.crt"):
        new_certificates(a_run.contract, HOST, a_run.tls)
    assert (a_run.tls / "coordinator.key").stat().st_mode & 0o777 == 0o600
    names = {file.name for file in a_run.tls.iterdir()}
    assert names == {"ca.crt", "coordinator.crt", "coordinator.key", *(f"owner-{i}.crt" for i in (1, 2, 3))}


@pytest.mark.parametrize(
    ("said", "error"),
    [({"host": "münchen.de"}, "host"), ({"host": ""}, "host"), ({"host": "a b"}, "host"), ({"days": 10**9}, "days")],
)
def test_certificates_of_no_host_and_no_time(a_run: Run, tmp_path: Path, said: dict[str, Any], error: str) -> None:
    with pytest.raises(InputError, match=f"{error} must be a"):
        new_certificates(a_run.contract, **{"host": "localhost", "folder": tmp_path / "x", **said})
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("url", ["http://coordinator:8443", "coordinator:8443", ""])
def test_an_owner_speaks_by_tls_or_not_at_all(tmp_path: Path, url: str) -> None:
    """Before it reads a file: it would have waited for a coordinator, for days."""
    none = tmp_path / "none"
    with pytest.raises(InputError, match="url must be the coordinator's, as https://coordinator:8443, got"):
        own_part(url, "", none, key=none, certificates=(none, none), verified=(), store=none, out=none)


def test_the_later_message_of_an_owner_counts(a_run: Run) -> None:
    """A body that does not come, whoever sent it, does not keep its owner's next message out."""
    log: list[str] = []

    async def both() -> list[int]:
        service = CoordinatorService(a_run.contract, MemoryKeeper(), log=lines_of(log), patience=1e6)
        begun, address = asyncio.Event(), f"https://a/{a_run.contract.digest.hex()}/1"

        async def slow() -> AsyncIterator[bytes]:
            yield b"x"
            begun.set()
            await asyncio.Event().wait()

        async with httpx.AsyncClient(transport=httpx.ASGITransport(service.app)) as client:
            first = asyncio.create_task(client.post(address, content=slow(), headers={"content-length": "100"}))
            await begun.wait()
            second = await client.post(address, content=b"xyz")
            return [(await asyncio.wait_for(first, 60.0)).status_code, second.status_code]

    assert asyncio.run(both()) == [408, 400]
    assert sorted(log) == ["message 0 sender 1: cut off", "message 0 sender 1: form"]


def test_polls_after_restarts(a_run: Run) -> None:
    """A new process of the coordinator takes what an owner asks next, and one of the owner asks with a higher count.

    The coordinator forgets the counts: a poll of before is answered once more, with what everybody may see.
    """
    network = Network(a_run)
    first, later = network.owners[1].poll(), network.owners[1].poll()
    assert network.post(1, later).status_code == 200
    for old in (first, later):
        check_refused(network, 1, old, "poll 0 sender 1: answered")
    network.begin()
    assert network.post(1, later).content == b""
    check_refused(network, 1, first, "poll 0 sender 1: answered")
    assert network.post(1, network.owners[1].poll()).status_code == 200
    for _ in range(3):
        network.owners[1] = a_run.owner(1, network.folders[1])
        assert network.post(1, network.owners[1].poll()).status_code == 200
    network.finish()


# ---------------------------------------------------------------- deaths


class Killed(BaseException):
    """In place of a SIGKILL."""


def dying(real: Callable[..., Any], left: list[int]) -> Callable[..., Any]:
    """A function before or after a call of which its process dies."""

    def call(*arguments: Any) -> Any:
        for when in ("before", "after"):
            left[0] -= 1
            if left[0] == 0:
                raise Killed
            if when == "before":
                found = real(*arguments)
        return found

    return call


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.statistics), 3])
@pytest.mark.parametrize("who", ["owner", "coordinator"])
def test_a_party_that_dies_at_any_write_or_message(
    a_run: Run, who: str, every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes back with what it kept: one answer of each owner to each question, and the same model.

    Before or after each write and message (of which make test has every third).
    """
    at, runs = 1 - every, 0
    while True:
        at, deaths, runs = at + every, 0, runs + 1
        left = [at]
        network = Network(a_run)
        number = 0 if who == "coordinator" else 1
        with monkeypatch.context() as patch:
            patch.setattr(MemoryKeeper, "write", _of(number, network, MemoryKeeper.write, left))
            patch.setattr(OwnerClient, "_posted", dying(OwnerClient._posted, left if number else [-1]))
            patch.setattr(CoordinatorService, "_answer", dying(CoordinatorService._answer, [-1] if number else left))
            for _ in range(12):
                for i in network.owners.keys() - network.ended:
                    with suppress(Killed):
                        network.step(i)
                    if left[0] == 0:
                        left[0], deaths = -1, deaths + 1
                        network.begin() if not number else network.owners.update(
                            {1: a_run.owner(1, network.folders[1])}
                        )
        network.finish()
        answers = {message for message in network.sent if message[5] != MessageKind.POLL}
        said = sorted((message[5], message[7]) for message in answers)  # kind and sender: one release
        assert said == sorted((kind, i) for kind in (1, 3, 5, 6) for i in (1, 2, 3))
        if left[0] > 0:
            break
        assert deaths == 1
    assert deaths == 0 and runs > 20 // every


def _of(number: int, network: Network, write: Callable[..., Any], left: list[int]) -> Callable[..., Any]:
    """Writes of one party, which may be its last; those of the others as they are."""
    mortal = dying(write, left)

    def call(keeper: MemoryKeeper, name: str, data: bytes) -> None:
        (mortal if keeper is network.folders[number] else write)(keeper, name, data)

    return call
