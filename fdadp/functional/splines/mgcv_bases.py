"""Smooths of a number by mgcv's names of bases: thin plate, P-spline, cubic regression spline, cyclic."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import comb, factorial, gamma, pi, sqrt
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

from fdadp._common.argument_checks import is_one_of
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.functional.splines.diagonal_margins import SmoothMargin

# Thin-plate regression splines of one variable: the best few of all functions that a full smoother would use.


MOST_CENTRES = 2000
FEW = 200
SUMMED = 32
"""Neighbouring centres of which one has sums over all."""
AT_ONCE = 2048
"""Points at which functions are computed, so that what is between stays in a core's cache."""

ROWS = 16
"""Of the radial functions at all centres that are computed at once, for the same reason."""


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
        radial = np.empty((centres.size, centres.size))
        for start in range(0, centres.size, ROWS):
            radial[start : start + ROWS] = _radial(centres[start : start + ROWS, None] - centres, order)
        eigenvalues, vectors = _largest(radial, k)
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
        if points.size > AT_ONCE and np.unique(points[:AT_ONCE]).size < 0.9 * AT_ONCE:  # rounded: each value once
            points, at = np.unique(points, return_inverse=True)
            return np.asarray(self.design(points)[at])
        out, own = np.empty((points.size, self.scale.size)), np.empty((AT_ONCE, self.pieces.shape[2]))
        for start in range(0, points.size, AT_ONCE):
            part = points[start : start + AT_ONCE]
            piece = np.searchsorted(self.centres, part, side="right")
            step = (part - self.centres[np.maximum(piece - 1, 0)])[:, None]
            radial = np.take(self.pieces[-1], piece, axis=0)
            for coefficients in self.pieces[-2::-1]:
                radial *= step
                radial += np.take(coefficients, piece, axis=0, out=own[: part.size], mode="clip")
            out[start : start + AT_ONCE] = np.hstack((radial, _polynomials(part, self.mean, self.order)))
        out /= self.scale
        return out


def _pieces(centres: FloatArray, to_radial: FloatArray, order: int) -> FloatArray:
    """Taylor coefficients of combinations of radial functions (u, K) at the centres; see :class:`ThinPlate`.

    The highest derivative jumps at each centre by a multiple of its coefficient, and each polynomial begins where the
    one before it ends: sums over all centres are needed at a few of them alone.
    """
    most = 2 * order - 1
    jumps = 2 * float(_radial(np.zeros(1), order, most)[0]) / factorial(most) * to_radial
    pieces = np.empty((most + 1, centres.size + 1, to_radial.shape[1]))
    for first in range(0, centres.size, SUMMED):
        own = slice(first + 1, first + 1 + SUMMED)
        part, steps = pieces[:, own], np.diff(centres[first : first + SUMMED])[:, None]
        distance = centres[first] - centres
        for derivative in range(most, -1, -1):
            side = np.where(distance >= 0, 1.0, -1.0) ** derivative
            start = (side * _radial(distance, order, derivative)) @ to_radial / factorial(derivative)
            ahead = jumps[own][: steps.size] if derivative == most else np.zeros((steps.size, to_radial.shape[1]))
            for power in range(most, derivative, -1):
                ahead = (ahead + comb(power, derivative) * part[power, :-1]) * steps
            part[derivative, 0] = start
            part[derivative, 1:] = start + np.cumsum(ahead, axis=0)
    pieces[:, 0] = pieces[:, 1]
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


# Cubic splines whose coefficients are their values at the knots: natural ones and periodic ones.


@dataclass(frozen=True)
class CubicSplines:
    """Cubic splines by their values at knots, with the integrated squared second derivative as penalty.

    Attributes
    ----------
    knots : ndarray of shape (K,), or (K + 1,) where cyclic
        Increasing; of cyclic splines the last one is the first one again, a period later.
    cyclic : bool
        Periodic (mgcv's ``bs="cc"``); otherwise natural: linear beyond the knots (``bs="cr"``).

    References
    ----------
    Lancaster & Salkauskas (1986), Curve and Surface Fitting, sections 4.3 and 4.7; Wood (2017), Generalized Additive
    Models, section 5.3.1, doi:10.1201/9781315370279.
    """

    knots: FloatArray
    cyclic: bool = False

    @property
    def n_basis(self) -> int:
        """Number K of functions."""
        return int(self.knots.size) - int(self.cyclic)

    @cached_property
    def _functions(self) -> CubicSpline:
        values = np.eye(self.n_basis)
        if self.cyclic:
            return CubicSpline(self.knots, np.vstack((values, values[:1])), bc_type="periodic")
        return CubicSpline(self.knots, values, bc_type="natural")

    @property
    def penalty(self) -> FloatArray:
        """``∫ f''²`` as a quadratic form in values at the knots, shape (K, K)."""
        bend, h = self._functions(self.knots, 2), np.diff(self.knots)[:, None]
        if not self.cyclic:
            bend[[0, -1]] = 0.0
        left, right = bend[:-1], bend[1:]  # the second derivative is linear between knots
        form = left.T @ (h / 3 * left) + right.T @ (h / 3 * right) + left.T @ (h / 3 * right)
        return np.asarray((form + form.T) / 2)

    def design(self, x: ArrayLike) -> FloatArray:
        """All functions at points (n,), shape (n, K)."""
        points = np.asarray(x, dtype=np.float64).ravel()
        first, last = self.knots[[0, -1]]
        if self.cyclic:
            return np.asarray(self._functions(first + (points - first) % (last - first)))
        inside = np.clip(points, first, last)  # beyond, along the tangent
        return np.asarray(self._functions(inside) + (points - inside)[:, None] * self._functions(inside, 1))


