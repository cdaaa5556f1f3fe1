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


def root_of(matrix: FloatArray) -> FloatArray:
    """R with R R' the positive part of a symmetric matrix: eigenvectors times roots of eigenvalues. Shape (K, K)."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
