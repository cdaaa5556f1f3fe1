"""Sums of ciphertexts of the published protocol are exact, and hide the owners' own randomness."""

from __future__ import annotations

import sys

import numpy as np
import pytest

pytest.importorskip("phe", reason="phe and gmpy2 are not installed: pip install '.[published]'")
pytest.importorskip("gmpy2", reason="phe and gmpy2 are not installed: pip install '.[published]'")

from fdadp.errors import InputError
from fdadp.published.paillier import SecretKey, keys


@pytest.fixture(scope="module")
def key() -> SecretKey:
    return keys(512)


def test_decrypted_sums_are_exact(key: SecretKey) -> None:
    n = int(key.public.n)
    rng = np.random.default_rng(0)
    shares = [[int(v) % n for v in rng.integers(-(2**61), 2**61, 20)] + [0, 1, n - 1] for _ in range(3)]
    summed = key.public.add([key.public.encrypt(share) for share in shares])
    assert key.decrypt(summed) == [sum(column) % n for column in zip(*shares, strict=True)]


def test_ciphertexts_and_sums_are_random(key: SecretKey) -> None:
    a, b = key.public.encrypt([7, 7])
    assert a != b
    product = a * b % int(key.public.square)
    sums = {key.public.add([[a], [b]])[0] for _ in range(3)}
    assert len(sums) == 3 and product not in sums
    assert key.decrypt([*sums, product]) == [14] * 4


def test_plaintexts_and_packages_are_checked(key: SecretKey, monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in (-1, int(key.public.n)):
        with pytest.raises(InputError, match="plaintexts must be from 0 to the modulus"):
            key.public.encrypt([wrong])
    assert repr(key) == "<secret key of 512 bits>"
    monkeypatch.setitem(sys.modules, "phe", None)
    with pytest.raises(InputError, match=r"pip install 'fdadp\[published\]'"):
        keys(512)
