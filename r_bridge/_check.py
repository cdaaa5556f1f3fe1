"""Refit recorded cases with fdadp and report every difference. No R is needed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from r_bridge import affr, bases, fpca
from r_bridge.reference import case_names, find_case, read_case
from r_bridge.report import Difference, Report

__all__ = ["check", "check_case", "why_not"]

NOT_YET = {
    "pffr": "fdadp has no terms of pffr yet",
    "pfr": "fdadp has no scalar-on-function regression yet",
    "fpcr": "fdadp has no scalar-on-function regression yet",
    "fosr": "fdadp has no function-on-scalar regression yet",
}


def why_not(case: str) -> str | None:
    """Why a recorded case has nothing to be compared with; None if it has."""
    head = case.split("_")[0]
    if head in NOT_YET:
        return NOT_YET[head]
    return None if head in ("affr", "fpca") or case in bases.CASES else "there is no comparison for cases of this name"


def check_case(record: dict[str, Any]) -> list[Difference]:
    """Compare one recorded case.

    Parameters
    ----------
    record : dict
        As :func:`r_bridge.reference.read_case` gives it; ``meta["case"]`` chooses the comparison.
    """
    case = str(record["meta"]["case"][0])
    found: Iterable[Difference]
    if case.startswith("affr_"):
        found = chain(affr.differences(record), fpca.differences_of_scores(record))
    elif case.startswith("fpca_"):
        found = fpca.differences(record)
    else:
        found = bases.differences(record)
    return list(found)


def check(
    folder: str | os.PathLike[str], cases: Sequence[str] = (), *, factor: float = 1.0, progress: bool = False
) -> Report:
    """Compare the recorded cases of a folder.

    Parameters
    ----------
    folder : path
        With ``<case>.rds`` files.
    cases : sequence of str
        Which; default all.
    factor : float
        Multiplies every tolerance.
    progress : bool
        Show a progress bar.

    Returns
    -------
    Report

    Raises
    ------
    MissingDataError
        A named case is not in the folder.
    FileFormatError
        A file is not a recorded case.
    """
    from tqdm import tqdm

    report = Report(f"fdadp against R's recorded results in {folder}")
    names = list(cases) or case_names(folder)
    for name in tqdm(names, desc="cases", disable=not progress, leave=False):
        path = find_case(name, [folder])
        why = why_not(name)
        if why is not None:
            report.skipped[name] = why
            continue
        report.add(_scaled(check_case(read_case(path)), factor))
        report.skipped.update(_left_out(name))
    return report


def _scaled(differences: Iterable[Difference], factor: float) -> Iterator[Difference]:
    return (replace(d, tolerance=d.tolerance * factor) for d in differences)


def _left_out(case: str) -> dict[str, str]:
    """Parts of a case that are not compared, and why."""
    left = {
        f"{name}, component {k + 1}, gcv": "mgcv's GCV code truncates here; its fit does not follow from its sp"
        for name, k in sorted(affr.GCV_NOT_REPRODUCIBLE)
        if name == case
    }
    if case == "fpca_dti_missing":
        left[f"{case}, fpca.face"] = "fdadp's FACE takes complete curves only"
    return left
