"""ε, δ and other numbers in words, said in one way wherever a guarantee is stated."""

from __future__ import annotations

import math

COMPOSED = "Gaussian noise adds in squares: fits at 1, .5 and 1.5 together cost 1.94, not 3."
"""At δ = 10⁻⁶."""


def promised(epsilon: float, delta: float | None) -> str:
    """Say what is promised; no δ is pure ε.

    Examples
    --------
    >>> promised(1.0, 1e-6), promised(0.5, None)
    ('epsilon = 1, delta = 1e-06', 'epsilon = 0.5')
    """
    return f"epsilon = {epsilon:g}" + ("" if delta is None else f", delta = {delta:g}")


def composed(delta: float | None) -> str:
    """Say how what several fits cost adds up, in one way wherever they stand in a table.

    Examples
    --------
    >>> composed(None)
    'Without a delta the epsilons add up. The column share adds up to 100 %.'
    """
    return f"{COMPOSED if delta else 'Without a delta the epsilons add up.'} The column share adds up to 100 %."


def rounded_up(value: float, digits: int = 3) -> float:
    """Round a number of at least 0 up to so many digits.

    Examples
    --------
    >>> rounded_up(1.2341), rounded_up(0.5)
    (1.24, 0.5)
    """
    if value == 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return math.ceil(value / unit * (1 - 1e-12)) * unit


def shown_up(value: float, digits: int = 3) -> str:
    """The same as text, with two digits more, in which nothing of the rounding is lost.

    Examples
    --------
    >>> shown_up(1.2341)
    '1.24'
    """
    return f"{rounded_up(value, digits):.{digits + 2}g}"
