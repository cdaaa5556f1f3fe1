"""One draw from Bingham's law on the sphere: the exponential mechanism over directions.

Density ∝ exp(u'Su/scale) on |u| = 1. Exact rejection from the angular central Gaussian law (Kent, Ganeiber & Mardia
2018, doi:10.1080/10618600.2017.1390468): with A = (λ_max I - S)/scale and b the root of Σ 1/(b + 2 λ_i(A)) = 1, propose
u = z/|z|, z ~ N(0, Ω⁻¹), Ω = I + 2A/b, and accept with probability

    exp(-u'Au) (u'Ωu)^(d/2) e^((d-b)/2) (b/d)^(d/2).

The exponent d/2 is positive: divided by that power instead, as some libraries have it, the draws are about three times
too concentrated, and rarely accepted.

*What is not exact.* Eigenvectors, proposals and probabilities are computed in floating point (53 bits): the law is
Bingham's up to relative errors of that size, which the sensitivity's slack in ``Cohort.principal_directions`` does not
prove away. The number of proposals depends on the eigenvalues, hence so does the time that a draw takes: an
observer of the clock is not covered by the guarantee.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

from fdadp._common.typing import FloatArray, IntArray

UNIT = 2.0**30
"""A direction is given as integers, of this length."""
_BATCH = 32


def order_of(size: int) -> int:
    """Order of the symmetric matrix whose triangle has so many entries."""
    return int((np.sqrt(8.0 * size + 1) - 1) / 2 + 0.5)


def triangle(order: int) -> tuple[IntArray, IntArray]:
    """Rows and columns of the entries on and above the diagonal, row by row."""
    rows, columns = np.triu_indices(order)
    return rows.astype(np.int64), columns.astype(np.int64)


def matrix_of(entries: IntArray) -> FloatArray:
    """Symmetric matrix of the Frobenius norm of its coordinates: the upper triangle, times √2 off the diagonal."""
    d = order_of(len(entries))
    rows, columns = triangle(d)
    S = np.zeros((d, d))
    S[rows, columns] = S[columns, rows] = np.where(rows == columns, 1.0, np.sqrt(0.5)) * entries
    return S


def bingham(entries: IntArray, scale: float, uniform: Callable[[int], FloatArray]) -> IntArray:
    """Draw a direction.

    Parameters
    ----------
    entries : ndarray of shape (d (d + 1)/2,)
        Upper triangle of S, times √2 off the diagonal.
    scale : float
    uniform : callable
        From a number to so many independent uniform values in (0, 1).

    Returns
    -------
    ndarray of shape (d,)
        The direction times :data:`UNIT`, rounded.
    """
    values, axes = np.linalg.eigh(matrix_of(entries))
    d = len(values)
    penalty = (values[-1] - values) / scale
    low, high = 1.0, float(d)
    for _ in range(200):
        b = (low + high) / 2
        if not low < b < high:
            break
        low, high = (b, high) if (1 / (b + 2 * penalty)).sum() > 1 else (low, b)
    b = low
    width = 1 / np.sqrt(1 + 2 * penalty / b)
    bound = (d - b) / 2 - d / 2 * np.log(d / b)
    while True:
        z = ndtri(uniform(_BATCH * d)).reshape(_BATCH, d) * width
        u = z / np.sqrt((z * z).sum(axis=1, keepdims=True))
        t = (u * u) @ penalty
        accepted = np.log(uniform(_BATCH)) < -t + d / 2 * np.log1p(2 * t / b) + bound
        if accepted.any():
            direction: FloatArray = axes @ u[int(np.argmax(accepted))]
            return np.rint(direction * UNIT).astype(np.int64)
