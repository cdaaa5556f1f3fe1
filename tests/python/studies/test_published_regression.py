"""The command line of the published experiment, ``python benchmarks/studies/published_regression.py``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from studies.published_regression import app
from typer.testing import CliRunner

SCRIPTS = Path(__file__).resolve().parents[3] / "benchmarks" / "studies"

try:
    RUNNER = CliRunner(mix_stderr=False)  # click before 8.2
except TypeError:
    RUNNER = CliRunner()


def run(*args: object) -> Any:
    return RUNNER.invoke(app, [str(a) for a in args])


def refused(*args: object) -> str:
    """Run what must fail; return the one line that says why."""
    result = run(*args)
    assert result.exit_code == 2, result.output
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    return line


@pytest.mark.statistics
@pytest.mark.parametrize(
    "script", ["federated_pca", "federated_regression", "learners", "local_logistic", "published_regression"]
)
def test_every_experiment_is_a_script(script: str, tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPTS / f"{script}.py"), "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120, check=True)
    assert "--out" in shown.stdout and "--seed" in shown.stdout


def test_experiment(tmp_path: Path) -> None:
    result = run(
        "--dataset", "canadian-weather", "--epsilon", "0.05", "0.2", "--repeats", 2, "--draws", 1,
        "--sensitivity", "scaled", "coefficient", "--out", tmp_path, "--seed", 3,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "NOT differentially private" in result.stdout and "mean curve" in result.stdout
    assert {p.name for p in tmp_path.iterdir()} == {"results.csv", "table.csv", "settings.json", "experiment.png"}
    table = pd.read_csv(tmp_path / "table.csv")
    assert list(table["epsilon"].dropna()) == [0.05, 0.2, 0.05, 0.2]
    settings = json.loads((tmp_path / "settings.json").read_text())
    assert settings["epsilon"] == [0.05, 0.2] and settings["seed"] == 3


def test_experiment_skips_and_names_what_is_absent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FDADP_DATA", str(tmp_path))
    monkeypatch.delenv("LIP_DATA_DIR", raising=False)
    args = (
        "--repeats",
        1,
        "--draws",
        1,
        "--epsilon",
        "0.2",
        "--sensitivity",
        "scaled",
        "--out",
        tmp_path,
    )
    result = run(*args, "--dataset", "lip-emg", "canadian-weather")
    assert result.exit_code == 0, result.output
    assert "Skipped lip-emg: Lip EMG is not bundled" in result.stderr
    assert "one that is present, got lip-emg" in refused(*args, "--dataset", "lip-emg")
    assert "got 'berkeley'" in refused(*args, "--dataset", "berkeley")
    assert "epsilon must be a number above 0" in refused(*args, "--dataset", "canadian-weather", "--epsilon", "-1")
