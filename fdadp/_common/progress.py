"""The progress bar of long work."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tqdm import tqdm

__all__ = ["progress_bar"]

DELAY = 2.0
"""Seconds before a bar is shown that is shown only when work takes longer."""


def progress_bar(
    what: str, progress: bool | str, source: Iterable[Any] | None = None, total: int | None = None
) -> tqdm[Any]:
    """Bar of chunks labelled `what`: always, never, or (``"auto"``) after two seconds.

    Parameters
    ----------
    what : str
    progress : bool or "auto"
        True: where there is a terminal.
    source : iterable, optional
        What is gone through under the bar.
    total : int, optional
        Number of chunks, where there is no `source`.
    """
    return tqdm(
        iterable=source,
        total=total,
        desc=what,
        unit="chunk",
        disable=None if progress is True else not progress,
        delay=DELAY if progress == "auto" else 0.0,
        leave=False,
    )
