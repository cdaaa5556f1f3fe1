"""lf, af and fpcr beside recorded fits of refund, through the public estimator."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from refund_cases import differences, far, one

from fdadp import ScalarRegression, terms

RULES = {"simpson": "simpson_legacy", "trapezoidal": "trapezoid"}


def data_of(record):
    i = record["input"]
    return {"X": i["X"], "y": np.ravel(i["y"]).astype(float)}, {"X": np.ravel(i["argvals"])}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", ["lf", "af"])
def test_functional_covariate(reference, kind, rule):
    """Scores of af differ from mgcv's by a constant, because of its constrained coordinates."""
    record = reference(f"pfr_{kind}_dti")
    data, grids = data_of(record)
    k = tuple(int(v) for v in np.ravel(record["input"]["k"]))
    term = terms.lf("X", k=k[0], rule=RULES[rule]) if kind == "lf" else terms.af("X", k=k, rule=RULES[rule])
    o = record["output"][rule]
    found = differences(partial(ScalarRegression, [term]), data, grids, o)
    assert found["above"] <= 1e-6
    assert max(found["fitted"], found["edf"], found["sigma2"]) < 1e-9
    if kind == "lf":
        assert found["score"] < 1e-8
        same = ScalarRegression([term], smoothing=np.ravel(o["sp"])).fit(data, grids=grids)
        assert far(coefficient(same, np.ravel(o["curve"]["grid"])), o["curve"]["value"]) < 1e-9


@pytest.mark.parametrize("which", ["ncomp8", "default"])
def test_principal_components(reference, which):
    record = reference("fpcr_dti")
    data, grids = data_of(record)
    o = record["output"][which]
    sizes = {"n_components": 8, "n_basis": 30} if which == "ncomp8" else {}
    term = terms.fpcr("X", rule="sum", **sizes)
    same = ScalarRegression([term], smoothing=[one(o["sp"])]).fit(data, grids=grids)
    assert same._fit.form.designs[-1].n_features == one(o["ncomp"])
    assert far(same.fitted_values_, o["fitted"]) < 1e-9
    assert same.edf_ == pytest.approx(np.sum(o["edf"]), rel=1e-9)
    assert same.sigma2_ == pytest.approx(one(o["sig2"]), rel=1e-9)
    assert far(coefficient(same, grids["X"]), o["fhat"]) < 1e-9
    rows = same._fit.form.designs[-1].effect(grids["X"])
    covariance = same._fit.bayesian_covariance[1:, 1:]
    assert far(np.sqrt(((rows @ covariance) * rows).sum(axis=1)), o["se"]) < 1e-9
    own = ScalarRegression([term]).fit(data, grids=grids)
    assert own.criterion_ <= same.criterion_ + 1e-6 * (1 + abs(same.criterion_))
    assert far(own.fitted_values_, o["fitted"]) < 1e-5


def coefficient(model, s):
    """The coefficient function of the last term at points."""
    form = model._fit.form
    return form.designs[-1].effect(s) @ model._fit.coefficients[form.slices[-1]]
