"""The other commands on models, and private releases of files: the numbers of the Python API, mistakes as one line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from test_cli import refused, run
from typer.main import get_command

from fdadp import (
    FPCA,
    AdditiveFunctionOnFunction,
    FunctionalRegression,
    Privacy,
    PrivateFPCA,
    PrivateMean,
    ScalarRegression,
    Study,
    __version__,
)
from fdadp.cli.main import app
from fdadp.functional.files.csv_curves import CsvLines
from fdadp.privacy import Ledger

N, S, T = 400, np.linspace(0, 2, 12), np.linspace(0, 1, 9)
RANGES = ("--bounds", "X=-4:4", "--bounds", "Y=-8:8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    """Files of curves and of a table, and a model by a formula for each kind of response."""
    path = Path(tmp_path_factory.mktemp("commands"))
    rng = np.random.default_rng(1)
    index = pd.Index([f"p{i}" for i in range(N)], name="id")
    x = pd.DataFrame(np.cumsum(rng.normal(size=(N, 12)), axis=1) / 2, index=index, columns=S)
    y = pd.DataFrame(x.to_numpy() @ np.sin(np.outer(S, T)) / 6 + rng.normal(size=(N, 9)) / 3, index=index, columns=T)
    people = pd.DataFrame({"age": rng.normal(50, 9, N), "risk": np.exp(y.iloc[:, 3])}, index=index)
    people["old"] = people["age"] > 50
    for name, frame in (("x", x), ("y", y), ("people", people)):
        frame.to_csv(path / f"{name}.csv")
        frame.iloc[:60].to_csv(path / f"{name}-60.csv")
    x60, y60 = x.iloc[:60], y.iloc[:60]
    FunctionalRegression("Y ~ ff(X, k=(5, 5)) + age").fit({"X": x60, "Y": y60, "age": people["age"][:60]}).save(
        path / "c"
    )
    ScalarRegression("log(risk) ~ age").fit(people[:60]).save(path / "s")
    ScalarRegression("old ~ risk", family="binomial").fit(people[:60]).save(path / "b")
    AdditiveFunctionOnFunction(n_components=1, n_basis_x=5, n_basis_s=5).fit(x60, y60).save(path / "a")
    return path


@pytest.fixture
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise of simulations, for comparisons."""
    monkeypatch.setattr("fdadp.Privacy", lambda *a, **k: Privacy(*a, **k, random_state=3))


def values(path: Path) -> Any:
    return pd.read_csv(path, index_col=0, float_precision="round_trip").to_numpy()


def test_version() -> None:
    assert run("--version").output == f"fdadp {__version__}\n"
    assert "Exit status: 0, done" in " ".join(run("--help").output.split())


@pytest.mark.usefixtures("seeded")
@pytest.mark.parametrize("own", [("--n", N), ("--groups", "id")])
def test_a_private_additive_fit_is_that_of_the_python_api(folder: Path, tmp_path: Path, own: tuple[Any, ...]) -> None:
    out, grouped = tmp_path / "m.npz", "--groups" in own
    table = ("--table", folder / "people.csv") if grouped else ()
    done = run(
        "fit", folder / "x.csv", folder / "y.csv", *table, *RANGES, "--epsilon", 2, "--delta", 1e-6, "--out", out, *own
    )
    assert done.exit_code == 0, done.output
    assert "gradient" in done.stdout and f"Ledger written to {tmp_path / 'm.ledger.json'}" in done.stdout
    privacy = Privacy(2, 1e-6, n=None if grouped else N, random_state=3)
    here = AdditiveFunctionOnFunction(privacy=privacy, bounds={"X": (-4, 4), "Y": (-8, 8)})
    here.fit(values(folder / "x.csv"), values(folder / "y.csv"), s=S, t=T, groups=np.arange(N) if grouped else None)
    loaded = AdditiveFunctionOnFunction.load(out)
    np.testing.assert_array_equal(loaded.coef_, here.coef_)
    assert loaded.ledger_ == Ledger.from_json((tmp_path / "m.ledger.json").read_text())


