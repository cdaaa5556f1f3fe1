"""Files of models, and the study that they drew on: what was saved is written down, and held against it later."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fdadp.errors import FdadpError, PrivacyError
from fdadp.files.container import sealed
from fdadp.privacy.account._verified import verify_ledger
from fdadp.privacy.account.ledger import Ledger
from fdadp.privacy.study._entries import Entry, finite, replayed
from fdadp.privacy.study._file import transaction
from fdadp.privacy.study.book import LAST, RESERVATION, STUDY

if TYPE_CHECKING:
    from fdadp.privacy.settings import Privacy
    from fdadp.privacy.study.study import Study


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
    found += _against(ledger, number, lines)
    if not any(e.kind == "model" and e.reservation == number and e.content.get("sha256") == file.sha256 for e in lines):
        found.append("the study has no record of this file: it was not saved by the fit, or changed since")
    return tuple(found)


def _against(ledger: Ledger, number: Any, lines: tuple[Entry, ...]) -> list[str]:
    """What a ledger and the entries of a study say differently."""
    found: list[str] = []
    position, _, last = str(ledger.details.get(LAST, "0, ")).partition(", ")
    if not any(str(e.position) == position and e.hash == last for e in lines):
        found.append(
            "the study does not have the entry that the model names as the last: it was put back to an older state, "
            "or is another"
        )
    theirs = [e.content.get("release") for e in lines if e.kind == "released" and e.reservation == number]
    ours = [finite({k: v for k, v in asdict(r).items() if v is not None}) for r in ledger.releases]
    if theirs != ours:
        found.append("the releases in the ledger are not those that the study has written down")
    try:
        held = replayed(iter(lines))
    except PrivacyError as exc:
        return [*found, str(exc)]
    if number not in held:
        found.append(f"the study has no reservation {number}")
    return found
