"""Steps of the published encrypted PCA: what owners encrypt, proxies mask and data users see. **Not private.**"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.federated.paillier import PublicKey, Randomness, _gmpy2
from fdadp.privacy.account.accounting import opendp


@dataclass(frozen=True)
class UserView:
    """All that the data user decrypts.

    Attributes
    ----------
    n : int
        Number of rows.
    masked_sum : tuple of int
        v' = v + N b̃, or v + b modulo the key.
    masked_moment : tuple of tuples of int
        R' = R + G + G', or N R + v b' + b v' + b b' + H modulo the key.
    """

    n: int
    masked_sum: tuple[int, ...]
    masked_moment: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class ProxyView:
    """What the proxy drew itself, besides the ciphertexts and N.

    Attributes
    ----------
    mask : tuple of int
        b̃, or b.
    noise : ndarray of int64
        G', or H, (d, d).
    """

    mask: tuple[int, ...]
    noise: IntArray


def symmetric(noise: IntArray) -> IntArray:
    """Copy the upper triangle to the lower one."""
    upper: IntArray = np.triu(noise)
    return upper + np.triu(upper, 1).T


def gaussian(scales: Sequence[float], seed: int | None) -> list[int]:
    """Discrete Gaussian integers, or, seeded, rounded ones."""
    if seed is not None:
        drawn = np.rint(np.random.default_rng(seed).standard_normal(len(scales)) * scales)
        return [int(value) for value in drawn]
    dp = opendp()
    integer, distance = dp.atom_domain(T="i64"), dp.absolute_distance(T=float)
    return [int(dp.m.make_gaussian(integer, distance, scale=scale)(0)) for scale in scales]


def discretised(X: FloatArray, low: FloatArray, high: FloatArray, bits: int) -> IntArray:
    """Values as whole steps from 0 to 2^bits - 1 of their range."""
    steps = 2**bits - 1
    return np.asarray(np.floor(steps * (X - low) / np.where(high > low, high - low, 1.0)), dtype=np.int64)


def encrypted(x: IntArray, key: PublicKey) -> list[int]:
    """One owner's ciphertexts of N, v (d,) and R (d, d), row by row."""
    return key.encrypt([len(x), *x.sum(axis=0).tolist(), *(x.T @ x).ravel().tolist()], Randomness(key))


def masked(
    key: PublicKey, totals: Sequence[int], rows: int, mask: Sequence[int], noise: IntArray, masking: str
) -> list[int]:
    """What the proxy sends on: ciphertexts of v' (d,) and R' (d, d), made from those of N, v and R."""
    gmpy2 = _gmpy2()
    square, n = key.square, key.n
    d = len(mask)
    number, sums, moment = totals[0], totals[1 : d + 1], totals[d + 1 :]

    def times(c: int, m: int) -> Any:
        return gmpy2.powmod(c, m % n, square)

    def plain(m: int) -> Any:
        return 1 + n * gmpy2.mpz(m % int(n))

    uniform = masking == "uniform"
    out = [int(sums[i] * (plain(mask[i]) if uniform else times(number, mask[i])) % square) for i in range(d)]
    for i, j in np.ndindex(d, d):
        both = times(sums[i], mask[j]) * times(sums[j], mask[i])
        square_of_mask = plain(mask[i] * mask[j]) if uniform else times(number, mask[i] * mask[j])
        entry = times(moment[i * d + j], rows) if uniform else moment[i * d + j]
        out.append(int(entry * both * square_of_mask * plain(int(noise[i, j])) % square))
    return out


def centred(plaintexts: Sequence[int], key: PublicKey) -> list[int]:
    """Integers about 0 of residues modulo the key."""
    n = int(key.n)
    return [m - n if m > n // 2 else m for m in plaintexts]


def scatter(view: UserView, key: PublicKey | None) -> FloatArray:
    """R' - v'v''/N, or (R' - v'v'' modulo the key)/N: exact integers up to the division."""
    d = len(view.masked_sum)
    S = np.empty((d, d))
    for i, j in np.ndindex(d, d):
        product, entry = view.masked_sum[i] * view.masked_sum[j], view.masked_moment[i][j]
        if key is None:
            S[i, j] = (view.n * entry - product) / view.n
        else:
            S[i, j] = centred([(entry - product) % int(key.n)], key)[0] / view.n
    return S
