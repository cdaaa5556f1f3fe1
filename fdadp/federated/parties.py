"""Owners, proxy and data user: separate objects that exchange bytes and nothing else.

Who learns what. An *owner* has its own rows and the public totals. The *proxy* sees ciphertexts, and the totals. The
*data user* has the secret key, and is sent the sum of the shares of at least :attr:`Contract.least` owners, once for
each release. Parties are honest but curious: they follow the protocol and may look at all that they get. What is not
covered is in :attr:`fdadp.privacy.Ledger.statement` of the fitted model and in the README: proxy and user who collude
can decrypt one owner's share, which protects its persons at `honest` times the ρ; rows that an owner makes up; traffic
seen from outside (TLS is the transport's part).
"""

from __future__ import annotations

import hashlib
import struct
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from fdadp._typing import IntArray
from fdadp.errors import FdadpError, FdadpWarning
from fdadp.federated import models
from fdadp.federated.contract import USER, Contract
from fdadp.federated.packing import ciphertexts, pack, unpack
from fdadp.federated.paillier import PublicKey, Randomness, SecretKey, add, keys
from fdadp.federated.wire import (
    Kind,
    Message,
    Next,
    ProtocolError,
    Totals,
    ciphertexts_from_bytes,
    ciphertexts_to_bytes,
)
from fdadp.privacy.distributed import NextRound

__all__ = ["DataUser", "Exchange", "Owner", "Party", "Proxy"]

Exchange = Callable[[Mapping[str, bytes], float | None], Mapping[str, list[bytes]]]
"""Sends each request to the party of its name; returns the replies that came in time, none or several a party."""
_U32 = struct.Struct(">I")


def _bound(contract: Contract, modulus: bytes) -> bytes:
    """Hash that messages carry once there is a key."""
    return hashlib.sha256(contract.digest + modulus).digest()


class Party:
    """What owners and user share: the terms, the answers given so far, refusals.

    Parameters
    ----------
    contract : Contract
    name : str
    state : mapping, optional
        What :attr:`state` of an earlier object was, for parties that do not live on between two messages.

    Attributes
    ----------
    result_ : estimator
        The fitted model, once all totals are known.
    """

    def __init__(self, contract: Contract, name: str, state: Mapping[str, bytes] | None = None) -> None:
        self.contract, self.name = contract, name
        self.state: dict[str, bytes] = dict(state or {})
        self.result_: Any = None

    def answer(self, request: bytes) -> bytes:
        """Answer a message; a refusal is an answer too. Never raises for what a message holds."""
        index = 0
        try:
            message = Message.from_bytes(request)
            index = message.index
            self._check(message)
            return self._answer(message)
        except FdadpError as exc:  # of public things: messages, terms, shapes
            return self._message(Kind.REFUSAL, index, str(exc).encode(), self.contract.digest)

    def _answer(self, message: Message) -> bytes:
        raise NotImplementedError

    def _check(self, message: Message) -> None:
        if message.bits != self.contract.key_bits:
            raise ProtocolError(f"key must have {self.contract.key_bits} bits, got {message.bits}")

    def _message(self, kind: int, index: int, body: bytes, digest: bytes) -> bytes:
        return Message(kind, self.contract.key_bits, index, self.name, digest, body).to_bytes()

    def _once(self, key: str, asked: bytes, make: Callable[[], bytes]) -> bytes:
        """Answer each question once: the same one again gets the same bytes, another one in its place a refusal.

        Two shares of one release, or two decrypted sums, would tell more than the budget was charged for.
        """
        asked_before = self.state.get(f"{key}?")
        question = hashlib.sha256(asked).digest()
        if asked_before is None:
            self.state[f"{key}?"] = question  # before anything is drawn: spent, whatever happens
            self.state[key] = make()
        elif asked_before != question or key not in self.state:
            raise ProtocolError(f"{key} was asked for before, with another message: answered once only")
        return self.state[key]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, model={self.contract.model!r}, run={self.contract.run!r})"


