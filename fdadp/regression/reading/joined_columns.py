"""Rows of a table for a fitted model, joined with the response beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fdadp.regression.reading.training import TrainingSpec, aligned_columns


def aligned_rows(columns: Sequence[str], response: str, data: Any, y: Any) -> tuple[Any, Any]:
    """A table for a fitted model, and the response beside it or in it, with their rows joined."""
    found, _ = aligned_columns(None, TrainingSpec(data, y, response, columns))
    return found.data, found.y
