"""The one way of private tables into the kernel: entry by entry to float64, and to the person of each row.

A public rule (:func:`meaning`) says what an entry means, for that entry and what the caller declares alone. What is
public of a table, its shape, is looked at when it is handed over; its entries are read by the kernel, after the budget
was spent. See ``docs/theory/kernel.md#boundary``.

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
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError, PrivacyError

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


Index = dict[Any, float]

RAGGED = "got a list: its rows may be of any length, and are not looked at to find it"
"""Why a list is no table whose width nobody declared."""


@dataclass(frozen=True)
class Table:
    """A private table (n, ...): its shape is public, its rows are the kernel's to read.

    Attributes
    ----------
    rows : sliceable
        Slices of it along the first axis go to :attr:`convert`, nothing else.
    shape : tuple of int
    convert : callable
        From a slice of `rows` to float64 of shape (m, *shape[1:]): what is no number, or no declared label, is NaN.
    in_memory : bool
        Whether the kernel may convert it once and keep the result.
    source : object
        The caller's own object, by which a budget knows the data again.
    """

    rows: Any = field(repr=False)
    shape: tuple[int, ...]
    convert: Callable[[Any], FloatArray] = field(repr=False)
    in_memory: bool
    source: Any = field(repr=False)

    def __len__(self) -> int:
        return self.shape[0]

    def read(self) -> FloatArray:
        """All of it, as float64."""
        return self.convert(self.rows[:])

    def turned(self) -> Table:
        """Columns in the opposite order."""
        convert = self.convert  # and not the rows
        return replace(self, convert=lambda values: np.ascontiguousarray(convert(values)[:, ::-1]))


# ------------------------------------------------------------------ from a slice to float64


def numbers(values: Any) -> FloatArray:
    """Numbers of a slice, of the same shape. A float64 array is returned as it is.

    Parameters
    ----------
    values : array, masked array, data frame, or anything that :func:`numpy.asanyarray` takes
    """
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    if _is_frame(values):
        parts = [numbers(values.iloc[:, j]) for j in range(values.shape[1])]
        return np.stack(parts, axis=1) if parts else np.empty((len(values), 0))
    array, mask = _array_and_mask(values)
    with np.errstate(all="ignore"):
        if array.dtype.kind in "biuf":
            out = array.astype(np.float64, copy=False)
        elif array.dtype.kind == "c":  # because of one entry, perhaps: the real ones stay what they are
            out = np.where(array.imag == 0, array.real, np.nan).astype(np.float64, copy=False)
        else:
            out = np.fromiter(map(number_of, _flat(array)), np.float64, array.size).reshape(array.shape)
    return out if mask is None else np.where(mask, np.nan, out)


def codes_of(values: Any, index: Index) -> FloatArray:
    """Codes (m,) of a slice of labels: of each what `index` has for its meaning, else NaN."""
    array, mask = _array_and_mask(values)
    if array.dtype.kind in "biuf" and mask is None:  # each number that is there once
        seen, at = np.unique(array, return_inverse=True)
        return np.array([index.get(meaning(entry), math.nan) for entry in seen.tolist()], dtype=np.float64)[at]
    found = dict[Any, float]()  # of texts seen in this slice
    out = np.full(len(values), np.nan)
    for i, entry in enumerate(entries(values)):
        if type(entry) is str:
            code = found.get(entry)
            if code is None:
                code = found[entry] = index.get(meaning(entry), math.nan)
            out[i] = code
        else:
            out[i] = index.get(meaning(entry), math.nan)
    return out


def entries(values: Any) -> Sequence[Any]:
    """Entries of a one-dimensional slice as Python objects, masked ones as None."""
    array, mask = _array_and_mask(values)
    out = _flat(array)
    return out if mask is None else [None if hidden else entry for entry, hidden in zip(out, mask, strict=True)]


def _array_and_mask(values: Any) -> tuple[Any, Any]:
    if hasattr(values, "iloc"):  # a series: its own missing values are not numbers or text yet
        numeric = getattr(values.dtype, "kind", "O") in "iufb" and not isinstance(values.dtype, np.dtype)
        values = values.to_numpy(dtype=np.float64, na_value=np.nan) if numeric else _of_series(values)
    elif hasattr(values, "dims"):  # xarray's
        values = values.values
    elif hasattr(values, "to_numpy"):  # a series of another library
        values = _converted(values)
    if isinstance(values, list | tuple):
        values = _as_objects(values)
    array = np.asanyarray(values)
    if isinstance(array, np.ma.MaskedArray):
        mask = None if array.mask is np.ma.nomask else np.ma.getmaskarray(array)
        return np.ma.getdata(array), mask
    return np.asarray(array), None


def _of_series(values: Any) -> Any:
    """Entries of a series of pandas, which may hold Arrow's text."""
    try:
        return values.to_numpy()
    except Exception:  # pandas names its own for text that cannot be decoded
        if not hasattr(values.array, "__arrow_array__"):
            raise
        return _by_entry(values.array.__arrow_array__())


