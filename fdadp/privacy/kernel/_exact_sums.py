"""Exact integer sums over persons: the only loops over private rows that lead to a release.

Each is a task, "rows here -> integers", that a vault runs on all its rows (:meth:`Vault.total`): what it is told
besides the rows is public or released, and may be sent to where the rows are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fdadp._common.threads import map_stream
from fdadp._common.typing import FloatArray, IntArray
from fdadp.privacy.noise._matrix_noise import BITS
from fdadp.privacy.rows._clipped_sums import (
    add_cells,
    add_contrasts,
    add_outer_rows,
    add_persons,
    add_placed_rows,
    add_rank_one_rows,
    add_rows,
    finish_persons,
    outer_rows,
    quantise_rows,
)
from fdadp.privacy.rows._person_row_caps import MEAN, Law
from fdadp.privacy.rows._sealed_row_functions import BLOCK, RowFunction, Rows, evaluate, sealed, silence
from fdadp.privacy.rows._vault import Block, Vault


class Products(NamedTuple):
    """Contributions ``weights * outer(left_i, right_i)``, of which the active entries count, as their factors."""

    left: FloatArray
    right: FloatArray
    weights: FloatArray
    active: IntArray

    def rows(self, m: int) -> FloatArray:
        """The first m contributions as rows, among (BLOCK, d)."""
        out = np.zeros((BLOCK, self.active.size))
        outer_rows(*self, m, out)
        return out


class Placed(NamedTuple):
    """Contributions (BLOCK, d) that stand each in the block of number `at`, of several; -1: in none."""

    values: FloatArray
    at: IntArray


Contributions = Callable[[Rows, int], FloatArray | Products | Placed]
"""From a padded block and its number of real rows to the contribution of each row, (BLOCK, d)."""
Factors = Callable[[Rows, int], tuple[FloatArray, FloatArray]]
"""From a padded block and its number of real rows to both factors of each row's product, (BLOCK, D) and (BLOCK, K)."""


@sealed
def exact_sum(
    vault: Vault, contributions: Contributions, size: int, *, clip: float, bits: int, norm: int, law: Law
) -> IntArray:
    """Return Σ over persons of trunc(clip(mean or sum over the person's rows) · 2^bits / clip), as int64.

    A person changes the result by its own integers exactly, of norm at most 2^bits; nothing else does.
    """
    total = np.zeros(size, dtype=np.int64)
    limit = float(2**bits)

    def evaluated(block: Block) -> FloatArray | Products | Placed:
        rows, m, _ = block
        with np.errstate(all="ignore"):  # which a thread does not inherit
            return contributions(vault.view(rows, m), m)

    def added(block: Block) -> IntArray:
        part = np.zeros(size, dtype=np.int64)
        values, m = evaluated(block), block[1]
        if isinstance(values, Products):
            add_outer_rows(*values, m, clip, limit, norm, part)
        elif isinstance(values, Placed):
            add_placed_rows(values.values, values.at, m, clip, limit, norm, part)
        else:
            add_rows(values, m, clip, limit, norm, part)
        return part

    def gathered(block: Block) -> tuple[FloatArray, IntArray, int, IntArray]:
        values = evaluated(block)
        if isinstance(values, Products):
            values = values.rows(block[1])
        return *(values if isinstance(values, Placed) else (values, np.zeros(BLOCK, dtype=np.int64))), *block[1:]

    with silence():
        if not vault.grouped:
            for part in map_stream(added, vault.source_blocks()):
                total += part  # integers: exact, in whatever order they were computed
            return total
        left = vault.row_counts
        of_persons = np.full(len(left), -1, dtype=np.int64), np.zeros(len(left), dtype=np.int64)
        of_slots, free, n_free = np.zeros((2, 0), dtype=np.int64), np.zeros(0, dtype=np.int64), 0
        sums, first = np.zeros((0, 1), dtype=np.int64), np.zeros((0, 1))
        how = (law.name == "mean", clip, limit, norm, total)
        for values, at, m, codes in map_stream(gathered, vault.source_blocks()):
            if n_free < m:  # persons stay open while their rows are spread over chunks
                old, width = len(free), values.shape[1]
                new = np.arange(old, 2 * old + BLOCK)
                free = np.concatenate([free[:n_free], new, np.zeros(old - n_free, dtype=np.int64)])
                n_free += len(new)
                of_slots = np.pad(of_slots, ((0, 0), (0, len(new))))
                sums = np.concatenate([sums.reshape(-1, width), np.zeros((len(new), width), dtype=np.int64)])
                first = np.concatenate([first.reshape(-1, width), np.zeros((len(new), width))])
            open_ = (*of_persons, *of_slots)
            n_free = add_persons(values, at, m, codes, left, open_, sums, first, free, n_free, *how)
        finish_persons((*of_persons, *of_slots), sums, first, free, n_free, *how)
    return total


