"""Thin-plate regression splines of one variable: the best few of all functions that a full smoother would use."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import factorial, gamma, pi, sqrt

import numpy as np

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError

MOST_CENTRES = 2000
FEW = 200


@dataclass(frozen=True)
class ThinPlate:
    """Eigenvectors of the radial functions at the data with the largest eigenvalues, and polynomials.

    Attributes
    ----------
    centres : ndarray of shape (u,)
    pieces : ndarray of shape (2 order, u + 1, K - order)
        Between neighbouring centres every function is one polynomial: its Taylor coefficients at the centre to the
        left; first, those to the left of all centres.
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
    pieces: FloatArray
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
        eigenvalues, vectors = _largest(_radial(centres[:, None] - centres, order), k)
        # mgcv's choice among the orthonormal bases: Householder from the last function to the first.
        on_polynomials = vectors[:, ::-1].T @ _polynomials(centres, mean, order)
        free = np.linalg.qr(on_polynomials, mode="complete")[0][::-1, : order - 1 : -1]
        penalty = np.zeros((k, k))
        penalty[: k - order, : k - order] = free.T @ (eigenvalues[:, None] * free)
        raw = cls(centres, _pieces(centres, vectors @ free, order), mean, np.ones(k), penalty, order)
        scale = np.sqrt(np.mean(raw.design(points) ** 2, axis=0))
        return replace(raw, scale=scale, penalty=penalty / np.outer(scale, scale))

    @property
    def null(self) -> FloatArray:
        """Coefficients of the functions without a penalty, the constant first, shape (K, order)."""
        k = self.scale.size
        return np.asarray(np.eye(k)[:, k - self.order :] * self.scale[:, None])

    def design(self, x: ArrayLike) -> FloatArray:
        """All functions at points (n,), shape (n, K); polynomials of degree below `order` beyond the centres."""
        points = np.asarray(x, dtype=np.float64).ravel()
        piece = np.searchsorted(self.centres, points, side="right")
        step = (points - self.centres[np.maximum(piece - 1, 0)])[:, None]
        radial = np.zeros((points.size, self.pieces.shape[2]))
        for coefficients in self.pieces[::-1]:
            radial *= step
            radial += coefficients[piece]
        return np.hstack((radial, _polynomials(points, self.mean, self.order))) / self.scale


def _pieces(centres: FloatArray, to_radial: FloatArray, order: int) -> FloatArray:
    """Taylor coefficients of combinations of radial functions (u, K) at the centres; see :class:`ThinPlate`."""
    distance = centres[:, None] - centres
    side = np.where(distance >= 0, 1.0, -1.0)
    pieces = np.empty((2 * order, centres.size + 1, to_radial.shape[1]))
    for derivative, piece in enumerate(pieces):
        values = _radial(distance, order, derivative)
        if derivative % 2:
            values *= side
        piece[1:] = values @ to_radial / factorial(derivative)
        piece[0] = piece[1]
    pieces[-1, 0] = 0.0  # polynomials below `order` beyond the data
    return pieces


def _radial(distance: FloatArray, order: int, derivative: int = 0) -> FloatArray:
    """Green's function of the penalty at distances, ``|r|³ / 12`` for second derivatives; or a derivative of it."""
    power = 2 * order - 1
    constant = gamma(0.5 - order) / (2 ** (2 * order) * sqrt(pi) * factorial(order - 1))
    constant *= factorial(power) / factorial(power - derivative)
    values, length = np.full(distance.shape, constant), np.abs(distance)
    for _ in range(power - derivative):
        values *= length
    return values


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
