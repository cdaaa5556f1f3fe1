"""Files of fdadp: one ``.npz`` with plain arrays and a JSON header, never a pickle.

Layout: the entry ``header`` is a UTF-8 JSON text with ``sha256``, ``format`` ("fdadp"), ``kind`` (what is stored),
``version`` (of the layout), ``fdadp`` (the package that wrote it) and ``content`` (a JSON object); every other entry is
an array of float64 in C order. Which arrays there are, and which lengths must agree, a :class:`Layout` declares. The
entries are not compressed, so a file needs about its own size in memory, whoever wrote it.

``sha256`` is of the rest of the header and of names, shapes and bytes of all arrays: a changed byte, an array or a
ledger of another model are found at load. It is no signature: a program can write any content with its right digest.
Not covered, and without effect, are the bytes of the zip format that are not read: time stamps, versions and attributes
of entries, copies in local headers of what the directory at the end says.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp._version import __version__
from fdadp.errors import FdadpError, FileFormatError, InputError
from fdadp.files.atomic_writes import PUBLIC, SECRET, replacing
from fdadp.files.regular_files import check_file

FILE_VERSION = 3
"""Raised with each release whose files an older one cannot read, or the other way round."""
_HEADER = "header"
_DIGEST = '{{"sha256": "{}", '  # how a header begins
_BROKEN = (
    *(ValueError, KeyError, TypeError, EOFError, OSError, OverflowError, zipfile.BadZipFile, zlib.error),
    RuntimeError,  # RecursionError (nested JSON), NotImplementedError (unknown compression), encrypted entries
)
_NUMBERS = np.dtype("<f8")


@dataclass(frozen=True)
class Layout:
    """What files of one kind hold.

    Parameters
    ----------
    kind : str
    members : mapping
        Name of each array, and its lengths: letters, equal where they stand for the same length, and numbers.
    optional : mapping, optional
        More members, all or none of which are there.
    """

    kind: str
    members: Mapping[str, str]
    optional: Mapping[str, str] = field(default_factory=dict)

    def write(
        self,
        path: str | os.PathLike[str],
        content: Mapping[str, Any],
        arrays: Mapping[str, Any],
        *,
        released: bool = False,
    ) -> Path:
        """Write `content`, of which :func:`plain` makes JSON, and `arrays`.

        Parameters
        ----------
        path : path
            ``.npz`` is added if there is no suffix. A file that is there keeps its mode.
        content, arrays : mapping
        released : bool
            Whether what is written may be seen by all: a new file then has the mode that the umask says, else 0600.

        Returns
        -------
        Path
            The path written.

        Raises
        ------
        InputError
            Content that JSON cannot hold, arrays other than those declared, or a path that names no regular file.
        """
        target = Path(path)
        if not target.name:
            raise InputError(f"path must name a file, got {os.fspath(path)!r}")
        target = target if target.suffix else target.with_suffix(".npz")
        values = {name: np.asarray(arrays[name], dtype=_NUMBERS, order="C") for name in sorted(arrays)}
        problem = self._names(set(values)) or self._lengths({name: value.shape for name, value in values.items()})
        if problem:
            raise InputError(f"arrays must be those of a {self.kind!r}, got a set that {problem}")
        header = {"format": "fdadp", "kind": self.kind, "version": FILE_VERSION, "fdadp": __version__}
        text = json.dumps(header | {"content": plain(content, "content")}).encode()
        text = _DIGEST.format(_digest(text, values)).encode() + text[1:]
        with (
            replacing(target, PUBLIC if released else SECRET) as stream,
            zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as file,
        ):
            entries: dict[str, Any] = {_HEADER: np.frombuffer(text, dtype=np.uint8), **values}
            for name, value in entries.items():
                buffer = io.BytesIO()
                np.lib.format.write_array(buffer, value, version=(1, 0), allow_pickle=False)
                file.writestr(zipfile.ZipInfo(f"{name}.npy"), buffer.getvalue())  # without the time: a model, a file
        return target

    def read(self, path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, FloatArray]]:
        """Read what :meth:`write` wrote: content and arrays.

        Raises
        ------
        FileFormatError
            Not a file of fdadp, another kind or version, other arrays or lengths than declared, a wrong digest.
        FileNotFoundError, PermissionError
            No such file, or one that must not be read.
        """
        with _opened(path) as (file, source):
            return self._unpack(file, source)

    def _unpack(self, file: zipfile.ZipFile, source: Path) -> tuple[dict[str, Any], dict[str, FloatArray]]:
        entries = {info.filename.removesuffix(".npy"): info for info in file.infolist()}
        problem = _directory(file, entries)
        if problem:
            raise FileFormatError(f"path must be a file written by fdadp, got {str(source)!r}, which {problem}")
        with file.open(entries.pop(_HEADER)) as stream:
            shape = _shape(stream, np.dtype(np.uint8), file.getinfo(f"{_HEADER}.npy").file_size)
            text = stream.read()
        header = json.loads(text.decode()) if len(shape) == 1 else None
        if not isinstance(header, dict) or header.get("format") != "fdadp":
            raise FileFormatError(f"path must be a file written by fdadp, got {str(source)!r} without its header")
        if header.get("kind") != self.kind:
            raise FileFormatError(f"path must hold a {self.kind!r}, got {header.get('kind')!r} in {str(source)!r}")
        if header.get("version") != FILE_VERSION:
            raise FileFormatError(
                f"path must have layout version {FILE_VERSION}, got version {header.get('version')!r} "
                f"(written by fdadp {header.get('fdadp')}) in {str(source)!r}. Fit the model again and save it, or "
                "load the file with the version that wrote it"
            )
        problem = self._names(set(entries))
        shapes = {}
        for name in () if problem else sorted(entries):  # nothing but their lengths is read yet
            with file.open(entries[name]) as stream:
                shapes[name] = _shape(stream, _NUMBERS, entries[name].file_size)
        problem = problem or self._lengths(shapes)
        if problem or not isinstance(header.get("content"), dict):
            problem = problem or "has no content in its header"
            raise FileFormatError(f"path must hold a complete {self.kind!r}, got {str(source)!r}, which {problem}")
        arrays = {}
        for name, shape in shapes.items():
            size = _NUMBERS.itemsize * math.prod(shape)
            raw = file.read(entries[name])  # checks the CRC
            arrays[name] = np.frombuffer(raw, _NUMBERS, offset=len(raw) - size).reshape(shape).astype(np.float64)
        start = len(_DIGEST.format("0" * 64))
        if text[:start].decode() != _DIGEST.format(_digest(b"{" + text[start:], arrays)):
            raise FileFormatError(
                f"path must hold a {self.kind!r} as fdadp wrote it, got {str(source)!r}, whose content does not have "
                "the SHA-256 in its header: it was changed, or put together from several files"
            )
        return header["content"], arrays

    def _names(self, names: set[str]) -> str:
        """What is wrong with the names of the arrays, if anything."""
        known = set(self.members) | set(self.optional)
        wanted = known if names & set(self.optional) else set(self.members)
        for what, found in (("lacks", wanted - names), ("has the unknown member", names - known)):
            if found:
                return f"{what} {sorted(found)[0]!r}"
        return ""

    def _lengths(self, shapes: Mapping[str, tuple[int, ...]]) -> str:
        """What is wrong with the lengths of the arrays, if anything."""
        known: dict[str, int] = {}
        for name, shape in shapes.items():
            letters = {**self.members, **self.optional}[name].split()
            before = dict(known)
            wanted = [int(x) if x.isdigit() else known.setdefault(x, n) for x, n in zip(letters, shape, strict=False)]
            if len(shape) != len(letters) or wanted != list(shape):
                return f"has {name!r} of shape {shape}, not ({', '.join(letters)}) with {before}"
        return ""


@dataclass(frozen=True)
class Sealed:
    """What a file of any kind says of itself, its digest found right.

    Attributes
    ----------
    kind, sha256 : str
    content : dict
    """

    kind: str
    sha256: str
    content: dict[str, Any]


def sealed(path: str | os.PathLike[str]) -> Sealed:
    """Read the header of a file of any kind, and compare its digest with everything in the file.

    Raises
    ------
    FileFormatError
        Not a file of fdadp, or a wrong digest.
    FileNotFoundError, PermissionError
        No such file, or one that must not be read.
    """
    with _opened(path) as (file, source):
        names = {info.filename.removesuffix(".npy"): info for info in file.infolist()}
        with file.open(names.pop(_HEADER)) as stream:
            _shape(stream, np.dtype(np.uint8), file.getinfo(f"{_HEADER}.npy").file_size)
            header = json.loads(stream.read().decode())
        members = {}
        for name, info in names.items():
            with file.open(info) as stream:
                members[name] = " ".join(map(str, _shape(stream, _NUMBERS, info.file_size)))
        if not isinstance(header, dict) or header.get("format") != "fdadp" or "sha256" not in header:
            raise ValueError("its header has no digest, as in files of fdadp 0.1, or is none: fit again")
        kind, digest = str(header["kind"]), str(header["sha256"])
    content, _ = Layout(kind, members).read(source)
    return Sealed(kind, digest, content)


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[tuple[zipfile.ZipFile, Path]]:
    """A file, ``.npz`` added if it has no suffix; whatever is wrong with its format is a FileFormatError."""
    source = Path(path)
    source = source if source.suffix or not source.name or source.exists() else source.with_suffix(".npz")
    check_file(source)
    try:
        with zipfile.ZipFile(source) as file:
            yield file, source
    except (FileNotFoundError, PermissionError, FileFormatError):
        raise
    except _BROKEN as exc:
        why = "none, or a part of one" if isinstance(exc, zipfile.BadZipFile) else f"broken: {exc}"
        raise FileFormatError(f"path must be a file written by fdadp, got {str(source)!r}, which is {why}") from exc


def _directory(file: zipfile.ZipFile, entries: Mapping[str, zipfile.ZipInfo]) -> str:
    """What is wrong with the directory of a zip file, if anything; nothing is unpacked."""
    found = file.infolist()
    if {f"{name}.npy" for name in entries} != {info.filename for info in found} or len(entries) < len(found):
        return "has entries of other or equal names"
    if any(info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size for info in found):
        return "has compressed entries (as fdadp 0.1 wrote them: fit again)"
    if _HEADER not in entries:
        return "has no header"
    assert file.fp is not None
    size = file.fp.seek(0, os.SEEK_END)
    if sum(info.file_size for info in found) > size:
        return f"has {size} bytes and claims to hold more"
    return ""


def _shape(stream: IO[bytes], dtype: np.dtype[Any], size: int) -> tuple[int, ...]:
    """Shape of an array in NumPy's format, from its first bytes; ValueError if it is not of `dtype` and `size`.

    NumPy's own reader evaluates this text as Python, which has errors of many kinds for what is not NumPy's.
    """
    start = stream.read(10)
    text = stream.read(int.from_bytes(start[8:], "little"))
    found = re.fullmatch(rb"\{'descr': '(.+)', 'fortran_order': (\w+), 'shape': \(([\d, ]{0,99})\), \} *\n", text)
    if start[:8] != b"\x93NUMPY\x01\x00" or found is None:
        raise ValueError("an array is not in NumPy's format")
    shape = tuple(int(number) for number in found[3].split(b",") if number.strip())
    length = math.prod(shape) * dtype.itemsize
    if found[1].decode() != dtype.str or found[2] != b"False" or len(start) + len(text) + length != size:
        raise ValueError(f"an array must be of {dtype} in C order and of the length that it states, got {text[:120]!r}")
    return shape


def _digest(text: bytes, arrays: Mapping[str, FloatArray]) -> str:
    """SHA-256 of a header without its digest, and of all arrays with names and shapes."""
    found = sha256(len(text).to_bytes(8, "big") + text)
    for name in sorted(arrays):
        found.update(json.dumps([name, arrays[name].shape]).encode())
        found.update(arrays[name].astype(_NUMBERS, copy=False).tobytes())
    return found.hexdigest()


@contextmanager
def complete(path: str | os.PathLike[str], kind: str) -> Iterator[None]:
    """Turn any error of making a model from what was read into a FileFormatError that names the file."""
    try:
        yield
    except (FdadpError, ImportError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as exc:
        raise FileFormatError(
            f"path must hold a complete {kind}, got {str(path)!r}, which lacks or spoils something "
            f"({type(exc).__name__}: {exc})"
        ) from exc


def plain(value: Any, name: str) -> Any:
    """Make what JSON can hold of a setting: NumPy's numbers and arrays become Python's, tuples lists.

    Parameters
    ----------
    value : object
    name : str
        For the error.

    Raises
    ------
    InputError
        JSON cannot hold it.
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {str(key): plain(item, f"{name}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, name) for item in value]
    raise InputError(
        f"{name} must be made of numbers, texts, lists and None, which a file can hold, got {type(value).__name__}"
    )
