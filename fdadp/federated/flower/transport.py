"""The protocol's bytes as Flower messages, and Flower's grid as the proxy's transport."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping

from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import Grid

from fdadp.federated.wire import ProtocolError

__all__ = ["ASK", "HELLO", "GridExchange", "payload", "record"]

HELLO = "hello"
"""A node's answer is the name of its party."""
ASK = "ask"
"""Request and answer are messages of :mod:`fdadp.federated.wire`."""
_KEY = "fdadp"
_BETWEEN_GREETINGS = 1.0

log = logging.getLogger(__name__)


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
    """Sends requests to parties by name, over Flower's grid; an :data:`~fdadp.federated.proxy.Exchange`.

    Parameters
    ----------
    grid : flwr.serverapp.Grid
    at_once : int
        Send to so many nodes, and wait, before the next ones are sent to; 0: to all. For nodes that share one machine:
        Flower starts a process for each message, and takes those for dead that need more than 30 s to start.

    Attributes
    ----------
    nodes : dict of str to int
        Flower's node of each party that has said hello.
    """

    def __init__(self, grid: Grid, *, at_once: int = 0) -> None:
        self._grid, self._at_once = grid, at_once
        self._greeted: set[int] = set()
        self.nodes: dict[str, int] = {}

    def meet(self, names: Iterable[str], patience: float) -> None:
        """Greet nodes as they come online, until all of these parties are known or `patience` seconds are over.

        Raises
        ------
        ProtocolError
            Two nodes that are online say that they are the same party.
        """
        wanted, end = set(names), time.monotonic() + patience
        while not wanted <= self.nodes.keys() and (left := end - time.monotonic()) > 0:
            self._greet(left)
            if not wanted <= self.nodes.keys():
                time.sleep(min(_BETWEEN_GREETINGS, left))

    def _greet(self, timeout: float | None) -> None:
        """Say hello to the nodes that are new."""
        online = set(self._grid.get_node_ids())
        new = online - self._greeted
        self._greeted |= new
        for node, name in self._send({node: b"" for node in new}, HELLO, timeout):
            party = name.decode(errors="replace")
            known = self.nodes.get(party)
            if known in online:
                raise ProtocolError(
                    f"each party must be one node, got two that say they are {party!r}: {known}, {node}"
                )
            self.nodes[party] = node  # of a node that was started again, this is the new one
            log.info("%s is node %d", party, node)

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
