"""Noise for sums of matrices: matrix Laplace, Wishart and Bingham, and the exact normal variables of the first.

*Exact normals.* Normal and χ variables from bits of the system's randomness, to any precision, with a bound on their
error.

They stand on *ideal* uniform numbers of which the first ``bits`` are known; more are asked for where these do not
settle a decision: whether a pair lies inside the unit circle, or how a sum of products of the values is rounded. So
every decision is the one of the ideal real numbers, and the law of what is decided is exact, not merely close.

*Error.* A uniform number is known within 2^-bits. Numbers and squared lengths that are within 2^(-bits/4) of 0 or 1 are
asked for more bits before they are used. From there the polar method multiplies an error by less than 2^(bits/8 + 2)
√bits, and √(-2 log Πu) with k factors by less than 2^(3 bits/8) k; decimals of 0.35 bits digits round off less than
2^(-1.14 bits). With bits >= 256 and k < 2^30 each value is thus within 2^(-bits/2 - 2) of its ideal one, hence within
one unit of 2^(-bits/2) when it is rounded to such units.

*Matrix Laplace* noise: two laws for sums of matrices of bounded nuclear norm (the sum of the singular values).

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
Z, for any number of bits that it takes (*Exact normals*), and the sum is taken modulo 2^64: so no noise is ever
saturated, and where exact sums overflow privacy does not.

*Wishart.* A second moment with Wishart noise: how much noise, and how it is drawn.

*Privacy* (proof: ``docs/theory/noise.md#wishart``). M = Σ aa' + W with |a| <= 1, W ~ Wishart_p(m, I), ν = m - p + 1 >=
2. With F and S = 1 - F those of χ² with ν degrees, one row more or less is as hard to notice as χ² + 1 beside χ²:

    δ(ε) = max(F(u) - e^ε F(u - 1), S(v - 1) - e^ε S(v)),

at the points where the two densities differ by e^ε. As ν grows the noise becomes that of the Gaussian mechanism on
symmetric matrices, with twice the variance on the diagonal.

*Integers.* Rows are truncated onto a lattice (``exact_moment``), products and sums are exact; M is a lattice point plus
W, so rounding M to the lattice is rounding W: post-processing. It is released modulo 2^64, a function of it again, so
that no number of persons is too large. W is computed to 130 digits, and what these leave is counted in δ.

*Bingham.* One draw from Bingham's law on the sphere: the exponential mechanism over directions.

Density ∝ exp(u'Su/scale) on |u| = 1. Exact rejection from the angular central Gaussian law (Kent, Ganeiber & Mardia
2018, doi:10.1080/10618600.2017.1390468): with A = (λ_max I - S)/scale and b the root of Σ 1/(b + 2 λ_i(A)) = 1, propose
u = z/|z|, z ~ N(0, Ω⁻¹), Ω = I + 2A/b, and accept with probability

    exp(-u'Au) (u'Ωu)^(d/2) e^((d-b)/2) (b/d)^(d/2).

The exponent d/2 is positive: divided by that power instead, as some libraries have it, the draws are about three times
too concentrated, and rarely accepted.

*What is not exact.* Eigenvectors, proposals and probabilities are computed in floating point (53 bits): the law is
Bingham's up to relative errors of that size, which the sensitivity's slack in ``Cohort.principal_directions`` does not
prove away. The number of proposals depends on the eigenvalues, hence so does the time that a draw takes: an
observer of the clock is not covered by the guarantee.
"""

from __future__ import annotations

import decimal
import functools
import itertools
import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

import numpy as np
from scipy.special import ndtri

from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import PrivacyError

NORMAL_BITS = 256
"""Known of a uniform number at first."""

Bits = Callable[[int], int]
"""From a number of bits to a uniform integer below 2 to its power, as :func:`secrets.randbits`."""


