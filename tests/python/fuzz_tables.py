"""Random neighbouring tables, as text in a file, and the ways in which users hand them to a private fit.

One person's entries are odd: what pandas or NumPy then makes of everybody's is their business. Numbers in files have at
most 15 digits, and nothing is resolved by column (``decimal=``, ``parse_dates=``): see docs/theory/kernel.md#boundary.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from neighbour_tools import csv

ODD = ("?", "", "NA", "unknown", "1e400", "-1e400", "True", "false", "2.5", " 3 ", "-0", "-0.0", "nan", "inf", "é")
ODD += ("9007199254740993", "18446744073709551617", "(1+0j)", "2020-01-01", "None", "1e-320", "0x10", "1_0")
ODD_IDS = ("H7", "?", "", "NA", "7.5", "1e300", "-5", "True", "1e2", "2020-01-01", "nan", "inf", "9007199254740993")
NUMBERS = ("decimals", "integers", "flags", "halves")
LABELS = (("0", "1"), ("False", "True"), ("0.0", "1.0"), ("0", "True"))
IDS = ("integers", "long", "padded", "decimal", "text", "mixed")
ADJACENCIES = ("zero-out", "add-remove", "replace")
FORMS = ("frame", "objects", "array", "masked", "nullable", "arrow", "categories", "lists", "lazy", "dask", "xarray")
FORMS += ("rows of Arrow", "frame of polars")
FORMS += ("polars", "Arrow table", "parquet", "Dataset")
"""The last are opened by ``open_curves``."""
QUERIES = ("DuckDB", "LazyFrame")
"""Opened, too, and read anew on each pass."""
LABELLED = ("frame", "nullable", "arrow", "categories", "xarray", "files")
"""Tables whose rows have labels, which are the persons' ids; or files with a column of ids."""


@dataclass(frozen=True)
class Neighbouring:
    """Two files that differ in one person, as columns of texts: ``id``, ``y`` and ``x0``, ``x1``, ...

    `mine`: rows of that person in the first file; its rows in the second are at the same places, or gone.
    """

    first: dict[str, list[str]]
    second: dict[str, list[str]]
    mine: np.ndarray[Any, Any]
    gone: bool
    adjacency: str
    n: int | None
    grouped: bool


def neighbouring(rng, *, persons=20, width=3, grouped=True, adjacency=None):
    """A file of some persons, one of whom has odd entries, and one in which that person is gone, blank or another."""
    adjacency = adjacency or str(rng.choice(ADJACENCIES))
    rows = rng.integers(1, 5, persons) if grouped else np.ones(persons, dtype=int)
    people = rng.permutation(np.repeat(np.arange(persons), rows))
    kind, label = str(rng.choice(IDS)), LABELS[rng.integers(len(LABELS))]
    first = {"id": [_id(kind, int(i), rng) for i in people], "y": [label[i] for i in rng.integers(0, 2, len(people))]}
    for j in range(width):
        first[f"x{j}"] = _numbers(str(rng.choice(NUMBERS)), len(people), rng)
    mine = people == rng.integers(persons)
    _make_odd(first, mine, rng)
    if rng.random() < 0.4:
        odd = str(rng.choice(ODD_IDS))
        first["id"] = [odd if me else name for name, me in zip(first["id"], mine, strict=True)]
    gone, second = False, {name: list(column) for name, column in first.items()}
    if adjacency == "replace":
        _make_odd(second, mine, rng)
    elif grouped and rng.random() < 0.5:
        second["id"] = ["" if me else name for name, me in zip(first["id"], mine, strict=True)]
    else:
        gone, second = True, {name: [column[i] for i in np.flatnonzero(~mine)] for name, column in first.items()}
    n = None if adjacency == "add-remove" else persons
    return Neighbouring(first, second, mine, gone, adjacency, n, grouped)


def _id(kind, i, rng):
    number = 10 + i + (9007199254740980 if kind == "long" else 0)
    if kind == "mixed":
        return str(rng.choice([f"{number}", f" {number}", f"{number}.0", f"{number:04d}"]))
    forms = {"padded": f"{number:06d}", "decimal": f"{number}.0", "text": f"p{number}"}
    return forms.get(kind, f"{number}")


def _numbers(kind, n, rng):
    if kind == "integers":
        return [str(v) for v in rng.integers(-2, 3, n)]
    if kind == "flags":
        return [str(bool(v)) for v in rng.integers(0, 2, n)]
    if kind == "halves":
        return [f"{v / 2:g}" for v in rng.integers(-2, 3, n)]
    return [f"{v:.6g}" for v in rng.uniform(-1, 1, n)]


def _make_odd(columns, mine, rng):
    for name in columns:
        if name == "id":
            continue
        for i in np.flatnonzero(mine):
            how = rng.random()
            if how < 0.5:
                columns[name][i] = str(rng.choice(ODD))
            elif how < 0.8:
                columns[name][i] = str(rng.choice(["0", "1", "-1", "1e30", "0.25"]))


# ------------------------------------------------------------------ what the user has in hand


