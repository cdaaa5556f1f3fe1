"""The contract of a run: what all parties agree on beforehand (model, budget, owners, key). It is public.

*Signatures* say which owner is which: Ed25519 keys (RFC 8032) that the contract names, for greetings and shares.

A node says who it is. With a key of each owner in the contract it must also sign, with the key that no other node has:
a second node of an owner's name is refused, and one key cannot be two owners. Who adds up must check it (the proxy, and
Flower's server); against a proxy that makes up owners it does not help, see ``docs/theory/federated.md#views``.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from functools import cached_property
from typing import Any

from fdadp._common.argument_checks import flag, is_number, one_of, whole
from fdadp._version import __version__
from fdadp.errors import InputError, PrivacyError
from fdadp.federated.paillier import PublicKey
from fdadp.federated.wire_format import ProtocolError
from fdadp.files.regular_files import bytes_of, reading
from fdadp.privacy.certificate.signature import ed25519_modules, raw_key, secret_key

KEY_BITS = (2048, 3072)
"""Sizes of the Paillier modulus: NIST's 112 and 128 bits of security (SP 800-57)."""
USER = "user"
"""Name of the party that holds the secret key."""
LONGEST_PAUSE = 3600.0
"""Seconds: of a contract's pause."""
TRANSPORTS = {
    "service": "",
    "flower": (
        "Messages travel by Flower: the coordinator's program runs at every owner, where it can read rows and keys. "
        "All this holds against others, and not against the coordinator"
    ),
    "process": (
        "All owners were in one process: whoever ran it could read all rows. All this holds against others, and not "
        "against who ran it"
    ),
}
"""By what messages travel between owners and coordinator, and what the ledger says of it."""


