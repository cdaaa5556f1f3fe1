"""Private fits on the command line: files are read by the kernel alone, line by line or in pieces."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fdadp.cli.input_files import CurvesFile, FileFormat, check_names, long_columns, without_id
from fdadp.cli.shared_options import by_name
from fdadp.errors import InputError
from fdadp.files.atomic_writes import write_text

if TYPE_CHECKING:
    from fdadp._common.typing import FloatArray
    from fdadp.functional.containers.opened_tables import OpenedCurves, OpenedTable
    from fdadp.functional.files.csv_curves import CsvLines
    from fdadp.privacy import Ledger, Privacy
    from fdadp.private.public.long_tables import LongLines
    from fdadp.regression.private.chunked_tables import JoinedTables


def bounds_of(texts: Sequence[str] | None) -> dict[str, Any]:
    """Public ranges and levels by column; quotes around a level are left out.

    Raises
    ------
    InputError
        All but NAME=LOW:HIGH and NAME=A,B; a name twice; two levels that are numbers more than 1 apart, without quotes.
    """

    def convert(value: str) -> Any:
        if "," in value:
            return value.split(",")
        low, high = map(float, value.split(":"))
        return low, high

    found = by_name(texts, "--bounds", "NAME=LOW:HIGH, as age=0:120, or NAME=A,B, as sex=f,m", convert)
    for name, own in found.items():
        if isinstance(own, list):
            _refuse_range(name, own)
            found[name] = without_quotes(own)
    return found


def without_quotes(levels: Sequence[str]) -> list[str]:
    """Levels, without spaces and quotes around them."""
    bare = [level.strip() for level in levels]
    return [own[1:-1] if len(own) > 2 and own[0] == own[-1] and own[0] in "'\"" else own for own in bare]


def _refuse_range(name: str, levels: list[str]) -> None:
    """Refuse two bare numbers more than 1 apart: a range with the wrong mark; raises InputError."""
    try:
        low, high = map(float, levels)
    except ValueError:
        return
    if abs(high - low) > 1:
        raise InputError(
            f'--bounds must be {name}={low:g}:{high:g} for a range, or \'{name}="{levels[0]}","{levels[1]}"\' for '
            f"two labels, got {name + '=' + ','.join(levels)!r}"
        )


def points_of(texts: Sequence[str] | None) -> dict[str, int]:
    """Numbers of points by column of curves; raises InputError for all but NAME=POINTS."""
    return by_name(texts, "--points", "NAME=POINTS, as X=101", int)


def labels_of(texts: Sequence[str] | None) -> dict[str, tuple[str, ...]]:
    """Points by column of curves, of texts NAME=LOW:HIGH:COUNT, even, or NAME=POINT,POINT,...

    Raises
    ------
    InputError
        Another text, or a name twice.
    """

    return by_name(texts, "--grid", "LOW:HIGH:COUNT of two points or more, as X=0:23:24, or X=0,1,5", _points)


def _points(text: str) -> tuple[str, ...]:
    """Points LOW:HIGH:COUNT, even, or POINT,POINT,...; raises ValueError for another text."""
    if "," in text:
        return tuple(part.strip() for part in text.split(","))
    low, high, count = text.split(":")
    last = int(count) - 1
    if last < 1:
        raise ValueError
    width = (float(high) - float(low)) / last
    return tuple(f"{float(low) + j * width:.12g}" for j in range(last + 1))


def edges_of(text: str | None, option: str) -> list[float] | None:
    """Ends of periods, as points of a grid are written; raises InputError for another text."""
    if text is None:
        return None
    try:
        return [float(point) for point in _points(text)]
    except ValueError:
        raise InputError(f"{option} must be LOW:HIGH:COUNT, as 0:8:9, or 0,1,2,4,8, got {text!r}") from None


def read_entries(files: PrivateFiles, names: Sequence[str]) -> dict[str, Any]:
    """Columns of files, entries as they are: what they mean is the kernel's to say, entry by entry."""
    import numpy as np

    blocks = list(files.tables())
    read = {name: [np.asarray(block[name], dtype=object) for block in blocks] for name in dict.fromkeys(names)}
    return {name: np.concatenate(parts or [np.empty(0, dtype=object)]) for name, parts in read.items()}


