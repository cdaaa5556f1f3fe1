"""An owner of rows: what it answers, and what it has on its disk before it answers.

====================== =============================================================================================
consent                its key stands under its number, it verified enough others, it never answered this contract
ask k → ready k        signatures and transcript are right, it has added the totals up; draws share and key, keeps both
go k → share k         all owners are told the same and add at least its own noise; keeps the masked share, drops both
ask K → done           the model needs no more totals
====================== =============================================================================================

An answer is on the disk before it leaves, and the same bytes come again. A message that is refused changes nothing. An
owner that cannot write has ended. What is proved of it: ``docs/theory/federated.md#masks``.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Collection
from datetime import UTC, date, datetime
from typing import Any, Protocol

import numpy as np

from fdadp._common.typing import IntArray
from fdadp.errors import FdadpError, PrivacyError
from fdadp.federated import federated_models
from fdadp.federated.owners import signed_messages
from fdadp.federated.owners.owner_folder import Keeper
from fdadp.federated.owners.pairwise_masks import MaskedRelease, check_mask_keys, masked, new_key, public_half
from fdadp.federated.owners.signed_messages import MessageKind, Ready, Refusal, RefusedMessage, SignedMessage, accept
from fdadp.federated.run_contract import Contract, ProtocolError, Signer
from fdadp.privacy.noise.distributed import NextRound
from fdadp.privacy.study import Study

_ANSWERED = "answered"
_SAME_NOISE = 1 - 1e-12
"""Standard deviations that differ by less are the same: other machines round otherwise."""


class Program(Protocol):
    """A model's program on one owner's rows.

    Attributes
    ----------
    rows : bytes
        Hash of the rows, 32 bytes.
    arrays : bytes
        Hash of the public arrays that functions of rows use, 32 bytes, as this machine computes them, coarsely rounded.
    """

    rows: bytes
    arrays: bytes

    def __call__(self, totals: list[IntArray]) -> NextRound | Any:
        """The next release with this owner's share, its noise included; or the fitted model."""


class ContractProgram:
    """What an owner of rows computes under a contract; as a :class:`Program`.

    Parameters
    ----------
    contract : Contract
    data : tuple of arrays
        See :func:`fdadp.federated.fit_together`.
    random_state : int, optional
        Seeded noise, under a contract that is a simulation.

    Raises
    ------
    InputError, PrivacyError
        Arrays of other shapes than the contract's, seeded noise where it is not agreed on.
    """

    def __init__(self, contract: Contract, data: tuple[Any, ...], random_state: int | None = None) -> None:
        federated_models.check_data(contract, data)
        federated_models.check_seed(contract, random_state)
        self._contract, self._data, self._random_state = contract, data, random_state
        self.rows = signed_messages.hashed(b"rows", *map(_bytes_of_array, data))
        self.arrays = signed_messages.hashed(b"arrays", federated_models.fingerprint(contract))

    def __call__(self, totals: list[IntArray]) -> NextRound | Any:
        """The next release with this owner's share, or the fitted model."""
        return federated_models.fit(self._contract, self._data, totals, self._random_state)


