"""Columns of a table and what is beside it, with their rows joined by their labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from fdadp.functional.containers.source_table import OpenedTable
from fdadp.regression.reading.expressions import column_named, row_function
from fdadp.regression.reading.joined import aligned
from fdadp.regression.reading.training import TrainingSpec


def aligned_columns(by: str | None, asked: TrainingSpec) -> tuple[TrainingSpec, str | None]:
    """The same of what a model of many terms is trained on: a table, or columns by name, and what is beside it."""
    data, response = asked.data, [] if asked.y is not None else [asked.response]
    beside = {"weights": asked.weights, "offset": asked.offset, "groups": asked.groups, asked.response: asked.y}
    inputs = {name: given for name, given in beside.items() if given is not None and not isinstance(given, str)}
    if isinstance(data, OpenedTable) and inputs:
        data = {name: data[name] for name in data.names}
    own: dict[Any, Any] = {"data": data}
    if isinstance(data, Mapping):
        named = [given for given in beside.values() if isinstance(given, str)]
        own = {name: data[name] for name in _read(response + named + list(asked.columns), list(data))}
    if asked.long is not None or not own or not isinstance(data, Mapping | pd.DataFrame):
        return asked, None
    found, said = aligned(by, {**own, **inputs}, asked.response if asked.y is not None else next(iter(own)))
    if said is None and by != "position":
        return asked, None
    table = {**data, **{name: found[name] for name in own}} if isinstance(data, Mapping) else found["data"]
    beside = {name: found.get(name, given) for name, given in beside.items()}
    return replace(asked, data=table, y=beside.pop(asked.response), **beside), said


def positioned(by: str | None, data: Any) -> Any:
    """Columns whose labels were not to be looked at, with those of the first of them."""
    return aligned(by, data, next(iter(data)))[0] if by == "position" and isinstance(data, Mapping) and data else data


def aligned_rows(columns: Sequence[str], response: str, data: Any, y: Any) -> tuple[Any, Any]:
    """A table for a fitted model, and the response beside it or in it, with their rows joined."""
    found, _ = aligned_columns(None, TrainingSpec(data, y, response, columns))
    return found.data, found.y


def _read(texts: Sequence[str], columns: Sequence[Any]) -> list[Any]:
    """Columns that are read for columns, or expressions of them, those of the first one first."""
    out: list[Any] = []
    for text in texts:
        function = None if column_named(text, columns) is not None else row_function(text)
        names = (text,) if function is None else function.sources
        out += [own for own in (column_named(name, columns) for name in names) if own is not None]
    return list(dict.fromkeys(out))
