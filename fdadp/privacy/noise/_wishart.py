"""A second moment with Wishart noise: what the kernel adds up, how much noise, and how it is drawn.

*Privacy* (proof: ``docs/theory/noise.md#wishart``). M = Σ aa' + W with |a| <= 1, W ~ Wishart_p(m, I), ν = m - p + 1 >=
2. With F and S = 1 - F those of χ² with ν degrees, one row more or less is as hard to notice as χ² + 1 beside χ²:

    δ(ε) = max(F(u) - e^ε F(u - 1), S(v - 1) - e^ε S(v)),

at the points where the two densities differ by e^ε. As ν grows the noise becomes that of the Gaussian mechanism on
symmetric matrices, with twice the variance on the diagonal.

*Integers.* Rows are truncated onto a lattice (``_rows``), products and sums are exact; M is a lattice point plus W, so
rounding M to the lattice is rounding W: post-processing. It is released modulo 2^64, a function of it again, so that no
number of persons is too large. W is computed to 130 digits,
and what these leave is counted in δ.
"""

from __future__ import annotations

import decimal
import functools
import math
from collections.abc import Callable

import numpy as np
from scipy.stats import chi2

from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import PrivacyError
from fdadp.privacy.boundary import sealed
from fdadp.privacy.rows._local import BLOCK, RowFunction, evaluate, silence
from fdadp.privacy.rows._rows import quantise_rows
from fdadp.privacy.rows._vault import Vault

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


@sealed
def exact_moment(vault: Vault, f: RowFunction, shape: tuple[int, ...], clip: float) -> IntArray:
    """Upper triangle of Σ aa', a = f(row) clipped to |a| <= clip, in units of (clip · 2^-BITS)²; one row a person."""
    p = math.prod(shape)
    total = np.zeros((p, p), dtype=np.int64)
    points, unused, ones = np.empty((BLOCK, p)), np.empty((BLOCK, 1)), np.ones(BLOCK)
    with silence():
        for rows, m, _ in vault.blocks():
            a = evaluate(f, rows, m, [shape])[0].reshape(-1, p)
            quantise_rows(a, np.zeros((BLOCK, 1)), m, ones, clip, 1.0, 2.0**BITS, points, unused)
            total += (points[:m].T @ points[:m]).astype(np.int64)  # exact, whatever the order
    return total[np.triu_indices(p)]


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
