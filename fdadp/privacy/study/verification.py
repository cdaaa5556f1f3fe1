"""What is checked of a study: its file, the files of models that drew on it, and its earlier certificates.

The file is held against itself: hashes, sums, costs, and the total. A model is written down when it is saved, and held
against the study later; a certificate must say what follows from the study.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from fdadp._version import __version__
from fdadp.errors import FdadpError, PrivacyError
from fdadp.files.npz_files import sealed
from fdadp.files.regular_files import text_of
from fdadp.privacy.account.ledger import Ledger
from fdadp.privacy.certificate.ledger_recount import verify_ledger
from fdadp.privacy.study._append_only_file import LastEntry, reading, remember, transaction
from fdadp.privacy.study._chained_entries import Entry, Told, clock_behind, replayed
from fdadp.privacy.study.budget_accounts import LAST, RESERVATION, STUDY, written

if TYPE_CHECKING:
    from fdadp.privacy.settings import Privacy
    from fdadp.privacy.study.study_budget import Study


SLACK = 1e-8
"""Of shares that add up in floating point."""


def wrong_with(study: Study) -> tuple[str, ...]:
    """What is wrong with the file, in words; nothing where all of it holds.

    Parameters
    ----------
    study : Study
    """
    try:
        state = _state(study)
    except PrivacyError as exc:
        return (str(exc),)
    return _problems(study, *state)


def looked_at(study: Study) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    """Entries of one state of the file, and what is wrong with it; raises PrivacyError where it is damaged."""
    told, lines, missing = _state(study)
    return lines, _problems(study, told, lines, missing)


def _state(study: Study) -> tuple[Told, tuple[Entry, ...], LastEntry | None]:
    with reading(study.path, anew=True) as file:
        return file.told, file.entries, file.put_back()


def _problems(study: Study, told: Told, lines: Sequence[Entry], missing: LastEntry | None) -> tuple[str, ...]:
    found = []
    if missing is None:
        remember(str(study.path), told)  # who looks has seen it
    else:
        found.append(f"it was put back to an older state: {missing}")
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


def record_model(path: str | os.PathLike[str], ledger: Ledger | None, privacy: Privacy | None) -> None:
    """Write down in a study that a model was saved; nothing where the fit drew on none.

    Parameters
    ----------
    path : path
        Of the file.
    ledger, privacy
        Of the fit.

    Raises
    ------
    PrivacyError
        The study cannot be written to. The file of the model is there, and no record of it.
    """
    if privacy is None or privacy.study is None or ledger is None or RESERVATION not in ledger.details:
        return
    found = sealed(path)
    content = {"sha256": found.sha256, "kind": found.kind, "file": os.path.basename(path)}
    with transaction(privacy.study) as file:
        file.append("model", int(ledger.details[RESERVATION]), content)


def verify_model(study: Study, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """What is wrong with a file of a model, by itself and against its study; nothing where all of it holds.

    Parameters
    ----------
    study : Study
    path : path
    """
    try:
        file = sealed(path)
        text = file.content.get("ledger")
        if text is None:
            return ("the model has no ledger",)
        ledger = Ledger.from_json(text)
    except (FdadpError, OSError) as exc:
        return (str(exc),)
    found = list(verify_ledger(ledger))
    of = study.facts
    if ledger.details.get(STUDY) != f"{of['name']} ({of['id']})":
        return (*found, "the model drew on another study, or on none")
    lines = study.entries
    number = ledger.details.get(RESERVATION)
    found += _unlike_study(ledger, number, lines)
    if not any(e.kind == "model" and e.reservation == number and e.content.get("sha256") == file.sha256 for e in lines):
        found.append("the study has no record of this file: it was not saved by the fit, or changed since")
    return tuple(found)


def _unlike_study(ledger: Ledger, number: Any, lines: tuple[Entry, ...]) -> list[str]:
    """What a ledger and the entries of a study say differently."""
    found = []
    if not _has(lines, str(ledger.details.get(LAST, ""))):
        found.append(_MISSING.format("model"))
    theirs = [e.content.get("release") for e in lines if e.kind == "released" and e.reservation == number]
    if theirs != [written(r) for r in ledger.releases]:
        found.append("the releases in the ledger are not those that the study has written down")
    try:
        if number not in replayed(lines):
            found.append(f"the study has no reservation {number}")
    except PrivacyError as exc:
        found.append(str(exc))
    return found


_MISSING = (
    "the study does not have the entry that the {} names as the last: it was put back to an older state, or is another"
)


def _has(lines: Sequence[Entry], named: str) -> bool:
    """Whether an entry is there that was named by its position and hash."""
    return any(f"{e.position}, {e.hash}" == named for e in lines)


def verify_report(
    study: Study, path: str | os.PathLike[str], key: str | os.PathLike[str] | None = None
) -> tuple[str, ...]:
    """What is wrong with a certificate's JSON, or with the study that it is of; nothing where all of it holds.

    Parameters
    ----------
    study : Study
    path : path
        Of the JSON that :meth:`fdadp.privacy.certificate.Certificate.save` wrote.
    key : path, optional
        Public key that it must be signed with.
    """
    from fdadp.privacy.certificate.signature import wrong_signature

    try:
        found = json.loads(text_of(path))
        named, _, last = found["study"].partition("; last entry ")
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as exc:
        return (f"it is no certificate of a study: {type(exc).__name__}: {exc}",)
    wrong = wrong_signature(found, key)
    problems = [wrong] if wrong else []
    of = study.facts
    if named != f"{of['name']} ({of['id']}), made {of['created']}":
        return (*problems, "the certificate is of another study, or of one fit")
    lines = study.entries
    if not _has(lines, last):
        return (*problems, _MISSING.format("certificate"))
    return (*problems, *_changed(study, lines[: int(last.partition(",")[0])], found))


def unchecked(path: str | os.PathLike[str]) -> str:
    """Say what no check covers of a certificate's JSON; empty where a signature covers it.

    Parameters
    ----------
    path : path
    """
    try:
        signed = json.loads(text_of(path)).get("signature")
    except (OSError, ValueError, AttributeError):
        return ""
    return "" if signed else "not signed: its texts, date, accuracy and version are not checked"


def _changed(study: Study, lines: Sequence[Entry], found: dict[str, Any]) -> tuple[str, ...]:
    """What does not follow from the study: the certificate is made again, with what people said taken as it stands."""
    from fdadp.privacy.certificate import Certificate

    made = Certificate.at_entries(study, lines)
    try:
        version = str(found["versions"]["fdadp"])
        texts = {k: str(found["about"][k]) for k in made.about}
        made = replace(
            made,
            about=texts,
            date=str(found["date"]),
            accuracy=tuple(str(line) for line in found["accuracy"]),
            versions=made.versions | {"fdadp": version},
            recounted=None if found["recounted"] is None else made.recounted,
        )
    except (KeyError, TypeError) as exc:
        return (f"it is no certificate of a study: {type(exc).__name__}: {exc}",)
    again = json.loads(made.to_json())
    again["signature"] = found.get("signature")
    other = sorted(_unlike(again, found, ""))
    if not other:
        return ()
    by = "" if version == __version__ else f" (it was written by fdadp {version}, this is {__version__})"
    more = f" and {len(other) - 3} more" if other[3:] else ""
    return (f"the certificate does not say what follows from the study in {', '.join(other[:3])}{more}{by}",)


def _unlike(a: Any, b: Any, at: str) -> Iterator[str]:
    """Places where two plain values differ; numbers may differ by rounding."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in a.keys() | b.keys():
            place = f"{at}.{key}" if at else str(key)
            yield from _unlike(a[key], b[key], place) if key in a and key in b else (place,)
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (one, other) in enumerate(zip(a, b, strict=True)):
            yield from _unlike(one, other, f"{at}[{i}]")
    elif type(a) is float and type(b) is float:
        if not (math.isclose(a, b, rel_tol=1e-9) or (a != a and b != b)):
            yield at
    elif type(a) is not type(b) or a != b:
        yield at
