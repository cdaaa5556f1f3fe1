"""The command line: the same numbers as the Python API, and every mistake as one line with exit status 2."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread
from typer.testing import CliRunner

from fdadp import AdditiveFunctionOnFunction, load_canadian_weather, load_icu
from fdadp._common.command_line_tools import console
from fdadp.cli.main import app
from fdadp.errors import ExtrapolationWarning, MissingDataError
from fdadp.functional.files.curve_files import read_curves

try:
    RUNNER = CliRunner(mix_stderr=False)  # click before 8.2
except TypeError:
    RUNNER = CliRunner()


def run(*args: object) -> Any:
    return RUNNER.invoke(app, [str(a) for a in args])


def refused(*args: object) -> str:
    """Run what must fail; return the one line that says why, and after it a formula with its mark."""
    result = run(*args)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    lines = result.stderr.splitlines()
    [first] = [number for number, line in enumerate(lines) if line.startswith("Error: ")]
    error, *place = lines[first:]
    assert not place or (len(place) == 2 and set(place[1].strip()) == {"^"})
    return " ".join([error, *map(str.strip, place)])


@pytest.fixture(scope="module")
def weather() -> tuple[pd.DataFrame, pd.DataFrame]:
    data = load_canadian_weather(as_frame=True)
    return data.X.iloc[:, ::10], data.Y.iloc[:, ::10]


@pytest.fixture
def files(weather: Any, tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "X.csv", tmp_path / "Y.csv"
    for frame, path in zip(weather, paths, strict=True):
        frame.to_csv(path)
    return paths


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".npz", ".parquet"])
def test_fit_and_predict_equal_the_python_api(files: Any, weather: Any, tmp_path: Path, suffix: str) -> None:
    model, out = tmp_path / "model.npz", tmp_path / f"predicted{suffix}"
    fitted = run("fit", *files, "--out", model, "--components", "2", "--basis-x", "6", "--smoothing", "gcv")
    assert fitted.exit_code == 0, fitted.output
    assert "Additive function-on-function regression" in fitted.stdout and str(model) in fitted.stdout
    assert "35 curves, labelled, 37 points, grid 0.00136986 to 0.987671" in fitted.stderr
    predicted = run("predict", model, files[0], "--out", out, "--interval", "0.9")
    assert predicted.exit_code == 0, predicted.output
    X, Y = weather
    here = AdditiveFunctionOnFunction(n_components=2, n_basis_x=6, smoothing="gcv").fit(X, Y)
    expected = {"": here.predict(X)} | dict(zip(("-lower", "-upper"), here.predict_interval(X, level=0.9), strict=True))
    for name, frame in expected.items():
        got = read_curves(tmp_path / f"predicted{name}{suffix}")
        np.testing.assert_allclose(got.to_numpy(), frame.to_numpy(), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(got.columns.to_numpy(dtype=float), Y.columns)
        assert list(got.index) == list(X.index)


def test_files_without_header_have_an_even_grid(weather: Any, tmp_path: Path) -> None:
    X, Y = (frame.to_numpy() for frame in weather)
    for values, name in ((X, "X.csv"), (Y, "Y.csv")):
        pd.DataFrame(values).to_csv(tmp_path / name, header=False, index=False)
    model, out = tmp_path / "model", tmp_path / "out.csv"
    assert run("fit", tmp_path / "X.csv", tmp_path / "Y.csv", "--no-header", "--out", model).exit_code == 0
    assert run("predict", tmp_path / "model.npz", tmp_path / "X.csv", "--no-header", "--out", out).exit_code == 0
    got = read_curves(out)
    np.testing.assert_allclose(got.columns.to_numpy(dtype=float), np.linspace(0, 1, 37))
    np.testing.assert_allclose(got, AdditiveFunctionOnFunction().fit(X, Y).predict(X), rtol=1e-12, atol=1e-12)


def test_long_tables_and_grids_that_decrease(files: Any, weather: Any, tmp_path: Path) -> None:
    X, Y = weather
    long, model, out = tmp_path / "long.csv", tmp_path / "model.npz", tmp_path / "out.csv"
    X.iloc[:, ::-1].melt(ignore_index=False).reset_index().set_axis(["place", "s", "x"], axis=1).to_csv(
        long, index=False
    )
    down = tmp_path / "down.csv"
    Y.iloc[:, ::-1].to_csv(down)
    assert "--long id,s,value" in refused("fit", long, down, "--out", model)
    Y.melt(ignore_index=False).reset_index().set_axis(["place", "s", "x"], axis=1).to_csv(
        tmp_path / "Y.csv", index=False
    )
    assert run("fit", long, tmp_path / "Y.csv", "--long", "place,s,x", "--out", model).exit_code == 0
    assert run("predict", model, long, "--long", "place, s, x", "--out", out).exit_code == 0
    expected = AdditiveFunctionOnFunction().fit(X, Y).predict(X)
    np.testing.assert_allclose(read_curves(out).loc[X.index], expected, rtol=1e-9, atol=1e-12)
    fitted = run("fit", files[0], down, "--out", model)
    assert fitted.exit_code == 0 and "grid 0.00136986 to 0.987671" in fitted.stderr
    assert run("predict", model, files[0], "--out", out).exit_code == 0
    np.testing.assert_allclose(read_curves(out).iloc[:, ::-1], expected, rtol=1e-9, atol=1e-12)
    assert "three columns" in refused("fit", long, long, "--long", "place,x", "--out", model)


def test_a_warning_is_one_line_and_no_failure(files: Any, weather: Any, tmp_path: Path) -> None:
    model = tmp_path / "model.npz"
    run("fit", *files, "--out", model)
    hot = tmp_path / "hot.csv"
    (weather[0] + 30).to_csv(hot)
    result = run("predict", model, hot, "--out", tmp_path / "p.csv", "--interval", "0.95")
    assert result.exit_code == 0
    warned = [line for line in result.stderr.splitlines() if line.startswith("Warning: ")]
    assert len(warned) == 1 and "outside the training range" in warned[0]
    with pytest.warns(ExtrapolationWarning):
        AdditiveFunctionOnFunction.load(model).predict(weather[0] + 30)


def test_bad_files_to_fit(files: Any, weather: Any, tmp_path: Path) -> None:
    x, y = files
    model = tmp_path / "model.npz"
    bad = tmp_path / "bad.csv"

    def fit_x(text: str) -> str:
        bad.write_text(text, encoding="utf-8")
        return refused("fit", bad, y, "--out", model)

    lines = x.read_text(encoding="utf-8").splitlines()
    assert "empty file" in fit_x("")
    assert "nothing below" in fit_x(lines[0])
    ragged = "\n".join([*lines[:5], lines[5].rsplit(",", 2)[0], *lines[6:]])
    assert "must have 38 fields in every row as in its first, got 36 in line 6" in fit_x(ragged)
    first = lines[3].split(",")
    assert "got 'cold' in line 4, column 3" in fit_x(
        "\n".join([*lines[:3], ",".join([*first[:2], "cold", *first[3:]])])
    )
    unlabelled = "\n".join(line.partition(",")[2] for line in lines[:-1])
    assert "Y and X must have the same number of rows, got 35 and 34" in fit_x(unlabelled)
    assert "labels only" in fit_x("place\nHalifax\nSydney\n")
    twice = ",".join([lines[1].partition(",")[0], *first[1:]])
    assert "X must have one row for each row label, or equal ones" in fit_x("\n".join([*lines[:3], twice, *lines[4:]]))
    gap = ",".join([*first[:2], "", *first[3:]])
    assert "got nan in curve 2" in fit_x("\n".join([*lines[:3], gap, *lines[4:]]))
    assert "must end in one of" in refused("fit", tmp_path / "X.xlsx", y, "--out", model)
    assert "no such file" in refused("fit", tmp_path / "none.csv", y, "--out", model)
    assert not model.exists()
    assert {p.name for p in tmp_path.iterdir()} == {"X.csv", "Y.csv", "bad.csv"}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--components", "many"], "--components must be"),
        (["--components", "40"], "n_components must be"),
        (["--smoothing", "1,2,3"], "--smoothing must be"),
        (["--smoothing", "best"], "--smoothing must be"),
        (["--basis-x", "3"], "n_basis_x"),
        (["--missing", "drop"], "missing must be one of"),
        (["--out", "model.csv"], "--out must end in .npz"),
    ],
)
def test_bad_settings_of_fit(files: Any, options: list[str], text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files[0].parent)
    assert text in refused("fit", *files, *options)
    assert not Path("model.npz").exists() and not Path("model.csv").exists()


def test_bad_input_to_predict(files: Any, weather: Any, tmp_path: Path) -> None:
    model, out = tmp_path / "model.npz", tmp_path / "p.csv"
    run("fit", *files, "--out", model)
    narrow = tmp_path / "narrow.csv"
    weather[0].iloc[:, :20].to_csv(narrow)
    assert "training domain" in refused("predict", model, narrow, "--out", out)
    weather[0].iloc[:, :20].to_csv(narrow, header=[f"day {i}" for i in range(20)])
    assert "X must lie on the training domain" in refused("predict", model, narrow, "--out", out)
    assert "level must lie between 0 and 1, got 95" in refused(
        "predict", model, files[0], "--out", out, "--interval", "95"
    )
    assert "must end in one of" in refused("predict", model, files[0], "--out", tmp_path / "p.txt")
    assert "written by fdadp" in refused("predict", files[0], files[0], "--out", out)
    assert "none.npz" in refused("predict", tmp_path / "none.npz", files[0], "--out", out)
    assert "layout version 3, got version 99" in refused("predict", other_version(model), files[0], "--out", out)
    assert not list(tmp_path.glob("p*"))


def other_version(model: Path) -> Path:
    """A copy of a model file that says it is of layout version 99."""
    with np.load(model) as stored:
        arrays = dict(stored)
    header = json.loads(arrays["header"].tobytes()) | {"version": 99}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    path = model.with_name("other.npz")
    np.savez(path, **arrays)
    assert zipfile.is_zipfile(path)
    return path


@pytest.mark.filterwarnings("ignore::fdadp.errors.PublicInputWarning")  # noise without a seed, in 3 of 1,000 runs
def test_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FDADP_DATA", str(tmp_path))  # no stays in intensive care: nothing is said of them
    result = run("demo", "--out", tmp_path / "demo", "--repeats", 2, "--people", 300)
    assert result.exit_code == 0, result.output
    texts = (
        "private-people.png",
        "the planner says: 0.77",
        "ε = 1, δ = 1e-06",
        "dp-aff: differentially private end to end",
        "35 stations",
        "mean curve",
        "no privacy",
        "NOT differentially private",
        "people.csv",
    )
    places = [result.stdout.find(text) for text in texts]
    assert min(places) >= 0
    assert sorted(places) == places  # the success first, the comparison after it, at last what to do next
    assert len(result.stdout.splitlines()) <= 40
    assert "intensive" not in result.stdout
    files = {p.name for p in (tmp_path / "demo").iterdir()}
    assert files == {
        "model.npz", "results.csv", "table.csv", "settings.json", "experiment.png", "surface.png",
        "eigenfunctions.png", "held-out-predictions.png", "private-people.png", "private-model.npz", "ledger.txt",
        "people.csv",
    }  # fmt: skip
    assert f"All {len(files)} files are in" in result.stdout
    commands = re.findall(r"^  python -m fdadp (fit .*(?:\n    .*)+)", result.stdout, re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    for command, kind in zip(commands, ("without privacy", "private end to end"), strict=True):
        fitted = run(*shlex.split(command.replace("\\\n", " ")))
        assert fitted.exit_code == 0 and kind in fitted.stdout, fitted.output
    model = AdditiveFunctionOnFunction.load(tmp_path / "demo" / "model.npz")
    assert model.n_curves_ == 35
    private = AdditiveFunctionOnFunction.load(tmp_path / "demo" / "private-model.npz")
    assert private.privacy_.epsilon == 1.0
    assert (tmp_path / "demo" / "ledger.txt").read_text(encoding="utf-8") == f"{private.ledger_}\n"
    picture = imread(tmp_path / "demo" / "private-people.png")
    assert picture.shape[:2] == (864, 1380) and picture[..., :3].std() > 0.1


@pytest.mark.parametrize(
    ("option", "text"), [("--repeats", "repeats must be .* at least 1"), ("--people", "people must be .* at least 50")]
)
def test_a_demo_that_cannot_be_shown_writes_nothing(tmp_path: Path, option: str, text: str) -> None:
    """It stopped half-way, and left files."""
    result = run("demo", "--out", tmp_path / "demo", option, 0)
    assert result.exit_code == 2 and re.search(text, result.output) and not (tmp_path / "demo").exists()


@pytest.mark.long
def test_demo_of_the_stays(tmp_path: Path) -> None:
    from fdadp.demo.private_fits import fit_stays

    try:
        load_icu()
    except MissingDataError:
        pytest.skip("the ICU stays are not in FDADP_DATA")
    said = console()
    with said.capture() as told:
        files = fit_stays(tmp_path, said)
    assert files["second day"].stat().st_size > 10_000
    last, private, ordinary = (float(x) for x in re.findall(r"explains ([.0-9]+)", told.get()))
    assert last + 0.05 < private <= ordinary + 0.01
    assert ordinary - private < 0.04
    assert 93 < float(re.findall(r"hold ([.0-9]+)%", told.get())[0]) < 97


def test_as_a_module_and_without_traceback(tmp_path: Path) -> None:
    def python(*args: str) -> Any:
        env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
        return subprocess.run(
            [sys.executable, "-m", "fdadp", *args], capture_output=True, text=True, cwd=tmp_path, env=env, timeout=120
        )

    shown = python("--help")
    assert shown.returncode == 0 and all(name in shown.stdout for name in ("demo", "fit", "predict", "audit"))
    failed = python("fit", "X.csv", "Y.csv")
    assert failed.returncode == 2 and failed.stderr == "Error: no such file: X.csv\n"


def test_audit_prints_the_verdict_and_draws_it(tmp_path: Path) -> None:
    result = run("audit", "--mechanism", "published", "--n", 35, "--draws", 2000, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("published: VIOLATION") and "claimed epsilon 0.6" in result.stdout
    assert (tmp_path / "audit-published.png").stat().st_size > 10_000
    assert "mechanism must be one of" in refused("audit", "--mechanism", "magic", "--out", tmp_path)
    assert "draws" in refused("audit", "--mechanism", "published", "--draws", 3, "--out", tmp_path)
