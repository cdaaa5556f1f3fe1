"""Refit recorded cases with fdadp and report every difference. No R is needed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from fdadp.errors import FileFormatError
from r_bridge import additive_beside_mgcv, bases_beside_mgcv, fpca_beside_refund, repeated_beside_r, terms_beside_refund
from r_bridge.difference_report import Difference, Report
from r_bridge.reference import case_names, find_case, read_case
from r_bridge.refund_case import differences


def why_not(case: str) -> str | None:
    """Why a recorded case has nothing to be compared with; None if it has."""
    by_name = (
        case.split("_")[0] in ("affr", "fpca", "mfpca")
        or case in bases_beside_mgcv.CASES
        or case in repeated_beside_r.COMPARED
    )
    compared = by_name or terms_beside_refund.cases_of(case)
    return None if compared else "there is no comparison for cases of this name"


def check_case(record: dict[str, Any], seconds: dict[str, float] | None = None) -> list[Difference]:
    """Compare one recorded case.

    Parameters
    ----------
    record : dict
        As :func:`r_bridge.reference.read_case` gives it; ``meta["case"]`` chooses the comparison.
    seconds : dict, optional
        Gets our times for models of several terms, by fit.
    """
    case = str(record["meta"]["case"][0])
    found: Iterable[Difference]
    if case.startswith("affr_"):
        found = chain(additive_beside_mgcv.differences(record), fpca_beside_refund.differences_of_scores(record))
    elif case.startswith("fpca_"):
        found = fpca_beside_refund.differences(record)
    elif case.startswith("mfpca_"):
        found = fpca_beside_refund.differences_of_levels(record)
    elif case in repeated_beside_r.COMPARED:
        found = repeated_beside_r.differences(record)
    elif terms_beside_refund.cases_of(case):
        found = chain.from_iterable(differences(one, record, seconds) for one in terms_beside_refund.cases_of(case))
    else:
        found = bases_beside_mgcv.differences(record)
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
        A file is not a recorded case, or one that lacks a part that is compared.

    Examples
    --------
    >>> print(check("tests/reference", ["quadrature"]))  # doctest: +SKIP
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
        record = read_case(path)
        try:
            report.add(_scaled(check_case(record, report.seconds), factor))
            report.skipped.update(_left_out(name, record))
        except (AttributeError, IndexError, KeyError, TypeError) as exc:  # a part is missing or empty
            raise FileFormatError(
                f"{path} must hold all that the comparison of {name!r} reads, as `python -m r_bridge record` writes "
                f"it; got {type(exc).__name__}: {exc}"
            ) from exc
    return report


def _scaled(differences: Iterable[Difference], factor: float) -> Iterator[Difference]:
    return (replace(d, tolerance=d.tolerance * factor) for d in differences)


def _left_out(case: str, record: dict[str, Any]) -> dict[str, str]:
    """Parts of a case that are not compared, and why."""
    left = {
        f"{name}, component {k + 1}, gcv": "mgcv's GCV code truncates here; its fit does not follow from its sp"
        for name, k in sorted(additive_beside_mgcv.GCV_NOT_REPRODUCIBLE)
        if name == case
    }
    if case == "fpca_dti_missing":
        left[f"{case}, fpca.face"] = "fdadp's FACE takes complete curves only"
    compared = terms_beside_refund.cases_of(case)
    left |= {f"{one.name}, {what}": why for one in compared for what, why in one.left_out.items()}
    if compared and any(one.part for one in compared):
        parts = {name for name, part in record["output"].items() if isinstance(part, dict)}
        missing = sorted(parts - {one.part for one in compared})
        left |= {
            f"{case}, {part}": terms_beside_refund.NOT_COMPARED.get(f"{case}, {part}", "not compared yet")
            for part in missing
        }
    return left
