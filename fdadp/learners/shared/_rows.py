"""Row functions that learners hand to the kernel: rows in a ball, rows with a constant, one block a class.

All are row-local: what a row becomes depends on that row and on public values alone, bit for bit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fdadp._common.typing import ArrayLike, FloatArray, IntArray
from fdadp.learners.shared.inputs import ball, box, positive, said_once
from fdadp.privacy import rowwise_norm
from fdadp.privacy.rows._local import RowFunction, Rows


def in_ball(x: FloatArray, radius: float) -> FloatArray:
    """Rows moved into the ball of a radius about 0."""
    norm = rowwise_norm(x)
    return x * np.minimum(1.0, radius / np.maximum(norm, 1e-300))[:, None]


def with_constant(center: FloatArray, radius: float, const: float) -> RowFunction:
    """Row function: rows (m, d) about a centre, moved into the ball of a radius, and a constant; (m, d + 1)."""

    def row(rows: Rows) -> FloatArray:
        x = in_ball(rows[0] - center, radius)
        return np.concatenate((x, np.full((len(x), 1), const)), axis=1)

    return row


def blocks(values: FloatArray, at: FloatArray | IntArray, count: int, usable: FloatArray | None = None) -> FloatArray:
    """Values (m, p) of each row in one of `count` blocks, zeros in the others; shape (m, count p).

    Parameters
    ----------
    values : ndarray of shape (m, p)
    at : ndarray of shape (m,)
        Number of the block, as the code of a class.
    count : int
    usable : ndarray of shape (m,), optional
        Where it is NaN the whole row becomes NaN, and the kernel leaves it out; default: `at`, NaN for unknown labels.
    """
    here = at[:, None] == np.arange(count)
    whole = at if usable is None else usable
    out = np.where(here[:, :, None], values[:, None], 0.0) + 0.0 * whole[:, None, None]
    return np.asarray(out.reshape(len(values), count * values.shape[1]))


class UnitTarget:
    """The map y -> t = (clip(y) - middle)/half, in [-1, 1], of one target; public, and row-local.

    Parameters
    ----------
    bounds_y : (low, high)
        Public range.

    Attributes
    ----------
    low, high, middle, half : float
    """

    def __init__(self, bounds_y: Any) -> None:
        self.low, self.high = (float(end[0]) for end in box(bounds_y, 1, "bounds_y"))
        self.middle, self.half = (self.low + self.high) / 2, (self.high - self.low) / 2

    def __call__(self, y: FloatArray) -> FloatArray:
        """Targets (m,) or (m, 1), as (m,); what is not finite stays so."""
        y = y.reshape(len(y))
        return np.asarray((self.inside(y) - self.middle) / self.half + 0.0 * y)

    def inside(self, y: FloatArray) -> FloatArray:
        """Targets or predictions moved into the range."""
        return np.clip(y, self.low, self.high)


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
        said_once(bounds, data_norm, center)
        self.low = self.high = None
        if bounds is None:
            radius, self.center = ball(data_norm, center, d)
            self.scale = np.full(d, radius)
        else:
            self.low, self.high = box(bounds, d)
            self.center = (self.low + self.high) / 2
            self.scale = (self.high - self.low) / 2 * math.sqrt(d)
        self.intercept = positive(intercept, "intercept_scaling")
        self.dimensions = d + 1
        self.length = math.hypot(1.0, self.intercept)

    def __call__(self, x: FloatArray) -> FloatArray:
        """Map rows (m, d) to vectors (m, d + 1) of norm at most 1; a row that is not finite stays so."""
        if self.low is not None:
            x = np.clip(x, self.low, self.high) + 0.0 * x  # infinity is no number, rather than the end of a range
        s = (x - self.center) / self.scale
        s = s / np.maximum(1.0, np.abs(s).max(axis=1, keepdims=True))  # so that squares cannot overflow
        s = s / np.maximum(1.0, rowwise_norm(s))[:, None]
        return np.concatenate((s, np.full((len(s), 1), self.intercept)), axis=1) / self.length

    def inside(self, x: FloatArray) -> FloatArray:
        """Return rows (m, d) clipped as in the fit, in units of the features."""
        return np.ascontiguousarray(self(x)[:, :-1] * (self.length * self.scale) + self.center)

    def coefficients(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Slopes (K, d) and intercepts (K,), in units of the features, of w (d + 1, K)."""
        slopes = w[:-1].T / (self.length * self.scale)
        return slopes, w[-1] * self.intercept / self.length - slopes @ self.center
