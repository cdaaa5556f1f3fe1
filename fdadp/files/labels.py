"""Column labels as JSON: numbers, texts and dates come back as the pandas index that they were."""

from __future__ import annotations

import datetime
from typing import Any, cast

import numpy as np
import pandas as pd

from fdadp.errors import InputError


def labels_to_json(labels: pd.Index[Any] | None, name: str) -> dict[str, Any] | None:
    """Make JSON of column labels.

    Parameters
    ----------
    labels : pandas.Index or None
    name : str
        Whose columns these are, for the error.

    Raises
    ------
    InputError
        Labels other than numbers, texts, dates, times and tuples (a MultiIndex) of these.

    Examples
    --------
    >>> stored = labels_to_json(pd.Index(["08:00", "09:00"], name="hour"), "Y")
    >>> labels_from_json(stored)
    Index(['08:00', '09:00'], dtype=..., name='hour')
    """
    if labels is None:
        return None
    if isinstance(labels, pd.MultiIndex):
        levels = [labels_to_json(labels.get_level_values(i), name) for i in range(labels.nlevels)]
        return {"kind": "levels", "values": levels}
    found: dict[str, Any] = {"name": _entry(labels.name, name)}
    if isinstance(labels, pd.DatetimeIndex | pd.TimedeltaIndex | pd.PeriodIndex):
        return found | {"kind": str(labels.dtype), "values": labels.asi8.tolist()}
    if isinstance(labels.dtype, np.dtype) and labels.dtype.kind in "iuf":
        return found | {"kind": str(labels.dtype), "values": labels.tolist()}
    return found | {"kind": "entries", "values": [_entry(label, name) for label in labels.tolist()]}


def labels_from_json(stored: dict[str, Any] | None) -> pd.Index[Any] | None:
    """Read what :func:`labels_to_json` made."""
    if stored is None:
        return None
    kind, values = stored["kind"], stored["values"]
    if kind == "levels":
        levels: list[Any] = [labels_from_json(level) for level in values]
        return pd.MultiIndex.from_arrays(levels)
    name = _label(stored["name"])
    labels: Any
    dtype: Any = None if kind == "entries" else pd.api.types.pandas_dtype(kind)
    if dtype is None:
        labels = pd.Index([_label(value) for value in values], tupleize_cols=False)
    elif isinstance(dtype, pd.PeriodDtype):
        freq: Any = dtype.freq
        labels = pd.PeriodIndex([pd.Period(ordinal=value, freq=freq) for value in values], dtype=dtype)
    elif isinstance(dtype, pd.DatetimeTZDtype):
        utc = pd.DatetimeIndex(np.array(values, dtype=f"datetime64[{dtype.unit}]"))
        labels = utc.tz_localize("UTC").tz_convert(dtype.tz)
    else:
        labels = pd.Index(np.array(values, dtype=dtype))
    return cast("pd.Index[Any]", labels.rename(name))


def _entry(label: Any, name: str) -> Any:
    """One label: as it is where JSON has its type, else a pair of type and text."""
    label = label.item() if isinstance(label, np.generic) else label
    if label is None or isinstance(label, bool | int | float | str):
        return label
    if isinstance(label, datetime.datetime | datetime.date | datetime.time) and label is not pd.NaT:
        kind = next(k for k in (datetime.datetime, datetime.date, datetime.time) if isinstance(label, k))
        return [kind.__name__, label.isoformat()]
    if isinstance(label, tuple):
        return ["tuple", [_entry(part, name) for part in label]]
    raise InputError(
        f"columns of {name} must have numbers, texts or dates as labels, which a file can hold, "
        f"got {type(label).__name__}"
    )


def _label(entry: Any) -> Any:
    if not isinstance(entry, list):
        return entry
    kind, value = entry
    if kind == "tuple":
        return tuple(_label(part) for part in value)
    return getattr(datetime, {"datetime": "datetime", "date": "date", "time": "time"}[kind]).fromisoformat(value)
