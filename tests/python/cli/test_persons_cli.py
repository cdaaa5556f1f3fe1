"""Several curves a person, and times to an event by the command line: messy files, private releases, mistakes."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from fdadp import FunctionalRegression, MultilevelFPCA, Privacy, ScalarRegression, SurvivalRegression, concordance
from fdadp.cli.main import app
from fdadp.errors import PublicInputWarning
from fdadp.privacy import SeededNoise
from fdadp.summaries import PrivateMultilevelFPCA, private_survival

PERSONS, ROWS, HOURS = 60, 3, np.arange(24)
N = PERSONS * ROWS
DRAW = np.random.default_rng(0)
OWN = DRAW.normal(size=(PERSONS, 1)) * np.sin(HOURS / 6)
CURVES = (np.repeat(OWN, ROWS, axis=0) + DRAW.normal(size=(N, 1)) * np.cos(HOURS / 6)).round(3)
CURVES = (CURVES + DRAW.normal(size=CURVES.shape) / 5).round(3)
DAYS = pd.DataFrame({"visit": range(1, N + 1), "person": [f"p{i:02d}" for i in np.repeat(np.arange(PERSONS), ROWS)]})
STAMPS = [f"2024-03-01 {hour:02d}:00" for hour in HOURS]
NAMES = [f"h{hour:02d}" for hour in HOURS]
LEVELS = ["--epsilon=8", "--delta=1e-6", f"--n={PERSONS}", "--bounds=-6:6", f"--max-rows={ROWS}"]

PEOPLE = pd.DataFrame(
    {"pid": np.arange(N) ** 2 + 7, "age": DRAW.uniform(-1, 1, N).round(3), "sex": DRAW.choice(["F", "M"], N)}
)
_seen, _end = DRAW.exponential(6 * np.exp(-0.6 * CURVES.mean(axis=1) - 0.5 * PEOPLE["age"])), DRAW.uniform(2, 16, N)
PEOPLE["months"], PEOPLE["died"] = np.minimum(_seen, _end).round(3), (_seen <= _end) * 1
SURV = "Surv(months, died) ~ lf(X) + age + sex"
PUBLIC = ["--bounds=X=-6:6", "--bounds=age=-1:1", "--bounds=sex=F,M"]
BUDGET = ["--epsilon=8", "--delta=1e-6", f"--n={N}"]


def beside(table: pd.DataFrame, names: Any = NAMES) -> pd.DataFrame:
    return pd.concat([table, pd.DataFrame(CURVES, columns=list(names))], axis=1)


def long(id: str, ids: Any) -> pd.DataFrame:
    values = pd.DataFrame(CURVES, index=pd.Index(ids, name=id), columns=STAMPS)
    return values.stack().rename_axis([id, "time"]).rename("value").reset_index()


def with_gaps(table: pd.DataFrame) -> pd.DataFrame:
    out = beside(table)
    out.loc[3, NAMES[5:8]] = np.nan
    out.loc[40, NAMES[20:]] = np.nan
    return out


def six(table: pd.DataFrame, id: str) -> dict[str, tuple[dict[str, tuple[pd.DataFrame, dict[str, Any]]], list[str]]]:
    """Files by name, with how they are written, and how commands are told of them."""
    curves = pd.DataFrame(CURVES, columns=HOURS)
    curves.insert(0, id, table[id])
    prefix = ["table.csv:h*"]
    return {
        "wide": ({"table.csv": (beside(table), {})}, prefix),
        "semicolons": (
            {"table.csv": (beside(table), {"sep": ";", "decimal": ","})},
            [*prefix, "--sep=;", "--decimal=,"],
        ),
        "time stamps": ({"table.csv": (beside(table, STAMPS), {})}, ["table.csv:2024*"]),
        "long": (
            {"curves.csv": (long(id, table[id]), {}), "table.csv": (table, {})},
            ["curves.csv", f"--long={id},time,value"],
        ),
        "two files": ({"curves.csv": (curves, {}), "table.csv": (table, {})}, ["curves.csv"]),
        "gaps": ({"table.csv": (with_gaps(table), {})}, prefix),
    }


def written(files: dict[str, tuple[pd.DataFrame, dict[str, Any]]], seed: int | None) -> None:
    """Write each table with its rows in an order of its own; as they stand without a seed."""
    for name, (table, how) in files.items():
        order = list(range(len(table)))
        if seed is not None:
            random.Random(f"{seed} {name}").shuffle(order)
        table.iloc[order].to_csv(name, index=False, **how)


def run(*arguments: str, code: int = 0) -> str:
    with mock.patch("fdadp.privacy.noise.sources.OpenDPNoise", lambda: SeededNoise(0)):
        result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


ONE_FILE = ("wide", "semicolons", "time stamps", "gaps")
"""Private fits join no rows of several files by the ids of visits, nor rows of persons in time."""
BOTH = [(form, False) for form in six(DAYS, "visit")] + [(form, True) for form in ONE_FILE]


@pytest.mark.parametrize(("form", "private"), BOTH)
def test_components_of_persons_do_not_depend_on_the_order_of_rows(form: str, private: bool) -> None:
    files, told = six(DAYS, "visit")[form]
    whose = ["--id=person"] if private else ["--table=table.csv", "--id=visit", "--groups=person"]
    found = []
    for seed in (None, 1):
        written(files, seed)
        run("mfpca", *told, *whose, "--components=1,1", *(LEVELS if private else []))
        model = (PrivateMultilevelFPCA if private else MultilevelFPCA).load("mfpca.npz")
        found.append(np.vstack([model.mean_, *model.eigenfunctions_.values()]))
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=0 if private else 1e-5, atol=0 if private else 1e-6)


@pytest.mark.parametrize(("form", "private"), BOTH)
def test_hazards_do_not_depend_on_the_order_of_rows(form: str, private: bool) -> None:
    files, (curves, *more) = six(PEOPLE, "pid")[form]
    own = [f"--curves=X={curves}", *more, "--table=table.csv", "--id=pid", "--times=0:8:5"]
    own += [*PUBLIC, *BUDGET] if private else ["--missing=X=linear"] if form == "gaps" else []
    fits = []
    for seed in (None, 1):
        written(files, seed)
        said = run("fit", SURV, *own)
        assert private or f"joined {N} of {N} by pid" in said
        fits.append(SurvivalRegression.load("model.npz").model_.fitted_.fit.coefficients)
    for other in fits[1:]:
        np.testing.assert_allclose(other, fits[0], rtol=0 if private else 1e-6, atol=0 if private else 1e-9)


def test_private_mixed_models_are_those_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    table = beside(DAYS.assign(weekend=DRAW.integers(0, 2, N)))
    table.sample(frac=1, random_state=1).to_csv("table.csv", index=False)
    monkeypatch.setattr("fdadp.privacy.noise.sources.OpenDPNoise", lambda: SeededNoise(0))
    formula = "Y ~ weekend + re(person, covariance='free')"
    fit = ["fit", formula, "--curves=Y=table.csv:h*", "--table=table.csv", *LEVELS[:3], "--bounds=Y=-6:6"]
    fit += ["--bounds=weekend=0:1", f"--max-rows={ROWS}"]
    said = run(*fit, "--within=weekend")
    assert "effects of weekend come from what differs within persons" in said
    model = FunctionalRegression(
        formula,
        privacy=Privacy(8.0, 1e-6, n=PERSONS),
        bounds={"Y": (-6, 6), "weekend": (0, 1)},
        max_rows=ROWS,
        within=("weekend",),
    )
    data = {"Y": CURVES, "weekend": table["weekend"].to_numpy(), "person": DAYS["person"].to_numpy()}
    with pytest.warns(PublicInputWarning, match="n \\* epsilon is 480"):
        model.fit(data, grids={"Y": HOURS * 1.0})
    loaded = FunctionalRegression.load("model.npz")
    np.testing.assert_array_equal(loaded.fitted_.fit.coefficients, model.fitted_.fit.coefficients)
    assert "rows of a person are weighed as exchangeable" in run(*fit, "--person-rows=exchangeable")
    for wrong, why in (
        ([*fit[:-1], "--within=weekend"], "max_rows must be given"),
        ([*fit, "--within=age"], "within must name columns of terms"),
        ([*fit[:4], "--within=weekend"], "--within is there for private fits"),
        (["fit", "Y ~ weekend", *fit[2:], "--within=weekend"], "need --groups, or re(id)"),
        (["fit", "Y ~ weekend + `re(person)`", *fit[2:], "--within=weekend"], "need --groups, or re(id)"),
    ):
        assert why in run(*wrong, code=2)


def test_several_rows_of_a_person_are_not_joined_by_the_person(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that differ have nothing there, so that nobody was in the fit: its budget was spent without a word."""
    monkeypatch.setattr("fdadp.privacy.noise.sources.OpenDPNoise", lambda: pytest.fail("spent"))
    days = DAYS[["person"]]
    pd.concat([days, pd.DataFrame(CURVES, columns=HOURS)], axis=1).to_csv("days.csv", index=False)
    days.assign(weekend=np.arange(N) % 2).to_csv("visits.csv", index=False)
    files = ["--curves=Y=days.csv", "--table=visits.csv", *LEVELS[:3], "--bounds=Y=-6:6", "--bounds=weekend=0:1"]
    told = "--max-rows must be left out where rows of several files are joined by 'person'"
    assert told in run("fit", "Y ~ weekend + re(person, covariance='free')", *files, "--max-rows=3", code=2)
    summed = [*files, "--groups=person", "--person-rows=sum", "--max-rows=3"]
    assert told in run("fit", "Y ~ weekend", *summed, code=2)


