"""Loops over rows, each row in a fixed order and by itself: the same row gives the same bits wherever it stands.

A BLAS product of a batch may give a row other last bits when its neighbours change, and one bit is enough to break a
sensitivity that is counted in integers. So products of rows are written here as plain loops (no ``fastmath``: NaN
matters), and everything after the truncation to integers is exact, hence independent of order.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from fdadp._common.typing import FloatArray

__all__ = [
    "L1",
    "L2",
    "LINF",
    "add_cells",
    "add_outer_rows",
    "add_persons",
    "add_rows",
    "finish_persons",
    "leave_out_surplus",
    "log_positions",
    "outer_rows",
    "quantise_rows",
    "rowwise_matmul",
    "rowwise_norm",
    "test_utilities",
]

LINF, L1, L2 = 0, 1, 2

NARROW = 12
"""Columns up to which a product is faster with its sums in registers; public, so of no matter for a row's bits."""
ATTEMPTS = 4
SHRINK = 1 - 2.0**-20
"""Float clipping may overshoot the integer bound by a hair: then the row is shrunk by this and truncated again."""


PART = 1024
"""Squares of integers up to 2^26 added in int64 between two looks at the bound: at most 2^62."""


@njit(cache=True, nogil=True)
def _length(v, norm):  # type: ignore[no-untyped-def]
    """Norm of a vector; NaN or infinite if an entry is. Four sums, for an addition waits for the one before it."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    fours = v.size - v.size % 4
    if norm == LINF:
        for j in range(v.size):
            if a == a and not abs(v[j]) <= a:  # a NaN is taken over and then stays
                a = abs(v[j])
        return a
    if norm == L1:
        for j in range(0, fours, 4):
            a += abs(v[j])
            b += abs(v[j + 1])
            c += abs(v[j + 2])
            d += abs(v[j + 3])
        for j in range(fours, v.size):
            a += abs(v[j])
        return (a + b) + (c + d)
    for j in range(0, fours, 4):
        a += v[j] * v[j]
        b += v[j + 1] * v[j + 1]
        c += v[j + 2] * v[j + 2]
        d += v[j + 3] * v[j + 3]
    for j in range(fours, v.size):
        a += v[j] * v[j]
    return math.sqrt((a + b) + (c + d))


@njit(cache=True, nogil=True)
def _truncate(v, factor, limit, norm, q):  # type: ignore[no-untyped-def]
    """Truncate ``v * factor`` toward zero to integers in q; return whether ``|q|_norm <= limit``, exactly."""
    bound = np.int64(limit * limit) if norm == L2 else np.int64(limit)
    total = np.int64(0)
    for start in range(0, v.size, PART):
        inside = True
        for j in range(start, min(start + PART, v.size)):
            entry = v[j] * factor
            small = abs(entry) < limit + 1  # only such an entry, which is no NaN, reaches the cast
            inside &= small
            whole = np.int64(entry if small else 0.0)
            q[j] = whole
            total += whole * whole if norm == L2 else abs(whole) if norm == L1 else np.int64(0)
        if not inside or total > bound:
            return False
    return True


@njit(cache=True, nogil=True)
def quantise(v, clip, limit, norm, q):  # type: ignore[no-untyped-def]
    """Clip one contribution, truncate it toward zero onto the lattice clip/limit; return whether anything is left.

    On return the int64 vector ``q`` has ``|q|_norm <= limit`` **always**: the bound is checked on the integers
    themselves, exactly, and what does not meet it after four attempts becomes zero. A vector with a non-finite entry or
    norm is zero: it never reaches a cast to int64, where it would wrap.
    """
    length = _length(v, norm)
    if math.isfinite(length):
        factor = limit / max(length, clip)
        for _ in range(ATTEMPTS):
            if _truncate(v, factor, limit, norm, q):
                return True
            factor *= SHRINK
    q[:] = 0
    return False


@njit(cache=True, nogil=True)
def add_rows(values, m, clip, limit, norm, total):  # type: ignore[no-untyped-def]
    """Add the integers of the first m rows, one person each, to ``total`` (int64)."""
    q = np.empty(values.shape[1], dtype=np.int64)
    for i in range(m):
        if quantise(values[i], clip, limit, norm, q):
            for j in range(q.size):
                total[j] += q[j]


@njit(cache=True, nogil=True)
def add_outer_rows(f, r, weights, active, m, clip, limit, norm, total):  # type: ignore[no-untyped-def]
    """Add the integers of products ``weights * outer(f_i, r_i)``, one person each, to ``total``; one is held at a time.

    An inactive pair (weight 0) is 0 in every row, hence left out; a non-finite factor there makes the row unusable.
    """
    v = np.empty(weights.size)
    q = np.empty(weights.size, dtype=np.int64)
    for i in range(m):
        _outer(f[i], r[i], weights, v)
        if quantise(v, clip, limit, norm, q):
            for a in range(active.size):
                total[a] += q[active[a]]


@njit(cache=True, nogil=True)
def _outer(f, r, weights, v):  # type: ignore[no-untyped-def]
    for j in range(f.size):
        for k in range(r.size):
            v[j * r.size + k] = weights[j, k] * f[j] * r[k]


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def test_utilities(codes, weights, starts, tests, feature, out):  # type: ignore[no-untyped-def]
    """Write each row's utility of each test: its weight where its cell of the test's feature passes, else 0."""
    for i in range(codes.shape[0]):
        usable = math.isfinite(weights[i])
        for j in range(codes.shape[1]):
            code = codes[i, j]
            usable = usable and code >= 0 and code < starts[j + 1] - starts[j] and code == math.floor(code)
        for t in range(feature.size):
            if usable:
                passes = tests[t, starts[feature[t]] + np.int64(codes[i, feature[t]])] != 0
                out[i, t] = weights[i] if passes else 0.0
            else:
                out[i, t] = np.nan


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
            total[j] += q[j]
    v[:] = 0.0
    usable[slot] = 0
    slot_of[person] = -1


@njit(cache=True, nogil=True)
def add_persons(values, m, codes, left, slot_of, free, n_free, sums, usable, mean, clip, limit, norm, total):  # type: ignore[no-untyped-def]
    """Gather rows person by person, in the order of the data, and close each person at its last row.

    ``free[:n_free]`` are unused slots of ``sums``, enough for m more persons; the new n_free is returned.
    A row with a non-finite entry is not usable and is left out of its person's mean.
    """
    q = np.empty(values.shape[1], dtype=np.int64)
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
def leave_out_surplus(codes, left):  # type: ignore[no-untyped-def]
    """Count the rows of each person down in ``left``, and name nobody where none is left; returns the codes."""
    for i in range(codes.size):
        if codes[i] >= 0:
            if left[codes[i]] > 0:
                left[codes[i]] -= 1
            else:
                codes[i] = -1
    return codes


@njit(cache=True, nogil=True)
def finish_persons(slot_of, sums, usable, mean, clip, limit, norm, total):  # type: ignore[no-untyped-def]
    """Close the persons whose rows were announced but did not all come."""
    q = np.empty(sums.shape[1], dtype=np.int64)
    for person in range(slot_of.size):
        if slot_of[person] >= 0:
            _close(person, slot_of, sums, usable, mean, clip, limit, norm, q, total)


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def log_positions(x, lo, hi, centre, half, out):  # type: ignore[no-untyped-def]
    """Place of each size on a log scale, from -1 at lo to 1 at hi; NaN for what is no size."""
    for i in range(x.size):
        if not 0 <= x[i] < math.inf:
            out[i] = math.nan
        elif x[i] <= lo:
            out[i] = -1.0
        elif x[i] >= hi:
            out[i] = 1.0
        else:
            out[i] = min(max(log(x[i] / centre) / half, -1.0), 1.0)


@njit(cache=True, nogil=True)
def log(x):  # type: ignore[no-untyped-def]
    """Natural logarithm of a finite x > 0, within 1 ulp, by fdlibm's method (Sun Microsystems 1993, ``e_log.c``).

    Of exact and correctly rounded operations alone: compilers may replace libm's logarithm by a vectorised one for
    most rows of a block and not for the last ones, with other bits.
    """
    f, k = math.frexp(x)
    if f < 0.7071067811865476:
        f *= 2.0
        k -= 1
    f -= 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01))
    odd = 1.818357216161805012e-01 + w * 1.479819860511658591e-01
    odd = z * (6.666666666666735130e-01 + w * (2.857142874366239149e-01 + w * odd))
    half = 0.5 * f * f
    low = s * (half + (even + odd)) + k * 1.90821492927058770002e-10
    return k * 6.93147180369123816490e-01 - ((half - low) - f)


@njit(cache=True, nogil=True)
def _matmul(a, b, out):  # type: ignore[no-untyped-def]
    """Each entry of out as the sum over j in its order, four rows side by side: b is read once for all four."""
    # On one thread: a block is done in half a millisecond, less than waking threads takes on a busy machine.
    fours = len(a) - len(a) % 4
    rows = np.empty((4, b.shape[1]))
    for i in range(0, fours, 4):
        rows[:] = 0.0
        for j in range(a.shape[1]):
            f0, f1, f2, f3 = a[i, j], a[i + 1, j], a[i + 2, j], a[i + 3, j]
            for k in range(b.shape[1]):
                factor = b[j, k]
                rows[0, k] += f0 * factor
                rows[1, k] += f1 * factor
                rows[2, k] += f2 * factor
                rows[3, k] += f3 * factor
        out[i : i + 4] = rows
    for i in range(fours, len(a)):
        out[i] = 0.0
        for j in range(a.shape[1]):
            for k in range(b.shape[1]):
                out[i, k] += a[i, j] * b[j, k]


@njit(cache=True, nogil=True)
def _matmul_narrow(a, b, out):  # type: ignore[no-untyped-def]
    """Product of rows with a matrix of few columns, the bits of ``_matmul``: eight sums stay in registers."""
    eights = b.shape[1] - b.shape[1] % 8
    for k in range(0, eights, 8):
        for i in range(len(a)):
            s0, s1, s2, s3, s4, s5, s6, s7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for j in range(a.shape[1]):
                factor = a[i, j]
                s0 += factor * b[j, k]
                s1 += factor * b[j, k + 1]
                s2 += factor * b[j, k + 2]
                s3 += factor * b[j, k + 3]
                s4 += factor * b[j, k + 4]
                s5 += factor * b[j, k + 5]
                s6 += factor * b[j, k + 6]
                s7 += factor * b[j, k + 7]
            out[i, k], out[i, k + 1], out[i, k + 2], out[i, k + 3] = s0, s1, s2, s3
            out[i, k + 4], out[i, k + 5], out[i, k + 6], out[i, k + 7] = s4, s5, s6, s7
    for k in range(eights, b.shape[1]):
        for i in range(len(a)):
            total = 0.0
            for j in range(a.shape[1]):
                total += a[i, j] * b[j, k]
            out[i, k] = total


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
    kernel = _matmul_narrow if b.shape[1] <= NARROW else _matmul
    kernel(a, b, out)
    return out


def rowwise_norm(a: FloatArray, p: int = 2, weights: FloatArray | None = None) -> FloatArray:
    """Norm of each row: ``sqrt(Σ_j w_j a_ij²)`` for p = 2, ``Σ_j w_j |a_ij|`` for p = 1; weights default to 1."""
    a = np.ascontiguousarray(a, dtype=np.float64)
    w = np.ones(a.shape[1]) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
    out = np.empty(a.shape[0])
    _norms(a, w, p, out)
    return out
