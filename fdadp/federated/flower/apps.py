"""The two Flower apps: an owner on a SuperNode, and the coordinator beside the SuperLink.

Messages of :mod:`fdadp.federated.owners.signed_messages` travel as the content of Flower messages; an empty one asks
for an owner's consent, and finds out which node is which owner: its key signs it. Flower starts the owner's app for
every message, and it ends with the answer. The coordinator asks as long as it takes, and writes the totals.

The node's configuration: ``contract`` (file with the terms this owner agrees to), ``store`` (folder for what it must
remember), ``data``, ``key`` (file of its secret key), ``verified`` (folder with the public keys of other owners that it
verified itself), ``out`` (file for the totals, once they are all there), and perhaps ``study`` (file of its study, to
which the contract is charged).
"""

from __future__ import annotations

import importlib
import logging
import time
from typing import Any

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from fdadp.errors import InputError
from fdadp.federated.federated_models import write_totals
from fdadp.federated.owners.coordinator import Coordinator, RunEnded
from fdadp.federated.owners.owner_folder import OwnerFolder
from fdadp.federated.owners.signed_messages import MessageKind, Refusal, RefusedMessage, SignedMessage, accept, body_of
from fdadp.federated.run_contract import Contract, ProtocolError, Signer, public_keys_in
from fdadp.files.regular_files import text_of
from fdadp.privacy.study import Study

ASK = "ask"
TRANSPORT = "flower"
_KEY = "fdadp"

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


# ---------------------------------------------------------------- an owner


def ask(message: Message, context: Context) -> Message:
    """Answer one message of the coordinator.

    What goes wrong here may have to do with private rows. It is logged at this node; the coordinator only hears that
    there is no answer.
    """
    try:
        answer = _answer(payload(message) or b"", context)
    except Exception:
        log.exception("this owner could not answer")
        answer = b""
    return Message(record(answer), reply_to=message)


def _answer(asked: bytes, context: Context) -> bytes:
    from fdadp.federated.owners.data_owner import ContractProgram, DataOwner

    begun = time.monotonic()
    contract, signer = Contract.from_json(text_of(_setting(context, "contract"))), Signer(_setting(context, "key"))
    contract.check_transport(TRANSPORT)
    verified = public_keys_in(_setting(context, "verified"))
    # An earlier message may be at work still: its process ends, too.
    folder = OwnerFolder(_setting(context, "store"), wait=True)
    try:
        program = ContractProgram(contract, rows(_setting(context, "data")))
        number = contract.number_of(signer.public)
        study = Study(_setting(context, "study")) if "study" in context.node_config else None
        owner = DataOwner(contract, number, program, signer=signer, folder=folder, verified=verified, study=study)
        answer = owner.answer(asked) if asked else owner.consent()
        if owner.result_ is not None:
            write_totals(_setting(context, "out"), owner.totals_)
    finally:
        folder.close()
    time.sleep(contract.rest_of_pause(time.monotonic() - begun))
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


def _setting(context: Context, name: str) -> str:
    value = context.node_config.get(name)
    if not isinstance(value, str) or not value:
        raise InputError(f"--node-config must give {name}, a text, got {value!r}")
    return value


client = ClientApp()
client.query(ASK)(ask)


# ---------------------------------------------------------------- the coordinator


