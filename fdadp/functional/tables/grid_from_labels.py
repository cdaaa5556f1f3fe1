"""What the column labels of a table say about the grid of its curves: numbers, dates, times, or nothing.

Labels are public; no value is looked at here, so a private fit may use all of it.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any, Literal

import numpy as np

from fdadp._common.calling_language import advice
from fdadp._common.loaded_later import pd
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError

Kind = Literal["number", "date", "time", "word"]

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_DATE = re.compile(r"\d{4}-\d{2}(-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?)?")
_TIME = re.compile(r"\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?")
_NUMBERED = re.compile(r"(\D*?)(-?\d+(?:\.\d+)?)")
_IDENTIFIER = re.compile(r"(.*[ _.-])?id", re.IGNORECASE)
_UNITS = {"days": 86_400.0, "hours": 3_600.0, "minutes": 60.0, "seconds": 1.0}
_KINDS = {"number": "numbers", "date": "dates", "time": "times", "word": "words"}

ONLY_NUMBERED = "columns are only numbered"
"""Said, in the place of a unit, of an even grid on [0, 1] whose columns are labelled 0, 1, ..., S-1."""


@dataclass(frozen=True)
class Axis:
    """The grid that column labels give.

    Attributes
    ----------
    points : ndarray of shape (S,)
        Strictly increasing.
    unit : str or None
        Of dates and times, as ``"days since 2020-01-01"``; None for numbers.
    backwards : bool
        Whether the labels decrease, so that points and values have to be turned round.
    """

    points: FloatArray
    unit: str | None = None
    backwards: bool = False


def text_of_grid(points: FloatArray, unit: str | None = None, by: str = "grids") -> str:
    """How many points, from where to where, and in which unit; `by` names the argument that gives other points."""
    found = f"{points.size} points on [{points[0]:.4g}, {points[-1]:.4g}]"
    if unit == ONLY_NUMBERED:
        cure = advice(f"{by}= gives others", r=f"{by} = gives others", shell="names such as h0, h1, ... give points")
        return f"{found} ({unit}; {cure})"
    return found if unit is None else f"{found} {unit}"


def is_only_numbered(columns: pd.Index[Any]) -> bool:
    """Whether labels are 0, 1, ..., S-1, the numbers of the columns: a count, numbers or text of numbers.

    Pandas counts columns so. A file of such a table, and what reads it, cannot tell the count from numbers.

    Examples
    --------
    >>> [is_only_numbered(pd.Index(labels)) for labels in (range(3), [0.0, 1.0, 2.0], ["0", "1", "2"], ["1", "2"])]
    [True, True, True, False]
    """
    if columns.nlevels > 1:
        return False
    if columns.dtype.kind in "iuf":
        return bool(np.array_equal(columns, np.arange(len(columns))))
    return all(_kind(label) == "number" and float_of(label) == j for j, label in enumerate(columns))


def axis_of(columns: pd.Index[Any], name: str, *, numbered: bool = True) -> Axis | None:
    """Read column labels as a grid; None where they are words, or only number the columns (:func:`is_only_numbered`).

    Numbers may be text, as CSV readers give them. Labels that share a prefix and end in numbers are a grid, too: "h00"
    to "h23" are 0 to 23. Dates (also in ISO form) become days, hours, minutes or seconds since
    the first, times of day and time spans the same unit since 0: the largest of which the axis holds two.

    Parameters
    ----------
    columns : pandas.Index
    name : str
        The argument's name in error messages.
    numbered : bool
        Whether labels with a prefix are a grid; else they are words, as names of covariates are.

    Raises
    ------
    InputError
        Labels that are partly numbers and partly not, repeat, are not in order, or look like those of a column of
        ids among curves. The text names the label.
    """
    columns = _one_level(columns, name)
    return None if is_only_numbered(columns) else points_of(columns, name, numbered=numbered)


def points_of(columns: pd.Index[Any], name: str, *, numbered: bool = True) -> Axis | None:
    """Read labels as :func:`axis_of` does, where 0, 1, ..., S-1 are known to be points, such as those of ``--grid``."""
    if columns.dtype.kind in "iuf":
        return _axis(columns, np.asarray(columns, dtype=np.float64), None, name)
    labels = list(columns)
    kinds = [_kind(label) for label in labels]
    found = Counter(kinds)
    if len(found) > 1:
        rare = min(found, key=lambda kind: (found[kind], kind != "word"))
        others = _KINDS[next(kind for kind in found if kind != rare)]
        odd = labels[kinds.index(rare)]
        raise InputError(
            f"columns of {name} must all be points of one grid, got {odd!r} among {others}. {_without(odd, '')}"
        )
    if kinds[0] == "word":
        _check_words(labels, name)
        points = _numbers_after_a_prefix(labels) if numbered else None
        return None if points is None else _axis(columns, points, None, name)
    if kinds[0] == "number":
        return _axis(columns, np.array([float_of(label) for label in labels]), None, name)
    seconds, since = _seconds(labels, kinds[0], name)
    span = float(np.ptp(seconds))
    unit = next((unit for unit, size in _UNITS.items() if span >= 2 * size), "seconds")
    return _axis(columns, seconds / _UNITS[unit], unit + since, name)


def numbers_of(labels: list[Any], name: str) -> FloatArray:
    """Numbers by which labels in any order can be sorted: themselves, or seconds of dates and times.

    Raises
    ------
    InputError
        Words, or labels of several kinds.
    """
    kinds = {_kind(label) for label in labels}
    if len(kinds) != 1 or "word" in kinds:
        raise InputError(f"{name} must be numbers, dates or times, got {labels[0]!r}")
    kind = kinds.pop()
    return np.array([float_of(v) for v in labels]) if kind == "number" else _seconds(labels, kind, name)[0]


def points_after(names: list[str], prefix: str) -> pd.Index[Any]:
    """Labels of points in columns that share a prefix: what follows it, or the whole where that is a point itself.

    So "h00" with "h" is 0, and "2024-03-01 00:00" with "2024" is the date that it is.
    """
    if all(_kind(name) != "word" for name in names):
        return pd.Index(names)
    return under_a_prefix(pd.Index([name[len(prefix) :] for name in names]), prefix)


def under_a_prefix(labels: pd.Index[Any], prefix: str) -> pd.Index[Any]:
    """Labels of points; 0, 1, ..., S-1 with the letters of a prefix before them, for by themselves they are no points.

    Examples
    --------
    >>> under_a_prefix(pd.Index(["00", "01", "02"]), "day1_h").tolist()
    ['day_h00', 'day_h01', 'day_h02']
    >>> under_a_prefix(pd.Index(["0", "5", "10"]), "day1_h").tolist()
    ['0', '5', '10']
    """
    if not is_only_numbered(labels):
        return labels
    letters = re.sub(r"\d", "", prefix) or "t"
    return pd.Index([f"{letters}{label}" for label in labels], name=labels.name)


def is_identifier(label: Any) -> bool:
    """Whether a column of this name holds ids of curves: "id", "patient_id"."""
    return isinstance(label, str) and _IDENTIFIER.fullmatch(label.strip()) is not None


def is_moment(entry: Any) -> bool:
    """Whether an entry is a date or a time."""
    return _kind(entry) in ("date", "time")


def is_odd_one(label: Any, others: Sequence[Any]) -> bool:
    """Whether a label is of another kind than all others, which are of one: no number, no date, not of a series."""
    kinds = {_kind(other) for other in others}
    if kinds == {"word"}:
        return odd_among_numbered([label, *others]) == [label]
    return len(kinds) == 1 and _kind(label) not in kinds


def labels_rows(first: Any, others: Sequence[Any]) -> bool:
    """Whether the first column of a table of curves holds labels of its rows, by the labels of columns alone."""
    return first == "" or is_identifier(first) or is_odd_one(first, others)


def odd_among_numbered(labels: Sequence[Any]) -> list[Any]:
    """Labels that do not belong to a numbered series "t0", "t1", ... which most others form."""
    prefix, others = _series(labels)
    return others if prefix and 2 * len(others) < len(labels) else []


def of_columns_beside(labels: Sequence[Any]) -> str:
    """How curves are taken from a table that has other columns; empty where no labels form a numbered series."""
    prefix, others = _series(labels)
    return _of_series(prefix) if prefix and others else ""


def _series(labels: Sequence[Any]) -> tuple[str, list[Any]]:
    """Prefix of the longest numbered series among labels, and the labels that are not in it; "" where there is none."""
    prefixes = [m[1] if (m := _NUMBERED.fullmatch(str(label).strip())) else None for label in labels]
    prefix, count = Counter(p for p in prefixes if p).most_common(1)[0] if any(prefixes) else ("", 0)
    if count < 2:
        return "", []
    return prefix, [label for label, p in zip(labels, prefixes, strict=True) if p != prefix]


def _of_series(prefix: str) -> str:
    return advice(
        f"fdadp.open_curves(table, curves={{'X': {prefix!r}}}) takes as curves the columns that start with {prefix!r}",
        r=f'X = as.matrix(data[startsWith(names(data), "{prefix}")]) takes as curves the columns that start with it',
        shell=f"--curves 'X=FILE:{prefix}*' takes as curves the columns that start with {prefix!r}",
    )


def _one_level(columns: pd.Index[Any], name: str) -> pd.Index[Any]:
    if columns.nlevels == 1:
        return columns
    levels = [columns.get_level_values(k) for k in range(columns.nlevels)]
    varying = [level for level in levels if level.nunique(dropna=False) > 1]
    if len(varying) > 1:
        raise InputError(f"columns of {name} must have one level of labels, got {columns[0]!r}, {columns[-1]!r}")
    return varying[0] if varying else levels[-1]


def _kind(label: Any) -> Kind:
    if isinstance(label, str):
        text = label.strip()
        for kind, pattern in (("number", _NUMBER), ("date", _DATE), ("time", _TIME)):
            if pattern.fullmatch(text):
                return kind  # type: ignore[return-value]
        return "word"
    if isinstance(label, dt.datetime | dt.date | np.datetime64 | pd.Period):
        return "date"
    if isinstance(label, dt.time | dt.timedelta | np.timedelta64):
        return "time"
    return "number" if isinstance(label, Real | Decimal) and not isinstance(label, bool) else "word"


def _check_words(labels: list[Any], name: str) -> None:
    repeated = next((label for label, count in Counter(labels).items() if count > 1), None)
    if repeated is not None:
        raise InputError(f"columns of {name} must have labels that differ, got {repeated!r} more than once")
    odd = odd_among_numbered(labels) or [label for label in labels if is_identifier(label)]
    if odd:
        raise InputError(
            f"columns of {name} must all be points of the curves, got {odd[0]!r} beside "
            f"{next(label for label in labels if label not in odd)!r}. {_without(odd[0], _series(labels)[0])}"
        )


def _numbers_after_a_prefix(labels: list[Any]) -> FloatArray | None:
    """Numbers of a series such as "t0", "t1", ...; None where labels are none, or R's "V1", "V2", ..."""
    if [str(label) for label in labels] == [f"V{j}" for j in range(1, len(labels) + 1)]:
        return None  # R's count of the columns
    found = [_NUMBERED.fullmatch(str(label).strip()) for label in labels]
    if len(labels) < 3 or not all(found) or len({m[1] for m in found if m}) > 1:
        return None
    return np.array([float(m[2]) for m in found if m])


