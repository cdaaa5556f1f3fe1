"""``fdadp table1``: the numbers of the Python API, every mistake before a row is read, nothing half-written."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from test_cli import refused, run

from fdadp import Privacy, Study
from fdadp.cli.shared_options import PrivacyOptions
from fdadp.functional.files.csv_curves import CsvLines
from fdadp.privacy import Ledger
from fdadp.summaries import PrivateTable1

N = 500
COLUMNS = {"age": (18.0, 100.0), "sex": ["f", "m"], "arm": ["drug", "placebo"]}
BOUNDS = ("--bounds", "age=18:100", "--bounds", "sex=f,m", "--bounds", "arm=drug,placebo")
ASKED = (*BOUNDS, "--by", "arm", "--steps", "age=1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    path = Path(tmp_path_factory.mktemp("people"))
    rng = np.random.default_rng(1)
    people = pd.DataFrame({"id": [f"p{i // 2}" for i in range(N)], "arm": rng.choice(["drug", "placebo"], N)})
    people["sex"] = rng.choice(["f", "m", "?"], N)
    people["age"] = rng.normal(60, 12, N).round()
    people.loc[::20, "age"] = np.nan
    people.to_csv(path / "people.csv", index=False)
    people.to_parquet(path / "people.parquet")
    (path / "ragged.csv").write_text((path / "people.csv").read_text() + 'p1,drug\n"p2,drug,f,50\n')
    (path / "facts.json").write_text(json.dumps({"columns": COLUMNS, "by": "arm", "steps": {"age": 1}}))
    (path / "odd.json").write_text('{"columns": {"age": 3}}')
    (path / "list.json").write_text('{"columns": {"age": [18, 100]}, "steps": [1]}')
    (path / "broken.json").write_text("{")
    return path


@pytest.fixture
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise of simulations, for comparisons."""
    asked = PrivacyOptions.privacy
    monkeypatch.setattr(PrivacyOptions, "privacy", lambda own: dataclasses.replace(asked(own), random_state=3))


def here(folder: Path, groups: bool = False) -> PrivateTable1:
    """The same table in Python."""
    people = pd.read_csv(folder / "people.csv")
    privacy = Privacy(2.0, 1e-6, n=None if groups else N, random_state=3)
    made = PrivateTable1(privacy=privacy, columns=COLUMNS, by="arm", steps={"age": 1})
    return made.fit(people, groups=people["id"] if groups else None)


@pytest.mark.usefixtures("seeded")
@pytest.mark.parametrize("name", ["people.csv", "people.parquet", "facts"])
@pytest.mark.parametrize("own", [("--n", N), ("--groups", "id")])
def test_it_is_the_table_of_the_python_api(folder: Path, tmp_path: Path, name: str, own: tuple[Any, ...]) -> None:
    out = tmp_path / "t.npz"
    asked = ("--facts", folder / "facts.json") if name == "facts" else ASKED
    file = folder / ("people.csv" if name == "facts" else name)
    done = run("table1", file, *asked, "--epsilon", 2, "--delta", 1e-6, "--out", out, *own)
    assert done.exit_code == 0, done.output
    wanted = here(folder, groups="--groups" in own)
    assert (
        wanted.summary().as_text() in done.output and f"Ledger written to {tmp_path / 't.ledger.json'}" in done.output
    )
    loaded = PrivateTable1.load(out)
    pd.testing.assert_frame_equal(loaded.table_, wanted.table_)
    assert loaded.ledger_ == Ledger.from_json((tmp_path / "t.ledger.json").read_text())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.csv", "t.ledger.json", "t.npz"]
    assert wanted.summary().as_text() in run("summary", out).output


