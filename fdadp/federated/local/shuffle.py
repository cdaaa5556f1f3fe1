"""What local reports give away once a trusted shuffler has taken the senders off: a central guarantee, not ε_LDP.

Feldman, McMillan & Talwar (2021), Hiding Among the Clones, FOCS, arXiv:2012.12803, Theorem 3.1.
"""

from __future__ import annotations

import math

import numpy as np

from fdadp.errors import InputError, PrivacyError
from fdadp.learners._features import positive

__all__ = ["fewest_users", "shuffled_epsilon"]


def fewest_users(epsilon0: float, delta: float) -> int:
    """Smallest n for which :func:`shuffled_epsilon` holds: ε0 <= ln(n/(16 ln(2/δ)))."""
    return math.ceil(16 * math.log(2 / delta) * math.exp(epsilon0))


def shuffled_epsilon(epsilon0: float, n: int, delta: float) -> float:
    """ε of the shuffled reports of one round, for replacing one user's record.

    ``ln(1 + (e^ε0 - 1)/(e^ε0 + 1) · (8 √(e^ε0 ln(4/δ))/√n + 8 e^ε0/n))``, or ε0 where that is less.

    Parameters
    ----------
    epsilon0 : float
        ε_LDP of one report.
    n : int
        Users who report in this **one** round, all with the same mechanism.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        Of (ε, δ), in the sense that n is public and one record is exchanged for another. It holds for those who see
        nothing but the shuffled reports: the shuffler must be trusted, and the n users must really take part.

    Raises
    ------
    PrivacyError
        Too few users for the theorem.
    InputError
        Numbers out of range.

    Examples
    --------
    >>> round(shuffled_epsilon(1.0, 10_000, 1e-6), 3)
    0.214
    """
    positive(epsilon0, "epsilon0", below=700.0)
    positive(delta, "delta", below=1.0)
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise InputError(f"n must be a whole number of at least 1, got {n!r}")
    if n < fewest_users(epsilon0, delta):
        raise PrivacyError(
            f"n must be at least {fewest_users(epsilon0, delta)} users in the round for epsilon0 = {epsilon0:g} and "
            f"delta = {delta:g}, got {n}"
        )
    grown = math.exp(epsilon0)
    term = 8 * math.sqrt(grown * math.log(4 / delta) / n) + 8 * grown / n
    return min(epsilon0, math.log1p(math.tanh(epsilon0 / 2) * term))
