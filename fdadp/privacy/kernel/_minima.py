"""Minimisers of regularised losses over persons: what :meth:`Cohort.perturbed_minimum` reads the private rows for.

*Least squares.* ``θ = argmin over |θ|_F <= B of ½ Σ |θ'f - r|² + (Λ/2)|θ|²`` with |f| <= C, |r| <= R. The objective is
Λ-strongly convex and the set convex, so the two variational inequalities give, for one person more or less,
``|θ - θ'| <= |∇ℓ(θ)|/Λ <= C (B C + R)/Λ``: no number of persons is in it. Proof, and what the ball
is for: ``docs/theory/learners.md#output-perturbation``.
The sums are exact integers, however many rows there are. A solution found in floating point is checked in exact
arithmetic (:meth:`fdadp.privacy.kernel._ridge.Ridge.error`), and where the check fails the search goes on in decimals.
So what is computed is always within ``SOLUTION_ERROR`` of that bound from the exact solution, which 0.1 % more noise
covers.

*Logistic regression*: :mod:`fdadp.privacy.kernel._logistic`.

Sources: Chaudhuri, Monteleoni & Sarwate (2011), JMLR 12 (output perturbation); Iyengar et al. (2019),
doi:10.1109/SP.2019.00001 (noise on an approximate minimum).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.privacy.boundary import sealed
from fdadp.privacy.kernel._ridge import Ridge
from fdadp.privacy.rows._local import BLOCK, RowFunction, evaluate, silence
from fdadp.privacy.rows._placed import AnyVault
from fdadp.privacy.rows._rows import quantise_rows
from fdadp.privacy.rows._vault import Vault

_BITS = 18
"""Products of two lattice values, and sums of them over a block, are exact in floats."""
_LIMB = 32
"""Bits of a sum that are kept in one int64; the rest in a second one."""
GRADIENT_ERROR = 1e-5
"""Bound on the gradient's norm at the returned point: half for the stopping rule, half for rounding."""
SOLUTION_ERROR = 5e-4
"""Bound on how far a returned ridge solution is from the exact one, in units of a person's influence."""
SMALLEST_RIDGE = 0.01
"""Of the logistic loss: with less, rounding would be felt."""


def steps_from_real(kind: str, size: int) -> float:
    """Lattice steps, at most, between a linear term as it is drawn and one of the law in real numbers.

    A spherical one is a real one rounded. A discrete Gaussian is one whose coordinates moved by discrete Gaussians of
    sd 4 about it (docs/theory/accounting.md#lattice): by more than 4 (√D + 30) with probability below 10⁻¹⁹⁰, which is
    a part of δ.
    """
    return math.sqrt(size) if kind == "spherical" else 4 * (math.sqrt(size) + 30)


def to_lattice(point: FloatArray, step: float) -> IntArray:
    """Nearest multiples of a step, as integers; what is out of reach of int64 is cut off, which moves nothing apart."""
    with silence():
        return np.rint(np.clip(np.nan_to_num(point / step), -(2.0**61), 2.0**61)).astype(np.int64)


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
    step: float,
) -> IntArray:
    """Ridge solution in a ball of the Frobenius norm, (D, K), in steps; a person with m rows counts 1/m for each."""
    D = math.prod(shapes[0])
    task = partial(_lattice_products, f=f, shapes=shapes, clip=clip, target_clip=target_clip)
    low, high = vault.total(task).reshape(2, D, -1).astype(object)
    total = low + high * 2**_LIMB
    unit = Fraction(clip) / 2**_BITS
    problem = Ridge(total[:, :D], total[:, D:], unit**2, unit * Fraction(target_clip) / 2**_BITS, ridge, radius)
    with silence():
        return problem.solved(SOLUTION_ERROR * clip * (radius * clip + target_clip) / ridge, step)


@sealed
def _lattice_products(
    vault: Vault, f: RowFunction, shapes: list[tuple[int, ...]], *, clip: float, target_clip: float
) -> IntArray:
    """Σ over rows of features times features and targets, (2 D (D + K),), in steps of both lattices; exact integers.

    First the low bits of each sum, then the high ones: exact for fewer than 2^59 rows.
    """
    D, K = math.prod(shapes[0]), math.prod(shapes[1])
    low, high = np.zeros((2, D, D + K), dtype=np.int64)
    features, targets = np.empty((BLOCK, D)), np.empty((BLOCK, K))
    with silence():
        persons = person_weights(vault, 0.5)
        for rows, m, codes in vault.blocks():
            a, b = evaluate(f, rows, m, shapes)
            weights = row_weights(persons, codes, m)
            quantise_rows(
                a.reshape(-1, D), b.reshape(-1, K), m, weights, clip, target_clip, 2.0**_BITS, features, targets
            )
            both = np.hstack([features[:m], targets[:m]])
            low += (features[:m].T @ both).astype(np.int64)  # exact, whatever the order
            high += low >> _LIMB
            low &= 2**_LIMB - 1
    return np.stack([low, high]).ravel()
