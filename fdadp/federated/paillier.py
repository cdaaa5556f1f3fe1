"""Paillier's cryptosystem: keys and decryption from ``phe``, sums and randomness on ``gmpy2``.

E(m) = (1 + m n) r^n mod n²; the product of ciphertexts is a ciphertext of the sum. What costs time is r^n (some 12 ms
for 2048 bits, a thousand times the rest): it does not depend on m, so owners may compute it before their data are there
(:class:`Randomness`).

References
----------
Paillier (1999), doi:10.1007/3-540-48910-X_16.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from fdadp._common.typing import IntArray
from fdadp.errors import InputError, PrivacyError

_LONG_JOB = 400
"""Powers below which starting other processes takes longer than they save."""
_SMALL = 2**16
"""Factors of a modulus below this are looked for."""


def _gmpy2() -> Any:
    try:
        import gmpy2
        import phe  # noqa: F401
    except ImportError as exc:
        raise InputError("encryption needs phe and gmpy2: pip install phe gmpy2") from exc
    return gmpy2


class PublicKey:
    """What owners encrypt with, and the proxy adds with.

    Parameters
    ----------
    n : int
        Modulus.
    bits : int
        Its declared size.

    Raises
    ------
    PrivacyError
        The modulus is not of this size, or anyone can see that it is no product of two large primes.
    """

    def __init__(self, n: int, bits: int) -> None:
        if n.bit_length() != bits or n % 2 == 0:
            raise PrivacyError(f"the public key must be an odd number of {bits} bits, got one of {n.bit_length()} bits")
        weakness = _weakness(n)
        if weakness:
            raise PrivacyError(f"the public key must be a product of two large primes, got {weakness}")
        g = _gmpy2()
        self.n, self.square, self.bits = g.mpz(n), g.mpz(n) ** 2, bits

    @property
    def modulus(self) -> bytes:
        """The key as it is sent: big-endian, of bits/8 bytes."""
        return int(self.n).to_bytes(self.bits // 8, "big")

    @property
    def digest(self) -> str:
        """SHA-256 of :attr:`modulus` in hexadecimal: what a contract names the key by."""
        return hashlib.sha256(self.modulus).hexdigest()

    @property
    def size(self) -> int:
        """Bytes of a ciphertext."""
        return 2 * self.bits // 8

    def encrypt(self, plaintexts: Sequence[int], randomness: Randomness) -> list[int]:
        """Ciphertexts of plaintexts in [0, n), with as many fresh random factors."""
        g = _gmpy2()
        if any(not 0 <= m < self.n for m in plaintexts):
            raise InputError("plaintexts must be from 0 to the modulus")
        factors = randomness.take(len(plaintexts))
        return [int((1 + self.n * g.mpz(m)) * r % self.square) for m, r in zip(plaintexts, factors, strict=True)]

    def valid(self, ciphertext: int) -> bool:
        """Whether this is an invertible residue modulo n²: all that can be told without the secret key."""
        return 0 < ciphertext < self.square and int(_gmpy2().gcd(ciphertext, self.n)) == 1


@lru_cache(maxsize=8)
def _weakness(n: int) -> str | None:
    """Say what is wrong with a modulus as far as can be seen without its factors; None if nothing.

    That it has two factors, and no more, cannot be seen.
    """
    g = _gmpy2()
    if g.is_prime(n):
        return "a prime"
    if g.is_power(n):
        return "a power"
    factor = g.gcd(n, g.primorial(_SMALL))
    return f"one with the factor {factor}" if factor > 1 else None


class Randomness:
    """Random factors r^n of one key, computed before they are needed, each used once.

    Parameters
    ----------
    key : PublicKey
    n_jobs : int
        Processes for many of them.

    Attributes
    ----------
    left : int
        Number of factors that are ready.
    """

    def __init__(self, key: PublicKey, n_jobs: int = 1) -> None:
        self._key, self._n_jobs = key, n_jobs
        self._pool: list[Any] = []

    @property
    def left(self) -> int:
        """Number of factors that are ready."""
        return len(self._pool)

    def prepare(self, count: int) -> Randomness:
        """Compute factors until at least `count` are ready."""
        missing = count - self.left
        if missing > 0:
            self._pool += _parts(_powers, range(missing), 100, self._n_jobs, int(self._key.n))
        return self

    def take(self, count: int) -> list[Any]:
        """Take `count` factors, each of which is used once."""
        self.prepare(count)
        taken, self._pool = self._pool[:count], self._pool[count:]
        return taken


def _powers(places: Sequence[int], n: int) -> list[Any]:
    g = _gmpy2()
    square = g.mpz(n) ** 2
    # r is coprime to n but for a chance of 2^-1000, in which case it would factor it.
    return [g.powmod(secrets.randbelow(n - 1) + 1, n, square) for _ in places]


def add(key: PublicKey, vectors: Sequence[Sequence[int]], n_jobs: int = 1) -> list[int]:
    """Ciphertexts of the sums of several owners' vectors of equal length, with fresh randomness.

    The fresh factor makes the result independent of the owners' own ones: who decrypts it learns the sum only.
    """
    sums = _parts(_products, list(zip(*vectors, strict=True)), len(vectors), n_jobs, int(key.square))
    fresh = Randomness(key, n_jobs).take(len(sums))
    return [int(c * r % key.square) for c, r in zip(sums, fresh, strict=True)]


def _products(columns: Iterable[Sequence[int]], square: int) -> list[int]:
    g = _gmpy2()
    modulus, out = g.mpz(square), []
    for column in columns:
        product = g.mpz(1)
        for c in column:
            product = product * c % modulus
        out.append(int(product))
    return out


def _parts(task: Any, items: Sequence[Any], work: int, n_jobs: int, *constant: Any) -> list[Any]:
    """Do a task for parts of the items, on several processes where their work, in units of an addition, is worth it."""
    if len(items) * work < 100 * _LONG_JOB or n_jobs == 1:
        return list(task(items, *constant))
    parts = math.ceil(len(items) / (4 * max(n_jobs, 2)))
    split = [items[i : i + parts] for i in range(0, len(items), parts)]
    found = Parallel(n_jobs=n_jobs)(delayed(task)(part, *constant) for part in split)
    return [value for part in found for value in part]


class SecretKey:
    """What the data user decrypts with."""

    def __init__(self, private: Any, public: PublicKey) -> None:
        self._private, self.public = private, public

    def decrypt(self, ciphertexts: Sequence[int], n_jobs: int = 1) -> list[int]:
        """Plaintexts in [0, n)."""
        work = 1000  # a decryption costs as much as some hundred additions
        return _parts(_decrypted, list(ciphertexts), work, n_jobs, self._private)

    @property
    def primes(self) -> tuple[int, int]:
        """The two factors of the modulus: all that is secret, for a holder who must write the key down."""
        return int(self._private.p), int(self._private.q)

    @classmethod
    def from_primes(cls, p: int, q: int) -> SecretKey:
        """The key with these :attr:`primes`."""
        _gmpy2()
        import phe

        public = phe.PaillierPublicKey(p * q)
        return cls(phe.PaillierPrivateKey(public, p, q), PublicKey(p * q, (p * q).bit_length()))

    def __repr__(self) -> str:
        return f"<secret key of {self.public.bits} bits>"


def _decrypted(ciphertexts: Iterable[int], private: Any) -> list[int]:
    return [int(m) for m in map(private.raw_decrypt, ciphertexts)]


def keys(bits: int) -> SecretKey:
    """New keys, from the system's randomness."""
    _gmpy2()
    import phe

    public, private = phe.generate_paillier_keypair(n_length=bits)
    return SecretKey(private, PublicKey(int(public.n), bits))


