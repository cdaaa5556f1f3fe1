"""Quadrature weights on a grid: the L of ``∫ f(s) ds ≈ Σ_j L_j f(s_j)``."""

from __future__ import annotations

import numpy as np

from fdadp._common.argument_checks import one_of
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError

__all__ = ["RULES", "quadrature_weights"]

RULES = ("trapezoid", "simpson", "riemann", "simpson_legacy")


def quadrature_weights(
    grid: ArrayLike, rule: str = "trapezoid", *, uneven_simpson: bool = False, period: float | None = None
) -> FloatArray:
    r"""Weights of a quadrature rule on a strictly increasing grid.

    Parameters
    ----------
    grid : array_like of shape (S,)
        Strictly increasing evaluation points, S >= 2 (``"simpson"``: S >= 3).
    rule : {"trapezoid", "simpson", "riemann", "simpson_legacy"}
        ``"trapezoid"`` (default) and ``"simpson"`` (composite Simpson, on uneven grids and with an even
        number of points too, as in :func:`scipy.integrate.simpson`) sum to the length of the domain.
        ``"riemann"`` is refund's (mean step, then the steps) and sums to ``(b - a) S / (S - 1)``.
        ``"simpson_legacy"`` repeats ``refund`` 0.1-38, whose weights on an even grid sum to less than the
        length of the domain (0.9892 of it at S = 93); use it only to compare with that version. As in its
        ``ff`` and ``sff``, it becomes the trapezoid on an uneven grid.
    uneven_simpson : bool
        ``"simpson_legacy"`` stays what it is on an uneven grid, as if that were even: refund's ``lf`` and ``af``.
    period : float, optional
        Length of a circle that the grid lies on: the way from the last point to the first counts, by the trapezoid
        rule, or to the first point with ``"riemann"``. ``"simpson_legacy"`` stays what it is.

    Returns
    -------
    ndarray of shape (S,)

    Raises
    ------
    InputError
        Unknown rule, or a grid that is too short for it, not numeric, not finite or not strictly increasing; a period
        that is shorter than the grid.

    References
    ----------
    refund 0.1-38, ``ff``, ``sff``, ``lf``, ``af``; Press et al. (2007), *Numerical Recipes*, section 4.1.

    Examples
    --------
    >>> quadrature_weights([0.0, 0.5, 1.0])
    array([0.25, 0.5 , 0.25])
    >>> quadrature_weights([0.0, 0.25, 0.5], period=1.0)
    array([0.375, 0.25 , 0.375])
    """
    weights = _open_weights(grid, rule, uneven_simpson)
    if period is None or rule == "simpson_legacy":
        return weights
    points = np.asarray(grid, dtype=np.float64)
    length = float(points[-1] - points[0])
    if not period >= length * (1 - 1e-9):
        raise InputError(f"period must be at least the length of the grid, {length:g}, got {period:g}")
    back = max(period - length, 0.0)
    if rule == "riemann":
        weights[0] = back
    else:
        weights[[0, -1]] += back / 2
    return weights


def _open_weights(grid: ArrayLike, rule: str, uneven_simpson: bool) -> FloatArray:
    """Weights between the ends of the grid."""
    one_of(rule, "rule", RULES)
    try:
        t = np.asarray(grid, dtype=np.float64)
    except (TypeError, ValueError) as exc:
        raise InputError(f"grid must be a sequence of numbers, got {grid!r}") from exc
    if t.ndim != 1 or t.size < 2:
        raise InputError(f"grid must be one-dimensional with at least 2 points, got shape {t.shape}")
    if not np.isfinite(t).all():
        raise InputError(f"grid must be finite, got {t[~np.isfinite(t)][0]} among its points")
    steps = np.diff(t)
    if not (steps > 0).all():
        j = int(np.flatnonzero(steps <= 0)[0])
        raise InputError(f"grid must be strictly increasing, got {t[j]:g} followed by {t[j + 1]:g} at position {j}")
    if rule == "trapezoid":
        return trapezoid(steps)
    if rule == "simpson":
        if t.size < 3:
            raise InputError(f"grid must have at least 3 points for rule='simpson', got {t.size}")
        from scipy.integrate import simpson

        return np.asarray(simpson(np.eye(t.size), x=t, axis=1), dtype=np.float64)
    if rule == "riemann":
        return np.concatenate(([steps.mean()], steps))
    relative = steps / (t[-1] - t[0])  # simpson_legacy
    if not uneven_simpson and np.unique(np.round(relative, 3)).size > 1:
        return trapezoid(steps)
    inner = np.where(np.arange(t.size - 2) % 2 == 0, 4.0, 2.0)
    weights: FloatArray = np.concatenate(([1.0], inner, [1.0])) * (t[-1] - t[0]) / t.size / 3
    return weights


def trapezoid(steps: FloatArray) -> FloatArray:
    """Weights of the trapezoid rule on a grid of these steps."""
    weights = np.zeros(steps.size + 1)
    weights[:-1] += steps / 2
    weights[1:] += steps / 2
    return weights
