"""sff, ffpc and fosr beside recorded fits of refund, through the public estimator."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from refund_cases import differences, far, one, rows

from fdadp import FunctionalRegression, terms
from fdadp.functional.curves import Curves
from fdadp.functional.fpca import Eigenbasis
from fdadp.functional.records import Records


@pytest.mark.filterwarnings("error:the data do not identify", "ignore:.*lie outside the training range")
@pytest.mark.parametrize(("case", "n_unpenalized"), [("sim", None), ("canadian", 7)])
def test_additive(reference, case, n_unpenalized):
    """Scores of REML differ from mgcv's by a constant; it counts one direction too many in sff_canadian."""
    record = reference(f"pffr_sff_{case}")
    i, o = record["input"], record["output"]
    train, test = rows(i, "train"), rows(i, "test")
    data, new = ({name: i[name][which] for name in ("X", "Y")} for which in (train, test))
    grids = {"X": np.ravel(i["s"]), "Y": np.ravel(i["t"])}

    def model(**settings):
        made = FunctionalRegression([terms.sff("X", k=tuple(int(v) for v in np.ravel(i["k"])))], **settings)
        made._n_unpenalized = n_unpenalized
        return made

    found = differences(model, data, grids, o, new)
    assert found["above"] <= 1e-6
    assert max(found["fitted"], found["predicted"], found["edf"], found["sigma2"]) < 1e-9
    assert found["se"] < 3e-9  # what mgcv's own coordinates keep of them

    same = model(smoothing=np.ravel(o["sp"])).fit(data, grids=grids)
    parts = same.predict_terms(new)
    mean, surface = o["predicted_terms"]
    assert np.abs(parts["s(t)"] - mean).max() < 1e-9 * np.abs(o["fitted"]).max()  # of sff_sim the mean is 1e-7
    apart = parts["sff(X)"] - surface
    assert np.ptp(apart) < 1e-9 * np.abs(surface).max()  # a constant belongs to either
    assert surface_difference(same, o["surfaces"][1]) < 1e-9


def surface_difference(model, recorded):
    """How far ``F(x, s, t) - F(x0, s, t)`` is from the recorded one; F itself is not identified."""
    t, s, x = (np.ravel(recorded[axis]) for axis in "xyz")
    form, last = model._fit.form, model._fit.form.designs[-1]
    full = np.zeros(last.kept.size)
    full[last.kept] = model._fit.coefficients[form.slices[-1]]
    over_t = full.reshape(last.n_features, -1) @ last.along.design(t).T
    ours = (last.effect(s, x) @ over_t).reshape(s.size, x.size, t.size).transpose(2, 0, 1)
    theirs = np.ravel(recorded["value"]).reshape((t.size, s.size, x.size), order="F")
    middle = x.size // 2
    return far(ours - ours[:, :, [middle]], theirs - theirs[:, :, [middle]])


def test_component_scores(reference):
    """At refund's own scores, given as curves on the points 0, ..., 14 whose components are these points."""
    record = reference("pffr_live")
    i, o = record["input"], record["output"]
    scores, numbers, t = o["ffpc_scores"][:, :15], np.arange(15.0), np.ravel(i["t"])
    basis = Eigenbasis(numbers, np.ones(15), np.zeros(15), np.eye(15), scores.var(axis=0), 0.0, np.full(15, 1 / 15))
    data, grids = {"scores": scores, "Y": i["Y"][rows(i, "train")]}, {"scores": numbers, "Y": t}
    found = differences(partial(FunctionalRegression, [terms.ffpc("scores", basis=basis)]), data, grids, o["ffpc"])
    assert found["above"] <= 1e-6
    assert max(found.values()) < 1e-9


def test_components_found_in_the_model(reference):
    """Refund keeps 21 components of this cohort at pve = .99, noise from the 6th on; the five of signal agree."""
    record = reference("pffr_live")
    i, o = record["input"], record["output"]
    train, test, grids = rows(i, "train"), rows(i, "test"), {"X": np.ravel(i["s"]), "Y": np.ravel(i["t"])}
    data, new = ({"X": i["X"][which], "Y": i["Y"][which]} for which in (train, test))
    model = FunctionalRegression([terms.ffpc("X", method="sc")]).fit(data, grids=grids)
    ours = model._fit.form.designs[-1].features(Records(40, {"X": Curves(data["X"], grids["X"])}))
    assert ours.shape == (40, 5)
    cosines = np.corrcoef(ours.T, o["ffpc_scores"][:, :5].T)[:5, 5:]
    assert (np.abs(np.diag(cosines)) > 0.999).all()
    residual = [((np.asarray(p) - new["Y"]) ** 2).mean() for p in (model.predict(new), o["ffpc"]["predicted"])]
    assert residual[0] < residual[1]


def test_effects_of_scalars_together(reference):
    record = reference("fosr_dti")
    i, o = record["input"], record["output"]["ols_fixed"]
    data = {"case": i["X"][:, 1], "female": i["X"][:, 2], "Y": i["Y"]}
    t, fixed = np.ravel(i["argvals"]), [one(i["fixed_lambda"])]
    term = terms.fosr(("case", "female"))
    model = FunctionalRegression([term], intercept=False, smoothing=fixed).fit(data, grids={"Y": t})
    assert far(model.fitted_values_, o["yhat"]) < 1e-11
    assert model.edf_ == pytest.approx(one(o["edf"]), rel=1e-11)
    along = model._fit.form.designs[0].along.design(t)
    estimates = along @ model._fit.coefficients.reshape(3, -1).T
    assert far(estimates, o["est"]) < 1e-11
