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

PAGE = Path(__file__).resolve().parents[3] / "docs" / "refund.md"
CALLS = [line.split(" | ")[:2] for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
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
