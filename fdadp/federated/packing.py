"""Many signed integers in one plaintext, Σ_j v_j 2^(wj) modulo n: a sum of plaintexts is the plaintext of the sums.

Shares v enter as the integers that they are, negative ones too. So what is decrypted depends on the totals V = Σ v over
all owners and on nothing else, whatever the shares were and whether or not a total fits its slot of w bits: it is
Σ_j V_j 2^(wj) modulo n. (Residues modulo 2^w in wider slots, as in version 0.1, add up to more than that: their carries
count the owners whose share is negative.) Totals in [-2^(w-1), 2^(w-1)) come back exactly; the borrows of negative ones
are undone by 2^(w-1) more in each slot. The first slot counts the shares: each owner puts 1 there.

For the proof, and for why totals fit: ``docs/theory/federated.md#plaintext``.
"""

from __future__ import annotations

import math

import numpy as np

from fdadp._common.typing import IntArray


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
