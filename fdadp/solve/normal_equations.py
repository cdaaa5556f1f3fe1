"""Normal equations ``A β = c`` with ``A = G + S``, S diagonal and not negative, however little G identifies."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.linalg import lapack, qr, solve_triangular

from fdadp._common.typing import BoolArray, FloatArray, IntArray

__all__ = ["Factor", "NormalEquations", "identified"]

ROUNDING = 1e-12
"""A variance below this share of the largest is taken for rounding in the sums."""

FIRM = 1e-4
"""Least pivot of a Cholesky factor with unit diagonal: its square is what a coordinate adds to those before it."""


class Factor:
    """A = L L' in scaled and perhaps reordered coordinates; what is not asked for is not computed.

    Attributes
    ----------
    beta : ndarray of shape (p, K)
        The coefficients ``A⁻¹ c``.
    log_det : float
        log|A|.
    """

    def __init__(self, lower: FloatArray, scale: FloatArray, beta: FloatArray, order: IntArray | None = None) -> None:
        self._lower, self._scale, self._order, self.beta = lower, scale, order, beta
        self.log_det = 2 * float(np.log(np.abs(lower.diagonal()) / scale).sum())

    @cached_property
    def inverse(self) -> FloatArray:
        """``A⁻¹``, shape (p, p)."""
        root = lapack.dtrtri(self._lower, lower=1)[0] * self._scale
        if self._order is not None:
            root = root[:, np.argsort(self._order)]
        return np.asarray(root.T @ root)


class NormalEquations:
    """Of features with scatter `gram` (p, p) and their products `cross` (p, K) with K responses."""

    def __init__(self, gram: FloatArray, cross: FloatArray) -> None:
        self.gram, self.cross = gram, cross
        self.diagonal = np.maximum(gram.diagonal(), 0.0)

    def factor(self, penalty: FloatArray) -> Factor:
        """Solve for a penalty (p,), scaled to unit diagonal first so that extreme ones do no harm."""
        scale = 1 / np.sqrt(self.diagonal + penalty)
        a = self.gram * (scale * scale[:, None])
        a.flat[:: len(a) + 1] = 1.0
        lower, info = lapack.dpotrf(a, lower=1, clean=1)
        if info == 0 and lower.diagonal().min(initial=1.0) > FIRM:
            solved = lapack.dpotrs(lower, self.cross * scale[:, None], lower=1)[0]
            return Factor(lower, scale, solved * scale[:, None])
        return self._firm_factor(penalty)

    def _firm_factor(self, penalty: FloatArray) -> Factor:
        """Solve from roots, ``A = [R; S^½]'[R; S^½]``, which have twice the digits of A.

        With the rows in order of size and pivoting of columns a light penalty keeps its digits beside heavy ones and
        beside the data, so that directions that only this penalty holds are as exact as others (Cox & Higham 1998,
        Stability of Householder QR factorization for weighted least squares problems).
        """
        gram_root, rotated = self._root
        rows = np.vstack((gram_root, np.diag(np.sqrt(penalty))))
        right = np.vstack((rotated, np.zeros((len(penalty), rotated.shape[1]))))
        order = np.argsort(-np.abs(rows).max(axis=1), kind="stable")
        q, r, pivot = qr(rows[order], mode="economic", pivoting=True)
        beta = np.empty((len(penalty), rotated.shape[1]))
        beta[pivot] = solve_triangular(r, q.T @ right[order])
        return Factor(r.T, np.ones(len(penalty)), beta, pivot)

    @cached_property
    def _root(self) -> tuple[FloatArray, FloatArray]:
        """R (r, p) and q (r, K) with ``R'R = G`` and ``R'q = c``: what of them is above the rounding of G."""
        values, vectors = np.linalg.eigh(self.gram)
        firm = values > ROUNDING * values[-1]
        size, axes = np.sqrt(values[firm])[:, None], vectors.T[firm]
        return size * axes, (axes @ self.cross) / size


def identified(gram: FloatArray, penalties: FloatArray, tolerance: float = 1e-10) -> BoolArray:
    """Which coordinates the data, or a penalty, identify.

    Only coordinates that no penalty touches can be unidentified. A pivoted Cholesky factor of their block of the
    scatter stops where what is left of a coordinate, given those before it, is below `tolerance` of its own variance
    or below `ROUNDING` of the largest variance of all. Among equals the first stay.

    Parameters
    ----------
    gram : ndarray of shape (p, p)
        Scatter of the features.
    penalties : ndarray of shape (M, p)
        Non-negative diagonals.
    tolerance : float

    Returns
    -------
    ndarray of shape (p,), bool

    References
    ----------
    Wood (2011), section 3.1 and appendix B, doi:10.1111/j.1467-9868.2010.00749.x, drops the same directions.
    """
    keep = np.ones(len(gram), dtype=bool)
    free = np.flatnonzero((penalties == 0).all(axis=0))
    if free.size:
        own = gram.diagonal()
        least = ROUNDING / tolerance * float(own.max()) or 1.0
        scale = np.sqrt(np.maximum(own[free], least))
        _, order, rank, _ = lapack.dpstrf(gram[np.ix_(free, free)] / scale / scale[:, None], tol=tolerance)
        keep[free[order[rank:] - 1]] = False
    return keep
