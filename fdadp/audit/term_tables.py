"""Tables of curves, numbers and labels with a canary in them: one who stands out in every column, also by its type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from fdadp._common.typing import FloatArray, IntArray
from fdadp.audit.canaries import HANDED, canary, handed

GRID = np.linspace(0, 1, 15)
PUBLIC: dict[str, Any] = {
    "X": (-4.5, 4.5),
    "V": (0.0, 90.0),
    "z": (0.0, 100.0),
    "w": (-2.0, 2.0),
    "g": ["a", "b", "c"],
    "h": ["yes", "no"],
    "Y": (-8.0, 8.0),
    "y": (-8.0, 8.0),
}
"""Bounds and levels, given of every column."""
FORMS = (*HANDED, "one frame")
"""How a table comes from its owner; in one frame numbers and labels have the types that pandas gives them."""

LABELS = {"outside": "elsewhere", "missing": None, "huge": 1e30, "infinite": float("inf"), "gaps": "NA", "nothing": ""}
ENDS = {"high": 0.98, "low": -0.98, "outside": 3.0, "missing": np.nan, "huge": 1e28, "infinite": np.inf, "nothing": 0.0}
"""Of a canary's numbers, in half-widths about the middle of the bounds; half of them for what is not listed."""


def people(n: int, rng: np.random.Generator) -> dict[str, Any]:
    """Columns of n rows, in units far from each other."""
    x, v = (rng.normal(size=(n, 1)) + rng.normal(size=(n, 1)) * np.cos(3 * GRID) for _ in range(2))
    z, w = rng.uniform(10, 90, n), rng.normal(0, 0.6, n)
    g, h = rng.integers(0, 3, n), rng.integers(0, 2, n)
    signal = x.mean(axis=1) + (z - 50) / 40 + 0.5 * w + np.array([0.4, 0.0, -0.4])[g]
    return {
        "X": x,
        "V": 45 + 12 * v,
        "z": z,
        "w": w,
        "g": np.array(["a", "b", "c"], dtype=object)[g],
        "h": np.array(["yes", "no"], dtype=object)[h],
        "Y": signal[:, None] * (1 + GRID) + 0.3 * v + 0.4 * rng.normal(size=x.shape),
        "y": signal + 0.4 * rng.normal(size=n),
    }


def put(table: dict[str, Any], rows: IntArray, kind: str) -> None:
    """Make a canary of rows, in every column."""
    x, y = canary(kind, GRID)
    table["X"][rows], table["Y"][rows] = x, y
    table["V"][rows] = 45 + 10 * x[::-1]
    for name in ("z", "w", "y"):
        low, high = PUBLIC[name]
        table[name][rows] = (low + high) / 2 + (high - low) / 2 * ENDS.get(kind, 0.5)
    for name in ("g", "h"):
        table[name][rows] = LABELS.get(kind, PUBLIC[name][-1])


def handed_table(table: dict[str, Any], rows: IntArray, form: str) -> Any:
    """The table as its owner has it; `rows` are the canary's, whose entries may change the types of whole columns."""
    if form == "one frame":
        return _frame(table, rows)
    out: dict[str, Any] = {}
    for name, values in table.items():
        if values.dtype != object:
            out[name] = handed(values.reshape(len(values), -1), rows, form)
        elif form in ("text", "long doubles"):  # as NumPy reads them from a file: None has become a text
            out[name] = values.astype(str)
        else:
            out[name] = values
    return out


def _frame(table: dict[str, Any], rows: IntArray) -> pd.DataFrame:
    """Curves as FDataGrids; numbers with a text among them, of a nullable type or as they are; labels categorical."""
    from skfda import FDataGrid

    index = np.arange(len(table["z"]))[::-1]
    z, w = table["z"], pd.Series(table["w"], index=index)
    if len(rows):
        z = z.astype(object)
        z[rows] = "unknown"
    columns: dict[str, Any] = {
        "z": pd.Series(z, index=index),
        "w": w.astype("Float64") if len(rows) else w,
        "g": pd.Categorical(table["g"]),
        "h": pd.Series(table["h"], index=index),
        "y": pd.Series(table["y"], index=index),
    }
    frame = pd.DataFrame(columns, index=index)
    for name in ("X", "V", "Y"):
        frame[name] = FDataGrid(table[name], GRID)
    return frame


def neighbours_of(table: dict[str, Any], keep: Any) -> dict[str, FloatArray]:
    """Some rows of a table."""
    return {name: values[keep] for name, values in table.items()}
