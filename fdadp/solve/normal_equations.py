"""Normal equations ``A β = c`` with ``A = G + S``, S diagonal and not negative, however little G identifies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import lapack

from fdadp._common.typing import FloatArray
from fdadp.solve.search import ROUNDING

__all__ = ["Factor", "NormalEquations"]


@dataclass(frozen=True)
class Factor:
    """``A⁻¹ (p, p)``, the coefficients (p, K), log|A|, and ``A⁻¹G`` where it is known to more digits."""

    inverse: FloatArray
    beta: FloatArray
    log_det: float
    firm_hat: FloatArray | None

    def hat(self, gram: FloatArray) -> FloatArray:
        """``A⁻¹G``, shape (p, p)."""
        return self.inverse @ gram if self.firm_hat is None else self.firm_hat


class NormalEquations:
    """Of features with scatter `gram` (p, p) and their products `cross` (p, K) with K responses."""

    def __init__(self, gram: FloatArray, cross: FloatArray) -> None:
        self.gram, self.cross = gram, cross
        self.diagonal = np.maximum(gram.diagonal(), 0.0)

    def factor(self, penalty: FloatArray) -> Factor:
        """Solve for a penalty (p,), scaled to unit diagonal first so that extreme ones do no harm."""
        own = self.diagonal + penalty
        scale = 1 / np.sqrt(own)
        a = self.gram * (scale * scale[:, None])
        a.flat[:: len(a) + 1] = 1.0
        lower, info = lapack.dpotrf(a, lower=1, clean=1)
        # A squared pivot is what a coordinate adds to those before it; near the rounding it says nothing.
        pivots = lower.diagonal()
        if info == 0 and pivots.min() > 1e-5:
            root = lapack.dtrtri(lower, lower=1)[0] * scale
            inverse = root.T @ root
            return Factor(inverse, inverse @ self.cross, 2 * float(np.log(pivots / scale).sum()), None)
        # [R; S^½] has twice the digits of A = R'R + S.
        gram_root, rotated = self._root
        q, r = np.linalg.qr(np.vstack((gram_root * scale, np.diag(np.sqrt(penalty) * scale))))
        root = lapack.dtrtri(r.T, lower=1)[0] * scale
        towards = root.T @ q[: len(gram_root)].T
        log_det = 2 * float(np.log(np.abs(r.diagonal()) / scale).sum())
        return Factor(root.T @ root, towards @ rotated, log_det, towards @ gram_root)

    @cached_property
    def _root(self) -> tuple[FloatArray, FloatArray]:
        """R (r, p) and q (r, K) with ``R'R = G`` and ``R'q = c``: what of them is above the rounding of G."""
        values, vectors = np.linalg.eigh(self.gram)
        firm = values > ROUNDING * values[-1]
        size, axes = np.sqrt(values[firm])[:, None], vectors.T[firm]
        return size * axes, (axes @ self.cross) / size