Order = int | tuple[int, int] | None
"""mgcv's ``m``: of ``"ps"`` degree less one and order of differences, or one number for both; of ``"tp"`` the order of
the derivative in the penalty; None: 2."""

BASES = {"tp": "thin plate", "ps": "P-spline", "cr": "cubic regression spline", "cc": "cyclic cubic regression spline"}


def covariate_margin(
    z: ArrayLike,
    k: int,
    bs: str = "tp",
    m: Order = None,
    *,
    name: str,
    tensor: bool = False,
    sums_to_zero: bool = False,
    period: tuple[float, float] | None = None,
) -> SmoothMargin:
    """A margin over the values of a number.

    Parameters
    ----------
    z : array_like of shape (n,)
        Training values.
    k : int
        Number of functions before constraints; of ``"cc"`` number of knots, the first and the last being the same.
    bs : {"tp", "ps", "cr", "cc"}
    m : int, (int, int) or None
        See :data:`Order`.
    name : str
        Of the term, for error messages.
    tensor : bool
        In the coordinates of a margin of ``te`` or ``ti``.
    sums_to_zero : bool
        Functions sum to zero over z, a margin of ``ti``.
    period : (float, float), optional
        Of ``"cc"``: the ends of the cycle; default: the range of z.

    Raises
    ------
    InputError
        An unknown basis, a number of functions that z cannot carry, or values of z that are all the same.
    """
    values = np.asarray(z, dtype=np.float64)
    low, high = float(values.min()), float(values.max())
    if not is_one_of(bs, tuple(BASES)):
        hint = "; for random effects use re()" if bs == "re" else ""
        raise InputError(f"bs of {name} must be one of {', '.join(map(repr, BASES))}, got {bs!r}{hint}")
    if not low < high:
        raise InputError(f"{name} must have a column that varies, got {low:g} in all rows")
    if period is not None and bs != "cc":
        raise InputError(f"period of {name} must come with bs='cc', got bs={bs!r}")
    over = values if sums_to_zero else None
    options: dict[str, Any] = {"normalised": tensor, "sums_to_zero_over": over}
    if bs == "ps":
        pair = (m, m) if isinstance(m, int) else (2, 2) if m is None else m
        _check_order(pair, m, name)
        return SmoothMargin.pspline(values, k, pair, values=tensor, name=f"k of {name}", sums_to_zero_over=over)
    if bs == "tp":
        order = 2 if m is None else m
        _check_order((order,), m, name)
        basis = ThinPlate.of(values, k, int(np.ravel(order)[0]), name=f"k of {name}")
        on = (low, high) if tensor else None
        return SmoothMargin.of(basis, basis.penalty, basis.null, values_on=on, **options)
    if m not in (None, 2):
        raise InputError(f"m of {name} must be 2 or None with bs={bs!r}, got {m!r}")
    splines = CubicSplines(_knots(values, k, bs, period, name), cyclic=bs == "cc")
    ones = np.ones(splines.n_basis)
    null = ones[:, None] if splines.cyclic else np.column_stack((ones, splines.knots - splines.knots.mean()))
    return SmoothMargin.of(splines, splines.penalty, null, **options)


def _check_order(orders: Any, m: Order, name: str) -> None:
    if not isinstance(orders, tuple) or not all(isinstance(o, (int, np.integer)) and o >= 1 for o in orders):
        raise InputError(f"m of {name} must be a whole number of at least 1, or of P-splines a pair of them, got {m!r}")


def _knots(z: FloatArray, k: int, bs: str, period: tuple[float, float] | None, name: str) -> FloatArray:
    """mgcv's: evenly spaced among the different values."""
    least = 4 if bs == "cc" else 3
    if period is not None:
        if not period[0] <= z.min() <= z.max() <= period[1]:
            raise InputError(
                f"period of {name} must be an interval that holds all values, [{z.min():g}, {z.max():g}], got {period}"
            )
        z = np.concatenate((z, period))
    different = np.unique(z)
    if not isinstance(k, (int, np.integer)) or not least <= k <= different.size:
        raise InputError(
            f"k of {name} must be an integer of at least {least} and at most the number of different values, "
            f"{different.size}, got {k!r}"
        )
    return np.asarray(np.quantile(different, np.linspace(0, 1, k)))