def _without(label: Any, prefix: str) -> str:
    cure = advice(
        f"If it names the curves, make it their labels, set_index({label!r}); if it is no part of them, leave it out, "
        f"drop(columns={label!r})",
        r="If it names the curves, make it their row names; if it is no part of them, leave the column out",
        shell=f"If it names the curves, make it the first column, and say --id {label}; if it is no part of them, "
        "leave it out",
    )
    return f"{cure}. {_of_series(prefix)}" if prefix else cure


def _seconds(labels: list[Any], kind: Kind, name: str) -> tuple[FloatArray, str]:
    """Seconds since the first date, or since 0, and the rest of the unit's name."""
    try:
        if kind == "time":
            spans = pd.to_timedelta([_clock(label) for label in labels])
            return np.asarray(spans.total_seconds(), dtype=np.float64), ""
        plain = [label.to_timestamp() if isinstance(label, pd.Period) else label for label in labels]
        times = pd.DatetimeIndex(pd.to_datetime(plain, format="ISO8601", utc=True))
    except (TypeError, ValueError, OverflowError) as exc:
        raise InputError(f"columns of {name} must be dates or times, got {labels[0]!r} to {labels[-1]!r}") from exc
    first = times.min()
    midnight = first == first.normalize()
    return np.asarray((times - first).total_seconds(), dtype=np.float64), (
        f" since {first.strftime('%Y-%m-%d' if midnight else '%Y-%m-%d %H:%M:%S')}"
    )


