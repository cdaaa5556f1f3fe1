"""What several rooms do with symmetric matrices."""

from __future__ import annotations

import numpy as np

from fdadp._common.typing import FloatArray


def positive_part(matrix: FloatArray) -> FloatArray:
    """The nearest positive semidefinite matrix: negative eigenvalues become 0. Shape (..., K, K).

    References
    ----------
    Higham (1988), Computing a nearest symmetric positive semidefinite matrix, doi:10.1016/0024-3795(88)90223-6.
    """
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0.0)[..., None, :]) @ np.swapaxes(vectors, -1, -2))


def inverse_root(gram: FloatArray, least: float) -> FloatArray:
    """R of shape (p, r) with ``R' G R = I``, and R R' the inverse, in the directions that a Gram matrix knows of.

    Columns are scaled to one size first. Directions with less than the share `least` of the largest information are
    left out.
    """
    scale = np.sqrt(np.diag(gram))
    scale = np.where(scale > 0, 1 / np.where(scale > 0, scale, 1.0), 0.0)
    values, vectors = np.linalg.eigh(gram * np.outer(scale, scale))
    there = values > least * max(float(values[-1]), 0.0) if values.size else np.zeros(0, dtype=bool)
    return np.asarray(scale[:, None] * vectors[:, there] / np.sqrt(values[there]))


def symmetric_root(matrix: FloatArray) -> FloatArray:
    """The symmetric R with R R the positive part of a matrix (K, K); rounding, which signs eigenvectors, leaves it."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def root_of(matrix: FloatArray) -> FloatArray:
    """R with R R' the positive part of a symmetric matrix: eigenvectors times roots of eigenvalues. Shape (K, K)."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
