"""Advice names arguments as they are written where it is read: in Python, in R, in a shell."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from fdadp import FunctionalRegression, Privacy, PrivateMean, ScalarRegression
from fdadp._common.calling_language import argument, door
from fdadp.cli.main import app
from fdadp.errors import InputError, PrivacyError
from fdadp.functional.tables.row_and_grid_labels import same_rows

N = 30


def table() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    x, age = rng.normal(size=(N, 12)).cumsum(axis=1), rng.normal(size=N)
    y = x.mean(axis=1) + age + rng.normal(size=N) / 10
    x[3, 4:6], age[5] = np.nan, np.nan
    return {"X": x, "age": age, "y": y}


def test_gaps_in_curves_and_numbers_are_answered_by_one_argument_that_works() -> None:
    data = table()
    with pytest.raises(InputError, match=r"missing=.'X': 'linear', 'age': 'indicator'.") as caught:
        ScalarRegression("y ~ lf(X) + age").fit(data)
    with door("r"), pytest.raises(InputError, match=r'missing = list.X = "linear", age = "indicator".'):
        ScalarRegression("y ~ lf(X) + age").fit(data)
    assert "--" not in str(caught.value)
    assert np.isfinite(ScalarRegression("y ~ lf(X) + age", missing={"X": "linear", "age": "indicator"}).fit(data).r2_)


def test_the_shell_gives_its_own_advice_and_takes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = table()
    pd.DataFrame(data["X"]).add_prefix("h").assign(age=data["age"], y=data["y"]).to_csv("people.csv", index_label="id")
    fit = ["fit", "y ~ lf(X) + age", "--curves=X=people.csv:h*", "--table=people.csv", "--out=m.npz"]
    refused = CliRunner().invoke(app, fit)
    cure = "--missing X=linear --missing age=indicator"
    assert refused.exit_code != 0 and cure in " ".join(refused.output.split())
    assert CliRunner().invoke(app, [*fit, *cure.split()]).exit_code == 0
    both = CliRunner().invoke(app, [*fit, "--missing=linear", "--missing=age=indicator"])
    assert both.exit_code != 0 and "--missing must be one treatment" in " ".join(both.output.split())


def test_bounds_that_are_missing_are_written_as_the_door_writes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's dict was shown in R and in the shell."""
    monkeypatch.chdir(tmp_path)
    data = {"age": np.arange(N) * 1.0, "sex": ["f", "m"] * (N // 2), "y": np.arange(N) * 1.0}

    def refused(formula: str) -> str:
        with pytest.raises(PrivacyError) as caught:
            ScalarRegression(formula, privacy=Privacy(2.0, n=N), bounds={"y": (0, N)}).fit(data)
        return str(caught.value)

    assert 'as in bounds={"age": (low, high)}, or a list' in refused("y ~ age")
    with door("r"):
        assert "as in bounds = list(age = c(low, high)), or a list" in refused("y ~ age")
        assert 'as in bounds = list(sex = c("a", "b")), got' in refused("y ~ C(sex)")
    pd.DataFrame(data).to_csv("people.csv", index=False)
    private = ["--table=people.csv", "--epsilon=2", f"--n={N}", f"--bounds=y=0:{N}"]
    said = CliRunner().invoke(app, ["fit", "y ~ log(age)", *private]).output
    assert "as in --bounds 'log(age)=LOW:HIGH': without it" in said
    taken = CliRunner().invoke(app, ["fit", "y ~ log(age)", *private, "--bounds", "log(age)=0:4"])
    assert taken.exit_code == 0, taken.output
    assert "as in --bounds sex=a,b, got" in CliRunner().invoke(app, ["fit", "y ~ C(sex)", *private]).output


ROWS = pd.DataFrame(np.random.default_rng(3).normal(size=(N, 12)).cumsum(axis=1), index=[f"p{i}" for i in range(N)])
OTHERS = ROWS.set_axis([f"q{i}" for i in range(N)])
NAMELESS = ROWS.set_axis([0.5] * N)
NAMED = ROWS.rename_axis("pid"), ROWS.rename_axis("who")
TURNED = ROWS.set_axis([*range(6), 8, 7, *range(9, 13)], axis=1)
PERSONS = Privacy(1.0, n=N, unit="person")
FEW = {"bounds": (-9, 9), "privacy": Privacy(0.01, n=N)}


@pytest.mark.parametrize(
    ("refused", "cures"),
    [
        (lambda: of_curves(ROWS, OTHERS), ["say by='position' if", "drop the names of rows if", "leave the column of"]),
        (lambda: of_curves(NAMELESS, ROWS), ["by='position' if", "drop the names of rows if", "leave the column of"]),
        (lambda: of_curves(*NAMED), ["say by='label' if both", "names of rows one meaning", "one name in every file"]),
        (lambda: same_rows(X=ROWS, Y=OTHERS), [r"Y.loc\[X.index\]", "Put them in one order", "by --id COLUMN"]),
        (lambda: of_curves(TURNED, ROWS), [r"sort_index\(axis=1\) sorts", "put the columns in", "put the columns in"]),
        (lambda: PERSONS.check_unit(None), ["scikit-learn's tools", "Say groups =", "Say --groups COLUMN"]),
        (lambda: PrivateMean(**FEW).fit(ROWS), ["or allow_useless=True", "or allow_useless = TRUE", "the persons$"]),
    ],
)
def test_advice_on_rows_and_groups_is_that_of_the_door(refused: Any, cures: list[str]) -> None:
    """In R and in the shell texts spoke of by=, of pandas and of scikit-learn."""
    for name, cure in zip(("python", "r", "shell"), cures, strict=True):
        with door(name), pytest.raises((InputError, PrivacyError), match=cure) as caught:
            refused()
        if name != "python":
            assert not re.search(r"by='|\.loc\[|to_numpy|sort_index|scikit-learn|=True", str(caught.value))


def of_curves(X: pd.DataFrame, Y: pd.DataFrame) -> None:
    FunctionalRegression("Y ~ ff(X)", progress=False).fit({"X": X, "Y": Y})


def test_a_door_is_that_of_its_thread() -> None:
    with door("shell"), ThreadPoolExecutor(1) as pool:
        assert pool.submit(argument, "missing", "linear").result() == "missing='linear'"
        assert argument("missing", "linear") == "--missing linear"
    assert argument("missing", "linear") == "missing='linear'"


def test_summaries_and_intervals_are_those_of_the_fit_whatever_is_set_later() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=N)
    data = {"x": x, "Y": np.outer(x, np.linspace(0, 1, 15)) + rng.normal(size=(N, 15)) * (0.3 + abs(x))[:, None]}
    model = FunctionalRegression("Y ~ x").fit(data)
    said, limits = str(model.summary()), model.predict_interval(data)
    model.set_params(smoothing="gcv", se="iid", variance="constant", formula="Y ~ s(x)")
    assert str(model.summary()) == said
    np.testing.assert_array_equal(model.predict_interval(data), limits)


def test_a_term_is_found_by_what_formulas_of_python_and_r_call_it() -> None:
    rng = np.random.default_rng(2)
    data = {"z": rng.normal(size=N), "g": np.repeat(["a", "b"], N // 2), "y": rng.normal(size=N)}
    model = ScalarRegression("y ~ s(z, k=8) + C(g)").fit(data)
    for name in ("s(z)", "s(z, k=8)"):
        pd.testing.assert_frame_equal(model.coef(name), model.coef("s(z)"))
    pd.testing.assert_frame_equal(model.coef("C(g)"), model.coef("g"))
