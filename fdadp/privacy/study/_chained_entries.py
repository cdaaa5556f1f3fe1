"""Entries of a study, one JSON object a line: each is hashed with the hash before it, so the last hash stands for all.

========== =================================================================================================
kind       content
========== =================================================================================================
created    what the study is: name, id, ε, δ, measure, total, unit, adjacency, n, bounds with their sources, ...
reserved   share of the total, amount, mechanism, public inputs, purpose, process, host, versions
opened     (rows are read from here on: the reservation is spent)
released   share of the reservation, cost, and the release as ledgers have it; written before its rows are read
returned   (nothing was read: the reservation is given back)
stopped    share of the total that is kept
model      SHA-256 of a model file that was saved, and its kind
restored   reason, and the share that the entries had taken that are missing since an older copy was put back
closed     reason: no more reservations
========== =================================================================================================
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import reduce
from hashlib import sha256
from typing import Any

from fdadp.errors import PrivacyError
from fdadp.privacy.account._reservations import Reservation

KINDS = ("created", "reserved", "opened", "released", "returned", "stopped", "model", "restored", "closed")
HEADER = b'{"fdadp study": 2, "lines": "one entry each; its hash is the SHA-256 of it and of the hash before it"}\n'
"""First line of the file. It names the format."""
START = "0" * 64
"""What stands before the first hash."""
WHOLE = re.compile(rb'"hash": "[0-9a-f]{64}"\}.', re.DOTALL)
"""The end of a line in what follows the last line break: that break was changed, not lost."""
SLACK = timedelta(hours=1)
"""Clocks are set right by less."""


@dataclass(frozen=True)
class Entry:
    """A line of a study, in the order in which it was written.

    Attributes
    ----------
    position : int
        From 1.
    time : str
        UTC, ISO 8601; no earlier than that of the entry before.
    kind : str
    reservation : int or None
    content : dict
    previous, hash : str
        SHA-256 in hexadecimal digits.
    """

    position: int
    time: str
    kind: str
    reservation: int | None
    content: dict[str, Any]
    previous: str
    hash: str = ""

    @property
    def text(self) -> str:
        """The content as it is hashed."""
        return json.dumps(self.content, ensure_ascii=False, sort_keys=True, allow_nan=False)

    @property
    def digest(self) -> str:
        """What `hash` must be."""
        whole = [self.position, self.time, self.kind, self.reservation, self.text, self.previous]
        return sha256(json.dumps(whole, ensure_ascii=True).encode("ascii")).hexdigest()

    @property
    def line(self) -> bytes:
        """The entry as it stands in the file."""
        texts = (json.dumps(v, ensure_ascii=False) for v in (self.position, self.time, self.kind, self.reservation))
        values = (*texts, self.text, f'"{self.previous}"', f'"{self.hash}"')
        names = ("position", "time", "kind", "reservation", "content", "previous", "hash")
        line = ", ".join(f'"{name}": {value}' for name, value in zip(names, values, strict=True))
        return f"{{{line}}}\n".encode("utf-8", "surrogatepass")


@dataclass(frozen=True)
class Told:
    """What the entries up to one of them say. It is never changed; another entry makes another one.

    Attributes
    ----------
    size : int
        Bytes of the file up to there.
    first, last : Entry
    held : dict of int to Reservation
    closed : Entry or None
    """

    size: int
    first: Entry
    last: Entry
    held: Mapping[int, Reservation]
    closed: Entry | None = None

    def following(self, kind: str, reservation: int | None, content: Mapping[str, Any]) -> Entry:
        """The next entry; raises PrivacyError where the clock was set back."""
        behind = clock_behind(self.last)
        if behind:
            raise PrivacyError(f"the clock must not go backwards: {behind}; nothing was read and nothing was spent")
        # To a millionth of a second: a study that is put back and spent again, alike, has other hashes.
        time = max(now("microseconds"), self.last.time)
        made = Entry(self.last.position + 1, time, kind, reservation, dict(content), self.last.hash)
        return replace(made, hash=made.digest)

    def after(self, lines: Iterable[Entry]) -> Told:
        """What is told with further entries; raises PrivacyError if they do not follow."""
        held, last, closed, size = dict(self.held), self.last, self.closed, self.size
        for last in lines:
            _step(held, last)
            closed = last if last.kind == "closed" else closed
            size += len(last.line)
        return Told(size, self.first, last, held, closed)

    @classmethod
    def of(cls, lines: Iterator[Entry]) -> Told | None:
        """What all entries of a file tell; None where there are none."""
        first = next(lines, None)
        if first is None:
            return None
        return cls(len(HEADER) + len(first.line), first, first, {}).after(lines)


def now(timespec: str = "seconds") -> str:
    """The time in UTC, to a second."""
    return datetime.now(UTC).isoformat(timespec=timespec)


def clock_behind(last: Entry) -> str:
    """What is wrong with the clock, in words, where an entry is from its future; empty where nothing is."""
    clock = now()
    if datetime.fromisoformat(clock) >= datetime.fromisoformat(last.time) - SLACK:
        return ""
    return f"it says {clock}, and entry {last.position} was written on {last.time}"


def created(content: Mapping[str, Any]) -> Entry:
    """The first entry of a study."""
    made = Entry(1, now("microseconds"), "created", None, dict(content), START)
    return replace(made, hash=made.digest)


def entries_in(data: bytes, last: Entry | None = None) -> Iterator[Entry]:
    """Entries in the bytes that follow an entry, or the header; a last line that was not written to its end is none.

    Raises
    ------
    PrivacyError
        A line is not what was written, or does not follow from the one before.
    """
    position, previous = (1, START) if last is None else (last.position + 1, last.hash)
    *whole, torn = data.split(b"\n")
    for line in whole:
        entry = _entry(line + b"\n", position)
        if entry is None or (entry.position, entry.previous) != (position, previous):
            raise PrivacyError(f"entry {position} was changed, or one before it")
        yield entry
        position, previous = position + 1, entry.hash
    if WHOLE.search(torn):
        raise PrivacyError(f"entry {position} was changed, or one before it")


def _entry(line: bytes, position: int) -> Entry | None:
    """The entry that a line is; None where a byte of it is not as it was written."""
    try:
        entry = Entry(**json.loads(line.decode("utf-8", "surrogatepass")))
        datetime.fromisoformat(entry.time)
        right = entry.line == line and entry.hash == entry.digest and isinstance(entry.content, dict)
    except (TypeError, ValueError, RecursionError):
        return None
    return entry if right and entry.kind in KINDS and (entry.kind == "created") == (position == 1) else None


def replayed(lines: Iterable[Entry]) -> dict[int, Reservation]:
    """Reservations as the entries tell them.

    Raises
    ------
    PrivacyError
        An entry of a reservation that is not there, or in another order than reservations go.
    """
    held: dict[int, Reservation] = {}
    for line in lines:
        _step(held, line)
    return held


def _step(held: dict[int, Reservation], line: Entry) -> None:
    """Reservations after an entry; those that were there before stay as they are, for others may hold them."""
    if line.reservation is None:
        return
    try:
        number = int(line.reservation)
        held[number] = held[number] if line.kind == "model" else _next(held, line)
    except (KeyError, TypeError, ValueError) as exc:
        raise PrivacyError(f"entry {line.position} of the study does not follow from those before it") from exc


def _next(held: Mapping[int, Reservation], line: Entry) -> Reservation:
    number, content = int(line.reservation or 0), line.content
    if line.kind in ("reserved", "restored"):
        if number in held:
            raise ValueError
        return Reservation(float(content["share"]), state="open" if line.kind == "restored" else "reserved")
    r = held[number]
    if r.state == "closed" or (line.kind == "returned" and r.state != "reserved"):
        raise ValueError
    r = replace(r, shares=list(r.shares), costs=list(r.costs))
    if line.kind == "opened":
        r.state = "open"
    elif line.kind == "released":
        r.charge(float(content["share"]), float(content["cost"]), whole=bool(content["whole"]))
        r.shares, r.costs = [reduce(float.__add__, r.shares)], [reduce(float.__add__, r.costs)]
    elif line.kind == "returned":
        r.share, r.state = 0.0, "closed"
    elif line.kind == "stopped":
        r.stop()
    else:
        raise ValueError
    return r


def in_words(what: Mapping[str, Any]) -> str:
    """Range or levels of a column, as an entry has them."""
    return "{:g} to {:g}".format(*what["range"]) if "range" in what else ", ".join(map(str, what["levels"]))


def finite(value: Any) -> Any:
    """A public value ready for JSON: numbers, texts and lists of them as they are, anything else as text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (str, int, bool, type(None))):
        return value
    if isinstance(value, Mapping):
        return {str(k): finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(v) for v in value]
    return str(value)
