"""People who stand out: legal but extreme curves, curves far outside the bounds, and what is no number."""

from __future__ import annotations

import numpy as np

from fdadp._typing import FloatArray

__all__ = ["CANARIES", "X_BOUNDS", "Y_BOUNDS", "canary", "simulated"]

X_BOUNDS, Y_BOUNDS = (-4.5, 4.5), (-8.0, 8.0)
CANARIES = ("high", "low", "waves", "outside", "missing", "huge", "infinite", "gaps", "nothing", "ordinary")


def canary(kind: str, grid: FloatArray) -> tuple[FloatArray, FloatArray]:
    """X and Y of one person on a grid on [0, 1]."""
    x_half, y_half = X_BOUNDS[1], Y_BOUNDS[1]
    one = np.ones_like(grid)
    if kind == "high":
        return 0.98 * x_half * one, 0.98 * y_half * one
    if kind == "low":
        return -0.98 * x_half * one, -0.98 * y_half * np.sign(np.cos(3 * np.pi * grid))
    if kind == "waves":
        return 0.98 * x_half * np.sign(np.sin(12 * np.pi * grid + 0.1)), 0.98 * y_half * one
    if kind == "outside":
        return 3 * x_half * one, -2 * y_half * one
    if kind == "missing":
        return np.nan * one, np.nan * one
    if kind == "huge":
        return 1e30 * one, -1e30 * one
    if kind == "infinite":
        return np.where(np.arange(grid.size) % 2 == 1, np.inf, 0.0), np.inf * one
    if kind == "gaps":
        seen = np.arange(grid.size) % 7 == 3
        return np.where(seen, 0.98 * x_half, np.nan), np.where(seen[::-1], -0.98 * y_half, np.nan)
    if kind == "nothing":
        return 1e-9 * one, 1e-12 * one
    return np.sin(2 * np.pi * grid), 1 + grid  # ordinary


def simulated(scenario: int, n: int, seed: object, n_points: int = 31) -> tuple[FloatArray, FloatArray, FloatArray]:
    """X, Y and the true mean of Y, each (n, n_points); the bounds above hold for nearly all of them."""
    from fdadp.datasets import simulate_affr

    curves = simulate_affr(scenario, n=n, seed=seed, n_points=n_points)  # type: ignore[arg-type]
    return (
        np.ascontiguousarray(curves.X.data_matrix[..., 0]),
        np.ascontiguousarray(curves.Y.data_matrix[..., 0]),
        curves.mean_function,
    )
