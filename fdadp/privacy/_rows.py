"""Loops over rows, each row in a fixed order and by itself: the same row gives the same bits wherever it stands.

A BLAS product of a batch may give a row other last bits when its neighbours change, and one bit is enough to break a
sensitivity that is counted in integers. So products of rows are written here as plain loops (no ``fastmath``: NaN
matters), and everything after the truncation to integers is exact, hence independent of order.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from fdadp._typing import FloatArray

__all__ = [
    "L1",
    "L2",
    "LINF",
    "add_persons",
    "add_rows",
    "finish_persons",
    "quantise_rows",
    "rowwise_matmul",
    "rowwise_norm",
    "weighted_outer",
]

LINF, L1, L2 = 0, 1, 2

ATTEMPTS = 4
SHRINK = 1 - 2.0**-20
"""Float clipping may overshoot the integer bound by a hair: then the row is shrunk by this and truncated again."""


@njit(cache=True, nogil=True)
def quantise(v, clip, limit, norm, q):  # type: ignore[no-untyped-def]
    """Clip one contribution, truncate it toward zero onto the lattice clip/limit; return whether anything is left.

    On return ``q`` holds integers (as floats) with ``|q|_norm <= limit`` **always**: the bound is checked on the
    integers themselves, and what does not meet it after four attempts becomes zero. For L2 the check is exact: squares
    are at most 2^(2 bits) <= 2^52, their sum is compared after every addition, so it never leaves the exact range of
    floats. A vector with a non-finite entry or norm is zero: it never reaches a cast to int64, where it would wrap.
    """
    size = v.size
    total = 0.0
    for j in range(size):
        if norm == 2:
            total += v[j] * v[j]
        elif norm == 1:
            total += abs(v[j])
        elif total == total and not abs(v[j]) <= total:  # a NaN is taken over and then stays
            total = abs(v[j])
    length = math.sqrt(total) if norm == 2 else total
    usable = math.isfinite(length)
    if usable:
        factor = limit / max(length, clip)
        bound = limit * limit if norm == 2 else limit
        for _ in range(ATTEMPTS):
            sum_ = 0.0
            inside = True
            for j in range(size):
                entry = float(np.trunc(v[j] * factor))
                q[j] = entry
                if not abs(entry) <= limit:
                    inside = False
                    break
                if norm == 2:
                    sum_ += entry * entry
                elif norm == 1:
                    sum_ += abs(entry)
                if sum_ > bound:
                    inside = False
                    break
            if inside:
                return True
            factor *= SHRINK
    for j in range(size):
        q[j] = 0.0
    return False


@njit(cache=True, nogil=True)
def add_rows(values, m, clip, limit, norm, total):  # type: ignore[no-untyped-def]
    """Add the integers of the first m rows, one person each, to ``total`` (int64)."""
    q = np.empty(values.shape[1])
    for i in range(m):
        if quantise(values[i], clip, limit, norm, q):
            for j in range(q.size):
                total[j] += np.int64(q[j])


@njit(cache=True, nogil=True)
def quantise_rows(f, r, m, weights, clip_f, clip_r, limit, out_f, out_r):  # type: ignore[no-untyped-def]
    """Lattice values of pairs (f_i, r_i), each within limit · weight in L2; a pair of which one is unusable is zero."""
    for i in range(m):
        bound = limit * weights[i]
        if not (
            bound > 0 and quantise(f[i], clip_f, bound, 2, out_f[i]) and quantise(r[i], clip_r, bound, 2, out_r[i])
        ):
            out_f[i] = 0.0
            out_r[i] = 0.0


@njit(cache=True, nogil=True)
def _close(person, slot_of, sums, usable, mean, clip, limit, norm, q, total):  # type: ignore[no-untyped-def]
    """Clip what a person's rows have given, add its integers, empty the slot."""
    slot = slot_of[person]
    v = sums[slot]
    if mean and usable[slot] > 1:
        for j in range(v.size):
            v[j] /= usable[slot]
    if usable[slot] > 0 and quantise(v, clip, limit, norm, q):
        for j in range(v.size):
            total[j] += np.int64(q[j])
    v[:] = 0.0
    usable[slot] = 0
    slot_of[person] = -1


