"""Many signed integers in one plaintext: residues modulo 2^width in slots wide enough for the sum of all owners.

Totals are wanted modulo 2^width only (:mod:`fdadp.privacy.distributed`), so every owner reduces its share to
[0, 2^width) before it packs it. The sum of L such residues is below 2^(width + ⌈log2 L⌉), the slot: nothing runs over
into the next slot, whatever the values are, and there are no borrows from negative ones. The last reduction, after
decryption, gives the sum of the shares modulo 2^width exactly.
"""

from __future__ import annotations

import math

import numpy as np

from fdadp._typing import IntArray

__all__ = ["ciphertexts", "pack", "slot_bits", "slots", "unpack"]


def slot_bits(width: int, owners: int) -> int:
    """Bits of a slot."""
    return width + math.ceil(math.log2(owners))


def slots(width: int, owners: int, key_bits: int) -> int:
    """How many values go into one plaintext, which is below 2^(key_bits - 1)."""
    return (key_bits - 1) // slot_bits(width, owners)


def ciphertexts(size: int, width: int, owners: int, key_bits: int) -> int:
    """How many plaintexts take `size` values."""
    return math.ceil(size / slots(width, owners, key_bits))


def pack(values: IntArray, width: int, owners: int, key_bits: int) -> list[int]:
    """Plaintexts of int64 values (d,), the first value in the lowest slot of the first one."""
    residues = (values.astype(np.uint64) & np.uint64(2**width - 1)).tolist()
    slot, per = slot_bits(width, owners), slots(width, owners, key_bits)
    out = []
    for start in range(0, len(residues), per):
        plaintext = 0
        for value in reversed(residues[start : start + per]):
            plaintext = plaintext << slot | value
        out.append(plaintext)
    return out


def unpack(plaintexts: list[int], size: int, width: int, owners: int, key_bits: int) -> IntArray:
    """From the sum of the owners' plaintexts to the sum of their values modulo 2^width, in [-2^(width-1), 2^(width-1)).

    Undoes :func:`pack` for one owner, and adds for several.
    """
    slot, per = slot_bits(width, owners), slots(width, owners, key_bits)
    mask, half = 2**width - 1, 2 ** (width - 1)
    out = np.empty(size, dtype=np.int64)
    for i, plaintext in enumerate(plaintexts):
        rest = int(plaintext)
        for j in range(i * per, min((i + 1) * per, size)):
            value = rest & mask
            out[j] = value - 2**width if value >= half else value
            rest >>= slot
    return out
