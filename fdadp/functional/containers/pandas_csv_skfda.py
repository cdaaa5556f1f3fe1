"""What the package has always taken: pandas' data frames, CSV and ``.npz`` files, scikit-fda's curves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fdadp._common.loaded_later import pd
from fdadp.errors import FileFormatError, InputError
from fdadp.functional.containers.row_source import (
    ALONE,
    Field,
    Fields,
    Piece,
    Source,
    curve_field,
    fields_of,
    side_by_side,
)
from fdadp.functional.files.csv_curves import CsvLines, read_table
from fdadp.functional.files.curve_files import read_curves
from fdadp.functional.tables.curve_sample import Given
from fdadp.functional.tables.grid_from_labels import is_only_numbered

INDEX = object()
"""Stands for the labels of rows of a data frame."""


def _rows_of_frame(frame: pd.DataFrame, rows: slice, fields: Sequence[Field], lenient: bool) -> list[Any]:
    part = frame.iloc[rows]
    return [part.index if f.source is INDEX else _entries(part, f) for f in fields]


def _entries(rows: pd.DataFrame, field: Field) -> Any:
    if not isinstance(field.source, tuple):
        held: Any = rows[field.source]
        return held.array.data_matrix[..., 0] if field.grid is not None else _of_series(held)
    return side_by_side([_of_series(rows[name]) for name in field.source])


def _of_series(series: Any) -> Any:
    """Entries of a column, each as it is: numbers as numbers, all else as objects."""
    if isinstance(series.dtype, np.dtype):
        return series.to_numpy()
    if getattr(series.dtype, "kind", "O") in "iufb":  # nullable
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    return series.to_numpy(dtype=object)


def of_frame(frame: pd.DataFrame, called: str, *, whole: bool = False, **options: Any) -> Source:
    """A data frame: curves where its columns are labelled by a grid, or not at all; else a table.

    Raises
    ------
    InputError
        Columns that are not there or have one name, grids that do not suit.
    """
    curves: dict[Any, Any] = {
        name: frame[name].array.grid_points[0]
        for name in frame.columns
        if type(frame.dtypes[name]).__module__.startswith("skfda")
    }
    lists = {name: len(curves[name]) if name in curves else None for name in frame.columns}
    counted = is_only_numbered(frame.columns)
    fields = fields_of(lists, options, stored=curves, whole=whole or counted, labels=frame.columns)
    if fields.rows is None:
        fields = replace(fields, rows=Field("" if frame.index.name is None else str(frame.index.name), INDEX))
    return Source.of_rows(called, fields, "frame", len(frame), partial(_rows_of_frame, frame))


def of_npz(path: Path, **options: Any) -> Source:
    """Curves of a ``.npz`` file, which is read at once."""
    return of_frame(read_curves(path), str(path), whole=True, **options)


# ------------------------------------------------------------------ CSV


def _of_csv(path: str, alone: bool, dialect: dict[str, Any], fields: Sequence[Field], lenient: bool) -> list[Any]:
    """A piece: a CSV file as a whole, of curves alone or a table."""
    if not alone:
        frame = read_table(Path(path), **dialect)
        return [_entries(frame, f) for f in fields]
    frame = read_curves(path, **dialect)
    size = next(f.grid.size for f in fields if f.grid is not None)
    if frame.shape[1] != size:
        raise FileFormatError(f"{path} must have {size} columns of numbers, as its first line has, got labels")
    return [frame.to_numpy() if f.grid is not None else frame.index for f in fields]


def _pieces_of_lines(lines: CsvLines) -> Iterator[Piece]:
    """A CSV file line by line, as a private fit reads it."""
    return (partial(_of_lines, lines.names, block) for block in lines.blocks())


def _of_lines(names: tuple[str, ...], block: Any, fields: Sequence[Field], lenient: bool) -> list[Any]:
    """A piece: some lines, as objects."""
    at = {name: i for i, name in enumerate(names)}
    places = [[at[n] for n in f.source] if isinstance(f.source, tuple) else at[f.source] for f in fields]
    return [block[:, place] for place in places]


def of_csv(path: Path, **options: Any) -> Source:
    """A CSV file, of which the first line is read: curves where that is a grid, perhaps with an id before, or a table.

    Raises
    ------
    FileFormatError
        No first line.
    """
    dialect = {name: options.get(name) or default for name, default in (("sep", ","), ("decimal", "."))}
    lines = CsvLines.of(path, **dialect)
    if len(set(lines.names)) < len(lines.names):
        raise FileFormatError(f"{path} must have labels of columns that differ")
    fields = fields_of(dict.fromkeys(lines.names), options)
    place = path.absolute()
    piece = partial(_of_csv, str(place), fields.alone, dialect)
    return Source(
        str(path), fields, "frame", (piece,), for_kernel=partial(_pieces_of_lines, replace(lines, path=place))
    )


# ------------------------------------------------------------------ scikit-fda


def _rows_of_fdatagrid(curves: Any, rows: slice, fields: Sequence[Field], lenient: bool) -> list[Any]:
    """Values, and names of curves."""
    names = pd.Index(curves.sample_names[rows], dtype=object)
    return [np.array(curves.data_matrix[rows, :, 0]) if f.grid is not None else names for f in fields]


def of_fdatagrid(data: Any, called: str, **_: Any) -> Source:
    """An FDataGrid of real functions of one variable.

    Raises
    ------
    InputError
        Others.
    """
    if type(data).__name__ != "FDataGrid" or data.dim_domain != 1 or data.dim_codomain != 1:
        raise InputError(f"{called} must be an FDataGrid of real functions of one variable, or fit takes it as it is")
    points = np.asarray(data.grid_points[0], dtype=np.float64)
    named = any(name is not None for name in data.sample_names)
    fields = Fields(
        {ALONE: curve_field(ALONE, None, points.size, grid=points, given=Given())},
        Field("", INDEX) if named else None,
        alone=True,
    )
    return Source.of_rows(called, fields, "fdatagrid", int(data.n_samples), partial(_rows_of_fdatagrid, data))
