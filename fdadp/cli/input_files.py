"""Files that commands read: curves and tables by name, and models of any kind."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import fdadp
from fdadp.cli import shared_options as option
from fdadp.errors import FileFormatError, InputError
from fdadp.files.regular_files import check_file

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class FileFormat:
    """How files are read, as options say it: a header, the columns of long tables, and the marks in CSV text.

    `grid` has the public points of long tables, by column of curves; in a private fit alone.

    Raises
    ------
    InputError
        When made: other marks than there are.
    """

    sep: option.Sep = ","
    decimal: option.Decimal = "."
    header: Annotated[bool, typer.Option(help="Whether CSV files of curves start with a row of labels.")] = True
    long: Annotated[str | None, typer.Option(metavar="ID,POINT,VALUE", help=option.LONG)] = None
    grid: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        from fdadp.functional.files.csv_curves import check_dialect

        object.__setattr__(self, "sep", {"tab": "\t", "\\t": "\t"}.get(self.sep, self.sep))
        check_dialect(self.sep, self.decimal)

    @property
    def dialect(self) -> dict[str, str]:
        """Marks between fields and before decimals."""
        return {"sep": self.sep, "decimal": self.decimal}


@dataclass(frozen=True)
class CurvesFile:
    """A file of curves; of a table with other columns those whose names start with `prefix`."""

    path: Path
    prefix: str | None = None

    @classmethod
    def of(cls, text: str | Path) -> CurvesFile:
        """Read FILE, or FILE:PREFIX*."""
        match = re.fullmatch(r"(.*?\.(?:csv|csv\.gz|parquet)):(.+)\*", str(text))
        return cls(Path(text)) if match is None else cls(Path(match[1]), match[2])

    @property
    def is_csv(self) -> bool:
        """Whether it is text, which is read by lines."""
        return self.path.name.lower().endswith((".csv", ".csv.gz"))


def check_out(out: Path) -> None:
    """Refuse the name of a model file that has another suffix; raises FileFormatError."""
    if out.suffix:
        option.check_suffix(out, "--out", ".npz")


def check_names(curves: Iterable[str], columns: Collection[str]) -> None:
    """Refuse a name that curves and a column of the table share, and no column at all; raises InputError."""
    names = list(curves)
    twice = next((name for name in names if name in columns), None)
    if twice is not None:
        raise InputError(f"--curves and --table must have different names, got {twice!r} twice")
    if not (names or columns):
        raise InputError("--curves or --table must be given, got neither")


def without_id(id: str, path: Path | None) -> InputError:
    """The error of a file that lacks the column of ids."""
    return InputError(f"--id must be a column of every file, got {id!r}, which {path} has not")


def named_files(entries: Sequence[str] | None) -> dict[str, CurvesFile]:
    """Files of curves by name; raises InputError for all but NAME=FILE and NAME=FILE:PREFIX*, or a name twice."""
    return option.by_name(entries, "--curves", "NAME=FILE or NAME=FILE:PREFIX*, as X=x.csv", CurvesFile.of)


def named_in(formula: str) -> set[str]:
    """Words of a formula, columns among them."""
    return {name.strip("`") for name in re.findall(r"`[^`]*`|\w+", formula)}


def of_one_file(curves: Mapping[str, CurvesFile], table: Path | None) -> bool:
    """Whether all columns stand in one table: its rows belong together as they are, several of a person too."""
    return table is not None and all(own.path.resolve() == table.resolve() for own in curves.values())


def treatments_of(texts: Sequence[str] | None) -> str | dict[str, str]:
    """What is done about gaps: of all columns, or by column.

    Raises
    ------
    InputError
        Both at once, two for all columns, or a column twice.
    """
    found: dict[str, str] = {}
    for text in texts or []:
        name, equals, how = text.rpartition("=")
        if (equals and not name) or not how or name in found or (found and ("" in found or not name)):
            raise InputError(
                "--missing must be one treatment, as linear, or one of each column, as X=linear, "
                f"got {' '.join(texts or [])!r}"
            )
        found[name] = how
    return found.get("", found) if found else "auto"


def treatment_of(texts: Sequence[str] | None) -> str:
    """What is done about gaps of two files of curves; raises InputError where columns are named."""
    found = treatments_of(texts)
    if not isinstance(found, str):
        raise InputError(f"--missing must be one treatment, as linear, of two files, got {' '.join(texts or [])!r}")
    return found


def long_columns(text: str | None) -> Any:
    """Names of the columns of long tables, or None."""
    return None if text is None else tuple(name.strip() for name in text.split(","))


def read_file(file: CurvesFile, how: FileFormat, id: str | None = None) -> pd.DataFrame:
    """Read a file of curves and say on stderr how it was understood."""
    from fdadp.functional.files.curve_files import read_curves
    from fdadp.functional.tables.curve_inputs import as_curves
    from fdadp.functional.tables.grid_from_labels import under_a_prefix

    path = file.path
    if file.prefix is not None:
        frame = _of_table(path, file.prefix, how, id)
    else:
        found = _of_container(path) if how.long is None else None
        long = long_columns(how.long)
        frame = read_curves(path, header=how.header, long=long, **how.dialect) if found is None else found
        if long is not None:  # its points are no numbers of columns
            frame = frame.set_axis(under_a_prefix(frame.columns, long[1]), axis=1)
    read = as_curves(frame, name=str(path))
    grid = "no grid in the file, so an even one" if read.unit is None else f"an even grid on [0, 1], {read.unit}"
    if read.gridded:
        grid = f"grid {read.grid[0]:g} to {read.grid[-1]:g}{'' if read.unit is None else f' {read.unit}'}"
    labels = "" if type(frame.index).__name__ == "RangeIndex" else ", labelled"
    typer.echo(f"{path}: {len(frame)} curves{labels}, {frame.shape[1]} points, {grid}", err=True)
    return frame


def read_columns(rows: option.DataOptions, how: FileFormat, groups: str | None = None) -> tuple[dict[str, Any], str]:
    """Columns of all files by name: data frames of curves, and the columns of the table; and how rows are joined.

    Rows of one file belong together as they stand where `groups` names the persons and no column is given as ids.

    Raises
    ------
    InputError, FileFormatError, FileNotFoundError
    """
    files = named_files(rows.curves)
    data: dict[str, Any] = {}
    if rows.table is not None:
        known = {rows.id} if rows.id is not None else _label_columns(files.values(), how)
        data = _columns_of(rows.table, known, how, wanted=rows.id is not None)
    check_names(files, data)
    data |= _labelled_curves(files, how, rows.id)
    if groups is None or rows.id is not None or not (files and of_one_file(files, rows.table)):
        return _how_joined(data)
    persons = next((own.index for own in data.values() if has_ids(own) and own.index.name == groups), None)
    found = {name: own.reset_index(drop=True) for name, own in data.items()}
    return found if persons is None else found | {groups: persons.to_series(index=range(len(persons)))}, "position"


def labelled_files(files: Mapping[str, CurvesFile], how: FileFormat, *, id: str | None) -> tuple[dict[str, Any], str]:
    """Curves by name, labelled by their ids where files have them; and how rows are joined."""
    return _how_joined(_labelled_curves(files, how, id))


def _labelled_curves(files: Mapping[str, CurvesFile], how: FileFormat, id: str | None) -> dict[str, Any]:
    return {name: _labelled(read_file(file, how, id), file, how, id) for name, file in files.items()}


def _how_joined(data: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """By label where all files have labels; else by position, if the labels that there are do not contradict it."""
    from fdadp.functional.tables.row_and_grid_labels import same_rows

    without = [name for name, own in data.items() if not has_ids(own)]
    if not without:
        return data, "label"
    same_rows(**{name: own for name, own in data.items() if name not in without})
    if len(without) < len(data):
        typer.echo(f"rows are taken by position, for {without[0]} has no ids: --id COLUMN joins them", err=True)
    return data, "position"


def has_ids(rows: Any) -> bool:
    """Whether a file labelled these rows: their index is there, and has a name, or was not made by counting.

    pandas 3 keeps ids 1, 2, 3, ... of a column as a ``RangeIndex``, under the name of the column.
    """
    index = getattr(rows, "index", None)
    counted = type(index).__name__ in ("NoneType", "RangeIndex", "builtin_function_or_method")
    return not counted or getattr(index, "name", None) is not None


def _label_columns(files: Iterable[CurvesFile], how: FileFormat) -> set[str]:
    """Names of the columns that label rows of CSV files of curves, by their first lines alone."""
    from fdadp.functional.files.csv_curves import CsvLines

    if how.long is not None:
        return set(long_columns(how.long)[:1])
    plain = [own for own in files if how.header and own.is_csv]
    read = [CsvLines.of(own.path, **how.dialect, prefix=own.prefix) for own in plain]
    return {own.names[0] for own in read if own.labelled and own.names[0]}


def with_label_name(frame: pd.DataFrame, file: CurvesFile, how: FileFormat) -> pd.DataFrame:
    """Curves whose labels have the name of their column in the file, for files that are made of them."""
    names = _label_columns([file], how) if frame.index.name is None and has_ids(frame) else set()
    return frame.rename_axis(index=names.pop()) if names else frame


def _labelled(frame: pd.DataFrame, file: CurvesFile, how: FileFormat, id: str | None) -> pd.DataFrame:
    """Curves under their ids; raises InputError where the file has no such column."""
    if id is None or file.prefix is not None:
        return frame
    known = _label_columns([file], how)
    unnamed = not known and not file.is_csv
    if not has_ids(frame) or not (unnamed or id in known):
        raise InputError(
            f"--id must be the first column of a file of curves, and label its rows: {id!r} of {file.path} is not"
        )
    return frame.rename_axis(index=id)


def _of_table(path: Path, prefix: str, how: FileFormat, id: str | None) -> pd.DataFrame:
    """Curves of the columns of a table whose names start with `prefix`, under their ids."""
    from fdadp.functional.containers.open_curves import open_curves
    from fdadp.functional.files.csv_curves import CsvLines
    from fdadp.functional.tables.grid_from_labels import is_identifier

    if id is None and path.suffix.lower() != ".parquet":
        first = CsvLines.of(path, **how.dialect).names[0]
        id = first if is_identifier(first) else None
    try:
        found: Any = open_curves(path, curves={"curves": prefix}, rows=id, **how.dialect)
    except InputError as exc:
        raise InputError(f"{path}:{prefix}*: {exc}") from None
    return _frame_of(found["curves"].read())


def _of_container(path: Path) -> pd.DataFrame | None:
    """Curves of parquet with lists, of zarr, of arrays on disk as a data frame; None where it is another file."""
    from fdadp.functional.containers.open_curves import open_curves, opened
    from fdadp.functional.containers.opened_tables import OpenedTable

    suffix = path.suffix.lower()
    if not path.exists() or not (path.is_dir() or suffix in (".npy", ".zarr", ".parquet")):
        return None
    found = open_curves(path)
    lists = isinstance(found, OpenedTable) and len(found.grids) > 0
    return None if suffix == ".parquet" and not lists else _frame_of(opened(found, str(path)).read())


def _frame_of(curves: Any) -> pd.DataFrame:
    from fdadp.functional.tables.curve_sample import wrap

    grid = curves.grid
    frame: pd.DataFrame = wrap(
        curves.values, grid, kind="frame", columns=curves.columns, index=curves.index, own_grid=grid
    )
    return frame


def _columns_of(path: Path, known: set[str], how: FileFormat, *, wanted: bool) -> dict[str, Any]:
    """Columns of a table by name; those of lists, and of two dimensions, are data frames of curves.

    Rows are labelled by a column that is `known` to hold ids, which must be there where it is `wanted`.
    """
    import pandas as pd

    from fdadp.functional.containers.open_curves import open_curves
    from fdadp.functional.containers.opened_tables import OpenedTable

    read: dict[str, Any] | None = None
    if path.exists() and (path.is_dir() or path.suffix.lower() in (".zarr", ".parquet")):
        found = open_curves(path)
        if isinstance(found, OpenedTable) and found.grids:
            read = {name: _frame_of(c) if name in found.grids else c for name, c in found.read().items()}
    labelled = False
    if read is None:
        frame = _read_table(path, how)
        read, labelled = {str(name): frame[name] for name in frame.columns}, frame.index.name in known
    ids = next((pd.Index(own, name=name) for name, own in read.items() if name in known), None)
    if ids is not None:
        return {
            name: own.set_axis(ids, axis=0) if hasattr(own, "iloc") else pd.Series(own, ids)
            for name, own in read.items()
        }
    if wanted and not labelled:
        raise without_id(next(iter(known)), path)
    return read


def _read_table(path: Path, how: FileFormat) -> pd.DataFrame:
    import pandas as pd

    from fdadp.functional.files.csv_curves import CsvLines, read_table
    from fdadp.functional.tables.grid_from_labels import is_identifier

    check_file(path)
    option.check_suffix(path, "--table", ".csv", ".csv.gz", ".parquet")
    if path.suffix != ".parquet":
        CsvLines.of(path, **how.dialect)  # names semicolons, and UTF-16
    try:
        frame = pd.read_parquet(path) if path.suffix == ".parquet" else read_table(path, **how.dialect)
    except ImportError as exc:
        raise FileFormatError("parquet needs pyarrow: pip install pyarrow") from exc
    except FileFormatError:
        raise
    except (ValueError, OSError) as exc:  # pandas' parser raises ValueError's kinds
        raise FileFormatError(f"{path} must be a table with a row of names, got {exc}") from None
    first = frame.columns[0] if frame.shape[1] else None
    unnamed = isinstance(first, str) and (not first or first.startswith("Unnamed:"))
    return frame.set_index(first) if unnamed or is_identifier(first) else frame


def load_model(path: Path) -> Any:
    """Read a model file of whatever kind.

    Raises
    ------
    FileFormatError, FileNotFoundError
    """
    from fdadp.files.npz_files import sealed

    kinds = {
        "additive-function-on-function": "AdditiveFunctionOnFunction",
        "FunctionalRegression": "FunctionalRegression",
        "ScalarRegression": "ScalarRegression",
        "SurvivalRegression": "SurvivalRegression",
        "multilevel-fpca": "MultilevelFPCA",
        "private-mean": "PrivateMean",
        "private-fpca": "PrivateFPCA",
        "private-multilevel-fpca": "PrivateMultilevelFPCA",
        "private-table1": "PrivateTable1",
    }
    kind = sealed(path).kind
    if kind not in kinds:
        raise FileFormatError(f"{path} must hold a model of curves or of numbers, got {kind!r}")
    room = fdadp.summaries if kind == "private-multilevel-fpca" else fdadp  # only this class is loaded
    return getattr(room, kinds[kind]).load(path)
