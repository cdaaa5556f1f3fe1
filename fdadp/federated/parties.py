"""Parties of an encrypted run: owners and data user answer messages, bytes for bytes, and the proxy asks.

Who learns what. An *owner* has its own rows and the public totals. The *proxy* (:class:`Proxy`) sees
ciphertexts, and the totals. The *data user* has the secret key, and is sent the sum of the shares of at least
:attr:`Contract.least` owners, once for each release. Parties are honest but curious: they follow the protocol and may
look at all that they get. What is proved, and what is left against parties who do not follow it, is in
``docs/theory/federated.md#views`` and in :attr:`fdadp.privacy.Ledger.statement` of the fitted model.

A party's :attr:`Party.state` changes with an answer and with nothing else: a message that is refused leaves no trace,
and a party that dies over an answer has not given it. Answers once given are given again, byte for byte.
"""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from fdadp._common.typing import IntArray
from fdadp.errors import FdadpError, FdadpWarning, InputError
from fdadp.federated import federated_models, wire_format
from fdadp.federated.federated_models import seed_of
from fdadp.federated.paillier import PublicKey, Randomness, SecretKey, add, ciphertexts, keys, pack, unpack
from fdadp.federated.run_contract import SIZE, USER, Contract, Signer, check_signature
from fdadp.federated.wire_format import Kind, Message, Next, ProtocolError, Totals
from fdadp.privacy.noise.distributed import NextRound


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
        if contract.key is None:
            raise ProtocolError("the contract must name the data user's public key: contract.with_key(key.public)")
        self.contract, self.name = contract, name
        self.state: dict[str, bytes] = dict(state or {})
        self.result_: Any = None

    def answer(self, request: bytes) -> bytes:
        """Answer a message; a refusal is an answer too. Never raises for what a message holds."""
        index = 0
        try:
            message = Message.from_bytes(request)
            index = message.index
            if message.bits != self.contract.key_bits:
                raise ProtocolError(f"key must have {self.contract.key_bits} bits, got {message.bits}")
            if message.digest != self.contract.digest:
                raise ProtocolError("the contract must be the same for all parties: its hash differs")
            return self._answer(message)
        except FdadpError as exc:  # of public things: messages, terms, shapes
            return self._message(Kind.REFUSAL, index, str(exc).encode())
        except (ArithmeticError, ValueError):  # LinAlgError is a ValueError; the words are the same for all rows
            words = b"totals must be such that the model can be computed from them, and are not"
            return self._message(Kind.REFUSAL, index, words)

    def _answer(self, message: Message) -> bytes:
        raise NotImplementedError

    def _message(self, kind: int, index: int, body: bytes) -> bytes:
        return Message(kind, self.contract.key_bits, index, self.name, self.contract.digest, body).to_bytes()

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
        See :class:`~fdadp.federated.parties.Party`.
    signer : Signer, optional
        This owner's secret key, where the contract names its public half.
    n_jobs : int
        Processes for the random factors of the ciphertexts.
    random_state : int, optional
        Seeded noise, under a contract that is a simulation.

    Raises
    ------
    ProtocolError, InputError, PrivacyError
        A name that is not in the contract, another key than the contract names for it, arrays of other shapes, seeded
        shares where they are not agreed on.
    """

    def __init__(
        self,
        contract: Contract,
        name: str,
        data: tuple[Any, ...],
        *,
        state: Mapping[str, bytes] | None = None,
        signer: Signer | None = None,
        n_jobs: int = 1,
        random_state: int | None = None,
    ) -> None:
        super().__init__(contract, name, state)
        if name not in contract.names:
            raise ProtocolError(f"name must be one of {', '.join(contract.names)}, got {name!r}")
        if contract.key_of(name) != (None if signer is None else signer.public):
            raise ProtocolError(f"the key must be the one that the contract names for {name}, got another one, or none")
        self._signer = signer
        federated_models.check_data(contract, data)
        federated_models.check_seed(contract, random_state)
        self._data, self._n_jobs, self._random_state = data, n_jobs, random_state
        self._randomness: Randomness | None = None

    def _message(self, kind: int, index: int, body: bytes) -> bytes:
        message = super()._message(kind, index, body)
        return message if self._signer is None else message + self._signer.sign(message)

    def prepare(self, key: PublicKey, count: int) -> None:
        """Compute random factors for `count` ciphertexts before they are asked for."""
        self._randomness = Randomness(key, self._n_jobs).prepare(count)

    def _answer(self, message: Message) -> bytes:
        if message.kind != Kind.ASK:
            raise ProtocolError(f"an owner answers to requests for a share only, got kind {message.kind}")
        size = self.contract.key_bits // 8
        key, told = self.contract.public_key(message.body[:size]), message.body[size:]
        totals = Totals.from_bytes(told)
        if message.index != len(totals):
            raise ProtocolError(f"release {message.index} needs as many totals, got {len(totals)}")
        seen = self.state.get("totals", b"")
        if not (told.startswith(seen) or seen.startswith(told)):
            raise ProtocolError("totals must be those of the earlier requests")
        return self._once(f"share {message.index}", told, lambda: self._share(key, totals))

    def _once(self, name: str, told: bytes, make: Callable[[], bytes]) -> bytes:
        """Answer each question once: the same one again gets the same bytes, another one in its place a refusal.

        Two shares of one release would tell more than the budget was charged for. A share is drawn, and then noted
        together with its question: what was not noted has not left.
        """
        question, before = hashlib.sha256(told).digest(), self.state.get(f"{name}?")
        if before is None:
            answer = make()
            seen = max(self.state.get("totals", b""), told, key=len)
            self.state |= {f"{name}?": question, name: answer, "totals": seen}
        elif before != question:
            raise ProtocolError(f"{name} was asked for before, with another message: answered once only")
        return self.state[name]

    def _share(self, key: PublicKey, totals: list[tuple[IntArray, int]]) -> bytes:
        waits = federated_models.fit(self.contract, self._data, totals, self._random_state)
        if not isinstance(waits, NextRound):
            self.result_ = waits
            return self._message(Kind.DONE, len(totals), b"")
        assert waits.share is not None
        if waits.index != len(totals):
            raise ProtocolError(f"the model uses {waits.index} totals, got {len(totals)}")
        plaintexts = pack(waits.share, waits.width, int(key.n))
        if self._randomness is None:
            self._randomness = Randomness(key, self._n_jobs)
        body = wire_format.ciphertexts_to_bytes(key.encrypt(plaintexts, self._randomness), key.size)
        return self._message(Kind.SHARE, len(totals), body)


class DataUser(Party):
    """The party that holds the secret key and decrypts the totals; it has no rows.

    Parameters
    ----------
    contract : Contract
    key : SecretKey, optional
        Its public half is the one that the contract names. None: only what was answered before is answered again.
    state : mapping, optional
        See :class:`~fdadp.federated.parties.Party`. It holds no secret.
    n_jobs : int
        Processes for decryption.

    Raises
    ------
    ProtocolError
        Another key than the contract's.
    """

    def __init__(
        self, contract: Contract, *, key: SecretKey | None, state: Mapping[str, bytes] | None = None, n_jobs: int = 1
    ) -> None:
        super().__init__(contract, USER, state)
        if key is not None and key.public.bits != contract.key_bits:
            raise ProtocolError(f"key must have {contract.key_bits} bits, got {key.public.bits}")
        if key is not None and key.public.digest != contract.key:
            raise ProtocolError("key must be the one whose SHA-256 is in the contract, got another one")
        if key is not None:
            self.state["modulus"] = key.public.modulus
        self._key, self._n_jobs = key, n_jobs
        self._stands: tuple[bytes, Next] | None = None

    @property
    def done(self) -> bool:
        """Whether all totals are there: the secret key is not needed any more."""
        return self._follow().size == 0

    def _totals(self) -> list[tuple[IntArray, int]]:
        return Totals.from_bytes(self.state.get("totals", b""))

    def _follow(self) -> Next:
        """Which release comes next, from running the model's program with the totals so far."""
        told = self.state.get("totals", b"")
        if self._stands is None or self._stands[0] != told:
            waits = federated_models.fit(self.contract, None, self._totals())
            if not isinstance(waits, NextRound):
                self.result_ = waits
            self._stands = told, Next(waits.size, waits.width) if isinstance(waits, NextRound) else Next(0, 0)
        return self._stands[1]

    def _answer(self, message: Message) -> bytes:
        if message.kind == Kind.ASK_KEY:
            if "modulus" not in self.state:
                raise ProtocolError("the data user's key is not here")
            stands = self._follow().to_bytes() + self.state.get("totals", b"")
            return self._message(Kind.KEY, 0, self.state["modulus"] + stands)
        if message.kind != Kind.ASK_TOTAL:
            raise ProtocolError(f"the user answers to requests for its key and for totals only, got {message.kind}")
        known = len(self._totals())
        if message.index < known:  # one sum of a release is decrypted: of two, the difference would be an owner's share
            if f"total {message.index}" not in self.state:
                raise ProtocolError("the model cannot be computed from the totals so far")
            return self.state[f"total {message.index}"]
        if self.done or message.index != known:
            raise ProtocolError(f"release {message.index} is not the next one")
        return self._total(message)

    def _total(self, message: Message) -> bytes:
        if self._key is None:
            raise ProtocolError("the data user's key is not here")
        now, bits, public = self._follow(), self.contract.key_bits, self._key.public
        shares, body = wire_format.counted(message.body)
        if not self.contract.least <= shares <= self.contract.owners:
            raise ProtocolError(
                f"a sum must be of {self.contract.least} to {self.contract.owners} shares, got {shares}"
            )
        found = wire_format.ciphertexts_from_bytes(body, public.size)
        if len(found) != ciphertexts(now.size, now.width, bits) or not all(map(public.valid, found)):
            raise ProtocolError("the sum must be as many valid ciphertexts as the release takes")
        inside, values = unpack(self._key.decrypt(found, self._n_jobs), now.size, now.width, int(public.n))
        if inside != shares:
            raise ProtocolError(f"the sum must hold the {shares} shares that it is said to hold, and does not")
        total = Totals.one_to_bytes(values, shares)
        self.state["totals"] = self.state.get("totals", b"") + total
        answer = self._message(Kind.TOTAL, message.index, self._follow().to_bytes() + total)
        self.state[f"total {message.index}"] = answer
        if self.done:
            self._key = None
        return answer


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
            The transport; see :data:`~fdadp.federated.parties.Exchange`.

        Returns
        -------
        list of (ndarray of int64, int)
            The totals, from which anyone gets the model: ``fdadp.federated.federated_models.fit(contract, None,
            totals)``.

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
            summed = wire_format.ciphertexts_to_bytes(add(key, shares, self._n_jobs), key.size)
            request = self._request(Kind.ASK_TOTAL, index, wire_format.with_count(len(shares), summed))
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
        for _ in self._attempts():
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
        for _ in self._attempts():
            for data in exchange({USER: request}, self._timeout).get(USER, []):
                try:
                    return self._open(data, USER, kind, index)
                except ProtocolError as exc:
                    reason = str(exc)
        raise ProtocolError(f"the data user must answer, got: {reason}")

    def _attempts(self) -> Iterator[int]:
        """Number the attempts, with a pause before all but the first."""
        for attempt in range(1 + self._retries):
            if attempt:
                time.sleep(self._pause)
            yield attempt

    def _shares(self, exchange: Exchange, asked: bytes, index: int, key: PublicKey, now: Next) -> list[list[int]]:
        """Valid shares, one an owner; those missing are asked for again as long as there are too few."""
        valid: dict[str, list[int]] = {}
        before, count = len(self.refused_), ciphertexts(now.size, now.width, key.bits)
        for _ in self._attempts():
            missing = [name for name in self.contract.names if name not in valid]
            replies = exchange(dict.fromkeys(missing, asked), self._timeout)
            for name in missing:
                if not replies.get(name):
                    self.refused_.append((name, "no answer in time"))
                for data in replies.get(name, []):
                    try:
                        valid.setdefault(name, self._share(data, name, index, key, count))
                    except ProtocolError as exc:
                        self.refused_.append((name, str(exc)))
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

    def _share(self, data: bytes, name: str, index: int, key: PublicKey, count: int) -> list[int]:
        """The valid ciphertexts of an owner's share; raises ProtocolError for all else."""
        found = wire_format.ciphertexts_from_bytes(self._open(data, name, Kind.SHARE, index), key.size)
        if len(found) != count or not all(map(key.valid, found)):
            raise ProtocolError(f"a share must be {count} valid ciphertexts")
        return found


