"""Private regressions on the command line: the fit of the Python API, refusals before a row is read, nothing told."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from test_cli import refused, run

from fdadp import FunctionalRegression, Privacy, ScalarRegression
from fdadp.cli.private_files import bounds_of
from fdadp.functional.files.csv_curves import CsvLines
from fdadp.privacy import Ledger

N, S, T = 600, np.linspace(0, 2, 12), np.linspace(0, 1, 9)
BOUNDS = ("X=-4:4", "Y=-8:8", "age=0:100", "region=a,b", "y=-8:8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    path = Path(tmp_path_factory.mktemp("private"))
    rng = np.random.default_rng(0)
    index = pd.Index([f"p{i}" for i in range(N)], name="id")
    x = pd.DataFrame(np.cumsum(rng.normal(size=(N, 12)), axis=1) / 2, index=index, columns=S)
    people = pd.DataFrame({"age": rng.normal(50, 9, N).round(1), "region": rng.choice(["a", "b"], N)}, index=index)
    y = pd.DataFrame(x.to_numpy() @ np.sin(np.outer(S, T)) / 6 + rng.normal(size=(N, 9)) / 3, index=index, columns=T)
    people["y"] = y.iloc[:, 3]
    for name, frame in (("x", x), ("y", y), ("people", people)):
        frame.to_csv(path / f"{name}.csv")
    x.iloc[:, ::-1].to_csv(path / "backwards.csv")
    return path


def files(folder: Path, *names: str) -> list[Any]:
    return ["--table", folder / "people.csv", *(f"--curves={name}={folder / name.lower()}.csv" for name in names)]


def bounds(*texts: str) -> list[str]:
    return [f"--bounds={text}" for text in texts or BOUNDS]


@pytest.fixture
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise of simulations, for comparisons."""
    monkeypatch.setattr("fdadp.Privacy", lambda *a, **k: Privacy(*a, **k, random_state=3))


@pytest.mark.usefixtures("seeded")
@pytest.mark.parametrize(
    ("formula", "kind", "names", "own"),
    [
        ("Y ~ ff(X) + s(age) + region", FunctionalRegression, "XY", ["--n", N]),
        ("Y ~ ff(X) + age", FunctionalRegression, "XY", ["--groups", "id"]),
        ("y ~ lf(X) + log(age)", ScalarRegression, "X", ["--n", N, "--delta", 0, "--epsilon", 8]),
        ("y ~ age + region", ScalarRegression, "", ["--n", N, "--offset", "0.1 * age"]),
    ],
)
def test_a_private_fit_is_that_of_the_python_api(
    folder: Path, tmp_path: Path, formula: str, kind: Any, names: str, own: list[Any]
) -> None:
    out, texts = tmp_path / "m.npz", [t if t != "age=0:100" else "age=1:100" for t in BOUNDS]
    done = run(
        "fit", formula, *files(folder, *names), *bounds(*texts), "--epsilon", 2, "--delta", 1e-6, "--out", out, *own
    )
    assert done.exit_code == 0, done.output
    data = {
        name: pd.read_csv(folder / f"{name.lower()}.csv", index_col=0, float_precision="round_trip") for name in names
    }
    data = {k: v.to_numpy() for k, v in data.items()}
    table = pd.read_csv(folder / "people.csv", float_precision="round_trip")
    data |= {name: table[name].to_numpy() for name in table}
    grids = {"X": S, "Y": T}
    said = dict(zip(own[::2], own[1::2], strict=True))
    privacy = Privacy(said.get("--epsilon", 2), said.get("--delta", 1e-6) or None, n=said.get("--n"), random_state=3)
    model = kind(formula, privacy=privacy, bounds=bounds_of(texts))
    beside = {k[2:]: v for k, v in said.items() if k in ("--groups", "--offset")}
    if kind is ScalarRegression and "X" not in names:
        grids = {}
    model.fit(data, grids={k: grids[k] for k in names}, **beside)
    loaded = kind.load(out)
    np.testing.assert_array_equal(loaded.fitted_.fit.coefficients, model.fitted_.fit.coefficients)
    ledger = Ledger.from_json((tmp_path / "m.ledger.json").read_text())
    assert ledger == loaded.ledger_ and [r.sd for r in ledger.releases] == [r.sd for r in model.ledger_.releases]
    assert f"Ledger written to {tmp_path / 'm.ledger.json'}" in done.output and "gradient" in done.output
    if names == "XY" and "--n" in own:
        to, asked = tmp_path / "predicted.csv", files(folder, "X")
        assert run("predict", out, *asked, "--out", to).exit_code == 0
        got = pd.read_csv(to, index_col=0).to_numpy()
        np.testing.assert_allclose(got, model.predict(data, grids={"X": S}), rtol=1e-9)


