"""The contract of a run: what all parties agree on beforehand (model, budget, owners, keys). It is public.

It names an Ed25519 key (RFC 8032) of each owner: what an owner says is signed, so one key cannot be two owners.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from functools import cached_property
from typing import Any

from fdadp._common.argument_checks import flag, is_number, one_of, whole
from fdadp._version import __version__
from fdadp.errors import FdadpError, InputError, PrivacyError
from fdadp.files.regular_files import bytes_of, reading
from fdadp.privacy.certificate.signature import ed25519_modules, raw_key, secret_key

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


class ProtocolError(FdadpError):
    """A message, a key or a contract is not what it should be, or a run cannot go on."""


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
    corrupt : int
        How many owners may tell what noise they added. At least 1: every owner knows its own, and sees the result.
    groups : bool
        Whether owners give the person of each row, as a last array: a person's rows must be with one owner.
    owner_keys : sequence of str, optional
        Ed25519 public keys of the owners, in their order, in 64 hexadecimal digits each: what owners say must be signed
        with them. A run needs them.
    expires : str, optional
        First day, as ``"2027-01-31"`` and in UTC, on which owners answer nothing any more.
    transport : {"service", "flower", "process"}
        By what messages travel: ``fdadp federated owner`` and ``coordinator``, Flower, or :func:`fit_together` in one
        process. Owners take part by no other, and the ledger says what it means.
    pause : float
        Seconds: between machines, answers leave at multiples of it, so that how long an owner computes does not tell
        how many rows it has.
    simulation : bool
        Whether shares may be seeded or seen: then nothing that comes of it is for release, and every ledger says so.
    run : str
        Name of this run, by default a random one: messages of other runs are refused, also with the same terms.

    Attributes
    ----------
    honest : int
        owners - corrupt: so many shares carry all the noise that the budget asks for. The noise of a run has
        owners/honest times that variance.

    Raises
    ------
    InputError, PrivacyError
        The terms contradict each other.

    Examples
    --------
    >>> terms = Contract("pca", {"epsilon": 1.0, "delta": 1e-6, "data_norm": 2.0, "n_features": 4}, 5, n_max=10_000)
    >>> terms.honest
    4
    """

    model: str
    settings: Mapping[str, Any]
    owners: int
    n_max: int
    corrupt: int = 1
    groups: bool = False
    owner_keys: tuple[str, ...] = ()
    expires: str | None = None
    transport: str = "service"
    pause: float = 5.0
    simulation: bool = False
    run: str = field(default_factory=lambda: secrets.token_hex(8))

    def __post_init__(self) -> None:
        for name, least in (("owners", 2), ("n_max", 1), ("corrupt", 1)):
            object.__setattr__(self, name, whole(getattr(self, name), name, least=least))
        for name in ("groups", "simulation"):
            object.__setattr__(self, name, flag(getattr(self, name), name))
        if self.honest < 1:
            raise PrivacyError(
                f"owners must be more than corrupt, {self.corrupt}, or nobody's noise is left, got {self.owners}"
            )
        if not isinstance(self.run, str) or not self.run or not self.run.isprintable():
            raise InputError(f"run must be a name, got {self.run!r}")
        if not isinstance(self.owner_keys, tuple | list):
            raise InputError(f"owner_keys must be a list of the owners' public keys, got {self.owner_keys!r}")
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
        return self.owners - self.corrupt

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the owners."""
        return tuple(f"owner-{i + 1}" for i in range(self.owners))

    def check_final(self) -> None:
        """Refuse a draft; raises ProtocolError."""
        if not self.owner_keys or self.owners >= 2**16:
            raise ProtocolError("the contract must name a key of each owner, of fewer than 65,536")

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
        """Refuse to take part by another transport than the contract's. The ledger names it.

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


def public_keys_in(folder: str | os.PathLike[str]) -> list[str]:
    """The keys of all files of a folder, which holds public keys alone; raises InputError."""
    return [public_key_of(os.path.join(folder, name)) for name in sorted(os.listdir(folder))]


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
