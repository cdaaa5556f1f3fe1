"""The two Flower apps: an owner or the data user on a SuperNode, and the proxy beside the SuperLink.

The protocol's bytes travel as Flower messages, and Flower's grid finds out who is where. Flower starts the client for
every message, and it ends with the answer; the server finds the parties, runs the protocol, and writes the totals.

The node's configuration: ``party`` (``'owner-3'`` or ``'user'``), ``contract`` (file with the terms this party agrees
to), ``store`` (folder for what it must remember), and for owners ``data`` and ``key`` (file of its secret key).
"""

from __future__ import annotations

import importlib
import logging
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from fdadp.errors import InputError
from fdadp.federated.run_contract import SIZE, USER, Contract, Signer, check_signature
from fdadp.federated.wire_format import Kind, ProtocolError, Totals
from fdadp.federated.wire_format import Message as Wire
from fdadp.files.atomic_writes import PUBLIC, replacing
from fdadp.files.regular_files import text_of

# Parties are imported where a request is answered: a greeting should not wait for seconds of imports.
if TYPE_CHECKING:
    from fdadp.federated.parties import Party

HELLO = "hello"
"""Sent with a number that was never used; a node's answer is the name of its party, and a signature of both."""
ASK = "ask"
"""Request and answer are messages of :mod:`fdadp.federated.wire_format`."""
_KEY = "fdadp"
_BETWEEN_GREETINGS = 1.0

log = logging.getLogger(__name__)


def hello_of(name: str, number: bytes, contract: Contract, signer: Signer | None) -> bytes:
    """A node's answer to a greeting."""
    said = name.encode()
    return said if signer is None else said + signer.sign(_greeting(name, number, contract))


def said_hello(answer: bytes, number: bytes, contract: Contract | None) -> str:
    """The party that an answer to a greeting is of; raises ProtocolError where its key has not signed it."""
    if contract is None:
        return answer.decode(errors="replace")
    for name, key in zip(contract.names, contract.owner_keys, strict=False):
        if answer[:-SIZE] == name.encode():
            check_signature(key, _greeting(name, number, contract), answer[-SIZE:], name)
            return name
        if answer == name.encode():
            raise ProtocolError(f"a node that says it is {name} must sign that with the key in the contract")
    return answer.decode(errors="replace")


def _greeting(name: str, number: bytes, contract: Contract) -> bytes:
    return b"fdadp hello 1\0" + contract.digest + number + name.encode()


def record(data: bytes) -> RecordDict:
    """Bytes as the content of a Flower message."""
    return RecordDict({_KEY: ConfigRecord({"bytes": data})})


def payload(message: Message) -> bytes | None:
    """The bytes in a Flower message; None: it is an error of the engine, or no message of ours."""
    if not message.has_content():
        return None
    found = message.content.get(_KEY)
    data = found.get("bytes") if isinstance(found, ConfigRecord) else None
    return data if isinstance(data, bytes) else None


class GridExchange:
    """Sends requests to parties by name, over Flower's grid; an :data:`~fdadp.federated.parties.Exchange`.

    Parameters
    ----------
    grid : flwr.serverapp.Grid
    at_once : int
        Send to so many nodes, and wait, before the next ones are sent to; 0: to all. For nodes that share one machine:
        Flower starts a process for each message, and takes those for dead that need more than 30 s to start.
    contract : Contract, optional
        Whose keys of owners greetings must be signed with, where it names them.

    Attributes
    ----------
    nodes : dict of str to int
        Flower's node of each party that has said hello.
    """

    def __init__(self, grid: Grid, *, at_once: int = 0, contract: Contract | None = None) -> None:
        self._grid, self._at_once, self._contract = grid, at_once, contract
        self._greeted: set[int] = set()
        self.nodes: dict[str, int] = {}

    def meet(self, names: Iterable[str], patience: float) -> None:
        """Greet nodes as they come online, until all of these parties are known or `patience` seconds are over.

        Raises
        ------
        ProtocolError
            Two nodes that answer say that they are the same party.
        """
        wanted, end = set(names), time.monotonic() + patience
        while not wanted <= self.nodes.keys() and (left := end - time.monotonic()) > 0:
            self._greet(left)
            if not wanted <= self.nodes.keys():
                time.sleep(min(_BETWEEN_GREETINGS, left))

    def _greet(self, timeout: float | None) -> None:
        """Say hello to the nodes that have not answered one yet."""
        online = set(self._grid.get_node_ids())
        for node, party in self._said(online - self._greeted, timeout):
            known = self.nodes.get(party)
            # Flower has a node that was killed online for a minute: who is there answers.
            if known is not None and known in online and any(self._said([known], timeout)):
                raise ProtocolError(
                    f"each party must be one node, got two that say they are {party!r}: {known}, {node}"
                )
            self.nodes[party] = node
            log.info("%s is node %d", party, node)

    def _said(self, nodes: Iterable[int], timeout: float | None) -> Iterator[tuple[int, str]]:
        """Which party each node is, of those that answer a greeting."""
        number = secrets.token_bytes(32)
        for node, answer in self._send(dict.fromkeys(nodes, number), HELLO, timeout):
            self._greeted.add(node)
            try:
                yield node, said_hello(answer, number, self._contract)
            except ProtocolError as exc:
                log.warning("node %d was left out: %s", node, exc)

    def __call__(self, requests: Mapping[str, bytes], timeout: float | None) -> dict[str, list[bytes]]:
        """Send each request to its party; return the answers that came in time.

        A party that never said hello, or whose node is offline or failed, has no answer.
        """
        self._greet(timeout)
        at = {self.nodes[name]: name for name in requests if name in self.nodes}
        replies: dict[str, list[bytes]] = {}
        for node, data in self._send({node: requests[name] for node, name in at.items()}, ASK, timeout):
            replies.setdefault(at[node], []).append(data)
        return replies

    def _send(self, requests: Mapping[int, bytes], kind: str, timeout: float | None) -> list[tuple[int, bytes]]:
        """Send to nodes, wait, and return what those nodes answered to these very messages."""
        answers: list[tuple[int, bytes]] = []
        ttl = {} if timeout is None else {"ttl": timeout}
        nodes, step = list(requests), self._at_once or max(len(requests), 1)
        for some in (nodes[i : i + step] for i in range(0, len(nodes), step)):
            messages = [Message(record(requests[node]), node, f"query.{kind}", **ttl) for node in some]
            for reply in self._grid.send_and_receive(messages, timeout=timeout):
                node, data = reply.metadata.src_node_id, payload(reply)
                if data is None:
                    log.warning("a node gave no answer: %s", reply.error if reply.has_error() else "not a message")
                elif node in some:
                    answers.append((node, data))
        return answers


