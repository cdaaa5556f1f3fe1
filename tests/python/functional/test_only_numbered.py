"""Columns labelled 0, 1, ..., S-1 are only numbered, whatever holds the labels: positions, and no grid."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from skfda import FDataGrid
from typer.testing import CliRunner

from fdadp import (
    FPCA,
    AdditiveFunctionOnFunction,
    FunctionalRegression,
    Privacy,
    PrivateFPCA,
    PrivateMean,
    ScalarRegression,
    open_curves,
    read_curves,
)
from fdadp.cli.main import app
from fdadp.errors import InputError, PublicInputWarning
from fdadp.functional.files.curve_files import write_curves
from fdadp.functional.tables.grid_from_labels import ONLY_NUMBERED, axis_of, points_after
from fdadp.private.release.mechanisms import DPAFF

pytestmark = pytest.mark.filterwarnings("ignore", category=PublicInputWarning)
N, S = 40, 9
RNG = np.random.default_rng(0)
X = (RNG.normal(size=(N, 4)) @ RNG.normal(size=(4, S))).round(6)
Y = (X[:, ::-1] / 2 + RNG.normal(0, 0.1, (N, S))).round(6)
SAID = "9 points on [0, 1] (columns are only numbered; "


def frame(labels: Any) -> Callable[[Any, Path], Any]:
    return lambda values, path: pd.DataFrame(values, columns=labels)


def csv(read: Callable[[Path], Any], **how: Any) -> Callable[[Any, Path], Any]:
    """A data frame as pandas writes it, and what reads it back."""

    def make(values: Any, path: Path) -> Any:
        pd.DataFrame(values).to_csv(path.with_suffix(".csv"), **how)
        return read(path.with_suffix(".csv"))

    return make


def pandas_csv(path: Path) -> Any:
    return pd.read_csv(path, index_col=0, float_precision="round_trip")


def npz(values: Any, path: Path) -> Any:
    write_curves({path.with_suffix(".npz"): pd.DataFrame(values)})
    return read_curves(path.with_suffix(".npz"))


def parquet(values: Any, path: Path) -> Any:
    pytest.importorskip("pyarrow")
    write_curves({path.with_suffix(".parquet"): pd.DataFrame(values)})
    return open_curves(path.with_suffix(".parquet"))


def of_columns(package: str, name: str) -> Callable[[Any, Path], Any]:
    def make(values: Any, path: Path) -> Any:
        return getattr(pytest.importorskip(package), name)({str(j): values[:, j] for j in range(S)})

    return make


def dataarray(values: Any, path: Path) -> Any:
    return pytest.importorskip("xarray").DataArray(values, {"hour": np.arange(S)}, ("person", "hour"))


CONTAINERS: dict[str, Callable[[Any, Path], Any]] = {
    "range": frame(pd.RangeIndex(S)),
    "integers": frame(np.arange(S)),
    "a list": frame(list(range(S))),
    "numbers as objects": frame(pd.Index(range(S), dtype=object)),
    "floats": frame(np.arange(S, dtype=np.float64)),
    "text": frame([str(j) for j in range(S)]),
    "text of floats": frame([f"{j:.1f}" for j in range(S)]),
    "to_csv, read_csv": csv(pandas_csv),
    "to_csv, read_curves": csv(read_curves),
    "to_csv without labels, read_curves": csv(read_curves, index=False),
    "to_csv, open_curves": csv(open_curves),
    "npz": npz,
    "parquet": parquet,
    "polars": of_columns("polars", "DataFrame"),
    "Arrow": of_columns("pyarrow", "table"),
    "xarray": dataarray,
    "xarray, opened": lambda values, path: open_curves(dataarray(values, path)),
    "frame, opened": lambda values, path: open_curves(frame(np.arange(S))(values, path)),
}

NO_GRID: dict[str, Any] = {"progress": False}


def private(response: str = "Y") -> dict[str, Any]:
    privacy = Privacy(8.0, 1e-6, n=N, random_state=0)
    bounds = {"X": (-9, 9), response: (-9, 9)}
    return {"privacy": privacy, "bounds": bounds, "mechanism": DPAFF(allow_useless=True)}


def additive(**settings: Any) -> Callable[[Any, Any], Any]:
    return lambda x, y: AdditiveFunctionOnFunction(**settings, **NO_GRID).fit(x, y)


def summary(kind: Any) -> Callable[[Any, Any], Any]:
    return lambda x, y: kind(privacy=private()["privacy"], bounds=(-9, 9), allow_useless=True).fit(y)


def functional(formula: str, **settings: Any) -> Callable[[Any, Any], Any]:
    return lambda x, y: FunctionalRegression(formula, **settings, **NO_GRID).fit({"X": x, "Y": y}, by="position")


def scalar(**settings: Any) -> Callable[[Any, Any], Any]:
    def fit(x: Any, y: Any) -> Any:
        data = {"X": x, "y": X.mean(axis=1)}
        return ScalarRegression("y ~ lf(X)", **settings, **NO_GRID).fit(data, by="position")

    return fit


ENTRY_POINTS: dict[str, Callable[[Any, Any], Any]] = {
    "additive": additive(n_components=2),
    "additive, private": additive(**private()),
    "functional": functional("Y ~ ff(X, k=(4, 4))"),
    "functional, private": functional("Y ~ ff(X)", **private()),
    "scalar": scalar(),
    "scalar, private": scalar(**private("y")),
    "PrivateMean": summary(PrivateMean),
    "PrivateFPCA": summary(PrivateFPCA),
}


def result(model: Any) -> bytes:
    """Numbers that depend on the grid."""
    names = ("coef_", "mean_", "eigenfunctions_", "grid_", "s_", "t_", "r2_", "edf_")
    found = [np.ravel(getattr(model, name)) for name in names if hasattr(model, name)]
    grids = getattr(getattr(model, "fitted_", None), "covariates", None)
    found += [] if grids is None else list(grids.grids.values())
    return np.concatenate(found).tobytes()


@functools.cache
def of_arrays(entry: str) -> bytes:
    return result(ENTRY_POINTS[entry](X, Y))


@functools.cache
def says_that_it_was_numbered(entry: str) -> bool:
    return SAID in str(ENTRY_POINTS[entry](X, Y).summary())


@pytest.mark.each_once
@pytest.mark.parametrize("entry", list(ENTRY_POINTS))
@pytest.mark.parametrize("container", list(CONTAINERS))
def test_a_numbered_table_gives_what_the_array_gives(container: str, entry: str, tmp_path: Path) -> None:
    """A frame of a RangeIndex lay on [0, 1], and the CSV file that pandas made of it on [0, 8]."""
    make = CONTAINERS[container]
    if entry in ("functional, private", "scalar, private") and container == "to_csv, open_curves":
        pytest.skip("a file of unknown length is no column beside others")
    model = ENTRY_POINTS[entry](make(X, tmp_path / "x"), make(Y, tmp_path / "y"))
    assert result(model) == of_arrays(entry)
    assert SAID in str(model.summary())
    assert not says_that_it_was_numbered(entry)


@pytest.mark.parametrize("container", list(CONTAINERS))
def test_components_of_a_numbered_table(container: str, tmp_path: Path) -> None:
    found = FPCA(n_components=2).fit(CONTAINERS[container](Y, tmp_path / "y"))
    assert found.eigenfunctions_.tobytes() == FPCA(n_components=2).fit(Y).eigenfunctions_.tobytes()


@pytest.mark.parametrize("epsilon", [[], ["--epsilon", "50", "--delta", "1e-6", "--n", str(N)]])
def test_in_the_shell(epsilon: list[str], tmp_path: Path) -> None:
    """The first line of a file that pandas wrote is no grid, with privacy and without."""
    files = [str(tmp_path / name) for name in ("x.csv", "y.csv")]
    for path, values in zip(files, (X, Y), strict=True):
        pd.DataFrame(values, index=[f"p{i}" for i in range(N)]).to_csv(path)
    more = ["--bounds", "X=-9:9", "--bounds", "Y=-9:9"] if epsilon else []
    model = str(tmp_path / "model.npz")
    run = CliRunner().invoke(app, ["fit", *files, "--out", model, *epsilon, *more])
    assert run.exit_code == 0, run.output
    assert (
        epsilon or f"{files[0]}: 40 curves, labelled, 9 points, an even grid on [0, 1], {ONLY_NUMBERED}" in run.output
    )
    loaded = AdditiveFunctionOnFunction.load(model)
    assert loaded.s_.tobytes() == loaded.t_.tobytes() == np.linspace(0, 1, S).tobytes()


def test_times_of_a_long_table_in_the_shell_are_points(tmp_path: Path) -> None:
    """They are numbers that somebody wrote, and no count of columns: as --grid X=0:8:9 of a private fit says."""
    long = pd.DataFrame(X).rename_axis(index="id").reset_index().melt("id", var_name="hour", value_name="value")
    other = long.assign(value=pd.DataFrame(Y).melt()["value"])
    files = [str(tmp_path / name) for name in ("x.csv", "y.csv")]
    for path, table in zip(files, (long, other), strict=True):
        table.to_csv(path, index=False)
    model = str(tmp_path / "model.npz")
    assert CliRunner().invoke(app, ["fit", *files, "--out", model, "--long", "id,hour,value"]).exit_code == 0
    np.testing.assert_array_equal(AdditiveFunctionOnFunction.load(model).s_, np.arange(S))


@pytest.mark.parametrize(
    ("labels", "grid"),
    [
        ([f"h{j:02d}" for j in range(24)], np.arange(24)),
        (np.arange(1, 25), np.arange(1, 25)),
        ([str(j) for j in range(1, 25)], np.arange(1, 25)),
        (np.arange(24) + 0.5, np.arange(24) + 0.5),
        (np.arange(0, 48, 2), np.arange(0, 48, 2)),
        (pd.date_range("2024-01-01", periods=24), np.arange(24)),
        ([f"{j}:00" for j in range(24)], np.arange(24)),
        (points_after([f"day1_h{j:02d}" for j in range(24)], "day1_h"), np.arange(24)),
    ],
)
def test_other_labels_are_points(labels: Any, grid: Any) -> None:
    found = axis_of(pd.Index(labels), "X")
    assert found is not None
    np.testing.assert_array_equal(found.points, grid)


def test_points_that_are_said_are_points_of_a_numbered_table() -> None:
    hours = np.arange(S)
    curves = pd.DataFrame(X)
    model = ScalarRegression("y ~ lf(X)", **NO_GRID).fit({"X": curves, "y": X.mean(axis=1)}, grids={"X": hours})
    assert "Grid of X: 9 points on [0, 8]." in str(model.summary())
    np.testing.assert_array_equal(open_curves(curves, grids=hours).grid, hours)


@pytest.mark.parametrize("formula", ["Y ~ X", "Y ~ ff(X, limits='s<=t')", "Y ~ concurrent(X)"])
@pytest.mark.parametrize("private", [False, True])
def test_hours_beside_columns_that_are_only_numbered_are_no_part_of_the_first_hour(formula, private):
    rng = np.random.default_rng(0)
    X, hours = rng.normal(size=(40, 24)), np.arange(24.0)
    data = {"X": FDataGrid(X, hours), "Y": pd.DataFrame(X + rng.normal(size=X.shape))}
    how = {"privacy": Privacy(8.0, 1e-6, n=40), "bounds": {"X": (-4, 4), "Y": (-6, 6)}} if private else {}
    with pytest.raises(InputError, match=r"X covers \[0, 23\], the response only \[0, 1\]; say its points by grids="):
        FunctionalRegression(formula, **how).fit(data)
    if not private:
        FunctionalRegression(formula, **how).fit(data, grids={"Y": hours})