def _converted(data: Any) -> Any:
    """What another library holds as an array; as a list where it is of a type that NumPy has not.

    One entry may have made a reader choose that type, as a whole number beyond 64 bits does in polars.
    """
    try:
        if str(getattr(data, "dtype", "")) == "String":  # of polars, which panics at text that cannot be decoded
            return _by_entry(data)
        return data.to_numpy()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # panics of polars are no Exception
        pass
    if hasattr(data, "get_columns"):  # of polars, too
        columns = [_converted(column) for column in data.get_columns()]
        out = np.empty(data.shape, dtype=object)
        for j, column in enumerate(columns):
            out[:, j] = _as_objects(column.tolist() if isinstance(column, np.ndarray) else column)
        return out
    try:
        of_rows = next(getattr(data, way) for way in ("rows", "to_list", "to_pylist") if hasattr(data, way))
        return list(of_rows())
    except UnicodeDecodeError:
        return _by_entry(data)


def _by_entry(data: Any) -> list[Any]:
    """Entries of a column of Arrow's memory: text that cannot be decoded is missing, and that entry alone."""
    arrow = data if hasattr(data, "to_pylist") else data.to_arrow()
    try:
        return list(arrow.to_pylist())
    except UnicodeDecodeError:
        return [_decoded(scalar) for scalar in arrow]


def _decoded(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return None


def _flat(array: Any) -> list[Any]:
    """Entries one after the other; what would lose its meaning as a Python object keeps its type."""
    if array.dtype.kind in "Mm" or array.dtype.char in "gG":
        return list(array.ravel())
    flat: list[Any] = array.ravel().tolist()
    return flat


def _as_objects(values: Sequence[Any]) -> Any:
    """One entry after the other in one dimension, never a common type for all of them."""
    out = np.empty(len(values), dtype=object)
    for i, entry in enumerate(values):
        out[i] = entry
    return out


# ------------------------------------------------------------------ what is public of a table


def table(data: Any, name: str = "data", width: int | None = None) -> Table:
    """Take a table of numbers as it is; only its shape is looked at.

    Parameters
    ----------
    data : array, data frame, series, or anything with ``shape`` and slices (memory maps, Dask, HDF5, xarray), or a list
        A list is one column, whatever its entries are; with `width` it is a table, of which a row of another length is
        NaN.
    name : str
        For error texts.
    width : int, optional
        Entries of a row of a list. It is declared, as by a grid: no row decides what a list is, or how wide.

    Raises
    ------
    InputError
        Sparse, of unknown shape, or a query.
    """
    if hasattr(data, "tocsr"):
        raise InputError(f"{name} must be a dense table: sparse input is not supported, use {name}.toarray()")
    if hasattr(data, "fetchnumpy"):
        raise InputError(f"{name} must be a table, got a query of DuckDB: use {name}.df()")
    if isinstance(data, Table):
        return data
    if _is_arrow(data):  # column by column, each of its own type
        return replace(table(_frame_of(data), name), source=data)
    if hasattr(data, "iloc"):
        if not isinstance(data.shape[0], int):
            raise InputError(f"{name} must have a known number of rows: use .compute() of a dask frame")
        kinds = set(data.dtypes) if _is_frame(data) else {data.dtype}
        if len(kinds) > 1 or not all(isinstance(kind, np.dtype) for kind in kinds):
            return Table(data.iloc, tuple(data.shape), numbers, True, data)
        data = data.to_numpy()  # no copy, so that a budget knows it again
    if not hasattr(data, "dtype") and hasattr(data, "to_numpy"):  # of other libraries: their columns are public
        columns = tuple(getattr(data, "shape", ()))[1:]
        width = columns[0] if columns else width
        data = _converted(data)
    if width is not None and isinstance(data, np.ndarray) and data.dtype == object and data.ndim == 1:
        data = entries(data)
    if isinstance(data, list | tuple):
        return _of_list(data, width)
    if not hasattr(data, "shape") and hasattr(data, "__array__") and not hasattr(data, "dims"):
        if not getattr(getattr(data, "source", None), "ordered", True):  # of a query that was opened
            raise InputError(f"{name} must keep the order of its rows, got {data!r}: read the table first, by .read()")
        data = np.asanyarray(data)
    shape = getattr(data, "shape", None)
    if not isinstance(shape, tuple) or not shape:
        raise InputError(f"{name} must be a table, rows along the first axis, got {type(data).__name__}")
    if not all(isinstance(k, (int, np.integer)) for k in shape):
        raise InputError(f"{name} must have a known number of rows: use .compute_chunk_sizes() of a dask array")
    held = isinstance(data, np.ndarray) and not isinstance(data, np.memmap)
    return Table(data, tuple(int(k) for k in shape), numbers, held, data)


def column_names(data: Any) -> list[Any]:
    """Public names of the columns of a table, of pandas, polars, Arrow and their like; none of what has no names.

    Arrow's ``columns`` are no names, but what is in them.
    """
    return list(data.column_names if _is_arrow(data) else getattr(data, "columns", ()))


def _is_arrow(data: Any) -> bool:
    return not hasattr(data, "iloc") and hasattr(data, "to_pandas") and hasattr(data, "column_names")


def _frame_of(data: Any) -> Any:
    """The columns of an Arrow table as a data frame, in the memory that they have."""
    import pandas as pd

    return data.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)