def float_of(entry: Any) -> float:
    """The number that an entry is; "1_0", which Python alone takes for 10, is none, and raises ValueError."""
    if isinstance(entry, str) and "_" in entry:
        raise ValueError(f"{entry!r} is no number")
    try:
        return float(entry)
    except OverflowError:  # of an integer beyond all floats
        return float("inf") if entry > 0 else float("-inf")


def _clock(label: Any) -> Any:
    text = str(label).strip() if isinstance(label, str | dt.time) else label
    return text + ":00" if isinstance(text, str) and text.count(":") == 1 else text


def _axis(columns: pd.Index[Any], points: FloatArray, unit: str | None, name: str) -> Axis:
    if not np.isfinite(points).all():
        odd = plain_label(columns[int(np.argmin(np.isfinite(points)))])
        raise InputError(f"columns of {name} must have finite labels, got {odd}")
    steps = np.diff(points)
    if (steps > 0).all():
        return Axis(points, unit)
    if (steps < 0).all():
        return Axis(points[::-1].copy(), unit, backwards=True)
    values, counts = np.unique(points, return_counts=True)
    if (counts > 1).any():
        label = columns[int(np.argmax(points == values[counts > 1][0]))]
        raise InputError(f"columns of {name} must have labels that differ, got {plain_label(label)} more than once")
    down = (steps > 0).sum() < (steps < 0).sum()
    j = int(np.flatnonzero(steps > 0 if down else steps < 0)[0])
    cure = advice("sort_index(axis=1) sorts them", r="put the columns in order", shell="put the columns in order")
    raise InputError(
        f"columns of {name} must have labels that increase or decrease, got {plain_label(columns[j])} followed by "
        f"{plain_label(columns[j + 1])} at position {j}; {cure}"
    )


def plain_label(label: Any) -> str:
    """A label as messages show it."""
    return repr(label.item() if isinstance(label, np.generic) and label.dtype.kind not in "mM" else label)
