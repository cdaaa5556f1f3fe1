"""Minimisers of regularised losses over persons: what :meth:`Cohort.perturbed_minimum` reads the private rows for.

*Least squares.* ``θ = argmin over |θ|_F <= B of ½ Σ |θ'f - r|² + (Λ/2)|θ|²`` with |f| <= C, |r| <= R. The objective is
Λ-strongly convex and the set convex, so the two variational inequalities give, for one person more or less,
``|θ - θ'| <= |∇ℓ(θ)|/Λ <= C (B C + R)/Λ``: no number of persons is in it. Proof, and what the ball
is for: ``docs/theory/learners.md#output-perturbation``.
The sums are exact integers; the solution's rounding error is at most 10 D n u relative to that bound (backward
stability of the symmetric eigenproblem), and 0.1 % more noise covers it while D n < 10¹¹.

*Logistic regression.* ``w = argmin F = Σ log(1 + exp(-t z'w)) + (λ/2)|w|² + b'w``, |z| <= 1, by a Newton method that
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
itself costs (n/4 + λ) u |w|, with |w| <= √(1.4 n/λ) + 2 |b|/λ because F(w) <= F(0). :func:`check_rounding` refuses,
before it reads, n, λ and |b| for which the two exceed half of :data:`GRADIENT_ERROR`; the other half is the stopping
rule's. (Where n is private, n <= 10⁷, or 10⁶ with λ below 1/4, is taken for granted. |b| has a public law: a length
that it exceeds with probability below 10⁻¹⁰ is taken.) A point with a gradient of at most that is within
:data:`GRADIENT_ERROR`/λ of the exact minimiser.

Sources: Chaudhuri, Monteleoni & Sarwate (2011), JMLR 12 (output and objective perturbation); Iyengar et al. (2019),
doi:10.1109/SP.2019.00001 (noise on an approximate minimum); Redberg, Koskela & Wang (2023), arXiv:2401.00583
(objective perturbation of generalised linear models); Bach (2010), doi:10.1214/09-EJS521 (self-concordance of the
logistic loss); Sun & Tran-Dinh (2019), doi:10.1007/s10107-018-1282-4 (the damped step); Ogita, Rump & Oishi (2005),
doi:10.1137/030601818 (sums and products in twice the precision).
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numba import njit
from scipy.signal import fftconvolve
from scipy.special import log_ndtr, ndtr

from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import PrivacyError
from fdadp.privacy._local import BLOCK, RowFunction, Rows, evaluate, silence
from fdadp.privacy._rows import quantise_rows
from fdadp.privacy._vault import Vault
from fdadp.privacy.boundary import sealed

__all__ = [
    "GRADIENT_ERROR",
    "SMALLEST_RIDGE",
    "check_rounding",
    "gaussian_multiplier",
    "least_squares",
    "length_of",
    "logistic",
    "steps_from_real",
]

_BITS = 18
"""Products of two lattice values, and sums of them over a block, are exact in floats; over 10⁸ persons in int64."""
GRADIENT_ERROR = 1e-5
"""Bound on the gradient's norm at the returned point: half for the stopping rule, half for rounding."""
SMALLEST_RIDGE = 0.01
"""Of the logistic loss: with less, rounding would be felt."""
_UNIT = 2.0**-53
"""Rounding of one operation."""
_FINAL = 64
"""Full Newton steps after the first one shorter than 1/2: many more than are ever needed."""


def check_rounding(n: int | None, ridge: float, length: float, name: str) -> None:
    """Refuse a logistic problem whose gradient could be off by more than half of :data:`GRADIENT_ERROR`.

    Parameters
    ----------
    n : int or None
        Declared number of persons; None where it is private.
    ridge, length : float
        λ, and a bound on |b|.
    name : str
        Of the release, for the error.

    Raises
    ------
    PrivacyError
    """
    most = (1e7 if ridge >= 0.25 else 1e6) if n is None else float(n)
    off = 10 * most * _UNIT + (most / 4 + ridge) * _UNIT * (math.sqrt(1.4 * most / ridge) + 2 * length / ridge)
    if off > GRADIENT_ERROR / 2:
        raise PrivacyError(
            f"{name}: ridge must be larger: with {most:.3g} persons, ridge {ridge:g} and a linear term of length up "
            f"to {length:.3g} the minimum is not found as exactly ({GRADIENT_ERROR:g}) as its privacy wants; nothing "
            "was read"
        )


def length_of(kind: str, size: int, scale: float) -> float:
    """Length that a Gaussian or spherical vector exceeds with probability below 10⁻¹⁰, whatever its size.

    Gaussian: |b|/scale is 1-Lipschitz in normals, so P(|b| > scale (√D + x)) <= e^{-x²/2} = 10⁻¹³ at x = 8. Spherical:
    |b|/scale ~ Gamma(D), P(> D + x) <= e^{-x²/(2 (D + x))}, below 10⁻¹⁰ at x = 10 √D + 40.
    """
    return scale * (math.sqrt(size) + 8 if kind == "gaussian" else size + 10 * math.sqrt(size) + 40)


def steps_from_real(kind: str, size: int) -> float:
    """Lattice steps, at most, between a linear term as it is drawn and one of the law in real numbers.

    A spherical one is a real one rounded. A discrete Gaussian is one whose coordinates moved by discrete Gaussians of
    sd 4 about it (docs/theory/accounting.md#lattice): by more than 4 (√D + 12) with probability below 10⁻³¹.
    """
    return math.sqrt(size) if kind == "spherical" else 4 * (math.sqrt(size) + 12)


def _person_weights(vault: Vault, power: float) -> FloatArray | None:
    """(rows of a person)^-power, and 0 for nobody, whose code is -1; None where every row is a person."""
    if not vault.grouped:
        return None
    return np.array([*(1.0 / c**power if c else 0.0 for c in vault.row_counts.tolist()), 0.0])


