"""What the entry of a column in ``bounds`` says: a range of numbers, or a list of levels."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from datetime import date, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from fdadp.errors import PrivacyError
from fdadp.privacy.boundary import number_of


def levels_of(given: Any, name: str) -> tuple[Hashable, ...]:
    """Public levels of a column of labels.

    Raises
    ------
    PrivacyError
        They are missing, or fewer than two.
    """
    if given is None:
        raise PrivacyError(
            f'bounds must give the public levels of {name}, as in bounds={{"{name}": ["a", "b"]}}, got None; levels '
            "taken from the data would not be private"
        )
    if isinstance(given, str | bytes | Mapping) or not hasattr(given, "__iter__"):
        raise PrivacyError(f"bounds of {name} must be a list of its levels, got {given!r}")
    levels = tuple(v.item() if isinstance(v, np.generic) else v for v in given)
    if isinstance(given, tuple) and len(levels) == 2 and _is_range(levels):
        raise PrivacyError(
            f"bounds of {name} must be a list of its levels where it holds labels, or (low, high) in numbers where it "
            f"holds numbers, got {given!r}, which looks like a range"
        )
    if len(levels) < 2:
        raise PrivacyError(f"bounds of {name} must have at least two levels, got {list(levels)!r}")
    return levels


def _is_range(pair: tuple[Any, ...]) -> bool:
    """Whether two entries of a tuple, taken for levels, are more likely ends: numbers, also as text, dates, decimals.

    Two numbers next to one another, such as 0 and 1, are levels.
    """
    if all(isinstance(v, bool) for v in pair):
        return False
    if any(isinstance(v, date | np.datetime64 | timedelta | Decimal) for v in pair):
        return True
    low, high = map(number_of, pair)
    return math.isfinite(low) and math.isfinite(high) and high - low != 1


def is_pair(given: Any) -> bool:
    """Whether the bounds of a column are a range of numbers, or else a list of levels."""
    try:
        pair = tuple(given)
    except TypeError:
        return True  # refused as a range, with a text that says so
    numbers = [isinstance(v, Real) and not isinstance(v, bool) for v in pair]
    # With one end open it is refused as a range, too.
    return len(pair) == 2 and any(numbers) and all(is_one or v is None for is_one, v in zip(numbers, pair, strict=True))