def test_labels_that_decrease_are_turned(folder: Path) -> None:
    for name in ("x", "backwards"):
        lines = CsvLines.of(folder / f"{name}.csv")
        grid, at = lines.grid()
        np.testing.assert_allclose(grid, S)
        first = next(lines.blocks())[0, at].astype(float)
        np.testing.assert_allclose(first, pd.read_csv(folder / "x.csv", index_col=0).iloc[0])


def test_an_odd_line_is_a_row_of_its_own(tmp_path: Path) -> None:
    """Nothing that stands in one line changes what another row is, nor how many there are."""
    lines = [b"id,age,g", b'1,20,"a"', b"2,30,b", b"3,40,a"]
    odd = [
        b"2,30",
        b"2,30,b,extra",
        b'2,"30,b',
        b"",
        b"\xff\xfe,30,b",
        b'"2,30,b',
        b"2," + b"9" * 200_000 + b",b",
        b"\0",
    ]
    for line in [lines[2], *odd]:
        path = tmp_path / "one.csv.gz"
        path.write_bytes(gzip.compress(b"\n".join([*lines[:2], line, lines[3]])))
        (rows,) = CsvLines.of(path).blocks()
        assert rows.shape == (3, 3) and rows[0].tolist() == ["1", "20", "a"] and rows[2].tolist() == ["3", "40", "a"]
        if line in odd[:4]:
            assert rows[1].tolist() == [None] * 3


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of which no row may be read."""
    monkeypatch.setattr(CsvLines, "blocks", lambda self: pytest.fail("read"))


@pytest.mark.usefixtures("unread")
@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["--bounds", "X=-4:4"], "--bounds is there for private fits: give --epsilon as well"),
        (["--dry-run"], "--dry-run is there for private fits"),
        (
            ["--epsilon", 2, "--delta", 1e-6, "--n", N, *bounds("X=-4:4", "Y=-8:8", "region=a,b")],
            "a public range for age",
        ),
        (
            ["--epsilon", 2, "--delta", 1e-6, "--n", N, *bounds(*BOUNDS[:2]), "--bounds", "age=0:"],
            "--bounds must be NAME=LOW:HIGH",
        ),
        (
            ["--epsilon", 2, "--delta", 1e-6, "--n", N, *bounds(), "--bounds", "age=1:2"],
            "once of each column, got age twice",
        ),
        (["--epsilon", 2, "--delta", 1e-6, "--n", N, *bounds("X=4:-4", *BOUNDS[1:])], "low < high"),
        (
            ["--epsilon", 2, "--delta", 1e-6, "--n", N, *bounds(), "--bounds", "Age=0:1", "Y ~ Age"],
            "'Age'.*did you mean 'age'",
        ),
        (["--epsilon", 2, "--delta", 1e-6, "--n", N, *bounds(), "--groups", "ward"], "'ward'"),
        (["--epsilon", 2, "--delta", 1e-6, "--n", N, *bounds(), "--offset", "mean(Z)"], "'Z'"),
        (["--epsilon", 2, "--delta", 1e-6, "--n", 2, *bounds()], "n"),
        (["--epsilon", -1, "--n", N, *bounds()], "epsilon"),
        (["--epsilon", 2, "--delta", 1e-6, "--n", N, "--adjacency", "add-remove", *bounds()], "adjacency|add-remove"),
        (["--epsilon", 0.001, "--n", N, *bounds()], "n"),
        (["--epsilon", 2, "--delta", 1e-6, "--n", N, *bounds(), "--family", "gamma"], "family must be"),
        (["--epsilon", 2, "--delta", 1e-6, "--n", N, *bounds(), "--missing", "raise"], "missing in a private fit"),
        (["--epsilon", 2, "--delta", 1e-6, "--n", N, *bounds(), "--out", "m.txt"], "--out must end in .npz"),
        (
            ["--epsilon", 2, "--delta", 1e-6, "--n", N, *bounds(), "--curves", "age=x.csv"],
            "must have different names, got 'age' twice",
        ),
        (["--epsilon", 2, "--delta", 1e-6, "--n", N, *bounds(), "--curves", "V=x.parquet"], "no such file"),
        (["--epsilon", 2, "--delta", 1e-6, "--n", N, *bounds(), "--curves", "V=nowhere.csv"], "no such file"),
    ],
)
def test_what_is_wrong_is_said_before_a_row_is_read(
    folder: Path, tmp_path: Path, monkeypatch: Any, args: list[Any], text: str
) -> None:
    monkeypatch.chdir(folder)
    if "--dry-run" in args or "--epsilon" not in args:
        monkeypatch.setattr("fdadp.cli.input_files.read_columns", lambda *a: pytest.fail("read"))
    out = [] if "--out" in args else ["--out", tmp_path / "m.npz"]
    formula = args.pop() if args[-1] == "Y ~ Age" else "Y ~ ff(X) + age + region"
    said = refused("fit", formula, *files(folder, "X", "Y"), *out, *args)
    assert pd.Series([said]).str.contains(text).all(), said
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("unread")
def test_a_dry_run_shows_the_plan_and_reads_nothing(folder: Path, tmp_path: Path) -> None:
    out = ["--out", tmp_path / "m.npz", "--dry-run"]
    done = run(
        "fit", "Y ~ ff(X) + age", *files(folder, "X", "Y"), *bounds(), "--epsilon", 2, "--delta", 1e-6, "--n", N, *out
    )
    assert done.exit_code == 0 and "mean of Y" in done.output and "gradient" in done.output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("wrong", ["shorter", "none"])
def test_files_that_fail_say_nothing(folder: Path, tmp_path: Path, wrong: str) -> None:
    lines = (folder / "x.csv").read_bytes().splitlines()
    lines[0] = b"who" + lines[0].lstrip(b"id")  # another name, so rows are taken by position
    (tmp_path / "x.csv").write_bytes(b"\n".join(lines[:-1] if wrong == "shorter" else lines[:1]))
    asked = [
        *files(folder, "Y"),
        f"--curves=X={tmp_path / 'x.csv'}",
        *bounds(),
        "--epsilon",
        2,
        "--delta",
        1e-6,
        "--n",
        N,
    ]
    said = refused("fit", "Y ~ ff(X) + age", *asked, "--out", tmp_path / "m.npz")
    assert said == "Error: the source of chunks failed or changed the shape of its rows; the budget is spent"
    assert [p.name for p in tmp_path.iterdir()] == ["x.csv"]


@pytest.mark.usefixtures("four_cohorts")
def test_plan_of_a_formula(tmp_path: Path) -> None:
    asked = ["--bounds", "X=-4:4", "--bounds", "age=0:100", "--bounds", "sex=f,m", "--points", "X=21"]
    done = run("plan", "y ~ lf(X) + age + C(sex)", "--n", 800, *asked, "--out", tmp_path)
    assert done.exit_code == 0, done.output
    assert "Forecast of y ~ lf(X) + age + C(sex) for n = 800" in done.output and "found importance of" in done.output
    assert (tmp_path / "forecast.txt").read_text().startswith("Forecast of y ~")
    for args, text in (
        (["--bounds", "X=-4:4", "--n", 800], "--bounds is there for formulas"),
        (["y ~ lf(X)", *asked], "--n must be given with a formula"),
        (["y ~ lf(X)", "--n", 800, "--bounds", "y=0:1"], "must have the column 'X'"),
        (["y ~ lf(X)", "--n", 800, "--points", "X=x"], "--points must be NAME=POINTS"),
    ):
        assert text in refused("plan", *args)
