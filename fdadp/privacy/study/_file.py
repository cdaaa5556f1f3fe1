"""The file of a study: SQLite, one short connection for each transaction, safe from threads, forks and crashes.

* A transaction takes the file's lock before it reads (``BEGIN IMMEDIATE``): what it checked still holds when it writes.
* It has happened when it is on the disk (``synchronous = EXTRA``, a rollback journal), and not before. A process that
  is killed leaves a journal, which the next one plays back.
* No connection outlives its transaction, and no fork happens inside one (a child would inherit locks that are not its
  own): https://www.sqlite.org/howtocorrupt.html, sections 2.2 and 2.6. For the same reason the file is never opened by
  anything but SQLite.
* File systems without locks that hold are refused when the study is made.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from fdadp.errors import PrivacyError

__all__ = ["APPLICATION", "FORMAT", "create", "reading", "transaction"]

APPLICATION = 0x66646470
"""SQLite's application id, "fddp", by which a study is known from other files of SQLite."""
FORMAT = 1
"""Version of the tables (SQLite's user_version)."""
PATIENCE = 120.0
"""Seconds to wait for another process's transaction; each takes some thousandths of one."""
REMOTE = frozenset(
    (
        "nfs",
        "nfs4",
        "cifs",
        "smb",
        "smb2",
        "smb3",
        "smbfs",
        "afs",
        "9p",
        "ncpfs",
        "ceph",
        "lustre",
        "glusterfs",
        "webdav",
    )
)
"""File systems over a network, whose locks may not hold; those in user space ("fuse.sshfs") beside them."""
_LOCK = threading.RLock()
"""Held in transactions, and while the process forks."""
_FORK = threading.local()
"""Whether a thread that forks holds the lock."""

SCHEMA = """
CREATE TABLE entries (
    position INTEGER PRIMARY KEY,
    time TEXT NOT NULL,
    kind TEXT NOT NULL,
    reservation INTEGER,
    content TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL
);
CREATE TABLE reservations (
    number INTEGER PRIMARY KEY,
    share REAL NOT NULL,
    used REAL NOT NULL,
    cost REAL NOT NULL,
    state TEXT NOT NULL,
    whole INTEGER NOT NULL
);
CREATE TRIGGER entries_are_kept BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'entries are never deleted'); END;
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END;
"""
"""`entries` only grows, is hashed row by row, and says all; `reservations` are its sums, for speed and as a check."""


def create(path: str | os.PathLike[str], first: Callable[[sqlite3.Connection], object]) -> Path:
    """Make a file for the owner alone, with the tables and what `first` writes into them; or none at all.

    Raises
    ------
    PrivacyError
        Something is there already, or the file system has no locks that hold.
    OSError
        The system's, where no file can be made.
    """
    target = Path(os.path.abspath(path))
    refuse_remote(target.parent)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    try:
        os.close(os.open(target, flags, 0o600))
    except FileExistsError:
        raise PrivacyError(
            f"path must name no file yet, got {str(path)!r}, which is there: a study is made once, and a second one "
            "would count from nothing. Nothing was changed"
        ) from None
    try:
        with _LOCK, closing(_connect(target)) as db:
            db.execute(f"PRAGMA application_id = {APPLICATION}")
            db.execute(f"PRAGMA user_version = {FORMAT}")
            db.executescript(f"BEGIN IMMEDIATE;{SCHEMA}")
            with closing(_connect(target, patience=0)) as other:
                try:
                    other.execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError:
                    pass  # as it must be
                else:
                    raise PrivacyError(
                        f"path must lie on a file system with locks, got {str(path)!r}: two programs could write "
                        "there at once, and what they spend would not add up"
                    )
            first(db)
            db.execute("COMMIT")
        _sync(target.parent)
    except BaseException:
        with suppress(OSError):
            os.unlink(target)
        raise
    return target


@contextmanager
def transaction(path: str | os.PathLike[str]) -> Iterator[sqlite3.Connection]:
    """A transaction that writes, or leaves no trace where the block raises.

    Raises
    ------
    PrivacyError
        No study, another version, locked for too long, read-only, full: nothing was written.
    """
    with _LOCK, _telling(path), closing(_open(path)) as db:
        db.execute("BEGIN IMMEDIATE")
        try:
            yield db
            db.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                db.execute("ROLLBACK")
            raise


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[sqlite3.Connection]:
    """One state of the file, to look at."""
    with _LOCK, _telling(path), closing(_open(path)) as db:
        db.execute("BEGIN")
        yield db
        db.execute("ROLLBACK")