def table(columns, form, rng):
    """(X, y, ids) as a user has them after reading the file."""
    if form in FORMS[-4:]:
        found = opened(columns, form)
        return found["X"], found["y"], found["id"]
    if form == "rows of Arrow":
        import pyarrow.csv

        found = pyarrow.csv.read_csv(io.BytesIO(csv(columns).encode()))
        return found.drop_columns(["id", "y"]), found["y"], found["id"]
    if form == "frame of polars":
        import polars as pl

        text = csv(columns).encode()
        try:
            found = pl.read_csv(text, infer_schema_length=None, try_parse_dates=True)
        except pl.exceptions.ComputeError:  # an older one, of a whole number beyond 64 bits: read as text
            found = pl.read_csv(text, infer_schema_length=0)
        return found.drop("id", "y"), found["y"], found["id"]
    frame = pd.read_csv(io.StringIO(csv(columns)))
    if form in ("nullable", "arrow"):
        # The user's own conversion: Arrow takes no whole numbers beyond 64 bits, and pandas 2 warns of large ones.
        with contextlib.suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            frame = frame.convert_dtypes(dtype_backend="pyarrow" if form == "arrow" else "numpy_nullable")
    if form == "categories":
        frame = frame.astype("category")
    X, y, ids = frame.drop(columns=["id", "y"]), frame["y"], frame["id"]
    if form in ("frame", "nullable", "arrow", "categories"):
        return X, y, ids
    if form == "array":  # a common type for all, as NumPy finds it
        return np.array(X.to_numpy().tolist()), np.array(y.tolist()), np.array(ids.tolist())
    if form == "masked":
        parts = X.to_numpy(), y.to_numpy(), ids.to_numpy()
        return tuple(np.ma.MaskedArray(part, mask=pd.isna(part)) for part in parts)
    if form == "lists":
        return X.to_numpy().tolist(), y.tolist(), ids.tolist()
    rows = X.to_numpy()
    if form == "objects":
        return rows.astype(object), y.to_numpy(dtype=object), ids.to_numpy(dtype=object)
    if form == "dask":
        import dask.array as da

        return da.from_array(rows, chunks=(7, rows.shape[1])), y.to_numpy(), ids
    if form == "xarray":
        import xarray as xr

        return xr.DataArray(rows, dims=("person", "point")), xr.DataArray(y.to_numpy(), dims="person"), ids
    assert form == "lazy", form
    return Lazy(rows), Lazy(y.to_numpy()), ids


def opened(columns, form):
    """A table that was opened, after another library read the file and chose types for its columns."""
    from fdadp import open_curves

    text, by_prefix = csv(columns), {"curves": {"X": "x"}}
    by_prefix["grids"] = {"X": np.linspace(0, 1, sum(name.startswith("x") for name in columns))}
    if form == "Dataset":
        import xarray as xr

        frame = pd.read_csv(io.StringIO(text))
        points = [name for name in frame.columns if name.startswith("x")]
        rows = {name: ("row", frame[name].to_numpy()) for name in ("id", "y")}
        return open_curves(xr.Dataset({"X": (("row", "point"), frame[points].to_numpy()), **rows}))
    if form == "polars":
        import polars as pl

        return open_curves(pl.read_csv(text.encode(), infer_schema_length=None), **by_prefix)
    folder = Path(tempfile.mkdtemp())
    (folder / "a.csv").write_text(text, encoding="utf-8")
    if form == "LazyFrame":
        import polars as pl

        return open_curves(pl.scan_csv(folder / "a.csv", infer_schema_length=None), **by_prefix)
    if form == "DuckDB":
        import duckdb

        return open_curves(duckdb.from_df(pd.read_csv(io.StringIO(text))), **by_prefix)
    import pyarrow.csv
    import pyarrow.parquet

    table = pyarrow.csv.read_csv(folder / "a.csv")
    if form == "parquet":
        pyarrow.parquet.write_table(table, folder / "a.parquet", row_group_size=7)
        table = folder / "a.parquet"
    return open_curves(table, **by_prefix)


def two_tables(columns, others, form, rng):
    """The curves of two files, labelled by their ids, each file in an order of its own."""
    return tuple(_labelled(own, form, rng.permutation(len(own["id"]))) for own in (columns, others))


def _labelled(columns, form, order):
    text = csv({name: [own[i] for i in order] for name, own in columns.items() if name != "y"})
    if form == "files":
        path = Path(tempfile.mkdtemp()) / "a.csv"
        path.write_text(text, encoding="utf-8")
        return path
    frame = pd.read_csv(io.StringIO(text))
    if form in ("nullable", "arrow"):
        with contextlib.suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            frame = frame.convert_dtypes(dtype_backend="pyarrow" if form == "arrow" else "numpy_nullable")
    if form == "categories":
        frame = frame.astype("category")
    frame = frame.set_index("id")
    if form == "xarray":
        import xarray as xr

        return xr.DataArray(frame.to_numpy(), {"id": frame.index}, ("id", "point"))
    return frame


class Lazy:
    """What HDF5 gives: a shape, a type, slices."""

    def __init__(self, values):
        self._values = values
        self.shape, self.dtype = values.shape, values.dtype

    def __getitem__(self, rows):
        return self._values[rows]


def source(columns, rng, *, shuffled, with_ids, more):
    """A source that reads the file in chunks on each pass: (X, ids) or X, shuffled anew, or with more rows later on.

    Not both: which rows of a person come first would depend on other persons (``docs/theory/kernel.md#persons``).
    """
    text, seed, passes = csv(columns), int(rng.integers(2**31)), []
    size = int(rng.integers(3, 15))

    def read():
        passes.append(0)
        lines = text.splitlines()
        body = lines[1:] + (lines[1 : 1 + more] if len(passes) > 2 else [])
        if shuffled and not more:
            body = [body[i] for i in np.random.default_rng([seed, len(passes)]).permutation(len(body))]
        for piece in pd.read_csv(io.StringIO("\n".join([lines[0], *body]) + "\n"), chunksize=size):
            X = piece.drop(columns=["id", "y"])
            yield (X, piece["id"]) if with_ids else X

    return read
