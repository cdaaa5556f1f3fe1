"""What of refund's pffr is not as here; that the rest agrees, tests/python/r_bridge asks of every recorded fit."""

from __future__ import annotations

import numpy as np
import pytest
from refund_cases import far, one, rows

from fdadp import FunctionalRegression, terms
from fdadp.regression.fit_in_memory import read_spec
from fdadp.regression.reading.training_rows import read_rows
from fdadp.solve.fit.observations import fit_terms
from fdadp.solve.form.families_by_name import family_of

LEGACY = {"rule": "simpson_legacy"}


def test_refund_sits_in_a_local_minimum(reference):
    """Of REML, in the default fit to dti2: a search that takes errors as independent ends 7.8 below."""
    record = reference("pffr_ff_dti2")
    i, o = record["input"], record["output"]["default"]
    train = rows(i, "train")
    data, grids = {"X": i["X"][train], "Y": i["Y"][train]}, {"X": np.ravel(i["s"]), "Y": np.ravel(i["t"])}
    model = FunctionalRegression([terms.ff("X", **LEGACY)], k="refund")
    model.fit(data, grids=grids)
    observed = read_rows(read_spec(model.fitted_.settings, data, None, grids)[1], model.fitted_.settings)[0].observed
    assert fit_terms(model.fitted_.fit.form, observed, family_of("gaussian"), "reml").criterion < one(o["score"]) - 7
    assert abs(model.criterion_ - one(o["score"])) < 1e-8


@pytest.fixture
def live(reference):
    """Ten fits of live refund to one simulated cohort."""
    return reference("pffr_live")


def test_predictions_on_other_grids(live):
    """Where refund refuses (``limits``), on coarser covariates and at other points of the response."""
    i = live["input"]
    t, s = np.ravel(i["t"]), np.ravel(i["s"])
    model = FunctionalRegression([terms.ff("X", limits="s<=t")]).fit({"X": i["X"], "Y": i["Y"]}, grids={"X": s, "Y": t})
    assert far(model.predict({"X": i["X"]}), model.fitted_values_) < 1e-12
    assert far(model.predict({"X": i["X"]}, t=t[3:5]), model.fitted_values_[:, 3:5]) < 1e-12
    fine = np.linspace(s[0], s[-1], 4 * s.size - 3)
    values = np.array([np.interp(fine, s, x) for x in i["X"]])
    assert far(model.predict({"X": values}, grids={"X": fine}), model.fitted_values_) < 0.05