@dataclass(frozen=True)
class PrivateFiles:
    """Files of which only what is public has been read: labels of columns, shapes, grids.

    Attributes
    ----------
    curves : mapping of str to CsvLines or OpenedCurves
    table : CsvLines, OpenedTable or None
    """

    curves: Mapping[str, CsvLines | OpenedCurves]
    table: CsvLines | OpenedTable | None
    id: str | None = None

    @classmethod
    def of(
        cls, curves: Mapping[str, CurvesFile], table: Path | None, how: FileFormat, id: str | None = None
    ) -> PrivateFiles:
        """Open files of curves by name, and a table; of CSV files the first line is read.

        Raises
        ------
        InputError, FileFormatError, FileNotFoundError
            All of it about names and labels of columns.
        """
        from fdadp.functional.containers.open_curves import opened
        from fdadp.functional.files import csv_curves

        lines = None if table is None else _opened(CurvesFile(table), how.dialect)
        if lines is not None and not hasattr(lines, "names"):
            raise InputError(f"--table must have named columns, got one sample of curves in {table}")
        own = () if lines is None else lines.names
        check_names(curves, own)
        if id is not None and lines is not None and id not in own:
            raise without_id(id, table)
        files = {name: opened(_opened(own, how.dialect), str(own.path)) for name, own in curves.items()}
        if how.long is not None:
            names = csv_curves.check_names(long_columns(how.long))
            odd = next((name for name in how.grid if name not in files), None)
            if odd is not None:
                raise InputError(f"--grid must name a file of curves, got {odd!r}")
            files |= {name: _long(own, name, names, how) for name, own in files.items() if curves[name].prefix is None}
            id = names[0] if id is None else id
        return cls({name: _labelled(own, curves[name].path, id) for name, own in files.items()}, lines, id)

    def grids(self) -> dict[str, FloatArray]:
        """Points of all columns of curves."""
        opened: Mapping[str, Any] = self.curves
        own = {name: c.grid if hasattr(c, "chunks") else c.grid()[0] for name, c in opened.items()}
        return own | getattr(self.table, "grids", {})

    def refuse_several(self, max_rows: int | None) -> None:
        """Refuse several rows of a person where the person's id joins them; raises InputError."""
        if self.id is not None and (max_rows or 1) > 1:
            raise InputError(
                f"--max-rows must be left out where rows of several files are joined by {self.id!r}, which cannot "
                "tell rows of a person apart: put curves and columns into one file, as --curves 'Y=table.csv:h*' "
                "--table table.csv"
            )

    def by_names(self, groups: str | None, privacy: Privacy) -> PrivateFiles:
        """The same, joined by the column that labels rows in all files, if the names of columns say that there is one.

        Not where the unit is the row, or where another column gives the person of every row.
        """
        opened: Any = self.curves.values()
        first = {lines.names[0] if getattr(lines, "labelled", False) else "" for lines in opened}
        id = first.pop() if len(first) == 1 else ""
        beside = self.table is None or id in self.table.names
        several = len(self.curves) + (self.table is not None) > 1
        if self.id is not None or not (id and beside and several) or groups not in (None, id) or privacy.unit == "row":
            return self
        return replace(self, id=id)

    def joined(self) -> JoinedTables:
        """Tables of all files, whose rows the kernel joins by their ids."""
        from fdadp.regression.private.chunked_tables import JoinedTables

        assert self.id is not None
        sources: dict[str, Any] = {}
        names: dict[str, tuple[str, ...]] = {}
        for name, lines in self.curves.items():
            names[name], sources[name] = (name,), partial(_tables_of, lines, (name,), self.id)
        if self.table is not None:
            names["table"] = self.table.names
            sources["table"] = partial(_tables_of, self.table, self.table.names, self.id)
        return JoinedTables(sources, names, self.id)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns."""
        return (*self.curves, *(() if self.table is None else self.table.names))

    def check_has(self, texts: Sequence[str]) -> None:
        """Refuse columns, or those that expressions read, that are in no file.

        Raises
        ------
        InputError
        """
        from fdadp.regression.reading.computed_columns import expression, row_function
        from fdadp.regression.reading.table_columns import unknown_column

        for text in texts:
            plain = text in self.names or (text.isidentifier() and row_function(text) is None)
            for name in (text,) if plain else expression(text).sources:
                if name not in self.names:
                    raise unknown_column(name, self.names, "the files")

    def tables(self) -> Iterator[dict[str, Any]]:
        """Blocks of rows, entries as they are; rows are those of the same number in all files."""
        from fdadp.functional.containers.opened_tables import cut_alike

        sources = [_columns(lines) for lines in self.curves.values()]
        if self.table is not None:
            sources.append(_columns(self.table, self.table.names))
        return (dict(zip(self.names, parts, strict=True)) for parts in cut_alike(sources, self.names))


def _columns(source: Any, names: Sequence[str] | None = None) -> Iterator[tuple[Any, ...]]:
    """Columns of one pass: of a table those of `names`, else the curves."""
    if hasattr(source, "chunks"):
        return iter(source.chunks())
    if names is None:
        used = source.grid()[1]
        return ((block[:, used],) for block in source.blocks())
    return (tuple(block[:, i] for i in range(len(names))) for block in source.blocks())


def _tables_of(source: Any, names: Sequence[str], id: str) -> Iterator[dict[str, Any]]:
    """Blocks of rows of one file, the ids among their columns."""
    from fdadp.functional.containers.row_source import RowChunks

    if hasattr(source, "chunks"):
        called = list(dict.fromkeys([*names, id]))
        own = [source.field.name, id] if hasattr(source, "field") else called
        yield from (dict(zip(called, parts, strict=True)) for parts in RowChunks(source.source, own))
        return
    at = source.names.index(id)
    for block in source.blocks():
        if list(names) == list(source.names):
            yield {name: block[:, i] for i, name in enumerate(names)}
        else:
            yield {names[0]: block[:, source.grid()[1]], id: block[:, at]}


def _long(lines: Any, name: str, long: tuple[str, str, str], how: FileFormat) -> LongLines:
    """A long table as curves; raises InputError for a file that is no CSV file, or has no public points."""
    from fdadp.private.public.long_tables import LongLines

    if not hasattr(lines, "sep"):
        raise InputError(f"--long must be of .csv files in a private fit, got another file of {name}")
    if name not in how.grid:
        raise InputError(
            f"--grid must give the points of {name} in a private fit, as --grid {name}=0:23:24: which points stand in "
            "a long table is private"
        )
    return LongLines(lines, long, how.grid[name])


def _labelled(lines: Any, path: Path, id: str | None) -> Any:
    """A file of curves whose rows have ids; raises InputError where --id is no column of it."""
    long = hasattr(lines, "long")
    if id is None or (long and lines.id == id):
        return lines
    if long:
        raise InputError(f"--id must be the first column of --long, got {id!r} and {lines.id!r}")
    if hasattr(lines, "chunks"):
        if id not in [field.name for field in lines.source.columns]:
            raise without_id(id, path)
        return lines
    if lines.names[0] != id if lines.prefix is None else id not in lines.names:
        raise InputError(
            f"--id must be the first column of a file of curves, got {id!r}; {path} has {lines.names[0]!r}"
        )
    return replace(lines, id=id)


def _opened(file: CurvesFile, dialect: Mapping[str, str]) -> Any:
    """A file by lines, or a container by what is public of it."""
    from fdadp.functional.containers.open_curves import open_curves
    from fdadp.functional.files.csv_curves import CsvLines

    path, prefix = file.path, file.prefix
    if file.is_csv:
        return CsvLines.of(path, **dialect, prefix=prefix)
    if prefix is None:
        return open_curves(path)
    found: Any = open_curves(path, curves={"curves": prefix})
    return found["curves"]


def check_writable(out: Path) -> None:
    """Refuse a place that cannot be written, before a row is read; raises InputError."""
    folder = next(p for p in out.absolute().parents if p.exists())
    if out.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InputError(f"--out must be a file that can be written, got {str(out)!r}")


def check_not_read(written: Sequence[Path], read: Sequence[Path | None]) -> None:
    """Refuse to write over a file that is read; raises InputError."""
    inputs = {os.path.realpath(path) for path in read if path is not None}
    for path in written:
        if os.path.realpath(path) in inputs:
            raise InputError(f"--out and what goes with it must not take the place of a file read, got {str(path)!r}")


def write_ledger(ledger: Ledger, privacy: Privacy, out: Path) -> None:
    """Write the ledger of a private fit beside its model, and show it, with what is left of a study."""
    path = out.with_suffix(".ledger.json")
    write_text(path, ledger.to_json())
    typer.echo(f"{ledger}\n\nLedger written to {path}")
    if privacy.study is not None:
        from fdadp.privacy.study import Study

        typer.echo(Study(privacy.study).headline)
    typer.echo("")


def write_shown(path: Path, text: str, what: str) -> None:
    """Write a text, and say where it is."""
    write_text(path, text)
    typer.echo(f"{what}: {path}")


def save_model(model: Any, out: Path, *level: float) -> None:
    """Write a model, show its summary (intervals of `level`), and say how it is read again."""
    path = model.save(out)
    typer.echo(model.summary(*level).as_text())
    typer.echo(f"\nModel written to {path}. In Python: {type(model).__name__}.load({str(path)!r})")