@pytest.mark.usefixtures("seeded")
def test_private_mean_and_components(folder: Path, tmp_path: Path) -> None:
    asked = ("--bounds", "-8:8", "--epsilon", 2, "--delta", 1e-6, "--n", N)
    done = run("mean", folder / "y.csv", *asked, "--out", tmp_path / "mean.npz", "--level", 0.9)
    assert done.exit_code == 0, done.output
    here = PrivateMean(privacy=Privacy(2, 1e-6, n=N, random_state=3), bounds=(-8, 8)).fit(values(folder / "y.csv"), t=T)
    got = pd.read_csv(tmp_path / "mean.csv")
    np.testing.assert_allclose(got["mean"], here.mean_)
    np.testing.assert_allclose(got[["lower", "upper"]].T, np.concatenate(here.band(0.9)), rtol=1e-9)
    np.testing.assert_allclose(got["point"], T)
    assert (tmp_path / "mean.ledger.json").exists()
    np.testing.assert_array_equal(PrivateMean.load(tmp_path / "mean.npz").mean_, here.mean_)
    run("plot", tmp_path / "mean.npz", "--out", tmp_path / "mean.png")
    done = run("fpca", folder / "y.csv", *asked, "--out", tmp_path / "f.npz", "--components", 2)
    assert done.exit_code == 0 and "component 2: " in done.output
    privately = PrivateFPCA(n_components=2, privacy=Privacy(2, 1e-6, n=N, random_state=3), bounds=(-8, 8))
    privately.fit(values(folder / "y.csv"), t=T)
    np.testing.assert_allclose(pd.read_csv(tmp_path / "f.csv")["component 1"], privately.eigenfunctions_[0])
    run("plot", tmp_path / "f.npz", "--out", tmp_path / "f.pdf")
    assert (tmp_path / "mean.png").stat().st_size > 5000 and (tmp_path / "f.pdf").stat().st_size > 5000


def test_components_without_privacy(folder: Path, tmp_path: Path) -> None:
    long = tmp_path / "long.csv"
    frame = pd.read_csv(folder / "y-60.csv", index_col=0)
    frame.melt(ignore_index=False).reset_index().set_axis(["who", "s", "v"], axis=1).to_csv(long, index=False)
    done = run("fpca", long, "--long", "who,s,v", "--components", 2, "--out", tmp_path / "f.npz")
    assert done.exit_code == 0, done.output
    here = FPCA(n_components=2).fit(frame.set_axis(T, axis=1))
    np.testing.assert_allclose(pd.read_csv(tmp_path / "f.csv")["component 2"], here.eigenfunctions_[1], rtol=1e-6)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["f.csv", "long.csv"]


