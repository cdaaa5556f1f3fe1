"""``benchmarks/held_out.py`` runs, and docs/which-model.md shows what it recorded."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from fdadp import FPCA
from fdadp.errors import MissingDataError

ROOT = Path(__file__).resolve().parents[3]
RECORD = ROOT / "benchmarks" / "results" / "held-out.md"
PAGE = ROOT / "docs" / "which-model.md"
CHOICE = ROOT / "benchmarks" / "results" / "held-out-choice.md"
SHOWN = (0, 1, 2, 5, 7, 8, 9, 10, 11, 13)
"""Columns of the record that the page shows: three calls of ours, the mean of two, components, ridge, two verdicts."""

pytestmark = pytest.mark.skipif(not RECORD.parent.is_dir(), reason="no benchmarks here")


def cells(line: str) -> list[str]:
    found = [cell.strip() for cell in line.strip().strip("|").split("|")]
    plain = (re.sub(r"\*| \(.*± .*\)$", "", cell) for cell in found)
    return [re.sub(r"(^-?|by |± )0(?=\.)", r"\1", cell) for cell in plain]


def table(path: Path) -> dict[str, list[str]]:
    lines = [cells(line) for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    return {
        line[0]: line
        for line in lines
        if re.match("weather|lip|dti|icu|nhanes|wave|bump|rough|smooth|mean of", line[0])
    }


def test_the_page_shows_the_record_and_says_where_our_calls_are_the_last():
    record, page = table(RECORD), table(PAGE)
    real = [name for name in record if not re.match("wave|bump", name)]
    assert len(record) == 26 and list(page) == real
    for name in real:
        assert page[name] == [record[name][k] for k in SHOWN], name
    single = {name: row for name, row in record.items() if "mean" not in name}
    for row in single.values():
        shares = [float(cell) for cell in row[2:11]]
        ours, rivals = (shares[k] for k in (0, 3, 6)), shares[7:]  # the default, one fit, the mean of two
        for share, said in zip(ours, row[11:], strict=True):
            assert (said == "no") == (share > min(rivals)) or abs(share - min(rivals)) < 0.0011


def surely(row, column):
    """Whether a call is below both rivals by more than two standard errors."""
    found = re.fullmatch(r"by (.+) ± (.+)", row[column])
    return found is not None and float(found[1]) > 2 * float(found[2])


def test_the_calls_for_predictions_were_chosen_elsewhere_and_are_surely_last_nowhere():
    record, choice = table(RECORD), table(CHOICE)
    single = {name: row for name, row in record.items() if "mean" not in name}
    assert not [name for name, row in single.items() if surely(row, 12) or surely(row, 13)]
    assert [name for name, row in single.items() if surely(row, 11)] == ["lip: acceleration from muscle"]
    assert sum(row[13] != "no" for row in single.values()) == 2  # by number alone
    simulated = [*choice.items(), *(item for item in single.items() if re.match("wave|bump", item[0]))]
    assert {row[k] for name, row in simulated if "mean" not in name for k in (12, 13)} == {"no"}
    assert len(simulated) == 37 and len(choice) == 25
    means = [float(cell) for cell in choice["mean of 24 simulated sets"][2:11]]
    assert means[6] == max(means) and means[3] == max(means[:6])  # the mean of two; of one fit


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield importlib.import_module("held_out")
    sys.modules.pop("held_out", None)


def test_a_small_run(benchmark, capsys):
    benchmark.main(["--sets", "bump, white errors, 30", "--cohorts", "2", "--models", "refund's k", "ridge"])
    head, _, columns, _, row, *_ = capsys.readouterr().out.splitlines()
    assert head.startswith("`python benchmarks/held_out.py --sets bump, white errors, 30 --cohorts 2")
    assert cells(columns) == ["set", "curves", "default", "refund's k", "ridge", "default: worst?"]
    default, refund, ridge = (float(cell) for cell in cells(row)[2:5])
    assert (cells(row)[5] == "no") == (default > ridge)
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

    found = benchmark.of_real(case, range(2), {"default": mean, "ridge": benchmark.ridge})
    assert sum(seen) == 80 and found.shares["default"] == 0
    less, se = found.differences["ridge"]
    assert less == pytest.approx(found.shares["ridge"]) and se > 0 and less < 2 * se


def test_the_worst_is_told_beside_the_worse_rival(benchmark):
    draw = np.random.default_rng(1)
    about = draw.uniform(1, 2, 30)
    lost = {name: about * share for name, share in (("default", 0.6), ("components", 0.5), ("ridge", 0.4))}
    found = benchmark.Found.of(30, lost, about, {})
    by, se = found.worst["default"]
    assert by == pytest.approx(0.1) and 0 < se < 0.01 and "curve, k=20" not in found.worst
    assert benchmark.said((by, se)).startswith("**by 0.100 ± ") and benchmark.said((0.1, 0.2)) == "by 0.100 ± 0.200"
    lost["default"] = about * 0.45
    assert benchmark.said(benchmark.Found.of(30, lost, about, {}).worst["default"]) == "no"


def test_smoothed_eigenfunctions_of_few_points_lose_what_changes_fast(benchmark):
    """Why ``response_basis="eigen"`` predicts no more than the mean of lip: knots at every third of 26 points."""
    try:
        case = benchmark.lip()
    except MissingDataError as missing:
        pytest.skip(str(missing))
    Y, t = case.data["Y"], case.grids["Y"]
    kept = []
    for knots in (None, 20):
        basis = FPCA(n_components=0.99, n_knots=knots).fit(Y, t=t).basis_
        own = np.linalg.qr(basis.functions.T)[0]
        centred = Y - Y.mean(axis=0)
        kept.append(((centred @ own) ** 2).sum() / (centred**2).sum())
    assert kept[0] < 0.03 and kept[1] > 0.97
