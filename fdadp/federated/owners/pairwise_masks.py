"""Masks of one release: what two owners compute from fresh keys, one adds, the other takes away, and nobody else knows.

X25519 (RFC 7748) of two owners' keys, HKDF-SHA256 (RFC 5869) for the key of a ChaCha20 stream (RFC 8439), which is read
as numbers modulo 2^64: Bonawitz et al. (2017), doi:10.1145/3133956.3133982, for owners who sign what they send. All of
it is the package ``cryptography``'s; ours is the sum.

The HKDF's salt is the digest of the contract. Its info holds the release, both owners and R_k. None of that may be left
out: see ``docs/theory/federated.md#masks``.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from fdadp._common.typing import IntArray
from fdadp.federated.owners.signed_messages import Refusal, RefusedMessage, accept, hashed

_LABEL = b"fdadp mask v1\0"
_PRIME = 2**255 - 19

Residues = np.ndarray[tuple[int], np.dtype[np.uint64]]
"""Numbers modulo 2^64."""


class MaskedRelease(NamedTuple):
    """What the masks of a release are bound to: digest of the contract, k, and R_k."""

    digest: bytes
    k: int
    readies: bytes


def new_key(*bound: bytes) -> bytes:
    """A fresh secret key of X25519, 32 bytes: a hash of random bytes and of all that it must not outlive.

    Where a restored machine's generator repeats itself, the same key still means the same `bound`.
    """
    return hashed(b"key", os.urandom(32), *bound)


def public_half(key: bytes) -> bytes:
    """The public key of a secret one, 32 bytes."""
    return bytes(X25519PrivateKey.from_private_bytes(key).public_key().public_bytes_raw())


def check_mask_keys(keys: Sequence[bytes]) -> None:
    """Refuse keys of which two are the same, or that are another spelling of a number; raises RefusedMessage.

    X25519 ignores the last bit, and takes numbers modulo the prime.
    """
    accept(all(int.from_bytes(key, "little") < _PRIME for key in keys), Refusal.KEY)
    accept(len(set(keys)) == len(keys), Refusal.KEY)


def pair_mask(shared: bytes, release: MaskedRelease, low: int, high: int, size: int) -> Residues:
    """The mask of owners `low` < `high`.

    Parameters
    ----------
    shared : bytes
        X25519 of their keys for this release.
    release : MaskedRelease
    low, high : int
    size : int
        How many numbers.

    Returns
    -------
    ndarray of uint64, shape (size,)
    """
    info = _LABEL + struct.pack(">IHH", release.k, low, high) + release.readies
    key = HKDF(hashes.SHA256(), 32, salt=release.digest, info=info).derive(shared)
    stream = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor().update(bytes(8 * size))
    return np.frombuffer(stream, "<u8")


def masked(share: IntArray, key: bytes, number: int, keys: Sequence[bytes], release: MaskedRelease) -> Residues:
    """An owner's share plus its masks with owners of higher numbers, less those with owners of lower ones.

    Parameters
    ----------
    share : ndarray of int64, shape (d,)
    key : bytes
        This owner's secret key for this release.
    number : int
        This owner's, from 1.
    keys : sequence of bytes
        All owners' public keys for this release, in order.
    release : MaskedRelease

    Returns
    -------
    ndarray of uint64, shape (d,)
        Modulo 2^64.

    Raises
    ------
    RefusedMessage
        A key of low order: what is shared with it is no secret.
    """
    own = X25519PrivateKey.from_private_bytes(key)
    total = share.astype(np.int64).view(np.uint64)
    for other, public in enumerate(keys, start=1):
        if other == number:
            continue
        try:
            shared = own.exchange(X25519PublicKey.from_public_bytes(public))
        except ValueError as exc:
            raise RefusedMessage(Refusal.KEY) from exc
        mask = pair_mask(shared, release, min(number, other), max(number, other), len(share))
        total = total + mask if number < other else total - mask
    return total
