"""Entries of a study: each is hashed together with the hash before it, so that the last hash stands for all of them.

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
closed     reason: no more reservations
========== =================================================================================================
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from hashlib import sha256
from typing import Any

from fdadp.errors import PrivacyError
from fdadp.privacy._reservations import Reservation

__all__ = ["Entry", "append", "begins_right", "damaged", "entries", "finite", "head", "in_words", "now", "replayed"]

KINDS = ("created", "reserved", "opened", "released", "returned", "stopped", "model", "closed")
START = "0" * 64
"""What stands before the first hash."""


@dataclass(frozen=True)
class Entry:
    """A line of a study, in the order in which it was written.

    Attributes
    ----------
    position : int
        From 1.
    time : str
        UTC, ISO 8601.
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
    hash: str


def now(timespec: str = "seconds") -> str:
    """The time in UTC, to a second."""
    return datetime.now(timezone.utc).isoformat(timespec=timespec)


def digest(position: int, time: str, kind: str, reservation: int | None, text: str, previous: str) -> str:
    """SHA-256 of an entry whose content is `text`, after the entry of hash `previous`."""
    whole = json.dumps([position, time, kind, reservation, text, previous], ensure_ascii=True)
    return sha256(whole.encode("ascii")).hexdigest()


def append(db: sqlite3.Connection, kind: str, reservation: int | None, content: Mapping[str, Any]) -> str:
    """Write an entry in the transaction of `db`; returns its hash."""
    position, previous = head(db)
    text = json.dumps(dict(content), ensure_ascii=False, sort_keys=True, allow_nan=False)
    # To a millionth of a second: a study that is put back and spent again, alike, has other hashes.
    row = (position + 1, now("microseconds"), kind, reservation, text, previous)
    own = digest(*row)
    db.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)", (*row, own))
    return own


def head(db: sqlite3.Connection) -> tuple[int, str]:
    """Position and hash of the last entry."""
    found = db.execute("SELECT position, hash FROM entries ORDER BY position DESC LIMIT 1").fetchone()
    return (0, START) if found is None else (int(found[0]), str(found[1]))


def entries(db: sqlite3.Connection, kind: str | None = None) -> Iterator[Entry]:
    """Entries in order, as they stand in the file."""
    where, values = ("", ()) if kind is None else ("WHERE kind = ?", (kind,))
    for row in db.execute(f"SELECT * FROM entries {where} ORDER BY position", values):
        position, time, what, reservation, text, previous, own = row
        yield Entry(position, time, what, reservation, _content(text, position), previous, own)


def damaged(db: sqlite3.Connection) -> str:
    """What is wrong with the chain, in words; empty where nothing is."""
    previous, expected = START, 1
    for row in db.execute("SELECT * FROM entries ORDER BY position"):
        position, time, kind, reservation, text, before, own = row
        if position != expected:
            return f"entry {expected} is missing"
        try:
            right = before == previous and own == digest(position, time, kind, reservation, text, before)
            json.loads(text)
        except (TypeError, ValueError):
            right = False
        if not right or kind not in KINDS or (kind == "created") != (position == 1):
            return f"entry {position} was changed, or one before it"
        previous, expected = own, expected + 1
    return "" if expected > 1 else "there is no entry"


def begins_right(db: sqlite3.Connection) -> bool:
    """Whether the first entry, which says what the study is, has its hash."""
    row = db.execute("SELECT * FROM entries WHERE position = 1").fetchone()
    return row is not None and row[5] == START and row[6] == digest(*row[:6])


def replayed(lines: Iterator[Entry]) -> dict[int, Reservation]:
    """Reservations as the entries tell them.

    Raises
    ------
    PrivacyError
        An entry of a reservation that is not there, or in another order than reservations go.
    """
    held: dict[int, Reservation] = {}
    for line in lines:
        if line.reservation is None:
            continue
        try:
            _step(held, line)
        except (KeyError, TypeError, ValueError) as exc:
            raise PrivacyError(f"entry {line.position} of the study does not follow from those before it") from exc
    return held


def _step(held: dict[int, Reservation], line: Entry) -> None:
    number, content = int(line.reservation or 0), line.content
    if line.kind == "reserved":
        if number in held:
            raise ValueError
        held[number] = Reservation(float(content["share"]))
        return
    r = held[number]
    if line.kind == "model":
        return
    if r.state == "closed" or (line.kind == "returned" and r.state != "reserved"):
        raise ValueError
    if line.kind == "opened":
        r.state = "open"
    elif line.kind == "released":
        r.charge(float(content["share"]), float(content["cost"]), whole=bool(content["whole"]))
        r.shares, r.costs = [sum(r.shares)], [sum(r.costs)]  # as the table keeps them, to the last bit
    elif line.kind == "returned":
        r.share, r.state = 0.0, "closed"
    elif line.kind == "stopped":
        r.stop()
    else:
        raise ValueError


def _content(text: str, position: int) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise PrivacyError(f"entry {position} of the study is damaged: its content is no JSON object")
    return found


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
