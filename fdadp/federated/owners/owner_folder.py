"""The folder of an owner: files that are on the disk, with their names, before anything that rests on them leaves.

A process holds the lock of its folder as long as it lives. Files belong to this user alone; links are refused, for
whoever keeps a second name of a file keeps what it held. So are folders in which others could put another one in its
place.
"""

from __future__ import annotations

import fcntl
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from fdadp.errors import PrivacyError


class Keeper(Protocol):
    """Where an owner keeps what it must not forget."""

    def read(self, name: str) -> bytes | None:
        """What was written under a name; None: nothing."""

    def write(self, name: str, data: bytes) -> None:
        """Keep bytes under a name, in place of what was there; they are kept when this returns."""


class OwnerFolder:
    """A folder that this user alone can read and one process at a time can use.

    Parameters
    ----------
    path : path
        Made if it is not there.
    wait : bool
        Whether to wait while another process uses it, and not to refuse.

    Raises
    ------
    PrivacyError
        The folder or a file in it is a link, another user's, or open to others; others can write to a folder above
        it; or another process uses it.
    OSError
        The disk's. What was to be written may be there or not: whoever writes must end.
    """

    def __init__(self, path: str | os.PathLike[str], *, wait: bool = False) -> None:
        above, name = os.path.split(os.path.abspath(path))
        self._path = os.path.join(os.path.realpath(above), name)
        _check_above(Path(self._path).parent)
        os.makedirs(self._path, mode=0o700, exist_ok=True)
        self._folder = self._open(None, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self._lock = self._open("lock", os.O_RDWR | os.O_CREAT)
        except BaseException:
            os.close(self._folder)
            raise
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError as exc:
            self.close()
            raise PrivacyError(f"folder must be used by one process at a time, and another uses {self._path}") from exc
        self._process = os.getpid()
        os.fsync(self._folder)  # names that a process had put here when it died, before anything rests on them

    def close(self) -> None:
        """Give the folder free."""
        os.close(self._lock)
        os.close(self._folder)

    def read(self, name: str) -> bytes | None:
        """The content of a file; None: it is not there."""
        try:
            handle = self._open(name, os.O_RDONLY)
        except FileNotFoundError:
            return None
        with os.fdopen(handle, "rb") as stream:
            return stream.read()

    def write(self, name: str, data: bytes) -> None:
        """Replace a file as a whole; content and name are on the disk when this returns."""
        if os.getpid() != self._process:  # a fork has the lock, too
            raise PrivacyError("folder must be used by the process that opened it, and this is a fork of it")
        new = f"{name}.new"
        if new in os.listdir(self._folder):  # of a process that died over it: nothing has left that rests on it
            os.unlink(new, dir_fd=self._folder)
        with os.fdopen(self._open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(new, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        os.fsync(self._folder)

    def _open(self, name: str | None, flags: int) -> int:
        """Open a file of the folder, or with None the folder itself, which must be as the class says."""
        try:
            if name is None:
                handle = os.open(self._path, flags | os.O_NOFOLLOW)
            else:
                handle = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=self._folder)
        except FileNotFoundError:
            raise
        except OSError as exc:
            raise PrivacyError(
                f"folder must hold regular files and no links, got {self._path}, {name or 'itself'}"
            ) from exc
        found = os.fstat(handle)
        regular = stat.S_ISDIR(found.st_mode) if name is None else stat.S_ISREG(found.st_mode) and found.st_nlink == 1
        if not regular or found.st_uid != os.getuid() or found.st_mode & 0o077:
            os.close(handle)
            raise PrivacyError(
                "folder must be this user's alone, and hold regular files of one name each, got "
                f"{self._path}, {name or 'itself'}"
            )
        return handle


def _check_above(folder: Path) -> None:
    """Refuse folders, up to the root, whose names others can change; raises PrivacyError."""
    for above in (folder, *folder.parents):
        with suppress(FileNotFoundError):
            found = above.stat()
            if found.st_uid not in (0, os.getuid()) or (found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX):
                raise PrivacyError(
                    f"folder must lie where no other user can put another one in its place, and others can in {above}"
                )


class MemoryKeeper(dict[str, bytes]):
    """What parties in one process keep: it dies with them all."""

    def read(self, name: str) -> bytes | None:
        """What was written under a name; None: nothing."""
        return self.get(name)

    def write(self, name: str, data: bytes) -> None:
        """Keep bytes under a name."""
        self[name] = data