class Federation:
    """Owners, proxy and user of one run, in memory.

    Parameters
    ----------
    contract : Contract
        A draft, too: the user's key is put in.
    data : sequence of tuples of arrays
        One for each owner.
    key : SecretKey, optional
        The user's; by default a new one.
    n_jobs
        See :class:`~fdadp.federated.Proxy` and :class:`~fdadp.federated.Owner`.
    random_state : int, optional
        Seeded shares: makes the contract a simulation, whose results are not for release.

    Attributes
    ----------
    contract : Contract
        What the parties have agreed on.
    owners, user, proxy : the parties
    traffic : list of (str, str, bytes)
        Every message: from, to, bytes. What a party got is all that it saw.
    """

    def __init__(
        self,
        contract: Contract,
        data: Sequence[tuple[Any, ...]],
        *,
        key: SecretKey | None = None,
        n_jobs: int = 1,
        random_state: int | None = None,
    ) -> None:
        if len(data) != contract.owners:
            raise InputError(f"data must be of {contract.owners} owners, got {len(data)}")
        if random_state is not None:
            contract = replace(contract, simulation=True)
        if contract.key is None:
            key = keys(contract.key_bits) if key is None else key
            contract = contract.with_key(key.public)
        elif key is None:
            raise InputError("key must be the one whose SHA-256 is in the contract, got None")
        self.contract = contract
        self.owners = [
            Owner(contract, name, rows, n_jobs=n_jobs, random_state=seed_of(random_state, i))
            for i, (name, rows) in enumerate(zip(contract.names, data, strict=True))
        ]
        self.user = DataUser(contract, key=key, n_jobs=n_jobs)
        self.proxy = Proxy(contract, n_jobs=n_jobs)
        self.traffic: list[tuple[str, str, bytes]] = []

    def exchange(self, requests: Mapping[str, bytes], timeout: float | None = None) -> dict[str, list[bytes]]:
        """Deliver requests and collect the answers."""
        parties: dict[str, Party] = {USER: self.user, **{owner.name: owner for owner in self.owners}}
        replies = {}
        for name, request in requests.items():
            answer = parties[name].answer(request)
            self.traffic += [("proxy", name, request), (name, "proxy", answer)]
            replies[name] = [answer]
        return replies

    def run(self) -> Any:
        """Carry the run through; return the fitted model."""
        self.proxy.run(self.exchange)
        return self.user.result_
