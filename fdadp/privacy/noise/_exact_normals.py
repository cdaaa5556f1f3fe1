"""Normal and χ variables from bits of the system's randomness, to any precision, with a bound on their error.

They stand on *ideal* uniform numbers of which the first ``bits`` are known; more are asked for where these do not
settle a decision: whether a pair lies inside the unit circle, or how a sum of products of the values is rounded. So
every decision is the one of the ideal real numbers, and the law of what is decided is exact, not merely close.

*Error.* A uniform number is known within 2^-bits. Numbers and squared lengths that are within 2^(-bits/4) of 0 or 1 are
asked for more bits before they are used. From there the polar method multiplies an error by less than 2^(bits/8 + 2)
√bits, and √(-2 log Πu) with k factors by less than 2^(3 bits/8) k; decimals of 0.35 bits digits round off less than
2^(-1.14 bits). With bits >= 256 and k < 2^30 each value is thus within 2^(-bits/2 - 2) of its ideal one, hence within
one unit of 2^(-bits/2) when it is rounded to such units.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

BITS = 256
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
            pair = cls([source(BITS), source(BITS)], BITS)
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
        uniforms = Uniforms([source(BITS) for _ in range(degrees // 2)], BITS)
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
