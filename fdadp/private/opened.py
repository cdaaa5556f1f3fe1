"""Curves of a private fit that come from a source of unknown length: as chunks, with the ids of their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fdadp.errors import InputError
from fdadp.functional.containers.open import opened
from fdadp.functional.containers.opened import OpenedColumn, OpenedCurves
from fdadp.functional.containers.together import chunks_together
from fdadp.functional.kinds import Given
from fdadp.functional.sample import Curves


def public_head(curves: OpenedCurves) -> Curves:
    """What is public of curves that were opened: grid, labels of points, name and kind, and no attributes."""
    head = curves.head
    given = head.given or Given()
    return replace(head, given=Given(given.name, row_name=given.row_name))


def stand_in(column: Any) -> Any:
    """What is public of a column whose number of rows only reading would tell, without a row; all else as it is."""
    if not isinstance(column, OpenedColumn) or column.n is not None:
        return column
    return public_head(column) if isinstance(column, OpenedCurves) else np.empty(0)


def refuse_unknown_length(inputs: Mapping[str, Any]) -> None:
    """Refuse columns of unknown length that belong together by position; raises InputError."""
    odd = next((name for name, own in inputs.items() if isinstance(own, OpenedColumn) and own.n is None), None)
    if odd is not None:
        raise InputError(
            f"{odd} must have a known number of rows, got {inputs[odd]!r}: label the rows of all inputs by the "
            "person's id, as by open_curves(path, rows='id'), hand over the table that was opened, with all of its "
            "columns, or read the file first, read_curves(path)"
        )


def chunks_of(curves: Mapping[str, Any], groups: Any) -> tuple[Any, bool | None] | None:
    """Chunks of columns whose number of rows only reading would tell; None where all of them are known.

    Parameters
    ----------
    curves : mapping of str to curves
        By the name of the argument.
    groups : column, or None

    Returns
    -------
    chunks, groups : re-iterable, True or None
        As :class:`fdadp.private.chunks.PrivateChunks` takes chunks and groups.

    Raises
    ------
    InputError
        Something else beside such columns, or columns of several sources without an order.
    """
    read = {name: opened(data, name) for name, data in curves.items()}
    found: dict[str, Any] = read if groups is None else {**read, "groups": groups}
    if not any(isinstance(c, OpenedColumn) and c.n is None for c in found.values()):
        return None
    odd = next((name for name, c in found.items() if not isinstance(c, OpenedColumn)), None)
    if odd is not None:
        raise InputError(
            f"{odd} must be a column of what was opened, as table['{odd}'], like the others, whose number of rows is "
            f"not known: got {type(found[odd]).__name__}"
        )
    return chunks_together(found), None if groups is None else True
