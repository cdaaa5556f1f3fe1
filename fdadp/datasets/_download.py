"""Downloads, kept in a cache folder; what they hold is checked by :mod:`fdadp.datasets._download`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fdadp.errors import FileFormatError

# Is this the published data set? Checksums of decoded values, whatever file they came in.


Columns = Mapping[str, npt.NDArray[Any]]
"""A data set as decoded: name of a column (or of a block of curves) -> array with one row per record."""

MISSING = np.iinfo(np.int64).min


def content_sha256(columns: Columns) -> str:
    """SHA-256 of the values of a data set, independent of the file format they came in.

    Numbers enter as multiples of 1e-9, little-endian 64-bit, row by row, with the shape; a missing value is the
    smallest integer; text enters as UTF-8. The rounding is needed because R's and Python's readers of
    decimal text differ in the last bit of a few numbers; 1e-9 is far below the resolution of any of the data.

    Parameters
    ----------
    columns : mapping of str to ndarray
        Taken in alphabetical order of the names.

    Returns
    -------
    str
        64 hexadecimal digits.
    """
    digest = hashlib.sha256()
    for name in sorted(columns):
        column = np.asarray(columns[name])
        digest.update(f"{name}{column.shape}".encode())
        if column.dtype.kind in "biuf":
            values = column.astype(np.float64)
            missing = np.isnan(values)
            scaled = np.rint(np.where(missing, 0.0, values) * 1e9).astype("<i8")
            digest.update(np.where(missing, MISSING, scaled).astype("<i8").tobytes(order="C"))
        else:
            digest.update("\n".join(str(value) for value in column.ravel()).encode())
    return digest.hexdigest()


TIMEOUT = 20.0
"""Seconds without an answer before the next address is tried."""


def cache_dir() -> Path:
    """Return where downloads are kept: ``FDADP_CACHE``, else the user's cache folder."""
    import pooch

    return Path(os.environ.get("FDADP_CACHE") or pooch.os_cache("fdadp"))


def download(urls: Sequence[str], decode: Callable[[list[Path]], Columns], sha256: str) -> Columns:
    """Fetch files that belong together and decode them.

    Parameters
    ----------
    urls : sequence of str
        One address per file.
    decode : callable
        Turns the local files, in the order of `urls`, into a data set.
    sha256 : str
        Content checksum of the values wanted. Files with others are thrown out of the cache, so that a later
        call fetches again.

    Raises
    ------
    OSError
        Not reachable.
    FileFormatError
        Fetched, but not what it should be.
    """
    import pooch

    files = []
    for url in urls:
        # No checksum of the file: compression and packaging may change; the values are checked instead.
        fetch = pooch.HTTPDownloader(timeout=TIMEOUT)
        files.append(
            Path(pooch.retrieve(url, known_hash=None, fname=url.rsplit("/", 1)[1], path=cache_dir(), downloader=fetch))
        )
    try:
        columns = decode(files)
        if content_sha256(columns) == sha256:
            return columns
        raise FileFormatError(f"must hold the published values, got others (content SHA-256 is not {sha256[:12]}...)")
    except FileFormatError:
        for file in files:
            file.unlink(missing_ok=True)
        raise
