"""The benchmark of times to an event: its tables have their form, and its record holds what it says."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("survival")


def cells(lines):
    return [[cell.strip() for cell in line.strip("| \n").split(" | ")] for line in lines]


def test_small_tables_have_their_form(benchmark, monkeypatch, tmp_path):
    monkeypatch.setattr(benchmark, "CURVES", ((400, 1.0),))
    monkeypatch.setattr(benchmark, "LEVELS", ((400, 1.0),))
    monkeypatch.setattr(benchmark, "PERSONS", (600,))
    out = tmp_path / "survival.md"
    text = benchmark.main(["--parts", "curves", "levels", "cox", "--runs", "2", "--out", str(out)])
    assert out.read_text(encoding="utf-8") == text
    (curves,) = cells(line for line in text.splitlines() if line.startswith("| 400 | 1 | 0.") and "±" in line)[:1]
    assert 0 < float(curves[2]) < 0.5 and 0 <= float(curves[3].split(" ")[0]) <= 1
    (cox,) = cells(line for line in text.splitlines() if line.startswith("| 600 "))
    assert int(cox[1]) > 100 and float(cox[5]) < 1e-8


def test_recorded_figures_are_those_that_are_wanted(benchmark):
    text = (BENCHMARKS / "results" / "survival.md").read_text(encoding="utf-8")
    parts = {part.split("\n")[0].strip(): part.splitlines() for part in text.split("## ")[1:]}
    assert list(parts) == [title for title, *_ in benchmark.PARTS.values()]
    rows = [cells(line for line in part if line[:2] == "| " and line[2].isdigit()) for part in parts.values()]
    curves, levels, regressions, cox = rows
    assert [len(part) for part in rows] == [4, 3, 4, 3]
    assert all(0.93 <= float(row[3].split(" ")[0]) <= 0.97 for row in curves)
    assert all(float(row[2].split(" ")[0]) < 0.12 for row in levels)
    for row in regressions:
        if row[0] == "3,000":
            assert float(row[3].split(" ")[0]) == pytest.approx(float(row[4]), abs=0.01)
            assert float(row[5].split(" ")[0]) == pytest.approx(1, abs=0.07)
    assert all(row[5] == "-" or float(row[5]) < 1e-8 for row in cox)
