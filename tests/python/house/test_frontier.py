"""``benchmarks/frontier.py`` runs, and notices what is below the promise."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


@pytest.fixture
def report(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import frontier_report

    return frontier_report


def row(**kwargs):
    known = {
        "n": 1000,
        "epsilon": 1.0,
        "share": 0.9,
        "coverage_85": 0.85,
        "coverage_95": 0.95,
        "expected": [0.92, 85, 95],
    }
    return known | kwargs


def test_misses_of_share_and_coverage_are_found(report):
    assert report.find_misses(row()) == []
    assert "below 0.890" in report.find_misses(row(share=0.889))[0]
    assert report.find_misses(row(n=300, share=0.871)) == []
    assert "coverage 81.9" in report.find_misses(row(coverage_85=0.819))[0]
    assert report.find_misses(row(n=300, share=0.9, coverage_85=0.7)) == []


def test_means_over_scenarios_are_promised_of_all_five_only(report):
    rows = [row(method="dp-aff", width="ok", worst=0.1 * i, share=0.8 + 0.01 * i) for i in range(5)]
    expected = {"means": {"pure": {"1000 1 ok": 0.83}}}
    (over,) = report.means(rows, "pure", expected)
    assert over["share"] == pytest.approx(0.82) and over["worst"] == 0.0
    assert "mean share 0.820 below 0.830" in over["misses"][0]
    assert report.means(rows[:4], "pure", expected)[0]["misses"] == []
    assert report.means(rows, "main", expected)[0]["misses"] == []
    fits = [
        {"method": "dp-aff", "n": 300, "epsilon": 1.0, "width": "ok", "scenario": "A"} | {"share": share}
        for share in (0.4, -0.1)
    ]
    fits = [one | dict.fromkeys(("rmspe", "coverage_85", "coverage_95", "width_95", "seconds"), 1.0) for one in fits]
    assert report.summarise(fits, "pure", {})[0]["misses"] == ["worst fit -0.10"]
    assert report.summarise(fits, "replace", {})[0]["misses"] == []


def test_a_part_of_it_runs(tmp_path):
    options = ["--n", "300", "--scenarios", "S1", "A", "--ranges", "ok", "--seeds", "1", "--jobs", "1"]
    command = [sys.executable, str(BENCHMARKS / "frontier.py"), *options, "--out", str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode in (0, 1), run.stderr
    assert "| 300, 1 | ok |" in run.stdout
    result = json.loads((tmp_path / "frontier-main.json").read_text())
    assert [one["share"] > -1 for one in result["fits"]] == [True, True]
    assert (run.returncode == 1) == any(cell["misses"] for cell in result["cells"])
