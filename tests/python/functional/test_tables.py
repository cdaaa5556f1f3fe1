"""Curves in files: what is understood, and what is refused with which words."""

from __future__ import annotations

import gzip
import io
import re
import zipfile
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fdadp import open_curves
from fdadp.errors import FileFormatError, InputError
from fdadp.functional.files.curve_files import read_curves, write_curves
from fdadp.functional.tables.curve_inputs import as_curves


def put(folder: Path, text: str, name: str = "X.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "columns", "index"),
    [
        ("0,0.5,1\n1,2,3\n4,5,6\n", [0, 0.5, 1], [0, 1]),
        (",0,0.5,1\na,1,2,3\nb,4,5,6\n", [0, 0.5, 1], ["a", "b"]),
        ("place,0,0.5,1\n\na,1,2,3\nb,4,5,6\n\n", [0, 0.5, 1], ["a", "b"]),  # blank lines
        ("id,0,0.5,1\n7,1,2,3\n8,4,5,6\n", [0, 0.5, 1], ["7", "8"]),  # numbers as labels: only the header says so
        ("Mon,Tue,Wed\n1,2,3\n4,5,6\n", ["Mon", "Tue", "Wed"], [0, 1]),
        ("who,Mon,Tue,Wed\na,1,2,3\nb,4,5,6\n", ["Mon", "Tue", "Wed"], ["a", "b"]),
        ("\ufeff0,0.5,1\r\n1,2,3\r\n4,5,6\r\n", [0, 0.5, 1], [0, 1]),  # from Excel
        ("1,0.5,0\n1,2,3\n4,5,6\n", [1, 0.5, 0], [0, 1]),  # spectra by wave number
        ("id,t0,t1,t2\n7,1,2,3\n8,4,5,6\n", ["t0", "t1", "t2"], ["7", "8"]),
        ("patient_id,Mon,Tue,Wed\n7,1,2,3\n8,4,5,6\n", ["Mon", "Tue", "Wed"], ["7", "8"]),
        (
            "who,2020-01-01,2020-01-02,2020-01-05\n7,1,2,3\n8,4,5,6\n",
            ["2020-01-01", "2020-01-02", "2020-01-05"],
            ["7", "8"],
        ),
        ('place,0,0.5,1\n"St. John, NB",1,2,3\n"x",4,5,6\n', [0, 0.5, 1], ["St. John, NB", "x"]),
    ],
)
def test_csv(tmp_path: Path, text: str, columns: list[object], index: list[object]) -> None:
    frame = read_curves(put(tmp_path, text))
    np.testing.assert_array_equal(frame.to_numpy(), [[1, 2, 3], [4, 5, 6]])
    assert list(frame.columns) == columns and list(frame.index) == index
    packed = tmp_path / "X.csv.gz"
    packed.write_bytes(gzip.compress(text.encode("utf-8")))
    pd.testing.assert_frame_equal(read_curves(packed), frame)


