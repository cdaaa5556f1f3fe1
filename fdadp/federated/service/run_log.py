"""Log lines of a run: time, kind, release, sender and a code, and nothing of what a message holds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime

Log = Callable[[str, int, int, str], None]
"""Where a party says: kind of a message, number of its release, sender (0: the coordinator), what became of it."""


def lines_to(write: Callable[[str], object] = sys.stderr.write) -> Log:
    """Write a line for each message, with the time in UTC."""

    def line(kind: str, index: int, sender: int, code: str) -> None:
        time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        write(f"{time} {kind.lower()} {index} sender {sender}: {code.lower()}\n")

    return line
