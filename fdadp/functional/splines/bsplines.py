"""B-splines: knots, designs with linear extrapolation, difference and derivative penalties."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fdadp._common.argument_checks import whole
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError

BLOCK = 4096
"""Points at a time."""


@dataclass(frozen=True)
class BSplines:
    """A B-spline basis on ``[lower, upper]``, continued linearly outside it.

    Build one with :meth:`uniform` (P-splines) or :meth:`clamped` (the basis of R's ``fda``).

    Attributes
    ----------
    knots : ndarray of shape (n_basis + degree + 1,)
    degree : int

    References
    ----------
    Eilers & Marx (1996), Flexible smoothing with B-splines and penalties, Statistical Science 11(2),
    doi:10.1214/ss/1038425655. Linear continuation as in ``mgcv::Predict.matrix.pspline.smooth``.

    Examples
    --------
    >>> basis = BSplines.uniform(0.0, 1.0, n_basis=7)
    >>> basis.design([0.0, 0.5, 1.2]).sum(axis=1)
    array([1., 1., 1.])
    """

    knots: FloatArray
    degree: int = 3

    @classmethod
    def uniform(
        cls, lower: float, upper: float, n_basis: int, *, degree: int = 3, margin: float = 1e-3, name: str = "n_basis"
    ) -> BSplines:
        """Evenly spaced knots, as in mgcv's ``bs="ps"`` and ``bs="bs"``.

        Parameters
        ----------
        lower, upper : float
            Range of the data, ``lower < upper``.
        n_basis : int
            Number of basis functions, at least ``degree + 1``.
        degree : int
            Degree of the polynomial pieces; mgcv's ``m[1] + 1`` for ``"ps"``, ``m[1]`` for ``"bs"``.
        margin : float
            The range is widened by this share of its length on both sides (mgcv: 0.001).
        name : str
            The argument's name in error messages.

        Raises
        ------
        InputError
            Empty range, or a basis too small for its degree.
        """
        n_basis, degree = _check_basis(lower, upper, n_basis, degree, name)
        length = upper - lower
        lower, upper = lower - margin * length, upper + margin * length
        h = (upper - lower) / (n_basis - degree)
        return cls(np.linspace(lower - degree * h, upper + degree * h, n_basis + degree + 1), degree)

    @classmethod
    def clamped(cls, lower: float, upper: float, n_basis: int, *, degree: int = 3, name: str = "n_basis") -> BSplines:
        """Repeated end knots and evenly spaced breaks, as in ``fda::create.bspline.basis``; see :meth:`uniform`.

        Raises
        ------
        InputError
            Empty range, or a basis too small for its degree.
        """
        n_basis, degree = _check_basis(lower, upper, n_basis, degree, name)
        breaks = np.linspace(lower, upper, n_basis - degree + 1)
        return cls(np.concatenate((np.full(degree, lower), breaks, np.full(degree, upper))), degree)

    @property
    def n_basis(self) -> int:
        """Number of basis functions."""
        return int(self.knots.size - self.degree - 1)

    @property
    def lower(self) -> float:
        """Left end of the interval on which the basis is a partition of unity."""
        return float(self.knots[self.degree])

    @property
    def upper(self) -> float:
        """Right end of that interval."""
        return float(self.knots[-self.degree - 1])

    def design(self, x: ArrayLike, derivative: int = 0) -> FloatArray:
        """Basis functions, or a derivative of them, at `x`.

        Parameters
        ----------
        x : array_like of shape (n,)
            Points; outside ``[lower, upper]`` each function goes on along its tangent.
        derivative : int
            Order of the derivative.

        Returns
        -------
        ndarray of shape (n, n_basis)
        """
        points = np.atleast_1d(np.asarray(x, dtype=np.float64))
        inside = np.clip(points, self.lower, self.upper)
        outside = points - inside
        values = self._derivative(inside, derivative)
        if outside.any():
            beyond = outside != 0
            if derivative == 0:
                values[beyond] += outside[beyond, None] * self._derivative(inside[beyond], 1)
            elif derivative > 1:
                values[beyond] = 0.0
        return values

    def _derivative(self, x: FloatArray, order: int) -> FloatArray:
        if order > self.degree:
            return np.zeros((x.size, self.n_basis))
        out, width = np.zeros((x.size, self.n_basis)), self.degree + 1
        for start in range(0, x.size, BLOCK):
            some, rows = x[start : start + BLOCK], out[start : start + BLOCK].reshape(-1)
            first = np.clip(np.searchsorted(self.knots, some, side="right") - width, 0, self.n_basis - width)
            around = self.knots[first + np.arange(1, 2 * self.degree + 1)[:, None]]
            at = np.arange(0, rows.size, self.n_basis) + first
            rows[at + np.arange(width)[:, None]] = _of_interval(around, some, order)
        return out

    def difference_penalty(self, order: int = 2) -> FloatArray:
        """``D'D`` with D the `order`-th difference: the P-spline penalty, shape (n_basis, n_basis)."""
        d = np.diff(np.eye(self.n_basis), n=order, axis=0)
        return np.asarray(d.T @ d, dtype=np.float64)

    def derivative_penalty(self, order: int = 2) -> FloatArray:
        """Inner products of the `order`-th derivatives on ``[lower, upper]``, exact; (n_basis, n_basis).

        Gauss-Legendre quadrature with ``degree + 1`` nodes between neighbouring knots integrates the
        piecewise polynomials exactly.
        """
        breaks = np.unique(self.knots[self.degree : self.knots.size - self.degree])
        nodes, weights = np.polynomial.legendre.leggauss(self.degree + 1)
        half = np.diff(breaks) / 2
        x = ((breaks[:-1] + breaks[1:]) / 2)[:, None] + half[:, None] * nodes
        values = self._derivative(x.ravel(), order)
        return np.asarray(values.T @ (values * (half[:, None] * weights).reshape(-1, 1)), dtype=np.float64)


@dataclass(frozen=True)
class PeriodicBSplines(BSplines):
    """B-splines on one period, ``[lower, upper]``, continued by points that are whole periods away.

    That combinations of them meet at the ends is up to their coefficients; see
    :meth:`fdadp.functional.splines.diagonal_margins.SmoothMargin.periodic`.
    """

    def wrapped(self, x: ArrayLike) -> FloatArray:
        """Points (n,) less whole periods, within ``[lower, upper]``."""
        points = np.atleast_1d(np.asarray(x, dtype=np.float64))
        inside = (points >= self.lower) & (points <= self.upper)
        return np.where(inside, points, self.lower + (points - self.lower) % (self.upper - self.lower))

    def design(self, x: ArrayLike, derivative: int = 0) -> FloatArray:
        """Basis functions, or a derivative of them, at `x`, as of :meth:`BSplines.design`."""
        return super().design(self.wrapped(x), derivative)


def _of_interval(knots: FloatArray, x: FloatArray, order: int) -> FloatArray:
    """Derivatives of the B-splines that are not zero at x (n,), shape (degree + 1, n), from 2 degree knots around it.

    De Boor's recursion with the bits of SciPy's ``BSpline``, whose package takes .15 s to load.
    """
    degree, found = len(knots) // 2, np.ones((1, x.size))
    for d in range(1, degree + 1):
        left, right, before = knots[degree - d : degree], knots[degree : degree + d], found
        found = np.zeros((d + 1, x.size))
        apart = np.where(right > left, right - left, np.inf)
        if d <= degree - order:
            share = before / apart
            found[1:] = share * (x - left)
            found[:-1] += share * (right - x)
        else:
            found[1:] = d * before / apart
            found[:-1] -= found[1:]
    return found


def _check_basis(lower: float, upper: float, n_basis: int, degree: int, name: str) -> tuple[int, int]:
    """Return both numbers as Python's integers, which do not overflow."""
    if not (np.isfinite(lower) and np.isfinite(upper) and lower < upper):
        raise InputError(f"the range of a basis must have lower < upper, got [{lower:g}, {upper:g}]")
    degree = whole(degree, "degree")
    if not hasattr(n_basis, "__index__") or isinstance(n_basis, bool | np.ndarray) or n_basis < degree + 1:
        raise InputError(f"{name} must be an integer of at least degree + 1 = {degree + 1}, got {n_basis!r}")
    return int(n_basis), degree
