"""A certificate that was written earlier, held against its study: whether the study still says what it said then."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fdadp.privacy.study._entries import Entry
from fdadp.privacy.study.fits import fits_of

if TYPE_CHECKING:
    from fdadp.privacy.study.study import Study

__all__ = ["verify_report"]

PROMISED = ("epsilon", "delta", "unit", "n")


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
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        named, _, last = found["study"].partition("; last entry ")
        position, _, digest = last.partition(", ")
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as exc:
        return (f"it is no certificate of a study: {type(exc).__name__}: {exc}",)
    wrong = wrong_signature(found, key)
    problems = [wrong] if wrong else []
    of = study.facts
    if named != f"{of['name']} ({of['id']}), made {of['created']}":
        return (*problems, "the certificate is of another study, or of one fit")
    lines = study.entries
    if not any(str(e.position) == position and e.hash == digest for e in lines):
        return (
            *problems,
            "the study does not have the entry that the certificate names as the last: it was put back to an older "
            "state, or is another",
        )
    if any(found.get(name) != of[name] for name in PROMISED):
        problems.append("the certificate promises something else than the study")
    if _shown(found.get("fits")) != _shown(_until(lines, int(position))):
        problems.append("the certificate has other fits or releases than the study had then")
    return tuple(problems)


def _until(lines: tuple[Entry, ...], position: int) -> list[Any]:
    """Fits as they stood after an entry."""
    return [asdict(fit) for fit in fits_of(lines[:position], lambda share: share) if fit.share]


def _shown(fits: Any) -> str:
    """Fits as text, but for ε, which follows from their shares."""
    plain = json.loads(json.dumps(fits))
    if not isinstance(plain, list) or not all(isinstance(fit, dict) for fit in plain):
        return ""
    return json.dumps([{k: v for k, v in fit.items() if k != "epsilon"} for fit in plain], sort_keys=True)
