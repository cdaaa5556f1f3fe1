"""The coordinator as a service: takes signed messages of owners over HTTP, keeps them, and forwards them.

An owner posts to ``/DIGEST/NUMBER`` of the contract and itself. A poll is answered with what it is asked now:

====== ===========================================================================================
status body
====== ===========================================================================================
200    the coordinator's message, or nothing: then it asks for consent
204    nothing is asked of this owner now; to other messages: it was taken
205    the owner's last message was taken: there is nothing more to come
4xx    refused, and logged with a code; nothing has changed
====== ===========================================================================================

A body is read once its declared length is within what can be answered now, and not for longer than a limit. Of two
messages of one owner the later one counts. A connection without a whole request is closed after the same limit.
"""

from __future__ import annotations

import asyncio
import math
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from fdadp.federated.federated_models import write_totals
from fdadp.federated.owners import signed_messages
from fdadp.federated.owners.coordinator import Coordinator, RunEnded
from fdadp.federated.owners.owner_folder import Keeper
from fdadp.federated.owners.signed_messages import MessageKind, Refusal, RefusedMessage, SignedMessage
from fdadp.federated.run_contract import Contract, ProtocolError
from fdadp.federated.service.run_log import Log, lines_to


class CoordinatorService:
    """What the coordinator does with a message of an owner, and what it keeps of it.

    Parameters
    ----------
    contract : Contract
    folder : Keeper
        All messages that were taken; a later object with it goes on.
    log : Log
    patience : float
        Seconds in which a body must have arrived, and before it the head of a request.

    Attributes
    ----------
    coordinator : Coordinator
    ended : asyncio.Event
        Set once all owners have the model, or the run cannot go on.
    failure : Exception or None
        Why it cannot.
    app : Starlette

    Raises
    ------
    ProtocolError
        The contract names no keys.
    """

    def __init__(self, contract: Contract, folder: Keeper, *, log: Log | None = None, patience: float = 30.0) -> None:
        self._log, self._patience = lines_to() if log is None else log, patience
        self.coordinator = Coordinator(contract, folder)
        self.failure: Exception | None = None
        self.ended = asyncio.Event()
        self._name = contract.digest.hex()
        self._numbers = {f"/{self._name}/{i}": i for i in range(1, contract.owners + 1)}
        self._counts, self._reading = dict.fromkeys(self._numbers.values(), 0), dict[int, asyncio.Task[bytes]]()
        if self.coordinator.done_:
            self.ended.set()
        self.app = Starlette(routes=[Route("/{path:path}", self._post, methods=["POST"])])

    async def _post(self, request: Request) -> Response:
        number = self._numbers.get(request.url.path)
        if number is None:
            return self._refused(404, "address")
        length = request.headers.get("content-length", "")
        if not (length.isascii() and length.isdecimal() and len(length) < 12) or "transfer-encoding" in request.headers:
            return self._refused(411, "length", number)
        if int(length) > self.coordinator.longest_answer:
            return self._refused(413, "oversized", number)
        body = await self._body(request, number)
        if body is None:
            return self._refused(408, "cut off", number)
        try:
            return self._answer(number, body)
        except Exception as exc:  # nobody knows what is on the disk
            self._end(exc)
            raise

    async def _body(self, request: Request, number: int) -> bytes | None:
        """A body that is there in time; None: it is not, or a later message says that it is this owner's."""
        earlier, reading = self._reading.get(number), asyncio.create_task(request.body())
        if earlier is not None:
            earlier.cancel()
        self._reading[number] = reading
        await asyncio.wait({reading}, timeout=self._patience)
        if self._reading.get(number) is reading:
            del self._reading[number]
        reading.cancel()
        return reading.result() if reading.done() and not (reading.cancelled() or reading.exception()) else None

    def _answer(self, number: int, body: bytes) -> Response:
        kind, index = "message", 0
        try:
            message = SignedMessage.from_bytes(body)
            kind, index = _kind_of(message), message.index
            if message.kind == MessageKind.POLL:
                return self._asked(number, body)
            self.coordinator.take(number, body)
        except RefusedMessage as exc:
            return self._refused(400, exc.code.name, number, kind, index)
        except ProtocolError as exc:
            if isinstance(exc, RunEnded):
                self._end(exc)
            if message.kind != MessageKind.REFUSAL:  # owners are at different places
                return self._refused(409, "ended", number, kind, index)
            code = int.from_bytes(message.body, "big")
            self._log(kind, index, number, Refusal(code).name if code in set(Refusal) else "unknown")
            return Response(status_code=204)
        self._log(kind, index, number, "taken")
        if self.coordinator.done_:
            self.ended.set()
        return Response(status_code=204)

    def _asked(self, number: int, poll: bytes) -> Response:
        count = signed_messages.count_of(poll, self.coordinator.contract, number)
        signed_messages.accept(count > self._counts[number], Refusal.ANSWERED)
        self._counts[number] = count
        if number in self.coordinator.missing:
            return Response(self.coordinator.asked, media_type="application/octet-stream")
        return Response(status_code=205 if self.coordinator.has_done(number) else 204)

    def _refused(self, status: int, code: str, sender: int = 0, kind: str = "message", index: int = 0) -> Response:
        self._log(kind, index, sender, code)
        return Response(status_code=status, headers={"connection": "close"})

    def _end(self, failure: Exception) -> None:
        self.failure = failure
        self.ended.set()


