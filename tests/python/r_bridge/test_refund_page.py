"""docs/refund.md: the formulas that stand for refund's calls are formulas."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from fdadp import FunctionalRegression, ScalarRegression
from fdadp.errors import FdadpWarning
from r_bridge._crosscheck_terms import cohort
from r_bridge.reference import find_case, read_case, reference_dirs
from r_bridge.refund_page_table import CALLS as RECORDED
from r_bridge.refund_page_table import GAM, live, recorded
from r_bridge.terms_beside_refund import CASES

PAGE = Path(__file__).resolve().parents[3] / "docs" / "refund.md"
TEXT = PAGE.read_text(encoding="utf-8")
CALLS = [line.split(" | ")[:2] for line in TEXT.partition("## What differs")[0].splitlines() if line.startswith("| `")]
FORMULAS = [re.findall("`([^`]*)`", ours) for _, ours in CALLS if "~" in ours]


def test_there_are_enough_calls():
    assert len(CALLS) >= 30 and len(FORMULAS) >= 25
    assert len({theirs for theirs, _ in CALLS}) == len(CALLS)


@pytest.fixture(scope="module")
def data():
    rows, grids = cohort(40)
    draw = np.random.default_rng(1)
    rough = rows["X"] + 0.1 * draw.normal(size=rows["X"].shape)  # of full rank, for fpcr
    return {**rows, "X": rough, "w": draw.normal(size=40)}, grids


@pytest.mark.parametrize("words", FORMULAS, ids=lambda words: words[0])
def test_formulas_are_fitted(data, words):
    formula, *settings = words
    kind = ScalarRegression if formula.startswith("y ~") else FunctionalRegression
    more = dict(re.findall(r'(family)="(\w+)"', " ".join(settings)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FdadpWarning)
        model = kind(formula, **more).fit(data[0], grids=data[1])
    assert np.isfinite(np.asarray(model.fitted_values_)).all()


NUMBERS = [
    line.strip("| ").split(" | ") for line in TEXT.partition("<!-- numbers -->")[2].splitlines() if "| `" in line
]


def test_thirty_calls_have_equal_numbers():
    shown = [row for row in NUMBERS if len(row) == 7]
    assert len(shown) == len(RECORDED) + len(GAM) >= 30 and len({row[0] for row in shown}) == len(shown)
    assert all(row[3] == row[4] and row[5] == row[6] for row in shown)
    assert [row[1] for row in shown] == [f"`{ours}`" for ours in (*RECORDED.values(), *GAM.values())]


def records():
    """The recorded fits of the page, those whose record is here."""
    here = [folder for folder in reference_dirs() if (folder / "pffr_live.rds").is_file()]
    return here[0] if here else pytest.skip("no recorded fits of refund here")


def test_numbers_of_refund_are_the_recorded_ones():
    folder = records()
    for case, row in zip([case for case in CASES if case.name in RECORDED], NUMBERS, strict=False):
        output = case.output(read_case(find_case(case.record, [folder])))
        fitted = np.asarray(output["fitted"], dtype=float)
        assert row[3] == f"{float(np.sum(output['edf_total'])):.8g}", case.name
        assert np.isclose(fitted, float(row[5]), rtol=5e-8).any(), case.name


@pytest.mark.parametrize(
    "names",
    [
        ("pffr_concurrent_canadian", "pfr_lf_dti, trapezoidal", "fpcr_dti, ncomp8", "pffr_live, re"),
        pytest.param(tuple(RECORDED), marks=pytest.mark.long),
    ],
    ids=["some", "all"],
)
def test_numbers_of_refund_are_ours(names):
    rows = [str(row) for row in recorded(records(), names)]
    assert len(rows) == len(names) and all(row in TEXT for row in rows)


@pytest.mark.mgcv
@pytest.mark.filterwarnings("ignore:R")  # mgcv's search at 1e-11
def test_numbers_of_mgcv_are_those_of_the_one_that_is_here():
    some = [call for call in GAM if call in ("y ~ s(z)", "y ~ te(z, w)", "y ~ g + s(z, by = g)") or "family" in call]
    for row in live({call: GAM[call] for call in some}):
        assert row.edf[1] == pytest.approx(row.edf[0], rel=1e-8) and row.value[1] == pytest.approx(
            row.value[0], rel=1e-8
        )
        (shown,) = (line for line in NUMBERS if line[0] == f"`{row.theirs}`")
        assert [float(v) for v in shown[3:]] == pytest.approx([*row.edf, *row.value], rel=1e-4)  # of another mgcv