def test_private_hazards_of_two_files_are_those_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of both are joined by the kernel, in whatever order; curves of nobody in the table change nothing."""
    curves = pd.DataFrame(CURVES, index=pd.Index(PEOPLE["pid"], name="pid"), columns=HOURS)
    stray = pd.DataFrame([np.full(24, 5.0)], index=pd.Index([3], name="pid"), columns=HOURS)
    found = []
    for seed, rows in ((None, curves), (1, curves), (2, pd.concat([stray, curves]))):
        monkeypatch.setattr("fdadp.privacy.noise.sources.OpenDPNoise", lambda: SeededNoise(0))
        mixed = {"frac": 1, "random_state": seed or 0}
        rows.sample(**mixed).to_csv("x.csv")
        (beside(PEOPLE) if seed is None else PEOPLE).sample(**mixed).to_csv("table.csv", index=False)
        own = "table.csv:h*" if seed is None else "x.csv"
        run("fit", SURV, f"--curves=X={own}", "--table=table.csv", "--id=pid", "--times=0:8:5", *PUBLIC, *BUDGET)
        found.append(SurvivalRegression.load("model.npz").model_.fitted_.fit.coefficients)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6, atol=1e-7)  # sums of a person's rows are rounded
    np.testing.assert_array_equal(found[2], found[1])
    PEOPLE.drop(columns="died").to_csv("table.csv", index=False)
    fit = ["fit", SURV, "--curves=X=x.csv", "--table=table.csv", "--id=pid", "--times=0:8:5", *PUBLIC, *BUDGET]
    assert "died" in run(*fit, code=2)


def test_components_are_those_of_python_with_scores_in_files() -> None:
    written(six(DAYS, "visit")["wide"][0], None)
    said = run("mfpca", "table.csv:h*", "--id=person", "--components=2,1", "--scores=scores.csv", "--method=face")
    assert "Multilevel functional principal components" in said and "MultilevelFPCA.load('mfpca.npz')" in said
    model = MultilevelFPCA(n_components=(2, 1), method="face").fit(CURVES, groups=DAYS["person"], t=HOURS * 1.0)
    person, row = model.transform(CURVES, groups=DAYS["person"], t=HOURS * 1.0)
    scores = pd.read_csv("scores.csv", index_col="person")
    np.testing.assert_allclose(scores.loc[person.index], person, atol=1e-9)
    np.testing.assert_allclose(pd.read_csv("scores-rows.csv", index_col="person"), row, atol=1e-9)
    named = [*scores.columns, *pd.read_csv("scores-rows.csv", index_col="person").columns]
    assert named == list(pd.read_csv("mfpca.csv", index_col="point").columns[1:])  # person 1 is person 1 in both
    functions = pd.read_csv("mfpca.csv")
    assert functions.columns.tolist() == ["point", "mean", "person 1", "person 2", "row 1"]
    np.testing.assert_allclose(functions["row 1"], model.eigenfunctions_["row"][0], atol=1e-9)
    assert "ICC" in run("summary", "mfpca.npz")
    for options in ([], ["--term=row"]):
        run("plot", "mfpca.npz", *options, "--out=levels.png")
        assert Path("levels.png").stat().st_size > 1000
    assert "must hold a private fit" in run("ledger", "mfpca.npz", code=2)
    assert "predicts nothing" in run("predict", "mfpca.npz", "--table=table.csv", "--out=a.csv", code=2)


def test_private_components_are_those_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    written(six(DAYS, "visit")["wide"][0], 3)
    run("mfpca", "table.csv:h*", "--id=person", "--components=1", *LEVELS)
    monkeypatch.setattr("fdadp.privacy.noise.sources.OpenDPNoise", lambda: SeededNoise(0))
    model = PrivateMultilevelFPCA(
        n_components=1, privacy=Privacy(8.0, 1e-6, n=PERSONS), bounds=(-6, 6), max_rows=ROWS
    ).fit(CURVES, groups=DAYS["person"], t=HOURS * 1.0)
    loaded = PrivateMultilevelFPCA.load("mfpca.npz")
    np.testing.assert_array_equal(loaded.eigenfunctions_["person"], model.eigenfunctions_["person"])
    assert json.loads(Path("mfpca.ledger.json").read_text())["epsilon"] == 8
    assert "epsilon = 8" in run("ledger", "mfpca.npz")


def test_a_survival_regression_predicts_and_is_judged_and_drawn() -> None:
    written(six(PEOPLE, "pid")["wide"][0], None)
    own = ["--curves=X=table.csv:h*", "--table=table.csv", "--id=pid"]
    run("fit", SURV, *own, "--times=0,2,4,6,8", "--family=poisson", "--baseline=linear")
    data = {"X": pd.DataFrame(CURVES, columns=HOURS), **{name: PEOPLE[name] for name in PEOPLE}}
    model = SurvivalRegression(SURV, times=[0, 2, 4, 6, 8], family="poisson", baseline="linear").fit(data)
    assert "curves written to survival.csv" in run("predict", "model.npz", *own, "--times=1,8", "--out=survival.csv")
    shown = pd.read_csv("survival.csv", index_col=0)
    assert shown.columns.tolist() == ["1.0", "8.0"] and shown.index.tolist() == PEOPLE["pid"].tolist()
    np.testing.assert_allclose(shown, model.predict_survival(data, [1, 8]), rtol=1e-6)
    run("evaluate", "model.npz", *own, "--out=figures.json")
    wanted = concordance(PEOPLE["months"], PEOPLE["died"], np.asarray(model.predict(data)))
    assert json.loads(Path("figures.json").read_text())["concordance"] == pytest.approx(wanted)
    assert "person-periods" in run("fit", SURV, *own, "--groups=sex", "--out=grouped.npz")
    for options in ([], ["--term=lf(X)"]):
        run("plot", "model.npz", *options, "--out=hazard.png")
    assert "--interval must be left out" in run("predict", "model.npz", *own, "--interval=.9", "--out=a.csv", code=2)


def test_a_private_survival_curve_is_that_of_python_whatever_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = []
    for seed in (None, 1):
        PEOPLE.sample(frac=1, random_state=seed).to_csv("people.csv", index=False)
        said = run(
            "survival", "people.csv", "--time=months", "--event=died", "--edges=0:8:9", "--by=sex=F,M",
            "--epsilon=2", f"--n={N}", "--groups=pid", "--out=curve.csv",
        )  # fmt: skip
        assert "log-rank z" in said and "differentially private end to end" in said
        shown.append(pd.read_csv("curve.csv"))
    monkeypatch.setattr("fdadp.privacy.noise.sources.OpenDPNoise", lambda: SeededNoise(0))
    asked: Any = {"edges": range(9), "by": {"sex": ["F", "M"]}, "groups": PEOPLE["pid"]}
    frame = private_survival(PEOPLE, "months", "died", privacy=Privacy(2.0, n=N), **asked).frame
    for own in shown:
        np.testing.assert_allclose(own["value"], frame["value"], rtol=1e-12)
        assert own.columns.tolist() == ["group", "what", "time", "value", "low", "high", "noise_sd"]
    assert Path("curve.ledger.json").exists()


MISTAKES = [
    (["mfpca", "table.csv:h*"], "--id must name the column of persons' ids"),
    (["mfpca", "table.csv:h*", "--groups=person"], "--table and --groups must be given together"),
    (["mfpca", "table.csv:h*", "--table=table.csv", "--groups=nobody"], "nobody"),
    (["mfpca", "table.csv:h*", "--id=person", "--components=1,2,3"], "--components must be one number, or two"),
    (["mfpca", "table.csv:h*", "--id=person", "--max-rows=2"], "--max-rows is there for private fits"),
    (["mfpca", "table.csv:h*", "--id=person", "--scores=a.csv", *LEVELS], "--scores cannot be in a private release"),
    (["mfpca", "table.csv:h*", "--id=person", "--scores=table.csv"], "--out and what goes with it must not take"),
    (["mfpca", "table.csv:h*", "--id=person", *LEVELS[:-1]], "max_rows must be given"),
    (["fit", "Y ~ age", "--times=0:8:9"], "--times is there for formulas of Surv(time, event)"),
    (["fit", SURV, "--table=people.csv", "--times=0:8"], "--times must be LOW:HIGH:COUNT"),
    (["fit", SURV, "--table=people.csv", "--offset=age"], "--offset must be left out of Surv()"),
    (
        ["fit", SURV, "--table=people.csv", "--curves=X=table.csv:h*", "--times=0:8:5", *PUBLIC, *BUDGET],
        "--id must name the column of the persons, which all files have, in a private fit of times to an event",
    ),
    (
        ["fit", "Surv(months, died) ~ age", "--table=people.csv", PUBLIC[1], *BUDGET],
        "times must give public ends of periods",
    ),
    (["survival", "people.csv", "--time=months", "--event=died", "--edges=0:8:9"], "--epsilon must be given"),
    (
        ["survival", "people.csv", "--time=months", "--event=gone", "--edges=0:8:9", "--epsilon=1"],
        "gone",
    ),
    (
        ["survival", "people.csv", "--time=months", "--event=died", "--edges=0:8:9", "--by=sex", "--epsilon=1"],
        "--by must be NAME=CLASSES",
    ),
    (
        ["survival", "people.csv", "--time=months", "--event=died", "--edges=0:8:9", "--epsilon=1", "--out=people.csv"],
        "must not take the place of a file read",
    ),
]


@pytest.mark.parametrize(("arguments", "said"), MISTAKES)
def test_mistakes_are_one_line_and_nothing_is_written(arguments: list[str], said: str) -> None:
    written(six(DAYS, "visit")["wide"][0], None)
    PEOPLE.to_csv("people.csv", index=False)
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    assert said in run(*arguments, code=2)
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == before


def test_a_dry_run_shows_the_plan_of_hazards_and_reads_no_row() -> None:
    written(six(PEOPLE, "pid")["wide"][0], None)
    own = ["--curves=X=table.csv:h*", "--table=table.csv", "--id=pid", "--times=0:8:5", *PUBLIC, *BUDGET]
    with mock.patch("fdadp.functional.files.csv_curves.CsvLines.blocks", side_effect=AssertionError("a row was read")):
        assert f"Plan for {N} persons" in run("fit", SURV, *own, "--dry-run")
    assert not Path("model.npz").exists()


@pytest.mark.parametrize(("column", "said"), [("pid", ["--groups", "pid"]), ("pid", ["--id", "pid"]), ("id", [])])
def test_one_file_with_several_rows_a_person_keeps_them_all(tmp_path, monkeypatch, column, said):
    """Joined by id, a person with rows that differ has nothing: most would be lost, and nobody would see it."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    persons = np.arange(450) % 50
    X = rng.normal(size=(450, 12)).cumsum(axis=1) / 3
    frame = pd.DataFrame({column: [f"p{i}" for i in persons], "y": X.mean(axis=1) + 0.3 * rng.normal(size=450)})
    frame = frame.join(pd.DataFrame(X, columns=[f"h{j:02d}" for j in range(12)]))
    frame.to_csv("visits.csv", index=False)
    files = ["--curves", "h=visits.csv:h*", "--table", "visits.csv", *said]
    private = ["--bounds", "h=-5:5", "--bounds", "y=-5:5", "--epsilon", "100", "--delta", "1e-6", "--n", "50"]
    done = CliRunner().invoke(app, ["fit", "y ~ lf(h)", *files, *private, "--out", "m.npz"])
    assert done.exit_code == 0, done.output
    model = ScalarRegression.load("m.npz")
    assert "Protected unit: person" in model.ledger_.statement
    by_person = frame.groupby(column).mean()
    predicted = model.predict({"h": by_person.iloc[:, 1:].to_numpy()})
    assert np.corrcoef(predicted, by_person["y"])[0, 1] > 0.9
