"""Tensor products of two P-spline margins in mgcv's coordinates, beside which ours are compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.splines.diagonal_margins import SmoothMargin


def te_margin(low: float, high: float, k: int) -> SmoothMargin:
    """A margin of ``te(..., bs="ps")``: cubic splines, second differences."""
    return SmoothMargin.pspline((low, high), k, (2, 2), values=True)


@dataclass(frozen=True)
class TensorProduct:
    """The smooth F(x, s) as mgcv builds it (``te(x, s, bs="ps")``), what is not identified left out.

    Functions of s alone add the same to every response in ``gam(y ~ te(X, S, by = L))``: they are the coordinates
    ``constant ⊗ ·`` of the margins' eigenvectors.

    Attributes
    ----------
    x, s : SmoothMargin
    row_norm : float
        Largest row sum of absolute values of the basis over the data: scales the penalties as mgcv does.

    Notes
    -----
    Coordinates: *raw* B-spline coefficients (kx·ks), *values* F(x_l, s_l') at the margins' points (kx·ks), and
    *identified* ones γ ((kx-1)·ks), with ``values = rotation @ γ`` and ``raw = raw_rotation @ γ``.
    """

    x: SmoothMargin
    s: SmoothMargin
    row_norm: float

    @property
    def penalty_scales(self) -> FloatArray:
        """mgcv's ``S.scale``: each penalty is divided by it; shape (2,)."""
        return np.array([self.x.penalty_norm, self.s.penalty_norm]) / self.row_norm**2

    @property
    def penalties(self) -> FloatArray:
        """Diagonals of the two penalties in identified coordinates; shape (2, p)."""
        in_x = np.repeat(self.x.eigenvalues[1:], self.s.size)
        in_s = np.tile(self.s.eigenvalues, self.x.size - 1)
        return np.vstack((in_x, in_s)) / self.penalty_scales[:, None]

    @property
    def rotation(self) -> FloatArray:
        """From identified coordinates to values; shape (kx·ks, p)."""
        return np.asarray(np.kron(self.x.rotation[:, 1:], self.s.rotation), dtype=np.float64)

    @property
    def raw_rotation(self) -> FloatArray:
        """From identified coordinates to raw B-spline coefficients; shape (kx·ks, p)."""
        return np.asarray(np.kron(self.x.to_raw[:, 1:], self.s.to_raw), dtype=np.float64)

    def design(self, x: FloatArray, s: FloatArray) -> FloatArray:
        """Rows of the *values* basis at pairs (x_i, s_i): ``F = design @ values``; shape (n, kx·ks)."""
        bx = self.x.basis.design(x) @ self.x.to_basis
        bs = self.s.basis.design(s) @ self.s.to_basis
        return np.asarray((bx[:, :, None] * bs[:, None, :]).reshape(len(bx), -1))

    def mgcv_coordinates(self, constraint: FloatArray, dropped: int = 0) -> FloatArray:
        """mgcv's coordinates: columns of Z that absorb ``constraint @ values = 0``, less the last `dropped` ones."""
        q = np.linalg.qr(np.asarray(constraint, dtype=np.float64).reshape(-1, 1), mode="complete")[0]
        return np.asarray(q[:, 1 : q.shape[1] - dropped])

    def mgcv_score_offset(self, coordinates: FloatArray, n: int) -> float:
        """What mgcv's REML score adds to ours because its coordinates are not orthonormal to the null space.

        Both scores are the same function of the smoothing parameters up to this constant. It applies where
        mgcv's coordinates have full rank (see :meth:`mgcv_coordinates`); `n` enters through the intercept.
        """
        null = np.column_stack([np.kron(self.x.rotation[:, 0], v) for v in self.s.rotation.T[self.s.eigenvalues == 0]])
        every = np.kron(self.x.rotation, self.s.rotation)
        penalised = (self.x.eigenvalues[:, None] + self.s.eigenvalues[None, :]).ravel() > 0
        range_ = every[:, penalised].T @ coordinates
        identified = np.linalg.qr(null, mode="complete")[0][:, null.shape[1] :].T @ coordinates
        log_s = np.linalg.slogdet(range_ @ range_.T)[1]
        log_a = np.linalg.slogdet(identified @ identified.T)[1]
        return float((np.log(n) + log_a - log_s) / 2)
