"""How a private fit reads columns of new rows: as in the fit, entry by entry; nothing is learned of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.tables.records import Records
from fdadp.functional.tables.sample import Curves
from fdadp.privacy.boundary import numbers as entries_as_numbers
from fdadp.private.public.inputs import is_irregular, table_of_irregular
from fdadp.regression.private.rows import Made
from fdadp.regression.reading.columns import ColumnTable, Grids, read_records
from fdadp.regression.reading.completion import Completion


@dataclass(frozen=True)
class PrivateColumns:
    """How columns of new rows are read: as they are, for the terms complete them as they did in the fit.

    Attributes
    ----------
    grids : mapping of str to ndarray
        Points of the training curves.
    made : mapping of str to Made
        Columns that are computed within each row.
    numbers : tuple of str
        Columns of one number a row, whose entries mean what they meant in the fit: ``" 1.5 "`` is 1.5, ``"?"`` missing.
    units : mapping of str to str
        Of the points of curves, where dates or times label them.
    """

    grids: Mapping[str, FloatArray]
    made: Mapping[str, Made] = field(default_factory=dict)
    numbers: tuple[str, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)

    @property
    def completion(self) -> Completion:
        """Nothing is completed by what was learned of other rows."""
        return Completion.none()

    def read(self, data: Any, columns: Sequence[str], grids: Grids | None) -> Records:
        """Columns of new rows, which may lack entries; irregular curves go on the grid as those of the fit did."""
        made = [self.made[name] for name in columns if name in self.made]
        sources = [source.name for one in made for source in one.sources]
        given = list(dict.fromkeys([*(name for name in columns if name not in self.made), *sources]))
        table = self._as_numbers(self._on_grids(data, given, grids), given)
        records = read_records(table, given, grids, defaults=self.grids, missing=given)[0]
        return records.with_columns(**{name: self._computed(name, records) for name in columns if name in self.made})

    def _on_grids(self, data: Any, columns: Sequence[str], grids: Grids | None) -> Any:
        """The table with irregular curves on the grids of the fit."""
        table = ColumnTable(data, grids)
        held = {name: table.held(name) for name in columns if table.has(name)}
        irregular = [name for name, raw in held.items() if is_irregular(raw) and name not in (grids or {})]
        if not irregular:
            return data
        binned = {name: table_of_irregular(held[name], self.grids[name]).read() for name in irregular}
        rest = {name: table.raw(name) for name in held if name not in binned}
        return rest | {name: Curves(values, self.grids[name]) for name, values in binned.items()}

    def _as_numbers(self, data: Any, columns: Sequence[str]) -> Any:
        """The table with numbers in its columns of numbers and curves, whatever types their entries came as."""
        own = ColumnTable(data)
        held = {name: own.raw(name) for name in columns if own.has(name)}
        wanted = [
            name
            for name, raw in held.items()
            if (name in self.numbers and not _holds_numbers(raw)) or (name in self.grids and _is_of_text(raw))
        ]
        return held | {name: _like(held[name], entries_as_numbers(held[name])) for name in wanted} if wanted else data

    def completed(self, records: Records, offset: str | None) -> Records:
        """Rows with all columns that are computed.

        Raises
        ------
        InputError
            What they, or an offset, are computed from is not there.
        """
        needed = {source.name for one in self.made.values() for source in one.sources}
        if offset is not None and offset not in self.made:
            needed.add(offset)
        lacking = sorted(map(str, needed - set(records.columns)))
        if lacking:
            raise InputError(
                f"{lacking[0]} must be a column of a term, as an offset or an expression reads it, got none"
            )
        return records.with_columns(**{name: self._computed(name, records) for name in self.made})

    def _computed(self, name: str, records: Records) -> Curves | FloatArray:
        one = self.made[name]
        held = {s.name: records.columns[s.name] for s in one.sources}
        own = {source: c for source, c in held.items() if isinstance(c, Curves)}
        values = {source: own[source].values if source in own else records.numbers(source) for source in held}
        computed = one.of(values, {source: curves.grid for source, curves in own.items()})
        return computed if computed.ndim == 1 else Curves(computed, next(iter(own.values())).grid)


def _holds_numbers(raw: Any) -> bool:
    return getattr(getattr(raw, "dtype", None), "kind", "O") in "biuf"


def _is_of_text(raw: Any) -> bool:
    """Whether a table of curves came with text in it."""
    if isinstance(raw, pd.DataFrame):
        return not all(map(_holds_numbers, (raw.iloc[:, j] for j in range(raw.shape[1]))))
    return isinstance(raw, np.ndarray) and raw.ndim == 2 and not _holds_numbers(raw)


def _like(raw: Any, values: FloatArray) -> Any:
    """Values with the labels of rows, and of points, that a column had."""
    if isinstance(raw, pd.DataFrame):
        return pd.DataFrame(values, index=raw.index, columns=raw.columns)
    return pd.Series(values, index=raw.index) if isinstance(raw, pd.Series) else values
