"""Paillier's cryptosystem, for the published protocol alone, which is **not private**: keys, sums, decryption.

``phe`` makes keys and decrypts, ``gmpy2`` adds.

E(m) = (1 + m n) r^n mod n²; the product of ciphertexts is a ciphertext of the sum.

References
----------
Paillier (1999), doi:10.1007/3-540-48910-X_16.
"""

from __future__ import annotations

import secrets
from typing import Any

from fdadp.errors import InputError


def gmpy2() -> Any:
    """The package, with ``phe`` beside it; raises InputError where one of both is missing."""
    try:
        import gmpy2 as found
        import phe  # noqa: F401
    except ImportError as exc:
        raise InputError("Paillier's cryptosystem needs phe and gmpy2: pip install 'fdadp[published]'") from exc
    return found


class PublicKey:
    """What owners encrypt with, and the proxy adds with.

    Parameters
    ----------
    n : int
        Modulus.
    """

    def __init__(self, n: int) -> None:
        self.n = gmpy2().mpz(n)
        self.square = self.n**2

    def encrypt(self, plaintexts: list[int]) -> list[int]:
        """Ciphertexts of plaintexts in [0, n)."""
        if any(not 0 <= m < self.n for m in plaintexts):
            raise InputError("plaintexts must be from 0 to the modulus")
        return [int((1 + self.n * m) * self._random() % self.square) for m in plaintexts]

    def add(self, vectors: list[list[int]]) -> list[int]:
        """Ciphertexts of the sums of several owners' vectors of equal length, with fresh randomness.

        The fresh factor makes the result independent of the owners' own ones: who decrypts it learns the sum only.
        """
        sums = []
        for column in zip(*vectors, strict=True):
            product = self._random()
            for ciphertext in column:
                product = product * ciphertext % self.square
            sums.append(int(product))
        return sums

    def _random(self) -> Any:
        """A random factor r^n; r is coprime to n but for a chance of 2^-1000, in which case it would factor it."""
        return gmpy2().powmod(secrets.randbelow(int(self.n) - 1) + 1, self.n, self.square)


class SecretKey:
    """What the data user decrypts with."""

    def __init__(self, private: Any) -> None:
        self._private, self.public = private, PublicKey(private.public_key.n)

    def decrypt(self, ciphertexts: list[int]) -> list[int]:
        """Plaintexts in [0, n)."""
        return [int(self._private.raw_decrypt(c)) for c in ciphertexts]

    def __repr__(self) -> str:
        return f"<secret key of {self.public.n.bit_length()} bits>"


def keys(bits: int) -> SecretKey:
    """New keys, from the system's randomness."""
    gmpy2()
    import phe

    return SecretKey(phe.generate_paillier_keypair(n_length=bits)[1])
