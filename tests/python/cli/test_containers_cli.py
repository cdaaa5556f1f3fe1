"""Containers on the command line: parquet with lists, arrays on disk, zarr; private fits of them, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from fdadp import AdditiveFunctionOnFunction, FunctionalRegression, simulate_affr
from fdadp.cli.main import app

pa = pytest.importorskip("pyarrow")
PEOPLE = simulate_affr(scenario=1, n=400, n_points=11, seed=0)
X, Y = (c.data_matrix[..., 0] for c in (PEOPLE.X, PEOPLE.Y))
AGE = np.linspace(20, 80, 400)
PRIVATE = ["--epsilon", "4", "--delta", "1e-6", "--n", "400", "--bounds", "X=-5:5", "--bounds", "Y=-9:9"]


def run(*arguments: Any) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def refused(*arguments: Any) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code != 0
    return " ".join(result.output.split())


@pytest.fixture
def files(tmp_path: Path) -> Path:
    import pyarrow.parquet as pq

    curves = {name: pa.FixedSizeListArray.from_arrays(v.ravel(), 11) for name, v in (("X", X), ("Y", Y))}
    table = pa.table({"person": np.arange(400) // 2, "age": AGE, **curves})
    pq.write_table(table, tmp_path / "people.parquet", row_group_size=90)
    pq.write_table(table.select(["X"]), tmp_path / "x.parquet")
    np.save(tmp_path / "x.npy", X), np.save(tmp_path / "y.npy", Y)
    pd.DataFrame({"person": np.arange(400) // 2, "age": AGE}).to_csv(tmp_path / "people.csv", index=False)
    return tmp_path


def test_fits_of_files_are_those_of_arrays(files: Path) -> None:
    out = files / "m.npz"
    plain = AdditiveFunctionOnFunction().fit(X, Y)
    for x in ("x.npy", "x.parquet"):
        run("fit", files / x, files / "y.npy", "--out", out)
        np.testing.assert_allclose(AdditiveFunctionOnFunction.load(out).coef_, plain.coef_, rtol=1e-6, atol=1e-8)
    run("predict", out, files / "x.npy", "--out", files / "predicted.csv")
    np.testing.assert_allclose(pd.read_csv(files / "predicted.csv").to_numpy(), plain.predict(X), rtol=1e-6, atol=1e-8)
    run("fit", "Y ~ ff(X) + s(age)", "--table", files / "people.parquet", "--out", out)
    terms = FunctionalRegression("Y ~ ff(X) + s(age)").fit({"X": X, "Y": Y, "age": AGE})
    loaded = FunctionalRegression.load(out)
    np.testing.assert_allclose(loaded.coefficients_, terms.coefficients_, rtol=1e-5, atol=1e-7)


@pytest.mark.filterwarnings("ignore::fdadp.errors.FdadpWarning")
def test_private_fits_of_containers(files: Path) -> None:
    out = files / "m.npz"
    bounds = [*PRIVATE, "--bounds", "age=20:80", "--groups", "person", "--out", str(out)]
    said = run("fit", "Y ~ ff(X) + age", "--table", files / "people.parquet", *bounds)
    assert "Ledger written" in said and (files / "m.ledger.json").exists()
    assert set(FunctionalRegression.load(out).term_names_) == {"(Intercept)", "s(t)", "ff(X)", "age"}
    mixed = ["--curves", f"X={files / 'x.parquet'}", "--curves", f"Y={files / 'y.npy'}"]
    run("fit", "Y ~ ff(X) + age", *mixed, "--table", files / "people.csv", *bounds)
    run("fit", files / "x.npy", files / "x.parquet", *PRIVATE, "--out", out)
    assert "got None" in refused("fit", "Y ~ ff(Z)", "--table", files / "people.parquet", *PRIVATE, "--out", out)
    assert "one sample of curves" in refused("fit", "Y ~ age", "--table", files / "x.npy", *PRIVATE, "--out", out)
