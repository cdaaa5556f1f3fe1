"""The proxy: collects the owners' encrypted shares, adds them up, and has the data user decrypt the sum."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress

from fdadp._common.typing import IntArray
from fdadp.errors import FdadpWarning
from fdadp.federated.contract import USER, Contract
from fdadp.federated.paillier import PublicKey, add, ciphertexts
from fdadp.federated.signed import SIZE, check_signature
from fdadp.federated.wire import (
    Kind,
    Message,
    Next,
    ProtocolError,
    Totals,
    ciphertexts_from_bytes,
    ciphertexts_to_bytes,
    with_count,
)

Exchange = Callable[[Mapping[str, bytes], float | None], Mapping[str, list[bytes]]]
"""Sends each request to the party of its name; returns the replies that came in time, none or several a party."""


class Proxy:
    """The party that collects the owners' encrypted shares and adds them up, without the secret key.

    Parameters
    ----------
    contract : Contract
    timeout : float, optional
        Seconds to wait for the owners in each round; None: as long as it takes.
    n_jobs : int
        Processes for adding ciphertexts.
    progress : callable, optional
        Called with (index, number of shares) after each release.
    retries : int
        How often the user, or owners without whom a release cannot be, are asked again. An answer that was given comes
        again, byte for byte.
    pause : float
        Seconds before that.

    Attributes
    ----------
    refused_ : list of (str, str)
        Party and reason of every message that was left out of a sum.
    """

    def __init__(
        self,
        contract: Contract,
        *,
        timeout: float | None = None,
        n_jobs: int = 1,
        progress: Callable[[int, int], None] | None = None,
        retries: int = 2,
        pause: float = 0.0,
    ) -> None:
        self.contract, self._timeout, self._n_jobs, self._progress = contract, timeout, n_jobs, progress
        self._retries, self._pause = retries, pause
        self.refused_: list[tuple[str, str]] = []

    def run(self, exchange: Exchange) -> list[tuple[IntArray, int]]:
        """Carry a run through to its end: from its beginning, or from where an earlier proxy has left it.

        A proxy keeps nothing. Owners and user repeat what they answered, and the user has the totals.

        Parameters
        ----------
        exchange : callable
            The transport; see :data:`~fdadp.federated.proxy.Exchange`.

        Returns
        -------
        list of (ndarray of int64, int)
            The totals, from which anyone gets the model: ``fdadp.federated.models.fit(contract, None, totals)``.

        Raises
        ------
        ProtocolError
            The user did not answer as it should, or fewer than ``contract.least`` owners delivered a valid share:
            nothing of this release is decrypted.
        PrivacyError
            The key that came is not that of the contract.
        """
        size = self.contract.key_bits // 8
        reply = self._from_user(exchange, self._request(Kind.ASK_KEY, 0, b""), Kind.KEY, 0)
        key = self.contract.public_key(reply[:size])
        now, told = Next.first_of(reply[size:])
        totals = Totals.from_bytes(told)
        while now.size:
            index = len(totals)
            shares = self._shares(exchange, self._ask(key, totals), index, key, now)
            summed = ciphertexts_to_bytes(add(key, shares, self._n_jobs), key.size)
            request = self._request(Kind.ASK_TOTAL, index, with_count(len(shares), summed))
            now, told = Next.first_of(self._from_user(exchange, request, Kind.TOTAL, index))
            (total,) = Totals.from_bytes(told)
            totals.append(total)
            if self._progress is not None:
                self._progress(index, total[1])
        self._tell(exchange, self._ask(key, totals), len(totals))
        return totals

    def _tell(self, exchange: Exchange, asked: bytes, index: int) -> None:
        """Send owners the last totals, so that they have the model, too; again while too few say that they do."""
        waiting = set(self.contract.names)
        for attempt in range(1 + self._retries):
            self._wait(attempt)
            replies = exchange(dict.fromkeys(sorted(waiting), asked), self._timeout)
            for name in sorted(waiting):
                for data in replies.get(name, []):
                    with suppress(ProtocolError):
                        self._open(data, name, Kind.DONE, index)
                        waiting.discard(name)
            if len(waiting) <= self.contract.lost:
                return

    def _ask(self, key: PublicKey, totals: list[tuple[IntArray, int]]) -> bytes:
        return self._request(Kind.ASK, len(totals), key.modulus + Totals.to_bytes(totals))

    def _request(self, kind: int, index: int, body: bytes) -> bytes:
        return Message(kind, self.contract.key_bits, index, "proxy", self.contract.digest, body).to_bytes()

    def _open(self, data: bytes, sender: str, kind: int, index: int) -> bytes:
        key = self.contract.key_of(sender)
        if key is not None:
            data, signature = data[:-SIZE], data[-SIZE:]
            check_signature(key, data, signature, sender)
        message = Message.from_bytes(data)
        if message.kind == Kind.REFUSAL:
            raise ProtocolError(f"refused: {message.body.decode(errors='replace')}")
        if (message.sender, message.bits) != (sender, self.contract.key_bits):
            raise ProtocolError(f"message must be {sender}'s, for {self.contract.key_bits} bits")
        if (message.kind, message.index, message.digest) != (kind, index, self.contract.digest):
            raise ProtocolError("message belongs to another run, release or step")
        return message.body

    def _from_user(self, exchange: Exchange, request: bytes, kind: int, index: int) -> bytes:
        reason = "no answer"
        for attempt in range(1 + self._retries):
            self._wait(attempt)
            for data in exchange({USER: request}, self._timeout).get(USER, []):
                try:
                    return self._open(data, USER, kind, index)
                except ProtocolError as exc:
                    reason = str(exc)
        raise ProtocolError(f"the data user must answer, got: {reason}")

    def _wait(self, attempt: int) -> None:
        if attempt:
            time.sleep(self._pause)

    def _shares(self, exchange: Exchange, asked: bytes, index: int, key: PublicKey, now: Next) -> list[list[int]]:
        """Valid shares, one an owner; those missing are asked for again as long as there are too few."""
        valid: dict[str, list[int]] = {}
        before = len(self.refused_)
        for attempt in range(1 + self._retries):
            self._wait(attempt)
            missing = [name for name in self.contract.names if name not in valid]
            self._collect(valid, missing, exchange(dict.fromkeys(missing, asked), self._timeout), index, key, now)
            self.refused_[before:] = dict.fromkeys(self.refused_[before:])  # each reason once
            if len(valid) >= self.contract.least:
                break
        else:
            raise ProtocolError(
                f"at least {self.contract.least} of {self.contract.owners} owners must deliver a share for release "
                f"{index}, got {len(valid)}; nothing was decrypted ({self.refused_})"
            )
        if len(valid) < self.contract.owners:
            missing = sorted(set(self.contract.names) - valid.keys())
            warnings.warn(f"release {index} goes without {', '.join(missing)}", FdadpWarning, stacklevel=3)
        return [valid[name] for name in self.contract.names if name in valid]

    def _collect(
        self,
        valid: dict[str, list[int]],
        names: list[str],
        replies: Mapping[str, list[bytes]],
        index: int,
        key: PublicKey,
        now: Next,
    ) -> None:
        """Add the first valid share of each owner."""
        count = ciphertexts(now.size, now.width, key.bits)
        for name in names:
            if not replies.get(name):
                self.refused_.append((name, "no answer in time"))
            for data in replies.get(name, []):
                try:
                    found = ciphertexts_from_bytes(self._open(data, name, Kind.SHARE, index), key.size)
                    if len(found) != count or not all(map(key.valid, found)):
                        raise ProtocolError(f"a share must be {count} valid ciphertexts")
                except ProtocolError as exc:
                    self.refused_.append((name, str(exc)))
                else:
                    valid.setdefault(name, found)
