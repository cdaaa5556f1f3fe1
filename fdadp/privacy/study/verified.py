"""The file of a study held against itself: hashes, sums, costs, and the total."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fdadp.errors import PrivacyError
from fdadp.privacy.study._entries import damaged, entries, replayed
from fdadp.privacy.study._file import reading

if TYPE_CHECKING:
    from fdadp.privacy.study.study import Study

__all__ = ["wrong_with"]

SLACK = 1e-8
"""Of shares that add up in floating point."""


def wrong_with(study: Study) -> tuple[str, ...]:
    """What is wrong with the file, in words; nothing where all of it holds.

    Parameters
    ----------
    study : Study
    """
    found: list[str] = []
    with reading(study.path) as db:
        sane = [row[0] for row in db.execute("PRAGMA integrity_check")]
        found += [] if sane == ["ok"] else [f"the file is damaged: {sane[0]}"]
        wrong = damaged(db)
        if wrong:
            return (*found, wrong)
        try:
            told = replayed(entries(db))
        except PrivacyError as exc:
            return (*found, str(exc))
        rows = db.execute("SELECT number, share, used, cost, state, whole FROM reservations").fetchall()
    kept = {number: (share, used, cost, state, bool(w)) for number, share, used, cost, state, w in rows}
    if set(kept) != set(told):
        found.append("there are other reservations than the entries tell of")
    of = study.facts
    for number, r in told.items():
        says = (r.share, sum(r.shares), sum(r.costs), r.state, r.whole)
        if number in kept and kept[number] != says:  # bit for bit: the same additions in the same order
            found.append(f"reservation {number} is not what the entries tell of it")
        if sum(r.costs) > of["total"] * r.share * (1 + SLACK) and r.costs:
            found.append(f"releases of reservation {number} cost more than was reserved")
    if math.fsum(r.share for r in told.values()) > 1 + SLACK:
        found.append("more was reserved than the total")
    if math.fsum(c for r in told.values() for c in r.costs) > of["total"]:
        found.append("the releases cost more than the total")
    try:
        study.budget  # noqa: B018
    except PrivacyError as exc:
        found.append(str(exc))
    return tuple(found)