@pytest.mark.usefixtures("seeded")
def test_it_writes_text_html_csv_and_json_at_a_level(folder: Path, tmp_path: Path) -> None:
    files = [tmp_path / f"t.{kind}" for kind in ("txt", "html", "csv", "json")]
    written = [arg for file in files for arg in ("--write", file)]
    out = ("--out", tmp_path / "t.npz", "--level", 0.8)
    done = run("table1", folder / "people.csv", *ASKED, "--epsilon", 2, "--delta", 1e-6, "--n", N, *out, *written)
    assert done.exit_code == 0, done.output
    wanted = here(folder)
    rows = wanted.estimates_.at(0.8).frame
    text, html, table, records = (file.read_text() for file in files)
    assert text == f"{wanted.summary(0.8).as_text()}\n" and html == wanted.to_html(0.8)
    found = pd.read_csv(files[2], keep_default_na=False)
    np.testing.assert_allclose(found["low"].astype(float), rows["low"])
    assert list(found["group"].unique()) == ["drug", "placebo", "all"] and table.startswith("column,class,statistic")
    np.testing.assert_allclose([row["high"] for row in json.loads(records)], rows["high"])


@pytest.mark.usefixtures("seeded")
def test_lines_that_are_no_rows_count_as_missing_and_say_nothing(folder: Path, tmp_path: Path) -> None:
    done = run("table1", folder / "ragged.csv", *ASKED, "--epsilon", 2, "--out", tmp_path / "t.npz")
    assert done.exit_code == 0, done.output
    assert "ragged" not in done.output


def test_it_draws_on_a_study_which_gives_the_facts(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "trial.fdadp"
    Study.new(file, name="Trial", epsilon=2.0, delta=1e-6, unit="row", n=N, bounds=COLUMNS)
    asked = ("table1", folder / "people.csv", "--by", "arm", "--study", file, "--out", tmp_path / "t.npz")
    done = run(*asked, "--epsilon", 1, "--purpose", "table 1", "--quantiles", "none")
    assert done.exit_code == 0, done.output
    assert "is left" in done.output and Study(file).left < 1
    assert not Study(file).verify(tmp_path / "t.npz")
    left = Study(file).left
    again = ("--out", tmp_path / "again.npz", "--columns", "age,arm")
    assert "left" in refused(*asked[:-2], "--epsilon", 1.9, *again)
    assert "bounds of age must be those of the study" in refused(*asked, "--epsilon", 0.1, "--bounds", "age=0:1")
    assert Study(file).left == left and not (tmp_path / "again.npz").exists()


def test_a_plan_reads_no_row(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CsvLines, "blocks", lambda self: pytest.fail("read"))
    monkeypatch.chdir(tmp_path)
    done = run("table1", folder / "people.csv", *ASKED, "--epsilon", 1, "--n", N, "--dry-run")
    assert done.exit_code == 0 and "counts of sex" in done.output and "a cumulative count" in done.output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (ASKED, "--epsilon must be given: table1 is a private release"),
        ((*ASKED, "--epsilon", -1), "epsilon must be"),
        (("--epsilon", 1), "--bounds must be given for each column, as --bounds age=18:100"),
        (("--epsilon", 1, "--columns", "age"), "--bounds must be given for each column"),
        (("--epsilon", 1, "--bounds", "age"), "--bounds must be NAME=LOW:HIGH"),
        (("--epsilon", 1, "--bounds", "age=5:5"), "age"),
        (("--epsilon", 1, "--bounds", "weight=0:200"), "weight"),
        ((*BOUNDS, "--epsilon", 1, "--by", "age"), "by must be one of the columns with classes (sex, arm), got 'age'"),
        (("--epsilon", 1, "--bounds", "age=18:100", "--by", "arm"), "its classes are public, and must be given"),
        ((*ASKED, "--epsilon", 1, "--groups", "who"), "who"),
        ((*ASKED, "--epsilon", 1, "--steps", "age"), "--steps must be NAME=STEP"),
        ((*ASKED, "--epsilon", 1, "--quantiles", "a"), "--quantiles must be numbers with commas"),
        ((*ASKED, "--epsilon", 1, "--quantiles", "2"), "quantiles must lie between 0 and 1"),
        ((*ASKED, "--epsilon", 1, "--level", 2), "level"),
        ((*ASKED, "--epsilon", 1, "--columns", "age"), "--columns must be left out with --bounds"),
        ((*ASKED, "--epsilon", 1, "--out", "t.txt"), "--out must end in .npz"),
        ((*ASKED, "--epsilon", 1, "--write", "t.pdf"), "--write must end in .txt, .html, .csv or .json"),
        ((*ASKED, "--epsilon", 1, "--write", "t.csv", "--write", "t.csv"), "must be different files"),
        ((*ASKED, "--epsilon", 1, "--write", "table1.ledger.json"), "none of them the ledger"),
        ((*ASKED, "--epsilon", 1, "--facts", "facts.json"), "columns must be given once"),
        (("--epsilon", 1, "--bounds", "log(age)=0:5"), "must have the column 'log(age)'"),
        (("--epsilon", 1, "--facts", "list.json"), "steps must be numbers by column"),
        ((*ASKED, "--epsilon", 1, "--steps", "age=2"), "--steps must be given once of each column, got age twice"),
        ((*ASKED, "--epsilon", 1, "--write", "people.csv/t.csv"), "a file that can be written"),
        (("--epsilon", 1, "--facts", "odd.json"), "a list of classes for age, got 3"),
        (("--epsilon", 1, "--facts", "broken.json"), "must be JSON"),
        (("--epsilon", 1, "--facts", "none.json"), "no such file"),
    ],
)
def test_mistakes_are_one_line_before_a_row_is_read(
    folder: Path, args: tuple[Any, ...], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CsvLines, "blocks", lambda self: pytest.fail("read"))
    monkeypatch.chdir(folder)
    before = sorted(folder.iterdir())
    assert text in refused("table1", "people.csv", *args)
    assert sorted(folder.iterdir()) == before


