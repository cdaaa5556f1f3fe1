"""Person-periods: a row for each period of time that a person was seen in, with 1 where the event ended it.

Covariates are repeated by position, and no entry of them is looked at. In a private table every person has a row for
every period, so that shapes are public. The kernel alone makes the responses and the person of every row, from the time
and the event of the person: rows after a person's end have no response, are nobody's, and do not count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from fdadp._common.argument_checks import numbers as setting
from fdadp._common.calling_language import advice
from fdadp._common.loaded_later import pd
from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.functional.containers.opened_tables import OpenedColumn, rows_of
from fdadp.functional.tables.curve_inputs import Labels
from fdadp.functional.tables.curve_sample import Curves
from fdadp.privacy.private_entries import Table, entries, numbers
from fdadp.privacy.private_entries import table as private_table
from fdadp.private.public.curve_shapes import check_groups
from fdadp.regression.private.chunked_tables import JoinedTables
from fdadp.regression.private.private_table import PrivateTable
from fdadp.regression.reading.label_joins import joined_labels
from fdadp.regression.reading.table_columns import ColumnTable, Grids, unknown_column

MOST_PERIODS = 100
MOST_ROWS = 2_000_000
"""Person-periods of a fit; of a private one the declared persons, who have all periods."""
PERIOD, EXPOSURE = "period", "exposure"
"""Columns of the number of the period, from 1, and of how long a person was seen in it."""


@dataclass(frozen=True)
class Periods:
    """Periods of time, the same for everybody.

    Attributes
    ----------
    edges : ndarray of shape (K + 1,)
        Where time begins, and the ends of the periods; increasing.
    rule : {"half", "end", "exposure"}
        When a person counts in a period that it entered late or left without event: times of entry and censoring are
        taken to the nearest edge; it counts if it was seen at the end, as in Cox's partial likelihood; or for as long
        as it was seen, which is its exposure, as others have one, too. An event always counts.
    """

    edges: FloatArray
    rule: Literal["half", "end", "exposure"]

    @classmethod
    def given(cls, times: Any, rule: Literal["half", "exposure"]) -> Periods:
        """Periods of edges that the user gave.

        Raises
        ------
        InputError
            Not increasing, not finite, fewer than two, or too many.
        """
        edges = setting(times, "times")
        if edges.ndim != 1 or edges.size < 2 or not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
            raise InputError(
                "times must be increasing: where time begins, then the end of each period, such as "
                f"{advice('range(0, 9)', r='0:8', shell='0:8:9')}, got {np.asarray(times).tolist()!r}"
            )
        if edges.size - 1 > MOST_PERIODS:
            raise InputError(f"times must make at most {MOST_PERIODS} periods, got {edges.size - 1}")
        return cls(edges, rule)

    @classmethod
    def of_events(cls, time: FloatArray, event: FloatArray, rule: Literal["half", "exposure"]) -> Periods:
        """Periods that end at the times of events: at quantiles where there are more than 100.

        Else at all of them: then exposures are those of Cox's partial likelihood.
        """
        died = time[event == 1]
        ends = times_of_events(time, event)
        few = ends.size <= MOST_PERIODS
        if not few:
            shares = np.arange(1, MOST_PERIODS + 1) / MOST_PERIODS
            ends = np.unique(np.quantile(died, shares, method="inverted_cdf"))
        return cls(np.concatenate(([0.0], ends)), "end" if few and rule == "exposure" else rule)

    @property
    def count(self) -> int:
        """Number of periods, K."""
        return self.edges.size - 1

    def responses(self, followed: Followed) -> FloatArray:
        """Of each person and period 1 (event), 0 (none) or NaN (not seen), shape (n, K). Each row is by itself.

        A person is seen in no period where a time is missing, where it was not seen after the first edge, or where the
        event is neither 0 nor 1.
        """
        start, end = self.edges[:-1], self.edges[1:]
        entry, t, event = (values[:, None] for values in (followed.entry, followed.time, followed.event))
        here = (t <= end) & ((t > start) | ((np.arange(self.count) == 0) & (t == start)))
        middle = (start + end) / 2
        after = np.nextafter(start, end)
        least, late = {"half": (middle, middle), "end": (end, end), "exposure": (after, end)}[self.rule]
        seen = (t >= np.where(event == 1, end, least)) & (entry < late)
        known = (t >= self.edges[0]) & (entry < t) & ((event == 0) | (event == 1))
        return np.where(known & (event == 1) & here, 1.0, np.where(known & seen, 0.0, np.nan))

    def exposures(self, followed: Followed, person: IntArray, period: IntArray) -> FloatArray:
        """How long persons were seen in periods, for each of the person-periods."""
        start, end = self.edges[period], self.edges[period + 1]
        return np.asarray(np.minimum(followed.time[person], end) - np.maximum(followed.entry[person], start))

    def refuse_many(self, rows: int) -> None:
        """Refuse more person-periods than a fit takes."""
        if rows > MOST_ROWS:
            raise InputError(
                f"times must make at most {MOST_ROWS:,} person-periods, got {rows:,}: give fewer times, such as "
                f"10 periods in place of {self.count}; Cox's regression, family='poisson' without times, makes none"
            )


def times_of_events(time: FloatArray, event: FloatArray) -> FloatArray:
    """Different times of events, increasing.

    Raises
    ------
    InputError
        One that is not above 0, where time begins.
    """
    ends = np.unique(time[event == 1])
    if ends[0] <= 0:
        raise InputError(f"time must be above 0 where the event happened, got {ends[0]:g}; or give times=")
    return np.asarray(ends)


class RepeatedColumns(Mapping[str, Any]):
    """A table of person-periods as a mapping of columns; those of the persons are repeated when they are asked for.

    Parameters
    ----------
    names : sequence of str
        Columns of the persons.
    repeat : callable
        Returns a column of the persons, repeated, by its name.
    made : mapping of str
        Columns of the person-periods themselves.
    """

    def __init__(self, names: list[str], repeat: Callable[[str], Any], made: Mapping[str, Any]) -> None:
        self._names = [name for name in names if name not in made]
        self._repeat, self._made = repeat, dict(made)

    def __getitem__(self, name: str) -> Any:
        if name in self._made:
            return self._made[name]
        if name not in self._names:
            raise KeyError(name)
        return self._repeat(name)

    def __iter__(self) -> Iterator[str]:
        return iter([*self._names, *self._made])

    def __len__(self) -> int:
        return len(self._names) + len(self._made)


def _columns(table: ColumnTable, followed: Sequence[str]) -> list[str]:
    """Columns of a table that may explain; raises InputError where a name is missing, or one of ours is taken."""
    names = [str(name) for name in table.names]
    for name in followed:
        if not table.has(name):
            raise unknown_column(name, names)
    taken = next((name for name in (PERIOD, EXPOSURE) if name in names), None)
    if taken is not None:
        raise InputError(f"data must have no column called {taken!r}, which the table of person-periods has: rename it")
    return [name for name in names if name not in followed]


# Without privacy.


@dataclass(frozen=True)
class Followed:
    """Times and events of persons, checked.

    Attributes
    ----------
    time, event : ndarray of shape (n,)
        Event is 1, or 0 where the person was censored.
    entry : ndarray of shape (n,)
        The time from which the person was seen; -inf where it was from the beginning.
    """

    time: FloatArray
    event: FloatArray
    entry: FloatArray

    @classmethod
    def read(cls, table: ColumnTable, followed: Sequence[str]) -> Followed:
        """Columns of a table: time and event, and entry where there is one.

        Raises
        ------
        InputError
            Missing entries, times below 0, entries not before the time, events other than 0 and 1, or no event at all.
        """
        records = table.records(followed, missing=followed)
        columns = [records.numbers(name) for name in followed]
        (time, event, *_), (t, died, *late) = followed, columns
        for name, values in zip(followed, columns, strict=True):
            unknown = ~np.isfinite(values)
            if unknown.any():
                raise InputError(
                    f"{name} must be known and finite for everybody, got {values[unknown][0]:g} in row "
                    f"{int(unknown.argmax())}: leave out whom nobody followed"
                )
        for name, wrong, want in (
            (time, ~(t >= 0), "at least 0"),
            (event, ~np.isin(died, (0, 1)), "1 (the event) or 0 (censored)"),
        ):
            if wrong.any():
                row = int(wrong.argmax())
                raise InputError(f"{name} must be {want}, got {(t if name == time else died)[row]:g} in row {row}")
        if not died.any():
            raise InputError(f"{event} must be 1 for at least one person, got 0 for all {died.size}")
        if late and not (late[0] < t).all():
            row = int((late[0] >= t).argmax())
            raise InputError(f"{followed[2]} must be before {time}, got {late[0][row]:g} and {t[row]:g} in row {row}")
        return cls(t, died, late[0] if late else np.full(t.size, -np.inf))


def expanded(
    table: ColumnTable,
    followed: Followed,
    periods: Periods,
    names: Sequence[str],
    right: str,
    *,
    missing: str | Mapping[str, str] = "auto",
    ids: Any = None,
) -> tuple[RepeatedColumns, FloatArray, Any]:
    """The table of person-periods of an ordinary fit; responses of persons and periods (n, K); ids of the rows.

    `names` are the columns of `followed`, `right` is the text of those that explain.
    """
    time, event = names[:2]
    responses = periods.responses(followed)
    seen = np.isfinite(responses)
    periods.refuse_many(int(seen.sum()))
    if not (responses == 1).any():
        raise InputError(f"times must hold at least one event, got none until {periods.edges[-1]:g}")
    person, period = np.nonzero(seen)
    made = {PERIOD: period + 1.0, event: responses[person, period]}
    if periods.rule == "exposure":
        made[EXPOSURE] = periods.exposures(followed, person, period)
        if not (made[EXPOSURE] > 0).all():
            raise InputError(f"{time} must be above {periods.edges[0]:g}, where time begins, got an event at it")
    if ids is not None:
        ids = np.asarray(table.raw(ids) if isinstance(ids, str) else ids)
        if ids.shape != followed.time.shape:
            raise InputError(f"groups must have one id a person, {len(responses)} in all, got shape {ids.shape}")
        ids = ids[person]
    return _repeated(table, person, names, right, made, missing), responses, ids


def of_persons(
    table: ColumnTable,
    followed: Followed,
    names: Sequence[str],
    right: str,
    exposure: FloatArray,
    missing: str | Mapping[str, str],
) -> RepeatedColumns:
    """The table of the persons as they are, in one period, with their events and an exposure of each (n,)."""
    made = {PERIOD: np.ones(exposure.size), names[1]: followed.event, EXPOSURE: exposure}
    return _repeated(table, np.arange(followed.time.size), names, right, made, missing)


def _repeated(
    table: ColumnTable,
    person: IntArray,
    names: Sequence[str],
    right: str,
    made: Mapping[str, Any],
    missing: str | Mapping[str, str],
) -> RepeatedColumns:
    """Columns of persons that explain, repeated as `person` says."""

    def repeat(name: str) -> Any:
        how = missing if isinstance(missing, str) else missing.get(name, "raise")
        if how in ("auto", "raise"):
            table.records([name])  # refuses what is missing, by the row of the person
        column = table.read(name)
        if isinstance(column.values, Curves):
            return replace(rows_of(column.values, person), index=None)
        values = column.values[person]
        return values if column.order is None else pd.Categorical(values, categories=list(column.order), ordered=False)

    used = {word.strip("`") for word in re.findall(r"`[^`]*`|\w+", right)}
    return RepeatedColumns([name for name in _columns(table, names) if name in used], repeat, made)


# With privacy: the same, by the kernel.


def as_objects(listed: Sequence[Any]) -> Labels:
    """One entry after the other, tuples among them, and never a common type for all."""
    out = np.empty(len(listed), dtype=object)
    for i, entry in enumerate(listed):
        out[i] = entry
    return out


@dataclass(frozen=True)
class RepeatedRows:
    """Rows of a private table, each `times` times in a row; slices of them are taken by the kernel."""

    rows: Any
    n: int
    times: int

    def __getitem__(self, at: slice) -> Any:
        person, first = self.persons(at)
        block = self.rows[first : first + 1 if person.size == 0 else int(person[-1]) + 1]
        own = person - first
        if hasattr(block, "iloc"):
            return block.iloc[own]
        if not isinstance(block, np.ndarray) and getattr(block, "ndim", 1) == 1:
            block = as_objects(entries(block))  # by the boundary's rules: no entry may fail
        return np.asanyarray(block)[own]

    def persons(self, at: slice) -> tuple[IntArray, int]:
        """Persons of the rows of a slice, and the first of them."""
        start, stop, _ = at.indices(self.n * self.times)
        person = np.arange(start, stop) // self.times
        return person, int(person[0]) if person.size else 0


@dataclass(frozen=True)
class PeriodResponses:
    """Responses of all persons in all periods, computed when the kernel takes a slice of them.

    `followed` are time and event, and entry where there is one.
    """

    followed: tuple[Table, ...]
    periods: Periods

    @property
    def n(self) -> int:
        """Rows of the table of persons."""
        return len(self.followed[0])

    def __getitem__(self, at: slice) -> FloatArray:
        K = self.periods.count
        start, stop, _ = at.indices(self.n * K)
        persons = slice(start // K, -(-stop // K))
        t, died, *late = (np.reshape(one.convert(one.rows[persons]), -1) for one in self.followed)
        followed = Followed(t, died, late[0] if late else np.full(t.size, -np.inf))
        first = persons.start * K
        return self.periods.responses(followed).ravel()[start - first : stop - first]


@dataclass(frozen=True)
class PeriodPersons:
    """Whose each of the rows is: the person's number or id; nobody's (missing) where it was not seen in the period.

    The kernel reads it as ids, which takes it for an array; its shape alone is public.
    """

    responses: PeriodResponses
    ids: Any = None
    """Of the rows of persons, where several may be of one person."""

    @property
    def shape(self) -> tuple[int]:
        """Number of rows."""
        return (self.responses.n * self.responses.periods.count,)

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        K, seen = self.responses.periods.count, np.isfinite(self.responses[:])
        if self.ids is None:
            return np.where(seen, np.arange(len(self)) // K, np.nan)
        out = np.repeat(as_objects(entries(self.ids)), K)
        out[~seen] = None
        return out


def expanded_privately(
    data: Any,
    grids: Grids | None,
    bounds: Mapping[str, Any],
    periods: Periods,
    names: Sequence[str],
    ids: Any = None,
) -> tuple[RepeatedColumns, PeriodPersons]:
    """The table of all persons in all periods, and whose the rows are; nothing but shapes is looked at.

    `names` are the columns of time and event, and of entry where there is one.

    Raises
    ------
    InputError
        Columns of several tables with labels, which would have to be joined, or of other lengths.
    """
    table, given = PrivateTable(data, grids, bounds), ColumnTable(data, grids)
    covariates = _columns(given, names)
    own = {name: given.held(name) for name in [*covariates, *names]}
    if not isinstance(data, pd.DataFrame) and joined_labels(None, own) is not None:
        raise InputError(
            "data must be one data frame, or a mapping of arrays and curves without row labels, in a private fit of "
            "times to an event: rows belong together by position"
        )
    odd = next((name for name, column in own.items() if isinstance(column, OpenedColumn) and column.n is None), None)
    if odd is not None:
        raise InputError(
            f"data must have a known number of rows in a private fit of times to an event, got {own[odd]!r}: read the "
            "table first, by .read()"
        )
    followed = tuple(table.numbers(name) for name in names)
    n, K = len(followed[0]), periods.count
    if any(len(own) != n for own in followed):
        raise InputError(f"{' and '.join(names)} must have the same number of rows")
    if ids is not None:
        ids = table.raw(ids) if isinstance(ids, str) else ids
        check_groups(ids, n)

    def repeated(whole: Table) -> Table:
        return replace(whole, rows=RepeatedRows(whole.rows, len(whole), K), shape=(len(whole) * K, *whole.shape[1:]))

    def repeat(name: str) -> Any:
        if table.kind(name) == "curves":
            curves: Any = table.curves(name)
            return replace(curves, values=repeated(curves.values))
        return repeated(private_table(table.raw(name), name))

    responses = PeriodResponses(followed, periods)
    in_memory = all(own.in_memory for own in followed)
    made = {
        PERIOD: np.tile(np.arange(1.0, K + 1), n),
        names[1]: Table(responses, (n * K,), numbers, in_memory, followed[0].source),
    }
    return RepeatedColumns(covariates, repeat, made), PeriodPersons(responses, ids)


def joined_privately(
    tables: JoinedTables, bounds: Mapping[str, Any], periods: Periods, names: Sequence[str]
) -> JoinedTables:
    """Tables that the kernel joins by ids, the one with time and event (and entry) with a row for each period.

    Rows of the others stay as they are: each person has one, whose covariates hold in all periods.

    Raises
    ------
    InputError
        Time and event are not in one table, or a name of ours is taken.
    """
    event = names[1]
    own = next((source for source, columns in tables.names.items() if event in columns), None)
    if own is None or not set(names) <= set(tables.names[own]):
        raise InputError(f"{' and '.join(names)} must be columns of one table in a private fit of times to an event")
    taken = next((name for columns in tables.names.values() for name in columns if name == PERIOD), None)
    if taken is not None:
        raise InputError(f"data must have no column called {taken!r}, which the table of person-periods has: rename it")

    def blocks() -> Iterator[dict[str, Any]]:
        for block in tables.sources[own]():
            table, K = PrivateTable(block, None, bounds), periods.count
            responses = PeriodResponses(tuple(table.numbers(name) for name in names), periods)
            made = {name: np.repeat(as_objects(entries(block[name])), K) for name in tables.names[own]}
            made[PERIOD] = np.tile(np.arange(1.0, K + 1), responses.n)
            made[event] = responses[:]
            made[tables.id] = np.asarray(PeriodPersons(responses, block[tables.id]))
            yield made

    columns = {**tables.names, own: (*tables.names[own], PERIOD)}
    return replace(tables, sources={**tables.sources, own: blocks}, names=columns)
