"""Files that may be read: regular ones. A device may have no end, a pipe can be read once."""

from __future__ import annotations

from pathlib import Path

from fdadp.errors import FileFormatError


def check_file(path: Path) -> None:
    """Refuse what is not there, and what is no regular file.

    Raises
    ------
    FileNotFoundError, FileFormatError
    """
    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}")
    if not path.is_file():
        raise FileFormatError(f"{path} must be a regular file, got a folder, a pipe or a device")
