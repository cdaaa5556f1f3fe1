"""Curves in CSV text: which row and column are labels, and what is a number, as ``curve_files`` says."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import math
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import chain, compress, islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from fdadp._common.calling_language import advice, argument
from fdadp._common.loaded_later import pd
from fdadp._common.typing import FloatArray
from fdadp.errors import FileFormatError, InputError
from fdadp.files.regular_files import check_file
from fdadp.functional.tables import curve_sample
from fdadp.functional.tables import grid_from_labels as axes

# CSV files of private rows: a line is a row, read by itself, and only the first line, the labels, is public.
#
# One odd line changes no other row: a line of another number of fields than the first one is a row of missing entries,
# a field in quotes ends with its line, and entries stay the text that they are.


ROWS = 8192
"""Rows of a block."""

SEPARATORS = (",", ";", "\t")
_WITH_COMMA = re.compile(r"\s*[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?\s*")
_LETTERS_AND_COMMA = re.compile(r"^([^\W\d]+-?\d+),(\d+)$")

Texts = npt.NDArray[np.object_]


@dataclass(frozen=True)
class CsvLines:
    """A CSV file whose first line was read.

    Attributes
    ----------
    path : Path
    names : tuple of str
        Labels of its columns.
    id : str, optional
        Name of the column that labels rows, where it is known.
    sep, decimal : str
        Between fields, and before the decimals of a number.
    prefix : str, optional
        Of the names of the columns that hold curves, where others stand beside them.
    head : int
        Lines that hold the labels of columns.
    """

    path: Path
    names: tuple[str, ...]
    id: str | None = None
    sep: str = ","
    decimal: str = "."
    prefix: str | None = None
    head: int = 1

    @classmethod
    def of(
        cls, path: str | os.PathLike[str], sep: str = ",", decimal: str = ".", prefix: str | None = None
    ) -> CsvLines:
        """Read the first line of a file.

        Raises
        ------
        FileFormatError
            Another suffix than .csv or .csv.gz, no first line, semicolons without ``sep=";"``, or UTF-16.
        FileNotFoundError
            No such file.
        """
        source = Path(path)
        if not source.name.lower().endswith((".csv", ".csv.gz")):
            raise FileFormatError(f"{source} must end in .csv or .csv.gz to be read line by line, in a private fit")
        check_file(source)
        check_dialect(sep, decimal)
        refuse_utf16(source)
        with _text(source) as lines:
            first = next(lines, "")
            names, head = _labels(first, lines, sep)
        refuse_semicolons(source, first, sep)
        if not any(names):
            raise FileFormatError(f"{source} must start with a line of column labels")
        labels = tuple(_label(name, decimal) for name in names)
        return cls(source, labels, sep=sep, decimal=decimal, prefix=prefix, head=head)

    @property
    def labelled(self) -> bool:
        """Whether the first column holds labels of curves, by the labels of columns alone."""
        first, *others = self.names
        return first == self.id or axes.labels_rows(first, others if self.prefix is None else ())

    def grid(self) -> tuple[FloatArray, list[int]]:
        """Points of curves, and the columns that hold them; raises InputError for labels that are half a grid."""
        if self.prefix is None:
            at = list(range(int(self.labelled), len(self.names)))
            names = pd.Index([self.names[i] for i in at])
        else:
            at = [i for i, name in enumerate(self.names) if name.startswith(self.prefix) and name != self.prefix]
            if len(at) < 2:
                raise InputError(
                    f"{self.path} must have two columns or more that start with {self.prefix!r}, got {len(at)}"
                )
            names = axes.points_after([self.names[i] for i in at], self.prefix)
        axis = axes.axis_of(names, str(self.path))
        if axis is None:
            return np.linspace(0, 1, len(at)), at
        return axis.points, at[::-1] if axis.backwards else at

    def blocks(self) -> Iterator[Texts | RegularLines]:
        """Rows below the first line, in blocks of shape (m, columns); None in lines of another length.

        Entries are text. Of a regular line they are floats but for the first: what the same text means as a number.
        """
        width = len(self.names)
        lines = _lines(self.path)
        for _ in range(self.head):
            next(lines, b"")
        while block := list(islice(lines, ROWS)):
            known, regular = self._regular(block)
            if known is not None and all(regular):
                yield known
                continue
            rows = np.full((len(block), width), None, dtype=object)
            if known is not None:
                rows[regular, 0], rows[regular, 1:] = known.first, known.numbers
            for i, line in enumerate(block):
                fields = [] if regular[i] else _fields(line.decode("utf-8", "replace"), self.sep)
                if len(fields) == width:
                    rows[i] = [with_point(f, self.decimal) for f in fields]
            yield rows

    def _regular(self, block: list[bytes]) -> tuple[RegularLines | None, list[bool]]:
        """Regular lines, read together, and which they are; the others are to be read one by one."""
        sep, width = self.sep.encode(), len(self.names)
        none = (None, [False] * len(block))
        if width < ENOUGH or self.decimal != ".":
            return none
        labels, most = _first_fields(block, sep), csv.field_size_limit()
        text = b"\n".join(block)
        regular = _are_regular(labels, text, sep * (width - 1))
        if max(map(len, block)) > most:  # a field beyond it is refused where lines are read one by one
            regular = [r and max(map(len, line.split(sep))) <= most for r, line in zip(regular, block, strict=True)]
        if not all(regular):
            text = b"\n".join(compress(block, regular))
        numbers = _numbers_of(text, range(1, width), self.sep) if any(regular) else None
        if numbers is None:
            return none
        first = np.array([label.decode("utf-8", "replace") for label in compress(labels, regular)], dtype=object)
        return RegularLines(first, numbers), regular


@dataclass(frozen=True)
class RegularLines:
    """Lines that were all regular, with the columns of an array of objects.

    Attributes
    ----------
    first : ndarray of shape (m,)
        First fields, as text.
    numbers : ndarray of shape (m, columns - 1)
    """

    first: Texts
    numbers: FloatArray

    def __getitem__(self, at: tuple[slice, int | list[int]]) -> Any:
        """A column, or several, of some rows."""
        rows, columns = at
        if columns == 0:
            return self.first[rows]
        if isinstance(columns, list) and 0 in columns:
            return np.stack([self[rows, column].astype(object) for column in columns], axis=1)
        return self.numbers[rows, np.subtract(columns, 1)]


def _lines(path: Path) -> Iterator[bytes]:
    """Lines without their ends, which are those of any system."""
    opener: Any = gzip.open if path.name.lower().endswith(".gz") else open
    with opener(path, "rb") as stream:
        for line in stream:
            if b"\r" in line:
                yield from line.splitlines()
            else:
                yield line.removesuffix(b"\n")


@contextmanager
def _text(path: Path) -> Iterator[TextIO]:
    opener: Any = gzip.open if path.name.lower().endswith(".gz") else open
    with no_csv(path), opener(path, "rt", encoding="utf-8-sig", errors="replace") as stream:
        yield stream


@contextmanager
def no_csv(path: Path) -> Iterator[None]:
    """Turn errors of reading a text file in CSV format into one; raises FileFormatError."""
    try:
        yield
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as exc:
        raise FileFormatError(f"{path} must be a text file in CSV format, got {type(exc).__name__}: {exc}") from exc


def check_dialect(sep: Any, decimal: Any) -> None:
    """Refuse other separators and decimal marks than there are; raises InputError."""
    if sep not in SEPARATORS or decimal not in (".", ",") or sep == decimal:
        raise InputError(
            f'sep must be ",", ";" or a tab, and decimal "." or "," and not the same, got {sep!r} and {decimal!r}'
        )


def with_point(field: str, decimal: str) -> str:
    """A field as it is, but a number with a comma before its decimals with a point instead."""
    return field.replace(",", ".") if decimal == "," and _WITH_COMMA.fullmatch(field) else field


def _label(name: str, decimal: str) -> str:
    """A label of a column; of a number, or letters and a number, with a point: "h0,5" is "h0.5", "Dose 0,5" stays."""
    name = with_point(name.strip(), decimal)
    return _LETTERS_AND_COMMA.sub(r"\1.\2", name) if decimal == "," else name


def refuse_semicolons(path: Path, first: str, sep: str) -> None:
    """Refuse a first line that has semicolons, or tabs, and no comma; raises FileFormatError, which names the cure."""
    found = next((mark for mark in (";", "\t") if mark in first), None)
    if sep == "," and found is not None and "," not in first:
        what, shell = ("semicolons", "--sep ';'") if found == ";" else ("tabs", "--sep tab")
        cure = advice(f"sep={found!r}", r=f"sep = {found!r}", shell=shell)
        raise FileFormatError(
            f"{path} must have commas between its fields, got {what}. Say {cure}. "
            f"Where numbers have decimal commas, add {argument('decimal', ',')} (docs/your-csv.md)"
        )


def refuse_utf16(path: Path) -> None:
    """Refuse a file that starts as UTF-16 does; raises FileFormatError."""
    opener: Any = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opener(path, "rb") as stream:
            start = stream.read(2)
    except (OSError, EOFError, zlib.error):  # the reader says what
        return
    if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        raise FileFormatError(f"{path} must be text in UTF-8, got UTF-16: save it as 'CSV UTF-8'")


def _fields(line: str, sep: str) -> list[str]:
    """Fields of one line, none where it cannot be read as such."""
    try:
        return next(csv.reader([line.rstrip("\n")], delimiter=sep), [""])
    except csv.Error:
        return []


def _labels(first: str, others: Iterable[str], sep: str) -> tuple[list[str], int]:
    """Fields of the first line, and how many lines they take: a label in quotes may have line breaks."""
    reader = csv.reader(chain([first], others), delimiter=sep, strict=True)
    try:
        return next(reader, []), reader.line_num
    except csv.Error:
        return _fields(first, sep), 1


@cache
def exact() -> dict[str, Any]:
    """Make numbers of CSV text the nearest floats: by request before pandas 3.1, by default from then on."""
    always = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
    return {} if always else {"float_precision": "round_trip"}


def read_table(path: Path, sep: str, decimal: str) -> pd.DataFrame:
    """All columns of a CSV file, as pandas reads them; raises FileFormatError for rows longer than the first one."""
    names: list[str] = []
    with _text(path) as stream, suppress(csv.Error):
        rows = _rows(stream, sep, ".")
        _, names = next(rows, (0, []))
        line, first = next(rows, (0, []))
        if len(first) > len(names):  # pandas would take what stands first for labels, and give its name to the next
            raise _uneven(path, len(names), len(first), line)
    with no_csv(path):
        frame: pd.DataFrame = pd.read_csv(path, encoding="utf-8-sig", sep=sep, decimal=decimal, **exact())
    own = [_label(name, decimal) for name in names]  # pandas makes one where there is none
    if len(set(own)) == frame.shape[1]:
        frame.columns = pd.Index(own)
    return frame


# A line is regular that has nothing but a number, or nothing, in each field beyond the first, and in that one neither a
# quote nor a NUL. Many such lines are read at once. Other lines are read one by one.

PART = 2**21
"""Bytes of regular lines that are looked at together, or little more."""
ENOUGH = 7
"""Columns of a file from which on regular lines are looked for."""
_OF_NUMBERS = b"0123456789+-.eE"


def _first_fields(lines: list[bytes], sep: bytes) -> list[bytes]:
    return [line.partition(sep)[0] for line in lines]


def _are_regular(labels: list[bytes], text: bytes, between: bytes) -> list[bool]:
    """Which lines are regular; `between`: all separators of a line."""
    rest, own = text.translate(None, _OF_NUMBERS), b"\n".join(labels).translate(None, _OF_NUMBERS)
    wanted = own.replace(b"\n", between + b"\n") + between
    if rest == wanted and b'"' not in rest and b"\0" not in rest:
        return [True] * len(labels)
    lines = zip(rest.split(b"\n"), wanted.split(b"\n"), strict=True)
    return [r == w and b'"' not in r and b"\0" not in r for r, w in lines]


def _numbers_of(lines: bytes, columns: range, sep: str, skipped: int = 0) -> FloatArray | None:
    """The floats nearest to the fields of regular lines, NaN where there is nothing; None where one is no number."""
    how: dict[str, Any] = {"sep": sep, "usecols": columns, "quoting": csv.QUOTE_NONE, **exact()}
    how |= {"header": None, "skiprows": skipped}
    try:
        read = pd.read_csv(io.BytesIO(lines), dtype=np.float64, **how)  # else a zero among whole ones has no sign
    except (ValueError, OverflowError):
        return None
    return np.ascontiguousarray(read)


MISSING = {"", "na", "nan", "n/a", "null"}


def from_csv(
    path: Path, text: bytes, header: bool, long: tuple[str, str, str] | None, sep: str = ",", decimal: str = "."
) -> pd.DataFrame:
    """One curve a row, from CSV text; raises FileFormatError, which names the line."""
    if header and long is None and decimal == "." and (frame := _of_regular_lines(path, text, sep)) is not None:
        return one_curve_a_row(path, frame)
    rows = _rows(io.StringIO(text.decode("utf-8-sig"), newline=""), sep, decimal)
    line, first = next(rows, (0, []))
    refuse_semicolons(path, ",".join(first) if len(first) > 1 else "".join(first), sep)
    if not line:
        raise FileFormatError(f"{path} must hold curves, got an empty file")
    names = [_label(name, decimal) for name in first] if header else [""] * len(first)
    fields: list[list[str]] = []
    lines: list[int] = []
    for number, row in rows if header else chain([(line, first)], rows):
        if len(row) != len(first):
            raise _uneven(path, len(first), len(row), number)
        fields.append(row)
        lines.append(number)
    if not fields:
        raise FileFormatError(f"{path} must hold curves, got a header row and nothing below it")
    if long is not None:
        refuse_twice(names, long, path)
        columns = [list(column) for column in zip(*fields, strict=True)]
        return curves_of_long(dict(zip(names, columns, strict=True)), long, path)
    if len(first) <= curve_sample.MOST_COLUMNS and curve_sample.is_long(
        [_as_numbers(column) for column in zip(*fields, strict=True)]
    ):
        raise FileFormatError(f"{path} must have one curve a row; {curve_sample.long_hint()}")
    labelled = _has_labels(names, [row[0] for row in fields], header)
    start = int(labelled)
    if len(first) == start:
        raise FileFormatError(f"{path} must have at least one column of numbers, got labels only")
    read = [_numbers(path, row[start:], at, names[start:], start) for row, at in zip(fields, lines, strict=True)]
    index = pd.Index([row[0].strip() for row in fields]) if labelled else None
    frame = pd.DataFrame(np.stack(read), index=index, columns=column_labels(path, names[start:]) if header else None)
    return one_curve_a_row(path, frame)


def _of_regular_lines(path: Path, text: bytes, sep: str) -> pd.DataFrame | None:
    """Curves of regular lines; None where any line is another."""
    text = text.removeprefix(codecs.BOM_UTF8)
    if b"\r" in text and b"\r" in (text := text.replace(b"\r\n", b"\n")):
        return None
    first = text.partition(b"\n")[0]
    names = [name.strip() for name in first.decode().split(sep)]
    if b'"' in first or len(names) < ENOUGH:
        return None
    starts: list[bytes] = []
    for part in _parts_below(text, len(first) + 1):
        own = _first_fields(part.split(b"\n"), sep.encode())
        if not all(_are_regular(own, part, sep.encode() * (len(names) - 1))):
            return None
        starts += own
    try:
        labels = [start.decode() for start in starts]
    except UnicodeDecodeError:  # the text as a whole says where
        return None
    if not labels:
        return None
    labelled = _has_labels(names, labels, True)
    if not labelled and b"".join(starts).translate(None, _OF_NUMBERS):
        return None
    numbers = _numbers_of(text, range(labelled, len(names)), sep, skipped=1)
    if numbers is None:
        return None
    index = pd.Index([label.strip() for label in labels]) if labelled else None
    return pd.DataFrame(numbers, index=index, columns=column_labels(path, names[labelled:]))


def _parts_below(text: bytes, start: int) -> Iterator[bytes]:
    """Whole lines of a text from a place on, some MB at a time, which stay in a core's cache; without the last end."""
    last = len(text) - text.endswith(b"\n")
    while start <= last:
        end = text.find(b"\n", start + PART, last)
        end = last if end < 0 else end
        yield text[start:end]
        start = end + 1


