"""Messages between owners, bytes of a fixed layout that their sender signs, and the coordinator, who forwards them.

======== ===== =======================================================================================
offset   bytes field (integers are big-endian)
======== ===== =======================================================================================
0        4     ``FDAO``
4        1     version of this format, 1
5        1     kind of message
6        2     sender: 0 is the coordinator, i = 1 ... L an owner
8        4     number k of the release it belongs to, from 0
12       32    digest of the contract
44       4     length of the body, then the body
..       64    Ed25519 signature of ``fdadp owners v1``, a zero byte and all the above; the coordinator's is zeros
======== ===== =======================================================================================

========= =========== ==========================================================================================
kind      from        body
========= =========== ==========================================================================================
consent   owner       nothing
ask k     coordinator the L shares of k - 1 whole, in order; for k = 0 the L consents
ready k   owner       T_k 32, fresh X25519 key 32, size u32, width u8, sd of the share f64, SHA-256 of public arrays 32
go k      coordinator the L readies whole, in order
share k   owner       T_k 32, R_k 32, the masked share as size numbers of u64
done      owner       T_K 32
refusal   owner       a code u8 of :class:`Refusal`: no words, so nothing of its rows
poll      owner       a count u64 that rises: what is asked of it now? (k = 0)
========= =========== ==========================================================================================

T_k stands for all that was said before release k, R_k for the readies of release k (:func:`first_transcript`,
:func:`ready_transcript`, :func:`next_transcript`). Nothing here is secret.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from fdadp._common.typing import IntArray
from fdadp.federated.run_contract import Contract, ProtocolError

_MAGIC, _VERSION, _COORDINATOR, _HASH = b"FDAO", 1, 0, 32
_HEAD = struct.Struct(">4sBBHI32sI")
_SIGNATURE = 64
_READY = struct.Struct(">32s32sIBd32s")
_SIGNED = b"fdadp owners v1\0"
_PLAIN = _HEAD.size + _SIGNATURE
_COUNT = struct.Struct(">Q")
LARGEST = 2**28
"""Numbers of a release: fewer than these."""


class MessageKind(IntEnum):
    """Kinds of messages."""

    CONSENT, ASK, READY, GO, SHARE, DONE, REFUSAL, POLL = range(1, 9)


class Refusal(IntEnum):
    """Why an owner does not answer a message."""

    FORM = 1
    CONTRACT = 2
    SENDER = 3
    ORDER = 4
    SIGNATURE = 5
    ANSWERED = 6
    TRANSCRIPT = 7
    RELEASE = 8
    KEY = 9
    TOTAL = 10
    MODEL = 11
    EXPIRED = 12


FINAL = frozenset({Refusal.TOTAL, Refusal.MODEL, Refusal.EXPIRED})
"""Refusals after which an owner answers nothing more."""

_MEANING = {
    Refusal.FORM: "it has not the form of a message of this kind",
    Refusal.CONTRACT: "it belongs to another contract",
    Refusal.SENDER: "it is of another sender than it should be",
    Refusal.ORDER: "it is not its turn",
    Refusal.SIGNATURE: "it is not signed with the key that the contract names",
    Refusal.ANSWERED: "another message in its place was answered already",
    Refusal.TRANSCRIPT: "it does not follow from what was said before",
    Refusal.RELEASE: "owners differ in size, width, public arrays or noise of the release",
    Refusal.KEY: "a key is no usable key of X25519, or stands there twice",
    Refusal.TOTAL: "a total is outside of its width: the run has ended",
    Refusal.MODEL: "the model cannot be computed from the totals",
    Refusal.EXPIRED: "the contract has expired",
}


class RefusedMessage(ProtocolError):
    """A message that is not answered.

    Attributes
    ----------
    code : Refusal
    """

    def __init__(self, code: Refusal) -> None:
        super().__init__(f"message is refused: {_MEANING[code]}")
        self.code = code


def meaning_of(body: bytes) -> str:
    """A refusal's code in words."""
    return {bytes([code]): words for code, words in _MEANING.items()}.get(body, "for no reason of the list")


def accept(right: bool, code: Refusal) -> None:
    """Raise RefusedMessage with this code unless `right`."""
    if not right:
        raise RefusedMessage(code)


@dataclass(frozen=True)
class SignedMessage:
    """One message; ``to_bytes`` and ``from_bytes`` are inverse to each other."""

    kind: int
    sender: int
    index: int
    digest: bytes
    body: bytes = b""
    signature: bytes = bytes(_SIGNATURE)

    @property
    def signed(self) -> bytes:
        """What the signature is of."""
        return _SIGNED + self.to_bytes()[:-_SIGNATURE]

    def to_bytes(self) -> bytes:
        """Bytes for the wire."""
        head = _HEAD.pack(_MAGIC, _VERSION, self.kind, self.sender, self.index, self.digest, len(self.body))
        return head + self.body + self.signature

    @classmethod
    def from_bytes(cls, data: bytes) -> SignedMessage:
        """Read a message that is as long as it says.

        Raises
        ------
        RefusedMessage
        """
        accept(len(data) >= _PLAIN, Refusal.FORM)
        magic, version, kind, sender, index, digest, length = _HEAD.unpack_from(data)
        right = magic == _MAGIC and version == _VERSION and len(data) == _HEAD.size + length + _SIGNATURE
        accept(right, Refusal.FORM)
        body, signature = data[_HEAD.size : -_SIGNATURE], data[-_SIGNATURE:]
        return cls(kind, sender, index, digest, body, signature)