def decimals(bits: int) -> decimal.Context:
    """Arithmetic for numbers of which so many bits are known."""
    return decimal.Context(prec=35 * bits // 100)


def fixed(value: Decimal, bits: int) -> int:
    """Nearest multiple of 2^(-bits/2)."""
    return int((value * (1 << (bits // 2))).to_integral_value())


@dataclass
class Uniforms:
    """Uniform numbers on (0, 1): their first bits as integers."""

    known: list[int]
    bits: int

    def extend(self, source: Bits) -> None:
        """Learn twice as many bits of the same numbers."""
        self.known = [(k << self.bits) | source(self.bits) for k in self.known]
        self.bits *= 2

    def settled(self) -> bool:
        """Whether no number is too near to 0 or 1."""
        return all(_clear(k, self.bits, self.bits) for k in self.known)


def _clear(value: int, digits: int, bits: int) -> bool:
    """Whether value · 2^-digits is 2^(-bits/4) and more away from 0 and from 1."""
    margin = 1 << (digits - bits // 4)
    return value > margin and abs((1 << digits) - value) > margin


class Pair(Uniforms):
    """Two independent standard normals, by Marsaglia's polar method."""

    @classmethod
    def draw(cls, source: Bits) -> Pair:
        """Pairs of uniform numbers until one is inside the unit circle."""
        while True:
            pair = cls([source(NORMAL_BITS), source(NORMAL_BITS)], NORMAL_BITS)
            while not pair.settled():
                pair.extend(source)
            if pair.square < 1 << (2 * pair.bits):
                return pair

    @property
    def sides(self) -> tuple[int, int]:
        """2 u - 1 in units of 2^-bits, u in the middle of what is known."""
        u, v = (2 * k + 1 - (1 << self.bits) for k in self.known)
        return u, v

    @property
    def square(self) -> int:
        """Squared length, in units of 4^-bits."""
        x, y = self.sides
        return x * x + y * y

    def settled(self) -> bool:
        """Whether the squared length is not too near to 0 or 1."""
        return _clear(self.square, 2 * self.bits, self.bits)

    def values(self) -> tuple[Decimal, Decimal]:
        """Both normals, in the decimals of the context."""
        s = Decimal(self.square) / (1 << (2 * self.bits))
        factor = (-2 * s.ln() / s).sqrt() / (1 << self.bits)
        x, y = self.sides
        return x * factor, y * factor


@dataclass
class Chi:
    """Root of a χ² of a whole number of degrees: -2 log of a product of uniform numbers, and one normal where odd."""

    uniforms: Uniforms
    pair: Pair | None

    @classmethod
    def draw(cls, degrees: int, source: Bits) -> Chi:
        """Of so many degrees, at least one."""
        uniforms = Uniforms([source(NORMAL_BITS) for _ in range(degrees // 2)], NORMAL_BITS)
        while not uniforms.settled():
            uniforms.extend(source)
        return cls(uniforms, Pair.draw(source) if degrees % 2 else None)

    @property
    def bits(self) -> int:
        """Known of each number."""
        return min(self.uniforms.bits, self.pair.bits if self.pair else self.uniforms.bits)

    def extend(self, source: Bits) -> None:
        """Learn twice as many bits of the same numbers."""
        self.uniforms.extend(source)
        if self.pair:
            self.pair.extend(source)

    def value(self) -> Decimal:
        """In the decimals of the context."""
        product = Decimal(1)
        for k in self.uniforms.known:
            product *= Decimal(2 * k + 1) / (2 << self.uniforms.bits)
        square = -2 * product.ln()
        return (square + self.pair.values()[0] ** 2 if self.pair else square).sqrt()


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
        bits = NORMAL_BITS
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


BITS = 18
"""Products of two lattice values, and sums of them over a block, are exact in floats; over all persons modulo 2^64."""
_DIGITS = 130
UNIFORM_BITS = 448
"""Of a uniform number: some more than 130 digits."""
LARGEST_ORDER = 1000
"""Of the matrices that the next is for."""
WISHART_DISTANCE = 1e-36
"""Bound on the total variation distance of the integers that are drawn and those of the law: see ``wishart``."""
_FLOATS = 1e-9
"""Relative error that is allowed for in values of the χ² distribution, and in what is computed of them."""
_MOST = 2**25
"""Degrees beyond which the noise would not fit into int64."""


def hockey_stick(epsilon: float, nu: int) -> float:
    """δ at ε of Wishart noise with ν degrees, where a person is added or removed; see the module."""
    from scipy.stats import chi2

    k = (nu - 2) / 2
    # log density of χ² + 1 over that of χ² at x: k log(1 - 1/x) + 1/2.
    low = 1 / -math.expm1(-(epsilon + 0.5) / k)
    one = _difference(chi2.cdf(low, nu), math.exp(epsilon + chi2.logcdf(low - 1, nu)))
    if epsilon >= 0.5:
        return one
    high = 1 / -math.expm1((epsilon - 0.5) / k)
    return max(one, _difference(chi2.sf(high - 1, nu), math.exp(epsilon + chi2.logsf(high, nu))))


def _difference(a: float, b: float) -> float:
    """a - b, and more than it can be off in floating point."""
    return float(a - b + _FLOATS * (a + b))


@functools.lru_cache(maxsize=64)
def degrees(epsilon: float, delta: float) -> int:
    """Smallest ν >= 3 such that Wishart noise with m = ν + p - 1 degrees, as it is drawn, is (ε, δ)-private.

    What is drawn is within t = 1e-36 of the law, which costs (1 + e^ε) t of δ.

    Raises
    ------
    PrivacyError
        It would be so much noise that it does not fit into 64 bits, or δ is no larger than what the draw costs of it.
    """
    drawn = (1 + math.exp(min(epsilon, 700.0))) * WISHART_DISTANCE
    if delta <= 2 * drawn:
        raise PrivacyError(
            f"delta must be above {2 * drawn:.3g} for Wishart noise at epsilon {epsilon:g}, got {delta:g}"
        )
    delta -= drawn
    low, high = 2, 3
    while hockey_stick(epsilon, high) > delta:
        low, high = high, 2 * high
        if high > _MOST:
            raise PrivacyError(f"epsilon must be larger for Wishart noise, got {epsilon:g} at delta {delta:g}")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if hockey_stick(epsilon, middle) > delta else (low, middle)
    return high


def wishart(p: int, nu: int, unit: float, uniform: Callable[[], decimal.Decimal]) -> list[int]:
    """Upper triangle of unit · W, rounded, W ~ Wishart_p(ν + p - 1, I), by Bartlett's decomposition in 130 digits.

    *How near to the law.* There are N pairs of uniform numbers, fewer than 4 p (p + 1) but with a probability below
    1e-40, p <= 1000. Leave out that a pair's s, or a uniform number of an acceptance, is within 1e-44 of 0 or 1: 1e-37
    in all. A uniform number of 448 bits is within 1e-134 of a real one, and the polar method multiplies errors by less
    than 1e46: normals and gammas are within 1e-80 of their ideal values, and a decision falls otherwise with a
    probability of 1e-70. The integers, below 2^90, are then rounded otherwise with a probability below 1e-45. Together
    this is less than 1e-36.
    """
    with decimal.localcontext() as context:
        context.prec = _DIGITS
        spare: list[decimal.Decimal] = []

        def normal() -> decimal.Decimal:
            while not spare:  # Marsaglia's polar method
                u, v = 2 * uniform() - 1, 2 * uniform() - 1
                s = u * u + v * v
                if 0 < s < 1:
                    factor = (-2 * s.ln() / s).sqrt()
                    spare.extend((u * factor, v * factor))
            return spare.pop()

        def chi_square(degrees: int) -> decimal.Decimal:
            """Twice a Gamma(degrees/2) (Marsaglia & Tsang 2000); degrees >= 2."""
            d = decimal.Decimal(degrees) / 2 - decimal.Decimal(1) / 3
            c = 1 / (9 * d).sqrt()
            while True:
                x = normal()
                v = (1 + c * x) ** 3
                if v > 0 and uniform().ln() < x * x / 2 + d * (1 - v + v.ln()):
                    return 2 * d * v

        rows = [[normal() for _ in range(i)] + [chi_square(nu + p - 1 - i).sqrt()] for i in range(p)]
        scale = decimal.Decimal(unit)
        zero = decimal.Decimal(0)
        return [
            int((scale * sum((a * b for a, b in zip(rows[i], rows[j], strict=False)), zero)).to_integral_value())
            for i in range(p)
            for j in range(i, p)
        ]


def float_wishart(p: int, nu: int, unit: float, rng: np.random.Generator) -> FloatArray:
    """Upper triangle of unit · W with W ~ Wishart_p(ν + p - 1, I), in floating point, for simulations."""
    root = np.tril(rng.standard_normal((p, p)), -1) + np.diag(np.sqrt(rng.chisquare(nu + p - 1 - np.arange(p))))
    return np.asarray(unit * (root @ root.T)[np.triu_indices(p)])


UNIT = 2.0**30
"""A direction is given as integers, of this length."""
_BATCH = 32


def order_of(size: int) -> int:
    """Order of the symmetric matrix whose triangle has so many entries."""
    return int((np.sqrt(8.0 * size + 1) - 1) / 2 + 0.5)


def triangle(order: int) -> tuple[IntArray, IntArray]:
    """Rows and columns of the entries on and above the diagonal, row by row."""
    rows, columns = np.triu_indices(order)
    return rows.astype(np.int64), columns.astype(np.int64)


def matrix_of(entries: IntArray) -> FloatArray:
    """Symmetric matrix of the Frobenius norm of its coordinates: the upper triangle, times √2 off the diagonal."""
    rows, columns = triangle(order_of(len(entries)))
    return symmetric(np.where(rows == columns, 1.0, np.sqrt(0.5)) * entries)


def symmetric(entries: FloatArray) -> FloatArray:
    """Matrix of its entries on and above the diagonal, row by row."""
    d = order_of(len(entries))
    rows, columns = triangle(d)
    S = np.zeros((d, d))
    S[rows, columns] = S[columns, rows] = entries
    return S


def bingham(entries: IntArray, scale: float, uniform: Callable[[int], FloatArray]) -> IntArray:
    """Draw a direction.

    Parameters
    ----------
    entries : ndarray of shape (d (d + 1)/2,)
        Upper triangle of S, times √2 off the diagonal.
    scale : float
    uniform : callable
        From a number to so many independent uniform values in (0, 1).

    Returns
    -------
    ndarray of shape (d,)
        The direction times :data:`UNIT`, rounded.
    """
    values, axes = np.linalg.eigh(matrix_of(entries))
    d = len(values)
    penalty = (values[-1] - values) / scale
    low, high = 1.0, float(d)
    for _ in range(200):
        b = (low + high) / 2
        if not low < b < high:
            break
        low, high = (b, high) if (1 / (b + 2 * penalty)).sum() > 1 else (low, b)
    b = low
    width = 1 / np.sqrt(1 + 2 * penalty / b)
    bound = (d - b) / 2 - d / 2 * np.log(d / b)
    while True:
        z = ndtri(uniform(_BATCH * d)).reshape(_BATCH, d) * width
        u = z / np.sqrt((z * z).sum(axis=1, keepdims=True))
        t = (u * u) @ penalty
        accepted = np.log(uniform(_BATCH)) < -t + d / 2 * np.log1p(2 * t / b) + bound
        if accepted.any():
            direction: FloatArray = axes @ u[int(np.argmax(accepted))]
            return np.rint(direction * UNIT).astype(np.int64)
