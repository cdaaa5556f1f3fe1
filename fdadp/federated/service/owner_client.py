"""An owner on a machine of its own: asks the coordinator what is asked of it, answers, and opens no port.

Whatever fails between them is tried again, for days: an owner that has consented is needed until the end. What it has
answered is on its disk, so that after a restart it goes on where it was.
"""

from __future__ import annotations

import resource
import ssl
import time
import traceback
from collections.abc import Callable, Collection
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import httpx

from fdadp.errors import FdadpError, InputError
from fdadp.federated.federated_models import write_totals
from fdadp.federated.owners.data_owner import ContractProgram, DataOwner
from fdadp.federated.owners.owner_folder import Keeper, OwnerFolder
from fdadp.federated.owners.signed_messages import FINAL, MessageKind, Refusal, SignedMessage
from fdadp.federated.run_contract import Contract, ProtocolError, Signer
from fdadp.federated.service.run_certificates import owner_connections
from fdadp.federated.service.run_log import Log, lines_to
from fdadp.functional.files.curve_files import read_npz
from fdadp.privacy.study import Study

TIMEOUT = 30.0
"""Seconds for which one side waits for the next bytes of the other."""


@dataclass(frozen=True)
class Waits:
    """How long an owner waits, in seconds.

    Parameters
    ----------
    poll : float
        Between two polls.
    longest : float
        Between two tries to reach the coordinator: they double from `poll` up to it.
    patience : float
        Without any answer of the coordinator, before it gives up.
    farewell : float
        The same, for an owner that has the model.
    """

    poll: float = 2.0
    longest: float = 60.0
    patience: float = 30 * 86400.0
    farewell: float = 600.0


