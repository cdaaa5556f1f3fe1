"""Clipping and truncation of contributions, and their exact sums: loops over rows, each by itself.

Everything after the truncation to integers is exact, hence independent of order. No ``fastmath``: NaN matters.
"""

from __future__ import annotations

import math

import numpy as np

from fdadp._common.loaded_later import kernel

LINF, L1, L2, NUCLEAR = 0, 1, 2, 3

ATTEMPTS = 4
FINE, LONGEST = 2.0**32, 2.0**8
"""Rows of a person are added in integers, in steps of the clip over `FINE`; a row counts as `LONGEST` clips at most."""
SHRINK = 1 - 2.0**-20
"""Float clipping may overshoot the integer bound by a hair: then the row is shrunk by this and truncated again."""


@kernel()
def _length(v, norm):  # type: ignore[no-untyped-def]
    """Norm of a vector; NaN or infinite if an entry is. Four sums, for an addition waits for the one before it."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    fours = v.size - v.size % 4
    if norm == LINF:
        for j in range(v.size):
            if a == a and not abs(v[j]) <= a:  # a NaN is taken over and then stays
                a = abs(v[j])
        return a
    squared = norm == L2
    for j in range(0, fours, 4):
        a += v[j] * v[j] if squared else abs(v[j])
        b += v[j + 1] * v[j + 1] if squared else abs(v[j + 1])
        c += v[j + 2] * v[j + 2] if squared else abs(v[j + 2])
        d += v[j + 3] * v[j + 3] if squared else abs(v[j + 3])
    for j in range(fours, v.size):
        a += v[j] * v[j] if squared else abs(v[j])
    total = (a + b) + (c + d)
    return math.sqrt(total) if squared else total


@kernel()
def _length_of_blocks(v, norm, starts, size):  # type: ignore[no-untyped-def]
    """Norm of `size` entries, zero but for equal parts of v that begin at the places `starts`, ascending.

    Bit for bit as :func:`_length` has it of all entries.
    """
    if norm == LINF or v.size == size:
        return _length(v, norm)
    sums, width = np.zeros(4), v.size // starts.size
    for k in range(starts.size):
        inside = size - size % 4 - starts[k]  # of the last entries all are in the first sum
        for j in range(width):
            entry = v[k * width + j]
            sums[(starts[k] + j) & 3 if j < inside else 0] += abs(entry) if norm == L1 else entry * entry
    total = (sums[0] + sums[1]) + (sums[2] + sums[3])
    return total if norm == L1 else math.sqrt(total)


@kernel("f8[::1], f8, f8, i8, i8[::1]")
def quantise(v, clip, limit, norm, q):  # type: ignore[no-untyped-def]
    """Clip one contribution, truncate it toward zero onto the lattice clip/limit; return whether anything is left.

    On return the int64 vector ``q`` has ``|q|_norm <= limit`` **always**: the bound is checked on the integers
    themselves, exactly, and what does not meet it after four attempts becomes zero. A vector with a non-finite entry or
    norm is zero: it never reaches a cast to int64, where it would wrap.
    """
    return _quantise(v, _length(v, norm), clip, limit, norm, q)


@kernel()
def _quantise(v, length, clip, limit, norm, q):  # type: ignore[no-untyped-def]
    """The same, of a vector whose norm is `length`, but for rounding."""
    if math.isfinite(length):
        factor = limit / max(length, clip)
        bound = int(limit * limit) if norm == L2 else int(limit)
        for _ in range(ATTEMPTS):
            total, inside = 0, True
            for j in range(v.size):
                entry = v[j] * factor
                if not abs(entry) < limit + 1:  # only such an entry, which is no NaN, reaches the cast
                    inside = False
                    break
                whole = int(entry)
                q[j] = whole
                total += whole * whole if norm == L2 else abs(whole) if norm == L1 else 0
                if total > bound:
                    inside = False
                    break
            if inside:
                return True
            factor *= SHRINK
    for j in range(q.size):
        q[j] = 0
    return False


@kernel("f8[:,::1], i8, f8, f8, i8, i8[::1]")
def add_rows(values, m, clip, limit, norm, total):  # type: ignore[no-untyped-def]
    """Add the integers of the first m rows, one person each, to ``total`` (int64)."""
    q = np.empty(values.shape[1], dtype=np.int64)
    for i in range(m):
        if _quantise(values[i], _length(values[i], norm), clip, limit, norm, q):
            for j in range(q.size):
                total[j] += q[j]


@kernel("f8[:,::1], i8[::1], i8, f8, f8, i8, i8[::1]")
def add_placed_rows(values, at, m, clip, limit, norm, total):  # type: ignore[no-untyped-def]
    """Add the integers of the first m rows, each in its block of ``total``, which has as many entries as a row.

    Bit for bit what :func:`add_rows` adds of rows as wide as ``total`` that are zero elsewhere. Of no block: nothing.
    """
    size = values.shape[1]
    q, start = np.empty(size, dtype=np.int64), np.empty(1, dtype=np.int64)
    for i in range(m):
        if at[i] >= 0:
            start[0] = at[i] * size
            length = _length_of_blocks(values[i], norm, start, total.size)
            if _quantise(values[i], length, clip, limit, norm, q):
                for j in range(size):
                    total[start[0] + j] += q[j]


@kernel("f8[:,::1], f8[:,::1], f8[:,::1], i8[::1], i8, f8, f8, i8, i8[::1]")
def add_outer_rows(f, r, weights, active, m, clip, limit, norm, total):  # type: ignore[no-untyped-def]
    """Add the integers of products ``weights * outer(f_i, r_i)``, one person each, to ``total``; one is held at a time.

    An inactive pair (weight 0) is 0 in every row, hence left out; a non-finite factor there makes the row unusable.
    """
    v = np.empty(weights.size)
    q = np.empty(weights.size, dtype=np.int64)
    for i in range(m):
        _outer(f[i], r[i], weights, v)
        if _quantise(v, _length(v, norm), clip, limit, norm, q):
            for a in range(active.size):
                total[a] += q[active[a]]


@kernel()
def _outer(f, r, weights, v):  # type: ignore[no-untyped-def]
    for j in range(f.size):
        for k in range(r.size):
            v[j * r.size + k] = weights[j, k] * f[j] * r[k]


@kernel()
def _nearest(v, factor, bound, q):  # type: ignore[no-untyped-def]
    """Round ``v * factor`` to the nearest integers with |q|_2² <= bound, exactly; return whether there are such.

    Towards zero where rounding, also of a vector that is some steps shorter, goes beyond the bound.
    """
    for attempt in range(2 * ATTEMPTS):
        total = np.int64(0)
        for j in range(v.size):
            entry = v[j] * factor
            if not abs(entry) < 2.0**24:  # no finite entry of a vector of length 2^18 is
                return False
            q[j] = np.int64(np.rint(entry) if attempt < ATTEMPTS else entry)
            total += q[j] * q[j]
        if total <= bound:
            return True
        factor *= 1 - 1 / math.sqrt(bound) if attempt < ATTEMPTS else SHRINK
    return False


@kernel("f8[:,::1], f8[:,::1], i8[::1], i8, f8, i8, i8[::1]")
def add_rank_one_rows(f, r, counts, m, clip, bits, total):  # type: ignore[no-untyped-def]
    """Add the integer matrices a b' of the first m rows, a and b multiples of f and r, |a|² and |b|² <= 4^bits / count.

    So |a| |b| <= 4^bits / count, which is the nuclear norm of a b', exactly; the row is ab' clip 4^-bits = f r' / count
    where |f| |r| <= clip, and scaled down to that elsewhere. A count of 0, a zero, NaN or overflow adds nothing.
    """
    a = np.empty(f.shape[1], dtype=np.int64)
    b = np.empty(r.shape[1], dtype=np.int64)
    for i in range(m):
        left, right = _length(f[i], L2), _length(r[i], L2)
        size = min(left * right / clip, 1.0)
        if counts[i] > 0 and size > 0 and math.isfinite(left * right):
            bound = np.int64(4**bits) // counts[i]
            side = math.sqrt(size / counts[i]) * 2.0**bits
            if _nearest(f[i], side / left, bound, a) and _nearest(r[i], side / right, bound, b):
                for j in range(a.size):
                    if a[j] != 0:
                        for k in range(b.size):
                            total[j * b.size + k] += a[j] * b[k]


@kernel("f8[:,:,::1], f8[::1], f8[::1], i8, f8, i8, i8[::1]")
def add_contrasts(f, alpha, gamma, m, clip, bits, total):  # type: ignore[no-untyped-def]
    """Add Σ a a' over the contrasts of the rows of each of m persons, Σ |a|² <= 4^bits a person, on the integers.

    With Helmert contrasts h of the centred rows and their mean f̄, α Σ h h' + γ f̄ f̄' is the person's moment, of the
    nuclear norm α Σ |h|² + γ |f̄|²; it is scaled down where that is above `clip`. What overflows adds nothing.
    """
    D = f.shape[2]
    rows, a = np.empty((f.shape[1] + 1, D)), np.empty((f.shape[1] + 1, D), dtype=np.int64)
    mean, before = np.empty(D), np.empty(D)
    bound = np.int64(4**bits)
    for i in range(m):
        n = 0
        for k in range(D):
            mean[k], before[k] = 0.0, 0.0
        for j in range(f.shape[1]):
            usable = True
            for k in range(D):
                usable &= math.isfinite(f[i, j, k])
                rows[n, k] = f[i, j, k]
            if usable:
                for k in range(D):
                    mean[k] += f[i, j, k]
                n += 1
        if n == 0:
            continue
        for k in range(D):
            mean[k] /= n
            rows[n, k] = math.sqrt(gamma[n]) * mean[k]
        for j in range(n):  # contrasts of centred rows, the first one of which is nothing
            for k in range(D):
                own = rows[j, k] - mean[k]
                rows[j, k] = math.sqrt(alpha[n]) * (before[k] - j * own) / math.sqrt(j * (j + 1.0)) if j > 0 else 0.0
                before[k] += own
        size = 0.0
        for j in range(n + 1):
            for k in range(D):
                size += rows[j, k] * rows[j, k]
        if not 0 < size < math.inf:
            continue
        factor = 2.0**bits / math.sqrt(max(size, clip))
        for _ in range(2 * ATTEMPTS):
            left = bound
            for j in range(n + 1):
                for k in range(D):
                    a[j, k] = np.int64(np.rint(rows[j, k] * factor))  # at most 2^bits, as |row|² <= size
                    left -= a[j, k] * a[j, k]
            if left >= 0:
                for j in range(n + 1):
                    for k in range(D):
                        if a[j, k] != 0:
                            for c in range(D):
                                total[k * D + c] += a[j, k] * a[j, c]
                break
            factor *= 1 - math.sqrt(D * (n + 1.0)) * 2.0**-bits


@kernel("f8[:,::1], f8[::1], i8, i8[::1], f8, i8[::1]")
def add_cells(codes, weights, m, starts, limit, total):  # type: ignore[no-untyped-def]
    """Add trunc(weight · limit), weight clipped to [0, 1], to one cell of each feature, for the first m rows.

    A row without a finite weight, or without a cell of each feature, adds nothing.
    """
    for i in range(m):
        usable = math.isfinite(weights[i])
        for j in range(codes.shape[1]):
            code = codes[i, j]
            usable = usable and code >= 0 and code < starts[j + 1] - starts[j] and code == math.floor(code)
        if usable:
            q = np.int64(min(max(weights[i], 0.0), 1.0) * limit)
            for j in range(codes.shape[1]):
                total[starts[j] + np.int64(codes[i, j])] += q


@kernel("f8[:,::1], f8[::1], i8[::1], i8[:,::1], i8[::1], f8[:,::1]")
def test_utilities(codes, weights, starts, tests, feature, out):  # type: ignore[no-untyped-def]
    """Write each row's utility of each test: its weight where its cell of the test's feature passes, else 0.

    ``tests``: for each test whether it lets the cells of its feature pass.
    """
    for i in range(codes.shape[0]):
        usable = math.isfinite(weights[i])
        for j in range(codes.shape[1]):
            code = codes[i, j]
            usable = usable and code >= 0 and code < starts[j + 1] - starts[j] and code == math.floor(code)
        for t in range(feature.size):
            if usable:
                passes = tests[t, np.int64(codes[i, feature[t]])] != 0
                out[i, t] = weights[i] if passes else 0.0
            else:
                out[i, t] = np.nan


@kernel("f8[:,::1], f8[:,::1], i8, f8[::1], f8, f8, f8, f8[:,::1], f8[:,::1]")
def quantise_rows(f, r, m, weights, clip_f, clip_r, limit, out_f, out_r):  # type: ignore[no-untyped-def]
    """Lattice values of pairs (f_i, r_i), each within limit · weight in L2; a pair of which one is unusable is zero."""
    for i in range(m):
        bound = limit * weights[i]
        if not (
            bound > 0 and quantise(f[i], clip_f, bound, 2, out_f[i]) and quantise(r[i], clip_r, bound, 2, out_r[i])
        ):
            for j in range(f.shape[1]):
                out_f[i, j] = 0.0
            for k in range(r.shape[1]):
                out_r[i, k] = 0.0


@kernel()
def _close(person, open_, sums, first, free, n_free, mean, clip, limit, norm, total):  # type: ignore[no-untyped-def]
    """Clip what a person's rows have given, add its integers, free its slots; the new n_free is returned."""
    slot_of, usable, start_of, after = open_
    size, slots, slot = sums.shape[1], 0, slot_of[person]
    while slot >= 0:
        slots, slot = slots + 1, after[slot]
    v, q = np.empty(slots * size), np.empty(slots * size, dtype=np.int64)
    starts = np.empty(slots, dtype=np.int64)
    step = clip / FINE / (max(usable[person], 1) if mean else 1)
    slot = slot_of[person]
    for k in range(slots):
        starts[k] = start_of[slot]
        for j in range(size):
            v[k * size + j] = first[slot, j] if usable[person] == 1 else sums[slot, j] * step
        sums[slot, :] = 0
        free[n_free] = slot
        n_free, slot = n_free + 1, after[slot]
    if slots > 0 and _quantise(v, _length_of_blocks(v, norm, starts, total.size), clip, limit, norm, q):
        for k in range(slots):
            for j in range(size):
                total[starts[k] + j] += q[k * size + j]
    slot_of[person] = -1
    return n_free


