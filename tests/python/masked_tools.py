"""Owners of masked sums for tests: programs of given numbers, whole runs, and what an adversary does to them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

pytest.importorskip("cryptography", reason="cryptography is not installed: pip install '.[federated]'")

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from fdadp.federated import Contract
from fdadp.federated.owners import pairwise_masks, signed_messages
from fdadp.federated.owners.data_owner import DataOwner
from fdadp.federated.owners.owner_folder import MemoryKeeper
from fdadp.federated.owners.pairwise_masks import MaskedRelease
from fdadp.federated.owners.signed_messages import MessageKind, Ready, Refusal, Share, SignedMessage
from fdadp.federated.run_contract import Signer
from fdadp.privacy.noise.distributed import NextRound

PCA = {"epsilon": 1.0, "delta": 1e-6, "n_components": 1, "data_norm": 3.0, "n_features": 3}


@cache
def signers(owners: int) -> tuple[Signer, ...]:
    return tuple(Signer.new() for _ in range(owners))


@cache
def terms(owners: int = 3, **changes: Any) -> Contract:
    keys = tuple(signer.public for signer in signers(owners))
    return Contract("pca", PCA, owners, n_max=1000, owner_keys=keys, **{"run": "a test", **changes})


class Numbers:
    """A program whose releases are random numbers: shares of other draws each time it is asked."""

    def __init__(self, seed: int = 0, size: int = 8, releases: int = 2, **said: Any) -> None:
        self.rows, self.arrays = said.pop("rows", b"r" * 32), said.pop("arrays", b"a" * 32)
        self._said = {"width": 40, "sd": 100.0, **said}
        self._rng, self._size, self._releases = np.random.default_rng(seed), size, releases
        self.draws: list[np.ndarray] = []

    def __call__(self, totals: list[np.ndarray]) -> Any:
        if len(totals) == self._releases:
            return "model of " + hashlib.sha256(b"".join(t.tobytes() for t in totals)).hexdigest()
        self.draws.append(self._rng.integers(-(2**20), 2**20, self._size))
        return NextRound(len(totals), self._size, share=self.draws[-1], **self._said)


def owner(number: int, program: Any = None, folder: Any = None, contract: Contract | None = None) -> DataOwner:
    """One owner that verified all keys."""
    contract = terms() if contract is None else contract
    return DataOwner(
        contract,
        number,
        Numbers(number) if program is None else program,
        signer=signers(contract.owners)[number - 1],
        folder=MemoryKeeper() if folder is None else folder,
        verified=contract.owner_keys,
    )


def three(owners: int = 3, **said: Any) -> list[DataOwner]:
    return [owner(i, Numbers(i, **said), contract=terms(owners)) for i in range(1, owners + 1)]


def ask(kind: MessageKind, index: int, parts: Sequence[bytes], contract: Contract | None = None) -> bytes:
    return signed_messages.request(terms() if contract is None else contract, kind, index, parts)


def started(owners: Sequence[DataOwner]) -> tuple[bytes, list[bytes]]:
    """The first request and the readies of all owners."""
    asked = ask(MessageKind.ASK, 0, [o.consent() for o in owners], owners[0].contract)
    return asked, [o.answer(asked) for o in owners]


def signed(number: int, kind: MessageKind, index: int, body: bytes, contract: Contract | None = None) -> bytes:
    """A message as an owner that follows no protocol signs it."""
    contract = terms() if contract is None else contract
    plain = SignedMessage(kind, number, index, contract.digest, body)
    return plain.to_bytes()[:-64] + signers(contract.owners)[number - 1].sign(plain.signed)


def with_ready(readies: Sequence[bytes], number: int, **changes: Any) -> list[bytes]:
    """The readies with another one of an owner."""
    contract = terms(len(readies))
    found = SignedMessage.from_bytes(readies[number - 1])
    said = Ready.from_bytes(found.body)._replace(**changes)
    return [
        signed(number, MessageKind.READY, found.index, said.to_bytes(), contract) if i == number else ready
        for i, ready in enumerate(readies, start=1)
    ]


def refusal_of(answer: bytes) -> Refusal | None:
    found = SignedMessage.from_bytes(answer)
    if found.kind != MessageKind.REFUSAL:
        return None
    (code,) = found.body
    return Refusal(code)


def values_of(answer: bytes) -> np.ndarray:
    found = SignedMessage.from_bytes(answer)
    assert found.kind == MessageKind.SHARE, refusal_of(answer)
    return Share.from_bytes(found.body).values


def unmasked(share: bytes, readies: Sequence[bytes], secrets: dict[int, bytes]) -> np.ndarray:
    """A share without its masks with owners whose secret keys of this release an adversary has."""
    found = SignedMessage.from_bytes(share)
    said = Share.from_bytes(found.body)
    values, i = said.values, found.sender
    release = MaskedRelease(found.digest, found.index, said.readies)
    own = Ready.from_bytes(SignedMessage.from_bytes(readies[i - 1]).body).key
    for j, secret in secrets.items():
        shared = X25519PrivateKey.from_private_bytes(secret).exchange(X25519PublicKey.from_public_bytes(own))
        mask = pairwise_masks.pair_mask(shared, release, min(i, j), max(i, j), len(values))
        values = values - mask if i < j else values + mask
    return values


def p_of_uniform(values: np.ndarray) -> float:
    """Chi-square of all bytes of numbers modulo 2^64, each place of a byte for itself."""
    places = values.astype("<u8").view(np.uint8).reshape(-1, 8)
    expected = len(places) / 256
    found = sum(((np.bincount(places[:, i], minlength=256) - expected) ** 2 / expected).sum() for i in range(8))
    return float(chi2.sf(found, 8 * 255))


def assert_uniform(values: np.ndarray) -> None:
    assert p_of_uniform(values) > 1e-9
