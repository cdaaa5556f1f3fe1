"""Models of several terms beside live mgcv: the bridge writes mgcv's formula for the terms of a model."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp import FunctionalRegression, terms
from fdadp.errors import InputError
from r_bridge import crosscheck_terms
from r_bridge._crosscheck_terms import COHORT, cohort, crosscheck_cohort
from r_bridge.to_mgcv import InMgcv


@pytest.mark.mgcv
@pytest.mark.parametrize("model", [pytest.param(m, marks=pytest.mark.long) if m == "sff" else m for m in COHORT])
def test_models_are_mgcvs(model):
    report = crosscheck_cohort([model], n=60)
    assert len(report.differences) >= 6
    assert report.failures == []


@pytest.mark.mgcv
def test_another_model_is_noticed():
    """A surface of other splines, compared with mgcv's of these."""
    data, grids = cohort(30)
    rows = {name: data[name] for name in ("X", "Y")}
    model = FunctionalRegression([terms.ff("X")])
    strict = crosscheck_terms(model, rows, grids={name: grids[name] for name in rows}, factor=1e-12)
    assert not strict.ok


def test_formulas_are_refunds():
    data = {"X": np.zeros((3, 4)), "z": np.arange(3.0), "g": np.array(list("aba"))}
    specs = [terms.ff("X", m=((2, 1), (2, 2))), terms.s("z"), terms.factor("g"), terms.c(terms.re("g"))]
    said = InMgcv.of(specs, data, {"X": np.linspace(0, 1, 4)}, np.linspace(0, 1, 5))
    assert said.formula == (
        'y ~ s(t, bs = "ps", k = 20, m = c(2, 1)) + '
        'te(S0, U0, by = L0, bs = "ps", k = c(5, 5), m = list(c(2, 1), c(2, 2))) + '
        'ti(z1, t, bs = c("tp", "ps"), mc = c(TRUE, FALSE), k = c(8, 5), m = c(2, 1)) + '
        's(t, by = g2.0, bs = "ps", k = 5, m = c(2, 1)) + s(g3, bs = "re")'
    )
    assert said.columns["L0"].shape == (15, 4) and said.columns["g2.0"].sum() == 5
    with pytest.raises(InputError, match=r"ff\(X\) with limits has no counterpart"):
        InMgcv.of([terms.ff("X", limits="s<t")], data, {"X": np.linspace(0, 1, 4)}, np.linspace(0, 1, 5))
    with pytest.raises(InputError, match=r"ffpc\(X\) has no counterpart in mgcv here"):
        InMgcv.of([terms.ffpc("X")], data, {"X": np.linspace(0, 1, 4)}, np.linspace(0, 1, 5))


@pytest.mark.mgcv
def test_formulas_as_text_are_refused():
    with pytest.raises(InputError, match="must have term objects"):
        crosscheck_terms(FunctionalRegression("Y ~ ff(X)"), {})
