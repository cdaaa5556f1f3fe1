"""Signatures of certificates: Ed25519 (RFC 8032), by the package ``cryptography`` (the extra ``signatures``).

Who can write a study's file can rewrite all of it, hashes too. A certificate that was signed with a key which that
person does not have names the last entry, which stands for all before it: a study that was rewritten, or put back, does
not have it. What is signed is the whole certificate as JSON (sorted, ASCII, without the signature).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fdadp.errors import InputError, PrivacyError
from fdadp.files.atomic_writes import PUBLIC, SECRET, replacing
from fdadp.files.regular_files import bytes_of


def new_keys(path: str | os.PathLike[str], password: str | None = None) -> tuple[Path, Path]:
    """Make a pair of keys: PEM files at `path` (to be kept secret, mode 0600) and `path`.pub; returns both.

    Parameters
    ----------
    path : path
        Of a file that is not there yet.
    password : str, optional
        With which the secret one is encrypted.

    Raises
    ------
    PrivacyError
        Something is there already: a lost key cannot be made again.
    InputError
        ``cryptography`` is not installed.
    """
    serialization, ed25519 = ed25519_modules()
    secret, public = Path(path), Path(f"{os.fspath(path)}.pub")
    for target in (secret, public):
        if target.exists():
            raise PrivacyError(f"path must name no file yet, got {str(target)!r}, which is there")
    key = ed25519.Ed25519PrivateKey.generate()
    locked = (
        serialization.NoEncryption()
        if password is None
        else serialization.BestAvailableEncryption(password.encode("utf-8"))
    )
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    with replacing(secret, SECRET) as stream:
        stream.write(key.private_bytes(pem, pkcs8, locked))
    with replacing(public, PUBLIC) as stream:
        stream.write(key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
    return secret, public


def sign(what: Mapping[str, Any], key: str | os.PathLike[str], password: str | None = None) -> dict[str, str]:
    """Sign the plain data of a certificate; returns the public key and the signature in hexadecimal digits.

    Raises
    ------
    PrivacyError
        `key` is no secret key of Ed25519, others than its owner may read it, or the password is wrong.
    InputError
        ``cryptography`` is not installed.
    """
    found = secret_key(key, password)
    return _shown(raw_key(found.public_key()), found.sign(_text(what)))


def wrong_signature(what: Mapping[str, Any], key: str | os.PathLike[str] | None = None) -> str:
    """What is wrong with the signature of a certificate's plain data, in words; empty where nothing is.

    Parameters
    ----------
    what : mapping
    key : path, optional
        PEM file of the public key that it must be signed with. Without one a signature only says that nobody changed
        the certificate who does not have the key that is written in it; one without a signature is then let pass.
    """
    given = what.get("signature")
    if given is None:
        return "" if key is None else "the certificate is not signed"
    serialization, ed25519 = ed25519_modules()
    from cryptography.exceptions import InvalidSignature

    try:
        public = ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(given["public key"]))
        signed = bytes.fromhex(given["signature"])
        public.verify(signed, _text(what))
        if given != _shown(raw_key(public), signed):  # another spelling of the same
            raise InvalidSignature
    except (InvalidSignature, ValueError, TypeError, KeyError):
        return "the signature is not of this certificate: one of them was changed"
    if key is None:
        return ""
    try:
        wanted = serialization.load_pem_public_key(bytes_of(key))
    except ValueError as exc:
        raise PrivacyError(f"key must be a public key in PEM, got {key!s}") from exc
    same = isinstance(wanted, ed25519.Ed25519PublicKey) and raw_key(wanted) == raw_key(public)
    return "" if same else "the certificate was signed with another key"


def _shown(public: bytes, signature: bytes) -> dict[str, str]:
    return {"algorithm": "Ed25519", "public key": public.hex(), "signature": signature.hex()}


def _text(what: Mapping[str, Any]) -> bytes:
    """What is signed."""
    plain = json.loads(json.dumps({k: v for k, v in what.items() if k != "signature"}))
    return json.dumps(plain, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def secret_key(path: str | os.PathLike[str], password: str | None = None) -> Any:
    """Read an Ed25519 secret key in PEM that its owner alone may read; raises PrivacyError."""
    serialization, ed25519 = ed25519_modules()
    secret = None if password is None else password.encode("utf-8")
    try:
        found = serialization.load_pem_private_key(bytes_of(path), secret)
    except (ValueError, TypeError) as exc:
        raise PrivacyError(f"key must be a secret key in PEM, with its password if it has one, got {path!s}") from exc
    if not isinstance(found, ed25519.Ed25519PrivateKey):
        raise PrivacyError(f"key must be one of Ed25519, got {type(found).__name__}")
    if os.name == "posix" and os.stat(path).st_mode & 0o077:
        raise PrivacyError(f"key must be a file that its owner alone may read, got {path!s}: chmod 600 {path!s}")
    return found


def raw_key(public: Any) -> bytes:
    """The 32 bytes of a public key."""
    serialization, _ = ed25519_modules()
    return bytes(public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw))


def ed25519_modules() -> tuple[Any, Any]:
    """The modules ``serialization`` and ``ed25519`` of cryptography; raises InputError where it is not installed."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as exc:
        raise InputError("signatures need the package cryptography: pip install 'fdadp[signatures]'") from exc
    return serialization, ed25519
