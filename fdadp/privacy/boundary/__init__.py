"""The one way of private tables into the kernel: entry by entry to float64, and to the person of each row.

A public rule (:mod:`~fdadp.privacy.boundary.entries`) says what an entry means, for that entry and what the caller
declares alone. What is public of a table, its shape, is looked at when it is handed over; its entries are read by the
kernel, after the budget was spent. See ``docs/theory/kernel.md#boundary``.
"""

from fdadp.privacy.boundary.entries import meaning, number_of, person_of
from fdadp.privacy.boundary.failures import FAILED, sealed
from fdadp.privacy.boundary.keys import NO_ROW, Key, Matched, joined_rows
from fdadp.privacy.boundary.persons import NO_NUMBER, NOBODY, Persons, check_ids, persons_of
from fdadp.privacy.boundary.tables import (
    RAGGED,
    Table,
    codes_of,
    column_names,
    columns,
    index_of,
    labels,
    numbers,
    table,
)

__all__ = [
    "FAILED",
    "NOBODY",
    "NO_NUMBER",
    "NO_ROW",
    "RAGGED",
    "Key",
    "Matched",
    "Persons",
    "Table",
    "check_ids",
    "codes_of",
    "column_names",
    "columns",
    "index_of",
    "joined_rows",
    "labels",
    "meaning",
    "number_of",
    "numbers",
    "person_of",
    "persons_of",
    "sealed",
    "table",
]
