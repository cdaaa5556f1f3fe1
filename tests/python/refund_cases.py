"""Recorded cases read: rows, numbers, relative differences. r_bridge/terms_beside_refund.py compares whole fits."""

from __future__ import annotations

from typing import Any

import numpy as np


def rows(case: dict[str, Any], which: str) -> Any:
    """Numbers of training or test rows from 0."""
    return np.ravel(case[which]).astype(int) - 1


def far(ours: Any, theirs: Any) -> float:
    """Largest difference, relative to the largest recorded value."""
    a, b = np.ravel(np.asarray(ours, dtype=float)), np.ravel(np.asarray(theirs, dtype=float))
    assert a.shape == b.shape
    return float(np.abs(a - b).max() / np.abs(b).max())


def one(value: Any) -> float:
    """A recorded number."""
    return float(np.ravel(value)[0])
