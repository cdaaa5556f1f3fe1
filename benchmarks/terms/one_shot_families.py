"""Means of other families from one-shot linear fits: what Gaussian features make of a regression of the response.

Of Gaussian features f and a canonical link, ``E f y = E[m'(η)] M θ`` (Stein), so that the linear regression of y has
the direction of θ: the linear predictor is ``a + c L`` with L the linear fit, where a and c give the mean of y and the
slope 1 of y on L. Mean and variance of L are those of the rows that are judged, free of charge.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(41)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
STEEPEST = 30.0
"""Slope of the log-odds on L at most: noise may make L more variable than zeros and ones can be."""


def means(linear: Any, family: str, bounds: tuple[float, float]) -> Any:
    """Means (n,) from linear fits (n,) of the response."""
    level, spread = float(np.clip(linear.mean(), 0.01, bounds[1] - 0.01)), float(linear.std())
    if family == "poisson":
        slope = 1 / level
        return np.clip(np.exp(np.log(level) - (slope * spread) ** 2 / 2 + slope * (linear - level)), *bounds)

    def start(slope: float) -> float:
        return _root(lambda a: WEIGHTS @ expit(a + slope * spread * NODES) - level, -60.0, 60.0)

    def excess(slope: float) -> float:
        p = expit(start(slope) + slope * spread * NODES)
        return slope * float(WEIGHTS @ (p * (1 - p))) - 1

    slope = STEEPEST if excess(STEEPEST) < 0 else _root(excess, 0.1, STEEPEST)
    return expit(start(slope) + slope * (linear - linear.mean()))


def _root(f: Callable[[float], float], low: float, high: float) -> float:
    return float(brentq(f, low, high))
