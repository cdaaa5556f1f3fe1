"""Numbers for people, rounded so that they promise no more than holds."""

from __future__ import annotations

import math


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