def test_a_plan_is_refused_where_the_release_would_be(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "trial.fdadp"
    Study.new(file, name="Trial", epsilon=2.0, delta=1e-6, unit="person", n=N, bounds=COLUMNS)
    asked = ("table1", folder / "people.csv", "--study", file, "--epsilon", 1, "--out", tmp_path / "t.npz", "--dry-run")
    assert "groups must be the person id of every row" in refused(*asked)
    assert run(*asked, "--groups", "id").exit_code == 0


def test_the_help_says_what_is_there_by_default() -> None:
    shown = " ".join(run("table1", "--help").output.replace("│", " ").split())
    assert all(f"(default: {what})" in shown for what in ("quartiles", "all", "beside the model, .csv")), shown


def test_the_file_that_is_read_is_never_written_over(folder: Path, tmp_path: Path) -> None:
    """The table goes beside the model, as .csv by default, where the persons may lie."""
    people = tmp_path / "people.csv"
    people.write_text((folder / "people.csv").read_text())
    (tmp_path / "link.csv").symlink_to(people)
    asked = ("table1", people, *ASKED, "--epsilon", 1, "--out")
    for args in (("people.npz",), ("t.npz", "--write", tmp_path / "link.csv")):
        assert "must not take the place of a file read" in refused(*asked, tmp_path / args[0], *args[1:])
    facts = ("--facts", tmp_path / "t.ledger.json")
    facts[1].write_text((folder / "facts.json").read_text())
    assert "t.ledger.json" in refused("table1", people, *facts, "--epsilon", 1, "--out", tmp_path / "t.npz")
    assert people.read_text() == (folder / "people.csv").read_text()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.csv", "people.csv", "t.ledger.json"]


def test_a_column_that_stands_twice_is_refused(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("age,age,sex\n50,3,f\n")
    asked = ("--bounds", "age=18:100", "--epsilon", 1, "--out", tmp_path / "t.npz")
    assert "must have each column once, got 2 of 'age'" in refused("table1", file, *asked)


def test_a_table_has_no_picture_and_predicts_nothing(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "t.npz"
    assert run("table1", folder / "people.csv", *ASKED, "--epsilon", 1, "--out", out).exit_code == 0
    assert "which has no picture" in refused("plot", out, "--out", tmp_path / "t.png")
    assert "predicts nothing" in refused("predict", out, "x.csv", "--out", tmp_path / "p.csv")
    assert "differentially private" in run("ledger", out).output
