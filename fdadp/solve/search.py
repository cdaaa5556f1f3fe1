"""Newton's method for smoothing parameters, from several starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from fdadp._common.typing import FloatArray

__all__ = ["Descent", "Score", "minima", "minimize", "newton"]

NEAR = 1.0
"""A search that comes closer to an earlier one than this, in every log λ, is taken to end where that one did."""

LONGEST = 4.0
"""Longest step in a log λ."""

Score = Callable[[FloatArray], tuple[float, FloatArray, FloatArray]]
"""Point -> value, gradient, Hessian."""

_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class Descent:
    """Points from a start to a minimum (steps, M), and the value of the last."""

    points: FloatArray
    value: float


def minimize(
    scores: Sequence[Score], starts: Sequence[list[FloatArray]], bounds: tuple[FloatArray, FloatArray], tolerance: float
) -> list[FloatArray]:
    """Return the lowest minimum of each function that :func:`newton` finds from its starts."""
    return [minima(score, points, bounds, tolerance)[0] for score, points in zip(scores, starts, strict=True)]


def minima(
    score: Score, starts: list[FloatArray], bounds: tuple[FloatArray, FloatArray], tolerance: float
) -> list[FloatArray]:
    """Return the minima of a function that :func:`newton` finds from its starts, the lowest first, no two near."""
    descents: list[Descent] = []
    for point in starts:
        descents.append(newton(score, point, bounds, tolerance, descents))
    found: list[FloatArray] = []
    for descent in sorted(descents, key=lambda descent: descent.value):
        if all(abs(descent.points[-1] - other).max(initial=0.0) >= NEAR for other in found):
            found.append(descent.points[-1])
    return found


def newton(
    score: Score,
    start: FloatArray,
    bounds: tuple[FloatArray, FloatArray],
    tolerance: float,
    earlier: Sequence[Descent] = (),
) -> Descent:
    """Minimise a function by Newton's method with exact derivatives, within bounds.

    Parameters
    ----------
    score : callable
        Point -> value, gradient, Hessian. It must not depend on units, so that the search does not either.
    start : ndarray of shape (M,)
    bounds : (ndarray, ndarray)
        Smallest and largest point. A coordinate at a bound stays there while the function falls beyond it.
    tolerance : float
        Largest gradient of a stationary point.
    earlier : sequence of Descent, optional
        From other starts. Where this one meets one of them, it ends as that did.

    Returns
    -------
    Descent
    """
    low, high = bounds
    point, last = start, None
    path: list[FloatArray] = []
    value, gradient, hessian = score(point)
    for _ in range(100):
        held = ((point <= low) & (gradient > 0)) | ((point >= high) & (gradient < 0))
        if held.any():
            gradient = np.where(held, 0.0, gradient)
            hessian = np.where(held | held[:, None], np.diag(np.abs(np.diag(hessian))), hessian)
        if abs(gradient).max(initial=0.0) <= tolerance:
            break
        for descent in earlier:
            if abs(descent.points - point).max(axis=1).min() < NEAR:
                return descent
        path.append(point)
        curvature, axes, _ = lapack.dsyevd(hessian)
        curvature = abs(curvature)
        floor = max(1e-7 * float(curvature.max()), _TINY)
        full = -axes @ ((gradient @ axes) / np.maximum(curvature, floor))
        size = float(abs(full).max())
        # Towards a minimum at infinity the function falls as e^-x does: steps of length 1, one after the other.
        again = last is not None and abs(full - last).max() < 0.1 * size
        step = full * min(LONGEST if again else 1.0, LONGEST / size)
        last = full
        for _ in range(30):
            new = np.minimum(np.maximum(point + step, low), high)
            candidate = score(new)
            if candidate[0] < value:
                break
            step = step / 2
        else:
            break
        point, (value, gradient, hessian) = new, candidate
    return Descent(np.array([*path, point]), value)
