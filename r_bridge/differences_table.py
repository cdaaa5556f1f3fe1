"""The differences of a check of several-term models as one table in Markdown, a row for each fit of refund."""

from __future__ import annotations

import math
from collections.abc import Mapping

from r_bridge.difference_report import Report
from r_bridge.terms_beside_refund import CASES

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "fitted": ("fitted",),
    "predictions": ("predicted", "term"),
    "their se": ("standard errors",),
    "edf, variance": ("edf", "residual variance"),
    "functions": ("coefficient function",),
    "se of functions": ("its se", "its se with mean"),
    "score": ("score",),
    "fitted, own optimum": ("fitted, our optimum",),
    "own score above": ("our score above R's",),
}
"""Columns and the quantities whose largest difference they show."""

LEAST = 1e-13
"""What is below is shown as this: rounding, which depends on the machine."""


def rows_of(report: Report) -> dict[str, dict[str, float]]:
    """Largest difference of each column, by fit and column; columns without a comparison are left out."""
    found: dict[str, dict[str, float]] = {}
    for case in CASES:
        own = [d for d in report.differences if d.case == case.name]
        if own:
            values = {
                column: [d.value for d in own if d.quantity.partition(": ")[0] in quantities]
                for column, quantities in COLUMNS.items()
            }
            found[case.name] = {column: max(several) for column, several in values.items() if several}
    return found


def markdown(report: Report) -> str:
    """A table of bounds: the least power of ten that is not below the difference."""
    calls = {case.name: case.call for case in CASES}
    head = ["recorded fit", "call", *COLUMNS, "ms", "refund, s"]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for name, values in rows_of(report).items():
        cells = [_bound(values[column]) if column in values else "" for column in COLUMNS]
        took = f"{1e3 * report.seconds[name]:.0f}" if name in report.seconds else ""
        theirs = f"{report.seconds[f'{name}, R']:.0f}" if f"{name}, R" in report.seconds else ""
        lines.append(f"| {name} | `{calls[name]}` | {' | '.join(cells)} | {took} | {theirs} |")
    return "\n".join(lines)


def _bound(value: float) -> str:
    """The value rounded up to a power of ten; exact zeros are said."""
    if value == 0:
        return "0"
    return f"1e{math.ceil(math.log10(max(value, LEAST)) - 1e-9)}"
