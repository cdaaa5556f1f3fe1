"""Minimisers of regularised losses over persons: what :meth:`Cohort.perturbed_minimum` reads the private rows for.

*Least squares.* ``θ = argmin over |θ|_F <= B of ½ Σ |θ'f - r|² + (Λ/2)|θ|²`` with |f| <= C, |r| <= R. The objective is
Λ-strongly convex and the set convex, so the two variational inequalities give, for one person more or less,
``|θ - θ'| <= |∇ℓ(θ)|/Λ <= C (B C + R)/Λ``: no number of persons is in it. Proof, and what the ball
is for: ``docs/theory/learners.md#output-perturbation``.
The sums are exact integers; the solution's rounding error is at most 10 D n u relative to that bound (backward
stability of the symmetric eigenproblem), and 0.1 % more noise covers it while D n < 10¹¹.

*Logistic regression*: :mod:`fdadp.privacy._logistic`.

Sources: Chaudhuri, Monteleoni & Sarwate (2011), JMLR 12 (output perturbation); Iyengar et al. (2019),
doi:10.1109/SP.2019.00001 (noise on an approximate minimum).
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import PrivacyError
from fdadp.privacy._local import BLOCK, RowFunction, evaluate, silence
from fdadp.privacy._placed import AnyVault
from fdadp.privacy._rows import quantise_rows
from fdadp.privacy._vault import Vault
from fdadp.privacy.boundary import sealed

__all__ = [
    "GRADIENT_ERROR",
    "SMALLEST_RIDGE",
    "check_rounding",
    "least_squares",
    "length_of",
    "person_weights",
    "row_weights",
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


def person_weights(vault: Vault, power: float) -> FloatArray | None:
    """(rows of a person)^-power, and 0 for nobody, whose code is -1; None where every row is a person."""
    if not vault.grouped:
        return None
    return np.array([*(1.0 / c**power if c else 0.0 for c in vault.row_counts.tolist()), 0.0])


def row_weights(persons: FloatArray | None, codes: IntArray, m: int) -> FloatArray:
    """Weights of the rows of a block."""
    weights = np.zeros(BLOCK)
    weights[:m] = 1.0 if persons is None else persons[codes[:m]]
    return weights


@sealed
def least_squares(
    vault: AnyVault,
    f: RowFunction,
    shapes: list[tuple[int, ...]],
    *,
    clip: float,
    target_clip: float,
    ridge: float,
    radius: float,
) -> FloatArray:
    """Ridge solution in a ball of the Frobenius norm, shape (D, K); a person with m rows counts 1/m for each."""
    D = math.prod(shapes[0])
    task = partial(_lattice_products, f=f, shapes=shapes, clip=clip, target_clip=target_clip)
    total = vault.total(task).reshape(D, -1)
    unit = 2.0**-_BITS
    with silence():
        gram = np.asarray(total[:, :D], dtype=np.float64) * (clip * unit) ** 2
        cross = np.asarray(total[:, D:], dtype=np.float64) * (clip * unit * target_clip * unit)
        return _in_ball(gram, cross, ridge, radius)


@sealed
def _lattice_products(
    vault: Vault, f: RowFunction, shapes: list[tuple[int, ...]], *, clip: float, target_clip: float
) -> IntArray:
    """Σ over rows of features times features and targets, (D (D + K),), in steps of both lattices; exact integers."""
    D, K = math.prod(shapes[0]), math.prod(shapes[1])
    gram, cross = np.zeros((D, D), dtype=np.int64), np.zeros((D, K), dtype=np.int64)
    features, targets = np.empty((BLOCK, D)), np.empty((BLOCK, K))
    with silence():
        persons = person_weights(vault, 0.5)
        for rows, m, codes in vault.blocks():
            a, b = evaluate(f, rows, m, shapes)
            weights = row_weights(persons, codes, m)
            quantise_rows(
                a.reshape(-1, D), b.reshape(-1, K), m, weights, clip, target_clip, 2.0**_BITS, features, targets
            )
            gram += (features[:m].T @ features[:m]).astype(np.int64)  # exact, whatever the order
            cross += (features[:m].T @ targets[:m]).astype(np.int64)
    return np.hstack([gram, cross]).ravel()


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
