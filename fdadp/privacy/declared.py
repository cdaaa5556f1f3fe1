"""What is declared in public, checked by itself: whole numbers, adjacencies, and δ against the number of persons."""

from __future__ import annotations

import operator
from numbers import Real
from typing import Any

from fdadp.errors import PrivacyError

ADJACENCIES = ("zero-out", "add-remove", "replace")
LARGEST_DELTA = 1e-3
"""Where n is private, and δ cannot be held against it; see ``docs/theory/accounting.md#delta``."""


def whole(value: Any, name: str, what: str, *, least: int = 1) -> int:
    """Return an integer as Python's, which can be saved, whatever type it had; raises PrivacyError for others."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:  # of an array, for one
        number = None
    if number is None or number < least:
        kind = "a positive" if least else "a non-negative"
        raise PrivacyError(f"{name} must be {kind} integer, {what}, got {value!r}")
    return number


def said_delta(delta: Any) -> float | None:
    """Return a δ that was said, or None, pure ε, where none was said or it is 0; raises PrivacyError."""
    if delta is None or (not isinstance(delta, bool) and isinstance(delta, Real) and delta == 0):
        return None
    if isinstance(delta, bool) or not isinstance(delta, Real) or not 0 < float(delta) < 1:
        raise PrivacyError(f"delta must lie between 0 and 1, or be 0 or left out for pure epsilon, got {delta!r}")
    return float(delta)


def check_delta(delta: float | None, n: float | None) -> None:
    """Refuse a δ of 1/n or more, n declared or released: it would allow to publish a person's data as they are.

    Without n, :data:`LARGEST_DELTA` is the limit.

    Raises
    ------
    PrivacyError
    """
    if delta is None:
        return
    if n is None and delta > LARGEST_DELTA:
        raise PrivacyError(
            f"delta must be at most {LARGEST_DELTA:g} where n is private, and better far below 1 over any n that you "
            f"think possible, got {delta:g}; nothing was read and nothing was spent"
        )
    if n is not None and delta * n >= 1:
        raise PrivacyError(f"delta must be below 1/n = {1 / n:g}, got {delta:g}")
