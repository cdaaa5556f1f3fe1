"""One-dimensional smooths in coordinates where their penalty is diagonal: the margins of every term.

A tensor product of such margins has penalties that are all diagonal at once, and a sum-to-zero constraint is "drop the
constant's coordinate and subtract the mean of the others". Fits, degrees of freedom, REML (up to a constant) and the
covariance of all that is identified are those of mgcv, without its constrained coordinates.

References
----------
Wood (2017), Generalized Additive Models, sections 5.4.1 and 5.6, doi:10.1201/9781315370279; Wood, Scheipl & Faraway
(2013), Straightforward intermediate rank tensor product smoothing in mixed models, doi:10.1007/s11222-012-9314-z.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from fdadp._common.argument_checks import several
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.functional.splines.bsplines import BSplines, PeriodicBSplines

FEWEST_PERIODIC = 3
"""Periodic functions at least, as in mgcv."""


class Basis(Protocol):
    """Functions of one variable."""

    def design(self, x: ArrayLike) -> FloatArray:
        """All functions at points (n,), shape (n, K)."""


@dataclass(frozen=True)
class Constant:
    """The function 1."""

    def design(self, x: ArrayLike) -> FloatArray:
        """Ones, shape (n, 1)."""
        return np.ones((np.size(x), 1))


@dataclass(frozen=True)
class SmoothMargin:
    """A basis with a penalty, turned into the eigenvectors of the penalty.

    Attributes
    ----------
    basis : Basis
        K functions.
    to_basis : ndarray of shape (K, k)
        From mgcv's coordinates to coefficients of the basis (its XP where ``np=TRUE``).
    penalty : ndarray of shape (k, k)
        In mgcv's coordinates.
    rotation : ndarray of shape (k, p)
        Orthonormal eigenvectors of the penalty: p = k, or fewer where constraints took some away.
    eigenvalues : ndarray of shape (p,)
        Exactly zero where nothing is penalised; a constant among the functions comes first.
    shift : ndarray of shape (p,) or None
        What is subtracted from the rotated functions: their means over the points of a sum-to-zero constraint.
    """

    basis: Basis
    to_basis: FloatArray
    penalty: FloatArray
    rotation: FloatArray
    eigenvalues: FloatArray
    shift: FloatArray | None = None

    @classmethod
    def constant(cls) -> SmoothMargin:
        """The margin of what does not vary."""
        one = np.ones((1, 1))
        return cls(Constant(), one, np.zeros((1, 1)), one, np.zeros(1))

    @classmethod
    def pspline(
        cls,
        x: ArrayLike,
        k: int,
        m: tuple[int, int] = (2, 1),
        *,
        values: bool = False,
        name: str = "k",
        sums_to_zero_over: ArrayLike | None = None,
        margin: float = 1e-3,
    ) -> SmoothMargin:
        """P-spline of degree ``m[0] + 1`` with a difference penalty of order ``m[1]`` on the range of `x` (mgcv: "ps").

        Parameters
        ----------
        x : array_like
            Points whose range it covers.
        k : int
            Number of functions, before any constraint.
        m : (int, int)
        values : bool
            Coefficients are values at even points and the penalty has largest eigenvalue 1 (mgcv's ``te``, ``ti``).
        name : str
            Of the argument in error messages.
        sums_to_zero_over : array_like, optional
            The margin of a ``ti`` that is centred over these points *before* that: one function fewer. For a smooth
            that is centred after it (``s``), see :meth:`centred`.
        margin : float
            By which the outermost knots lie beyond the range, as a share of it (mgcv: 1e-3).

        Raises
        ------
        InputError
            An empty range, or a basis too small for its degree.
        """
        points = np.asarray(x, dtype=np.float64)
        low, high = float(points.min()), float(points.max())
        if low == high:
            raise InputError(f"{name} is for a variable with two different values or more, got {low:g} alone")
        several(m, 2, "m")
        basis = BSplines.uniform(low, high, k, degree=m[0] + 1, margin=margin, name=name)
        even = basis.design(np.linspace(low, high, basis.n_basis))
        polynomials = np.vander(np.linspace(-1, 1, basis.n_basis), m[1], increasing=True)
        return cls.of(
            basis,
            basis.difference_penalty(m[1]),
            np.asarray(np.linalg.solve(even, polynomials)),
            values_on=(low, high) if values else None,
            normalised=values,
            sums_to_zero_over=sums_to_zero_over,
        )

    @classmethod
    def periodic(cls, lower: float, period: float, k: int, degree: int = 3, *, name: str = "k") -> SmoothMargin:
        """Periodic splines on even knots, with the integrated squared second derivative as penalty.

        Functions on ``[lower, lower + period]`` whose ends meet with all derivatives that the degree allows;
        coefficients are values at even points: the knots, or those midway where the degree is even (at the knots an
        even number of values would not tell such functions apart). For cubic ones this is mgcv's ``bs = "cc"`` with
        ``k + 1`` even knots, of which the last is the first again. Of the B-splines the last `degree` coefficients are
        the first ones. Points beyond are those whole periods away.

        Raises
        ------
        InputError
            A period that is not above 0, or a basis too small for the degree.
        """
        if not hasattr(k, "__index__") or isinstance(k, bool | np.ndarray) or k < FEWEST_PERIODIC:
            raise InputError(f"{name} must be an integer of at least {FEWEST_PERIODIC} with a period, got {k!r}")
        basis = PeriodicBSplines.uniform(lower, lower + period, k + degree, degree=degree, margin=0.0, name=name)
        wrap = np.eye(k)[np.arange(k + degree) % k]
        at = lower + period * (np.arange(k) + (0.5 if degree % 2 == 0 else 0.0)) / k
        to_basis = wrap @ np.linalg.inv(basis.design(at) @ wrap)
        penalty = to_basis.T @ basis.derivative_penalty(min(2, degree)) @ to_basis
        penalty = penalty / np.linalg.eigvalsh((penalty + penalty.T) / 2)[-1]
        return diagonalised(basis, to_basis, penalty, 1, np.ones((k, 1)))

    @classmethod
    def of(
        cls,
        basis: Basis,
        penalty: FloatArray,
        null: FloatArray,
        *,
        values_on: tuple[float, float] | None = None,
        normalised: bool = False,
        sums_to_zero_over: ArrayLike | None = None,
    ) -> SmoothMargin:
        """Any basis with a penalty, in mgcv's coordinates and in those of the penalty's eigenvectors.

        Parameters
        ----------
        basis : Basis
            K functions.
        penalty : ndarray of shape (K, K)
        null : ndarray of shape (K, d)
            Coefficients of functions without a penalty, the constant first.
        values_on : (float, float), optional
            Coefficients are values at even points of this interval (margins of ``te`` and ``ti``), if these tell the
            functions. They do not where functions of values that are symmetric sum to zero, at an odd number of points.
        normalised : bool
            The penalty has largest eigenvalue 1 (margins of ``te`` and ``ti``).
        sums_to_zero_over : array_like, optional
            Points over which functions sum to zero, a constraint that comes before all of this.
        """
        to_basis, n_null = np.eye(len(penalty)), null.shape[1]
        if sums_to_zero_over is not None:
            total = basis.design(sums_to_zero_over).sum(axis=0)
            to_basis, n_null = np.linalg.qr(total[:, None], mode="complete")[0][:, 1:], n_null - 1
        if values_on is not None:
            values = basis.design(np.linspace(*values_on, to_basis.shape[1])) @ to_basis
            if 1 / np.linalg.cond(values) > np.finfo(float).eps ** 0.66:  # as mgcv: else these values say too little
                to_basis = to_basis @ np.linalg.inv(values)
        penalty = to_basis.T @ penalty @ to_basis
        if normalised:
            penalty = penalty / np.linalg.eigvalsh(penalty)[-1]
        if sums_to_zero_over is not None:
            return diagonalised(basis, to_basis, penalty, n_null)
        return diagonalised(basis, to_basis, penalty, n_null, np.asarray(np.linalg.solve(to_basis, null)))

    def centred(self, points: ArrayLike) -> SmoothMargin:
        """Sum to zero over `points`: without the constant, the first function."""
        return self.less(self.basis.design(points).mean(axis=0))

    def less(self, means: FloatArray) -> SmoothMargin:
        """The same from the means of the basis over the points, shape (K,)."""
        rest = replace(self, rotation=self.rotation[:, 1:], eigenvalues=self.eigenvalues[1:], shift=None)
        return replace(rest, shift=means @ rest.to_raw)

    @property
    def size(self) -> int:
        """Number of coordinates p."""
        return int(self.eigenvalues.size)

    @property
    def period(self) -> float | None:
        """After which its functions come again; None: never."""
        basis = self.basis
        return basis.upper - basis.lower if isinstance(basis, PeriodicBSplines) else None

    @property
    def penalised(self) -> bool:
        """Whether it has a smoothing parameter."""
        return bool((self.eigenvalues > 0).any())

    @property
    def penalty_norm(self) -> float:
        """Largest column sum of the penalty in mgcv's coordinates, the numerator of its ``S.scale``."""
        return float(np.abs(self.penalty).sum(axis=0).max())

    @cached_property
    def to_raw(self) -> FloatArray:
        """From coordinates to coefficients of the basis, shape (K, p)."""
        return np.ascontiguousarray(self.to_basis @ self.rotation)

    @cached_property
    def from_mgcv(self) -> FloatArray:
        """From coefficients in mgcv's coordinates to these, shape (p, p)."""
        if self.shift is None or self.rotation.shape[1] == len(self.rotation):
            return self.rotation.T
        # Sums over the points of the constraint, from those of our functions and of the constant, which is left out.
        constant = np.linalg.qr(self.rotation, mode="complete")[0][:, -1]
        value = float((self.basis.design(np.zeros(1)) @ self.to_basis @ constant).item())
        sums = self.rotation @ self.shift + value * constant
        return np.asarray(self.rotation.T @ np.linalg.qr(sums[:, None], mode="complete")[0][:, 1:])

    def design(self, x: ArrayLike) -> FloatArray:
        """The functions at points, shape (n, p)."""
        rows = self.basis.design(x) @ self.to_raw
        return rows if self.shift is None else rows - self.shift

    def row_sums(self, x: ArrayLike) -> FloatArray:
        """Sums of absolute values of the rows of mgcv's design, before its constraints, shape (n,)."""
        return self.row_sums_of(self.basis.design(x))

    def row_sums_of(self, rows: FloatArray) -> FloatArray:
        """The same from the functions of the basis at the points (n, K)."""
        own = rows @ self.to_basis
        return np.asarray(np.abs(own, out=own) @ np.ones(self.to_basis.shape[1]))

    def row_norm(self, x: ArrayLike) -> float:
        """Largest of them."""
        return float(self.row_sums(x).max())


def diagonalised(
    basis: Basis, to_basis: FloatArray, penalty: FloatArray, n_null: int, null: FloatArray | None = None
) -> SmoothMargin:
    """The margin in the eigenbasis of its penalty.

    Parameters
    ----------
    basis : Basis
    to_basis : ndarray of shape (K, k)
    penalty : ndarray of shape (k, k)
    n_null : int
        Dimension of its null space.
    null : ndarray of shape (k, n_null), optional
        A basis of it, the constant first; default: as the eigenvectors come.
    """
    penalty = (penalty + penalty.T) / 2
    eigenvalues, vectors = np.linalg.eigh(penalty)
    eigenvalues = np.concatenate((np.zeros(n_null), np.maximum(eigenvalues[n_null:], 0.0)))
    if null is not None and n_null:
        vectors = np.linalg.qr(np.hstack((null, vectors[:, n_null:])))[0]
        vectors[:, 0] *= np.sign(vectors[:, 0].sum())
    return SmoothMargin(basis, to_basis, penalty, np.ascontiguousarray(_even_or_odd(vectors)), eigenvalues)


def _even_or_odd(vectors: FloatArray) -> FloatArray:
    """Orthonormal vectors, each of which is the same from either end but for its sign, without rounding in this.

    Others stay as they are.
    """
    turned = vectors[::-1]
    signs = np.sign((vectors * turned).sum(axis=0))
    if not (np.abs(turned * signs - vectors) < 1e-9).all():
        return vectors
    whole = (vectors + turned * signs) / 2
    return np.asarray(whole / np.linalg.norm(whole, axis=0))


# Functions that are known on a grid, between its points by straight lines or by cubic splines.


@dataclass(frozen=True)
class Interpolated:
    """A basis of K functions.

    Attributes
    ----------
    grid : ndarray of shape (T,)
        Increasing.
    functions : ndarray of shape (T, K)
    smooth : bool
        By cubic splines, of points within the grid; else by straight lines, beyond the grid as at its ends.
    """

    grid: FloatArray
    functions: FloatArray
    smooth: bool = False

    def design(self, x: ArrayLike) -> FloatArray:
        """All functions at points (n,), shape (n, K)."""
        points = np.asarray(x, dtype=np.float64)
        if np.array_equal(points, self.grid):
            return self.functions
        if self.smooth:
            from scipy.interpolate import CubicSpline

            return np.asarray(CubicSpline(self.grid, self.functions)(points), dtype=np.float64)
        return np.stack([np.interp(points, self.grid, f) for f in self.functions.T], axis=1)


def margin_of(grid: FloatArray, functions: FloatArray, *, smooth: bool = False) -> SmoothMargin:
    """Functions (T, K) on a grid, which may be smooth between its points, as a margin without a penalty."""
    k = functions.shape[1]
    return SmoothMargin(Interpolated(grid, functions, smooth), np.eye(k), np.zeros((k, k)), np.eye(k), np.zeros(k))