def refuse_remote(folder: Path) -> None:
    """Refuse folders on file systems over a network; raises PrivacyError."""
    kind = kind_of_file_system(folder)
    if kind in REMOTE or kind.startswith("fuse.") or kind in ("fuse", "fuseblk.sshfs"):
        raise PrivacyError(
            f"path must lie on a disk of this machine, got a folder on {kind!r}: locks over a network may not hold, "
            "and what several programs spend at once would not add up"
        )


def kind_of_file_system(folder: Path) -> str:
    """Name of the file system that a folder lies on; empty where the system does not say (only Linux does)."""
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    here = os.path.realpath(folder)
    found, longest = "", -1
    for line in lines:
        left, _, right = line.partition(" - ")
        fields = left.split()
        if len(fields) < 5 or not right:
            continue
        point = fields[4].encode().decode("unicode_escape")
        inside = point == "/" or here == point or here.startswith(point + "/")
        if inside and len(point) >= longest:
            found, longest = right.split()[0], len(point)
    return found


def _open(path: str | os.PathLike[str]) -> sqlite3.Connection:
    if not os.path.exists(path):
        raise PrivacyError(f"study must be a file that Study.new has made, got {os.fspath(path)!r}, which is not there")
    db = _connect(path)
    try:
        found = db.execute("PRAGMA application_id").fetchone()[0]
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if found != APPLICATION:
            raise PrivacyError(f"study must be a file that Study.new has made, got {os.fspath(path)!r}, which is none")
        if version != FORMAT:
            raise PrivacyError(
                f"study must be of format {FORMAT}, got {os.fspath(path)!r} of format {version}, which another "
                "version of fdadp has made"
            )
    except BaseException:
        db.close()
        raise
    return db


def _connect(path: str | os.PathLike[str], patience: float = PATIENCE) -> sqlite3.Connection:
    uri = f"{Path(os.path.abspath(path)).as_uri()}?mode=rw"
    db = sqlite3.connect(uri, uri=True, timeout=patience, isolation_level=None)
    try:
        db.execute("PRAGMA synchronous = EXTRA")
        db.execute("PRAGMA trusted_schema = OFF")
    except BaseException:
        db.close()
        raise
    return db


@contextmanager
def _telling(path: str | os.PathLike[str]) -> Iterator[None]:
    """Errors of SQLite in words, as PrivacyErrors: none of them holds anything of the data."""
    try:
        yield
    except sqlite3.Error as exc:
        _explain(os.fspath(path), exc)
    except UnicodeDecodeError as exc:  # SQLite names a damaged table in its message
        _explain(os.fspath(path), sqlite3.DatabaseError("malformed: a text in it is none"), exc)


def _explain(path: str, exc: sqlite3.Error, cause: Exception | None = None) -> NoReturn:
    text = str(exc)
    nothing = "; nothing was read for what could not be written down, and nothing was spent"
    if "not a database" in text:
        raise PrivacyError(f"study must be a file that Study.new has made, got {path!r}, which is none") from exc
    if "readonly" in text or "unable to open" in text or "authoriz" in text:
        raise PrivacyError(f"study must be a file that may be written to, got {path!r}: {text}{nothing}") from exc
    if "locked" in text or "busy" in text:
        raise PrivacyError(f"study {path!r} was held by another program for {PATIENCE:g} seconds{nothing}") from exc
    if "full" in text or "I/O" in text:
        raise PrivacyError(f"study {path!r} could not be written: {text}{nothing}") from exc
    if isinstance(exc, sqlite3.IntegrityError) or "malformed" in text or "no such" in text:
        raise PrivacyError(f"study {path!r} is damaged: {text}; restore it, and compare its last hash{nothing}") from (
            cause or exc
        )
    raise PrivacyError(f"study {path!r} could not be used: {text}{nothing}") from exc


def _sync(folder: Path) -> None:
    """The name of a new file is on the disk."""
    if sys.platform == "win32":  # folders cannot be opened there
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)


def _before_fork() -> None:
    """Wait for the transactions of other threads, but not for one that never ends: nobody may hang in a fork."""
    _FORK.held = _LOCK.acquire(timeout=PATIENCE)


def _in_parent() -> None:
    if _FORK.held:
        _LOCK.release()


def _in_child() -> None:
    """A lock of its own: whoever held the parent's is not here."""
    global _LOCK
    _LOCK = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
