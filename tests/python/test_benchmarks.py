"""The benchmark code on small data: it runs, agrees with mgcv where R is, and writes its table. No absolute times."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def run(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    for name in ("curves", "process", "report", "run"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("run")


@pytest.mark.long  # starts Pythons: 13 s at a load of 3, 19 to 40 s at 9
def test_fits_from_memory_and_from_chunks(run, tmp_path, capsys):
    arguments = ["--sizes", "50", "--chunk-sizes", "12000", "--repeats", "1", "--peers", "--no-r", "--out"]
    result = run.main([*arguments, str(tmp_path)])
    assert [(row["method"], row["n"]) for row in result["fits"]] == [("mgcv", 50), ("fdadp", 50), ("private", 50)]
    assert result["fits"][0]["skipped"] == "no R"
    assert result["fits"][1]["ratio"] == 1.0 and result["fits"][2]["ratio"] > 0
    assert 0 <= result["chunks"][0]["reading"] < result["chunks"][0]["seconds"]
    assert json.loads((tmp_path / "latest.json").read_text()) == result
    table = (tmp_path / "latest.md").read_text()
    assert "not run (no R)" in table and "n = 12,000" in table
    assert table in capsys.readouterr().out
    readme = tmp_path / "README.md"
    readme.write_text("before\n<!-- benchmarks -->\nold\n<!-- /benchmarks -->\nafter\n")
    sys.modules["report"].into_readme(readme, table)
    assert readme.read_text() == f"before\n<!-- benchmarks -->\n{table}<!-- /benchmarks -->\nafter\n"


@pytest.mark.long
@pytest.mark.skipif(shutil.which("Rscript") is None, reason="no R")
def test_the_same_work_as_mgcv_in_less_time(run, tmp_path):
    result = run.main(["--sizes", "1000", "--chunk-sizes", "--repeats", "2", "--peers", "--out", str(tmp_path)])
    (mgcv,) = [row for row in result["fits"] if row["method"] == "mgcv"]
    if "skipped" in mgcv:
        pytest.skip(f"mgcv: {mgcv['skipped']}")
    assert max(mgcv["difference"]["at mgcv's smoothing parameters"]) < 1e-8
    assert max(mgcv["difference"]["at own smoothing parameters"]) < 1e-3
    assert mgcv["ratio"] > 10
