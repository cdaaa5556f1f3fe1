"""The benchmark of repeated curves on few persons: it runs, finds the truth, and its record has its form."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


def test_the_benchmark_finds_what_it_simulates_and_its_record_has_its_form(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.delitem(sys.modules, "repeated", raising=False)
    repeated = importlib.import_module("repeated")
    found = repeated.fit(people=300, days=7, points=60, k=12, learn=True)
    assert found["icc"] == pytest.approx(repeated.TRUE_ICC, abs=0.05)
    assert found["noise"] == pytest.approx(1, abs=0.02)
    assert found["all"] == pytest.approx(sum(found[s] for s in ("pass", "functions", "REML", "mean curves", "persons")))
    recorded = (BENCHMARKS / "results" / "repeated.md").read_text(encoding="utf-8")
    assert repeated.HEAD in recorded and repeated.LIMITS in recorded
    rows = [row.strip("| ").split(" | ") for row in recorded.splitlines() if " curves) " in row]
    assert len(rows) == len(repeated.SIZES)
    assert all(float(row[7]) <= 10 and float(row[8]) <= 1 for row in rows)  # CPU seconds and GB


def test_coverage_is_counted_of_each_kind_and_its_record_has_its_form(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    coverage = importlib.import_module("repeated_coverage")
    held, errors, _ = coverage.covers(persons=25, runs=3)
    assert len(held) == len(coverage.KINDS) == len(errors)
    assert (held > 0.6).all() and (held <= 1).all() and (held[5:] < 1).all()
    recorded = (BENCHMARKS / "results" / "repeated-coverage.md").read_text(encoding="utf-8")
    assert coverage.HEAD in recorded
    rows = [row.strip("| ").split(" | ") for row in recorded.splitlines() if row.startswith("| ") and " to " in row]
    assert [int(row[0].replace(",", "")) for row in rows] == list(coverage.PERSONS)
    shares = [[float(cell.split(" ")[0]) for cell in row[2:-1]] for row in rows]
    assert all(0.93 <= share <= 0.97 for row in shares for share in (*row[:3], *row[6:]))
