"""Minimisers of regularised logistic losses over persons: what objective perturbation reads the private rows for.

``w = argmin F = Σ log(1 + exp(-t z'w)) + (λ/2)|w|² + b'w``, |z| <= 1, by a Newton method that
never fails. With d = -F''⁻¹ F' at w and β = |d|, the third derivative along d is at most β times the second, since
|z| <= 1 (generalised self-concordance: Bach 2010), so along d the second derivative grows at most like e^{βs}:

- a step of log(1+β)/β lowers F by at least (d'F''d/β²) ((1+β) log(1+β) - β) >= 0.108 λ where β > 1/2. So there are at
  most (F(0) - min F)/(0.108 λ) <= (n log 2 + |b|²/(2λ))/(0.108 λ) of them (a full step is taken instead where it
  lowers F by at least as much as a quarter of what the quadratic model says; in practice there are some ten);
- where β <= 1/2, a full step leaves a gradient of at most (e^β - 1 - β)/β < 0.3 times the old one in the norm of
  F''⁻¹, hence the next β has shrunk, and :data:`_FINAL` steps bring down any gradient by 10⁻²⁵.

There is nothing to raise, and nothing to stop early: an error or a far point would tell of the rows. (How long it took
does, as always.) What is left is rounding. Margins z'w are summed in twice the working precision (Ogita, Rump & Oishi
2005) and gradients with compensation, so that the computed gradient is off by at most 10 n u, whatever |w|; rounding w
itself costs (n/4 + λ) u |w|, with |w| <= √(1.4 n/λ) + 2 |b|/λ because F(w) <= F(0). ``check_rounding`` refuses,
before it reads, n, λ and |b| for which the two exceed half of ``GRADIENT_ERROR``; the other half is the stopping
rule's. (Where n is private, n <= 10⁷, or 10⁶ with λ below 1/4, is taken for granted. |b| has a public law: a length
that it exceeds with probability below 10⁻¹⁰ is taken.) A point with a gradient of at most that is within
``GRADIENT_ERROR``/λ of the exact minimiser.

Sources: Bach (2010), doi:10.1214/09-EJS521 (self-concordance of the logistic loss); Sun & Tran-Dinh (2019),
doi:10.1007/s10107-018-1282-4 (the damped step); Ogita, Rump & Oishi (2005), doi:10.1137/030601818 (sums and products in
twice the precision).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from fdadp._common.typing import FloatArray
from fdadp.privacy._local import BLOCK, RowFunction, Rows, evaluate, silence
from fdadp.privacy._minima import GRADIENT_ERROR, person_weights, row_weights
from fdadp.privacy._vault import Vault
from fdadp.privacy.boundary import sealed

__all__ = ["logistic"]

_FINAL = 64
"""Full Newton steps after the first one shorter than 1/2: many more than are ever needed."""


@sealed
def logistic(
    vault: Vault, f: RowFunction, shapes: list[tuple[int, ...]], *, ridge: float, linear: FloatArray
) -> FloatArray:
    """Minimisers of the regularised logistic losses of K problems, each with its own linear term; shape (D, K).

    Never raises and never gives up: see the module for why it arrives.
    """
    D, K = linear.shape
    w = np.zeros((D, K))
    near = np.zeros(K, dtype=np.int64)  # full steps taken since a step was short
    with silence():
        vault, f = vault.derive(f, shapes), _same
        persons = person_weights(vault, 1.0)
        while True:
            value, gradient, hessian = _logistic_sums(vault, f, shapes, persons, w, ridge, linear, curvature=True)
            todo = (np.linalg.norm(gradient, axis=0) > GRADIENT_ERROR / 2) & (near < _FINAL)
            if not todo.any():
                return w
            step = np.zeros_like(w)
            for k in np.flatnonzero(todo):
                step[:, k] = -np.linalg.solve(hessian[k], gradient[:, k])
            length = np.linalg.norm(step, axis=0)
            near += todo & (length <= 0.5)
            long = todo & (length > 0.5) & (near == 0)
            if long.any():  # a full step only where it helps; else the one that is proved to
                reached, _, _ = _logistic_sums(vault, f, shapes, persons, w + step, ridge, linear, curvature=False)
                short = long & ~(reached <= value + (gradient * step).sum(axis=0) / 4)
                step[:, short] *= np.log1p(length[short]) / length[short]
            w = w + step


def _same(rows: Rows) -> Rows:
    return rows


def _logistic_sums(
    vault: Vault,
    f: RowFunction,
    shapes: list[tuple[int, ...]],
    persons: FloatArray | None,
    w: FloatArray,
    ridge: float,
    linear: FloatArray,
    *,
    curvature: bool,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Values (K,), gradients (D, K), Hessians (K, D, D); a person with m rows counts 1/m for each."""
    D, K = w.shape
    value, gradient = np.zeros((2, K)), np.zeros((2, K, D))  # sums, and what their rounding has lost
    hessian = np.zeros((K, D, D))
    columns = np.ascontiguousarray(w.T)
    bend = np.empty((BLOCK, K))
    for rows, m, codes in vault.blocks():
        z, t = evaluate(f, rows, m, shapes)
        z = np.array(z.reshape(-1, D))
        _logistic_rows(z, t.reshape(-1, K), m, row_weights(persons, codes, m), columns, value, gradient, bend)
        for k in range(K if curvature else 0):
            hessian[k] += (z[:m] * bend[:m, k : k + 1]).T @ z[:m]
    values = value.sum(axis=0) + (ridge / 2 * w**2 + linear * w).sum(axis=0)
    return values, gradient.sum(axis=0).T + ridge * w + linear, hessian + ridge * np.eye(D)


