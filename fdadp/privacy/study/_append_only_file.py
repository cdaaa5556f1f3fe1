"""The file of a study: lines that are only ever added, one write and one fsync each, under the file's lock.

* A step takes the lock (``flock``) before it reads: what it checked still holds when it writes.
* It has happened when its line is on the disk, and not before. Of a process that was killed a last line without its
  end may be left. It stands for nothing, because nobody went on after it; the next step cuts it off.
* There is no second file. So it does not matter by which name the file is reached: links, moves and mounts lead to the
  same bytes and the same lock. What lies under a path is looked at again when the lock is held.
* The lock is given up by name, not only closed: a process that was forked meanwhile has a copy of the handle.
* File systems without locks that hold are refused, at each opening.

What was read of a file is kept in memory, and only what is new is read the next time.

*The last entry* that this user has seen of each study tells where an older copy was put back. It is kept in the
process, and in a file for each study in ``$XDG_STATE_HOME/fdadp/studies`` (``~/.local/state``). It is written after the
study, so it is never ahead of it. Where it cannot be written, the process alone remembers.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fdadp.errors import PrivacyError
from fdadp.files.atomic_writes import replacing, sync_folder
from fdadp.privacy.account._reservations import left_of
from fdadp.privacy.study._chained_entries import HEADER, Entry, Told, created, entries_in, replayed


@dataclass(frozen=True)
class LastEntry:
    """The last entry that was seen of a study: where, and which share of the total was left then."""

    position: int
    hash: str
    left: float
    path: str

    def __str__(self) -> str:
        return f"entry {self.position}, {self.hash[:12]}..., is missing, which was last seen in {self.path!r}"


_LAST: dict[str, LastEntry] = {}
"""By the study's id."""


def remember(path: str, told: Told) -> None:
    """Note the last entry of a study; where it stands already, or cannot be written, nothing happens."""
    study, last = str(told.first.content["id"]), told.last
    _LAST[study] = seen = LastEntry(last.position, last.hash, left_of(told.held.values(), 0.0)[0], path)
    with suppress(OSError, RuntimeError):
        file = _file_of(study)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = file.with_name(f"{file.name}.{os.getpid()}")
        new.write_text(json.dumps(asdict(seen)), encoding="utf-8", errors="surrogatepass")
        os.replace(new, file)


def forget(study: str, path: Path, told: Told) -> None:
    """Take the last entry of a file for the one that was seen, although it is an earlier one."""
    _LAST.pop(study, None)
    remember(str(path), told)


def last_of(study: str) -> LastEntry | None:
    """The last entry that was seen of the study of an id, by this process or this user."""
    found = [_LAST[study]] if study in _LAST else []
    with suppress(OSError, RuntimeError, ValueError, TypeError, KeyError):
        said = json.loads(_file_of(study).read_text(encoding="utf-8", errors="surrogatepass"))
        found.append(LastEntry(int(said["position"]), str(said["hash"]), float(said["left"]), str(said["path"])))
    return max(found, key=lambda seen: seen.position, default=None)


def _file_of(study: str) -> Path:
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return folder / "fdadp" / "studies" / f"{os.path.basename(study)}.json"


FORMAT = 2
"""Version of the file. 1 was SQLite."""
SQLITE = b"SQLite format 3\0"
PATIENCE = 120.0
"""Seconds to wait for another process's step; each takes some thousandths of one."""
REMOTE = frozenset(
    {"nfs", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "afs"}
    | {"9p", "ncpfs", "ceph", "lustre", "glusterfs", "webdav", "fuse"}
)
"""File systems over a network, whose locks may not hold; those in user space ("fuse.sshfs") beside them."""
NOTHING = "; nothing was read for what could not be written down, and nothing was spent"

_TOLD: dict[str, Told] = {}
"""By path: what its file told when it was last read."""


