"""Matrix Laplace noise: two laws for sums of matrices of bounded nuclear norm (the sum of the singular values).

========= ===================================================== ==========================
law       noise of unit scale                                   sd of an entry
========= ===================================================== ==========================
product   Z = A'B, A (ν × D), B (ν × K) normal, ν = D + K       √(D + K)
symmetric Z = W₁ - W₂, Wᵢ = ½ G'G, G ((d + 1) × d) normal       √(d + 1), off the diagonal
                                                                √((d + 1)/2)
========= ===================================================== ==========================

In both |log p(Z + M) - log p(Z)| <= ‖M‖_*, for all Z and M (proofs: ``docs/theory/noise.md#matrix-laplace``): with the
scale Δ/ε they are ε-private for integer matrices of which neighbours differ by a nuclear norm of Δ at most. With K = 1
the first is the spherical law exp(-|z|), with D = K = 1, and the second with d = 1, it is Laplace's.

*Integers.* The integers that are released are Q + round(Z), a function of Q + Z. The rounding is that of the ideal real
Z, for any number of bits that it takes (``_exact_normals``), and the sum is taken modulo 2^64: so no noise is ever
saturated, and where exact sums overflow privacy does not.
"""

from __future__ import annotations

import decimal
import itertools
import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.privacy.noise._exact_normals import BITS, Bits, Chi, Pair, decimals, fixed

_FINE = 32
"""Bits of the scale after the point; it is rounded up to them."""


Factors = tuple[FloatArray, FloatArray]


@dataclass(frozen=True)
class Drawn:
    """Noise, and what it was made of.

    Attributes
    ----------
    integers : list of int
        Row by row; symmetric: the upper triangle.
    factors : tuple of ndarray
        Of the noise of unit scale: N (D, K) and the lower triangular T (K, K) with Z = N T', transposed where D < K;
        symmetric: W₁ and W₂.
    """

    integers: list[int] = field(repr=False)
    factors: Factors = field(repr=False)


