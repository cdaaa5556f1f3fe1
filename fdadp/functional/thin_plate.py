"""Thin-plate regression splines of one variable: the best few of all functions that a full smoother would use."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial, gamma, pi, sqrt

import numpy as np

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError

__all__ = ["ThinPlate"]

MOST_CENTRES = 2000
FEW = 200
BLOCK = 2048


@dataclass(frozen=True)
class ThinPlate:
    """Eigenvectors of the radial functions at the data with the largest eigenvalues, and polynomials.

    Attributes
    ----------
    centres : ndarray of shape (u,)
    to_radial : ndarray of shape (u, K - order)
        Coefficients of the radial functions.
    mean : float
        Subtracted from x in the polynomials.
    scale : ndarray of shape (K,)
        Every function is divided by it, so that its mean square over the data is 1.
    penalty : ndarray of shape (K, K)
        Integrated squared derivative of `order`.
    order : int

    References
    ----------
    Wood (2003), Thin plate regression splines, doi:10.1111/1467-9868.00374; mgcv's ``bs="tp"``. Of more than 2,000
    different values mgcv takes 2,000 at random as centres; here they are 2,000 evenly spaced ones in their order.
    """

    centres: FloatArray
    to_radial: FloatArray
    mean: float
    scale: FloatArray
    penalty: FloatArray
    order: int

    @classmethod
    def of(cls, x: ArrayLike, k: int, order: int = 2, *, name: str = "k") -> ThinPlate:
        """The `k` functions for points x.

        Parameters
        ----------
        x : array_like of shape (n,)
        k : int
            Number of functions, the polynomials among them.
        order : int
            Of the derivative in the penalty.
        name : str
            Of `k` in error messages.

        Raises
        ------
        InputError
            A number of functions that is not above `order`, or above the number of different values.
        """
        points = np.asarray(x, dtype=np.float64).ravel()
        centres = np.unique(points)
        if not isinstance(k, (int, np.integer)) or not order < k <= centres.size:
            raise InputError(
                f"{name} must be an integer above {order} and at most the number of different values, "
                f"{centres.size}, got {k!r}"
            )
        if centres.size > MOST_CENTRES:
            centres = centres[np.round(np.linspace(0, centres.size - 1, MOST_CENTRES)).astype(int)]
        mean = float(points.mean())
        eigenvalues, vectors = _largest(_radial(centres, centres, order), k)
        # mgcv's choice among the orthonormal bases: Householder from the last function to the first.
        on_polynomials = vectors[:, ::-1].T @ _polynomials(centres, mean, order)
        free = np.linalg.qr(on_polynomials, mode="complete")[0][::-1, : order - 1 : -1]
        penalty = np.zeros((k, k))
        penalty[: k - order, : k - order] = free.T @ (eigenvalues[:, None] * free)
        raw = cls(centres, np.asarray(vectors @ free), mean, np.ones(k), penalty, order)
        scale = np.sqrt(np.mean(raw.design(points) ** 2, axis=0))
        return cls(centres, raw.to_radial, mean, scale, penalty / np.outer(scale, scale), order)

    @property
    def null(self) -> FloatArray:
        """Coefficients of the functions without a penalty, the constant first, shape (K, order)."""
        k = self.scale.size
        return np.asarray(np.eye(k)[:, k - self.order :] * self.scale[:, None])

    def design(self, x: ArrayLike) -> FloatArray:
        """All functions at points (n,), shape (n, K)."""
        points = np.asarray(x, dtype=np.float64).ravel()
        rows = np.empty((points.size, self.scale.size))
        n_radial = self.to_radial.shape[1]
        for start in range(0, points.size, BLOCK):
            part = points[start : start + BLOCK]
            rows[start : start + BLOCK, :n_radial] = _radial(part, self.centres, self.order) @ self.to_radial
        rows[:, n_radial:] = _polynomials(points, self.mean, self.order)
        rows /= self.scale
        return rows


def _radial(x: FloatArray, centres: FloatArray, order: int) -> FloatArray:
    """Green's function of the penalty at distances, shape (n, u): ``|r|³ / 12`` for second derivatives."""
    constant = gamma(0.5 - order) / (2 ** (2 * order) * sqrt(pi) * factorial(order - 1))
    distance = np.abs(x[:, None] - centres)
    square = distance * distance
    for _ in range(order - 1):
        distance *= square
    distance *= constant
    return np.asarray(distance)


def _polynomials(x: FloatArray, mean: float, order: int) -> FloatArray:
    return np.vander(x - mean, order, increasing=True)


def _largest(matrix: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """The k eigenvalues of a symmetric matrix that are largest in absolute value, decreasing, and their vectors."""
    if len(matrix) <= max(FEW, 3 * k):
        eigenvalues, vectors = np.linalg.eigh(matrix)
    else:
        from scipy.sparse.linalg import eigsh

        start = np.cos(np.arange(len(matrix)))
        eigenvalues, vectors = eigsh(matrix, k=k, which="LM", v0=start, tol=0)
    largest = np.argsort(-np.abs(eigenvalues))[:k]
    largest = largest[np.argsort(-eigenvalues[largest])]
    return eigenvalues[largest], vectors[:, largest]
