"""Randomisers that send signs, each through a coin of rational odds of at most e^ε: all of them, or one at random.

Which reports are possible never depends on the record. Where the bit before the coin comes from, and how it was
rounded, does not matter for the guarantee.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.federated.local._base import LARGEST, Randomizer, Reports, as_bytes, inverse_bias, log_odds
from fdadp.federated.local.coins import Coins, threshold, tossed, uniforms
from fdadp.learners.shared.inputs import positive


class CondensedLocal(Randomizer):
    """Condensed local differential privacy: every entry rounded to a random sign, and each sign sent through a coin.

    Parameters
    ----------
    dimensions : int
    kappa : float
        Log-odds with which a sign is kept.

    Attributes
    ----------
    kappa : float

    Notes
    -----
    s_j = ±1 with mean g_j; the exponential mechanism over {-1, 1}^D with utility ``D - Hamming(s, t)`` and exponent κ
    is one coin a sign, because exp(κ u) is a product and its sum (1 + e^κ)^D the same for every s. So
    ``P(t | s)/P(t | s') <= exp(κ Hamming(s, s'))``: κ-condensed-local for the Hamming distance of the signs. Two
    records whose signs may all differ are told apart as by ε = κ D: that is the local guarantee, and it is tight.

    References
    ----------
    Gursoy, Tamersoy, Truex, Wei & Liu (2019), arXiv:1905.06361.
    """

    name = "cldp"

    def __init__(self, dimensions: int, kappa: float) -> None:
        super().__init__(dimensions, positive(kappa, "kappa", below=LARGEST) * dimensions)
        self.kappa = float(kappa)
        self.rho = self.dimensions * self.kappa**2 / 2
        self._keep = threshold(self.kappa)
        self.length = math.sqrt(self.dimensions) * inverse_bias(self._keep)
        self.width = -(-self.dimensions // 8)
        self.noise = f"randomised response on {self.dimensions} signs"
        self.format = f"{self.dimensions} bits, 1 for +1, lowest first, in {self.width} byte(s)"

    @property
    def exact_epsilon(self) -> float:
        """Largest log-ratio of two probabilities of the coins."""
        return self.dimensions * log_odds(self._keep)

    def __call__(self, gradients: FloatArray, coins: Coins) -> Reports:
        """Reports (m, width) of gradients (m, D), from 2 D words of random bits a row."""
        D = self.dimensions
        words = coins.words(len(gradients), 2 * D)
        signs = _signs(gradients, uniforms(words[:, :D]))
        return np.packbits(signs == tossed(words[:, D:], self._keep), axis=1, bitorder="little")

    def estimate(self, reports: Reports) -> FloatArray:
        """Unbiased estimates (m, D) of the gradients."""
        bits = np.unpackbits(reports, axis=1, count=self.dimensions, bitorder="little")
        return np.asarray((2.0 * bits - 1) * inverse_bias(self._keep), dtype=np.float64)


class OneCoordinate(Randomizer):
    """One coordinate, drawn at random, as a sign through a coin with all of ε.

    References
    ----------
    Nguyên, Xiao, Yang, Hui, Shin & Shin (2016), arXiv:1606.05053.
    """

    name = "one_coordinate"
    width = 4

    def __init__(self, dimensions: int, epsilon: float) -> None:
        super().__init__(dimensions, epsilon)
        self._keep = threshold(self.epsilon)
        self.length = self.dimensions * inverse_bias(self._keep)
        self.noise = f"randomised response on the sign of one of {self.dimensions} coordinates"
        self.format = "unsigned 32-bit integer, little-endian: twice the index, plus 1 for +1"

    @property
    def exact_epsilon(self) -> float:
        """Largest log-ratio of two probabilities of the coins."""
        return log_odds(self._keep)

    def __call__(self, gradients: FloatArray, coins: Coins) -> Reports:
        """Reports (m, width) of gradients (m, D), from 3 words of random bits a row."""
        words = coins.words(len(gradients), 3)
        at = (words[:, 0] % np.uint64(self.dimensions)).astype(np.int64)  # off uniform by 2^-64 times D
        sign = _signs(gradients[np.arange(len(at)), at], uniforms(words[:, 1]))
        return as_bytes((2 * at + (sign == tossed(words[:, 2], self._keep))).astype("<u4"))

    def estimate(self, reports: Reports) -> FloatArray:
        """Unbiased estimates (m, D) of the gradients."""
        codes = np.ascontiguousarray(reports).view("<u4")[:, 0].astype(np.int64)
        if codes.size and codes.max() >= 2 * self.dimensions:
            raise InputError(f"reports must name a coordinate below {self.dimensions}, got {int(codes.max()) // 2}")
        out = np.zeros((len(codes), self.dimensions))
        out[np.arange(len(codes)), codes // 2] = np.where(codes % 2 == 1, self.length, -self.length)
        return out


def _signs(values: FloatArray, uniform: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether +1, with mean `values` of ±1."""
    return np.asarray(uniform < (1 + values) / 2)
