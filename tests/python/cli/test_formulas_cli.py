"""Regressions by formula on the command line: the numbers of the Python API, and mistakes as one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from test_cli import refused, run

from fdadp import FunctionalRegression, ScalarRegression, inference
from fdadp.functional.files.curve_files import read_curves

N, S, T = 50, np.linspace(0, 2, 12), np.linspace(0, 1, 9)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    path = Path(tmp_path_factory.mktemp("regress"))
    rng = np.random.default_rng(0)
    index = pd.Index([f"p{i}" for i in range(N)], name="id")
    x = pd.DataFrame(np.cumsum(rng.normal(size=(N, 12)), axis=1), index=index, columns=S)
    people = pd.DataFrame({"age": rng.normal(50, 9, N), "region": rng.choice(["a", "b"], N)}, index=index)
    y = pd.DataFrame(x.to_numpy() @ np.sin(np.outer(S, T)) / 12 + rng.normal(size=(N, 9)), index=index, columns=T)
    people["risk"] = np.exp(y.iloc[:, 3])
    for name, frame in (("x", x), ("y", y), ("people", people), ("other", people.iloc[::-1])):
        frame.to_csv(path / f"{name}.csv")
    return path


def data(folder: Path) -> dict[str, Any]:
    people = pd.read_csv(folder / "people.csv", index_col=0)
    return {"X": read_curves(folder / "x.csv"), "Y": read_curves(folder / "y.csv"), **dict(people.items())}


@pytest.mark.parametrize(
    ("formula", "kind", "period"),
    [
        ("Y ~ ff(X) + s(age, k=5) + region", FunctionalRegression, None),
        ("Y ~ ff(X) + age", FunctionalRegression, 1.125),
        (
            "Y ~ ff(X, k=(4, 5), period=2.2) + linear(age, k=5, period=1.2) + re(region, by=age)",
            FunctionalRegression,
            None,
        ),
        ("log(risk) ~ lf(X, k=6) + age", ScalarRegression, None),
    ],
)
def test_fit_and_predict_equal_the_python_api(
    folder: Path, tmp_path: Path, formula: str, kind: Any, period: float | None
) -> None:
    files = ("--curves", f"X={folder / 'x.csv'}", "--table", folder / "people.csv")
    model, out = tmp_path / "model.npz", tmp_path / "predicted.csv"
    around = () if period is None else ("--t-period", period)
    fitted = run("fit", formula, *files, "--curves", f"Y={folder / 'y.csv'}", "--out", model, *around)
    assert fitted.exit_code == 0, fitted.output
    predicted = run("predict", model, *files, "--out", out)
    assert predicted.exit_code == 0, predicted.output
    settings = {} if period is None else {"t_period": period}
    want = kind(formula, **settings).fit(data(folder)).predict(data(folder))
    got = pd.read_csv(out, index_col=0)
    np.testing.assert_allclose(got.to_numpy(), np.reshape(want, got.shape), rtol=1e-12)
    assert got.index.tolist() == [f"p{i}" for i in range(N)]
    assert kind.__name__ in fitted.output and f"{N} predictions written" in predicted.output


def test_ordered_categories_are_predicted_by_their_probabilities(folder: Path, tmp_path: Path) -> None:
    people = pd.read_csv(folder / "people.csv", index_col=0)
    people["grade"] = np.digitize(people["risk"], np.quantile(people["risk"], [0.3, 0.6])) + 1
    people.to_csv(tmp_path / "graded.csv")
    model, out, table = tmp_path / "model.npz", tmp_path / "out.csv", ("--table", tmp_path / "graded.csv")
    fitted = run("fit", "grade ~ age", *table, "--family", "ordered", "--out", model)
    assert fitted.exit_code == 0 and "ordered(-1, " in fitted.output, fitted.output
    assert run("predict", model, *table, "--out", out).exit_code == 0
    got = pd.read_csv(out, index_col=0)
    want = ScalarRegression("grade ~ age", family="ordered").fit(people)
    np.testing.assert_allclose(got.to_numpy(), want.predict_proba(people), rtol=1e-9)
    assert got.columns.tolist() == ["1", "2", "3"] and got.index.tolist() == people.index.tolist()
    given = run("fit", "grade ~ age", *table, "--family", "ordered(-1,0.5)", "--out", model)
    assert "ordered(-1, 0.5), cumulative logit" in given.output
    assert "share explained" in run("evaluate", model, *table).output


def test_contrasts_and_slopes_equal_the_python_api(folder: Path, tmp_path: Path) -> None:
    files = ("--curves", f"X={folder / 'x.csv'}", "--table", folder / "other.csv", "--id", "id")  # in another order
    model, out = tmp_path / "model.npz", tmp_path / "table.csv"
    formula = "Y ~ ff(X) + s(age, k=5) + region"
    assert run("fit", formula, *files, "--curves", f"Y={folder / 'y.csv'}", "--out", model).exit_code == 0
    fitted, rows = FunctionalRegression(formula).fit(data(folder)), data(folder)
    for command, column, ask in (
        ("contrasts", "region", inference.contrasts),
        ("slopes", "age", inference.slopes),
    ):
        found = run(command, model, column, *files, "--out", out)
        assert found.exit_code == 0, found.output
        want, got = ask(fitted, column, new=rows).to_frame(), pd.read_csv(out)
        assert got.columns.tolist() == want.columns.tolist()
        np.testing.assert_allclose(got["value"], want["value"], rtol=1e-6)
        np.testing.assert_allclose(got["se"], want["se"], rtol=1e-5)
        assert "that it is 0 everywhere" in found.output
    assert "must be a factor of the model (region)" in refused("contrasts", model, "age", *files)
    assert "column must be one that the model reads" in refused("slopes", model, "weight", *files)


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["Y ~ ff(X)"], "--curves or --table must be given"),
        (
            ["Y ~ ff(X)", "--curves", "x.csv"],
            "--curves must be NAME=FILE or NAME=FILE:PREFIX*, as X=x.csv, got 'x.csv'",
        ),
        (["Y ~ ff(X)", "--curves", "X=nowhere.csv"], "no such file: nowhere.csv"),
        (["Y ~ ff(X)", "--table", "nowhere.csv"], "no such file: nowhere.csv"),
        (["risk ~ age", "--table", "x.txt"], "--table must end in .csv, .csv.gz or .parquet, got 'x.txt'"),
        (
            ["risk ~ age", "--table", "long.csv"],
            "Error: long.csv must have 2 fields in every row as in its first, got 3",
        ),
        (
            ["risk ~ age", "--table", "bad.csv.gz"],
            "Error: bad.csv.gz must be a text file in CSV format, got BadGzipFile",
        ),
        (["Y ~ ff(X)", "--curves", "X=x.csv"], "data must have the column 'Y'"),
        (["Y ~ ff(Z)", "--curves", "X=x.csv", "--curves", "Y=y.csv"], "data must have the column 'Z'"),
        (["Y ~ ff(X", "--curves", "X=x.csv", "--curves", "Y=y.csv"], "formula must be of the form"),
        (["Y ~ ff(X)", "--curves", "X=x.csv", "--curves", "Y=y.csv", "--id", "pid"], "--id must be the first column"),
        (["risk ~ age", "--table", "people.csv", "--out", "model.txt"], "--out must end in .npz"),
        (
            ["risk ~ age", "--table", "people.csv", "--person-rows", "sum"],
            "--person-rows and --max-rows need --groups",
        ),
        (["risk ~ age", "--table", "people.csv", "--family", "weibull"], "family"),
        (
            ["risk ~ age", "--table", "people.csv", "--t-period", "24"],
            "--t-period must be left out where the response is a number",
        ),
        (["x.csv", "y.csv", "--t-period", "24"], "--t-period is there for formulas"),
        (["Surv(age, region) ~ risk", "--table", "people.csv", "--t-period", "24"], "--t-period must be left out of"),
        (
            ["Y ~ ff(X)", "--curves", "X=x.csv", "--curves", "Y=y.csv", "--t-period", "0.5"],
            "t_period must be at least the length of the domain of the response, 1, got 0.5",
        ),
        (
            [
                "Y ~ ff(X)",
                "--curves",
                "X=x.csv",
                "--curves",
                "Y=y.csv",
                "--t-period=2",
                "--bounds=X=0:9",
                "--bounds=Y=0:9",
                "--epsilon=1",
                "--n=50",
            ],
            "t_period must be None in a private fit",
        ),
        (
            ["risk ~ age", "--table", "people.csv", "--curves", "age=x.csv"],
            "must have different names, got 'age' twice",
        ),
    ],
)
def test_mistakes_are_one_line(folder: Path, monkeypatch: Any, args: list[str], text: str) -> None:
    (folder / "x.txt").touch()
    (folder / "long.csv").write_text("risk,age\n1,2,\n3,4,\n")
    (folder / "bad.csv.gz").write_bytes(b"risk,age\n1,2\n")
    monkeypatch.chdir(folder)
    assert text in refused("fit", *args)
    assert not (folder / "model.npz").exists()


def test_files_that_are_no_model_are_refused(folder: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    text = refused("predict", tmp_path / "other.npz", "--table", folder / "people.csv", "--out", "p.csv")
    assert "other.npz" in text


@pytest.mark.filterwarnings("ignore::fdadp.errors.PublicInputWarning")  # noise without a seed, in 3 of 1,000 runs
def test_rows_of_a_person_count_once_each_or_together(tmp_path: Path) -> None:
    """--person-rows and --max-rows, also in a private fit, which shows them in its plan and its ledger."""
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(200), rng.integers(1, 5, 200))
    frame = pd.DataFrame({"who": who, "age": rng.uniform(-1, 1, 200)[who]})
    frame["y"] = frame["age"] + rng.normal(size=who.size)
    frame.to_csv(tmp_path / "people.csv", index=False)
    fit = ["fit", "y ~ age", "--table", str(tmp_path / "people.csv"), "--out", str(tmp_path / "m.npz")]
    for law, said in (("mean", "each person counts once"), ("sum", "each row counts once")):
        assert said in run(*fit, "--groups", "who", "--person-rows", law).output
    private = ["--epsilon", "4", "--delta", "1e-6", "--n", "200", "--bounds", "age=-1:1", "--bounds", "y=-4:4"]
    shown = run(*fit, "--groups", "who", "--person-rows", "sum", "--max-rows", "3", *private).output
    assert "rows a person count, 3 at most" in shown and "each row counts once, at most 3 rows a person" in shown


def test_rows_of_one_file_belong_together_beside_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    curves = pd.DataFrame(rng.normal(size=(40, 9)), columns=[f"x{j}" for j in range(9)])
    table = pd.concat([pd.Series(np.repeat(np.arange(20), 2), name="ID"), curves], axis=1).assign(y=rng.normal(size=40))
    table.to_csv("visits.csv", index=False)
    names = ("--curves", "X=visits.csv:x*", "--table", tmp_path / "visits.csv")  # of one file
    files = (*names, "--groups", "ID")
    found = run("fit", "y ~ lf(X)", *files, "--out", "f")
    assert found.exit_code == 0, found.output
    want = ScalarRegression("y ~ lf(X)").fit({"X": curves, "y": table["y"]}, groups=table["ID"].to_numpy())
    np.testing.assert_allclose(ScalarRegression.load("f.npz").predict({"X": curves}), want.predict({"X": curves}))
    assert "different in every row and give it as --id" in refused("fit", "y ~ lf(X)", *files, "--id", "ID")
    assert run("plot", "f.npz").exit_code == 0 and Path("f.png").exists() and not Path("model.png").exists()
    lines = run("fit", "y ~ lf(X) + agee", *files).stderr.splitlines()
    assert lines[-2:] == ["  y ~ lf(X) + agee", "              ^^^^"]