@njit(cache=True, nogil=True)
def _add(total, at, x):  # type: ignore[no-untyped-def]
    """Add x to total[0][at] and the rounding error of that, exactly, to total[1][at] (Knuth's two-sum)."""
    old = total[0][at]
    new = old + x
    part = new - old
    total[0][at] = new
    total[1][at] += (old - (new - part)) + (x - part)


@njit(cache=True, nogil=True)
def _dot(a, b):  # type: ignore[no-untyped-def]
    """Inner product in twice the working precision (Ogita, Rump & Oishi 2005, Dot2, with Dekker's product)."""
    high, low = 0.0, 0.0
    for j in range(a.size):
        x, y = a[j], b[j]
        product = x * y
        cx, cy = 134217729.0 * x, 134217729.0 * y  # 2^27 + 1 halves the digits
        x1, y1 = cx - (cx - x), cy - (cy - y)
        x2, y2 = x - x1, y - y1
        low += x2 * y2 - (((product - x1 * y1) - x2 * y1) - x1 * y2)
        new = high + product
        part = new - high
        low += (high - (new - part)) + (product - part)
        high = new
    return high + low


@njit(cache=True, nogil=True)
def _logistic_rows(z, t, m, weights, columns, value, gradient, bend):  # type: ignore[no-untyped-def]
    """Put m rows into the unit ball, in place, and add their losses, gradients; curvatures to ``bend``.

    Labels are the signs of the targets. A row that is not finite counts as no row.
    """
    K, D = columns.shape
    for i in range(m):
        norm = math.sqrt(_dot(z[i], z[i]))
        usable = math.isfinite(norm)
        for k in range(K):
            usable = usable and math.isfinite(t[i, k])
        factor = max(1 + 1e-12, norm * (1 + 1e-12))
        for j in range(D):
            z[i, j] = z[i, j] / factor if usable else 0.0
        for k in range(K):
            weight = weights[i] if usable and t[i, k] != 0 else 0.0
            bend[i, k] = 0.0
            if weight == 0.0:
                continue
            sign = 1.0 if t[i, k] > 0 else -1.0
            margin = sign * _dot(z[i], columns[k])
            tail = math.exp(-abs(margin))
            wrong = tail / (1 + tail) if margin > 0 else 1 / (1 + tail)  # probability of the other label
            _add(value, k, weight * (math.log1p(tail) + max(-margin, 0.0)))
            slope = -sign * weight * wrong
            for j in range(D):
                _add(gradient[:, k], j, slope * z[i, j])
            bend[i, k] = weight * tail / (1 + tail) ** 2
