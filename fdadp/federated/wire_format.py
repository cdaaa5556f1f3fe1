"""The bytes that parties exchange.

======== ===== =======================================================================================
offset   bytes field (integers are big-endian)
======== ===== =======================================================================================
0        4     ``FDAF``
4        1     version of this format, 2
5        1     kind of message
6        2     bits of the key
8        4     number of the release it belongs to, from 0
12       1     length of the sender's name, then the name (ASCII)
..       32    SHA-256 of the contract, which names the public key
..       4     length of the body, then the body
..       32    SHA-256 of all the above
======== ===== =======================================================================================

============ =========================== ===============================================================
kind         from, to                    body
============ =========================== ===============================================================
ask key      proxy → user                nothing
key          user → proxy                modulus; size and width of the next release; totals so far
ask          proxy → owners              modulus; totals so far
share        owner → proxy               ciphertexts of its noisy share
ask total    proxy → user                number of shares; ciphertexts of their sum
total        user → proxy                number of shares; the totals; size and width of the next release
done         owner → proxy               nothing: it has seen all totals and has the model
refusal      any → proxy                 a reason in words, which depends on public things only
============ =========================== ===============================================================

The last hash finds damage; it is no signature. Who may connect, and that nobody listens, is the transport's part (TLS
and node authentication of the engine).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fdadp._common.typing import IntArray
from fdadp.errors import FdadpError

_MAGIC = b"FDAF"
_VERSION = 2
_HASH = 32
_HEAD = struct.Struct(">4sBBHIB")
_U32 = struct.Struct(">I")
_TOTAL = struct.Struct(">II")
_NEXT = struct.Struct(">IB")


class ProtocolError(FdadpError):
    """A message is not what it should be, or too few owners delivered; nothing was decrypted."""


class Kind:
    """Kinds of messages."""

    ASK_KEY, KEY, ASK, SHARE, ASK_TOTAL, TOTAL, DONE, REFUSAL = range(1, 9)


@dataclass(frozen=True)
class Message:
    """One message; ``to_bytes`` and ``from_bytes`` are inverse to each other."""

    kind: int
    bits: int
    index: int
    sender: str
    digest: bytes
    body: bytes = b""

    def to_bytes(self) -> bytes:
        """Bytes for the wire."""
        name = self.sender.encode("ascii")
        head = _HEAD.pack(_MAGIC, _VERSION, self.kind, self.bits, self.index, len(name))
        content = head + name + self.digest + _U32.pack(len(self.body)) + self.body
        return content + hashlib.sha256(content).digest()

    @classmethod
    def from_bytes(cls, data: bytes) -> Message:
        """Read a message.

        Raises
        ------
        ProtocolError
            It is damaged, cut off, or of another format.
        """
        content, check = data[:-_HASH], data[-_HASH:]
        if len(data) < _HEAD.size + 2 * _HASH + _U32.size or hashlib.sha256(content).digest() != check:
            raise ProtocolError("message is damaged or no message: its hash does not fit")
        magic, version, kind, bits, index, length = _HEAD.unpack_from(content)
        at = _HEAD.size + length
        if magic != _MAGIC or version != _VERSION or len(content) < at + _HASH + _U32.size:
            raise ProtocolError(f"message must begin with {_MAGIC!r} and version {_VERSION}")
        (size,) = _U32.unpack_from(content, at + _HASH)
        start = at + _HASH + _U32.size
        if len(content) != start + size or not content[_HEAD.size : at].isascii():
            raise ProtocolError("message must be as long as it says")
        sender = content[_HEAD.size : at].decode("ascii")
        return cls(kind, bits, index, sender, content[at : at + _HASH], content[start:])


@dataclass(frozen=True)
class Next:
    """Size and width of the next release; size 0: there is none."""

    size: int
    width: int

    def to_bytes(self) -> bytes:
        """Five bytes."""
        return _NEXT.pack(self.size, self.width)

    @classmethod
    def first_of(cls, data: bytes) -> tuple[Next, bytes]:
        """Read them from the front of a message's body; return the rest of it, too."""
        if len(data) < _NEXT.size:
            raise ProtocolError(f"size and width must be {_NEXT.size} bytes, got {len(data)}")
        return cls(*_NEXT.unpack_from(data)), data[_NEXT.size :]


class Totals:
    """Released totals, each with the number of shares in it, as bytes."""

    @staticmethod
    def one_to_bytes(values: IntArray, shares: int) -> bytes:
        """Number of values, number of shares, values."""
        return _TOTAL.pack(len(values), shares) + values.astype(">i8").tobytes()

    @staticmethod
    def to_bytes(totals: Sequence[tuple[IntArray, int]]) -> bytes:
        """All, one after the other."""
        return b"".join(Totals.one_to_bytes(values, shares) for values, shares in totals)

    @staticmethod
    def from_bytes(data: bytes) -> list[tuple[IntArray, int]]:
        """Read them."""
        out, at = [], 0
        while at < len(data):
            start = at + _TOTAL.size
            size, shares = _TOTAL.unpack_from(data, at) if start <= len(data) else (len(data), 0)
            at = start + 8 * size
            if at > len(data):
                raise ProtocolError("totals must be as long as they say")
            out.append((np.frombuffer(data, ">i8", size, start).astype(np.int64), int(shares)))
        return out


def with_count(shares: int, body: bytes) -> bytes:
    """Put the number of shares before a body of bytes."""
    return _U32.pack(shares) + body


def counted(data: bytes) -> tuple[int, bytes]:
    """Read what :func:`with_count` wrote: the number of shares, and the body."""
    if len(data) < _U32.size:
        raise ProtocolError("a sum must begin with the number of its shares")
    return int(_U32.unpack_from(data)[0]), data[_U32.size :]


def ciphertexts_to_bytes(values: Sequence[int], size: int) -> bytes:
    """Ciphertexts of `size` bytes each."""
    return b"".join(int(c).to_bytes(size, "big") for c in values)


def ciphertexts_from_bytes(data: bytes, size: int) -> list[int]:
    """Read them."""
    if len(data) % size:
        raise ProtocolError(f"ciphertexts must be of {size} bytes each, got {len(data)} bytes")
    return [int.from_bytes(data[i : i + size], "big") for i in range(0, len(data), size)]