class Opened:
    """A study's file whose lock is held."""

    def __init__(self, handle: int, path: str, told: Told | None) -> None:
        self._handle, self._path = handle, path
        self.told = self._read(told)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries, read anew."""
        return tuple(entries_in(self._bytes(len(HEADER))))

    def append(self, kind: str, reservation: int | None, content: Mapping[str, Any]) -> None:
        """Write an entry; where that fails nothing was written."""
        entry, size = self.told.following(kind, reservation, content), self.told.size
        told = self.told.after([entry])
        try:
            os.ftruncate(self._handle, size)  # a line that was not written to its end
            _write(self._handle, entry.line)
        except BaseException:
            with suppress(OSError):
                os.ftruncate(self._handle, size)
            raise
        self.told = _TOLD[self._path] = told
        remember(self._path, told)

    def put_back(self) -> LastEntry | None:
        """The last entry that was seen of this study, where the file has not got it (any more)."""
        of, last = last_of(self.told.first.content["id"]), self.told.last
        if of is None or (of.position, of.hash) == (last.position, last.hash):
            return None
        lines = self.entries if of.position < last.position else ()
        return None if lines and lines[of.position - 1].hash == of.hash else of

    def _read(self, told: Told | None) -> Told:
        """What the file tells, where it told that already."""
        if told is not None:
            line = told.last.line
            data = self._bytes(told.size - len(line))
            if data.startswith(line):
                return told.after(entries_in(data[len(line) :], told.last)) if len(data) > len(line) else told
        data = self._bytes(0)
        if not data.startswith(HEADER):
            raise _other(self._path, data)
        found = Told.of(entries_in(data[len(HEADER) :]))
        if found is None:
            raise PrivacyError("it does not say what it is")
        return found

    def _bytes(self, start: int) -> bytes:
        with os.fdopen(os.dup(self._handle), "rb") as stream:
            stream.seek(start)
            return stream.read()


def create(path: str | os.PathLike[str], facts: Mapping[str, Any]) -> Path:
    """Make a file for the owner alone, with the entry that says what the study is; or none at all.

    Raises
    ------
    PrivacyError
        Something is there already, the file system has no locks that hold, or the file cannot be written.
    """
    target = Path(os.path.abspath(path))
    refuse_remote(target.parent)
    write_new(target, HEADER + created(facts).line)
    with transaction(target) as file:
        remember(str(target), file.told)
    return target


def write_new(target: Path, data: bytes) -> None:
    """Write a file that is not there yet; or none at all, see :func:`create`."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        handle = os.open(target, flags, 0o600)
    except FileExistsError:
        raise PrivacyError(
            f"path must name no file yet, got {str(target)!r}, which is there: a study is made once, and a second one "
            "would count from nothing. Nothing was changed"
        ) from None
    except OSError as exc:
        raise PrivacyError(f"path must be where a file can be made, got {str(target)!r}: {exc.strerror}") from exc
    try:
        with _telling(str(target)):
            _check_locks(target, handle)
            _write(handle, data)
            sync_folder(target.parent)
    except BaseException:
        with suppress(OSError):
            os.unlink(target)
        raise
    finally:
        os.close(handle)


@contextmanager
def transaction(path: str | os.PathLike[str], *, restoring: bool = False) -> Iterator[Opened]:
    """The file, to look at and to append to, while nobody else does.

    Raises
    ------
    PrivacyError
        No study, another version, damaged, held for too long, read-only, full, or an older copy that was put back
        (unless `restoring`): nothing was written.
    """
    with _opened(path, _TOLD.get(os.path.abspath(path)), write=True) as file:
        of = None if restoring else file.put_back()
        if of is not None:
            raise PrivacyError(
                f"study {os.fspath(path)!r} must not go backwards: {of}. What was released since would be spent again. "
                "Fit on the file that has this entry. If it is lost for good: "
                "python -m fdadp study restored STUDY --reason TEXT" + NOTHING
            )
        yield file


@contextmanager
def reading(path: str | os.PathLike[str], *, anew: bool = False) -> Iterator[Opened]:
    """One state of the file, to look at; `anew` is every byte of it."""
    with _opened(path, None if anew else _TOLD.get(os.path.abspath(path)), write=False) as file:
        yield file


@contextmanager
def _opened(path: str | os.PathLike[str], told: Told | None, *, write: bool) -> Iterator[Opened]:
    import fcntl  # models are saved and loaded on systems that have none

    path = os.path.abspath(path)
    with _telling(path):
        handle = _locked(path, write)
        try:
            try:
                file = Opened(handle, path, told)
            except PrivacyError as exc:
                if str(exc).startswith("study must"):
                    raise
                raise PrivacyError(
                    f"study {path!r} is damaged: {exc}; restore it, and compare its last hash{NOTHING}"
                ) from exc
            _TOLD[path] = file.told
            yield file
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)
            os.close(handle)


