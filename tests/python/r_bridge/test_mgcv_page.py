"""The page for people who come from mgcv: its first model and its table are those of the mgcv that is there."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from fdadp import ScalarRegression
from r_bridge.gam_by_formula import fit_gam

PAGE = Path(__file__).resolve().parents[3] / "docs" / "from-mgcv.md"


@pytest.mark.mgcv
def test_the_first_model_is_mgcvs(capsys):
    text = PAGE.read_text(encoding="utf-8")
    block = re.search(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    names = {}
    exec(compile(block[1], str(PAGE), "exec"), names)
    model, people, new = (names[name] for name in ("model", "people", "new"))
    in_r = [{**table, "site": table["site"].astype(str)} for table in (people, new)]
    theirs = fit_gam('y ~ s(age) + arm + s(dose) + s(site, bs = "re")', *in_r)
    kinds = ("edf_total", "sig2", "score", "predicted", "predicted_se", "aic")
    found = {
        "mgcv": [float(theirs[kind][0]) for kind in kinds],
        "fdadp": [
            model.edf_,
            model.sigma2_,
            model.criterion_,
            model.predict(new)[0],
            model.predict_se(new)[0],
            model.aic_,
        ],
    }
    table = re.search(r"<!-- beside -->\n(.*?)<!-- /beside -->", text, re.DOTALL)[1]
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in table.splitlines()[2:]]
    assert len(rows) == len(kinds)
    for place, column in enumerate(("mgcv", "fdadp"), start=1):
        for row, value in zip(rows, found[column], strict=True):
            digits = len(row[place].split(".")[1])
            assert abs(float(row[place]) - value) <= 0.6 * 10**-digits, (row[0], column, value)
    same = ScalarRegression(model.formula, smoothing=theirs["sp"]).fit(people)
    np.testing.assert_allclose(same.fitted_values_, theirs["fitted"], atol=1e-9)
