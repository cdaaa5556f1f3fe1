"""Read data frames out of R's files: ``.rda`` (or ``.RData``), installed packages (``Rdata.rdb``) and source tarballs.

R itself is not needed.
"""

from __future__ import annotations

import bz2
import lzma
import tarfile
import warnings
import zlib
from pathlib import Path
from typing import Any

from fdadp.errors import FileFormatError

ENDINGS = ("RData", "rda", "rdata")
"""Of the same kind of file; refund 0.1-38 has DTI.RData."""


def from_rda_bytes(content: bytes, name: str) -> dict[str, Any]:
    """Return object `name` of an ``.rda`` file; a data frame becomes a dict of its columns.

    Raises
    ------
    FileFormatError
        Not an ``.rda`` file, or without that object.
    """
    objects = _convert(content, f"R's file of {name}")
    if not isinstance(objects, dict) or name not in objects:
        raise FileFormatError(f"R's file of {name} must hold an object of that name, got {_names(objects)}")
    return dict(objects[name])


def from_tarball(path: Path, package: str, name: str) -> dict[str, Any]:
    """Return ``<package>/data/<name>.RData`` (or ``.rda``) of a package's source tarball.

    Raises
    ------
    FileFormatError
        Not a tarball, or without that file.
    """
    wanted = [f"{package}/data/{name}.{ending}" for ending in ENDINGS]
    try:
        with tarfile.open(path) as tar:
            member = next((m for m in tar if m.isfile() and m.name in wanted), None)
            file = tar.extractfile(member) if member else None  # read in memory: nothing is unpacked to disk
            content = file.read() if file else None
    except (tarfile.TarError, EOFError, zlib.error) as exc:
        raise FileFormatError(f"{path} must be a tarball with {wanted[0]}, got {exc}") from exc
    if content is None:
        raise FileFormatError(f"{path} must be a tarball with {wanted[0]}, got one without it")
    return from_rda_bytes(content, name)


def from_library(folder: Path, name: str) -> dict[str, Any] | None:
    """Return data set `name` of an installed package, or ``None`` where the folder does not hold it.

    Parameters
    ----------
    folder : Path
        The installed package, e.g. ``/usr/lib/R/site-library/refund``.
    name : str
        The object.

    Raises
    ------
    FileFormatError
        The package's files cannot be read.
    """
    data = folder / "data"
    for ending in ENDINGS:
        if (data / f"{name}.{ending}").is_file():
            return from_rda_bytes((data / f"{name}.{ending}").read_bytes(), name)
    if not (data / "Rdata.rdx").is_file():
        return None
    index = _convert((data / "Rdata.rdx").read_bytes(), "Rdata.rdx")
    if name not in index["variables"]:
        return None
    offset, length = (int(v) for v in index["variables"][name])
    with (data / "Rdata.rdb").open("rb") as file:
        file.seek(offset)
        chunk = file.read(length)
    return dict(_convert(_inflate(chunk, int(index["compressed"][0])), f"{name} in Rdata.rdb"))


def _inflate(chunk: bytes, kind: int) -> bytes:
    """Undo the compression of R's lazy-load data base (R sources, src/main/serialize.c, R_compress1 to 3).

    A chunk starts with its full length (4 bytes); kinds 2 and 3 then have a letter for the method used.
    """
    method, body = (b"z", chunk[4:]) if kind == 1 else (chunk[4:5], chunk[5:])
    try:
        if kind == 0 or method == b"0":
            return chunk if kind == 0 else body
        if method == b"z":
            return zlib.decompress(body)
        if method == b"2":
            return bz2.decompress(body)
        if method == b"Z":
            filters = [{"id": lzma.FILTER_LZMA2, "preset": 6}]
            return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=filters).decompress(body)
    except (zlib.error, lzma.LZMAError, OSError, EOFError) as exc:
        raise FileFormatError(f"Rdata.rdb must hold a compressed object, got {exc}") from exc
    raise FileFormatError(f"Rdata.rdb must be compressed by one of R's methods '2', 'Z', '0', got {method!r}")


def _convert(content: bytes, label: str) -> Any:
    import rdata

    plain = {"data.frame": lambda columns, attributes: columns, "AsIs": lambda column, attributes: column}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about classes we do not need
        try:
            parsed = rdata.parser.parse_data(content)
            return rdata.conversion.convert(parsed, constructor_dict={**rdata.conversion.DEFAULT_CLASS_MAP, **plain})
        except Exception as exc:  # rdata raises many kinds on files that are not R's
            raise FileFormatError(f"{label} must be a file written by R, got {type(exc).__name__}: {exc}") from exc


def _names(objects: Any) -> str:
    return ", ".join(map(str, objects)) if isinstance(objects, dict) else type(objects).__name__
