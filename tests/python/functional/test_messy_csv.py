"""Files as other programs write them: semicolons, decimal commas, UTF-16, long tables with time stamps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fdadp import Privacy, PrivateMean, open_curves
from fdadp._common.calling_language import door
from fdadp.errors import FileFormatError, InputError
from fdadp.functional.files import csv_curves
from fdadp.functional.files.csv_curves import CsvLines
from fdadp.functional.files.curve_files import read_curves
from fdadp.functional.tables.curve_inputs import as_curves
from fdadp.privacy.private_entries import meaning

HOURS = [f"h{hour:02d}" for hour in range(6)]
VALUES = np.random.default_rng(0).normal(60, 5, (30, 6)).round(3)
GERMAN = {"sep": ";", "decimal": ","}


def written(path: Path) -> Path:
    pd.DataFrame(VALUES, columns=HOURS).rename_axis("id").to_csv(path, sep=";", decimal=",")
    return path


@pytest.mark.parametrize("read", [read_curves, open_curves])
def test_semicolons_are_detected_and_the_cure_is_named(tmp_path: Path, read: object) -> None:
    path = written(tmp_path / "x.csv")
    with pytest.raises(
        FileFormatError, match=r"got semicolons. Say sep=';'. Where .* commas, add decimal=',' \(docs/your-csv.md\)$"
    ):
        read(path)  # type: ignore[operator]
    with (
        door("shell"),
        pytest.raises(FileFormatError, match=r"Say --sep ';'. Where .* commas, add --decimal , \(docs/your-csv.md\)$"),
    ):
        read(path)  # type: ignore[operator]
    with pytest.raises(InputError, match="sep must be"):
        read(path, sep="|")  # type: ignore[operator]


def test_decimal_commas_are_read_as_points_are(tmp_path: Path) -> None:
    path = written(tmp_path / "x.csv")
    np.testing.assert_array_equal(read_curves(path, **GERMAN).to_numpy(), VALUES)
    opened = open_curves(path, curves={"X": "h"}, **GERMAN)["X"]
    np.testing.assert_array_equal(as_curves(opened).values, VALUES)

    def mean(data: object) -> np.ndarray:
        privacy = Privacy(8.0, 1e-6, n=30, random_state=0)
        return PrivateMean(privacy=privacy, bounds=(40, 80), allow_useless=True).fit(data, t=np.arange(6.0)).mean_

    np.testing.assert_array_equal(mean(opened), mean(VALUES))


PEOPLE = pd.DataFrame({"pid": [f"p{i}" for i in range(30)], "age": np.arange(30) + 20})


@pytest.mark.parametrize("sex", [True, False])
@pytest.mark.parametrize("where", ["python", "shell", "r"])
@pytest.mark.parametrize("as_file", [True, False])
def test_of_curves_with_other_columns_beside_them_the_error_names_the_call(
    tmp_path: Path, as_file: bool, where: str, sex: bool
) -> None:
    """The error said where a text was, or to drop columns by pandas, and no page named the call."""
    table = pd.concat([PEOPLE, pd.DataFrame(VALUES, columns=HOURS)], axis=1)
    if sex:
        table["sex"] = "f"
    path = tmp_path / "x.csv"
    table.to_csv(path, index=False)
    cures = {
        "python": r"open_curves\(table, curves=\{'X': 'h'\}\) takes as curves the columns that start with 'h'",
        "shell": r"--curves 'X=FILE:h\*' takes as curves",
        "r": r'X = as.matrix\(data\[startsWith\(names\(data\), "h"\)\]\) takes as curves',
    }
    with door(where), pytest.raises(FileFormatError, match=cures[where]) as caught:
        read_curves(path if as_file else table)
    assert ("set_index" in str(caught.value)) == (where == "python" and not sex)
    found = open_curves(path if as_file else table, curves={"X": "h"})
    np.testing.assert_array_equal(as_curves(found["X"]).values, VALUES)  # type: ignore[index]


@pytest.mark.parametrize("as_file", [True, False])
def test_a_long_table_with_time_stamps_names_the_argument(tmp_path: Path, as_file: bool) -> None:
    table = pd.DataFrame({"who": ["a", "b"] * 9, "when": ["2024-03-01 01:05"] * 18, "pulse": 1.0, "unit": 2.0})
    path = tmp_path / "x.csv"
    table.to_csv(path, index=False)
    given = path if as_file else table
    with pytest.raises(FileFormatError, match=r'read_curves\(table, long=\("id", "s", "value"\)\) makes curves'):
        read_curves(given)
    with door("shell"), pytest.raises(FileFormatError, match="Of a long table --long id,s,value makes curves"):
        read_curves(given)


@pytest.mark.parametrize("read", [read_curves, open_curves])
def test_utf16_is_named(tmp_path: Path, read: object) -> None:
    path = tmp_path / "x.csv"
    path.write_text("h00,h01,h02\n1,2,3\n", encoding="utf-16")
    with pytest.raises(FileFormatError, match="must be text in UTF-8, got UTF-16"):
        read(path)  # type: ignore[operator]


def test_a_long_frame_with_time_stamps_in_any_order_of_rows(tmp_path: Path) -> None:
    stamps = [f"2024-03-01 0{hour}:05" for hour in range(6)]
    rows = [(f"p{i}", stamp, VALUES[i, j]) for i in range(30) for j, stamp in enumerate(stamps)]
    frame = pd.DataFrame(rows, columns=["who", "when", "pulse"])
    frame.to_csv(tmp_path / "long.csv", index=False)
    wanted = read_curves(frame, long=("who", "when", "pulse"))
    np.testing.assert_array_equal(wanted.to_numpy(), VALUES)
    np.testing.assert_array_equal(as_curves(wanted).grid, np.arange(6))
    shuffled = frame.sample(frac=1, random_state=0)
    long = ("who", "when", "pulse")
    for found in (read_curves(tmp_path / "long.csv", long=long), read_curves(shuffled, long=long)):
        pd.testing.assert_frame_equal(found.loc[wanted.index], wanted)


@pytest.mark.parametrize("seed", range(4))
def test_regular_lines_are_read_as_line_by_line(seed, tmp_path, monkeypatch):
    """Random files, half of them with odd fields, labels, ends of lines: the same curves, labels, or error."""
    rng, path = np.random.default_rng(seed), tmp_path / "curves.csv"
    odd = ["1", "-3", "", "nan", "NA", "1e5", "1e400", "x", "1_0", " 4 ", "+.5", "1.2.3", "-", "1e", '"7"', "é", "1;2"]
    fast, taken = csv_curves._of_regular_lines, []

    def read(reader):
        monkeypatch.setattr(csv_curves, "_of_regular_lines", reader)
        try:
            frame = read_curves(path)
        except FileFormatError as exc:
            return str(exc)
        return frame.to_numpy().tobytes(), [*frame.index], [*frame.columns], frame.index.dtype

    for _ in range(100):
        n, width = int(rng.integers(1, 12)), int(rng.integers(5, 10))
        rows = [[*map(str, rng.normal(size=width))] for _ in range(n)]
        first = str(rng.choice(["id", "a", "0"]))
        for i, row in enumerate(rows):
            row[0] = row[0] if first == "0" else f"p{i}"
        if rng.uniform() < 0.5:
            rows[rng.integers(n)][rng.integers(width)] = str(rng.choice(odd))
        if rng.uniform() < 0.1:
            rows[-1].pop()
        end = str(rng.choice(["\n", "\r\n", "\r"], p=[0.6, 0.3, 0.1]))
        lines = [",".join(row) for row in [[first, *map(str, range(1, width))], *rows]]
        path.write_bytes((end.join(lines) + end * int(rng.integers(0, 3))).encode())
        assert read(lambda *told: taken.append(fast(*told)) or taken[-1]) == read(lambda *_: None)
    assert 10 < sum(one is not None for one in taken) < 90


@pytest.mark.parametrize("seed", range(4))
def test_each_line_of_private_rows_means_what_it_means_alone(seed, tmp_path, monkeypatch):
    """Random lines, some of them odd: a row is the same whatever the others are, and however they are read."""
    rng, path = np.random.default_rng(seed), tmp_path / "rows.csv"
    odd = ["", "-0", "1e5", "1e400", "NA", "x", "1_0", " 4 ", "+.5", "1.2.3", "-", "1e", '"7"', 'a"', "é", "1;2", "\0"]
    odd += ["9" * 20, "1\r2", "\xff", "0." + "3" * 140_000]
    sep, mark = (",", ".") if seed else (";", ",")

    def rows(lines):
        path.write_bytes("\n".join([sep.join(map(str, ["id", *range(1, width)])), *lines]).encode("latin-1"))
        every = list(range(width))
        blocks = CsvLines.of(path, sep, mark).blocks()
        return [[repr(meaning(e)) for e in row] for block in blocks for row in block[:, every]]

    for _ in range(25):
        width = int(rng.integers(7, 12))
        table = [[f"p{i}", *map(repr, rng.normal(size=width - 1).tolist())] for i in range(int(rng.integers(1, 9)))]
        for _ in range(int(rng.integers(4))):
            table[rng.integers(len(table))][rng.integers(width)] = str(rng.choice(odd))
        if rng.uniform() < 0.3:
            table[-1].pop()
        lines = [sep.join(row) for row in table] + [""] * int(rng.integers(3))
        together, alone = rows(lines), [row for line in lines for row in rows([line, "\n"])[:-1]]
        assert together == alone[: len(together)] and len(alone) - len(together) <= (lines[-1] == "")
        monkeypatch.setattr(csv_curves, "ENOUGH", 100)
        assert rows(lines) == together
        monkeypatch.undo()


def test_regular_lines_of_private_rows_are_numbers_at_once(tmp_path):
    path = tmp_path / "rows.csv"
    names = ",".join(map(str, range(1, 8)))
    path.write_text(f"id,{names}\n1,{names}\nb,1,2,x,4,5,6,7\nc,,-0,.5,1e3,5,6,7\n\n\n")
    (block,) = CsvLines.of(path).blocks()
    assert block[0].tolist() == ["1", *map(float, range(1, 8))]
    assert block[1].tolist() == ["b", "1", "2", "x", "4", "5", "6", "7"]
    assert repr(block[2].tolist()) == "['c', nan, -0.0, 0.5, 1000.0, 5.0, 6.0, 7.0]"
    assert block[3:].tolist() == [[None] * 8] * 2


def test_a_zero_keeps_its_sign_whatever_the_other_rows_lack(tmp_path):
    """A parser made a column of whole numbers and gaps one of integers first, so that -0 became 0."""
    path = tmp_path / "rows.csv"
    others = ",2.5" * 6
    path.write_text(f"id,1,2,3,4,5,6,7\na,-0{others}\nb,{others}\n")
    (block,) = CsvLines.of(path).blocks()
    assert np.signbit(block[:, 1])[0] and np.isnan(block[1:, 1]).all()
    assert np.signbit(read_curves(path).iloc[0, 0])


def test_the_place_of_other_bytes_is_told_whether_lines_are_regular_or_not(tmp_path):
    path = tmp_path / "curves.csv"
    text = "id,1,2,3,4,5,6,7\na,1,2,3,4,5,6,7\nÿ,1,2,3,4,5,6,{}\n"
    for last in ("7", " 7"):
        path.write_bytes(text.format(last).encode("latin-1"))
        with pytest.raises(FileFormatError, match="0xff in position 33"):
            read_curves(path)


def test_rows_longer_than_the_first_line_are_refused(tmp_path):
    """Such as lines that all end in a comma: pandas gave the second field the name of the first, without a word."""
    path = tmp_path / "people.csv"
    for end in (",", ",9", ",9,9"):
        path.write_text(f"id,age,pulse\n\n0,34,60{end}\n1,51,70{end}\n")
        with pytest.raises(
            FileFormatError, match=rf"3 fields in every row as in its first, got {3 + end.count(',')} in"
        ):
            open_curves(path)["age"].values()


def test_a_column_without_a_label_is_read_by_none(tmp_path):
    """As of the labels of rows that pandas writes first, or of commas at the ends of all lines."""
    path = tmp_path / "people.csv"
    path.write_text(",Unnamed: 0,age\n7,8,34\n9,10,51\n")
    assert {name: list(own) for name, own in open_curves(path).read().items()} == {
        "": [7, 9],
        "Unnamed: 0": [8, 10],
        "age": [34, 51],
    }
    assert list(open_curves(path, rows="")["age"].values().index) == [7, 9]


def test_a_text_with_underscores_is_no_number(tmp_path):
    """Python takes "1_0" for 10, and pandas, polars, R and private fits for a text."""
    path = tmp_path / "x.csv"
    path.write_text("0,0.5,1\n1,1_0,3\n4,5,6\n")
    for read in (read_curves, lambda path: open_curves(path).read()):
        with pytest.raises(FileFormatError, match="must hold numbers, got '1_0' in line 2, column 2"):
            read(path)
    path.write_text("x0,x1,x2,age\n1,1_0,3,4\n4,5,6,7\n")
    with pytest.raises(InputError, match="got '1_0' in row 0, at point 1"):
        open_curves(path, curves={"X": "x"})["X"].read()
    for entries in ([["1", "1_0"]], np.array([["1", "1_0"]]), pd.DataFrame({"a": [1.0], "b": ["1_0"]})):
        with pytest.raises(InputError, match="must be numeric with one curve per row, got '1_0' in row 0"):
            as_curves(entries)
    for odd, words in (
        ("a,0,1_0", "hold numbers, got '1_0'"),
        ("a,1_0,1", "have numbers, dates or times in column 's'"),
    ):
        path.write_text(f"id,s,v\n{odd}\nb,0,1\n")
        with pytest.raises(FileFormatError, match=words):
            read_curves(path, long=("id", "s", "v"))
    path.write_text("1_0,2_0,3_0\n1,2,3\n")
    assert list(read_curves(path).columns) == ["1_0", "2_0", "3_0"]


def test_links_and_another_folder_lead_to_the_file_that_was_opened(tmp_path, monkeypatch):
    """A store of data keeps a file under a name of its own, without an end that says what it is."""
    for name, labels, curves in (("x.csv", range(1, 7), None), ("table.csv.gz", HOURS, {"X": "h"})):
        pd.DataFrame(VALUES, columns=labels).to_csv(tmp_path / name, index=False)
        (tmp_path / name).rename(tmp_path / f"stored{len(name)}")
        (tmp_path / name).symlink_to(f"stored{len(name)}")
        monkeypatch.chdir(tmp_path)
        found = open_curves(name, curves=curves)
        monkeypatch.chdir("/")
        own = found if curves is None else found["X"]
        np.testing.assert_array_equal(own.read().values, VALUES)
        assert [entries.shape for (entries,) in own.chunks()] == [(0, 6), (30, 6)]


@pytest.mark.parametrize("prefix", ["", "h"])
def test_points_with_decimal_commas_are_the_grid_of_all_fits(tmp_path, prefix):
    """They were words for private fits, and after a prefix for all: curves lay evenly on [0, 1], without a word."""
    path, points = tmp_path / "x.csv", [0.5, 1.0, 2.5, 3.5]
    rows = "a;" + ";".join(["1,5"] * 4)
    path.write_text("id;" + ";".join(f"{prefix}{str(p).replace('.', ',')}" for p in points) + f"\n{rows}\n")
    np.testing.assert_array_equal(as_curves(read_curves(path, **GERMAN)).grid, points)
    np.testing.assert_array_equal(CsvLines.of(path, **GERMAN).grid()[0], points)
    np.testing.assert_array_equal(CsvLines.of(path, **GERMAN, prefix=prefix or None).grid()[0], points)
    opened = open_curves(path, curves={"X": prefix} if prefix else None, **GERMAN)
    own = opened["X"] if prefix else opened
    np.testing.assert_array_equal(own.grid, points)
    np.testing.assert_array_equal(own.read().values, [[1.5] * 4])


def test_a_label_with_a_line_break_is_read_by_private_fits_too(tmp_path):
    """They took the first line for all labels, and had no rows."""
    path = tmp_path / "x.csv"
    path.write_text('id,x,"note, free\n(text)",z\n' + "".join(f"p{i},{i}.5,a,{i}\n" for i in range(5)))
    lines = CsvLines.of(path)
    assert lines.names == ("id", "x", "note, free\n(text)", "z")
    (block,) = lines.blocks()
    assert [list(row) for row in np.asarray(block, dtype=object)][4] == ["p4", "4.5", "a", "4"]
    path.write_text('id,x,"z\n' + "".join(f"p{i},{i}.5,{i}\n" for i in range(5)))
    lines = CsvLines.of(path)  # a quote that nothing ends is of one line
    assert lines.names == ("id", "x", "z") and len(next(lines.blocks())[:, 0]) == 5


def test_labels_keep_the_commas_that_are_no_points_of_curves(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("id;Dose 0,5;h0,5\na;1,5;2\n")
    assert CsvLines.of(path, **GERMAN).names == ("id", "Dose 0,5", "h0.5")