def _is_frame(data: Any) -> bool:
    return hasattr(data, "iloc") and hasattr(data, "columns")


def _is_row(entry: Any) -> bool:
    return isinstance(entry, list | tuple) or (isinstance(entry, np.ndarray) and entry.ndim == 1)


def _of_list(data: Sequence[Any], width: int | None) -> Table:
    if width is None:
        held = _as_objects(data)
        return Table(held, held.shape, numbers, True, data)
    held = np.full((len(data), width), None, dtype=object)
    for i, row in enumerate(data):
        if _is_row(row) and len(row) == width:
            held[i] = _as_objects(_flat(row) if isinstance(row, np.ndarray) else row)
    return Table(held, held.shape, numbers, True, data)


def index_of(categories: Sequence[Hashable]) -> Index:
    """Code of the meaning of each public label.

    Raises
    ------
    PrivacyError
        Two labels mean the same (1, "1" and True do), or one means a missing value.
    """
    listed = list(categories)
    found = {meaning(label): float(code) for code, label in enumerate(listed)}
    if len(found) != len(listed) or None in found:
        raise PrivacyError(
            'classes or categories must be distinct values, none of them missing (1, "1" and True are one value; "NA" '
            f"and None are missing), got {listed!r}"
        )
    return found


def labels(data: Any, categories: Sequence[Hashable], name: str = "y") -> Table:
    """Take a column of labels: row by row the index of the label in a public list, NaN for any other.

    Parameters
    ----------
    data : as :func:`table` takes it, of shape (n,) or (n, 1)
    categories : sequence
        Public and distinct in meaning: numbers match numbers of equal value, also where they are text.
    name : str

    Raises
    ------
    PrivacyError
        The categories are not distinct, or the labels not one-dimensional.

    Examples
    --------
    >>> labels(["b", "a", "c", 1.0, "1"], ["a", "b", 1]).read()
    array([ 1.,  0., nan,  2.,  2.])
    """
    index = index_of(categories)
    column = table(data, name)
    if column.shape[1:] not in ((), (1,)):
        raise PrivacyError(f"labels must be one-dimensional, one a row, got {len(column.shape)} dimensions")
    deep = len(column.shape) == 2

    def convert(values: Any) -> FloatArray:
        if deep:
            values = values.iloc[:, 0] if _is_frame(values) else values[:, 0]
        return codes_of(values, index)

    return Table(column.rows, column.shape[:1], convert, column.in_memory, column.source)


def columns(
    data: Any, categories: Sequence[Sequence[Hashable] | None], at: Sequence[int] | None = None, name: str = "X"
) -> Table:
    """Take a table with columns of numbers and of labels: labels as :func:`labels` gives them.

    Parameters
    ----------
    data : as :func:`table` takes it, of shape (n, p)
    categories : sequence of (sequence or None)
        For each column that is wanted the public labels, or None for a column of numbers.
    at : sequence of int, optional
        Which columns are wanted; default: the first ones.
    name : str

    Examples
    --------
    >>> columns([["a", 2.5], ["c", "?"]], [["a", "b"], None]).read()
    array([[0. , 2.5],
           [nan, nan]])
    """
    whole = table(data, name, len(categories) if at is None else None)
    places = list(range(len(categories))) if at is None else list(at)
    wanted = [
        (place, None if named is None else index_of(named)) for place, named in zip(places, categories, strict=True)
    ]

    def convert(values: Any) -> FloatArray:
        frame, array = _is_frame(values), None
        if not frame:
            array = values if isinstance(values, np.ndarray) else np.asanyarray(values)
        parts = []
        for place, index in wanted:
            part = values.iloc[:, place] if array is None else array[:, place]
            parts.append(numbers(part) if index is None else codes_of(part, index))
        return np.stack(parts, axis=1)

    return Table(whole.rows, (whole.shape[0], len(places)), convert, whole.in_memory, whole.source)


