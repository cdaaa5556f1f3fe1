"""Files whose rows stand in other orders: joined by the column of ids, with and without privacy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from fdadp import AdditiveFunctionOnFunction, FunctionalRegression, PrivateMean
from fdadp.cli.main import app
from fdadp.privacy import SeededNoise

N, GRID = 60, np.linspace(0, 1, 7)
DRAW = np.random.default_rng(0)
IDS = pd.Index([f"p{i}" for i in range(N)], name="pid")
PEOPLE = pd.DataFrame({"age": DRAW.uniform(0, 3, N).round(3)}, index=IDS)
X = pd.DataFrame(DRAW.normal(size=(N, 7)).cumsum(axis=1).round(4), columns=GRID, index=IDS)
NOISE = DRAW.normal(size=(N, 7)) / 5
Y = (np.outer(PEOPLE["age"] - 1.5, GRID) + X / 2 + NOISE).round(4)
FILES = {"x.csv": X, "y.csv": Y, "people.csv": PEOPLE}
FORMULA = ["fit", "Y ~ ff(X) + age", "--curves", "X=x.csv", "--curves", "Y=y.csv", "--table", "people.csv"]
PRIVATE = ["--epsilon", "20", "--n", str(N), "--bounds", "X=-3:3", "--bounds", "Y=-3:3"]


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(FILES)
    return tmp_path


def write(files: dict[str, Any], **options: Any) -> None:
    for name, table in files.items():
        table.to_csv(name, **options)


def shuffled(name: str, seed: int = 1) -> None:
    write({name: FILES[name].sample(frac=1, random_state=seed)})


@pytest.mark.parametrize("id", [["--id", "pid"], []])
@pytest.mark.parametrize("name", ["people.csv", "x.csv"])
def test_ids_that_count_the_rows_of_one_file_join_it_to_others(folder: Path, name: str, id: list[str]) -> None:
    """pandas 3 keeps such ids as a range, as rows without ids have: files were taken by position."""
    numbered = {own: frame.set_axis(pd.Index(range(1, N + 1), name="pid"), axis=0) for own, frame in FILES.items()}
    write(numbered)
    run(*FORMULA, *id, "--out", "first.npz")
    write({name: numbered[name].sample(frac=1, random_state=1)})
    assert "joined 60 of 60 by pid" in run(*FORMULA, *id, "--out", "second.npz")
    first, second = (FunctionalRegression.load(f"{name}.npz") for name in ("first", "second"))
    np.testing.assert_allclose(second.coefficients_, first.coefficients_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("id", [["--id", "pid"], []])
@pytest.mark.parametrize("name", ["people.csv", "x.csv", "y.csv"])
def test_permuting_a_file_changes_no_result(folder: Path, name: str, id: list[str]) -> None:
    out = run(*FORMULA, *id, "--out", "first.npz")
    assert "joined 60 of 60 by pid" in out
    shuffled(name)
    run(*FORMULA, *id, "--out", "second.npz")
    first, second = (FunctionalRegression.load(f"{name}.npz") for name in ("first", "second"))
    np.testing.assert_allclose(first.fitted_.fit.coefficients, second.fitted_.fit.coefficients, rtol=1e-6, atol=1e-9)


def test_ids_that_join_files_are_the_persons_of_a_study_by_person(folder: Path) -> None:
    """The plan of a declared n, and a dry run, asked for --groups beside --id."""
    bounds = ["--bounds", "X=-3:3", "--bounds", "Y=-3:3", "--bounds", "age=0:3"]
    settings = ["--epsilon", "20", "--n", str(N), "--unit", "person"]
    run("study", "new", "s.fdadp", "--name", "Wards", *settings, *bounds)
    private = ["--id", "pid", "--study", "s.fdadp", "--epsilon", "10"]
    assert "Plan for 60 persons" in run(*FORMULA, *private, "--dry-run")
    run(*FORMULA, *private)
    persons = json.loads(Path("model.ledger.json").read_text())
    assert "person (all rows with one id" in json.dumps(persons)


def test_rows_without_a_partner_are_left_out_and_said(folder: Path) -> None:
    write({"people.csv": PEOPLE.iloc[2:].iloc[::-1]})
    assert "joined 58 of 60 by pid" in run(*FORMULA, "--id", "pid")
    assert "joined 60 of 60 by pid" in run("fit", "x.csv", "y.csv", "--id", "pid")


def test_predictions_have_the_labels_and_the_order_of_their_rows(folder: Path) -> None:
    run(*FORMULA)
    new = ["predict", "model.npz", "--curves", "X=x.csv", "--table", "people.csv"]
    run(*new, "--out", "first.csv")
    shuffled("x.csv")
    run(*new, "--id", "pid", "--out", "second.csv")
    first, second = (pd.read_csv(f"{name}.csv", index_col=0) for name in ("first", "second"))
    pd.testing.assert_frame_equal(first, second.loc[first.index], rtol=1e-9)
    evaluated = ["evaluate", "model.npz", "--curves", "X=x.csv", "--curves", "Y=y.csv", "--table", "people.csv"]
    run(*evaluated, "--out", "one.json")
    shuffled("y.csv", 2)
    run(*evaluated, "--id", "pid", "--out", "two.json")
    one, two = (json.loads(Path(f"{name}.json").read_text()) for name in ("one", "two"))
    assert one == pytest.approx(two, rel=1e-9)
    write({"people.csv": PEOPLE.iloc[2:]})
    assert "must have a row for each of" in run(*new, "--out", "third.csv", code=2)


def test_predictions_of_two_files_keep_the_name_of_the_labels(folder: Path) -> None:
    run("fit", "x.csv", "y.csv")
    run("predict", "model.npz", "x.csv", "--out", "p.csv", "--interval", "0.9")
    for name in ("p.csv", "p-lower.csv", "p-upper.csv"):
        assert pd.read_csv(name, index_col=0).index.name == "pid"


def test_what_is_no_id_of_a_file_is_refused(folder: Path) -> None:
    for private in ([], [*PRIVATE, "--bounds", "age=0:3"]):
        assert "--id must be" in run(*FORMULA, "--id", "age", *private, code=2)
        assert "--id must be" in run("fit", "x.csv", "y.csv", "--id", "who", *private[:8], code=2)
        write({"people.csv": PEOPLE.rename_axis("who")})
        assert "--id must be a column of every file, got 'pid'" in run(*FORMULA, "--id", "pid", *private, code=2)
        write(FILES)


def test_a_table_without_the_ids_of_curves_is_taken_by_position_and_that_is_said(folder: Path) -> None:
    write({"people.csv": PEOPLE}, index=False)
    assert "rows are taken by position, for age has no ids: --id COLUMN joins them" in run(*FORMULA)


def coefficients(*arguments: str) -> Any:
    """Of a private fit whose noise is seeded."""
    with mock.patch("fdadp.privacy.noise.sources.OpenDPNoise", lambda: SeededNoise(0)):
        out = run(*arguments, *PRIVATE, "--out", "model.npz")
    return out


@pytest.mark.parametrize("name", ["people.csv", "x.csv", "y.csv"])
def test_permuting_a_file_changes_no_private_result(folder: Path, name: str) -> None:
    def fitted() -> Any:
        out = coefficients(*FORMULA, "--id", "pid", "--bounds", "age=0:3")
        assert "joined by pid" in out
        return FunctionalRegression.load("model.npz").fitted_.fit.coefficients

    def pairs() -> Any:
        assert "joined by pid" in coefficients("fit", "x.csv", "y.csv")  # both files say pid
        return AdditiveFunctionOnFunction.load("model.npz").coef_

    first = fitted(), pairs()
    shuffled(name)
    second = fitted(), pairs()
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


def test_ids_of_a_file_say_whose_rows_are_where_it_is_alone(folder: Path) -> None:
    write({"y.csv": pd.concat([Y, Y])})
    out = run("mean", "y.csv", "--bounds=-3:3", "--epsilon", "50", "--n", str(N), "--id", "pid")
    assert "Protected unit: person" in out
    mean = PrivateMean.load("mean.npz").mean_
    assert np.abs(mean - Y.mean().to_numpy()).max() < 0.5
