"""The file of a study held against itself: hashes, sums, costs, and the total."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from fdadp.errors import PrivacyError
from fdadp.privacy.study._entries import clock_behind
from fdadp.privacy.study._file import reading

if TYPE_CHECKING:
    from fdadp.privacy.study.study import Study

SLACK = 1e-8
"""Of shares that add up in floating point."""


def wrong_with(study: Study) -> tuple[str, ...]:
    """What is wrong with the file, in words; nothing where all of it holds.

    Parameters
    ----------
    study : Study
    """
    try:
        with reading(study.path, anew=True) as file:
            told, lines, missing = file.told, file.entries, file.put_back()
    except PrivacyError as exc:
        return (str(exc),)
    found = [] if missing is None else [f"it was put back to an older state: {missing}"]
    of = told.first.content
    for before, line in pairwise(lines):
        if line.time < before.time:
            found.append(f"entry {line.position} was written before the one before it, by the clock")
        if line.kind == "reserved" and line.time[:10] > (of["expires"] or "9"):
            found.append(f"entry {line.position} was written after the last day of the study")
    behind = clock_behind(told.last)
    found += [f"the clock was set back, or ahead before: {behind}"] if behind else []
    for number, r in told.held.items():
        if sum(r.costs) > of["total"] * r.share * (1 + SLACK) and r.costs:
            found.append(f"releases of reservation {number} cost more than was reserved")
    if math.fsum(r.share for r in told.held.values()) > 1 + SLACK:
        found.append("more was reserved than the total")
    if math.fsum(c for r in told.held.values() for c in r.costs) > of["total"]:
        found.append("the releases cost more than the total")
    try:
        study.budget  # noqa: B018
    except PrivacyError as exc:
        found.append(str(exc))
    return tuple(found)