# Many signed integers in one plaintext, Σ_j v_j 2^(wj) modulo n: a sum of plaintexts is the plaintext of the sums.
#
# Shares v enter as the integers that they are, negative ones too. So what is decrypted depends on the totals V = Σ v
# over all owners and on nothing else, whatever the shares were and whether or not a total fits its slot of w bits: it
# is Σ_j V_j 2^(wj) modulo n. (Residues modulo 2^w in wider slots, as in version 0.1, add up to more than that: their
# carries count the owners whose share is negative.) Totals in [-2^(w-1), 2^(w-1)) come back exactly; the borrows of
# negative ones are undone by 2^(w-1) more in each slot. The first slot counts the shares: each owner puts 1 there.
#
# For the proof, and for why totals fit: ``docs/theory/federated.md#plaintext``.


def slots(width: int, bits: int) -> int:
    """How many values of `width` bits go into a plaintext of a key of `bits`: less than half the modulus together."""
    return (bits - 2) // width


def ciphertexts(size: int, width: int, bits: int) -> int:
    """How many plaintexts `size` values take, and the number of shares."""
    return math.ceil((1 + size) / slots(width, bits))


def pack(share: IntArray, width: int, n: int) -> list[int]:
    """Plaintexts modulo `n` of one owner's share.

    Parameters
    ----------
    share : ndarray of int64, shape (d,)
    width : int
        Bits of a slot, at least 2.
    n : int
        The modulus of the key.
    """
    values, per = [1, *share.tolist()], slots(width, n.bit_length())
    out = []
    for start in range(0, len(values), per):
        plaintext = 0
        for value in reversed(values[start : start + per]):
            plaintext = (plaintext << width) + value
        out.append(plaintext % n)
    return out


def unpack(plaintexts: list[int], size: int, width: int, n: int) -> tuple[int, IntArray]:
    """Number of shares and totals, from the sum modulo `n` of the owners' plaintexts.

    Parameters
    ----------
    plaintexts : list of int
        In [0, n).
    size : int
        Number of totals, d.
    width, n
        As of :func:`pack`; at most 62 bits.

    Returns
    -------
    (int, ndarray of int64)
        Exact where all of these are in [-2^(width-1), 2^(width-1)); another function of them where one is not.
    """
    per, half, mask = slots(width, n.bit_length()), 2 ** (width - 1), 2**width - 1
    raised = half * sum(1 << width * j for j in range(per))
    out = np.empty(1 + size, dtype=np.int64)
    for i, plaintext in enumerate(plaintexts):
        rest = (plaintext if 2 * plaintext < n else plaintext - n) + raised
        for j in range(i * per, min((i + 1) * per, 1 + size)):
            out[j] = (rest & mask) - half
            rest >>= width
    return int(out[0]), out[1:]
