"""Normal equations ``A β = c`` with ``A = G + S``, S diagonal and not negative, however little G identifies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import lapack, qr

from fdadp._common.typing import BoolArray, FloatArray, IntArray

__all__ = ["Factor", "Factors", "NormalEquations", "identified"]

ROUNDING = 1e-12
"""A variance below this share of the largest is taken for rounding in the sums."""

FIRM = 1e-4
"""Least pivot of a Cholesky factor with unit diagonal: its square is what a coordinate adds to those before it."""


@dataclass
class Factor:
    """A as a triangle, in coordinates that are scaled and perhaps in another order.

    Attributes
    ----------
    lower : ndarray of shape (p, p)
    scale : ndarray of shape (p,)
    half : ndarray of shape (p, K)
        ``root @ c``, so that ``c'A⁻¹c`` is the sum of its squares.
    order : ndarray of shape (p,), optional
        The coordinates of the triangle.
    """

    lower: FloatArray
    scale: FloatArray
    half: FloatArray
    order: IntArray | None = None

    @cached_property
    def root(self) -> FloatArray:
        """``root'root = A⁻¹``, shape (p, p)."""
        root = lapack.dtrtri(self.lower, lower=1)[0] * self.scale
        return np.asarray(root if self.order is None else root[:, np.argsort(self.order)])

    @property
    def inverse(self) -> FloatArray:
        """``A⁻¹``, shape (p, p)."""
        return np.asarray(self.root.T @ self.root)


class Factors(list[Factor]):
    """For several penalties."""

    @cached_property
    def log_det(self) -> FloatArray:
        """log|A| of each, shape (b,)."""
        pivots = np.stack([factor.lower.diagonal() / factor.scale for factor in self])
        return np.asarray(2 * np.log(np.abs(pivots)).sum(axis=1))

    @property
    def roots(self) -> FloatArray:
        """Shape (b, p, p)."""
        return np.stack([factor.root for factor in self])

    def halves(self, responses: IntArray) -> FloatArray:
        """Of one response each, shape (b, p)."""
        return np.stack([factor.half[:, response] for factor, response in zip(self, responses, strict=True)])


class NormalEquations:
    """Of features with scatter `gram` (p, p) and their products `cross` (p, K) with K responses."""

    def __init__(self, gram: FloatArray, cross: FloatArray) -> None:
        self.gram, self.cross = gram, cross
        self.diagonal = np.maximum(gram.diagonal(), 0.0)

    def factors(self, penalties: FloatArray) -> Factors:
        """Factor A for penalties (b, p), scaled to unit diagonal first so that extreme ones do no harm."""
        scales = 1 / np.sqrt(self.diagonal + penalties)
        scaled = self.gram * scales[:, None, :] * scales[:, :, None]
        np.einsum("bii->bi", scaled)[...] = 1.0
        out = Factors()
        for a, scale, penalty in zip(scaled, scales, penalties, strict=True):
            lower, info = lapack.dpotrf(a.T, lower=1, overwrite_a=1)
            if info == 0 and lower.diagonal().min(initial=1.0) > FIRM:
                half = lapack.dtrtrs(lower, self.cross * scale[:, None], lower=1)[0]
                out.append(Factor(lower, scale, half))
            else:
                out.append(self._firm_factor(penalty))
        return out

    def _firm_factor(self, penalty: FloatArray) -> Factor:
        """Factor ``A = [R; S^½]'[R; S^½]`` from these roots, which have twice the digits of A.

        With the rows in order of size and pivoting of columns a light penalty keeps its digits beside heavy ones and
        beside the data, so that directions that only this penalty holds are as exact as others (Cox & Higham 1998,
        Stability of Householder QR factorization for weighted least squares problems).
        """
        gram_root, rotated = self._root
        rows = np.vstack((gram_root, np.diag(np.sqrt(penalty))))
        right = np.vstack((rotated, np.zeros((len(penalty), rotated.shape[1]))))
        order = np.argsort(-np.abs(rows).max(axis=1), kind="stable")
        q, r, pivot = qr(rows[order], mode="economic", pivoting=True)
        return Factor(r.T, np.ones(len(penalty)), q.T @ right[order], pivot)

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