def request(contract: Contract, kind: MessageKind, index: int, answers: Sequence[bytes]) -> bytes:
    """The coordinator's message: answers of all owners, forwarded."""
    return SignedMessage(kind, _COORDINATOR, index, contract.digest, b"".join(answers)).to_bytes()


def check_request(message: SignedMessage, contract: Contract) -> None:
    """Refuse what is no coordinator's message under this contract; raises RefusedMessage."""
    accept(message.digest == contract.digest, Refusal.CONTRACT)
    accept(message.sender == _COORDINATOR and message.signature == bytes(_SIGNATURE), Refusal.SENDER)
    accept(message.kind in (MessageKind.ASK, MessageKind.GO), Refusal.FORM)


def split(body: bytes, owners: int) -> list[bytes]:
    """The messages of all owners that a coordinator's message holds, one after the other; raises RefusedMessage."""
    found, at = [], 0
    for _ in range(owners):
        accept(len(body) >= at + _HEAD.size, Refusal.FORM)
        *_, length = _HEAD.unpack_from(body, at)
        end = at + _HEAD.size + length + _SIGNATURE
        found.append(body[at:end])
        at = end
    accept(at == len(body), Refusal.FORM)
    return found


def body_of(data: bytes, contract: Contract, kind: MessageKind, sender: int, index: int) -> bytes:
    """The body of an owner's message, once contract, kind, sender, index and signature are as they should be.

    Raises
    ------
    RefusedMessage
    """
    message = SignedMessage.from_bytes(data)
    accept(message.digest == contract.digest, Refusal.CONTRACT)
    accept(message.sender == sender, Refusal.SENDER)
    accept((message.kind, message.index) == (kind, index), Refusal.ORDER)
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(contract.owner_keys[sender - 1]))
        key.verify(message.signature, message.signed)
    except (InvalidSignature, ValueError) as exc:
        raise RefusedMessage(Refusal.SIGNATURE) from exc
    return message.body


def count_of(data: bytes, contract: Contract, sender: int) -> int:
    """The count of an owner's poll; raises RefusedMessage."""
    body = body_of(data, contract, MessageKind.POLL, sender, 0)
    accept(len(body) == _COUNT.size, Refusal.FORM)
    return int(_COUNT.unpack(body)[0])


def longest_answer(size: int) -> int:
    """Bytes of the longest message of an owner where shares have so many numbers."""
    return max(_PLAIN + _READY.size, _PLAIN + 2 * _HASH + 8 * size)


def longest_request(contract: Contract, size: int) -> int:
    """Bytes of the longest message of a coordinator where shares have so many numbers."""
    return _PLAIN + contract.owners * longest_answer(size)


class Ready(NamedTuple):
    """What an owner says before a release: see the table of the module."""

    transcript: bytes
    key: bytes
    size: int
    width: int
    sd: float
    arrays: bytes

    def to_bytes(self) -> bytes:
        """Body of the message."""
        return _READY.pack(*self)

    @classmethod
    def from_bytes(cls, body: bytes) -> Ready:
        """Read it; raises RefusedMessage."""
        accept(len(body) == _READY.size, Refusal.FORM)
        return cls(*_READY.unpack(body))


class Share(NamedTuple):
    """An owner's masked share, and what it was made for."""

    transcript: bytes
    readies: bytes
    values: np.ndarray[tuple[int], np.dtype[np.uint64]]

    def to_bytes(self) -> bytes:
        """Body of the message."""
        return self.transcript + self.readies + self.values.astype(">u8").tobytes()

    @classmethod
    def from_bytes(cls, body: bytes, size: int | None = None) -> Share:
        """Read it, with so many numbers; raises RefusedMessage."""
        numbers, rest = divmod(len(body) - 2 * _HASH, 8)
        accept(numbers >= 0 and rest == 0 and size in (None, numbers), Refusal.FORM)
        values = np.frombuffer(body, ">u8", numbers, 2 * _HASH).astype(np.uint64)
        return cls(body[:_HASH], body[_HASH : 2 * _HASH], values)


def total_of(shares: Sequence[Share]) -> IntArray:
    """The sum of all owners' shares, in which the masks cancel: modulo 2^64, read as int64 (d,)."""
    total = np.zeros(len(shares[0].values), dtype=np.uint64)
    for share in shares:
        total = total + share.values
    return total.view(np.int64)


def hashed(label: bytes, *parts: bytes) -> bytes:
    """SHA-256 of the parts, each with its length, 32 bytes."""
    state = hashlib.sha256()
    for part in (label, *parts):
        state.update(len(part).to_bytes(8, "big") + part)
    return state.digest()


def first_transcript(contract: Contract, consents: Sequence[bytes]) -> bytes:
    """T_0, of the contract and all owners' consents, 32 bytes."""
    return hashed(b"T", contract.digest, *consents)


def ready_transcript(transcript: bytes, readies: Sequence[bytes]) -> bytes:
    """R_k, of T_k and all owners' readies, 32 bytes."""
    return hashed(b"R", transcript, *readies)


def next_transcript(transcript: bytes, readies: bytes, shares: Sequence[bytes]) -> bytes:
    """T_(k+1), of T_k, R_k and the SHA-256 of all owners' shares, 32 bytes."""
    return hashed(b"T", transcript, readies, *(hashlib.sha256(share).digest() for share in shares))
