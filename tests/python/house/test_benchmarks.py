"""The benchmark code on small data: it runs, agrees with mgcv where R is, and writes its table. No absolute times."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kurtosis, skew

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


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
    page = tmp_path / "benchmarks.md"
    page.write_text("before\n<!-- benchmarks -->\nold\n<!-- /benchmarks -->\nafter\n")
    sys.modules["report"].into_page(page, table)
    assert page.read_text() == f"before\n<!-- benchmarks -->\n{table}<!-- /benchmarks -->\nafter\n"


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


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))

    def load(name):
        monkeypatch.delitem(sys.modules, name, raising=False)
        return importlib.import_module(name)

    return load


def test_other_scenarios_are_what_they_are_called_and_one_is_scored(script):
    other = script("other_scenarios")
    rng = np.random.default_rng(0)
    for scenario in other.SCENARIOS:
        x = scenario.x(rng, 2000)
        assert x.shape == scenario.mean(x).shape == scenario.errors(rng, 2000).shape == (2000, 41), scenario.name
    assert skew(other.skewed(rng, 2000), axis=None) > 1.5 > 0.2 > abs(skew(other.process(rng, 2000), axis=None))
    assert kurtosis(other.heavy(rng, 5000), axis=None) > 3
    assert np.abs(np.diff(other.rough(rng, 100))).mean() > 3 * np.abs(np.diff(other.process(rng, 100))).mean()
    private, central, plain = other.shares(other.SCENARIOS[0], 500, 4.0, seed=1)
    assert 0.6 < private < plain + 0.02 and plain > 0.9 and abs(central - private) < 0.2
    recorded = (BENCHMARKS / "results" / "other-scenarios.md").read_text(encoding="utf-8")
    assert all(f"| {scenario.name} |" in recorded for scenario in other.SCENARIOS)


def test_the_recorded_published_experiment_is_in_the_form_of_its_script(script):
    published = script("published_experiment")
    recorded = (BENCHMARKS / "results" / "published-experiment.md").read_text(encoding="utf-8")
    assert published.NOTES in recorded
    rows = [line.split(" | ") for line in recorded.splitlines() if line.startswith("| published | scaled")][:4]
    coverage = [float(row[6].split("/")[1]) for row in rows]  # weather, published intervals of 95 %
    assert coverage == sorted(coverage) and coverage[0] < 0.4 and 0.5 < coverage[-1] < 0.8
    empty = dict.fromkeys(("rmspe_median", "acp_85", "acp_95", "width_95", "beats_mean_curve"), 0.5)
    blind = {f"{name}_published": 0.25 for name in ("acp_85", "acp_95", "width_95")}
    row = {"scheme": "published", "sensitivity": "scaled", "epsilon": 0.1, **empty, **blind}
    assert published.table(pd.DataFrame([row]))[2].count("|") == published.table(pd.DataFrame([row]))[0].count("|")


def test_standard_errors_by_the_size_of_the_bases(script):
    script("cohorts")
    table = script("standard_errors").main(["--n", "80", "--cohorts", "1", "--scenarios", "S1", "S2"])
    coverage = [
        float(value) for cell in table.splitlines()[2].split(" | ")[1:] for value in re.findall(r"[\d.]+", cell)
    ]
    assert len(coverage) == 4 and 0.4 < min(coverage) <= max(coverage) <= 1


def test_mechanisms_side_by_side(script):
    script("cohorts")
    table = script("mechanisms").main(["--n", "500", "--seeds", "1"])
    output, dp_aff = (float(line.split(" | ")[1].strip(" |")) for line in table.splitlines()[2:])
    assert output < 0.5 < dp_aff < 1


def test_another_tuning_is_compared_on_the_same_cohort_and_noise(script):
    script("cohorts")
    tunings = script("tunings")
    table = tunings.main(["1 round", "--n", "400", "--seeds", "1", "--scenarios", "S2", "--jobs", "1"])
    assert int(table.splitlines()[2].split(" | ")[1].split(" ")[0]) < -20  # one round is much worse than eight
    tunings.TUNINGS["the same"] = tunings.GAUSSIAN
    assert tunings.changes((["the same"], "S1", 400, 1.0, 1)) == [0.0]


def test_intervals_where_responses_have_gaps(script):
    asked = ["--points", "10", "--n", "100", "--cohorts", "1", "--errors", "smooth, 1"]
    rows = [row.strip("| ").split(" | ") for row in script("missing_responses").main(asked).splitlines()[2:]]
    coverage = [float(row[column]) for row in rows for column in (3, 4, 6, 7)]
    assert len(coverage) == 12 and 0.85 < min(coverage) <= max(coverage) < 1


def test_more_starts_miss_the_optimum_less_often(script):
    found = script("starts").main(["--problems", "24", "--terms", "2"])
    missed = [count for count, _ in found["misses"].values()]
    assert missed[0] > missed[2] == 0
    assert found["seconds"][2] > 0


@pytest.mark.mgcv
def test_additive_models_beside_mgcv(script):
    beside = script("beside_mgcv")
    text = beside.main(["--n", "200", "--samples", "1", "--models", "counts", "persons"])
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in text.splitlines() if "|" in line]
    equal = [row for row in rows if row[0].startswith("`gam(")]
    assert len(equal) == 2 and all(row[1] == row[2] for row in equal)  # effective degrees of freedom
    assert all(float(row[3]) < 1e-8 and float(row[5]) < 1e-6 for row in equal)  # means, and the lower score
    own = {(row[0], row[1]): row for row in rows}
    assert own["counts", "fdadp"][2] == own["counts", "mgcv"][2] and float(own["counts", "statsmodels"][3]) < 1
    recorded = (BENCHMARKS / "results" / "beside-mgcv.md").read_text(encoding="utf-8")
    assert all(
        f"| {name} | {program} |" in recorded for name in beside.MODELS for program in ("fdadp", "mgcv", "pyGAM")
    )
    page = (BENCHMARKS.parent / "docs" / "from-mgcv.md").read_text(encoding="utf-8")
    assert [line for line in recorded.splitlines() if "|" in line and line not in page] == []


def test_limits_on_far_predictions(script):
    far = script("far_predictions")
    from fdadp.regression.fitted.coefficient_errors import FARTHEST

    assert f"{FARTHEST:g} sd, keeps e³/(e² + v/4)" in far.LIMITS
    table = far.main(["--n", "300", "--cohorts", "1", "--scenarios", "A"])
    assert table.count(", A |") == 2 * len(far.LIMITS)


def test_variants_of_learners(script, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS / "learners"))
    table = script("variants").main(["--splits", "2", "--draws", "1"])
    rows = [line.split("|")[2:-1] for line in table.splitlines() if line.startswith(("| moments", "| zCDP"))]
    linear, components = ([float(cell) for cell in row] for row in rows)
    assert linear[0] < linear[3] < 0.7 and 0.8 < components[3] <= 1


@pytest.mark.long  # starts two Pythons
def test_fit_times_beside_another_checkout(script):
    rows = script("fit_time").main([str(BENCHMARKS.parent), "--sizes", "30", "--rounds", "1"])
    assert [row["basis"] for row in rows] == ["default", "7 x 7"]
    assert all(row["here"] > 0 and 0.02 < row["ratio"] < 50 for row in rows)


def test_bands_of_one_law(script):
    bands = script("bands")
    for draw, mean, _ in bands.LAWS.values():
        assert mean is None or np.abs(draw(4000, np.random.default_rng(0)).mean(axis=0) - mean).max() < 0.15
    table = bands.main(["--n", "1000", "--samples", "2", "--laws", "exponential size"])
    held, width = (float(value) for value in re.findall(r"\d\.\d+", table))
    assert held in (0.0, 0.5, 1.0) and 0.1 < width < 1
