"""Files of fdadp: one ``.npz`` with plain arrays and a JSON header, never a pickle.

Layout: the entry ``header`` is a UTF-8 JSON text with ``format`` ("fdadp"), ``kind`` (what is stored),
``version`` (of the layout), ``fdadp`` (the package that wrote it) and ``content`` (a JSON object); every
other entry is a numeric array.  Files are written to a temporary name and then renamed, so a failure
never leaves half a file.
"""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fdadp._typing import FloatArray
from fdadp._version import __version__
from fdadp.errors import FileFormatError

__all__ = ["FILE_VERSION", "read", "write"]

FILE_VERSION = 1


def write(
    path: str | os.PathLike[str], kind: str, content: Mapping[str, Any], arrays: Mapping[str, FloatArray]
) -> Path:
    """Write a header and arrays to `path` (``.npz`` is added if there is no suffix); return the path written."""
    target = Path(path)
    if not target.suffix:
        target = target.with_suffix(".npz")
    header = {"format": "fdadp", "kind": kind, "version": FILE_VERSION, "fdadp": __version__, "content": content}
    text = np.frombuffer(json.dumps(header).encode("utf-8"), dtype=np.uint8)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(suffix=".npz", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            entries: dict[str, Any] = {k: np.asarray(v, dtype=np.float64) for k, v in arrays.items()}
            np.savez_compressed(stream, header=text, **entries)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return target


def read(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, FloatArray]]:
    """Read what :func:`write` wrote.

    Raises
    ------
    FileFormatError
        Not a file of fdadp, another kind of content, or a layout of another version.
    FileNotFoundError
        No such file.
    """
    source = Path(path)
    if not source.exists() and source.with_suffix(".npz").exists():
        source = source.with_suffix(".npz")
    try:
        with np.load(source, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        header = json.loads(arrays.pop("header").tobytes().decode("utf-8"))
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as exc:
        raise FileFormatError(f"path must be a file written by fdadp, got {str(source)!r}: {exc}") from exc
    if not isinstance(header, dict) or header.get("format") != "fdadp":
        raise FileFormatError(f"path must be a file written by fdadp, got {str(source)!r} without its header")
    if header.get("kind") != kind:
        raise FileFormatError(f"path must hold a {kind!r}, got {header.get('kind')!r} in {str(source)!r}")
    if header.get("version") != FILE_VERSION:
        raise FileFormatError(
            f"path must have layout version {FILE_VERSION}, got version {header.get('version')!r} "
            f"(written by fdadp {header.get('fdadp')}) in {str(source)!r}"
        )
    return header["content"], arrays