def test_csv_without_header_and_missing_values(tmp_path: Path) -> None:
    frame = read_curves(put(tmp_path, "3,2,1\n1,NA,\n"), header=False)
    np.testing.assert_array_equal(frame.to_numpy(), [[3, 2, 1], [1, np.nan, np.nan]])
    assert isinstance(frame.columns, pd.RangeIndex)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "got an empty file"),
        ("\n\n", "got an empty file"),
        ("0,0.5,1\n", "got a header row and nothing below it"),
        ("0,0.5,1\n1,2,3\n4,5\n", "must have 3 fields in every row as in its first, got 2 in line 3"),
        ("0,0.5,1\n1,2,3\n\n4,5,6,7\n", "got 4 in line 4"),
        ("0,0.5,1\n1,2,3\n4,five,6\n", r"got 'five' in line 3, column 2 \('0.5'\)"),
        ("a,0,0.5\nx,1,2\ny,4,1;5\n", r"got '1;5' in line 3, column 3 \('0.5'\)"),
        ("Mon,Tue\n1,2\n#N/A!,3\n", r"got '#N/A!' in line 3, column 1 \('Mon'\)"),
        ("0,1,0.5\n1,2,3\n", "increasing grid, or words, in its first row, got 1 followed by 0.5.*--no-header"),
        ("3,1,2\n1,2,3\n", "got 3 followed by 1.*--no-header"),
        ("0,0.5,age\n1,2,3\n", "got 'age' among numbers"),
        ("0,0.5,0.5\n1,2,3\n", "got 0.5 followed by 0.5"),
        ("name\na\nb\n", "labels only"),
    ],
)
def test_bad_csv(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(FileFormatError, match=words):
        read_curves(put(tmp_path, text))


def test_files_that_are_something_else(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"must end in one of .csv, .csv.gz, .parquet, .npz, got '.xlsx'"):
        read_curves(tmp_path / "X.xlsx")
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_curves(tmp_path / "X.csv")
    for name in ("X.csv.gz", "X.npz", "X.parquet"):
        with pytest.raises(FileFormatError, match=name):
            read_curves(put(tmp_path, "0,1\n1,2\n", name))
    (tmp_path / "Z.csv").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(FileFormatError, match=r"must be (a )?text"):
        read_curves(tmp_path / "Z.csv")
    whole = gzip.compress(b"0,1\n" + b"1,2\n" * 1000)
    (tmp_path / "cut.csv.gz").write_bytes(whole[:-10])
    with pytest.raises(FileFormatError, match=r"cut.csv.gz"):
        read_curves(tmp_path / "cut.csv.gz")
    noise = np.random.default_rng(0).normal(size=(500, 3))
    packed = gzip.compress(pd.DataFrame(noise, columns=["a_0", "a_1", "b"]).to_csv(index=False).encode())
    for at, read in product((11, len(packed) // 2), (read_curves, lambda path: open_curves(path).read())):
        (tmp_path / "bad.csv.gz").write_bytes(packed[:at] + b"\xff" * 99 + packed[at + 99 :])
        with pytest.raises(FileFormatError, match=r"bad.csv.gz must be a text file in CSV format, got .*decompressing"):
            read(tmp_path / "bad.csv.gz")


def test_broken_npz_files_are_named_and_never_a_raw_error(tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.savez_compressed(stream, values=np.random.default_rng(0).normal(size=(30, 40)))
    good = stream.getvalue()
    encrypted = bytearray(good)
    for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        encrypted[encrypted.index(magic) + offset] |= 1
    stream = io.BytesIO()
    np.save(stream, np.eye(3))
    files = {
        "encrypted": bytes(encrypted),
        "single array": stream.getvalue(),
        "zlib": good[:300] + bytes(90) + good[390:],
    }
    nested = b"\x93NUMPY\x01\x00" + (9000).to_bytes(2, "little") + b"(" * 8999 + b"\n"
    for name, content in {
        "nested.npy": nested,
        "text.txt": b"1 2",
        "huge.npy": nested[:10] + b"{" * 8999 + b"\n",
    }.items():
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as file:
            file.writestr(name, content)
        files[name] = stream.getvalue()
    path = tmp_path / "X.npz"
    for content in files.values():
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match=re.escape(str(path))):
            read_curves(path)


def test_npz(tmp_path: Path) -> None:
    values = np.arange(6.0).reshape(2, 3)
    path = tmp_path / "X.npz"
    np.savez(path, values=values, grid=[0.0, 0.5, 2.0], labels=["a", "b"])
    frame = read_curves(path)
    assert list(frame.columns) == [0, 0.5, 2] and list(frame.index) == ["a", "b"]
    np.testing.assert_array_equal(frame, values)
    np.savez(path, any_name=values)
    assert isinstance(read_curves(path).columns, pd.RangeIndex)
    for arrays, words in (
        ({"a": values, "b": values}, "got a, b"),
        ({}, "got none"),
        ({"values": values[0]}, "shape"),
        ({"values": np.array([["x", "y"]])}, "numbers"),
        ({"values": np.empty((0, 3))}, "numbers of shape"),
        ({"values": values, "grid": [0.0, 1.0]}, "3 entries in 'grid'"),
        ({"values": values, "labels": ["a"]}, "2 entries in 'labels'"),
        ({"values": np.array([[{}]], dtype=object)}, "plain arrays, got objects$"),  # not NumPy's advice to unpickle
    ):
        np.savez(path, **arrays)
        with pytest.raises(FileFormatError, match=words):
            read_curves(path)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".npz", ".parquet"])
@pytest.mark.parametrize("labelled", [True, False])
def test_round_trip_is_exact(tmp_path: Path, suffix: str, labelled: bool) -> None:
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    index = ["a", "b", "c"] if labelled else None
    frame = pd.DataFrame(rng.normal(size=(3, 4)) * 1e-7, index=index, columns=pd.Index([0.1, 1 / 3, 2 / 3, 7.0]))
    path = tmp_path / "new" / f"Y{suffix}"
    write_curves({path: frame})
    back = read_curves(path)
    np.testing.assert_array_equal(back.to_numpy(), frame.to_numpy())
    np.testing.assert_array_equal(back.columns.to_numpy(dtype=float), frame.columns.to_numpy())
    assert list(back.index) == (index or [0, 1, 2])
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_parquet_with_labels_in_a_column_and_with_text(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "X.parquet"
    pd.DataFrame({"who": ["a", "b"], "0.0": [1.0, 2], "0.5": [3, 4]}).to_parquet(path)
    frame = read_curves(path)
    assert list(frame.index) == ["a", "b"] and list(frame.columns) == [0, 0.5]
    pd.DataFrame({"0.0": [1.0, 2], "0.5": ["x", "4"]}).to_parquet(path)
    with pytest.raises(FileFormatError, match=r"got a column '0.5'"):
        read_curves(path)


def test_nothing_is_half_written(tmp_path: Path) -> None:
    good = pd.DataFrame(np.eye(2), columns=pd.Index([0.0, 1.0]))
    bad = pd.DataFrame([["no number", 1.0]])
    with pytest.raises(ValueError, match="could not convert"):
        write_curves({tmp_path / "a.csv": good, tmp_path / "b.npz": bad})
    assert list(tmp_path.iterdir()) == []


# --- long tables, and those with one curve a column


LONG = pd.DataFrame(
    {
        "child": ["b", "b", "b", "a", "a", "c", "c", "c"],
        "age": [1.0, 2.0, 4.0, 2.0, 1.0, 4.0, 1.0, 9.5],
        "height": [75.0, 85.0, 100.0, 86.0, 74.0, None, 73.0, 130.0],
    }
)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".npz"])
def test_long_tables_are_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"heights{suffix}"
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
        LONG.to_parquet(path)
    elif suffix == ".npz":
        np.savez(
            path, **{name: LONG[name].to_numpy() for name in ("age", "height")}, child=LONG["child"].to_numpy("U1")
        )
    else:
        LONG.to_csv(path, index=False)
    frame = read_curves(path, long=("child", "age", "height"))
    assert list(frame.index) == ["b", "a", "c"] and list(frame.columns) == [1, 2, 4, 9.5]
    np.testing.assert_array_equal(frame, [[75, 85, 100, np.nan], [74, 86, np.nan, np.nan], [73, np.nan, np.nan, 130]])
    np.testing.assert_array_equal(as_curves(frame).grid, [1, 2, 4, 9.5])


