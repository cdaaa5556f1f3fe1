"""Gaps in curves, filled within each curve: by straight lines, or by a smoother with public settings.

What a curve gets depends on that curve alone, bit for bit: loops in a fixed order, nothing passes from one curve to
another and nothing is estimated from several. So a private fit may fill gaps at no cost, and new curves are completed
as the training curves were. A value that is not finite is a gap; observed values are left as they are.

Source of the smoother: Eilers (2003), A perfect smoother, Anal. Chem. 75, 3631-3636, doi:10.1021/ac034173t (penalised
differences, the gaps having weight 0).
"""

from __future__ import annotations

import math

import numpy as np

from fdadp._common.loaded_later import kernel
from fdadp._common.typing import FloatArray
from fdadp.functional.quadrature import trapezoid

GAPS = {"linear": "filled linearly", "smooth": "filled by a penalised smoother with public settings"}
"""How a private fit says what it does."""

LENGTH = 0.05
"""Cut-off of the smoother, as a share of the domain: shorter features of a curve are smoothed away."""
DECAY = 0.1
"""Beyond the last observed point the smoother's slope dies away over this share of the domain."""


def fill_linear(values: FloatArray, grid: FloatArray) -> FloatArray:
    """Fill gaps by straight lines between observed points, and by the nearest observed value at the ends.

    Parameters
    ----------
    values : ndarray of shape (n, S)
        Not finite where a curve was not observed.
    grid : ndarray of shape (S,)
        Increasing.

    Returns
    -------
    ndarray of shape (n, S)
        A curve without a single observed point is NaN throughout.

    Examples
    --------
    >>> nan = float("nan")
    >>> fill_linear(np.array([[nan, 1.0, nan, 3.0, nan]]), np.arange(5.0)).tolist()
    [[1.0, 1.0, 2.0, 3.0, 3.0]]
    """
    curves = np.array(values, dtype=np.float64, order="C")
    _fill_linear(curves, np.ascontiguousarray(grid, dtype=np.float64))
    return curves


def fill_smooth(values: FloatArray, grid: FloatArray) -> FloatArray:
    """Fill gaps from a penalised smoother of the curve's observed points, with the same penalties for every curve.

    Parameters and result are those of :func:`fill_linear`. The smoother f minimises, on the domain scaled to length 1,
    ``Σ w_j (y_j - f_j)² + LENGTH⁴ {∫ f''² + ∫ f'² / DECAY²}`` over the observed points, w_j trapezoid weights.

    Examples
    --------
    >>> nan = float("nan")
    >>> fill_smooth(np.array([[1.0, 2.0, nan, 4.0, 5.0]]), np.arange(5.0)).round(2).tolist()
    [[1.0, 2.0, 3.0, 4.0, 5.0]]
    """
    curves = np.array(values, dtype=np.float64, order="C")
    unit = (np.asarray(grid, dtype=np.float64) - grid[0]) / (grid[-1] - grid[0])
    _fill_smooth(curves, _penalty_bands(unit), trapezoid(np.diff(unit)))
    return curves


def _penalty_bands(unit: FloatArray) -> FloatArray:
    """Diagonal and the two bands below it of the penalty, shape (3, S)."""
    size, steps = unit.size, np.diff(unit)
    slopes = np.diff(np.eye(size), axis=0) / steps[:, None]
    widths = steps[1:] + steps[:-1]
    bends = 2 * np.diff(slopes, axis=0) / widths[:, None]
    penalty = (slopes.T * steps) @ slopes / DECAY**2 + (bends.T * (widths / 2)) @ bends
    bands = np.zeros((3, size))
    for k in range(3):
        bands[k, : size - k] = LENGTH**4 * np.diag(penalty, -k)
    return bands


@kernel("f8[:,::1], f8[::1]")
def _fill_linear(curves, grid):  # type: ignore[no-untyped-def]
    """Fill (n, S) in place."""
    for i in range(curves.shape[0]):
        last = -1
        for j in range(grid.size):
            if math.isfinite(curves[i, j]):
                for k in range(last + 1, j):
                    if last < 0:
                        curves[i, k] = curves[i, j]
                    else:
                        part = (grid[k] - grid[last]) / (grid[j] - grid[last])
                        curves[i, k] = curves[i, last] * (1.0 - part) + curves[i, j] * part
                last = j
        for k in range(last + 1, grid.size):
            curves[i, k] = curves[i, last] if last >= 0 else math.nan


@kernel("f8[:,::1], f8[:,::1], f8[::1]")
def _fill_smooth(curves, bands, weights):  # type: ignore[no-untyped-def]
    """Fill (n, S) in place, by L D L' of the banded equations of each curve."""
    size = weights.size
    pivot, below, second, right = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    for i in range(curves.shape[0]):
        seen, centre = 0, 0.0
        for j in range(size):
            if math.isfinite(curves[i, j]):
                seen += 1
                centre += (curves[i, j] - centre) / seen
        if seen == size:
            continue
        if seen == 0:
            for j in range(size):
                curves[i, j] = math.nan
            continue
        for j in range(size):
            observed = math.isfinite(curves[i, j])
            pivot[j] = bands[0, j] + (weights[j] if observed else 0.0)
            below[j], second[j] = bands[1, j], bands[2, j]
            right[j] = weights[j] * (curves[i, j] - centre) if observed else 0.0
        for j in range(size):
            if j + 1 < size:
                factor = below[j] / pivot[j]
                pivot[j + 1] -= factor * below[j]
                right[j + 1] -= factor * right[j]
                if j + 2 < size:
                    below[j + 1] -= factor * second[j]
                    other = second[j] / pivot[j]
                    pivot[j + 2] -= other * second[j]
                    right[j + 2] -= other * right[j]
        for j in range(size - 1, -1, -1):
            value = right[j]
            if j + 1 < size:
                value -= below[j] * right[j + 1]
            if j + 2 < size:
                value -= second[j] * right[j + 2]
            right[j] = value / pivot[j]
        for j in range(size):
            if not math.isfinite(curves[i, j]):
                curves[i, j] = centre + right[j]