def hello(message: Message, context: Context) -> Message:
    """Say which party this node is, signed where it has a key."""
    name, signer = _setting(context, "party"), _signer(context)
    if signer is None:
        return Message(record(name.encode()), reply_to=message)
    contract = Contract.from_json(text_of(_setting(context, "contract")))
    return Message(record(hello_of(name, payload(message) or b"", contract, signer)), reply_to=message)


def ask(message: Message, context: Context) -> Message:
    """Answer one message of the protocol.

    What goes wrong here may have to do with private rows. It is logged at this node; the proxy only hears that there is
    no answer.
    """
    name = _setting(context, "party")
    contract = Contract.from_json(text_of(_setting(context, "contract")))
    try:
        answer = _answer(payload(message) or b"", context, contract, name)
    except Exception:
        log.exception("%s could not answer", name)
        words = f"{name} failed; why is in the log of its node"
        answer = Wire(Kind.REFUSAL, contract.key_bits, 0, name, contract.digest, words.encode()).to_bytes()
    return Message(record(answer), reply_to=message)


def _answer(request: bytes, context: Context, contract: Contract, name: str) -> bytes:
    from fdadp.federated.flower.party_state import Store
    from fdadp.federated.parties import DataUser, Owner

    with Store(_setting(context, "store"), contract, name).opened() as store:
        before = store.state()
        party: Party
        if name == USER:
            party = DataUser(contract, key=store.key(), state=before)
        else:
            party = Owner(contract, name, rows(_setting(context, "data")), state=before, signer=_signer(context))
        answer = party.answer(request)
        if party.state != before:
            store.save(party.state)
        if isinstance(party, DataUser) and party.done:
            store.forget_key()
        return answer


def rows(source: str) -> tuple[Any, ...]:
    """An owner's data.

    Parameters
    ----------
    source : str
        An ``.npz`` file whose arrays are those that the model takes, in their order; or ``module:function``.

    Raises
    ------
    InputError
        It is neither.
    FileFormatError
        A file that holds no plain arrays.
    """
    if source.endswith(".npz"):
        from fdadp.functional.files.curve_files import read_npz

        return tuple(read_npz(source).values())
    module, colon, function = source.partition(":")
    if not colon:
        raise InputError(f"data must be an .npz file or module:function, got {source!r}")
    return tuple(getattr(importlib.import_module(module), function)())


def _signer(context: Context) -> Signer | None:
    """An owner's key, where the node has one."""
    return Signer(_setting(context, "key")) if "key" in context.node_config else None


def _setting(context: Context, name: str) -> str:
    value = context.node_config.get(name)
    if not isinstance(value, str) or not value:
        raise InputError(f"--node-config must give {name}, a text, got {value!r}")
    return value


client = ClientApp()
client.query(HELLO)(hello)
client.query(ASK)(ask)


def serve(grid: Grid, context: Context) -> None:
    """Carry the run of the contract through.

    Raises
    ------
    InputError
        The run configuration lacks something.
    ProtocolError
        Too few owners, no data user, two nodes of one name.
    """
    from fdadp.federated.parties import Proxy

    config: dict[str, Any] = dict(context.run_config)
    for name in ("contract", "out"):
        if not config.get(name):
            raise InputError(f"the run configuration must give {name}, a file, got {config.get(name)!r}")
    contract = Contract.from_json(text_of(config["contract"]))
    if not contract.owner_keys:
        raise InputError("the contract must name owner_keys: without them an owner is whoever says so")
    exchange = GridExchange(grid, at_once=config["at_once"], contract=contract)
    exchange.meet([USER, *contract.names], config["patience"])
    print(f"parties: {', '.join(sorted(exchange.nodes))}", flush=True)

    def progress(index: int, shares: int) -> None:
        print(f"release {index}: sum of {shares} shares", flush=True)

    settings = {name: config[name] for name in ("n_jobs", "retries", "pause")}
    proxy = Proxy(contract, timeout=config["timeout"] or None, progress=progress, **settings)
    try:
        totals = proxy.run(exchange)
    finally:
        for party, reason in proxy.refused_:
            print(f"left out: {party}: {reason}", flush=True)
    with replacing(config["out"], PUBLIC) as stream:  # the file says that the run is over: it is there whole, or not
        stream.write(Totals.to_bytes(totals))


server = ServerApp()
server.main()(serve)