def test_long_table_of_dates(tmp_path: Path) -> None:
    rows = [f"{day},{who},{k}" for who in "ab" for k, day in enumerate(("2020-03-01", "2020-02-28", "2020-02-29"))]
    frame = read_curves(put(tmp_path, "\n".join(["day,who,load", *rows])), long=("who", "day", "load"))
    np.testing.assert_array_equal(frame, [[1, 2, 0], [1, 2, 0]])
    curves = as_curves(frame)
    np.testing.assert_array_equal(curves.grid, [0, 1, 2])
    assert curves.unit is not None and curves.unit.endswith("since 2020-02-28")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id,s,x\na,0,1\n", "must have columns id, s, value, got id, s, x"),
        ("id,s,value\n", "nothing below it"),
        ("id,s,value\na,0,1\na,0,2\n", "one value a curve and point, got two for 'a' at '0'"),
        ("id,s,value\na,0,1\n,0.5,2\n", "an entry in column 'id' of every row, got none in row 1"),
        ("id,s,value\na,NA,1\n", "an entry in column 's' of every row, got none in row 0"),
        ("id,s,value\na,0,1\na,1,tall\n", "got 'tall' in row 1, column 'value'"),
        ("id,s,s,value\na,0,1,3\n", "must have one column 's', got 2"),
        ("id,s,value\na,early,1\n", "numbers, dates or times in column 's', got 'early'"),
    ],
)
def test_bad_long_tables(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(FileFormatError, match=words):
        read_curves(put(tmp_path, text), long=("id", "s", "value"))


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_missing_entries_of_nullable_long_frames(backend: Any) -> None:
    names = ("id", "s", "value")
    frame = pd.DataFrame({"id": ["a", "a", "b"], "s": [0, 1, 0], "value": [1.5, np.nan, 4.0]})
    nullable = frame.convert_dtypes(dtype_backend=backend)
    pd.testing.assert_frame_equal(read_curves(nullable, long=names), read_curves(frame, long=names))
    with pytest.raises(FileFormatError, match="an entry in column 'id' of every row, got none in row 1"):
        read_curves(nullable.assign(id=nullable["id"].where(nullable["s"] == 0)), long=names)
    nullable.columns = pd.Index(["id", "value", "value"])
    with pytest.raises(FileFormatError, match="must have one column 'value', got 2"):
        read_curves(nullable, long=("id", "value", "s"))


def test_frames_of_complex_numbers_are_refused() -> None:
    """Their imaginary parts were left out, with no more than a warning of NumPy."""
    frame = pd.DataFrame(np.ones((2, 3)) * 1j)
    with pytest.raises(FileFormatError, match="must hold numbers, got a column 0 of type complex128"):
        read_curves(frame)
    with pytest.raises(InputError, match="X must be numeric with one curve per row, got DataFrame: complex values"):
        as_curves(frame)


def test_dates_and_times_are_no_values_of_curves() -> None:
    """They were numbers of days or of nanoseconds, as their type had it."""
    days = np.arange(6).reshape(2, 3).astype("datetime64[D]")
    for values in (days, days - days[0, 0]):
        for given in (values, pd.DataFrame(values)):
            with pytest.raises(InputError, match=r"X must be numeric with one curve per row, got .*: dates or times"):
                as_curves(given)


def test_bad_names_of_long_tables(tmp_path: Path) -> None:
    path = put(tmp_path, "id,s,value\na,0,1\n")
    for long in ("abc", ("id", "s"), ("id", "s", "s"), ("id", "s", 3), 7):
        with pytest.raises(InputError, match="long must be the names of three columns"):
            read_curves(path, long=long)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="header must be True"):
        read_curves(path, long=("id", "s", "value"), header=False)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("ids", ["numbers", "text"])