class Owner(Party):
    """One owner of rows.

    Parameters
    ----------
    contract : Contract
        Its terms are this owner's consent: it answers for no other ones.
    name : str
        One of ``contract.names``.
    data : tuple of arrays
        (X,) or (X, y) or (X, Y), as the model takes them, and the person of each row where the contract has groups. A
        person's rows must be with one owner.
    state : mapping, optional
        See :class:`Party`.
    n_jobs : int
        Processes for the random factors of the ciphertexts.
    random_state : int, optional
        Seeded noise, for simulation.
    """

    def __init__(
        self,
        contract: Contract,
        name: str,
        data: tuple[Any, ...],
        *,
        state: Mapping[str, bytes] | None = None,
        n_jobs: int = 1,
        random_state: int | None = None,
    ) -> None:
        super().__init__(contract, name, state)
        if name not in contract.names:
            raise ProtocolError(f"name must be one of {', '.join(contract.names)}, got {name!r}")
        models.check_data(contract, data)
        self._data, self._n_jobs, self._random_state = data, n_jobs, random_state
        self._randomness: Randomness | None = None

    def prepare(self, key: PublicKey, count: int) -> None:
        """Compute random factors for `count` ciphertexts before they are asked for."""
        self._randomness = Randomness(key, self._n_jobs).prepare(count)

    def _answer(self, message: Message) -> bytes:
        if message.kind != Kind.ASK:
            raise ProtocolError(f"an owner answers to requests for a share only, got kind {message.kind}")
        size = self.contract.key_bits // 8
        modulus, totals = message.body[:size], Totals.from_bytes(message.body[size:])
        digest = _bound(self.contract, modulus)
        if message.digest != digest:
            raise ProtocolError("the contract must be the same for all parties: its hash differs")
        if message.index != len(totals):
            raise ProtocolError(f"release {message.index} needs as many totals, got {len(totals)}")
        key = PublicKey(int.from_bytes(modulus, "big"), self.contract.key_bits)
        if self.state.setdefault("key", modulus) != modulus:
            raise ProtocolError("the public key must not change in a run")
        seen, told = self.state.get("totals", b""), message.body[size:]
        if not (told.startswith(seen) or seen.startswith(told)):
            raise ProtocolError("totals must be those of the earlier requests")
        self.state["totals"] = max(seen, told, key=len)
        return self._once(f"share {message.index}", message.body, lambda: self._share(key, totals, digest))

    def _share(self, key: PublicKey, totals: list[tuple[IntArray, int]], digest: bytes) -> bytes:
        waits = models.fit(self.contract, self._data, totals, self._random_state)
        if not isinstance(waits, NextRound):
            self.result_ = waits
            return self._message(Kind.DONE, len(totals), b"", digest)
        assert waits.share is not None
        if waits.index != len(totals):
            raise ProtocolError(f"the model uses {waits.index} totals, got {len(totals)}")
        plaintexts = pack(waits.share, waits.width, self.contract.owners, key.bits)
        if self._randomness is None:
            self._randomness = Randomness(key, self._n_jobs)
        body = ciphertexts_to_bytes(key.encrypt(plaintexts, self._randomness), key.size)
        return self._message(Kind.SHARE, len(totals), body, digest)


