"""Six files as people have them go into a fit, by one command and in Python; the order of their rows is of no effect.

``tests/testthat/test-messy.R`` has them in R.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from fdadp import Privacy, ScalarRegression, read_curves
from fdadp.cli.main import app
from fdadp.privacy import SeededNoise

N, HOURS = 80, np.arange(24)
DRAW = np.random.default_rng(0)
IDS = pd.Index([f"p{i:03d}" for i in range(N)], name="pid")
SCORES = DRAW.normal(size=(N, 2))
X = (10 + SCORES @ np.array([np.sin(HOURS / 4), np.cos(HOURS / 4)]) + DRAW.normal(size=(N, 24)) / 10).round(4)
PEOPLE = pd.DataFrame({"age": DRAW.normal(50, 10, N).round(1), "sex": DRAW.choice(["F", "M"], N)}, index=IDS)
PEOPLE["y"] = (SCORES[:, 0] + PEOPLE["age"] / 50 + DRAW.normal(size=N) / 10).round(4)
STAMPS = [f"2024-03-01 {hour:02d}:00" for hour in HOURS]
PRIVATE = [
    "--epsilon",
    "20",
    "--n",
    str(N),
    "--bounds=X=0:20",
    "--bounds=y=-4:6",
    "--bounds=age=18:100",
    "--bounds=sex=F,M",
]
Tables = dict[str, tuple[pd.DataFrame, dict[str, Any]]]


def wide(names: Any = tuple(f"h{hour:02d}" for hour in HOURS), **options: Any) -> Tables:
    return {"people.csv": (pd.concat([PEOPLE, pd.DataFrame(X, index=IDS, columns=list(names))], axis=1), options)}


def long() -> Tables:
    table = (
        pd.DataFrame(X, index=IDS, columns=STAMPS).stack().rename_axis(["pid", "time"]).rename("value").reset_index()
    )
    return {"curves.csv": (table.assign(unit="mmol/l"), {"index": False}), "people.csv": (PEOPLE, {})}


def with_gaps() -> Tables:
    x, people = X.copy(), PEOPLE.copy()
    x[3, 5:8], x[40, 20:] = np.nan, np.nan
    people.loc["p007", "age"] = np.nan
    return {"people.csv": (pd.concat([people, pd.DataFrame(x, index=IDS).add_prefix("h")], axis=1), {})}


SIX: dict[str, tuple[Callable[[], Tables], list[str]]] = {
    "wide": (wide, ["--curves=X=people.csv:h*"]),
    "semicolons": (lambda: wide(sep=";", decimal=","), ["--curves=X=people.csv:h*", "--sep=;", "--decimal=,"]),
    "time stamps": (lambda: wide(STAMPS), ["--curves=X=people.csv:2024*"]),
    "long": (long, ["--curves=X=curves.csv", "--long=pid,time,value"]),
    "two files": (
        lambda: {"x.csv": (pd.DataFrame(X, index=IDS, columns=HOURS), {}), "people.csv": (PEOPLE, {})},
        ["--curves=X=x.csv"],
    ),
    "gaps": (with_gaps, ["--curves=X=people.csv:h*"]),
}


SEEDS = (None, 1, 2)


def written(tables: Tables, seed: int | None) -> None:
    """Write each table with its rows in an order of its own; as they stand without a seed."""
    for name, (table, how) in tables.items():
        order = list(range(len(table)))
        if seed is not None:
            random.Random(f"{seed} {name}").shuffle(order)
        table.iloc[order].to_csv(name, **how)


def run(*arguments: str) -> str:
    with mock.patch("fdadp.privacy.noise.sources.OpenDPNoise", lambda: SeededNoise(0)):
        result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


@pytest.mark.parametrize("private", [False, True], ids=["ordinary", "private"])
@pytest.mark.parametrize("form", SIX)
def test_a_messy_file_goes_in_and_the_order_of_its_rows_is_of_no_effect(
    form: str, private: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make, options = SIX[form]
    own = [*options, "--table=people.csv", "--id=pid", *(PRIVATE if private else [])]
    if private and form == "long":
        own += ["--grid", "X=" + ",".join(STAMPS)]
    if form == "gaps" and not private:
        own += ["--missing=X=linear", "--missing=age=indicator"]
    fits = []
    for seed in SEEDS:
        written(make(), seed)
        out = run("fit", "y ~ lf(X) + age + sex", *own, "--out", "model.npz")
        one = private and "X=people.csv" in " ".join(options)
        said = "Protected unit: person" if one else "joined by pid" if private else "joined 80 of 80 by pid"
        assert said in " ".join(out.split())
        fits.append(ScalarRegression.load("model.npz").fitted_.fit.coefficients)
    same(fits, private)


def same(fits: list[Any], private: bool) -> None:
    for other in fits[1:]:
        if private:
            np.testing.assert_array_equal(other, fits[0])
        else:
            np.testing.assert_allclose(other, fits[0], rtol=1e-6, atol=1e-9)


def one_file(columns: str, **options: Any) -> dict[str, Any]:
    people = pd.read_csv("people.csv", index_col="pid", **options)
    return {"X": people.filter(regex=columns), **people[["age", "sex", "y"]]}


def two_files(curves: pd.DataFrame) -> dict[str, Any]:
    return {"X": curves, **pd.read_csv("people.csv", index_col="pid")}


IN_PYTHON: dict[str, Callable[[], dict[str, Any]]] = {
    "wide": lambda: one_file("^h"),
    "semicolons": lambda: one_file("^h", sep=";", decimal=","),
    "time stamps": lambda: one_file("^2024"),
    "long": lambda: two_files(read_curves("curves.csv", long=("pid", "time", "value"))),
    "two files": lambda: two_files(pd.read_csv("x.csv", index_col="pid")),
    "gaps": lambda: one_file("^h"),
}


@pytest.mark.parametrize("private", [False, True], ids=["ordinary", "private"])
@pytest.mark.parametrize("form", SIX)
def test_a_messy_file_goes_in_through_python_too(
    form: str, private: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bounds = {"X": (0, 20), "y": (-4, 6), "age": (18, 100), "sex": ["F", "M"]}
    fits, predicted = [], []
    for seed in SEEDS:
        written(SIX[form][0](), seed)
        data = IN_PYTHON[form]()
        model = ScalarRegression("y ~ lf(X) + age + sex", progress=False)
        if private:
            model.set_params(privacy=Privacy(20.0, n=N, random_state=0), bounds=bounds)
        elif form == "gaps":
            model.set_params(missing={"X": "linear", "age": "indicator"})
        model.fit(data)
        assert model.joined_ is None if private else model.joined_ == "joined 80 of 80 by pid"
        fits.append(model.fitted_.fit.coefficients)
        predicted.append(model.predict(data)[IDS])
    same(fits, private)
    same(predicted, private)
    assert private or np.corrcoef(predicted[0], PEOPLE["y"])[0, 1] > 0.95
