"""What is declared in public, checked by itself, and what is promised for it, in plain words for the custodian."""

from __future__ import annotations

import math
import operator
from numbers import Real
from typing import TYPE_CHECKING, Any

from fdadp._common.guarantee_in_words import promised
from fdadp.errors import PrivacyError

if TYPE_CHECKING:
    from fdadp.privacy.account.budget import Budget


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


def as_float(value: Any) -> float:
    """Return a real number as Python's float, infinite beyond all of them; NaN of what is no number."""
    is_one = isinstance(value, Real) and not isinstance(value, bool)
    try:
        return float(value) if is_one else math.nan
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def said_delta(delta: Any) -> float | None:
    """Return a δ that was said, or None, pure ε, where none was said or it is 0; raises PrivacyError."""
    number = 0.0 if delta is None else as_float(delta)
    if not 0 <= number < 1 or (number == 0 and delta):
        raise PrivacyError(f"delta must lie between 0 and 1, or be 0 or left out for pure epsilon, got {delta!r}")
    return number or None


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
    if n is not None and delta * as_float(n) >= 1:
        raise PrivacyError(f"delta must be below 1/n = {1 / n:g}, got {delta:g}")


UNITS = {True: "person (all rows with one id in persons)", False: "row (a whole person only where nobody has several)"}

NEIGHBOURS = {
    "zero-out": "one person's data are blanked out, so that they contribute nothing; the number of persons was "
    "declared and counts as public",
    "add-remove": "one person is added or removed; the number of persons is private",
    "replace": "one person's data are exchanged for any other; the number of persons was declared and counts as public",
}

LEFT_OUT = {
    "zero-out": "had been left out",
    "add-remove": "had been left out",
    "replace": "had been exchanged for any others",
}
"""The other world that the guarantee compares with, of "your data"."""

NOT_COVERED = (
    "timing and memory use",
    "ranges, sizes, functions, seeds or settings that were chosen by looking at these data",
    "fitting again until the result looks good, unless every fit drew on this budget",
    "what other studies and contracts and tables of the same people cost besides",
    "diagnostics and plots computed from the raw data",
    "what the functions handed to the Cohort do beyond returning one value a row",
    "failures of the storage that the rows are read from",
    "facts about a group of several persons: their loss adds up",
)


DIRECTIONS_IN_FLOATS = (
    "Directions were drawn by the exponential mechanism in floating point: the guarantee is proved for its law in real "
    "numbers, and that the draw has exactly this law is not. NOT FOR RELEASE."
)


def statement(budget: Budget, adjacency: str, unit: str, *, secure: bool, if_only: str | None = None) -> str:
    """Say what is protected and what is not, and whom it takes for that (``if_only``)."""
    known = promised(budget.epsilon, budget.delta)
    text = (
        f"Everything computed from the releases below, and from all else that drew on this budget, is "
        f"({known})-differentially private. What anyone can conclude from it is nearly as probable when "
        f"{NEIGHBOURS[adjacency]}. Protected unit: {unit}. "
        f"Not covered: {'; '.join(NOT_COVERED)}."
    )
    if if_only:
        text += f" This holds as long as {if_only}."
    if not secure:
        text += (
            " NOT FOR RELEASE: the noise came from a source for simulation or audit, which can be repeated or undone."
        )
    return text


def broken(used: float, reserved: float, budget: Budget) -> str:
    """Say that more was spent than was promised: no guarantee is stated then."""
    return (
        f"GUARANTEE BROKEN: the releases below cost {used:.6g} of {reserved:.6g} that were reserved for them, and all "
        f"that drew on this budget {budget.cost:.6g} of {budget.total:.6g} ({budget.measure}). The promise of "
        f"{promised(budget.epsilon, budget.delta)} does not hold. This is an error in the program: release nothing, "
        "and report it."
    )
