"""A certificate that was written earlier, held against its study: whether it says what follows from the study."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fdadp._version import __version__
from fdadp.files.regular import text_of

if TYPE_CHECKING:
    from fdadp.privacy.study._entries import Entry
    from fdadp.privacy.study.study import Study

__all__ = ["unchecked", "verify_report"]


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
    return (*problems, *_changed(study, lines[: int(position)], found))


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
    return "" if signed else "not signed: what people said in it is not checked"


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
