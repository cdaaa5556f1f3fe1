"""``benchmarks/held_out.py`` runs, and docs/which-model.md shows what it recorded."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]
RECORD = ROOT / "benchmarks" / "results" / "held-out.md"
PAGE = ROOT / "docs" / "which-model.md"
SHOWN = (0, 1, 2, 4, 6, 7, 8)
"""Columns of the record that the page shows."""

pytestmark = pytest.mark.skipif(not RECORD.parent.is_dir(), reason="no benchmarks here")


def cells(line: str) -> list[str]:
    found = [cell.strip() for cell in line.strip().strip("|").split("|")]
    plain = (re.sub(r"\*| \(.*± .*\)$", "", cell) for cell in found)
    return [re.sub(r"^(-?)0(?=\.)", r"\1", cell) for cell in plain]


def table(path: Path) -> dict[str, list[str]]:
    lines = [cells(line) for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    return {line[0]: line for line in lines if re.match("weather|lip|dti|icu|nhanes|wave|bump|mean of", line[0])}


def test_the_page_shows_the_record_and_says_where_our_call_is_the_last():
    record, page = table(RECORD), table(PAGE)
    real = [name for name in record if not re.match("wave|bump", name)]
    assert len(record) == 26 and list(page) == real
    for name in real:
        without_labels = [record[name][k] for k in SHOWN]
        assert page[name] == without_labels, name
    five = {name: np.array([float(row[k]) for k in SHOWN[2:]]) for name, row in record.items() if "mean" not in name}
    last = [name for name, shares in five.items() if shares[2] < np.delete(shares, 2).min()]
    assert last == ["nhanes: hours worn, day 2 from day 1, 200", "bump, smooth errors, 30"]
    assert max(shares[0] - shares[2] for shares in five.values()) < 0.04
    best = [name for name in real if "mean" not in name and five[name].argmax() == 4]
    assert len(best) == 7 and all(int(record[name][1]) <= 121 for name in best)


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield importlib.import_module("held_out")
    sys.modules.pop("held_out", None)


def test_a_small_run(benchmark, capsys):
    benchmark.main(["--sets", "bump, white errors, 30", "--cohorts", "2", "--models", "refund's k", "ridge"])
    head, _, columns, _, row, *_ = capsys.readouterr().out.splitlines()
    assert head.startswith("`python benchmarks/held_out.py`")
    assert cells(columns) == ["set", "curves", "default", "refund's k", "ridge"]
    default, refund, _ = (float(cell) for cell in cells(row)[2:])
    assert 0.02 < default - refund < 0.06  # five functions along t do not follow the ridge


def test_real_sets_are_judged_on_rows_that_were_left_out(benchmark):
    """A model that only knows what it saw has no share of pure noise; one that saw the new rows would have all."""
    draw, t = np.random.default_rng(0), np.linspace(0, 1, 12)
    case = benchmark.RealSet({"X": draw.normal(size=(40, 12)), "Y": draw.normal(size=(40, 12))}, {"X": t, "Y": t})
    seen = []

    def mean(train, new, grids):
        assert set(new) == {"X"} and len(train["Y"]) + len(new["X"]) == 40
        assert not (train["X"][:, None] == new["X"][None]).all(axis=2).any()
        seen.append(len(new["X"]))
        return np.tile(train["Y"].mean(axis=0), (len(new["X"]), 1))

    found = benchmark.of_real(case, 2, {"default": mean, "ridge": benchmark.ridge})
    assert sum(seen) == 80 and found.shares["default"] == 0
    less, se = found.differences["ridge"]
    assert less == pytest.approx(found.shares["ridge"]) and se > 0 and less < 2 * se
