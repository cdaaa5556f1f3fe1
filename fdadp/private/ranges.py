"""Public ranges of curves' values, which private fits require: ``bounds=``. Chosen without looking at the data.

The regression takes them as hints of location and size, and clips at three half-widths (docs/bounds.md); summaries clip
at them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fdadp.errors import PrivacyError

Range = tuple[float, float]
CLOSEST = 1e-9
"""Width of a range over the size of its ends, at least: numbers in it can be told apart."""
SMALLEST_WIDTH = 1e-30


def public_range(pair: Any, name: str = "bounds", *, of: str = "Y", example: str = "bounds=(low, high)") -> Range:
    """Check one range.

    Parameters
    ----------
    pair : (float, float)
    name : str
        Of the argument, for errors.
    of, example : str
        Whose range is missing where it is None, and how it is given.

    Returns
    -------
    low, high : float

    Raises
    ------
    PrivacyError
        It is missing or not finite, does not increase, or has a width beyond what can be computed with.
    """
    if pair is None:
        raise PrivacyError(
            f"bounds must give a public range for {of}, as in {example}, got None; a range taken from the data would "
            "not be private"
        )
    try:
        low, high = (float(v) for v in pair)
    except (TypeError, ValueError) as exc:
        raise PrivacyError(f"{name} must be a pair (low, high) of numbers, got {pair!r}") from exc
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise PrivacyError(f"{name} must be finite with low < high, got ({low:g}, {high:g})")
    if not (SMALLEST_WIDTH <= high - low <= 1 / SMALLEST_WIDTH and high - low > CLOSEST * max(-low, high)):
        raise PrivacyError(
            f"{name} must have a width that can be computed with: from {SMALLEST_WIDTH:g} to {1 / SMALLEST_WIDTH:g}, "
            f"and above 1e-9 of the values, got ({low!r}, {high!r})"
        )
    return low, high


def public_ranges(bounds: Any, names: Sequence[str] = ("X", "Y"), *, required: bool = True) -> dict[str, Range]:
    """Check the ranges of several kinds of curves.

    Parameters
    ----------
    bounds : mapping from name to (float, float), or None
    names : sequence of str
        Which there are.
    required : bool
        Refuse where one is missing; else only what is given must be right.

    Returns
    -------
    dict from name to (low, high), in the order of `names`

    Raises
    ------
    PrivacyError
    """
    example = "bounds={" + ", ".join(f'"{name}": (low, high)' for name in names) + "}"
    given = {} if bounds is None else bounds
    if not isinstance(given, Mapping):
        raise PrivacyError(f"bounds must be a range for each of {', '.join(names)}, as in {example}, got {bounds!r}")
    for name in given:
        if name not in names:
            raise PrivacyError(f"bounds must be those of {', '.join(names)}, as in {example}, got one of {name!r}")
    return {
        name: public_range(given.get(name), f"bounds of {name}", of=name, example=example)
        for name in names
        if required or given.get(name) is not None
    }
