"""The progress bar of long work."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from tqdm import tqdm

DELAY = 2.0
"""Seconds before a bar is shown that is shown only when work takes longer."""


def progress_bar(
    what: str, progress: bool | str, source: Iterable[Any] | None = None, total: int | None = None
) -> tqdm[Any]:
    """Bar of chunks labelled `what`: at once, never, or (``"auto"``) after two seconds.

    Parameters
    ----------
    what : str
    progress : bool or "auto"
        True: at once; "auto": after two seconds. Both only where somebody sees it, in a terminal or a notebook.
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
        disable=not progress or not _is_watched(),
        delay=DELAY if progress == "auto" else 0.0,
        leave=False,
    )


def _is_watched() -> bool:
    """Whether stderr is shown as it comes, in a terminal or a notebook; a log file is not."""
    return sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel.")