NOBODY = -1
NO_NUMBER = int(np.iinfo(np.int64).min)


def check_ids(ids: Any, n: int | None = None, name: str = "groups") -> Any:
    """Refuse ids that are not one for each row, by their shape alone; return them.

    Parameters
    ----------
    ids : array of shape (n,), series, or sequence; an id of several parts is a tuple
    n : int, optional
        Rows that there are.
    name : str
        The argument's name in error messages.

    Raises
    ------
    PrivacyError
        Of more dimensions, or of another length. The text tells no length: it may be private.
    """
    shape = getattr(ids, "shape", None)
    if shape is None:
        if not hasattr(ids, "__len__") or isinstance(ids, str | bytes | dict):
            raise PrivacyError(f"{name} must be a sequence of ids, one for each row, got {type(ids).__name__}")
        shape = (len(ids),)
    if len(shape) != 1:
        raise PrivacyError(
            f"{name} must be one id for each row, in one dimension, got {len(shape)} dimensions: an id of several "
            "parts is a tuple, as in list(zip(household, member))"
        )
    if n is not None and shape[0] != n:
        raise PrivacyError(f"{name} must have one id for each row of data, got another length")
    return ids


class Persons:
    """Who there is, and how many rows each has; numbers are given once, to all ids of a first pass over the data.

    Whole numbers are kept as such, whatever type they came as, and all other ids as text or tuples
    (:func:`~fdadp.privacy.private_entries.person_of`).
    """

    def __init__(self) -> None:
        self._found: list[IntArray] = []
        self._others: dict[Any, int] = {}
        self._counts: list[int] = []
        self._numbers: IntArray = np.empty(0, dtype=np.int64)
        self.row_counts: IntArray = np.empty(0, dtype=np.int64)
        """Rows of each person, once :meth:`close` was called."""

    def add(self, ids: Any) -> None:
        """Take note of the ids of some rows."""
        whole, others = persons_of(ids)
        self._found.append(whole[whole != NO_NUMBER])
        for key in others.values():
            code = self._others.setdefault(key, len(self._others))
            if code == len(self._counts):
                self._counts.append(0)
            self._counts[code] += 1

    def close(self) -> Persons:
        """All ids have been seen: number the persons; return self."""
        found = np.concatenate([*self._found, np.empty(0, dtype=np.int64)])
        self._numbers, counts = np.unique(found, return_counts=True)
        self._found = []
        self.row_counts = np.concatenate([counts, np.array(self._counts, dtype=np.int64)]).astype(np.int64)
        return self

    def codes(self, ids: Any) -> IntArray:
        """Person of each row, (m,): an index of :attr:`row_counts`, or NOBODY for an id that was never added."""
        whole, others = persons_of(ids)
        place = np.searchsorted(self._numbers, whole).clip(max=max(len(self._numbers) - 1, 0))
        known = self._numbers[place] == whole if len(self._numbers) else np.zeros(len(whole), dtype=bool)
        codes: IntArray = np.where(known, place, NOBODY).astype(np.int64)
        for row, key in others.items():
            code = self._others.get(key, NOBODY)
            codes[row] = NOBODY if code == NOBODY else len(self._numbers) + code
        return codes


def persons_of(ids: Any) -> tuple[IntArray, dict[int, Any]]:
    """Ids that are whole numbers (m,), NO_NUMBER where one is not, and the other ids by row; of nobody neither."""
    labels = hasattr(ids, "iloc") or hasattr(ids, "nlevels")  # a series, an index
    array = ids.to_numpy() if labels else ids
    if type(array) is np.ndarray and array.dtype.kind in "biuf" and array.dtype.char != "g":
        with np.errstate(all="ignore"):
            fits = (array < LARGEST_ID) & (array > -LARGEST_ID)
            if array.dtype.kind == "f":
                fits &= np.floor(array) == array
        return np.where(fits, np.where(fits, array, 0).astype(np.int64), NO_NUMBER), {}
    listed = entries(ids)
    whole: IntArray = np.full(len(listed), NO_NUMBER, dtype=np.int64)
    others: dict[int, Any] = {}
    known: dict[str, Any] = {}
    for row, entry in enumerate(listed):
        if type(entry) is str:
            if entry not in known:
                known[entry] = person_of(entry)
            person = known[entry]
        else:
            person = person_of(entry)
        if type(person) is int:
            whole[row] = person
        elif person is not None:
            others[row] = person
    return whole, others
