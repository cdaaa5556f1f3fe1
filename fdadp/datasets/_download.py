"""Downloads, kept in a cache folder; what they hold is checked by :mod:`fdadp.datasets._content`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from fdadp.datasets._content import Columns, content_sha256
from fdadp.errors import FileFormatError

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
