"""Smooths of a number by mgcv's names of bases: thin plate, P-spline, cubic regression spline, cyclic."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fdadp._common.checks import is_one_of
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.functional.splines.margins import SmoothMargin
from fdadp.functional.splines.thin_plate import ThinPlate

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
    def _system(self) -> tuple[FloatArray, FloatArray]:
        """B and D of ``B f'' = D f``, continuity of first derivatives at the knots inside."""
        h, count = np.diff(self.knots), self.n_basis
        knots_inside = range(count) if self.cyclic else range(1, count - 1)
        b, d = np.zeros((len(knots_inside), count)), np.zeros((len(knots_inside), count))
        for row, j in enumerate(knots_inside):
            before, after = h[j - 1], h[j]  # of the first knot of a cycle the last interval is before
            for columns, size in ((j - 1, before), ((j + 1) % count, after)):
                b[row, columns] += size / 6
                d[row, columns] += 1 / size
            b[row, j] += (before + after) / 3
            d[row, j] -= 1 / before + 1 / after
        return (b, d) if self.cyclic else (b[:, 1:-1], d)

    @cached_property
    def curvature(self) -> FloatArray:
        """Second derivatives at the knots of all functions, shape (K, K)."""
        b, d = self._system
        inside = np.asarray(np.linalg.solve(b, d))
        return inside if self.cyclic else np.pad(inside, ((1, 1), (0, 0)))

    @property
    def penalty(self) -> FloatArray:
        """``∫ f''²`` as a quadratic form in values at the knots, shape (K, K)."""
        b, d = self._system
        form = d.T @ np.linalg.solve(b, d)
        return np.asarray((form + form.T) / 2)

    def design(self, x: ArrayLike) -> FloatArray:
        """All functions at points (n,), shape (n, K)."""
        points = np.asarray(x, dtype=np.float64).ravel()
        first, last = self.knots[0], self.knots[-1]
        inside = first + (points - first) % (last - first) if self.cyclic else np.clip(points, first, last)
        left = np.clip(np.searchsorted(self.knots, inside, side="right") - 1, 0, self.knots.size - 2)
        right, h = (left + 1) % self.n_basis, np.diff(self.knots)[left]
        down, up = self.knots[left + 1] - inside, inside - self.knots[left]
        bend_left, bend_right = (down**3 / h - h * down) / 6, (up**3 / h - h * up) / 6
        at_left, at_right = down / h, up / h
        if not self.cyclic:
            beyond = points - inside  # along the tangent
            at_left, at_right = at_left - beyond / h, at_right + beyond / h
            bend_right = bend_right - np.minimum(beyond, 0) * h / 6
            bend_left = bend_left + np.maximum(beyond, 0) * h / 6
        rows = bend_left[:, None] * self.curvature[left] + bend_right[:, None] * self.curvature[right]
        each = np.arange(points.size)
        rows[each, left] += at_left
        rows[each, right] += at_right
        return rows


Order = int | tuple[int, int] | None
"""mgcv's ``m``: of ``"ps"`` degree less one and order of differences, or one number for both; of ``"tp"`` the order of
the derivative in the penalty; None: 2."""

BASES = {
    "tp": "thin plate",
    "ps": "P-spline",
    "cr": "cubic regression spline",
    "cc": "cyclic cubic regression spline",
}


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