def test_a_fit_draws_on_a_study(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "wards.fdadp"
    Study.new(file, name="Wards", epsilon=2.0, delta=1e-6, unit="row", n=N)
    asked = ("--bounds", "-8:8", "--epsilon", 1, "--study", file, "--purpose", "staffing")
    done = run("mean", folder / "y.csv", *asked, "--out", tmp_path / "mean.npz")
    assert done.exit_code == 0, done.output
    assert "is left" in done.output and Study(file).left < 1 and "staffing" in str(Study(file))
    assert not Study(file).verify(tmp_path / "mean.npz")
    assert "left" in refused("mean", folder / "y.csv", *asked[:3], 2, *asked[4:], "--out", tmp_path / "again.npz")
    assert not (tmp_path / "again.npz").exists()


def test_evaluate_is_the_score_of_the_python_api(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    curves = ("--curves", f"X={folder / 'x-60.csv'}", "--curves", f"Y={folder / 'y-60.csv'}")
    table = ("--table", folder / "people-60.csv")
    done = run("evaluate", folder / "c.npz", *curves, *table, "--out", out, "--level", 0.9)
    assert done.exit_code == 0, done.output
    assert "keep these figures with them" in done.output
    found = json.loads(out.read_text())
    x, y = (pd.DataFrame(values(folder / f"{name}-60.csv"), columns=grid) for name, grid in (("x", S), ("y", T)))
    people = pd.read_csv(folder / "people-60.csv")
    model = FunctionalRegression.load(folder / "c.npz")
    data = {"X": x, "Y": y, "age": people["age"]}
    assert found["share explained"] == pytest.approx(model.score(data))
    error = np.asarray(model.predict(data)) - y.to_numpy()
    assert found["root mean square error"] == pytest.approx(np.sqrt(np.mean(error**2)))
    low, high = (np.asarray(side) for side in model.predict_interval(data, level=0.9))
    assert found["covered at 0.9"] == pytest.approx(np.mean((low <= y) & (y <= high)).item())
    done = run("evaluate", folder / "a.npz", folder / "x-60.csv", folder / "y-60.csv", "--out", out)
    assert done.exit_code == 0, done.output
    additive = AdditiveFunctionOnFunction.load(folder / "a.npz")
    assert json.loads(out.read_text())["share explained"] == pytest.approx(additive.score(x, y))
    for name, wanted in (("s", 4), ("b", 3)):  # of binary responses no intervals
        done = run("evaluate", folder / f"{name}.npz", *table, "--out", out)
        assert done.exit_code == 0 and len(json.loads(out.read_text())) == wanted, done.output


def test_summary_ledger_and_plot(folder: Path, tmp_path: Path) -> None:
    for name, text in (("a", "Additive function-on-function regression"), ("c", "ff(X"), ("s", "log(risk) ~ age")):
        shown = run("summary", folder / f"{name}.npz")
        assert shown.exit_code == 0 and text in shown.output
    for name, own in (("a", ()), ("c", ("--term", "ff(X)"))):
        drawn = run("plot", folder / f"{name}.npz", *own, "--out", tmp_path / f"{name}.png")
        assert drawn.exit_code == 0 and (tmp_path / f"{name}.png").stat().st_size > 5000, drawn.output
    assert "must hold a private fit to have a ledger" in refused("ledger", folder / "a.npz")


def test_the_ledger_of_a_private_model(folder: Path, tmp_path: Path) -> None:
    own = ("--bounds", "-8:8", "--epsilon", 2, "--delta", 1e-6, "--n", N, "--out", tmp_path / "mean.npz")
    assert run("mean", folder / "y.csv", *own).exit_code == 0
    shown = run("ledger", tmp_path / "mean.npz", "--out", tmp_path / "again.json")
    assert shown.exit_code == 0, shown.output
    ledger = Ledger.from_json((tmp_path / "mean.ledger.json").read_text())
    assert str(ledger) in shown.output and ledger == Ledger.from_json((tmp_path / "again.json").read_text())
    assert "predicts nothing" in refused("predict", tmp_path / "mean.npz", "y.csv", "--out", tmp_path / "p.csv")


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["fit", "x.csv"], "fit must have a formula, as 'Y ~ ff(X)', or two files"),
        (["fit", "x.csv", "y.csv", "y.csv"], "or two files"),
        (["fit", "Y ~ ff(X)", "--components", 2], "--components is there for two files"),
        (["fit", "x.csv", "y.csv", "--curves", "Z=x.csv"], "--curves is there for formulas"),
        (["fit", "x.csv", "y.csv", "--family", "poisson"], "--family is there for formulas"),
        (["fit", "x.csv", "y.csv", "--groups", "id"], "--table and --groups are there for formulas"),
        (["fit", "x.csv", "y.csv", "--study", "s.fdadp"], "--study is there for private fits: give --epsilon"),
        (["fit", "x.csv", "y.csv", "--epsilon", 2, "--n", N, *RANGES, "--long", "a,b,c"], "--grid must give"),
        (["fit", "x.csv", "y.csv", "--epsilon", 2, "--n", N, *RANGES, "--no-header"], "--no-header cannot be"),
        (["fit", "x.csv", "y.csv", "--epsilon", 2, "--n", N, *RANGES, "--basis-x", 9], "--basis-x cannot be chosen"),
        (["fit", "x.csv", "y.csv", "--epsilon", 2, "--n", N, *RANGES, "--groups", "id"], "must be given together"),
        (["fit", "x.csv", "y.csv", "--epsilon", 2, "--n", N, *RANGES[:2]], "bounds"),
        (["mean", "y.csv"], "--epsilon must be given"),
        (["mean", "y.csv", "--epsilon", 2, "--n", N], "--bounds must be the public range"),
        (["mean", "y.csv", "--epsilon", 2, "--n", N, "--bounds", "a,b"], "--bounds must be LOW:HIGH"),
        (["mean", "y.csv", "--epsilon", 2, "--n", N, "--bounds", "-8:8", "--out", "m.csv"], "--out must end in .npz"),
        (["mean", "y.csv", "--epsilon", 2, "--n", N, "--bounds", "-8:8", "--level", 2], "level must lie between"),
        (
            ["mean", "y.csv", "--epsilon", 2, "--n", N, "--bounds", "-8:8", "--out", "y.npz"],
            "not take the place of a file",
        ),
        (
            ["fpca", "y.csv", "--epsilon", 2, "--n", N, "--bounds", "-8:8", "--out", "y.npz"],
            "not take the place of a file",
        ),
        (["fpca", "y.csv", "--out", "y.npz"], "must not take the place of a file read, got 'y.csv'"),
        (["fpca", "y.csv", "--bounds", "-8:8"], "--bounds is there for private fits"),
        (["predict", "a.npz"], "--out must be given"),
        (["predict", "a.npz", "--curves", "X=x.csv", "--out", "p.csv"], "a.npz must have X as files"),
        (
            ["predict", "c.npz", "x.csv", "--out", "p.csv"],
            "files must be named for a model by a formula",
        ),
        (["evaluate", "a.npz", "x.csv"], "a.npz must have X and Y as files"),
        (["plot", "a.npz", "--out", "a.txt"], "--out must end in .png, .pdf or .svg"),
        (["plot", "a.npz", "--term", "s(age)"], "--term is there for models by a formula"),
        (["mean", "y.csv", "--epsilon", 2, "--n", N, "--bounds", "Y=-8:8"], "as --bounds 30:180, got 'Y=-8:8'"),
        (["summary", "x.csv"], "written by fdadp, got 'x.csv', which is none, or a part of one"),
        (["summary", "nowhere.npz"], "Error: no such file: nowhere.npz"),
        (["fit", "x.csv", "y.csv", "--epsilon", "one"], "Error: --epsilon must be a number, got 'one'. See "),
        (["fit", "x.csv", "y.csv", "--n", "12.5"], "Error: --n must be a whole number, got '12.5'. See "),
        (["fit", "x.csv", "y.csv", "--bounds", "X", "-8:8"], "Error: No such option"),
        (["fit"], "Error: Missing argument 'FORMULA | X Y'. See "),
        (["fitt"], "Error: No such command 'fitt'."),
        (["--epsilon", "1", "fit"], "Error: No such option"),
        (["study", "new", "s.fdadp"], "Error: Missing option '--name'. See "),
        (
            ["fit", "Y ~ ff(X) + age", "--epsilon", 2, "--bounds", "age=18,90"],
            "--bounds must be age=18:90 for a range, or 'age=\"18\",\"90\"' for two labels, got 'age=18,90'",
        ),
    ],
)
def test_mistakes_are_one_line(folder: Path, monkeypatch: Any, args: list[Any], text: str) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(CsvLines, "blocks", lambda self: pytest.fail("read"))
    before = sorted(p.name for p in folder.iterdir())
    assert text in refused(*args)
    assert sorted(p.name for p in folder.iterdir()) == before


def test_a_dry_run_of_two_files_reads_nothing(folder: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(CsvLines, "blocks", lambda self: pytest.fail("read"))
    asked = (*RANGES, "--epsilon", 2, "--n", N, "--out", tmp_path / "m.npz", "--dry-run")
    done = run("fit", folder / "x.csv", folder / "y.csv", *asked)
    assert done.exit_code == 0 and "gradient" in done.output and not list(tmp_path.iterdir())


def test_help_says_all_defaults() -> None:
    """Typer takes text in square brackets for markup of colours, and leaves it out."""

    def commands(command: Any, *names: str) -> Iterator[tuple[tuple[str, ...], Any]]:
        yield names, command
        for name, one in getattr(command, "commands", {}).items():
            yield from commands(one, *names, name)

    said = 0
    for names, command in commands(get_command(app)):
        shown = " ".join(re.sub("[│\n]", " ", run(*names, "--help").output).split())
        for text in re.findall(r"default: [^\])]*", " ".join(str(getattr(p, "help", "")) for p in command.params)):
            assert text in shown, names
            said += 1
        for argument in (p for p in command.params if p.param_type_name == "argument"):
            assert argument.help and " ".join(argument.help.split()[:3]) in shown, (names, argument.name)
    assert said > 20
