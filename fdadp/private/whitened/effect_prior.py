"""Prior of the coefficients of a term: a Gaussian process on the axes of its coefficient function."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.private.public.columns import HALF_WIDTH, Column, NumberColumn
from fdadp.private.whitened.base import NEGLIGIBLE
from fdadp.terms.spec import TermDesign

if TYPE_CHECKING:
    from fdadp.private.public.prior import PublicPrior

FINE = {1: 60, 2: 25, 3: 13}
"""Points of each axis at which the prior of the coefficient function is taken, by the number of axes."""
RANK = 1e-6
"""Coefficients that change the coefficient function by less than this share have no prior variance."""
OUTSIDE = 1e-3
"""Distance of the constant from functions that do not have it, at least."""
SMOOTHER = 1.1
"""Correlation length of a function over that of the coefficients of its B-splines, which the prior's lengths are of.

By h²/3, the variance of a cubic B-spline with knots h apart: 1.10 of 10 on a domain, 1.12 of 14 on ±3.
"""
MAIN = 1.0
"""Of functions of several numbers, prior variance of what each does by itself over that of what they do together."""


def prior_covariance(
    design: TermDesign, other: TermDesign, public: tuple[Column, ...], prior: PublicPrior, rows: FloatArray
) -> FloatArray:
    """Prior covariance of the coefficients (q, q): of a Gaussian process on the axes of the coefficient function.

    Without axes each feature has an effect of its own, as large as those of the others.
    """
    if not design.axes:
        variances = rows.reshape(-1, rows.shape[-1]).var(axis=0)
        varies = variances > NEGLIGIBLE * variances.max()
        return np.diag(np.where(varies, 1 / np.where(varies, variances, 1.0), 0.0))
    count = FINE[min(len(design.axes), max(FINE))]
    points: list[Any] = []
    kernels: list[FloatArray] = []
    for name, own in design.axes.items():
        if isinstance(own, tuple):
            points.append(own)
            kernels.append(np.eye(len(own)))
            continue
        points.append(np.linspace(own[0], own[-1], count))
        moves = not np.allclose(own, np.asarray(other.axes[name]))
        kernels.append(_kernel(points[-1], name, public, prior) if moves else _on_domain(points[-1], prior))
    effect = np.asarray(design.effect(*points))
    half = _projection(effect)
    spread = half.reshape(len(half), *(len(kernel) for kernel in kernels))
    for axis, kernel in enumerate(kernels):
        spread = np.moveaxis(np.tensordot(spread, kernel, axes=(1 + axis, 0)), -1, 1 + axis)
    return np.asarray(half @ spread.reshape(half.shape).T)


def _projection(effect: FloatArray) -> FloatArray:
    """From values at points (m,) to coefficients (q, m) of the functions (m, q) that come closest.

    The mean of the response has the constant, where the functions do not have it.
    """
    constant = np.ones((len(effect), 1))
    away = constant - effect @ np.linalg.lstsq(effect, constant, rcond=RANK)[0]
    if np.abs(away).max() < OUTSIDE:
        return np.asarray(np.linalg.pinv(effect, rcond=RANK), dtype=np.float64)
    return np.asarray(np.linalg.pinv(np.hstack((effect, constant)), rcond=RANK)[:-1], dtype=np.float64)


def _on_domain(at: FloatArray, prior: PublicPrior) -> FloatArray:
    """Of an axis that is the domain of curves."""
    return _gaussian(at, prior.slope.length * (at[-1] - at[0])) + prior.slope.constant


def _kernel(at: FloatArray, name: str, public: tuple[Column, ...], prior: PublicPrior) -> FloatArray:
    """Of an axis that has the values of a column, in standard units."""
    numbers = {column.name for column in public if isinstance(column, NumberColumn)}
    if name in numbers or len(numbers) == len(public):
        return _gaussian(at, prior.slope.length * math.sqrt(3) * 2) + MAIN
    share, length = at / (2 * HALF_WIDTH), prior.surface.x_length * 2 * HALF_WIDTH
    return _gaussian(at, length) + prior.surface.linear * np.outer(share, share)


def _gaussian(at: FloatArray, length: float) -> FloatArray:
    return np.asarray(np.exp(-0.5 * ((at[:, None] - at) / (SMOOTHER * length)) ** 2))
