"""What every local randomiser of a gradient has: its ε, the length of its estimates, the bytes of its reports."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fdadp._common.checks import whole
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.federated.local.coins import FULL, Coins
from fdadp.learners.shared.inputs import positive

Reports = npt.NDArray[np.uint8]
SMALLEST, LARGEST = 1e-6, 700.0
"""Of an ε: below, the bias of a coin in units of 2⁻⁶⁴ would show; above, e^ε is no float."""


class Randomizer:
    """An ε-LDP report of a vector g (D,), |g_j| <= 1.

    Parameters
    ----------
    dimensions : int
        D.
    epsilon : float
        Of one report.

    Attributes
    ----------
    epsilon : float
        What is claimed.
    rho : float
        zCDP of one report.
    length : float
        Euclidean length of every estimate, in units of g.
    width : int
        Bytes of a report.
    noise, format : str
        In words: the law, for the ledger; the bytes, for whoever writes another client.
    proved : bool
        Whether ε is proved for reports as they are drawn (``docs/theory/noise.md#exactness``).
    """

    name: ClassVar[str]
    proved: ClassVar[bool] = True
    dimensions: int
    epsilon: float
    rho: float
    length: float
    width: int
    noise: str
    format: str

    def __init__(self, dimensions: int, epsilon: float) -> None:
        whole(dimensions, "dimensions", least=2)
        if positive(epsilon, "epsilon", below=LARGEST) < SMALLEST:
            raise InputError(f"epsilon must be at least {SMALLEST:g}, got {epsilon!r}")
        self.dimensions = int(dimensions)
        self.epsilon = float(epsilon)
        self.rho = self.epsilon**2 / 2

    @property
    def exact_epsilon(self) -> float:
        """Largest log-ratio of two probabilities, of the coins as they are tossed; at most :attr:`epsilon`."""
        raise NotImplementedError

    def __call__(self, gradients: FloatArray, coins: Coins) -> Reports:
        """Reports (m, width) of gradients (m, D), each by itself."""
        raise NotImplementedError

    def estimate(self, reports: Reports) -> FloatArray:
        """Unbiased estimates (m, D) of the gradients; raises InputError for bytes that are no report."""
        raise NotImplementedError

    def squared_error(self, gradient: FloatArray) -> float:
        """Expected squared distance of the estimate from g, for one report."""
        return self.length**2 - float(np.square(gradient).sum())

    def __repr__(self) -> str:
        return f"{type(self).__name__}(dimensions={self.dimensions}, epsilon={self.epsilon:g})"


def inverse_bias(keep: int) -> float:
    """1/(2p - 1), by which a sign that was kept with probability p is scaled to be unbiased."""
    return FULL / (2 * keep - FULL)


def log_odds(keep: int) -> float:
    """Log-odds of a coin: the ε of what is sent through it."""
    return math.log1p((2 * keep - FULL) / (FULL - keep))


def as_bytes(values: npt.NDArray[Any]) -> Reports:
    """Each row as bytes (m, width)."""
    return np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)
