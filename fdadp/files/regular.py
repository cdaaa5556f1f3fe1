"""Files that may be read: regular ones. A device may have no end, a pipe can be read once."""

from __future__ import annotations

import codecs
import os
from pathlib import Path

from fdadp.errors import FileFormatError

__all__ = ["bytes_of", "check_file", "text_of"]


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


def bytes_of(path: str | os.PathLike[str]) -> bytes:
    """All bytes of a regular file.

    Raises
    ------
    FileNotFoundError, FileFormatError
    """
    check_file(Path(path))
    return Path(path).read_bytes()


def text_of(path: str | os.PathLike[str]) -> str:
    """All text of a regular file in UTF-8.

    Raises
    ------
    FileNotFoundError, FileFormatError
    """
    data = bytes_of(path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        other = "UTF-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "other bytes"
        raise FileFormatError(f"{path} must be text in UTF-8, got {other}") from exc
