"""Products, norms, logarithms and exponentials row by row: the same row gives the same bits wherever it stands.

A BLAS product of a batch may give a row other last bits when its neighbours change, and one bit is enough to break a
sensitivity that is counted in integers. So these are plain loops in a fixed order (no ``fastmath``: NaN matters).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from fdadp._common.loaded_later import kernel
from fdadp._common.typing import FloatArray
from fdadp.privacy.rows._person_row_caps import Exchangeable, moment_weights

NARROW = 3
"""Columns up to which a product is faster with its sums in registers; public, so of no matter for a row's bits."""


@kernel("f8[::1], f8, f8, f8, f8, f8[::1]")
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


@kernel()
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


@kernel()
def exp(x):  # type: ignore[no-untyped-def]
    """e^x for |x| <= 700, within 1 ulp, by fdlibm's method (Sun Microsystems 1993, ``e_exp.c``); as :func:`log`."""
    k = int(x * 1.44269504088896338700 + (0.5 if x >= 0 else -0.5))
    high, low = x - k * 6.93147180369123816490e-01, k * 1.90821492927058770002e-10
    r = high - low
    z = r * r
    inner = -1.65339022054652515390e-06 + z * 4.13813679705723846039e-08
    inner = -2.77777777770155933842e-03 + z * (6.61375632143793436117e-05 + z * inner)
    c = r - z * (1.66666666666666019037e-01 + z * inner)
    return math.ldexp(1.0 - ((low - r * c / (2.0 - c)) - high), k)


@kernel("f8[::1], f8, f8[::1]")
def _exps(x, limit, out):  # type: ignore[no-untyped-def]
    for i in range(x.size):
        out[i] = math.nan if x[i] != x[i] else exp(min(max(x[i], -limit), limit))


@kernel("f8[:,::1], f8[:,::1], f8[:,::1]")
def _matmul(a, b, out):  # type: ignore[no-untyped-def]
    """Each entry of out as the sum over j in its order; four rows of b are added in one go."""
    # On one thread: a block is done in half a millisecond, less than waking threads takes on a busy machine.
    fours = a.shape[1] - a.shape[1] % 4
    for i in range(len(a)):
        for k in range(b.shape[1]):
            out[i, k] = 0.0
        for j in range(0, fours, 4):
            f0, f1, f2, f3 = a[i, j], a[i, j + 1], a[i, j + 2], a[i, j + 3]
            for k in range(b.shape[1]):
                out[i, k] = (((out[i, k] + f0 * b[j, k]) + f1 * b[j + 1, k]) + f2 * b[j + 2, k]) + f3 * b[j + 3, k]
        for j in range(fours, a.shape[1]):
            for k in range(b.shape[1]):
                out[i, k] += a[i, j] * b[j, k]


@kernel("f8[:,::1], f8[:,::1], f8[:,::1]")
def _matmul_narrow(a, b, out):  # type: ignore[no-untyped-def]
    """Product of rows with a matrix of few columns, the bits of ``_matmul``: a sum stays in a register."""
    for i in range(len(a)):
        for k in range(b.shape[1]):
            total = 0.0
            for j in range(a.shape[1]):
                total += a[i, j] * b[j, k]
            out[i, k] = total


@kernel("f8[:,::1], f8[::1], i8, f8[::1]")
def _norms(a, weights, p, out):  # type: ignore[no-untyped-def]
    for i in range(a.shape[0]):
        total = 0.0
        for j in range(a.shape[1]):
            total += weights[j] * (a[i, j] * a[i, j] if p == 2 else abs(a[i, j]))
        out[i] = math.sqrt(total) if p == 2 else total


@kernel("f8[:,:,::1], f8[:,:,::1], f8[::1], f8[::1], b1, f8[:,::1]")
def _person_moments(f, g, alpha, gamma, symmetric, out):  # type: ignore[no-untyped-def]
    """Write each person's moment: of one matrix the triangle, √2 times that off the diagonal; of two all products.

    Rows are centred before they are multiplied: so the result is positive semidefinite but for rounding relative to
    its own size, however far from 0 the rows lie.
    """
    D, K = f.shape[2], g.shape[2]
    left, right, usable = np.empty(D), np.empty(K), np.empty(f.shape[1], dtype=np.bool_)
    for i in range(f.shape[0]):
        left[:] = 0.0
        right[:] = 0.0
        n = 0
        for j in range(f.shape[1]):
            usable[j] = True
            for k in range(D):
                usable[j] &= math.isfinite(f[i, j, k])
            for k in range(K):
                usable[j] &= math.isfinite(g[i, j, k])
            if usable[j]:
                n += 1
                left += f[i, j]
                right += g[i, j]
        out[i] = 0.0
        if n == 0:
            continue
        left /= n
        right /= n
        for j in range(f.shape[1] + 1):  # the last one is the product of the means
            last = j == f.shape[1]
            weight = gamma[n] if last else alpha[n] if usable[j] else 0.0
            if weight == 0:
                continue
            at = 0
            for a in range(D):
                own = left[a] if last else f[i, j, a] - left[a]
                for b in range(a if symmetric else 0, K):
                    other = right[b] if last else g[i, j, b] - right[b]
                    product = weight * own * other
                    out[i, at] += product if not symmetric or a == b else 1.4142135623730951 * product
                    at += 1


