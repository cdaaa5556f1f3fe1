"""Random bits of a client: from the operating system in use, seeded in simulations."""

from __future__ import annotations

import decimal
import secrets

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from fdadp._common.typing import FloatArray

Words = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]
FULL = 2**64


class Coins:
    """Independent uniform 64-bit words.

    Parameters
    ----------
    seed : int, optional
        For simulation only: whoever knows it can undo the randomisation. Default: the system's randomness.

    Attributes
    ----------
    secure : bool
        Whether the words may protect anybody.
    """

    def __init__(self, seed: int | None = None) -> None:
        self.secure = seed is None
        self._rng = None if seed is None else np.random.default_rng(seed)

    def words(self, rows: int, columns: int) -> Words:
        """Draw words, (rows, columns); row by row, so that many rows at once are those of one after the other."""
        if self._rng is not None:
            return self._rng.integers(0, FULL - 1, (rows, columns), dtype=np.uint64, endpoint=True)
        return np.frombuffer(secrets.token_bytes(8 * rows * columns), dtype=np.uint64).reshape(rows, columns)


def threshold(epsilon: float) -> int:
    """Numerator of the probability e^ε/(1 + e^ε) in units of 2⁻⁶⁴, rounded down and below 1.

    So the odds of a coin that shows "keep" where a word is below it are at most e^ε, exactly.

    Examples
    --------
    >>> threshold(0.0) == 2**63, threshold(1000.0) == 2**64 - 1
    (True, True)
    """
    with decimal.localcontext() as context:
        context.prec = 60
        return min(int(FULL / (1 + (-decimal.Decimal(epsilon)).exp())), FULL - 1)


def tossed(words: Words, below: int) -> Bools:
    """True with probability below/2⁶⁴, exactly."""
    return np.asarray(words < np.uint64(below))


def uniforms(words: Words) -> FloatArray:
    """Numbers in (0, 1), 53 bits each."""
    return np.asarray(np.minimum(((words >> np.uint64(11)) + 0.5) * 2.0**-53, 1 - 2.0**-53))


def normals(words: Words) -> FloatArray:
    """Standard normal numbers."""
    return np.asarray(ndtri(uniforms(words)))
