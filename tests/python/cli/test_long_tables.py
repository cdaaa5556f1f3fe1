"""Private long tables: one row a person, a function of that person's lines and of public points alone."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from fdadp.cli.main import app
from fdadp.functional.files.csv_curves import CsvLines
from fdadp.private.public.long_tables import LongLines

LINES = ["p1,0,1.5", "p1,1,2", "p2,0,7", "p2,0.0,7.0", "p2,1,8", "P2,1,9", "p1,3,4", "p3,9,1", ",0,1", "p4,0", "p5,0,?"]
LABELS = ("0", "1", "3")


def rows_of(folder: Path, lines: list[str]) -> dict[str, list[float]]:
    path = folder / "long.csv"
    path.write_text("\n".join(["id,time,value", *lines]) + "\n")
    long = LongLines(CsvLines.of(path), ("id", "time", "value"), LABELS)
    return {row[0]: [float(v) for v in row[1:]] for block in long.blocks() for row in block}


def test_a_row_is_made_of_the_persons_own_lines_in_any_order(tmp_path):
    nan = float("nan")
    wanted = {"p1": [1.5, 2, 4], "p2": [7, 8, nan], "P2": [nan, 9, nan], "p3": [nan] * 3, "p5": [nan] * 3}
    for seed in range(20):
        lines = random.Random(seed).sample(LINES, len(LINES))
        found = rows_of(tmp_path, lines)
        assert found.keys() == wanted.keys()
        for name, row in wanted.items():
            np.testing.assert_array_equal(found[name], row)


def test_values_that_differ_at_one_point_are_missing_whichever_comes_first(tmp_path):
    for lines in (["a,0,1", "a,0,2", "a,0,1", "b,0,3"], ["a,0,2", "b,0,3", "a,0,1"]):
        found = rows_of(tmp_path, lines)
        assert np.isnan(found["a"]).all() and found["b"][0] == 3


def test_a_persons_lines_change_no_other_row(tmp_path):
    before = rows_of(tmp_path, LINES)
    for more in (["p9,0,1e308"] * 3, ["p1,0,77"], ['p9,"0,1'], ["p1"], ["p9,2,1", "p9,x,1"]):
        after = rows_of(tmp_path, LINES + more)
        for name in before.keys() - {"p1"}:
            np.testing.assert_array_equal(before[name], after[name])


@pytest.mark.parametrize(
    "grid, says",
    [
        ([], "--grid must give the points of X"),
        (["--grid", "X=0:1"], "--grid must be LOW:HIGH:COUNT"),
        (["--grid", "X=0:1:1"], "--grid must be LOW:HIGH:COUNT"),
        (["--grid", "X=0,b"], "columns of --grid must all be points of one grid"),
        (["--grid", "X=0:1:2", "--grid", "X=0,1"], "must be given once of each column"),
        (["--grid", "Z=0:1:2"], "--grid must name a file of curves"),
        (["--grid", "X=0:1:2", "--long", "id,when,value"], "--long must name columns of"),
        (["--grid", "X=0:1:2", "--id", "value"], "--id must be the first column of --long"),
    ],
)
def test_what_is_wrong_is_said_before_a_row_is_read(tmp_path, monkeypatch, grid, says):
    monkeypatch.chdir(tmp_path)
    Path("x.csv").write_text("id,time,value\n" + "\n".join(LINES))
    Path("people.csv").write_text("id,y,value\np1,1,0\n")
    own = ["--curves=X=x.csv", "--table=people.csv", "--long=id,time,value", "--bounds=X=0:9", "--bounds=y=0:9"]
    result = CliRunner().invoke(app, ["fit", "y ~ lf(X)", *own, "--epsilon=1", "--n=5", *grid])
    assert result.exit_code != 0
    assert says in " ".join(result.output.split())
    assert sorted(p.name for p in Path().iterdir()) == ["people.csv", "x.csv"]


def test_components_of_a_long_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0)
    rows = [f"p{i},{t},{v:.3f}" for i in range(60) for t, v in enumerate(draw.normal(5, 1) + draw.normal(size=4) / 9)]
    released = []
    for seed in (0, 1):
        random.Random(seed).shuffle(rows)
        Path("x.csv").write_text("id,time,value\n" + "\n".join(rows))
        own = ["--long=id,time,value", "--grid=Y=0:3:4", "--bounds=0:10", "--epsilon=50", "--n=60", "--components=1"]
        result = CliRunner().invoke(app, ["fpca", "x.csv", *own, "--out", f"m{seed}.npz"])
        assert result.exit_code == 0, result.output
        released.append(np.loadtxt(f"m{seed}.csv", delimiter=",", skiprows=1))
    assert released[0].shape[0] == 4
    assert abs(released[0][:, 1].mean() - 5) < 1 and abs(released[1][:, 1].mean() - 5) < 1
