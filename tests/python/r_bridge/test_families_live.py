"""Families, weights and offsets beside mgcv itself on fresh data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from refund_cases import far, one

from fdadp import ScalarRegression, terms
from r_bridge.gam import fit_gam

pytestmark = pytest.mark.mgcv

FAMILIES = {
    "poisson": "poisson()",
    "binomial": "binomial()",
    "gamma": "Gamma(link = 'log')",
    "gaussian": "gaussian()",
}


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    n = 200
    z, x, o = rng.uniform(-2, 2, n), rng.normal(size=n), rng.uniform(0, 1, n)
    mean = np.exp(np.sin(2 * z) + 0.4 * x)
    return {
        "z": z,
        "x": x,
        "o": o,
        "trials": rng.integers(1, 5, n).astype(float),
        "poisson": rng.poisson(mean * np.exp(o)).astype(float),
        "binomial": (rng.uniform(size=n) < mean / (1 + mean)).astype(float),
        "gamma": rng.gamma(3.0, mean / 3.0),
        "gaussian": np.log(mean) + 0.5 * rng.normal(size=n),
    }


TERMS = [terms.s("z", bs="ps", k=9, m=(2, 2)), terms.linear("x")]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_numbers(numbers, family, weighted):
    """Parametric terms come after the smooth here and before it in mgcv: smoothing parameters are in one order."""
    data = dict(numbers)
    if family == "binomial" and weighted:  # shares of trials
        rng = np.random.default_rng(4)
        p = 1 / (1 + np.exp(-np.sin(2 * data["z"])))
        data["binomial"] = rng.binomial(data["trials"].astype(int), p) / data["trials"]
    weights = data["trials"] if weighted else None
    formula = f'{family} ~ s(z, bs = "ps", k = 9, m = c(2, 2)) + x + offset(o)'
    sp = fit_gam(formula, data, family=FAMILIES[family], weights=weights)["sp"]
    theirs = fit_gam(formula, data, data, family=FAMILIES[family], weights=weights, sp=sp)

    def fit(smoothing):
        model = ScalarRegression(TERMS, response=family, family=family, smoothing=smoothing)
        return model.fit(data, weights=weights, offset="o")

    same = fit(sp)
    assert far(same.fitted_values_, theirs["fitted"]) < 1e-9
    assert far(same.predict_se(data, kind="iid", offset="o"), theirs["predicted_se"]) < 1e-7
    assert far(same.edf_, theirs["edf_total"]) < 1e-8
    assert far(same.sigma2_, theirs["sig2"]) < 1e-8
    assert far(same.deviance_, theirs["deviance"]) < 1e-8
    own = fit("reml")
    assert own.criterion_ <= same.criterion_ + 1e-6 * (1 + abs(same.criterion_))
    assert far(own.fitted_values_, theirs["fitted"]) < 1e-3
    # mgcv's coordinates change the score by a constant; so differences of it are compared.
    other = fit_gam(formula, data, family=FAMILIES[family], weights=weights, sp=10 * sp)
    rise = fit(10 * sp).criterion_ - same.criterion_
    assert abs(rise - (one(other["score"]) - one(theirs["score"]))) < 1e-6 * (1 + abs(one(other["score"])))
