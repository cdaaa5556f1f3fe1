"""One entry of a private table, and what it means: by a public rule for that entry alone.

A reader chooses the type of a column by looking at all its entries: one missing value makes floats of integers, one
``?`` makes text of numbers, one ``unknown`` makes text of truth values. So whatever an entry may have been turned
into because of other people's entries must mean the same: ``1``, ``1.0``, ``True``, ``" 1 "``, ``"1.0"`` and
``"True"`` are one value (``docs/theory/kernel.md#boundary``).
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import math
import re
import uuid
from typing import Any

import numpy as np

Meaning = float | str | tuple[Any, ...] | None
"""A number, a text that is none, a tuple of such, or None: missing, or of a type that no rule knows."""

MISSING = frozenset(
    {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"}
    | {"NULL", "NaN", "NaT", "None", "n/a", "nan", "null"}
)
"""Texts that readers and conversions write for a missing value: those of :func:`pandas.read_csv`, and ``NaT``."""
LARGEST_ID = 2**53
"""Whole numbers from here on are not all floats, so they cannot tell people apart: they name nobody."""

_TRUTH = dict.fromkeys(("True", "TRUE", "true"), 1.0) | dict.fromkeys(("False", "FALSE", "false"), 0.0)
_WHITE = "".join(chr(i) for i in range(0x3001) if chr(i).isspace()) + "\0"
"""White space, and what NumPy fills short text with."""
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?((?:Z|[+-]\d\d:?\d\d)?)")
_PANDAS = ("NAType", "NaTType", "Timestamp", "Period", "Interval")
_DEEPEST = 4


def meaning(entry: Any, depth: int = 0) -> Meaning:
    """What an entry means. Never raises, and runs no code of the entry's own: an unknown type means nothing."""
    kind = type(entry)
    if kind is float:
        return entry if entry == entry else None
    if kind is str:
        return _of_text(entry)
    if kind is int or kind is bool:
        return _of_whole(entry)
    if entry is None:
        return None
    try:
        return _of_other(entry, kind, depth)
    except Exception:
        return None


def number_of(entry: Any) -> float:
    """The number that an entry means; NaN where it means none."""
    value = meaning(entry)
    return value if type(value) is float else math.nan


def person_of(entry: Any) -> int | str | tuple[Any, ...] | None:
    """The person that an id names: a whole number below 2**53, a text that is no number, or a tuple of such."""
    return _person(meaning(entry))


def _person(value: Meaning) -> int | str | tuple[Any, ...] | None:
    if type(value) is float:
        return int(value) if abs(value) < LARGEST_ID and value.is_integer() else None
    if type(value) is tuple:
        parts = tuple(_person(part) for part in value)
        return None if not parts or None in parts else parts
    return value if type(value) is str else None


def _of_whole(entry: int) -> float:
    try:
        return float(entry)
    except OverflowError:  # as the same digits as text are
        return math.inf if entry > 0 else -math.inf


def _of_text(text: str) -> Meaning:
    text = text.strip(_WHITE)
    if "_" not in text:  # which Python alone takes for a part of a number: "1_2" is not 12
        try:
            value = float(text)
        except ValueError:
            pass
        else:
            return value if value == value else None
    if text in MISSING:
        return None
    if text in _TRUTH:
        return _TRUTH[text]
    if (text[0] == "(" and text.endswith("j)")) or text in ("0j", "-0j"):  # as NumPy writes complex numbers
        try:
            return _of_complex(complex(text))
        except ValueError:
            return text
    time = _TIME.fullmatch(text)
    return text if time is None else _instant(*time.groups())


def _instant(day: str, minute: str | None, second: str | None, fraction: str | None, zone: str | None) -> str:
    """One spelling of a date or an instant, whichever type or text it came as."""
    fraction = (fraction or "").rstrip("0")
    clock = f"{minute or '00:00'}:{second or '00'}{'.' if fraction else ''}{fraction}"
    zone = "+00:00" if zone == "Z" else zone or ""
    if zone and ":" not in zone:
        zone = f"{zone[:3]}:{zone[3:]}"
    return day + ("" if clock == "00:00:00" and not zone else f"T{clock}{zone}")


def _of_complex(entry: complex) -> Meaning:
    if entry.imag == 0:
        return entry.real if entry.real == entry.real else None
    return str(entry)


def _of_other(entry: Any, kind: type, depth: int) -> Meaning:
    # The methods of the built-in types themselves: a subclass may have others.
    if isinstance(entry, str):
        return _of_text(str.strip(entry))
    if isinstance(entry, bytes):
        return _of_text(bytes.decode(entry, "utf-8"))
    if isinstance(entry, float):
        return meaning(float.__float__(entry))
    if isinstance(entry, int):
        return _of_whole(int.__add__(entry, 0))
    if isinstance(entry, complex):
        return _of_complex(complex.__add__(entry, 0j))
    if isinstance(entry, tuple | list):
        if depth == _DEEPEST:
            return None
        parts = tuple.__iter__(entry) if isinstance(entry, tuple) else list.__iter__(entry)
        return tuple(meaning(part, depth + 1) for part in parts)
    if kind.__module__ == "numpy" and isinstance(entry, np.generic):
        return _of_numpy(entry)
    if kind is decimal.Decimal or kind is fractions.Fraction:
        try:
            return meaning(float(entry))
        except OverflowError:
            return math.inf if entry > 0 else -math.inf
    if kind is uuid.UUID or kind is datetime.date or kind is datetime.datetime:
        return _of_text(str(entry))
    if kind.__module__.split(".")[0] == "pandas" and kind.__name__ in _PANDAS:
        return _of_text(str(entry))
    return None


def _of_numpy(entry: np.generic) -> Meaning:
    if isinstance(entry, np.datetime64):
        day_or_finer = np.datetime_data(entry.dtype)[0] not in ("Y", "M", "W")
        return _of_text(str(entry if day_or_finer else entry.astype("datetime64[D]")))
    if entry.dtype.kind == "c":
        return _of_complex(complex(entry))
    if entry.dtype.kind in "biuf":
        with np.errstate(all="ignore"):
            return meaning(float(entry.astype(np.float64)))
    return None