class DataOwner:
    """One owner of rows under a contract of masked sums. There must be one object for each folder and contract.

    Parameters
    ----------
    contract : Contract
        With a key of each owner.
    number : int
        This owner's, from 1.
    program : Program
    signer : Signer
        This owner's secret key.
    folder : Keeper
        See :class:`~fdadp.federated.owners.owner_folder.OwnerFolder`.
    verified : collection of str
        Keys of other owners, in hexadecimal digits, that this owner verified itself. It must come from this owner, not
        from whoever brought the contract.
    study : Study, optional
        This owner's account of its rows. It is charged the contract's whole budget before this owner consents, once;
        nothing is given back.

    Attributes
    ----------
    result_ : estimator or None
        The fitted model, once all totals are known.

    Raises
    ------
    ProtocolError
        The contract names no keys, the key is not the one under this number, or too few were verified.
    PrivacyError
        The rows are not those of an earlier process under this contract, a file of the folder is another one, or the
        study of an owner that had begun cannot be charged.
    """

    def __init__(
        self,
        contract: Contract,
        number: int,
        program: Program,
        *,
        signer: Signer,
        folder: Keeper,
        verified: Collection[str],
        study: Study | None = None,
    ) -> None:
        contract.check_final()
        if not 1 <= number <= contract.owners or contract.owner_keys[number - 1] != signer.public:
            raise ProtocolError(f"the contract must name this owner's key under its number, and not under {number}")
        others = set(contract.owner_keys) - {signer.public}
        needed = contract.owners - contract.corrupt - 1
        if len(others & set(verified)) < needed:
            raise ProtocolError(
                f"verified must hold at least {needed} of the other owners' keys, got {len(others & set(verified))}"
            )
        self.contract, self.number, self.result_ = contract, number, None
        self._program, self._signer, self._folder, self._study = program, signer, folder, study
        self._failed, self._polls, self._turn = False, 0, threading.Lock()
        self._name = contract.digest.hex()
        kept = folder.read(f"{self._name}.state")
        self._state = None if kept is None else _state_from_bytes(kept)
        if self._state is not None and self._state["rows"] != program.rows:
            raise PrivacyError("data must be the rows with which this owner consented to the contract, got other ones")
        self._totals = [self._read_total(k) for k in range(self._index)]
        if self._state is not None:
            if self._state.get("totals", _hash_of([])) != _hash_of(self._totals):
                raise PrivacyError("folder must hold the totals that this owner kept, and they were changed")
            self._charge()
        if self._state is not None and "done" in self._state:
            self.result_ = program(self._totals)

    def consent(self) -> bytes:
        """Agree to the contract, once: the message that says so.

        Raises
        ------
        ProtocolError
            The contract has expired, or was answered before and what was kept of it is gone.
        """
        with self._turn:
            return self._consent()

    def _consent(self) -> bytes:
        self._check_alive()
        if self._expired:
            raise ProtocolError(f"the contract must not have expired, and has on {self.contract.expires}")
        if self._state is None:
            if self._known:
                raise ProtocolError(
                    "the contract must be a new one: this owner answered it before, and what it kept of that is gone"
                )
            # Its random name tells this folder from others, and from what it was before, in the study.
            self._save({"rows": self._program.rows, "name": os.urandom(16)})
        if not self._known:
            self._charge()
            self._keep(_ANSWERED, (self._folder.read(_ANSWERED) or b"") + self.contract.digest)
        return self._message(MessageKind.CONSENT, 0, b"")

    def _charge(self) -> None:
        if self._study is not None and self._state is not None:
            federated_models.charge(self.contract, self._study, self._state["name"].hex())

    def answer(self, request: bytes) -> bytes:
        """Answer a message of the coordinator; a refusal is an answer too. Never raises for what a message holds."""
        with self._turn:
            return self._answer(request)

    def _answer(self, request: bytes) -> bytes:
        self._check_alive()
        index = 0
        try:
            message = SignedMessage.from_bytes(request)
            index = message.index
            signed_messages.check_request(message, self.contract)
            accept(not self._expired, Refusal.EXPIRED)
            if self._state is None or not self._known:
                raise RefusedMessage(Refusal.ORDER)
            accept("ended" not in self._state, Refusal.TOTAL)
            if message.kind == MessageKind.ASK:
                return self._ready(message, self._state)
            return self._share(message, self._state)
        except RefusedMessage as exc:
            return self._message(MessageKind.REFUSAL, index, bytes([exc.code]))

    def poll(self) -> bytes:
        """Ask what is asked of this owner now: a message with a count that rises, in later processes too."""
        with self._turn:
            self._check_alive()
            if self._polls == 0:
                kept = self._folder.read(f"{self._name}.starts") or b"0"
                if not kept.isdigit():
                    raise PrivacyError("folder must hold how often this owner was started, and holds something else")
                starts = int(kept) + 1
                self._keep(f"{self._name}.starts", b"%d" % starts)
                self._polls = starts << 32
            self._polls += 1
            return self._message(MessageKind.POLL, 0, self._polls.to_bytes(8, "big"))

    @property
    def longest_request(self) -> int:
        """Bytes of the longest message that this owner can be sent now: it needs to read no more."""
        sizes = [len(total) for total in self._totals[-1:]]  # the shares of the last release may come again
        if self._state and "ready" in self._state and "done" not in self._state:
            sizes.append(Ready.from_bytes(SignedMessage.from_bytes(self._state["ready"]).body).size)
        return signed_messages.longest_request(self.contract, max(sizes, default=0))

    @property
    def totals_(self) -> list[IntArray]:
        """The totals that this owner has added up so far, (d,) each."""
        return list(self._totals)

    def _ready(self, message: SignedMessage, state: dict[str, bytes]) -> bytes:
        asked = signed_messages.hashed(b"asked", message.body)
        if "asked" in state and message.index == self._index:
            accept(asked == state["asked"], Refusal.ANSWERED)
            return state["ready"]
        follows = self._index + 1 if "share" in state else 0 if "asked" not in state else -1
        accept(message.index == follows, Refusal.ORDER)
        parts = signed_messages.split(message.body, self.contract.owners)
        if message.index == 0:
            self._bodies(parts, MessageKind.CONSENT, 0)
            return self._next_release(state, signed_messages.first_transcript(self.contract, parts), asked, [])
        accept(parts[self.number - 1] == state["share"], Refusal.TRANSCRIPT)
        own = Ready.from_bytes(SignedMessage.from_bytes(state["ready"]).body)
        shares = [
            signed_messages.Share.from_bytes(body, own.size)
            for body in self._bodies(parts, MessageKind.SHARE, message.index - 1)
        ]
        same = all((s.transcript, s.readies) == (state["transcript"], state["readies"]) for s in shares)
        accept(same, Refusal.TRANSCRIPT)
        total = signed_messages.total_of(shares)
        half = 2 ** (own.width - 1)
        if not np.all((-half <= total) & (total < half)):
            self._save({"rows": state["rows"], "name": state["name"], "ended": b""})
            raise RefusedMessage(Refusal.TOTAL)
        transcript = signed_messages.next_transcript(state["transcript"], state["readies"], parts)
        return self._next_release(state, transcript, asked, [*self._totals, total])

    def _next_release(self, before: dict[str, bytes], transcript: bytes, asked: bytes, totals: list[IntArray]) -> bytes:
        """Run the program with the totals; keep share, key and answer."""
        try:
            waits = self._program(totals)
        except (FdadpError, ArithmeticError, ValueError) as exc:  # LinAlgError is a ValueError
            raise RefusedMessage(Refusal.MODEL) from exc
        index, state = len(totals), {name: before[name] for name in ("rows", "name")}
        state |= {"index": b"%d" % index, "transcript": transcript, "asked": asked, "totals": _hash_of(totals)}
        if isinstance(waits, NextRound):
            assert waits.share is not None and waits.index == index
            accept(waits.size < signed_messages.LARGEST, Refusal.RELEASE)
            drawn = waits.share.astype("<i8").tobytes()
            key = new_key(asked, transcript, drawn)
            ready = Ready(transcript, public_half(key), waits.size, waits.width, waits.sd, self._program.arrays)
            state["ready"] = self._message(MessageKind.READY, index, ready.to_bytes())
            state |= {"key": key, "drawn": drawn}
        else:
            self.result_ = waits
            state["ready"] = self._message(MessageKind.DONE, index, transcript)
            state["done"] = b""
        if totals:
            self._keep(self._total_name(index - 1), totals[-1].astype("<i8").tobytes())
        self._save(state)
        self._totals = totals
        return state["ready"]

    def _share(self, message: SignedMessage, state: dict[str, bytes]) -> bytes:
        accept("asked" in state and "done" not in state and message.index == self._index, Refusal.ORDER)
        parts = signed_messages.split(message.body, self.contract.owners)
        transcript = state["transcript"]
        readies = signed_messages.ready_transcript(transcript, parts)
        if "share" in state:
            accept(readies == state["readies"], Refusal.ANSWERED)
            return state["share"]
        accept(parts[self.number - 1] == state["ready"], Refusal.TRANSCRIPT)
        said = [Ready.from_bytes(body) for body in self._bodies(parts, MessageKind.READY, message.index)]
        own = said[self.number - 1]
        accept(all(other.transcript == transcript for other in said), Refusal.TRANSCRIPT)
        accept(all(_same_release(other, own) for other in said), Refusal.RELEASE)
        keys = [other.key for other in said]
        check_mask_keys(keys)
        drawn = np.frombuffer(state["drawn"], "<i8").astype(np.int64)
        release = MaskedRelease(self.contract.digest, message.index, readies)
        values = masked(drawn, state["key"], self.number, keys, release)
        share = self._message(
            MessageKind.SHARE, message.index, signed_messages.Share(transcript, readies, values).to_bytes()
        )
        kept = {name: value for name, value in state.items() if name not in ("key", "drawn")}
        self._save({**kept, "readies": readies, "share": share})
        return share

    def _bodies(self, parts: list[bytes], kind: MessageKind, index: int) -> list[bytes]:
        """The bodies of all owners' messages, checked; raises RefusedMessage."""
        return [signed_messages.body_of(part, self.contract, kind, i, index) for i, part in enumerate(parts, start=1)]

    def _message(self, kind: MessageKind, index: int, body: bytes) -> bytes:
        plain = SignedMessage(kind, self.number, index, self.contract.digest, body)
        return plain.to_bytes()[: -len(plain.signature)] + self._signer.sign(plain.signed)

    @property
    def _index(self) -> int:
        """The release that this owner was asked for last; 0 before the first."""
        return 0 if self._state is None else int(self._state.get("index", b"0"))

    @property
    def _known(self) -> bool:
        """Whether the contract stands in the list of those that this owner ever agreed to."""
        answered = self._folder.read(_ANSWERED) or b""
        digests = [answered[at : at + 32] for at in range(0, len(answered), 32)]
        return self.contract.digest in digests

    @property
    def _expired(self) -> bool:
        last = self.contract.expires
        return last is not None and datetime.now(UTC).date() >= date.fromisoformat(last)

    def _total_name(self, index: int) -> str:
        return f"{self._name}.total-{index}"

    def _read_total(self, index: int) -> IntArray:
        kept = self._folder.read(self._total_name(index))
        if kept is None or len(kept) % 8:
            raise PrivacyError(f"folder must hold all that this owner kept, and lacks total {index}")
        return np.frombuffer(kept, "<i8").astype(np.int64)

    def _save(self, state: dict[str, bytes]) -> None:
        self._keep(f"{self._name}.state", json.dumps({name: value.hex() for name, value in state.items()}).encode())
        self._state = state

    def _keep(self, name: str, data: bytes) -> None:
        try:
            self._folder.write(name, data)
        except BaseException:
            self._failed = True  # nobody knows what is on the disk
            raise

    def _check_alive(self) -> None:
        if self._failed:
            raise ProtocolError("this owner must be able to keep what it answers, could not, and has ended")

    def __repr__(self) -> str:
        return f"DataOwner({self.number}, model={self.contract.model!r}, run={self.contract.run!r})"


def _same_release(other: Ready, own: Ready) -> bool:
    """Whether another owner's release is this one, with no less noise."""
    same = (other.size, other.width, other.arrays) == (own.size, own.width, own.arrays)
    return same and bool(np.isfinite(other.sd)) and other.sd >= own.sd * _SAME_NOISE


def _state_from_bytes(data: bytes) -> dict[str, bytes]:
    try:
        found = {name: bytes.fromhex(value) for name, value in json.loads(data).items()}
        return {"rows": found.pop("rows"), "name": found.pop("name"), **found}
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as exc:
        raise PrivacyError("folder must hold what this owner wrote, and its state is something else") from exc


def _hash_of(totals: list[IntArray]) -> bytes:
    return signed_messages.hashed(b"totals", *(total.astype("<i8").tobytes() for total in totals))


def _bytes_of_array(array: Any) -> bytes:
    values = np.asarray(array)
    head = f"{values.dtype.str}{values.shape};".encode()
    return head + (repr(values.tolist()).encode() if values.dtype.hasobject else values.tobytes())
