"""Tensor-product smooths as mgcv builds them (``te(x, s, bs="ps")``), in coordinates where both penalties are diagonal.

A margin is a B-spline basis with a difference penalty. Its coefficients are taken as function values at
evenly spread points (mgcv's ``np=TRUE``), its penalty has largest eigenvalue 1. The two penalties of the
product, ``S_x ⊗ I`` and ``I ⊗ S_s``, commute; in their common eigenbasis they are diagonal, so that the
log-determinant of ``λ_x S_x ⊗ I + λ_s I ⊗ S_s`` is a sum of logarithms, exact for any ratio of the λ.

Functions of s alone add the same constant to every response in an additive function-on-function model. They
are not identified, they are exactly the coordinates ``constant ⊗ ·`` of the eigenbasis, and are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.splines import BSplines

__all__ = ["Margin", "TensorProduct"]


@dataclass(frozen=True)
class Margin:
    """One margin of a tensor product.

    Attributes
    ----------
    basis : BSplines
    points : ndarray of shape (k,)
        Where the coefficients are function values.
    to_raw : ndarray of shape (k, k), or (k + degree, k) where the margin is cyclic
        B-spline coefficients = ``to_raw @ values`` (mgcv's XP).
    penalty : ndarray of shape (k, k)
        Difference penalty of the values, largest eigenvalue 1.
    rotation : ndarray of shape (k, k)
        Orthonormal eigenvectors of `penalty`; the first is the constant, then the rest of the null space.
    eigenvalues : ndarray of shape (k,)
        Exactly zero on the null space.
    """

    basis: BSplines
    points: FloatArray
    to_raw: FloatArray
    penalty: FloatArray
    rotation: FloatArray
    eigenvalues: FloatArray

    @classmethod
    def pspline(
        cls,
        lower: float,
        upper: float,
        n_basis: int,
        *,
        degree: int = 3,
        order: int = 2,
        margin: float = 1e-3,
        name: str = "n_basis",
    ) -> Margin:
        """P-spline margin on the data range ``[lower, upper]`` (mgcv: ``m = c(degree - 1, order)``).

        Raises
        ------
        InputError
            Empty range or a basis too small for the degree.
        """
        basis = BSplines.uniform(lower, upper, n_basis, degree=degree, margin=margin, name=name)
        n_basis, order = basis.n_basis, int(order)
        points = np.linspace(lower, upper, n_basis)
        to_raw = np.asarray(np.linalg.inv(basis.design(points)), dtype=np.float64)
        penalty = to_raw.T @ basis.difference_penalty(order) @ to_raw
        penalty /= np.linalg.eigvalsh(penalty)[-1]
        return cls._diagonal(basis, points, to_raw, penalty, order)

    @classmethod
    def cyclic(cls, lower: float, period: float, n_basis: int, *, degree: int = 3, name: str = "n_basis") -> Margin:
        """Periodic splines on even knots, with the integrated squared second derivative as penalty.

        Functions on ``[lower, lower + period]`` whose ends meet with all derivatives that the degree allows. For
        cubic ones this is mgcv's ``bs = "cc"`` with ``n_basis + 1`` even knots, of which the last is the first again.
        In terms of B-splines the last `degree` coefficients are the first ones.

        Raises
        ------
        InputError
            A period that is not above 0, or a basis too small for the degree.
        """
        basis = BSplines.uniform(lower, lower + period, n_basis + degree, degree=degree, margin=0.0, name=name)
        wrap = np.eye(n_basis)[np.arange(n_basis + degree) % n_basis]
        points = lower + period * np.arange(n_basis) / n_basis
        to_raw = wrap @ np.linalg.inv(basis.design(points) @ wrap)
        penalty = to_raw.T @ basis.derivative_penalty(min(2, degree)) @ to_raw
        penalty = (penalty + penalty.T) / 2
        penalty /= np.linalg.eigvalsh(penalty)[-1]
        return cls._diagonal(basis, points, to_raw, penalty, 1)

    @classmethod
    def _diagonal(
        cls, basis: BSplines, points: FloatArray, to_raw: FloatArray, penalty: FloatArray, order: int
    ) -> Margin:
        """Margin in the eigenbasis of a penalty whose null space holds the polynomials below `order`."""
        # QR keeps the constant first.
        centred = np.linspace(-1, 1, points.size)
        complete = np.linalg.qr(np.vander(centred, order, increasing=True), mode="complete")[0]
        null, rest = complete[:, :order], complete[:, order:]
        null[:, 0] = 1 / np.sqrt(points.size)
        eigenvalues, vectors = np.linalg.eigh(rest.T @ penalty @ rest)
        return cls(
            basis,
            points,
            to_raw,
            penalty,
            np.asarray(np.hstack((null, rest @ vectors)), dtype=np.float64),
            np.asarray(np.concatenate((np.zeros(order), eigenvalues)), dtype=np.float64),
        )

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return int(self.points.size)


@dataclass(frozen=True)
class TensorProduct:
    """The smooth F(x, s) with everything that is not identified left out.

    Attributes
    ----------
    x, s : Margin
    row_norm : float
        Largest row sum of absolute values of the basis over the data: scales the penalties as mgcv does.

    Notes
    -----
    Coordinates: *raw* B-spline coefficients (kx·ks), *values* F(x_l, s_l') at the margins' points (kx·ks), and
    *identified* ones γ ((kx-1)·ks), with ``values = rotation @ γ`` and ``raw = raw_rotation @ γ``.
    """

    x: Margin
    s: Margin
    row_norm: float

    @property
    def penalty_scales(self) -> FloatArray:
        """mgcv's ``S.scale``: each penalty is divided by it; shape (2,)."""
        norms = [np.abs(m.penalty).sum(axis=0).max() for m in (self.x, self.s)]
        return np.asarray(norms) / self.row_norm**2

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
        raw = np.kron(self.x.to_raw @ self.x.rotation[:, 1:], self.s.to_raw @ self.s.rotation)
        return np.asarray(raw, dtype=np.float64)

    def design(self, x: FloatArray, s: FloatArray) -> FloatArray:
        """Rows of the *values* basis at pairs (x_i, s_i): ``F = design @ values``; shape (n, kx·ks)."""
        bx = self.x.basis.design(x) @ self.x.to_raw
        bs = self.s.basis.design(s) @ self.s.to_raw
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