@njit(cache=True, nogil=True)
def add_persons(values, m, codes, left, slot_of, free, n_free, sums, usable, mean, clip, limit, norm, total):  # type: ignore[no-untyped-def]
    """Gather rows person by person, in the order of the data, and close each person at its last row.

    ``free[:n_free]`` are unused slots of ``sums``, enough for m more persons; the new n_free is returned.
    A row with a non-finite entry is not usable and is left out of its person's mean.
    """
    q = np.empty(values.shape[1])
    for i in range(m):
        person = codes[i]
        if person < 0 or left[person] <= 0:
            continue
        if slot_of[person] < 0:
            n_free -= 1
            slot_of[person] = free[n_free]
        slot = slot_of[person]
        finite = True
        for j in range(values.shape[1]):
            if not math.isfinite(values[i, j]):
                finite = False
        if finite:
            usable[slot] += 1
            for j in range(values.shape[1]):
                sums[slot, j] += values[i, j]
        left[person] -= 1
        if left[person] == 0:
            _close(person, slot_of, sums, usable, mean, clip, limit, norm, q, total)
            free[n_free] = slot
            n_free += 1
    return n_free


@njit(cache=True, nogil=True)
def finish_persons(slot_of, sums, usable, mean, clip, limit, norm, total):  # type: ignore[no-untyped-def]
    """Close the persons whose rows were announced but did not all come."""
    q = np.empty(sums.shape[1])
    for person in range(slot_of.size):
        if slot_of[person] >= 0:
            _close(person, slot_of, sums, usable, mean, clip, limit, norm, q, total)


@njit(cache=True, nogil=True)
def weighted_outer(f, r, weights, m, index, out):  # type: ignore[no-untyped-def]
    """Active entries of ``weights * outer(f_i, r_i)`` for the first m rows.

    An inactive pair (weight 0) is left out, but a non-finite factor there still makes the row non-finite.
    """
    K = r.shape[1]
    for i in range(m):
        check = 0.0
        for j in range(f.shape[1]):
            check += 0.0 * f[i, j]
        for k in range(K):
            check += 0.0 * r[i, k]
        for a in range(index.size):
            j = index[a] // K
            k = index[a] % K
            out[i, a] = weights[j, k] * f[i, j] * r[i, k] + check


@njit(cache=True, nogil=True)
def _matmul(a, b, out):  # type: ignore[no-untyped-def]
    # On one thread: a block is done in half a millisecond, less than waking threads takes on a busy machine.
    row = np.empty(b.shape[1])
    for i in range(a.shape[0]):
        row[:] = 0.0
        for j in range(a.shape[1]):
            factor = a[i, j]
            for k in range(b.shape[1]):
                row[k] += factor * b[j, k]
        out[i] = row


@njit(cache=True, nogil=True)
def _norms(a, weights, p, out):  # type: ignore[no-untyped-def]
    for i in range(a.shape[0]):
        total = 0.0
        for j in range(a.shape[1]):
            total += weights[j] * (a[i, j] * a[i, j] if p == 2 else abs(a[i, j]))
        out[i] = math.sqrt(total) if p == 2 else total


def rowwise_matmul(a: FloatArray, b: FloatArray) -> FloatArray:
    """Product ``a @ b`` with every row computed by itself, in a fixed order: for feature functions handed to a Cohort.

    Parameters
    ----------
    a : ndarray of shape (m, p)
        Private rows, or functions of them.
    b : ndarray of shape (p, q)
        Public or already released.

    Returns
    -------
    ndarray of shape (m, q)
        Bit for bit the same for a row, whatever the other rows and its place are.
    """
    a = np.ascontiguousarray(a, dtype=np.float64)
    b = np.ascontiguousarray(b, dtype=np.float64)
    out = np.empty((a.shape[0], b.shape[1]))
    _matmul(a, b, out)
    return out


def rowwise_norm(a: FloatArray, p: int = 2, weights: FloatArray | None = None) -> FloatArray:
    """Norm of each row: ``sqrt(Σ_j w_j a_ij²)`` for p = 2, ``Σ_j w_j |a_ij|`` for p = 1; weights default to 1."""
    a = np.ascontiguousarray(a, dtype=np.float64)
    w = np.ones(a.shape[1]) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
    out = np.empty(a.shape[0])
    _norms(a, w, p, out)
    return out