class OwnerClient:
    """The connection of one owner with its coordinator.

    Parameters
    ----------
    owner : DataOwner
    url : str
        Of the coordinator: ``"https://coordinator:8443"``.
    connections : SSLContext
        See :func:`~fdadp.federated.service.run_certificates.owner_connections`.
    proxy : str, optional
        An HTTP proxy on the way out, ``"http://proxy:3128"``. It forwards bytes under TLS, which it cannot read.
        Variables of the environment are not looked at.
    log : Log, optional
        By default lines on stderr.
    waits : Waits
    sleep : callable
        Seconds.
    """

    def __init__(
        self,
        owner: DataOwner,
        url: str,
        connections: ssl.SSLContext,
        *,
        proxy: str | None = None,
        log: Log | None = None,
        waits: Waits | None = None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._owner, self._log, self._sleep = owner, lines_to() if log is None else log, sleep
        self._waits = Waits() if waits is None else waits
        self._address = f"{url.rstrip('/')}/{owner.contract.digest.hex()}/{owner.number}"
        self._connections, self._proxy = connections, proxy
        self._failed, self._heard = 0, time.monotonic()

    def run(self) -> None:
        """Take part until this owner has the model and the coordinator knows; the totals are then `owner.totals_`.

        Raises
        ------
        ProtocolError
            The run cannot go on, or the coordinator was not heard of for too long.
        """
        with httpx.Client(verify=self._connections, proxy=self._proxy, timeout=TIMEOUT, trust_env=False) as client:
            while not self._step(client):
                self._check_patience()
                self._sleep(min(self._waits.poll * 2.0 ** min(self._failed, 30), self._waits.longest))

    def _step(self, client: httpx.Client) -> bool:
        """Poll once, and answer what is asked; whether this was the end."""
        owner = self._owner
        status, asked = self._posted(client, owner.poll())
        if status == HTTPStatus.RESET_CONTENT and owner.result_ is not None:
            return True
        if status != HTTPStatus.OK:
            return self._gone
        begun = time.monotonic()
        answer = owner.answer(asked) if asked else owner.consent()
        self._pause(time.monotonic() - begun)
        said = SignedMessage.from_bytes(answer)
        kind, code = MessageKind(said.kind), "sent"
        if kind == MessageKind.REFUSAL:
            code = Refusal(said.body[0]).name
        taken, _ = self._posted(client, answer)
        self._log(kind.name, said.index, owner.number, code if taken == HTTPStatus.NO_CONTENT else f"{code}, not taken")
        if kind == MessageKind.REFUSAL:
            self._failed += 1
            if said.body[0] in FINAL:
                raise ProtocolError(f"this owner must be able to go on with the run, and refuses: {code.lower()}")
        return False

    def _pause(self, elapsed: float) -> None:
        """Wait up to the next multiple of the contract's pause."""
        self._sleep(self._owner.contract.rest_of_pause(elapsed))

    def _posted(self, client: httpx.Client, message: bytes) -> tuple[int, bytes]:
        """Status and body of the coordinator's reply; status 0: there was none that could be read."""
        headers = {"content-type": "application/octet-stream", "accept-encoding": "identity"}
        try:
            with client.stream("POST", self._address, content=message, headers=headers) as reply:
                body = self._read(reply)
        except httpx.TransportError as exc:
            return self._not_heard(type(exc).__name__)
        if body is None:
            return self._not_heard("oversized")
        if reply.status_code >= HTTPStatus.BAD_REQUEST:
            return self._not_heard(f"status {reply.status_code}")
        self._failed, self._heard = 0, time.monotonic()
        return reply.status_code, body

    def _read(self, reply: httpx.Response) -> bytes | None:
        """The body, if it is as long as it says, and no longer than what can be asked now."""
        most, found = self._owner.longest_request, bytearray()
        if not 0 <= int(reply.headers.get("content-length", "0")) <= most:
            return None
        for part in reply.iter_raw():
            found += part
            if len(found) > most:
                return None
        return bytes(found)

    def _not_heard(self, why: str) -> tuple[int, bytes]:
        self._failed += 1
        self._log("reply", 0, 0, why)
        return 0, b""

    @property
    def _silence(self) -> float:
        return time.monotonic() - self._heard

    @property
    def _gone(self) -> bool:
        """Whether this owner has the model, and the coordinator is not there any more."""
        return self._owner.result_ is not None and self._silence > self._waits.farewell

    def _check_patience(self) -> None:
        if self._silence > self._waits.patience:
            raise ProtocolError(
                f"the coordinator must be heard of within {self._waits.patience:g} seconds, and was not"
            )


def own_part(
    url: str,
    contract: str,
    rows: Path,
    *,
    key: Path,
    certificates: tuple[Path, Path],
    verified: Collection[str],
    store: Path,
    out: Path,
    study: Path | None = None,
    proxy: str | None = None,
    waits: Waits | None = None,
) -> None:
    """Take part as an owner whose things are in files, and write the totals.

    Parameters
    ----------
    url : str
        Of the coordinator.
    contract : str
        Its text.
    rows : path
        Arrays, ``.npz``.
    key : path
        This owner's secret key.
    certificates : pair of paths
        Of the run's authority and of this owner.
    verified : collection of str
        See :class:`~fdadp.federated.owners.data_owner.DataOwner`.
    store : path
        See :class:`~fdadp.federated.owners.owner_folder.OwnerFolder`.
    out : path
    study : path, optional
        Of this owner's study, which is charged; see :class:`~fdadp.federated.owners.data_owner.DataOwner`.
    proxy : str, optional
        See :class:`OwnerClient`.
    waits : Waits, optional

    Raises
    ------
    FdadpError
        A file is not what it should be, or the run cannot go on.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump would hold the rows
    if not url.lower().startswith("https://"):
        raise InputError(f"url must be the coordinator's, as https://coordinator:8443, got {url!r}")
    terms, signer, folder = Contract.from_json(contract), Signer(key), OwnerFolder(store)
    terms.check_transport("service")
    number, connections = terms.number_of(signer.public), owner_connections(*certificates, key)
    program = ContractProgram(terms, tuple(read_npz(str(rows)).values()))
    account = None if study is None else Study(study)
    party = DataOwner(terms, number, program, signer=signer, folder=folder, verified=verified, study=account)
    take_part(OwnerClient(party, url, connections, proxy=proxy, waits=waits), folder)
    write_totals(out, party.totals_)


def take_part(client: OwnerClient, folder: Keeper) -> None:
    """Run an owner; a fault of the program goes into ``traceback`` of its folder, and not to the log.

    Raises
    ------
    FdadpError
        The run cannot go on.
    """
    try:
        client.run()
    except FdadpError:
        raise
    except Exception as exc:
        folder.write("traceback", traceback.format_exc().encode())
        raise ProtocolError(f"this owner has ended by a {type(exc).__name__}: see traceback in its folder") from None
