"""Smooths of a number by mgcv's names of bases: thin plate, P-spline, cubic regression spline, cyclic."""

from __future__ import annotations

from typing import Any

import numpy as np

from fdadp._common.checks import is_one_of
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.functional.cubic import CubicSplines
from fdadp.functional.smooths import SmoothMargin
from fdadp.functional.thin_plate import ThinPlate

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