def _uneven(path: Path, wanted: int, found: int, line: int) -> FileFormatError:
    return FileFormatError(f"{path} must have {wanted} fields in every row as in its first, got {found} in line {line}")


def _rows(stream: TextIO, sep: str, decimal: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, with their line numbers."""
    reader = csv.reader(stream, delimiter=sep)
    for row in reader:
        if row and not (len(row) == 1 and not row[0].strip()):
            yield reader.line_num, [with_point(field, decimal) for field in row]


def _has_labels(names: list[str], entries: list[str], header: bool) -> bool:
    return (header and axes.labels_rows(names[0], names[1:])) or all(_number(entry) is None for entry in entries)


def _number(text: str) -> float | None:
    """A number, NaN where it is missing; None for other text."""
    try:
        return axes.float_of(text)
    except ValueError:
        return math.nan if text.strip().lower() in MISSING else None


def _numbers(path: Path, fields: list[str], line: int, names: list[str], start: int) -> FloatArray:
    numbers = [_number(field) for field in fields]
    if None in numbers:
        j = numbers.index(None)
        name = f" ({names[j]!r})" if names[j] else ""
        raise FileFormatError(
            f"{path} must hold numbers, got {fields[j]!r} in line {line}, column {j + start + 1}{name}"
            f"{cure_of_text(names, fields[j], start)}"
        )
    return np.array(numbers, dtype=np.float64)


def cure_of_text(names: Sequence[Any], entry: Any, labelled: int = 0) -> str:
    """How a table with text among its numbers is read: other columns beside curves, or one value a row."""
    beside = axes.of_columns_beside(names)
    if beside:
        return f". {beside}"
    narrow = len(names) + labelled <= curve_sample.MOST_COLUMNS and (
        axes.is_moment(entry) or len(names) + labelled == 3
    )
    return f". {curve_sample.of_long()}" if narrow else ""


def column_labels(path: Path, names: list[str]) -> pd.Index[Any]:
    """Labels of columns, as numbers where they are a grid; raises FileFormatError for half a grid."""
    try:
        grid = np.array([axes.float_of(name) for name in names])
    except ValueError:
        try:
            axes.axis_of(pd.Index(names), "the table")
        except InputError as exc:
            raise FileFormatError(f"{path} must hold curves, one a row: {exc}") from exc
        return pd.Index(names)
    steps = np.diff(grid)
    if not np.isfinite(grid).all() or not ((steps > 0).all() or (steps < 0).all()):
        up = (steps > 0).sum() >= (steps < 0).sum()
        j = int(np.argmax(~(steps > 0) if up else ~(steps < 0))) if steps.size else 0
        raise FileFormatError(
            f"{path} must have a decreasing or increasing grid, or words, in its first row, got {names[j]} "
            f"followed by {names[min(j + 1, len(names) - 1)]}; if the file has no header row, say so (--no-header, "
            "header=False)"
        )
    return pd.Index(grid)  # type: ignore[no-any-return]


def _as_numbers(column: Sequence[str]) -> Any:
    """Float64 where all entries are numbers or missing, else the text."""
    numbers = [_number(entry) for entry in column]
    return np.array(column, dtype=object) if None in numbers else np.array(numbers, dtype=np.float64)


def one_curve_a_row(path: Path, frame: pd.DataFrame) -> pd.DataFrame:
    """Refuse tables of curves in columns."""
    if axes.axis_of(frame.columns, "the table", numbered=False) is None:  # "p1", "p2", ... may be persons
        index = frame.index
        if index.inferred_type == "string":
            try:
                index = pd.Index(axes.numbers_of(index.tolist(), "labels"))
            except InputError:
                index = pd.RangeIndex(len(index))
        if curve_sample.is_transposed(frame.to_numpy(), index, frame.columns):
            raise FileFormatError(f"{path} must have one curve a row; {curve_sample.TRANSPOSED_HINT}")
    return frame


# Long tables, one value a row (id of the curve, point, value), made into curves on the union of their points.


MISSING_IN_LONG = MISSING | {"none", "nat"}


def check_names(long: Any) -> tuple[str, str, str]:
    """Names of the columns of id, point and value.

    Raises
    ------
    InputError
        Not three different names.
    """
    names = tuple(long) if isinstance(long, Sequence) and not isinstance(long, str) else ()
    if len(names) != 3 or len(set(names)) != 3 or not all(isinstance(name, str) for name in names):
        raise InputError(f'long must be the names of three columns, as ("id", "s", "value"), got {long!r}')
    return names


def refuse_twice(columns: Sequence[str], names: tuple[str, str, str], path: Any) -> None:
    """Refuse a long table with several columns of a name that is wanted; raises FileFormatError."""
    twice = next((name for name in names if columns.count(name) > 1), None)
    if twice is not None:
        raise FileFormatError(f"{path} must have one column {twice!r}, got {columns.count(twice)}")


def curves_of_long(table: Mapping[str, Sequence[Any]], names: tuple[str, str, str], path: Any) -> pd.DataFrame:
    """Make curves of the columns of a long table.

    Parameters
    ----------
    table : mapping
        Columns by name, of equal length; entries are text or numbers.
    names : (str, str, str)
        Columns of id, point and value. Points may be dates or times, as :mod:`fdadp.functional.tables.grid_from_labels`
        reads them.
    path : path
        For error messages.

    Returns
    -------
    DataFrame of shape (n, S)
        Curves in the order in which their ids first appear, on the union of all points, NaN where a curve has none.

    Raises
    ------
    FileFormatError
        A column that is not there, an id or a point that is missing, text in numbers, two values of a curve at one
        point; the text says which row.
    """
    absent = [name for name in names if name not in table]
    if absent:
        raise FileFormatError(f"{path} must have columns {', '.join(names)}, got {', '.join(map(str, table))}")
    ids, at, value = (list(table[name]) for name in names)
    if not ids:
        raise FileFormatError(f"{path} must hold curves, got a header row and nothing below it")
    for name, column in zip(names[:2], (ids, at), strict=True):
        gap = next((i for i, entry in enumerate(column) if _is_missing(entry)), None)
        if gap is not None:
            raise FileFormatError(f"{path} must have an entry in column {name!r} of every row, got none in row {gap}")
    values = _numbers_of_long(value, names[2], path)
    columns, position = _points(at, names[1], path)
    rows, labels = pd.factorize(pd.Index([i.strip() if isinstance(i, str) else i for i in ids], dtype=object))
    cells = rows * len(columns) + position
    _, first = np.unique(cells, return_index=True)
    if first.size < cells.size:
        k = int(np.setdiff1d(np.arange(cells.size), first)[0])
        raise FileFormatError(f"{path} must have one value a curve and point, got two for {ids[k]!r} at {at[k]!r}")
    curves = np.full((len(labels), len(columns)), np.nan)
    curves[rows, position] = values
    return pd.DataFrame(curves, index=pd.Index(labels.tolist()), columns=columns)


def _is_missing(entry: Any) -> bool:
    return entry is None or entry is pd.NaT or entry is pd.NA or str(entry).strip().lower() in MISSING_IN_LONG


def _numbers_of_long(column: list[Any], name: str, path: Any) -> FloatArray:
    numbers = np.empty(len(column))
    for i, entry in enumerate(column):
        try:
            numbers[i] = np.nan if _is_missing(entry) else axes.float_of(entry)
        except (TypeError, ValueError):
            raise FileFormatError(
                f"{path} must hold numbers, got {entry!r} in row {i}, column {name!r}, counted from 0 below the header"
            ) from None
    return numbers


def _points(at: list[Any], name: str, path: Any) -> tuple[pd.Index[Any], Any]:
    """Different points in their order, as labels, and the position of each entry among them."""
    with suppress(TypeError, ValueError):
        points, position = np.unique([axes.float_of(entry) for entry in at], return_inverse=True)
        return pd.Index(points), position.ravel()
    codes, labels = pd.factorize(pd.Index([e.strip() if isinstance(e, str) else e for e in at], dtype=object))
    try:
        order = np.argsort(axes.numbers_of(labels.tolist(), name), kind="stable")
    except InputError as exc:
        raise FileFormatError(f"{path} must have numbers, dates or times in column {name!r}, got {at[0]!r}") from exc
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    return pd.Index(labels[order].tolist()), rank[codes]