@kernel(
    "f8[:,::1], i8[::1], i8, i8[::1], i8[::1], (i8[::1], i8[::1], i8[::1], i8[::1]), i8[:,::1], f8[:,::1], i8[::1], i8,"
    "b1, f8, f8, i8, i8[::1]"
)
def add_persons(values, at, m, codes, left, open_, sums, first, free, n_free, mean, clip, limit, norm, total):  # type: ignore[no-untyped-def]
    """Gather rows person by person, each in its block of ``total``, and close each person at its last row.

    They are added in integers, so their order does not matter; a single row is taken as it is. A row with a non-finite
    entry is not usable and is left out of its person's mean; one of no block counts in it, as zeros.

    A person has a slot of ``sums`` for each block that its rows stand in, in ascending order: ``open_`` has the first
    slot and the number of usable rows of each person, and where each slot's block starts and which slot comes after it.
    ``free[:n_free]`` are unused slots, enough for m more rows; the new n_free is returned.
    """
    slot_of, usable, start_of, after = open_
    start = np.empty(1, dtype=np.int64)
    for i in range(m):
        person = codes[i]
        if person < 0 or left[person] <= 0:
            continue
        start[0] = at[i] * values.shape[1]
        placed = at[i] >= 0
        length = _length_of_blocks(values[i], norm, start, total.size) if placed else _length(values[i], LINF)
        if math.isfinite(length):
            usable[person] += 1
            if placed:
                before, slot = -1, slot_of[person]
                while slot >= 0 and start_of[slot] < start[0]:
                    before, slot = slot, after[slot]
                if slot < 0 or start_of[slot] > start[0]:
                    n_free -= 1
                    own = free[n_free]
                    start_of[own], after[own] = start[0], slot
                    if before < 0:
                        slot_of[person] = own
                    else:
                        after[before] = own
                    slot = own
                if usable[person] == 1:
                    first[slot] = values[i]
                factor = FINE * min(1.0 / clip, LONGEST / max(length, clip))
                for j in range(values.shape[1]):
                    sums[slot, j] += np.int64(np.rint(values[i, j] * factor))
        left[person] -= 1
        if left[person] == 0:
            n_free = _close(person, open_, sums, first, free, n_free, mean, clip, limit, norm, total)
    return n_free


