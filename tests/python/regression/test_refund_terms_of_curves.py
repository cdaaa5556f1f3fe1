"""What refund's ffpc finds in curves, and what ours does."""

from __future__ import annotations

import numpy as np
from refund_cases import rows

from fdadp import FunctionalRegression, terms
from fdadp.functional.tables.curve_sample import Curves
from fdadp.terms.records import Records


def test_components_found_in_the_model(reference):
    """Refund keeps 21 components of this cohort at pve = .99, noise from the 6th on; the five of signal agree."""
    record = reference("pffr_live")
    i, o = record["input"], record["output"]
    train, test, grids = rows(i, "train"), rows(i, "test"), {"X": np.ravel(i["s"]), "Y": np.ravel(i["t"])}
    data, new = ({"X": i["X"][which], "Y": i["Y"][which]} for which in (train, test))
    model = FunctionalRegression([terms.ffpc("X", method="sc")]).fit(data, grids=grids)
    ours = model.fitted_.fit.form.designs[-1].features(Records(40, {"X": Curves(data["X"], grids["X"])}))
    assert ours.shape == (40, 5)
    cosines = np.corrcoef(ours.T, o["ffpc_scores"][:, :5].T)[:5, 5:]
    assert (np.abs(np.diag(cosines)) > 0.999).all()
    residual = [((np.asarray(p) - new["Y"]) ** 2).mean() for p in (model.predict(new), o["ffpc"]["predicted"])]
    assert residual[0] < residual[1]