@sealed
def rank_one_sum(
    vault: Vault, factors: Factors, D: int, K: int, *, clip: float, bits: int, law: Law = MEAN
) -> IntArray:
    """Return Σ over persons of the mean of f r' over its rows, each clipped to |f| |r| <= clip, times 4^bits / clip.

    Of rows that are added up by `law`: their sum over the number of rows that count at most.

    A person changes the result by integer matrices of rank one of which the nuclear norms add up to 4^bits at most.
    The sum is exact modulo 2^64.
    """
    total = np.zeros(D * K, dtype=np.int64)

    def added(block: Block) -> IntArray:
        rows, m, codes = block
        part = np.zeros(D * K, dtype=np.int64)
        with np.errstate(all="ignore"):  # which a thread does not inherit
            f, r = factors(vault.view(rows, m), m)
        counts = np.ones(m, dtype=np.int64) if persons is None else persons[codes[:m]]
        add_rank_one_rows(f, r, counts, m, clip, bits, part)
        return part

    with silence():
        persons = np.append(law.shares(vault.row_counts), 0) if vault.grouped else None  # the code of nobody is -1
        for part in map_stream(added, vault.source_blocks()):
            total += part
    return total


@sealed
def exact_moment(vault: Vault, f: RowFunction, shape: tuple[int, ...], clip: float) -> IntArray:
    """Upper triangle of Σ aa', a = f(row) clipped to |a| <= clip, in units of (clip · 2^-BITS)²; one row a person."""
    p = math.prod(shape)
    total = np.zeros((p, p), dtype=np.int64)
    points, unused, ones = np.empty((BLOCK, p)), np.empty((BLOCK, 1)), np.ones(BLOCK)
    with silence():
        for rows, m, _ in vault.blocks():
            a = evaluate(f, rows, m, [shape])[0].reshape(-1, p)
            quantise_rows(a, np.zeros((BLOCK, 1)), m, ones, clip, 1.0, 2.0**BITS, points, unused)
            total += (points[:m].T @ points[:m]).astype(np.int64)  # exact, whatever the order
    return total[np.triu_indices(p)]


@sealed
def contrast_sum(
    vault: Vault,
    f: RowFunction,
    shape: tuple[int, ...],
    weights: tuple[FloatArray, FloatArray],
    *,
    clip: float,
    bits: int,
) -> IntArray:
    """Return Σ over persons of the moments of their rows, each of nuclear norm at most clip, times 4^bits / clip.

    One row of the vault is a person, with its rows side by side. It changes the result by positive semidefinite integer
    matrices whose traces add up to 4^bits at most. The sum is exact modulo 2^64.
    """
    total = np.zeros(shape[1] ** 2, dtype=np.int64)
    with silence():
        for rows, m, _ in vault.blocks():
            add_contrasts(evaluate(f, rows, m, [shape])[0], *weights, m, clip, bits, total)
    return total


@sealed
def cell_sums(vault: Vault, f: RowFunction, shapes: list[tuple[int, ...]], starts: IntArray, *, bits: int) -> IntArray:
    """Return the sums of the rows' weights, in integers, in the cells of each feature; each row is a person."""
    total = np.zeros(int(starts[-1]), dtype=np.int64)
    with silence():
        for rows, m, _ in vault.blocks():
            codes, weights = evaluate(f, rows, m, shapes)
            add_cells(codes, weights.reshape(-1), m, starts, float(2**bits), total)
    return total


@sealed
def count_persons(vault: Vault, bits: int, law: Law = MEAN) -> IntArray:
    """Return 2^bits for every person, usable or not; where rows are added up, its share of the most rows."""
    with silence():
        persons = len(vault.row_counts) if vault.grouped else 0
        if law.name == "sum":
            return np.array([((vault.row_counts << bits) // law.most).sum()], dtype=np.int64)
        for _, m, _ in vault.source_blocks():
            persons += 0 if vault.grouped else m
    return np.array([persons << bits], dtype=np.int64)