def person_moments(f: FloatArray, law: str | Exchangeable, g: FloatArray | None = None) -> FloatArray:
    """Moments of persons from their rows side by side, each person by itself: for functions handed to a Cohort.

    With f̄ and ḡ the means of a person's n rows the moment is α Σ (f - f̄)(g - ḡ)' + γ f̄ ḡ'. The law gives α and γ:
    "mean" 1/n and 1, "sum" 1 and n, "between" 0 and 1, "within" 1/(n - 1) and 0, ``Exchangeable(λ)`` 1 and n/(1 + nλ).

    Parameters
    ----------
    f : ndarray of shape (m, rows, D)
        As :meth:`Cohort.by_person` gives them, or what is computed from that. A row with an entry that is not finite
        is left out.
    law : {"mean", "sum", "between", "within"} or Exchangeable
    g : ndarray of shape (m, rows, K), optional
        Default: f.

    Returns
    -------
    ndarray of shape (m, D (D + 1) / 2) or, with g, (m, D K)
        Without g the entries on and above the diagonal, row by row, those above it times √2: the Euclidean norm of a
        person is the Frobenius norm of its moment.

    Raises
    ------
    PrivacyError
        The law is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp.privacy import person_moments
    >>> rows = np.array([[[1.0], [3.0], [np.nan]]])
    >>> person_moments(rows, "between").tolist(), person_moments(rows, "within").tolist()
    ([[4.0]], [[2.0]])
    """
    f = np.ascontiguousarray(f, dtype=np.float64)
    other = f if g is None else np.ascontiguousarray(g, dtype=np.float64)
    alpha, gamma = moment_weights(law, f.shape[1])
    D, K = f.shape[2], other.shape[2]
    out = np.empty((len(f), D * (D + 1) // 2 if g is None else D * K))
    _person_moments(f, other, alpha, gamma, g is None, out)
    return out


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

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp.privacy import rowwise_matmul
    >>> rows = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> products = rowwise_matmul(rows, np.eye(2) * 2)
    >>> products, bool((products[:1] == rowwise_matmul(rows[:1], np.eye(2) * 2)).all())
    (array([[ 2.,  4.],
           [ 6.,  8.],
           [10., 12.]]), True)
    """
    a = np.ascontiguousarray(a, dtype=np.float64)
    b = np.ascontiguousarray(b, dtype=np.float64)
    out = np.empty((a.shape[0], b.shape[1]))
    kernel = _matmul_narrow if b.shape[1] <= NARROW else _matmul
    kernel(a, b, out)
    return out


def rowwise_exp(x: FloatArray, limit: float = 700.0) -> FloatArray:
    """``e^x`` of each entry by itself, with x within ±limit (at most 700); NaN of NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp.privacy import rowwise_exp
    >>> rowwise_exp(np.array([[0.0, 1.0], [-800.0, 2.0]])).round(3)
    array([[1.   , 2.718],
           [0.   , 7.389]])
    """
    x = np.ascontiguousarray(x, dtype=np.float64)
    out = np.empty(x.shape)
    _exps(x.ravel(), min(limit, 700.0), out.ravel())
    return out


def rowwise_norm(a: FloatArray, p: int = 2, weights: FloatArray | None = None) -> FloatArray:
    """Norm of each row: ``sqrt(Σ_j w_j a_ij²)`` for p = 2, ``Σ_j w_j |a_ij|`` for p = 1; weights default to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp.privacy import rowwise_norm
    >>> rowwise_norm(np.array([[3.0, 4.0], [0.0, 1.0]]))
    array([5., 1.])
    """
    a = np.ascontiguousarray(a, dtype=np.float64)
    w = np.ones(a.shape[1]) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
    out = np.empty(a.shape[0])
    _norms(a, w, p, out)
    return out


def rowwise_sum(a: FloatArray) -> FloatArray:
    """Sum of each row in a fixed order, shape (m,)."""
    return rowwise_matmul(a, np.ones((a.shape[1], 1)))[:, 0]


def in_ball(a: FloatArray, radius: float) -> FloatArray:
    """Rows moved into the ball of a radius about 0."""
    return np.asarray(a * np.minimum(1.0, radius / np.maximum(rowwise_norm(a), 1e-300))[:, None])


def of_table(table: FloatArray, at: FloatArray) -> FloatArray:
    """Rows of a table (K, d) by their numbers (m,), or means of several, (m, k); NaN where a number is none of them."""
    at = at.reshape(len(at), -1)
    known = (at >= 0) & (at < len(table)) & (at == np.floor(at))
    first, *others = np.where(known, at, 0).astype(np.int64).T
    total = table[first]
    for one in others:  # one after the other: each row alike wherever it stands
        total += table[one]
    if others:
        total /= at.shape[1]
    total[~known.all(axis=1)] = np.nan
    return np.asarray(total)


class _Content:
    """A copy of a table, which equals another one of the same numbers."""

    def __init__(self, table: FloatArray) -> None:
        self.table = np.array(table)

    def __hash__(self) -> int:
        return hash((self.table.shape, self.table[0].tobytes(), self.table[-1].tobytes()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Content) and np.array_equal(self.table, other.table)


def diameter_of(table: FloatArray, blocks: int = 1) -> float:
    """Largest distance in L2 of two rows of a table, or of a row from zero: that of their convex hull with zero.

    Of several blocks: where each row may stand in any one of them, all else zero. It is kept of the tables met last:
    of a thousand rows of a thousand numbers it takes 26 ms, and each question about quantiles has such a table.
    """
    return _diameter(_Content(table), blocks)


@lru_cache(maxsize=4)
def _diameter(content: _Content, blocks: int) -> float:
    products = content.table @ content.table.T
    squares = np.diag(products)
    apart = float((squares[:, None] + squares - 2 * products).max())
    longest = float(squares.max())
    return math.sqrt(max(apart, longest if blocks == 1 else 2 * longest)) * (1 + 1e-9)