class DataUser(Party):
    """Who holds the secret key and gets the model; without rows of its own.

    Parameters
    ----------
    contract : Contract
    state : mapping, optional
        See :class:`Party`. It holds no secret; the key must be given with it.
    key : SecretKey, optional
        By default a new one.
    n_jobs : int
        Processes for decryption.
    """

    def __init__(
        self,
        contract: Contract,
        *,
        state: Mapping[str, bytes] | None = None,
        key: SecretKey | None = None,
        n_jobs: int = 1,
    ) -> None:
        super().__init__(contract, USER, state)
        self._key = keys(contract.key_bits) if key is None else key
        if self._key.public.bits != contract.key_bits:
            raise ProtocolError(f"key must have {contract.key_bits} bits, got {self._key.public.bits}")
        self._n_jobs = n_jobs
        self._stands: tuple[bytes, Next] | None = None

    @property
    def _modulus(self) -> bytes:
        return int(self._key.public.n).to_bytes(self.contract.key_bits // 8, "big")

    def _totals(self) -> list[tuple[IntArray, int]]:
        return Totals.from_bytes(self.state.get("totals", b""))

    def _follow(self) -> Next:
        """Where the program stands; run once for the same totals."""
        told = self.state.get("totals", b"")
        if self._stands is None or self._stands[0] != told:
            waits = models.fit(self.contract, None, self._totals())
            if not isinstance(waits, NextRound):
                self.result_ = waits
            self._stands = told, Next(waits.size, waits.width) if isinstance(waits, NextRound) else Next(0, 0)
        return self._stands[1]

    def _answer(self, message: Message) -> bytes:
        if message.kind == Kind.ASK_KEY:
            if message.digest != self.contract.digest:
                raise ProtocolError("the contract must be the same for all parties: its hash differs")
            return self._once("key", b"", lambda: self._own_key())
        if message.kind != Kind.ASK_TOTAL:
            raise ProtocolError(f"the user answers to requests for its key and for totals only, got {message.kind}")
        if message.digest != _bound(self.contract, self._modulus):
            raise ProtocolError("the contract must be the same for all parties: its hash differs")
        return self._once(f"total {message.index}", message.body, lambda: self._total(message))

    def _own_key(self) -> bytes:
        return self._message(Kind.KEY, 0, self._modulus + self._follow().to_bytes(), self.contract.digest)

    def _total(self, message: Message) -> bytes:
        now, owners, bits = self._follow(), self.contract.owners, self.contract.key_bits
        if now.size == 0 or message.index != len(self._totals()):
            raise ProtocolError(f"release {message.index} is not the next one")
        (shares,) = _U32.unpack_from(message.body.ljust(_U32.size, b"\0"))
        if not self.contract.least <= shares <= owners:
            raise ProtocolError(f"a sum must be of {self.contract.least} to {owners} shares, got {shares}")
        found = ciphertexts_from_bytes(message.body[_U32.size :], self._key.public.size)
        if len(found) != ciphertexts(now.size, now.width, owners, bits) or not all(map(self._key.public.valid, found)):
            raise ProtocolError("the sum must be as many valid ciphertexts as the release takes")
        plaintexts = self._key.decrypt(found, self._n_jobs)
        values = unpack(plaintexts, now.size, now.width, owners, bits)
        total = Totals.one_to_bytes(values, shares)
        self.state["totals"] = self.state.get("totals", b"") + total
        return self._message(Kind.TOTAL, message.index, self._follow().to_bytes() + total, message.digest)


class Proxy:
    """Who collects the owners' shares and adds them up, without the secret key.

    Parameters
    ----------
    contract : Contract
    timeout : float, optional
        Seconds to wait for the owners in each round; None: as long as it takes.
    n_jobs : int
        Processes for adding ciphertexts.
    progress : callable, optional
        Called with (index, number of shares) after each release.

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
    ) -> None:
        self.contract, self._timeout, self._n_jobs, self._progress = contract, timeout, n_jobs, progress
        self.refused_: list[tuple[str, str]] = []

    def run(self, exchange: Exchange) -> list[tuple[IntArray, int]]:
        """Carry a run through to its end.

        Parameters
        ----------
        exchange : callable
            The transport; see :data:`Exchange`.

        Returns
        -------
        list of (ndarray of int64, int)
            The totals, from which anyone gets the model: ``fdadp.federated.models.fit(contract, None, totals)``.

        Raises
        ------
        ProtocolError
            The user did not answer as it should, or fewer than ``contract.least`` owners delivered a valid share:
            nothing of this release is decrypted.
        """
        bits = self.contract.key_bits
        opening = self._request(Kind.ASK_KEY, 0, b"", self.contract.digest)
        reply = self._from_user(exchange, opening, Kind.KEY, 0, self.contract.digest)
        modulus, now = reply[: bits // 8], Next.from_bytes(reply[bits // 8 :])
        key = PublicKey(int.from_bytes(modulus, "big"), bits)
        digest = _bound(self.contract, modulus)
        totals: list[tuple[IntArray, int]] = []
        while now.size:
            index = len(totals)
            asked = self._request(Kind.ASK, index, modulus + Totals.to_bytes(totals), digest)
            replies = exchange(dict.fromkeys(self.contract.names, asked), self._timeout)
            shares = self._shares(replies, index, digest, key, now)
            summed = ciphertexts_to_bytes(add(key, shares, self._n_jobs), key.size)
            request = self._request(Kind.ASK_TOTAL, index, _U32.pack(len(shares)) + summed, digest)
            reply = self._from_user(exchange, request, Kind.TOTAL, index, digest)
            now, (total,) = Next.from_bytes(reply[:5]), Totals.from_bytes(reply[5:])
            totals.append(total)
            if self._progress is not None:
                self._progress(index, len(shares))
        last = self._request(Kind.ASK, len(totals), modulus + Totals.to_bytes(totals), digest)
        exchange(dict.fromkeys(self.contract.names, last), self._timeout)  # so that owners have the model too
        return totals

    def _request(self, kind: int, index: int, body: bytes, digest: bytes) -> bytes:
        return Message(kind, self.contract.key_bits, index, "proxy", digest, body).to_bytes()

    def _open(self, data: bytes, sender: str, kind: int, index: int, digest: bytes) -> bytes:
        message = Message.from_bytes(data)
        if message.kind == Kind.REFUSAL:
            raise ProtocolError(f"refused: {message.body.decode(errors='replace')}")
        if (message.sender, message.bits) != (sender, self.contract.key_bits):
            raise ProtocolError(f"message must be {sender}'s, for {self.contract.key_bits} bits")
        if (message.kind, message.index, message.digest) != (kind, index, digest):
            raise ProtocolError("message belongs to another run, release or step")
        return message.body

    def _from_user(self, exchange: Exchange, request: bytes, kind: int, index: int, digest: bytes) -> bytes:
        reason = "no answer"
        for data in exchange({USER: request}, self._timeout).get(USER, []):
            try:
                return self._open(data, USER, kind, index, digest)
            except ProtocolError as exc:
                reason = str(exc)
        raise ProtocolError(f"the data user must answer, got: {reason}")

    def _shares(
        self, replies: Mapping[str, list[bytes]], index: int, digest: bytes, key: PublicKey, now: Next
    ) -> list[list[int]]:
        """Valid shares, one an owner: the first that is one."""
        count = ciphertexts(now.size, now.width, self.contract.owners, key.bits)
        valid: dict[str, list[int]] = {}
        for name in self.contract.names:
            if not replies.get(name):
                self.refused_.append((name, "no answer in time"))
            for data in replies.get(name, []):
                try:
                    found = ciphertexts_from_bytes(self._open(data, name, Kind.SHARE, index, digest), key.size)
                    if len(found) != count or not all(map(key.valid, found)):
                        raise ProtocolError(f"a share must be {count} valid ciphertexts")
                except ProtocolError as exc:
                    self.refused_.append((name, str(exc)))
                else:
                    valid.setdefault(name, found)
        if len(valid) < self.contract.least:
            raise ProtocolError(
                f"at least {self.contract.least} of {self.contract.owners} owners must deliver a share for release "
                f"{index}, got {len(valid)}; nothing was decrypted ({self.refused_})"
            )
        if len(valid) < self.contract.owners:
            missing = sorted(set(self.contract.names) - valid.keys())
            warnings.warn(f"release {index} goes without {', '.join(missing)}", FdadpWarning, stacklevel=3)
        return list(valid.values())