@dataclass(frozen=True)
class MatrixLaplace:
    """Law of the noise on a matrix.

    Parameters
    ----------
    rows, columns : int
        D and K.
    symmetric : bool
        The symmetric law, of rows = columns = d, for an upper triangle.
    """

    rows: int
    columns: int
    symmetric: bool = False

    @property
    def sd(self) -> float:
        """Standard deviation of an entry (symmetric: on the diagonal) at scale 1."""
        return math.sqrt(self.rows + 1 if self.symmetric else self.rows + self.columns)

    @property
    def degrees(self) -> int:
        """Of the Wishart law that T T' has."""
        return self.rows + 1 if self.symmetric else self.rows + self.columns

    def draw(self, scale: float, source: Bits = secrets.randbits) -> Drawn:
        """Noise rounded as the ideal real noise is, from the system's randomness."""
        d, many = sorted((self.rows, self.columns))
        corners = [[Chi.draw(self.degrees - i, source) for i in range(d)] for _ in range(1 + self.symmetric)]
        below = d * (d - 1) // 2
        count = 2 * below if self.symmetric else below + d * many
        pairs = [Pair.draw(source) for _ in range((count + 1) // 2)]
        coins: list[Pair | Chi] = [*pairs, *itertools.chain(*corners)]
        fine = math.ceil(Fraction(scale) * 2**_FINE)
        bits = BITS
        while True:
            for coin in coins:
                while coin.bits < bits:
                    coin.extend(source)
            with decimal.localcontext(decimals(bits)):
                normals = iter([fixed(value, bits) for pair in pairs for value in pair.values()])
                triangles = [
                    [[*itertools.islice(normals, i), fixed(chi.value(), bits)] for i, chi in enumerate(chis)]
                    for chis in corners
                ]
            if self.symmetric:
                one, two = triangles
                entries = [_less(_inner(one[i], one[j]), _inner(two[i], two[j])) for i in range(d) for j in range(i, d)]
                first, second = (_floats(T, bits) for T in triangles)
                factors = first @ first.T / 2, second @ second.T / 2
            else:
                N = [list(itertools.islice(normals, d)) for _ in range(many)]
                entries = [_inner(a, b) for a in N for b in triangles[0]]
                factors = _floats(N, bits), _floats(triangles[0], bits)
            whole = 1 << (bits + _FINE + self.symmetric)
            low, high = ([(2 * (x + side * e) * fine + whole) // (2 * whole) for x, e in entries] for side in (-1, 1))
            if low == high:
                return Drawn(self._placed(low), factors)
            bits *= 2

    def noise(self, factors: Factors) -> FloatArray:
        """Noise of unit scale that these make, as a matrix."""
        Z = factors[0] - factors[1] if self.symmetric else factors[0] @ factors[1].T
        return np.asarray(Z if self.symmetric or self.rows >= self.columns else Z.T)

    def loss(self, move: FloatArray, factors: Factors) -> tuple[float, float]:
        """Privacy loss of noise Z of unit scale where the neighbour's sum is M further, and the most that it can be.

        Symmetric: that of the alignment (W₁, W₂) ↦ (W₁ + M₋, W₂ + M₊), which releases the same and costs tr M₊ + tr M₋
        whatever W₁ and W₂ are. Product: for M = f r' that of e, given the rest (Theorem 3: f rotated to the last row),
        |e - r| - |e| where e = N x/|x|², x = T⁻¹f; for M of a higher rank its bound.

        Returns
        -------
        tuple of float
            Loss and ‖M‖_*.
        """
        left, sizes, right = np.linalg.svd(move)
        bound = float(sizes.sum())
        if self.symmetric or bound == 0 or sizes[1:].sum() > 1e-9 * bound:
            return bound, bound
        short, long = (right[0], left[:, 0]) if self.rows >= self.columns else (left[:, 0], right[0])
        x = np.linalg.solve(factors[1], short)
        e = factors[0] @ x / (x @ x)
        return float(np.linalg.norm(e - bound * long) - np.linalg.norm(e)), bound

    def draw_floats(self, scale: float, rng: np.random.Generator) -> Drawn:
        """The same law in floating point, for simulations."""
        d, many = sorted((self.rows, self.columns))
        if self.symmetric:
            G = rng.standard_normal((2, self.degrees, d))
            W = np.matmul(G.transpose(0, 2, 1), G) / 2
            return Drawn(_rounded(scale * (W[0] - W[1])[np.triu_indices(d)]), (W[0], W[1]))
        T = np.tril(rng.standard_normal((d, d)), -1) + np.diag(np.sqrt(rng.chisquare(self.degrees - np.arange(d))))
        N = rng.standard_normal((many, d))
        return Drawn(self._placed(_rounded((scale * (N @ T.T)).ravel())), (N, T))

    def _placed(self, entries: list[int]) -> list[int]:
        """Row by row of D × K, from N T' row by row."""
        if self.symmetric or self.rows >= self.columns:
            return entries
        return [entries[j * self.rows + i] for i in range(self.rows) for j in range(self.columns)]


def add_wrapped(exact: IntArray, noise: list[int]) -> IntArray:
    """Sum modulo 2^64, from -2^63 to below 2^63: of the true sums and noise, also where these do not fit."""
    return exact + np.array([z % 2**64 for z in noise], dtype=np.uint64).view(np.int64)


def _inner(a: Sequence[int], b: Sequence[int]) -> tuple[int, int]:
    """Inner product, over the shorter length, and how far it is off where the factors are off by one."""
    both = list(zip(a, b, strict=False))
    return sum(x * y for x, y in both), sum(abs(x) + abs(y) + 1 for x, y in both)


def _less(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    return a[0] - b[0], a[1] + b[1]


def _rounded(values: FloatArray) -> list[int]:
    return [int(v) for v in np.rint(values)]


def _floats(rows: list[list[int]], bits: int) -> FloatArray:
    """Rows, of a triangle or of equal length, filled up with zeros."""
    return np.array([[math.ldexp(x, -(bits // 2)) for x in row] + [0.0] * (len(rows[-1]) - len(row)) for row in rows])