class GridCoordinator:
    """Asks owners over Flower's grid what the coordinator asks, and gives it their answers.

    Parameters
    ----------
    grid : flwr.serverapp.Grid
    coordinator : Coordinator
    timeout : float, optional
        Seconds to wait for answers; None: as long as nodes are online.
    at_once : int
        Send to so many nodes, and wait, before the next ones are sent to; 0: to all. For nodes that share one machine:
        Flower starts a process for each message, and takes those for dead that need more than 30 s to start.

    Attributes
    ----------
    nodes : dict of int to int
        Number of the owner that each of Flower's nodes has signed for. An owner that was started again is another node.
    """

    def __init__(self, grid: Grid, coordinator: Coordinator, *, timeout: float | None = None, at_once: int = 0) -> None:
        self._grid, self._coordinator, self._timeout, self._at_once = grid, coordinator, timeout, at_once
        self.nodes: dict[int, int] = {}

    def step(self) -> bool:
        """Ask all owners once whose answer is missing; whether any has answered.

        Raises
        ------
        RunEnded
        """
        online = set(self._grid.get_node_ids())
        taken = False
        for node, answer in self._send(online - self.nodes.keys(), b""):
            taken |= self._greeted(node, answer)
        asked, missing = self._coordinator.asked, self._coordinator.missing
        wanted = [node for node, number in self.nodes.items() if node in online and number in missing]
        for node, answer in self._send(wanted, asked):
            taken |= self._taken(self.nodes[node], answer)
        return taken

    def _greeted(self, node: int, answer: bytes) -> bool:
        """Learn from a consent which owner a node is."""
        contract = self._coordinator.contract
        try:
            number = SignedMessage.from_bytes(answer).sender
            accept(1 <= number <= contract.owners, Refusal.SENDER)
            body_of(answer, contract, MessageKind.CONSENT, number, 0)
        except RefusedMessage as exc:
            print(f"node {node} is no owner: {exc}", flush=True)
            return False
        self.nodes[node] = number
        print(f"{contract.names[number - 1]} is node {node}", flush=True)
        return not self._coordinator.requests_ and self._taken(number, answer)

    def _taken(self, number: int, answer: bytes) -> bool:
        before = self._coordinator.asked
        try:
            self._coordinator.take(number, answer)
        except RunEnded:
            raise
        except ProtocolError as exc:
            print(f"left out: {self._coordinator.contract.names[number - 1]}: {exc}", flush=True)
            return False
        if self._coordinator.asked != before:
            now = SignedMessage.from_bytes(self._coordinator.asked)
            if now.kind == MessageKind.ASK and now.index > 0:
                print(f"release {now.index - 1}: total of {self._coordinator.contract.owners} owners", flush=True)
        return True

    def _send(self, nodes: set[int] | list[int], asked: bytes) -> list[tuple[int, bytes]]:
        """Send to nodes, wait, and return what those nodes answered to these very messages."""
        answers: list[tuple[int, bytes]] = []
        ttl = {} if self._timeout is None else {"ttl": self._timeout}
        to = sorted(nodes)
        step = self._at_once or max(len(to), 1)
        for some in (to[i : i + step] for i in range(0, len(to), step)):
            messages = [Message(record(asked), node, f"query.{ASK}", **ttl) for node in some]
            for reply in self._grid.send_and_receive(messages, timeout=self._timeout):
                node, data = reply.metadata.src_node_id, payload(reply)
                if data is None:
                    log.warning("a node gave no answer: %s", reply.error if reply.has_error() else "not a message")
                elif node in some:
                    answers.append((node, data))
        return answers


def serve(grid: Grid, context: Context) -> None:
    """Carry the run of the contract through, from where an earlier process has left it.

    Raises
    ------
    InputError
        The run configuration lacks something.
    ProtocolError
        The contract is for another transport, the run has ended, or no owner has answered for too long.
    """
    config: dict[str, Any] = dict(context.run_config)
    for name in ("contract", "store", "out"):
        if not config.get(name):
            raise InputError(f"the run configuration must give {name}, a path, got {config.get(name)!r}")
    contract = Contract.from_json(text_of(config["contract"]))
    contract.check_transport(TRANSPORT)
    folder = OwnerFolder(config["store"], wait=True)
    try:
        coordinator = Coordinator(contract, folder)
        settings = {"timeout": config["timeout"] or None, "at_once": config["at_once"]}
        _wait_for_all(GridCoordinator(grid, coordinator, **settings), coordinator, config["patience"], config["pause"])
    finally:
        folder.close()
    write_totals(config["out"], coordinator.totals_)


def _wait_for_all(asking: GridCoordinator, coordinator: Coordinator, patience: float, pause: float) -> None:
    heard = time.monotonic()
    while not coordinator.done_:
        if asking.step():
            heard = time.monotonic()
        elif time.monotonic() - heard > patience:
            missing = ", ".join(coordinator.contract.names[number - 1] for number in sorted(coordinator.missing))
            raise ProtocolError(f"all owners must answer, and within {patience:g} s none did of {missing}")
        else:
            time.sleep(pause)


server = ServerApp()
server.main()(serve)
