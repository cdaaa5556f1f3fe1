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


def test_programs_of_r_stand_beside_ours_or_it_is_said_why_not(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.delitem(sys.modules, "repeated", raising=False)
    repeated = importlib.import_module("repeated")
    X, Y, ids = repeated.rows_of(30, 4, 40)
    for way in ("face", "reml", "mixed", "spline"):
        assert 0 < repeated.ours(way, X, Y, ids) < 600
    fake = tmp_path / "Rscript"
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    for text, said in (
        ("echo 1.5 0.25 0.9 0.1.40", "1.50 (0.1.40) | 0.25"),
        ("echo 'there is no package called refund' >&2; exit 1", "not run: the package is not installed | "),
        ("echo 'Error: odd' >&2; exit 1", "not run: Error: odd | "),
        ("kill -XCPU $$", "stopped after 60 s | "),
    ):
        fake.write_text(f"#!/bin/sh\n{text}\n")
        fake.chmod(0o755)
        assert repeated.in_r("face", X, Y, ids) == said
    recorded = (BENCHMARKS / "results" / "repeated.md").read_text(encoding="utf-8")
    rows = [row for row in recorded.splitlines() if row.startswith("| ") and "`" in row]
    assert repeated.PEERS_HEAD in recorded and repeated.OURS in recorded
    assert len(rows) == len(repeated.BESIDE)


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
    shares = [[tuple(map(float, cell.split(" ± "))) for cell in row[2:-1]] for row in rows]
    for row in shares:
        assert all(0.93 - error <= share <= 0.97 + error for share, error in row), row


def concurrent(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("repeated_concurrent")


def test_coverage_beside_a_covariate_that_varies_with_t_has_a_record_of_its_form(monkeypatch):
    coverage = concurrent(monkeypatch)
    held, errors, _ = coverage.covers(persons=20, runs=2)
    assert len(held) == len(coverage.KINDS) == len(errors) and (held > 0.6).all() and (held <= 1).all()
    recorded = (BENCHMARKS / "results" / "repeated-concurrent.md").read_text(encoding="utf-8")
    assert coverage.HEAD in recorded
    rows = [row.strip("| ").split(" | ") for row in recorded.splitlines() if row.startswith("| ") and " to " in row]
    assert [int(row[0]) for row in rows] == list(coverage.PERSONS)
    for row in rows:
        shares = [tuple(map(float, cell.split(" ± "))) for cell in row[2:-1]]
        assert all(share >= 0.93 - error for share, error in shares), row  # effects that are smooth are held more often
        assert all(share <= 0.97 + error for share, error in shares[2:]), row


@pytest.mark.statistics
def test_bands_of_a_concurrent_effect_hold_no_less_than_they_say(monkeypatch):
    held, errors, _ = concurrent(monkeypatch).covers(persons=40, runs=40)
    assert (held >= 0.93 - 2 * errors).all() and (held[2:] <= 0.97 + 2 * errors[2:]).all()
