"""Cubic splines whose coefficients are their values at the knots: natural ones and periodic ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fdadp._common.typing import ArrayLike, FloatArray


@dataclass(frozen=True)
class CubicSplines:
    """Cubic splines by their values at knots, with the integrated squared second derivative as penalty.

    Attributes
    ----------
    knots : ndarray of shape (K,), or (K + 1,) where cyclic
        Increasing; of cyclic splines the last one is the first one again, a period later.
    cyclic : bool
        Periodic (mgcv's ``bs="cc"``); otherwise natural: linear beyond the knots (``bs="cr"``).

    References
    ----------
    Lancaster & Salkauskas (1986), Curve and Surface Fitting, sections 4.3 and 4.7; Wood (2017), Generalized Additive
    Models, section 5.3.1, doi:10.1201/9781315370279.
    """

    knots: FloatArray
    cyclic: bool = False

    @property
    def n_basis(self) -> int:
        """Number K of functions."""
        return int(self.knots.size) - int(self.cyclic)

    @cached_property
    def _system(self) -> tuple[FloatArray, FloatArray]:
        """B and D of ``B f'' = D f``, continuity of first derivatives at the knots inside."""
        h, count = np.diff(self.knots), self.n_basis
        knots_inside = range(count) if self.cyclic else range(1, count - 1)
        b, d = np.zeros((len(knots_inside), count)), np.zeros((len(knots_inside), count))
        for row, j in enumerate(knots_inside):
            before, after = h[j - 1], h[j]  # of the first knot of a cycle the last interval is before
            for columns, size in ((j - 1, before), ((j + 1) % count, after)):
                b[row, columns] += size / 6
                d[row, columns] += 1 / size
            b[row, j] += (before + after) / 3
            d[row, j] -= 1 / before + 1 / after
        return (b, d) if self.cyclic else (b[:, 1:-1], d)

    @cached_property
    def curvature(self) -> FloatArray:
        """Second derivatives at the knots of all functions, shape (K, K)."""
        b, d = self._system
        inside = np.asarray(np.linalg.solve(b, d))
        return inside if self.cyclic else np.pad(inside, ((1, 1), (0, 0)))

    @property
    def penalty(self) -> FloatArray:
        """``∫ f''²`` as a quadratic form in values at the knots, shape (K, K)."""
        b, d = self._system
        form = d.T @ np.linalg.solve(b, d)
        return np.asarray((form + form.T) / 2)

    def design(self, x: ArrayLike) -> FloatArray:
        """All functions at points (n,), shape (n, K)."""
        points = np.asarray(x, dtype=np.float64).ravel()
        first, last = self.knots[0], self.knots[-1]
        inside = first + (points - first) % (last - first) if self.cyclic else np.clip(points, first, last)
        left = np.clip(np.searchsorted(self.knots, inside, side="right") - 1, 0, self.knots.size - 2)
        right, h = (left + 1) % self.n_basis, np.diff(self.knots)[left]
        down, up = self.knots[left + 1] - inside, inside - self.knots[left]
        bend_left, bend_right = (down**3 / h - h * down) / 6, (up**3 / h - h * up) / 6
        at_left, at_right = down / h, up / h
        if not self.cyclic:
            beyond = points - inside  # along the tangent
            at_left, at_right = at_left - beyond / h, at_right + beyond / h
            bend_right = bend_right - np.minimum(beyond, 0) * h / 6
            bend_left = bend_left + np.maximum(beyond, 0) * h / 6
        rows = bend_left[:, None] * self.curvature[left] + bend_right[:, None] * self.curvature[right]
        each = np.arange(points.size)
        rows[each, left] += at_left
        rows[each, right] += at_right
        return rows
