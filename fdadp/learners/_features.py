"""Rows as vectors of norm at most 1, for the linear learners."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.learners._base import ball, box, public
from fdadp.privacy import rowwise_norm

__all__ = ["UnitRows", "positive"]


class UnitRows:
    """The map x -> z = (s, b0)/√(1 + b0²) with s = clip((x - center)/scale)/R of norm at most 1; public, and row-local.

    ``|z| <= 1`` for every x, and a row outside the ball counts as the row at its edge in the same direction.

    Parameters
    ----------
    d : int
        Number of features.
    data_norm, center : float, array_like of shape (d,)
        Radius R and centre of a ball, in units of the features.
    bounds : (low, high), optional
        Instead of them: ranges of the features, mapped to [-1, 1] each; then R = √d.
    intercept : float
        b0 above 0, the value of the constant feature; 1: as large as the largest row.

    Attributes
    ----------
    dimensions : int
        d + 1.
    """

    def __init__(
        self,
        d: int,
        *,
        data_norm: Any = None,
        center: ArrayLike = 0.0,
        bounds: Any = None,
        intercept: float = 1.0,
    ) -> None:
        self.low = self.high = None
        if bounds is None:
            radius, self.center = ball(data_norm, center, d)
            self.scale = np.full(d, radius)
        else:
            if data_norm is not None:
                raise InputError(f"data_norm must be left out where bounds are given, got {data_norm!r}")
            self.low, self.high = box(bounds, d)
            self.center = (self.low + self.high) / 2
            self.scale = (self.high - self.low) / 2 * math.sqrt(d)
        self.intercept = positive(intercept, "intercept_scaling")
        self.dimensions = d + 1
        self.length = math.hypot(1.0, self.intercept)

    def __call__(self, x: FloatArray) -> FloatArray:
        """(m, d) rows as (m, d + 1) vectors; a row that is not finite stays so."""
        if self.low is not None:
            x = np.clip(x, self.low, self.high) + 0.0 * x  # infinity is no number, rather than the end of a range
        s = (x - self.center) / self.scale
        s = s / np.maximum(1.0, np.abs(s).max(axis=1, keepdims=True))  # so that squares cannot overflow
        s = s / np.maximum(1.0, rowwise_norm(s))[:, None]
        return np.concatenate((s, np.full((len(s), 1), self.intercept)), axis=1) / self.length

    def inside(self, x: FloatArray) -> FloatArray:
        """(m, d) rows as they count: clipped, in units of the features."""
        return np.ascontiguousarray(self(x)[:, :-1] * (self.length * self.scale) + self.center)

    def coefficients(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Slopes (K, d) and intercepts (K,), in units of the features, of w (d + 1, K)."""
        slopes = w[:-1].T / (self.length * self.scale)
        return slopes, w[-1] * self.intercept / self.length - slopes @ self.center


def positive(value: Any, name: str, *, below: float = math.inf) -> float:
    """Return a public number above 0, or say what it was."""
    public(name, value, "a number above 0")
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 < value < below:
        limit = "" if below == math.inf else f" and below {below:g}"
        raise InputError(f"{name} must be a finite number above 0{limit}, got {value!r}")
    return float(value)
