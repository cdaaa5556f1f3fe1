"""Normal equations ``A β = c`` with ``A = G + S``, S diagonal and not negative, however little G identifies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from scipy.linalg import lapack, qr

from fdadp._common.typing import BoolArray, FloatArray, IntArray
from fdadp.solve.linear.bordered import ArrowFactor, factored, inverse_of

ROUNDING = 1e-12
"""A variance below this share of the largest is taken for rounding in the sums."""

FIRM = 1e-4
"""Least pivot of a Cholesky factor with unit diagonal: its square is what a coordinate adds to those before it."""


OWN_SCALE = 1e-20
"""Of features added up without centring: a variance above this share of the largest may be one in other units."""


ALIKE = 2.0**-20
"""Share of the largest scatter from which on a term is solved for in the same unit."""


class NormalEquations:
    """Of features with scatter `gram` (p, p) and their products `cross` (p, K) with K responses.

    Variances above the share `floor` of the largest are known to as many digits as the largest. Between `blocks` of
    the first coordinates the scatter is zero (:func:`fdadp.solve.linear.bordered.in_blocks`).
    """

    def __init__(self, gram: FloatArray, cross: FloatArray, floor: float = 1.0, blocks: Sequence[slice] = ()) -> None:
        self.gram, self.cross, self.floor, self.blocks = gram, cross, floor, blocks
        self.diagonal = np.maximum(gram.diagonal(), 0.0)

    def explained(self, penalties: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``c'A⁻¹c`` of every response (b, K) and log|A| (b,) for penalties (b, p); at a third of the cost of roots."""
        factors, log_det = self._factors(penalties)
        out = np.empty((len(penalties), self.cross.shape[1]))
        for i, factor in enumerate(factors):
            if factor is None:
                _, half, log_det[i] = self._from_roots(penalties[i])
            else:
                half = factor.halves(self.cross)
            out[i] = np.einsum("pk,pk->k", half, half)
        return out, log_det

    def firm(self, penalty: FloatArray) -> bool:
        """Whether a Cholesky factor of A keeps about half its digits."""
        return self._factors(penalty[None])[0][0] is not None

    def roots(self, penalties: FloatArray, responses: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Solve for penalties and one response each.

        Returns
        -------
        roots : ndarray of shape (b, p, p)
            ``root'root = A⁻¹``.
        halves : ndarray of shape (b, p)
            ``root @ c``: the coefficients are ``halves @ root``, and its squares add up to ``c'A⁻¹c``.
        log_det : ndarray of shape (b,)
            log|A|.
        """
        return self._solved(penalties, responses)[:3]

    def inverses(
        self, penalties: FloatArray, responses: IntArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return what :meth:`roots` does, and ``A⁻¹`` (b, p, p)."""
        roots, halves, log_det, weak = self._solved(penalties, responses)
        inverses = np.empty_like(roots)
        for i, root in enumerate(roots):
            inverse_of(root, () if i in weak else self.blocks, inverses[i])
        return roots, halves, log_det, inverses

    def _solved(
        self, penalties: FloatArray, responses: IntArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, list[int]]:
        factors, log_det = self._factors(penalties)
        roots = np.zeros((len(factors), *self.gram.shape))
        for root, factor in zip(roots, factors, strict=True):
            if factor is not None:
                factor.root(root)
        halves = (roots @ self.cross[:, responses].T[:, :, None])[..., 0]
        weak = [i for i, factor in enumerate(factors) if factor is None]
        for i in weak:
            roots[i], half, log_det[i] = self._from_roots(penalties[i])
            halves[i] = half[:, responses[i]]
        return roots, halves, log_det, weak

    def _factors(self, penalties: FloatArray) -> tuple[list[ArrowFactor | None], FloatArray]:
        """Cholesky factors of A with unit diagonal, None where they say too little, and log|A| of the others."""
        scales = 1 / np.sqrt(self.diagonal + penalties)
        factors = [factored(self.gram, scale, self.blocks) for scale in scales]
        pivots = np.array([np.zeros(len(self.gram)) if own is None else own.pivots for own in factors])
        firm = pivots.min(axis=1, initial=1.0) > FIRM
        log_det = 2 * np.log(np.where(firm[:, None], pivots, 1.0) / scales).sum(axis=1)
        return [own if is_firm else None for own, is_firm in zip(factors, firm, strict=True)], log_det

    def _from_roots(self, penalty: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        return from_roots(*self._root, penalty)

    @cached_property
    def _root(self) -> tuple[FloatArray, FloatArray]:
        """R (r, p) and q (r, K) with ``R'R = G`` and ``R'q = c``: what of them is above the rounding of G."""
        own = np.sqrt(np.maximum(self.diagonal / (float(self.diagonal.max()) or 1.0), self.floor))
        values, vectors = np.linalg.eigh(self.gram / own / own[:, None])
        firm = values > ROUNDING * values[-1]
        size, axes = np.sqrt(values[firm])[:, None], vectors.T[firm]
        return size * axes * own, (axes @ (self.cross / own[:, None])) / size


def from_roots(gram_root: FloatArray, rotated: FloatArray, penalty: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Solve from the roots, ``A = [R; S^½]'[R; S^½]``, which have twice the digits of A.

    With the rows in order of size and pivoting of columns a light penalty keeps its digits beside heavy ones and
    beside the data, so that directions that only this penalty holds are as exact as others (Cox & Higham 1998,
    Stability of Householder QR factorization for weighted least squares problems).

    Parameters
    ----------
    gram_root : ndarray of shape (r, p)
        R with ``R'R = G``.
    rotated : ndarray of shape (r, K)
        q with ``R'q = c`` for each response.
    penalty : ndarray of shape (p,)

    Returns
    -------
    root : ndarray of shape (p, p)
        ``root'root = A⁻¹``.
    halves : ndarray of shape (p, K)
        The coefficients are ``halves' root``.
    log_det : float
        log|A|.
    """
    rows = np.vstack((gram_root, np.diag(np.sqrt(penalty))))
    right = np.vstack((rotated, np.zeros((len(penalty), rotated.shape[1]))))
    order = np.argsort(-np.abs(rows).max(axis=1), kind="stable")
    q, r, pivot = qr(rows[order], mode="economic", pivoting=True)
    root = lapack.dtrtri(r.T, lower=1)[0][:, np.argsort(pivot)]
    return root, q.T @ right[order], 2 * float(np.log(np.abs(r.diagonal())).sum())


def identified(
    gram: FloatArray, penalties: FloatArray, tolerance: float = 1e-10, floor: float | None = None
) -> BoolArray:
    """Which coordinates the data, or a penalty, identify.

    Only coordinates that no penalty touches can be unidentified. A pivoted Cholesky factor of their block of the
    scatter stops where what is left of a coordinate, given those before it, is below `tolerance` of its own variance
    or, where it is below the share `floor` of the largest variance of all, of that. Among equals the first stay.

    Parameters
    ----------
    gram : ndarray of shape (p, p)
        Scatter of the features.
    penalties : ndarray of shape (M, p)
        Non-negative diagonals.
    tolerance : float
    floor : float, optional
        Default: `ROUNDING` of the largest variance is rounding, whichever the coordinate.

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
        least = (ROUNDING / tolerance if floor is None else floor) * float(own.max()) or 1.0
        scale = np.sqrt(np.maximum(own[free], least))
        correlation = gram[np.ix_(free, free)] / scale / scale[:, None]
        correlation.flat[:: free.size + 1] = np.minimum(
            own[free] / least, 1.0
        )  # exact: among equals the first is first
        _, order, rank, _ = lapack.dpstrf(correlation, tol=tolerance)
        keep[free[order[rank:] - 1]] = False
    return keep


def units_of(gram: FloatArray, sizes: Sequence[int]) -> FloatArray:
    """Powers of 2 (p,) that bring terms of far smaller scatter to that of the largest.

    Multiplied by them coordinates lose no digits. Terms within :data:`ALIKE` of the largest stay as they are.
    """
    own, out = gram.diagonal(), np.ones(len(gram))
    most = float(own.max(initial=0.0))
    for stop, size in zip(np.cumsum(sizes), sizes, strict=True):
        largest = float(own[stop - size : stop].max(initial=0.0))
        if 0 < largest < ALIKE * most < np.inf:
            out[stop - size : stop] = 2.0 ** np.round((np.log2(most) - np.log2(largest)) / 2)
    return out
