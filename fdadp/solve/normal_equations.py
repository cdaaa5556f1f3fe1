"""Normal equations ``A β = c`` with ``A = G + S``, S diagonal and not negative, however little G identifies."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.linalg import lapack

from fdadp._common.typing import FloatArray
from fdadp.solve.search import ROUNDING

__all__ = ["Factor", "NormalEquations"]


class Factor:
    """A = L L' in coordinates of unit diagonal; what is not asked for is not computed.

    Attributes
    ----------
    beta : ndarray of shape (p, K)
        The coefficients ``A⁻¹ c``.
    log_det : float
        log|A|.
    """

    def __init__(self, lower: FloatArray, scale: FloatArray, beta: FloatArray) -> None:
        self._lower, self._scale, self.beta = lower, scale, beta
        self.log_det = 2 * float(np.log(np.abs(lower.diagonal()) / scale).sum())

    @cached_property
    def inverse(self) -> FloatArray:
        """``A⁻¹``, shape (p, p)."""
        root = lapack.dtrtri(self._lower, lower=1)[0] * self._scale
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
        # A squared pivot is what a coordinate adds to those before it; near the rounding it says nothing.
        if info == 0 and lower.diagonal().min(initial=1.0) > 1e-5:
            solved = lapack.dpotrs(lower, self.cross * scale[:, None], lower=1)[0]
            return Factor(lower, scale, solved * scale[:, None])
        # [R; S^½] has twice the digits of A = R'R + S.
        gram_root, rotated = self._root
        q, r = np.linalg.qr(np.vstack((gram_root * scale, np.diag(np.sqrt(penalty) * scale))))
        solved = lapack.dtrtrs(r, q[: len(gram_root)].T @ rotated)[0]
        return Factor(r.T, scale, solved * scale[:, None])

    @cached_property
    def _root(self) -> tuple[FloatArray, FloatArray]:
        """R (r, p) and q (r, K) with ``R'R = G`` and ``R'q = c``: what of them is above the rounding of G."""
        values, vectors = np.linalg.eigh(self.gram)
        firm = values > ROUNDING * values[-1]
        size, axes = np.sqrt(values[firm])[:, None], vectors.T[firm]
        return size * axes, (axes @ self.cross) / size
