"""Studies of format 1, which was SQLite, turned into lines: the same entries with the same hashes."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

from fdadp.errors import PrivacyError
from fdadp.files.atomic import replacing
from fdadp.privacy.study._entries import HEADER, Entry, entries_in, replayed
from fdadp.privacy.study._file import refuse_remote

__all__ = ["migrate"]

APPLICATION, OLD = 0x66646470, 1
"""SQLite's application id and user_version of studies."""


def migrate(path: str | os.PathLike[str]) -> Path:
    """Put lines in the place of an old study; models and certificates of it stay valid.

    Parameters
    ----------
    path : path

    Raises
    ------
    PrivacyError
        It is no study of format 1, it is damaged, a program uses it, or it has two names: the other one would stay as
        it is, and spend again.
    """
    target = Path(os.path.realpath(path))
    refuse_remote(target)
    if not target.is_file():
        raise PrivacyError(f"study must be a regular file, got {str(path)!r}, which is none")
    if target.stat().st_nlink != 1:
        raise PrivacyError(f"study must be a file of one name, got {str(path)!r}: remove the other hard links first")
    try:
        with closing(sqlite3.connect(f"{target.as_uri()}?mode=rw", uri=True, isolation_level=None)) as db:
            db.execute("BEGIN EXCLUSIVE")  # plays the journal of a killed process back
            known = [db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
            if known != [APPLICATION, OLD]:
                raise PrivacyError(f"study must be of format {OLD}, got {str(path)!r}, which is not")
            rows = db.execute("SELECT * FROM entries ORDER BY position").fetchall()
            lines = b"".join(Entry(p, t, k, r, json.loads(c), b, h).line for p, t, k, r, c, b, h in rows)
            kept = db.execute("SELECT number, share, used, cost, state, whole FROM reservations").fetchall()
            held = replayed(entries_in(lines))
            told = [(k, r.share, sum(r.shares), sum(r.costs), r.state, int(r.whole)) for k, r in held.items()]
            if sorted(told) != sorted(kept):
                raise PrivacyError("its reservations are not what its entries tell")
            with replacing(target) as stream:
                stream.write(HEADER + lines)
    except (sqlite3.Error, PrivacyError, ValueError, TypeError) as exc:
        if str(exc).startswith("study must"):
            raise
        raise PrivacyError(f"study {str(path)!r} could not be converted, and is as it was: {exc}") from exc
    return target
