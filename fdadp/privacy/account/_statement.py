"""Plain words for the custodian: what the releases of a Cohort protect, and what they do not."""

from __future__ import annotations

from fdadp._common.promised import promised
from fdadp.privacy.account.budget import Budget

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
