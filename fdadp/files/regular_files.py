"""Reading: of regular files only (a device may have no end, a pipe can be read once), and of JSON from elsewhere."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from fdadp.errors import FdadpError, FileFormatError, InputError


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


def check_installed(package: str, what: str) -> None:
    """Refuse what a package reads that is not installed; raises FileFormatError, which says how to install it."""
    if find_spec(package) is None:
        raise FileFormatError(f"{what} needs {package} to be read: pip install {package}")


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


# Texts in JSON from elsewhere: whatever is wrong with one is an InputError that says what it should be.


@contextmanager
def reading(what: str, text: object) -> Iterator[None]:
    """Turn errors of decoding `text`, and of making `what` of it, into one.

    Raises
    ------
    InputError
        No JSON, nested beyond what can be read, or with fields other than those of `what`.

    Examples
    --------
    >>> import json
    >>> with reading("a ledger", "{"):
    ...     json.loads("{")
    Traceback (most recent call last):
    fdadp.errors.InputError: text must be a ledger in JSON, got '{'
    """
    try:
        yield
    except FdadpError:  # a field has a wrong value, and the text says which
        raise
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as exc:
        raise InputError(f"text must be {what} in JSON, got {str(text)[:60]!r}") from exc
