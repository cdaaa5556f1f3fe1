"""Canaries: people with extreme curves, curves outside the bounds, or values that are no numbers.

They also stand out by the types of their entries: one of them makes text, objects or long doubles of a whole table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from fdadp._common.typing import FloatArray, IntArray

X_BOUNDS, Y_BOUNDS = (-4.5, 4.5), (-8.0, 8.0)
CANARIES = ("high", "low", "waves", "outside", "missing", "huge", "infinite", "gaps", "nothing", "ordinary")

HANDED = ("arrays", "text", "masked", "objects", "long doubles", "frame")
"""How a table comes from its owner: what one person's entry makes of it."""


def handed(values: FloatArray, rows: IntArray, how: str) -> Any:
    """A table (n, S) as its owner has it, the first entry of the canary's rows being no number.

    Without such rows it has the type that it has without the canary.
    """
    if how == "arrays" or (not len(rows) and how != "frame"):
        return values
    if how == "masked":
        mask = np.zeros(values.shape, dtype=bool)
        mask[rows, 0] = True
        return np.ma.MaskedArray(values, mask=mask)
    if how == "long doubles":
        wide = values.astype(np.longdouble)
        wide[rows, 0] = np.ldexp(np.longdouble(1), 5000)
        return wide
    cells = values.astype(object)
    cells[rows, 0] = "n/a" if how in ("text", "frame") else None
    if how == "frame":
        return pd.DataFrame(cells).infer_objects()
    return np.array(cells.tolist()) if how == "text" else cells


def named(persons: IntArray, rows: IntArray, how: int) -> Any:
    """Ids of persons as their owner has them: objects, numbers, or all text because the canary has a name."""
    if how == 0:
        return persons.astype(object)
    ids = persons.tolist()
    for row in rows if how == 2 else ():
        ids[row] = "H7"
    return np.array(ids)


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
