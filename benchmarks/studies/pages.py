"""Pages of results: tables in Markdown, and the line that says with which command and commit a page was made."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from fdadp import __version__

RESULTS = Path(__file__).resolve().parents[1] / "results"


def commit() -> str:
    """Short name of the commit in the folder of this file; says where files differ from it, or that there is none."""

    def git(*args: str) -> str:
        done = subprocess.run(["git", *args], cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        name, changed = git("rev-parse", "--short", "HEAD"), git("status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return "no commit (not a git repository)"
    return f"commit {name}{' with changes' if changed else ''}"


def made_with(command: str) -> str:
    """The line at the head of a page."""
    return f"`{command}`; fdadp {__version__}, {commit()}."


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table in Markdown; numbers with three digits after the point."""

    def cell(value: Any) -> str:
        return f"{value:.3f}" if isinstance(value, float) else str(value)

    lines = [head, ["---"] * len(head), *([cell(v) for v in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def mean_sd(values: Sequence[float]) -> str:
    """Mean and, of several, standard deviation: ``.812 (.013)``."""
    import numpy as np

    spread = f" ({np.std(values, ddof=1):.3f})" if len(values) > 1 else ""
    return f"{np.mean(values):.3f}{spread}"


def write(name: str, parts: Iterable[str]) -> Path:
    """Write a page of results, and print it."""
    path = RESULTS / f"{name}.md"
    text = "\n\n".join(part.strip() for part in parts) + "\n"
    path.write_text(text, encoding="utf-8")
    print(text)
    return path