def _kind_of(message: SignedMessage) -> str:
    return MessageKind(message.kind).name if message.kind in set(MessageKind) else "message"


class PromptConnection(H11Protocol):
    """A connection that is closed when a request's head is not there in time: it holds one of few places."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Take bytes; a whole head ends the wait."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing."""
        super().connection_lost(exc)
        self._watch(ended=True)

    def _watch(self, ended: bool = False) -> None:
        waits = not ended and (self.cycle is None or self.cycle.response_complete)
        if waits and self._late is None:
            self._late = self.loop.call_later(self.timeout_keep_alive, self.transport.abort)
        if not waits and self._late is not None:
            self._late.cancel()
            self._late = None


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0: any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.create_server((host, port), family=family)
    made.set_inheritable(False)
    return made


def coordinate(
    contract: Contract,
    folder: Keeper,
    listener: socket.socket,
    connections: ssl.SSLContext,
    out: str | Path,
    *,
    log: Log | None = None,
    linger: float = 600.0,
    patience: float = 30.0,
    ready: Callable[[], object] = lambda: None,
) -> None:
    """Serve a run until all owners have the model; write its totals, which are public.

    Parameters
    ----------
    contract : Contract
    folder : Keeper
        All messages that were taken: after a restart the run goes on.
    listener : socket
        See :func:`listening`.
    connections : SSLContext
        See :func:`~fdadp.federated.service.run_certificates.server_connections`.
    out : path
        File for the totals, which ``fdadp federated model`` reads.
    log : Log, optional
        By default lines on stderr.
    linger : float
        Seconds for which owners that missed the last reply can ask again, after the end: longer than a restart takes.
    patience : float
        Seconds in which a message must have arrived.
    ready : callable
        Called once it is about to listen.

    Raises
    ------
    ProtocolError
        The run cannot go on: an owner's refusal is final, or owners are at different places.
    """
    contract.check_transport("service")
    asyncio.run(_serve(contract, folder, listener, connections, Path(out), log, linger, patience, ready))


async def _serve(
    contract: Contract,
    folder: Keeper,
    listener: socket.socket,
    connections: ssl.SSLContext,
    out: Path,
    log: Log | None,
    linger: float,
    patience: float,
    ready: Callable[[], object],
) -> None:
    service = CoordinatorService(contract, folder, log=log, patience=patience)
    config = uvicorn.Config(
        service.app,
        http=PromptConnection,
        timeout_keep_alive=math.ceil(patience),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=4 * contract.owners + 4,
        timeout_graceful_shutdown=int(patience) + 1,
    )
    config.load()
    config.ssl = connections
    server = uvicorn.Server(config)
    ready()
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    ended = asyncio.create_task(service.ended.wait())
    await asyncio.wait({serving, ended}, return_when=asyncio.FIRST_COMPLETED)
    if service.coordinator.done_:
        write_totals(out, service.coordinator.totals_)
    if ended.done():
        await asyncio.wait({serving}, timeout=linger if service.failure is None else 1.0)
    server.should_exit = True
    await serving
    ended.cancel()
    if service.failure is not None:
        raise service.failure
