"""The protocol's bytes as Flower messages, and Flower's grid as the proxy's transport."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping

from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import Grid

from fdadp.federated.contract import SIZE, Contract, Signer, check_signature
from fdadp.federated.wire import ProtocolError

HELLO = "hello"
"""Sent with a number that was never used; a node's answer is the name of its party, and a signature of both."""
ASK = "ask"
"""Request and answer are messages of :mod:`fdadp.federated.wire`."""
_KEY = "fdadp"
_BETWEEN_GREETINGS = 1.0

log = logging.getLogger(__name__)


def hello_of(name: str, number: bytes, contract: Contract, signer: Signer | None) -> bytes:
    """A node's answer to a greeting."""
    said = name.encode()
    return said if signer is None else said + signer.sign(_greeting(name, number, contract))


def said_hello(answer: bytes, number: bytes, contract: Contract | None) -> str:
    """The party that an answer to a greeting is of; raises ProtocolError where its key has not signed it."""
    for name in () if contract is None else contract.names:
        key = contract.key_of(name) if contract is not None else None
        if contract is not None and key is not None and answer[:-SIZE] == name.encode():
            check_signature(key, _greeting(name, number, contract), answer[-SIZE:], name)
            return name
        if key is not None and answer == name.encode():
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
