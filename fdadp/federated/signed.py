"""Which owner is which: Ed25519 keys (RFC 8032) that the contract names, for greetings and shares.

A node says who it is. With a key of each owner in the contract it must also sign, with the key that no other node has:
a second node of an owner's name is refused, and one key cannot be two owners. Who adds up must check it (the proxy, and
Flower's server); against a proxy that makes up owners it does not help, see ``docs/theory/federated.md#views``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from fdadp.errors import InputError
from fdadp.federated.wire import ProtocolError
from fdadp.files.regular import bytes_of
from fdadp.privacy.certificate.signature import ed25519_modules, raw_key, secret_key

__all__ = ["SIZE", "Signer", "check_keys", "check_signature", "public_key_of"]

SIZE = 64
"""Bytes of a signature."""
PRIME = 2**255 - 19


class Signer:
    """One owner's secret key.

    Parameters
    ----------
    path : path
        Of a PEM file as ``fdadp study key`` makes it, which nobody but its owner may read.

    Attributes
    ----------
    public : str
        The public half in 64 hexadecimal digits.

    Raises
    ------
    PrivacyError
        Others may read it, or it is no secret key of Ed25519.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        key = secret_key(path)
        self._key, self.public = key, raw_key(key.public_key()).hex()

    def sign(self, data: bytes) -> bytes:
        """Signature of `data`."""
        return bytes(self._key.sign(data))


def public_key_of(path: str | os.PathLike[str]) -> str:
    """A public key's file (PEM) in 64 hexadecimal digits, as contracts have it; raises InputError."""
    serialization, ed25519 = ed25519_modules()
    try:
        key = serialization.load_pem_public_key(bytes_of(path))
    except ValueError:
        key = None
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise InputError(f"owners' keys must be public keys of Ed25519 in PEM, got {path!s}")
    return raw_key(key).hex()


def check_keys(keys: Sequence[str], owners: int) -> None:
    """Refuse keys that are not one of each owner, or of which two are the same; raises InputError."""
    right = all(isinstance(key, str) and re.fullmatch("[0-9a-f]{64}", key) for key in keys)
    # One point has one number below the prime; the last bit of the bytes is its sign.
    if not right or any(int.from_bytes(bytes.fromhex(k), "little") % 2**255 >= PRIME for k in keys):
        raise InputError(f"owner_keys must be Ed25519 public keys in 64 hexadecimal digits each, got {list(keys)!r}")
    if keys and len(keys) != owners:
        raise InputError(f"owner_keys must be one of each of {owners} owners, in their order, got {len(keys)}")
    if len(set(keys)) < len(keys):
        raise InputError("owner_keys must all differ: one key cannot be two owners")


def check_signature(key: str, data: bytes, signature: bytes, name: str) -> None:
    """Refuse what was not signed with a key; raises ProtocolError."""
    _, ed25519 = ed25519_modules()
    from cryptography.exceptions import InvalidSignature

    try:
        ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(signature, data)
    except (InvalidSignature, ValueError) as exc:
        raise ProtocolError(f"message must be signed with the key that the contract names for {name}") from exc
