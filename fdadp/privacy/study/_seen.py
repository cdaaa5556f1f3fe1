"""The last entry that this user has seen of each study: an older copy that is put back does not have it.

It is kept in the process, and in a file for each study in ``$XDG_STATE_HOME/fdadp/studies`` (``~/.local/state``). It is
written after the study, so it is never ahead of it. Where it cannot be written, the process alone remembers.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fdadp.privacy.account._reservations import left_of

if TYPE_CHECKING:
    from fdadp.privacy.study._entries import Told


@dataclass(frozen=True)
class LastEntry:
    """The last entry that was seen of a study: where, and which share of the total was left then."""

    position: int
    hash: str
    left: float
    path: str

    def __str__(self) -> str:
        return f"entry {self.position}, {self.hash[:12]}..., is missing, which was last seen in {self.path!r}"


_SEEN: dict[str, LastEntry] = {}
"""By the study's id."""


def remember(path: str, told: Told) -> None:
    """Note the last entry of a study; where it stands already, or cannot be written, nothing happens."""
    study, last = str(told.first.content["id"]), told.last
    _SEEN[study] = seen = LastEntry(last.position, last.hash, left_of(told.held.values(), 0.0)[0], path)
    with suppress(OSError, RuntimeError):
        file = _file_of(study)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = file.with_name(f"{file.name}.{os.getpid()}")
        new.write_text(json.dumps(asdict(seen)), encoding="utf-8", errors="surrogatepass")
        os.replace(new, file)


def forget(study: str, path: Path, told: Told) -> None:
    """Take the last entry of a file for the one that was seen, although it is an earlier one."""
    _SEEN.pop(study, None)
    remember(str(path), told)


def last_of(study: str) -> LastEntry | None:
    """The last entry that was seen of the study of an id, by this process or this user."""
    found = [_SEEN[study]] if study in _SEEN else []
    with suppress(OSError, RuntimeError, ValueError, TypeError, KeyError):
        said = json.loads(_file_of(study).read_text(encoding="utf-8", errors="surrogatepass"))
        found.append(LastEntry(int(said["position"]), str(said["hash"]), float(said["left"]), str(said["path"])))
    return max(found, key=lambda seen: seen.position, default=None)


def _file_of(study: str) -> Path:
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return folder / "fdadp" / "studies" / f"{os.path.basename(study)}.json"
