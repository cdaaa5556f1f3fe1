"""A ridge regression in a ball from exact sums: solved in floating point, checked exactly, else solved in decimals.

``θ = argmin over |θ|_F <= B of ½ tr θ'Aθ - tr c'θ + (Λ/2)|θ|²``. *The check.* For any point θ and multiplier μ >= 0 let
r = (A + Λ + μ)θ - c, and let g be the part by which θ must be lengthened (or, where it lies outside, shortened) to lie
on the sphere; g = 0 inside the ball where μ = 0. Then θ is at most

    2 g B + ((1 + g) |r| + g |c|)/Λ

from the solution, if |θ| <= 2B. *Proof.* φ = (1 ± g)θ lies in the ball, on the sphere where μ > 0, and its residual is
at most (1 + g)|r| + g |c|. The gradient at φ is its residual less μφ, and ⟨-μφ, ψ - φ⟩ >= 0 for all ψ in the ball. Add
the variational inequality of the solution: strong convexity gives Λ|φ - solution| <= |residual|. And |φ - θ| <= g |θ|.
All of it is computed of integers and fractions.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray, IntArray

_FINE = 100
"""Bits of a solution that are checked and released from."""
Points = Any
"""Matrix of Python's integers: numbers in units of a public step."""


@dataclass(frozen=True)
class Ridge:
    """A problem, as exact sums.

    Attributes
    ----------
    gram, cross : ndarray of int, shapes (D, D), (D, K)
        Python's integers: A and c in units of the next two.
    square, product : Fraction
    ridge, radius : float
        Λ and B.
    """

    gram: Any
    cross: Any
    square: Fraction
    product: Fraction
    ridge: float
    radius: float

    def solved(self, most: float, step: float) -> IntArray:
        """Point within `most` of the solution, in steps, cut off at the reach of int64."""
        theta, multiplier = self._in_floats()
        digits = 50
        while not self.error(theta, multiplier) <= most:
            theta, multiplier = self._in_decimals(digits)
            digits *= 2
        unit = Fraction(self.radius) / (2**_FINE * Fraction(step))
        whole = [min(max(round(x * unit), -(2**61)), 2**61) for x in theta.ravel().tolist()]
        return np.array(whole, dtype=np.int64).reshape(theta.shape)

    def error(self, theta: Points, multiplier: float | Decimal) -> float:
        """Bound on the distance of θ, in units of 2^-100 B, from the solution: see the module."""
        points, cross = theta.ravel().tolist(), self.cross.ravel().tolist()
        square = Fraction(sum(x * x for x in points), 4**_FINE)  # |θ|²/B²
        if square > 4 or (multiplier and square == 0):
            return math.inf
        gap = abs(1 / square - 1) if multiplier else 1 - 1 / max(square, Fraction(1))  # at least g
        unit = Fraction(self.radius) / 2**_FINE
        one, two = self.square * unit, (Fraction(self.ridge) + Fraction(multiplier)) * unit
        product = (self.gram @ theta).ravel().tolist()
        r = _length([one * a + two * x - self.product * c for a, x, c in zip(product, points, cross, strict=True)])
        c = float(self.product) * _length(cross)
        g = float(gap)
        return 2 * g * self.radius + ((1 + g) * r + g * c) / self.ridge * (1 + 1e-9)

    def _in_floats(self) -> tuple[Points, float | Decimal]:
        """Solution by eigenvectors; a wrong one where that fails or overflows."""
        try:
            values, axes = np.linalg.eigh(_floats(self.gram, self.square))
        except (np.linalg.LinAlgError, OverflowError):
            return _each(lambda _: 0, self.cross), 0.0
        values = np.maximum(values, 0.0)
        rotated = axes.T @ _floats(self.cross, self.product)
        energy = (rotated**2).sum(axis=1)

        def length(multiplier: float) -> float:
            return math.sqrt(float((energy / (values + multiplier) ** 2).sum()))

        high = _multiplier(length, self.ridge, self.radius)
        theta = np.nan_to_num(axes @ (rotated / (values + high)[:, None]) / self.radius)
        return _each(lambda x: round(Fraction(x) * 2**_FINE), theta), high - self.ridge

    def _in_decimals(self, digits: int) -> tuple[Points, Decimal]:
        """Solution by elimination, in so many digits."""
        with decimal.localcontext(decimal.Context(prec=digits)):
            gram = _each(lambda x: Decimal(x * self.square.numerator) / self.square.denominator, self.gram)
            cross = _each(lambda x: Decimal(x * self.product.numerator) / self.product.denominator, self.cross)
            ridge, radius = Decimal(self.ridge), Decimal(self.radius)

            def point(multiplier: Decimal) -> Any:
                return _eliminated(gram + multiplier * np.diag([Decimal(1)] * len(gram)), cross)

            high = _multiplier(lambda m: (point(m) ** 2).sum().sqrt(), ridge, radius)
            theta = point(high) / radius * 2**_FINE
            return _each(lambda x: int(x.to_integral_value()), theta), high - ridge


def _multiplier(length: Callable[[Any], Any], ridge: Any, radius: Any) -> Any:
    """Smallest number from the ridge on with which the solution is in the ball: by bisection, to the last digit."""
    low = high = ridge
    if length(ridge) > radius:
        while length(high) > radius:
            low, high = high, 2 * high
        while low < (middle := (low + high) / 2) < high:
            low, high = (middle, high) if length(middle) > radius else (low, middle)
    return high


def _eliminated(matrix: Any, right: Any) -> Any:
    """Solution of a positive definite system in decimals."""
    a = np.hstack([matrix, right])
    for k in range(len(a)):
        a[k] = a[k] / a[k, k]
        for i in range(len(a)):
            if i != k:
                a[i] = a[i] - a[i, k] * a[k]
    return a[:, len(a) :]


def _each(f: Callable[[Any], Any], matrix: Any) -> Any:
    """Matrix of what f gives for each entry, as Python's numbers."""
    out = np.empty(matrix.size, dtype=object)
    out[:] = [f(x) for x in matrix.ravel().tolist()]
    return out.reshape(matrix.shape)


def _floats(integers: Any, unit: Fraction) -> FloatArray:
    return np.asarray(integers, dtype=np.float64) * float(unit)


def _length(values: list[Any]) -> float:
    """Euclidean length of integers or fractions, rounded up a little."""
    square = sum(Fraction(v) ** 2 for v in values)
    scale = math.isqrt(int(square * 4**64)) + 1  # in units of 2^-64
    return float(Fraction(scale, 2**64)) * (1 + 1e-12)
