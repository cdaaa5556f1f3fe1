"""Minimisers of regularised losses over persons: what :meth:`Cohort.perturbed_minimum` reads the private rows for.

*Least squares.* ``θ = argmin over |θ|_F <= B of ½ Σ |θ'f - r|² + (Λ/2)|θ|²`` with |f| <= C, |r| <= R. The objective is
Λ-strongly convex and the set convex, so the two variational inequalities give, for one person more or less,
``|θ - θ'| <= |∇ℓ(θ)|/Λ <= C (B C + R)/Λ``: no number of persons is in it (02b, L9 has B = R √(n/Λ) instead of a ball).
The sums are exact integers; the solution's rounding error is at most 10 D n u relative to that bound (backward
stability of the symmetric eigenproblem), and 0.1 % more noise covers it while D n < 10¹¹.

*Logistic regression.* ``w = argmin Σ log(1 + exp(-t z'w)) + (λ/2)|w|² + b'w``, |z| <= 1, found by Newton's method to a
gradient of :data:`GRADIENT_ERROR`, summation error included; hence w is within that over λ of the exact minimiser.

Sources: Chaudhuri, Monteleoni & Sarwate (2011), JMLR 12 (output and objective perturbation); Iyengar et al. (2019),
doi:10.1109/SP.2019.00001 (noise on an approximate minimum); Redberg, Koskela & Wang (2023), arXiv:2301.00412
(objective perturbation of generalised linear models).
"""

from __future__ import annotations

import functools
import math

import numpy as np
from scipy.signal import fftconvolve
from scipy.special import expit, log_ndtr, ndtr

from fdadp._typing import FloatArray, IntArray
from fdadp.errors import PrivacyError
from fdadp.privacy._local import BLOCK, RowFunction, evaluate, silence
from fdadp.privacy._rows import quantise_rows
from fdadp.privacy._vault import Vault

__all__ = ["GRADIENT_ERROR", "gaussian_multiplier", "least_squares", "logistic"]

_BITS = 18
"""Products of two lattice values, and sums of them over a block, are exact in floats; over 10⁸ persons in int64."""
GRADIENT_ERROR = 1e-7
"""Bound on the gradient's norm at the returned point: half for the stopping rule, half for summation (n <= 10⁷)."""
_STEPS = 100


def _row_weights(vault: Vault, codes: IntArray, m: int, power: float) -> FloatArray:
    """Weight of each row of a block: 1, or (rows of its person)^-power; 0 for a row that belongs to nobody."""
    weights = np.zeros(BLOCK)
    weights[:m] = 1.0
    if vault.grouped:
        counts = np.append(vault.row_counts, 0)  # code -1 takes the last
        weights[:m] = [1.0 / c**power if c else 0.0 for c in counts[codes[:m]].tolist()]
    return weights


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
        for rows, m, codes in vault.blocks():
            a, b = evaluate(f, rows, m, shapes)
            weights = _row_weights(vault, codes, m, 0.5)
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


def logistic(
    vault: Vault, f: RowFunction, shapes: list[tuple[int, ...]], *, ridge: float, linear: FloatArray
) -> FloatArray:
    """Minimisers of the regularised logistic losses of K problems, each with its own linear term; shape (D, K).

    Raises
    ------
    PrivacyError
        Newton's method did not get there, which does not happen for these strongly convex functions; a point that is
        no minimiser must not be released.
    """
    D, K = linear.shape
    w = np.zeros((D, K))
    with silence():
        value, gradient, hessian = _logistic_sums(vault, f, shapes, w, ridge, linear)
        for _ in range(_STEPS):
            # Problems that have arrived stay where they are.
            todo = np.linalg.norm(gradient, axis=0) > GRADIENT_ERROR / 2
            if not todo.any():
                return w
            step = np.zeros_like(w)
            for k in np.flatnonzero(todo):
                step[:, k] = -np.linalg.solve(hessian[k], gradient[:, k])
            slope = (gradient * step).sum(axis=0)
            size = np.ones(K)
            for _ in range(60):
                trial = w + size * step
                sums = _logistic_sums(vault, f, shapes, trial, ridge, linear)
                # A decrease below the rounding of the value cannot be seen: then the gradient decides.
                seen = sums[0] <= value + 1e-4 * size * slope
                smaller = np.linalg.norm(sums[1], axis=0) < np.linalg.norm(gradient, axis=0)
                tiny = -slope <= 1e-9 * (1 + np.abs(value))
                bad = todo & ~(seen | (smaller & tiny))
                if not bad.any():
                    break
                size[bad] /= 2
            w, (value, gradient, hessian) = trial, sums
    raise PrivacyError("the minimisation did not converge, so nothing is released; the budget is spent")


def _logistic_sums(
    vault: Vault, f: RowFunction, shapes: list[tuple[int, ...]], w: FloatArray, ridge: float, linear: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Values (K,), gradients (D, K), Hessians (K, D, D). Gradient: pairwise sums in a block, exact ones of blocks."""
    D, K = w.shape
    value, hessian = np.zeros(K), np.zeros((K, D, D))
    gradients: list[FloatArray] = []
    for rows, m, codes in vault.blocks():
        z, t, weights = _logistic_rows(evaluate(f, rows, m, shapes), m, _row_weights(vault, codes, m, 1.0), D, K)
        margin = t * (z @ w)
        slope = -t * expit(-margin) * weights
        value += (np.logaddexp(0, -margin) * weights).sum(axis=0)
        products = z.T[:, None, :] * np.ascontiguousarray(slope.T)[None]  # (D, K, m): pairwise along the last axis
        gradients.append(products.sum(axis=2).ravel())
        curvature = expit(margin) * expit(-margin) * weights
        for k in range(K):
            hessian[k] += (z * curvature[:, k : k + 1]).T @ z
    total = np.array([math.fsum(column) for column in zip(*gradients, strict=True)] or [0.0] * (D * K))
    gradient = total.reshape(D, K) + ridge * w + linear
    value += (ridge / 2 * w**2 + linear * w).sum(axis=0)
    return value, gradient, hessian + ridge * np.eye(D)


def _logistic_rows(
    values: tuple[FloatArray, ...], m: int, weights: FloatArray, D: int, K: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Features in the unit ball, signs of the targets, weights (m, K), of the rows of a block."""
    z, t = values[0].reshape(-1, D)[:m], values[1].reshape(-1, K)[:m]
    norm = np.array([math.sqrt(math.fsum(row)) for row in (z * z).tolist()])
    usable = np.isfinite(norm) & np.isfinite(t).all(axis=1)
    z = np.where(usable[:, None], z, 0.0) / np.maximum(1 + 1e-12, norm * (1 + 1e-12))[:, None]
    z = np.where(usable[:, None], z, 0.0)
    sign = np.where(usable[:, None], np.sign(t), 0.0)
    return z, sign, weights[:m, None] * np.abs(sign)


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
    return float((total * np.where(excess > 0, -np.expm1(-np.maximum(excess, 0)), 0.0)).sum()) + 1e-15