def test_long_tables_read_as_curves_are_refused(tmp_path: Path, suffix: str, ids: str) -> None:
    n, size = 7, 5
    who = np.repeat(np.arange(n), size)
    frame = pd.DataFrame(
        {"who": who if ids == "numbers" else [f"p{i}" for i in who], "when": np.tile(np.arange(size), n)}
    )
    frame["pulse"] = np.random.default_rng(0).normal(size=n * size)
    path = tmp_path / f"long{suffix}"
    if suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)
    with pytest.raises(
        FileFormatError, match=r"one curve a row; it looks like a long table.*read_curves\(table, long="
    ):
        read_curves(path)
    assert read_curves(path, long=("who", "when", "pulse")).shape == (n, size)


@pytest.mark.parametrize("names", [["p1", "p2", "p3"], ["Oslo", "Rome", "Bonn"]])
@pytest.mark.parametrize("time", ["numbers", "dates"])
def test_one_curve_a_column_is_refused(tmp_path: Path, names: list[str], time: str) -> None:
    rng = np.random.default_rng(0)
    grid = np.linspace(0, 1, 40)
    table = pd.DataFrame(np.sin(4 * grid)[:, None] + 3 * rng.normal(size=3), columns=names)
    table.insert(0, "time", grid if time == "numbers" else pd.date_range("2020-01-01", periods=40).astype(str))
    path = tmp_path / "X.csv"
    table.to_csv(path, index=False)
    with pytest.raises(FileFormatError, match="one curve a row; it looks like one curve a column"):
        read_curves(path)