@dataclass(frozen=True)
class Contract:
    """The public terms of one run.

    Parameters
    ----------
    model : str
        A name of :data:`fdadp.federated.federated_models.MODELS`: ``"pca"``, ``"regression"``, ``"linear"``, ...
    settings : mapping
        Parameters of the model, its ``epsilon``, ``delta`` and public bounds among them, as JSON can hold them.
    owners : int
        How many there are, named ``"owner-1"``, ``"owner-2"``, ...
    n_max : int
        Public cap on the number of persons of one owner. Where n is declared and every row is a person, an owner's rows
        beyond the first `n_max` are left out. Elsewhere its sums are limited to what so many persons can give: the
        result is biased for an owner with many more, and as private as before.
    lost : int
        How many owners may fail to deliver a share. Below that the run ends and nothing is decrypted.
    corrupt : int
        How many of those that do deliver may tell what noise they added. At least 1: every owner knows its own, and
        sees the result.
    groups : bool
        Whether owners give the person of each row, as a last array: a person's rows must be with one owner.
    key_bits : {2048, 3072}
        Of the data user's key; any multiple of 8 from 256 in a simulation.
    key : str, optional
        SHA-256 of the data user's public key, where owners encrypt: they do so for this key only. See :meth:`with_key`.
        A contract of masked sums has none.
    owner_keys : sequence of str, optional
        Ed25519 public keys of the owners, in their order, in 64 hexadecimal digits each: what owners say must be signed
        with them. Masked sums need them. Where owners encrypt, a party without is who it says it is, and Flower's
        server does not begin.
    expires : str, optional
        First day, as ``"2027-01-31"`` and in UTC, on which owners of masked sums answer nothing any more.
    transport : {"service", "flower", "process"}
        By what messages travel: ``fdadp federated owner`` and ``coordinator``, Flower, or :func:`fit_together` in one
        process. Owners take part by no other, and the ledger says what it means.
    pause : float
        Seconds: between machines, answers of masked sums leave at multiples of it, so that how long an owner computes
        does not tell how many rows it has.
    simulation : bool
        Whether shares may be seeded or seen: then nothing that comes of it is for release, and every ledger says so.
    run : str
        Name of this run, by default a random one: messages of other runs are refused, also with the same terms.

    Attributes
    ----------
    honest : int
        owners - lost - corrupt: so many shares carry all the noise that the budget asks for. The noise of a run in
        which all deliver has owners/honest times that variance.
    least : int
        owners - lost: with fewer shares nothing is decrypted.

    Raises
    ------
    InputError, PrivacyError
        The terms contradict each other.

    Examples
    --------
    >>> terms = Contract("pca", {"epsilon": 1.0, "delta": 1e-6, "data_norm": 2.0, "n_features": 4}, 5, n_max=10_000)
    >>> terms.honest, terms.least
    (4, 5)
    """

    model: str
    settings: Mapping[str, Any]
    owners: int
    n_max: int
    lost: int = 0
    corrupt: int = 1
    groups: bool = False
    key_bits: int = 3072
    key: str | None = None
    owner_keys: tuple[str, ...] = ()
    expires: str | None = None
    transport: str = "service"
    pause: float = 5.0
    simulation: bool = False
    run: str = field(default_factory=lambda: secrets.token_hex(8))

    def __post_init__(self) -> None:
        for name, least in (("owners", 2), ("n_max", 1), ("lost", 0), ("corrupt", 1)):
            object.__setattr__(self, name, whole(getattr(self, name), name, least=least))
        object.__setattr__(self, "simulation", flag(self.simulation, "simulation"))
        if self.key_bits not in (range(256, 8192, 8) if self.simulation else KEY_BITS):
            raise PrivacyError(
                f"key_bits must be one of {KEY_BITS} (shorter ones can be broken), got {self.key_bits!r}"
            )
        if self.honest < 1:
            raise PrivacyError(
                f"owners must be more than lost + corrupt, {self.lost} + {self.corrupt}, or nobody's noise is left, "
                f"got {self.owners}"
            )
        if not isinstance(self.run, str) or not self.run:
            raise InputError(f"run must be a name, got {self.run!r}")
        if self.key is not None and not (isinstance(self.key, str) and re.fullmatch("[0-9a-f]{64}", self.key)):
            raise InputError(f"key must be a SHA-256 in 64 hexadecimal digits, got {self.key!r}")
        object.__setattr__(self, "owner_keys", tuple(self.owner_keys))
        check_keys(self.owner_keys, self.owners)
        one_of(self.transport, "transport", tuple(TRANSPORTS))
        if not is_number(self.pause) or not 0 <= self.pause <= LONGEST_PAUSE:
            raise InputError(f"pause must be from 0 to {LONGEST_PAUSE:g} seconds, got {self.pause!r}")
        object.__setattr__(self, "pause", float(self.pause))
        if self.expires is not None:
            check_day(self.expires)
        try:
            plain = json.loads(json.dumps(dict(self.settings), allow_nan=False))
        except (TypeError, ValueError) as exc:
            raise InputError(f"settings must be what JSON can hold, got {self.settings!r}") from exc
        object.__setattr__(self, "settings", plain)
        n = plain.get("n")
        if isinstance(n, int | float) and n > self.owners * self.n_max:
            raise InputError(f"n must be at most owners times n_max, {self.owners * self.n_max}, got {n}")
        from fdadp.federated.federated_models import check  # here: the models import what takes long

        check(self)

    @property
    def honest(self) -> int:
        """Number of shares of noise that must stay secret."""
        return self.owners - self.lost - self.corrupt

    @property
    def least(self) -> int:
        """Number of shares below which nothing is decrypted."""
        return self.owners - self.lost

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the owners."""
        return tuple(f"owner-{i + 1}" for i in range(self.owners))

    def key_of(self, name: str) -> str | None:
        """Key with which a party signs; None for the data user, and where the contract names no keys."""
        return dict(zip(self.names, self.owner_keys, strict=False)).get(name)

    def with_key(self, public: PublicKey) -> Contract:
        """Make the terms final: the same contract, with this public key of the data user."""
        return replace(self, key=public.digest)

    def public_key(self, modulus: bytes) -> PublicKey:
        """Check that these bytes are the key of this contract, and a usable one.

        Raises
        ------
        PrivacyError
            Another key, or one that no honest user makes; see :class:`~fdadp.federated.paillier.PublicKey`.
        """
        found = hashlib.sha256(modulus).hexdigest()
        if self.key != found:
            raise PrivacyError(f"the public key must be that of the contract, with SHA-256 {self.key}, got {found}")
        return PublicKey(int.from_bytes(modulus, "big"), self.key_bits)

    def number_of(self, key: str) -> int:
        """The number, from 1, of the owner with this public key.

        Raises
        ------
        ProtocolError
            There is none.
        """
        if key not in self.owner_keys:
            raise ProtocolError("the contract must name this owner's key, and names other ones")
        return self.owner_keys.index(key) + 1

    @property
    def carried(self) -> str:
        """What the transport means for the guarantee, for the ledger."""
        return TRANSPORTS[self.transport]

    def check_transport(self, transport: str) -> None:
        """Refuse to take part by another transport than the contract's, of which its ledger speaks.

        Raises
        ------
        ProtocolError
        """
        if self.transport != transport:
            raise ProtocolError(f"the contract must have transport={transport!r} here, got {self.transport!r}")

    def rest_of_pause(self, elapsed: float) -> float:
        """Seconds that an answer waits which took so many, so that it leaves at a multiple of the pause."""
        return self.pause and self.pause * max(1, math.ceil(elapsed / self.pause)) - elapsed

    def to_json(self) -> str:
        """Canonical text: the same terms give the same bytes. It names the version of fdadp, which must agree too."""
        return json.dumps({**asdict(self), "fdadp": __version__}, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Contract:
        """Read what :meth:`to_json` wrote.

        Raises
        ------
        InputError
            No contract, or that of another version of fdadp.
        """
        with reading("a contract", text):
            fields = dict(json.loads(text))
            version = fields.pop("fdadp")
            contract = cls(**fields)
        if version != __version__:
            raise InputError(f"the contract must be of this version of fdadp, {__version__}, got {version}")
        return contract

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the canonical text and of the model's public coordinates as this party computes them, 32 bytes."""
        from fdadp.federated.federated_models import fingerprint

        return hashlib.sha256(self.to_json().encode() + fingerprint(self)).digest()


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
        self._set(secret_key(path))

    @classmethod
    def new(cls) -> Signer:
        """A fresh key that is nowhere else, for owners who live and die in one process."""
        _, ed25519 = ed25519_modules()
        made = cls.__new__(cls)
        made._set(ed25519.Ed25519PrivateKey.generate())
        return made

    def _set(self, key: Any) -> None:
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


def check_day(day: Any) -> None:
    """Refuse what is no day as ``"2027-01-31"``; raises InputError."""
    try:
        right = date.fromisoformat(day).isoformat() == day
    except (TypeError, ValueError):
        right = False
    if not right:
        raise InputError(f"expires must be a day as '2027-01-31', got {day!r}")


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
