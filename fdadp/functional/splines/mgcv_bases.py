"""Smooths of a number by mgcv's names of bases: thin plate, P-spline, cubic regression spline, cyclic."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import comb, factorial, gamma, pi, sqrt
from typing import Any

import numpy as np

from fdadp._common.argument_checks import is_one_of
from fdadp._common.typing import ArrayLike, FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.functional.splines.diagonal_margins import SmoothMargin

# Thin-plate regression splines of one variable: the best few of all functions that a full smoother would use.


MOST_CENTRES = 2000
FEW = 200
AT_ONCE = 2048
"""Points at which functions are computed, so that what is between stays in a core's cache."""

CELLS = 4
"""Even cells of the range for each centre: where few hold several, they tell most points' neighbours at once."""

CROWDED = 8
"""Centres in a cell above which the search is by halves."""


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
        centres, counts = np.unique(points, return_counts=True)
        if not isinstance(k, (int, np.integer)) or not order < k <= centres.size:
            raise InputError(
                f"{name} must be an integer above {order} and at most the number of different values, "
                f"{centres.size}, got {k!r}"
            )
        values = centres
        if centres.size > MOST_CENTRES:
            centres = centres[np.round(np.linspace(0, centres.size - 1, MOST_CENTRES)).astype(int)]
        mean = float(points.mean())
        bend, vectors = _largest(centres, order, k)
        # mgcv's choice among the orthonormal bases: Householder from the last function to the first.
        on_polynomials = vectors[:, ::-1].T @ _polynomials(centres, mean, order)
        free = _reflected(on_polynomials)[::-1, : order - 1 : -1]
        penalty = np.zeros((k, k))
        penalty[: k - order, : k - order] = free.T @ bend @ free
        raw = cls(centres, _pieces(centres, vectors @ free, order), mean, np.ones(k), penalty, order)
        parts = (slice(start, start + AT_ONCE) for start in range(0, values.size, AT_ONCE))
        scale = np.sqrt(sum(counts[part] @ raw.design(values[part]) ** 2 for part in parts) / points.size)
        return replace(raw, scale=scale, penalty=penalty / np.outer(scale, scale))

    @property
    def null(self) -> FloatArray:
        """Coefficients of the functions without a penalty, the constant first, shape (K, order)."""
        k = self.scale.size
        return np.asarray(np.eye(k)[:, k - self.order :] * self.scale[:, None])

    def design(self, x: ArrayLike) -> FloatArray:
        """All functions at points (n,), shape (n, K); polynomials of degree below `order` beyond the centres."""
        points = np.asarray(x, dtype=np.float64).ravel()
        most, k = 2 * self.order - 1, self.scale.size
        out, own = np.empty((points.size, k)), np.empty((AT_ONCE, k))
        for start in range(0, points.size, AT_ONCE):
            part, values = points[start : start + AT_ONCE], out[start : start + AT_ONCE]
            piece = self._piece(part)
            step = np.repeat(part - self.centres[np.maximum(piece - 1, 0)], k).reshape(-1, k)
            np.take(self._functions[most], piece, axis=0, out=values, mode="clip")
            for coefficients in self._functions[most - 1 :: -1]:
                values *= step
                values += np.take(coefficients, piece, axis=0, out=own[: part.size], mode="clip")
        return out

    @cached_property
    def _functions(self) -> FloatArray:
        """As :attr:`pieces`, of all functions and divided by their scale, shape (2 order, u + 1, K)."""
        out = np.zeros((*self.pieces.shape[:2], self.scale.size))
        out[..., : -self.order] = self.pieces
        left = np.r_[self.centres[0], self.centres] - self.mean
        for power in range(self.order):
            for derivative in range(power + 1):
                out[derivative, :, power - self.order] = comb(power, derivative) * left ** (power - derivative)
        return np.asarray(out / self.scale)

    def _piece(self, points: FloatArray) -> IntArray:
        """How many centres are at each point (n,) or to the left of it."""
        before, centres = self._before
        cell = self._cell(points)
        piece = before[cell]
        several = int((before[cell + 1] - piece).max(initial=0))
        if several > CROWDED:
            return np.searchsorted(self.centres, points, side="right")
        for _ in range(several):
            piece += centres[piece] <= points
        return piece

    @cached_property
    def _before(self) -> tuple[IntArray, FloatArray]:
        """How many centres are in the cells to the left of each, and the centres with NaN after them.

        A point in a later cell than a centre is to the right of it, rounding or not.
        """
        counts = np.bincount(self._cell(self.centres), minlength=CELLS * self.centres.size)
        return np.concatenate(([0], np.cumsum(counts))), np.append(self.centres, np.nan)

    def _cell(self, points: FloatArray) -> IntArray:
        first, last = self.centres[[0, -1]]
        width = (last - first) / (CELLS * self.centres.size - 1)
        return np.asarray((np.fmin(np.fmax(points, first), last) - first) / width, dtype=np.int64)