def _row_weights(persons: FloatArray | None, codes: IntArray, m: int) -> FloatArray:
    """Weights of the rows of a block."""
    weights = np.zeros(BLOCK)
    weights[:m] = 1.0 if persons is None else persons[codes[:m]]
    return weights


@sealed
def least_squares(
    vault: Vault,
    f: RowFunction,
    shapes: list[tuple[int, ...]],
    *,
    clip: float,
    target_clip: float,
    ridge: float,
    radius: float,
) -> FloatArray:
    """Ridge solution in a ball of the Frobenius norm, shape (D, K); a person with m rows counts 1/m for each."""
    D, K = math.prod(shapes[0]), math.prod(shapes[1])
    gram, cross = np.zeros((D, D), dtype=np.int64), np.zeros((D, K), dtype=np.int64)
    features, targets = np.empty((BLOCK, D)), np.empty((BLOCK, K))
    with silence():
        persons = _person_weights(vault, 0.5)
        for rows, m, codes in vault.blocks():
            a, b = evaluate(f, rows, m, shapes)
            weights = _row_weights(persons, codes, m)
            quantise_rows(
                a.reshape(-1, D), b.reshape(-1, K), m, weights, clip, target_clip, 2.0**_BITS, features, targets
            )
            gram += (features[:m].T @ features[:m]).astype(np.int64)  # exact, whatever the order
            cross += (features[:m].T @ targets[:m]).astype(np.int64)
        unit = 2.0**-_BITS
        a = np.asarray(gram, dtype=np.float64) * (clip * unit) ** 2
        return _in_ball(a, np.asarray(cross, dtype=np.float64) * (clip * unit * target_clip * unit), ridge, radius)


def _in_ball(gram: FloatArray, cross: FloatArray, ridge: float, radius: float) -> FloatArray:
    """Minimise ½ tr θ'Aθ - tr b'θ + (ridge/2)|θ|² over |θ|_F <= radius: a secular equation in the multiplier."""
    try:
        values, axes = np.linalg.eigh(gram)
    except np.linalg.LinAlgError:  # not for a finite symmetric matrix; and if it were, no error may tell
        return np.zeros_like(cross)
    values = np.maximum(values, 0.0)
    rotated = axes.T @ cross
    energy = (rotated**2).sum(axis=1)

    def length(multiplier: float) -> float:
        return math.sqrt(float((energy / (values + multiplier) ** 2).sum()))

    low = high = ridge
    if length(ridge) > radius:
        while length(high) > radius:
            low, high = high, 2 * high
        for _ in range(200):
            middle = (low + high) / 2
            if not low < middle < high:
                break
            low, high = (middle, high) if length(middle) > radius else (low, middle)
    return np.asarray(axes @ (rotated / (values + high)[:, None]))


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
        persons = _person_weights(vault, 1.0)
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
        _logistic_rows(z, t.reshape(-1, K), m, _row_weights(persons, codes, m), columns, value, gradient, bend)
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


@functools.lru_cache(maxsize=64)
def gaussian_multiplier(epsilon: float, delta: float, ridge: float, problems: int = 1) -> float:
    """Largest μ such that b ~ N(0, I/μ²) in the objective of K logistic problems is (ε, δ)-private.

    Where a person is added or removed, the log-ratio of densities of the K minimisers is at most
    ``K (μ²/2 + log(1 + 1/(4λ))) + μ Σ_k max(0, ζ_k)``, ζ_k ~ N(0, 1) independent: the Jacobian is bounded by the
    rank-one Hessian, and the sign of the gradient of a generalised linear loss is that of its label, whatever w.

    Raises
    ------
    PrivacyError
        λ is so small that the Jacobian alone costs more than ε.
    """
    jacobian = math.log1p(1 / (4 * ridge))
    if problems * jacobian >= epsilon:
        raise PrivacyError(
            f"ridge must be at least {1 / (4 * math.expm1(epsilon / problems)):.3g} at this epsilon, got {ridge:g}"
        )
    low, high = 0.0, 1.0
    while _hockey_stick(epsilon, high, jacobian, problems) <= delta:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _hockey_stick(epsilon, middle, jacobian, problems) <= delta else (low, middle)
    if low < 1e-6:
        raise PrivacyError(f"ridge must be larger at epsilon {epsilon:g} and delta {delta:g}, got {ridge:g}")
    return low


def _hockey_stick(epsilon: float, mu: float, jacobian: float, problems: int) -> float:
    """E (1 - exp(ε - L))_+ for L = K (μ²/2 + jacobian) + μ Σ max(0, ζ_k): δ at ε."""
    gap = epsilon - problems * (mu**2 / 2 + jacobian)
    if problems == 1:
        if gap >= 0:
            return float(ndtr(-gap / mu) - math.exp(gap + mu**2 / 2 + float(log_ndtr(-gap / mu - mu))))
        return float(0.5 - 0.5 * math.exp(gap) + 0.5 - math.exp(gap + mu**2 / 2 + float(log_ndtr(-mu))))
    # The law of the sum on a grid, each max(0, ζ) rounded up: δ can only come out larger.
    step = 2e-3
    grid = np.arange(0, 12, step)
    law = np.diff(ndtr(grid), prepend=0.0)  # the first cell holds the half that is 0
    law[-1] += 1 - law.sum()
    total = law
    for _ in range(problems - 1):
        total = np.maximum(fftconvolve(total, law), 0.0)
    excess = mu * step * np.arange(total.size) - gap
    rounding = 2e-16 * problems * total.size  # of the convolutions
    return float((total * np.where(excess > 0, -np.expm1(-np.maximum(excess, 0)), 0.0)).sum()) + rounding