def _locked(path: str, write: bool) -> int:
    """A handle of the file that lies under the path when its lock is held."""
    import fcntl

    end, wait = time.monotonic() + PATIENCE, 0.001
    while True:
        flags = (os.O_RDWR | os.O_APPEND if write else os.O_RDONLY) | os.O_CLOEXEC | os.O_NONBLOCK
        handle = os.open(path, flags)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise _other(path, b"")
            refuse_remote(Path(path))
            while True:
                try:
                    fcntl.flock(handle, (fcntl.LOCK_EX if write else fcntl.LOCK_SH) | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > end:
                        raise PrivacyError(
                            f"study {path!r} was held by another program for {PATIENCE:g} seconds{NOTHING}"
                        ) from None
                    time.sleep(wait)
                    wait = min(2 * wait, 0.02)
            if os.path.samestat(os.fstat(handle), os.stat(path)):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _write(handle: int, data: bytes) -> None:
    """Write to the end of a file, and have it on the disk."""
    while data:
        data = data[os.write(handle, data) :]
    os.fsync(handle)


def _check_locks(path: Path, handle: int) -> None:
    """Refuse a file system on which two programs can hold one lock."""
    import fcntl

    fcntl.flock(handle, fcntl.LOCK_EX)
    other = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return  # as it must be
    finally:
        os.close(other)
    raise PrivacyError(
        f"path must lie on a file system with locks, got {str(path)!r}: two programs could write there at once, and "
        "what they spend would not add up"
    )


def refuse_remote(path: Path) -> None:
    """Refuse file systems over a network; raises PrivacyError."""
    kind = kind_of_file_system(path)
    if kind in REMOTE or kind.startswith("fuse."):
        raise PrivacyError(
            f"study must lie on a disk of this machine, got {str(path)!r} on {kind!r}: locks over a network may not "
            "hold, and what several programs spend at once would not add up"
        )


def kind_of_file_system(path: Path) -> str:
    """Name of the file system that a file or folder lies on; empty where the system does not say (only Linux does)."""
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    here = os.path.realpath(path)
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


def _other(path: str, data: bytes) -> PrivacyError:
    """Say what a file is that is no study of this format."""
    if data.startswith(SQLITE):
        return PrivacyError(
            f"study must be of format {FORMAT}, got {path!r} of format 1, as fdadp 0.2 made it. "
            f"This converts it, once, with all its entries: python -m fdadp study migrate {path}"
        )
    if data.startswith(HEADER[: HEADER.index(b"2")]):
        return PrivacyError(f"study must be of format {FORMAT}, got {path!r}, which another version of fdadp has made")
    return PrivacyError(f"study must be a file that Study.new has made, got {path!r}, which is none")


@contextmanager
def _telling(path: str) -> Iterator[None]:
    """Errors of the system in words, as PrivacyErrors: none of them holds anything of the data."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as exc:
        raise PrivacyError(
            f"study must be a file that Study.new has made, got {path!r}, which is not there{NOTHING}"
        ) from exc
    except IsADirectoryError as exc:
        raise _other(path, b"") from exc
    except OSError as exc:
        if exc.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise PrivacyError(
                f"study must be a file that may be written to, got {path!r}: {exc.strerror}{NOTHING}"
            ) from exc
        raise PrivacyError(f"study {path!r} could not be written: {exc.strerror or exc}{NOTHING}") from exc


APPLICATION, OLD = 0x66646470, 1
"""SQLite's application id and user_version of studies."""


def migrate(path: str | os.PathLike[str]) -> Path:
    """Put lines in the place of a study of format 1, which was SQLite; models and certificates of it stay valid.

    Parameters
    ----------
    path : path

    Raises
    ------
    PrivacyError
        It is no study of format 1, it is damaged, a program uses it, or it has two names: the other one would stay as
        it is, and spend again.
    """
    import sqlite3

    target = Path(os.path.realpath(path))
    refuse_remote(target)
    if not target.is_file():
        raise PrivacyError(f"study must be a regular file, got {str(path)!r}, which is none")
    with target.open("rb") as stream:
        if stream.read(len(HEADER)) == HEADER:
            raise PrivacyError(f"study must be of format {OLD}, got {str(path)!r}, which needs no conversion")
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