def _pieces(centres: FloatArray, to_radial: FloatArray, order: int) -> FloatArray:
    """Taylor coefficients of combinations of radial functions (u, K) at the centres; see :class:`ThinPlate`."""
    most = 2 * order - 1
    pieces = np.empty((most + 1, centres.size + 1, to_radial.shape[1]))
    for power, sums in enumerate(_sums_of_powers(centres, to_radial, most)):
        pieces[most - power, 1:] = _green(order) * comb(most, power) * sums
    pieces[:, 0] = pieces[:, 1]
    pieces[-1, 0] = 0.0  # polynomials below `order` beyond the data
    return pieces


def _green(order: int) -> float:
    """What ``|r|^(2 order - 1)`` is multiplied by in Green's function of the penalty: ``|r|³ / 12``, and so on."""
    return float(gamma(0.5 - order) / (2 ** (2 * order) * sqrt(pi) * factorial(order - 1)))


def _sums_of_powers(centres: FloatArray, values: FloatArray, most: int) -> list[FloatArray]:
    """``Σ_j ± (c_i - c_j)^power v_j`` at increasing centres, minus for those to the right, of all powers up to one.

    Values are of shape (u, K). Work is in proportion to u, and each sum has the digits that its terms have.
    """
    steps = np.diff(centres)[:, None]
    left, right = _from_the_left(steps, values, most), _from_the_left(steps[::-1], values[::-1], most)
    right[0] = right[0] - values[::-1]
    return [a - (-1) ** power * b[::-1] for power, (a, b) in enumerate(zip(left, right, strict=True))]


def _from_the_left(steps: FloatArray, values: FloatArray, most: int) -> list[FloatArray]:
    """The sums over ``j <= i``: from one centre to the next each power grows by lower ones (the binomial theorem)."""
    sums = [np.cumsum(values, axis=0)]
    for power in range(1, most + 1):
        grown = sums[0][:-1] * steps
        for lower in range(1, power):
            grown += comb(power, lower) * sums[lower][:-1]
            grown *= steps
        own = np.zeros(values.shape)
        np.cumsum(grown, axis=0, out=own[1:])
        sums.append(own)
    return sums


def _reflected(a: FloatArray) -> FloatArray:
    """Q (k, k) of Householder's QR of a (k, d), with the signs of numbers that are not rounding.

    Of evenly spaced centres half of the numbers are zero but for rounding, whose signs would choose the basis.
    """
    turn, left = np.eye(len(a)), a.copy()
    for j in range(a.shape[1]):
        own = np.where(np.abs(left[j:, j]) > 1e-9 * np.linalg.norm(left[j:, j]), left[j:, j], 0.0)
        step = np.linalg.qr(own[:, None], mode="complete")[0]
        left[j:], turn[:, j:] = step.T @ left[j:], turn[:, j:] @ step
    return turn


def _polynomials(x: FloatArray, mean: float, order: int) -> FloatArray:
    return np.vander(x - mean, order, increasing=True)


def _largest(centres: FloatArray, order: int, k: int) -> tuple[FloatArray, FloatArray]:
    """Radial functions at their centres in k of their eigenvectors, and these (u, k), of decreasing values.

    These k values are the largest in absolute value. As in mgcv all functions stay as they are where k is their number.
    """
    size = len(centres)
    if size <= max(FEW, 3 * k):
        values = _green(order) * np.abs(centres[:, None] - centres) ** (2 * order - 1)
        if size == k:
            return values, np.eye(k)
        eigenvalues, vectors = np.linalg.eigh(values)
    else:
        from scipy.sparse.linalg import LinearOperator, eigsh

        def times(values: FloatArray) -> FloatArray:
            return _green(order) * _sums_of_powers(centres, values.reshape(size, -1), 2 * order - 1)[-1]

        radial = LinearOperator((size, size), matvec=times, dtype=np.float64)
        eigenvalues, vectors = eigsh(radial, k=k, which="LM", v0=np.cos(np.arange(size)), tol=0)
    largest = np.argsort(-np.abs(eigenvalues))[:k]
    largest = largest[np.argsort(-eigenvalues[largest])]
    return np.diag(eigenvalues[largest]), vectors[:, largest]


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
    def _functions(self) -> Any:
        from scipy.interpolate import CubicSpline

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
