"""Files that are there whole or not at all: written beside their place, then renamed."""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from fdadp.errors import InputError

PUBLIC, SECRET = 0o666, 0o600
"""Modes of new files: as the process's umask says, or for the owner alone."""
STALE = 3600.0
"""A temporary file not touched for so many seconds is left over from a process that died."""


@contextmanager
def replacing(path: str | os.PathLike[str], mode: int = PUBLIC) -> Iterator[BinaryIO]:
    """Yield a stream whose content takes the place of `path` when the block ends without an error.

    A file that is there keeps its mode and group; of a link the target is replaced and the link stays. Content and name
    are on the disk (fsync) when the block has ended. Left-over temporary files of the same `path` are removed.

    Parameters
    ----------
    path : path
        Missing folders are made.
    mode : int
        Of a file that is new, before the umask.

    Raises
    ------
    InputError
        `path` names something that is no regular file.
    OSError
        The system's, where it cannot be written; nothing is left behind.
    """
    target = Path(os.path.realpath(path))
    old = target.stat() if target.exists() else None
    if old is not None and not stat.S_ISREG(old.st_mode):
        raise InputError(f"path must name a regular file, or none yet, got {str(path)!r}, which is none")
    target.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".fdadp-{sha256(os.fsencode(target.name)).hexdigest()[:16]}-"
    _sweep(target.parent, prefix)
    temporary = target.parent / f"{prefix}{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = os.open(temporary, flags, SECRET if old else mode)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            if old is not None:
                _take_over(temporary, old)
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def write_text(path: str | os.PathLike[str], text: str, mode: int = PUBLIC) -> None:
    """Write a text in UTF-8, whole or not at all; see :func:`replacing`."""
    with replacing(path, mode) as stream:
        stream.write(text.encode())


def _take_over(path: Path, old: os.stat_result) -> None:
    """Give a new file the group and mode of the old one; where the group cannot be had, it may do nothing."""
    mode = stat.S_IMODE(old.st_mode)
    if hasattr(os, "chown") and path.stat().st_gid != old.st_gid:
        try:
            os.chown(path, -1, old.st_gid)
        except PermissionError:
            mode &= ~stat.S_IRWXG
    os.chmod(path, mode)


def _sweep(folder: Path, prefix: str) -> None:
    for entry in os.scandir(folder):
        if entry.name.startswith(prefix) and entry.name.endswith(".tmp"):
            with suppress(OSError):
                if time.time() - entry.stat(follow_symlinks=False).st_mtime > STALE:
                    os.unlink(entry.path)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk, where the system can."""
    if os.name == "nt":  # folders cannot be opened there
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems refuse it; the file itself is written
            os.fsync(handle)
    finally:
        os.close(handle)