@kernel("i8[::1], i8[::1]")
def leave_out_surplus(codes, left):  # type: ignore[no-untyped-def]
    """Count the rows of each person down in ``left``, and name nobody where none is left; returns the codes."""
    for i in range(codes.size):
        if codes[i] >= 0:
            if left[codes[i]] > 0:
                left[codes[i]] -= 1
            else:
                codes[i] = -1
    return codes


@kernel("(i8[::1], i8[::1], i8[::1], i8[::1]), i8[:,::1], f8[:,::1], i8[::1], i8, b1, f8, f8, i8, i8[::1]")
def finish_persons(open_, sums, first, free, n_free, mean, clip, limit, norm, total):  # type: ignore[no-untyped-def]
    """Close the persons whose rows were announced but did not all come."""
    for person in range(open_[0].size):
        n_free = _close(person, open_, sums, first, free, n_free, mean, clip, limit, norm, total)


@kernel("f8[:,::1], f8[:,::1], f8[:,::1], i8[::1], i8, f8[:,::1]")
def outer_rows(f, r, weights, active, m, out):  # type: ignore[no-untyped-def]
    """Write the active entries of the first m products to rows of their own, all NaN where one would be unusable."""
    v = np.empty(weights.size)
    for i in range(m):
        _outer(f[i], r[i], weights, v)
        check = 0.0
        for j in range(v.size):
            check += 0.0 * v[j]
        for a in range(active.size):
            out[i, a] = v[active[a]] + check
