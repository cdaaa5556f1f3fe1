"""REML of sff and af is mgcv's but for a constant, that of mgcv's constrained coordinates: which constant."""

from __future__ import annotations

import numpy as np
import pytest
from refund_cases import one, rows

from fdadp import FunctionalRegression, ScalarRegression, terms


def of_coordinates(design, smooth):
    """What mgcv's score has more than ours, for the coordinates that it recorded.

    Its coefficients are ``Z γ`` in the basis of values at even points, the columns ``del_index`` of Z left out; ours
    are ``M γ``, but for the intercept. Then ``log |A|`` has ``2 log |det M|`` more, and the logarithm of the
    pseudo-determinant of the penalties ``log det(M₁ M₁')``, M₁ the rows of M that are penalised.
    """
    z = np.delete(smooth["Z"], np.ravel(smooth["del_index"]).astype(int) - 1, axis=1)
    turn = np.kron(np.kron(design.along.rotation, design.over_s.rotation), design.over_x.rotation)
    shape = (design.along.size, design.over_s.size, design.over_x.size)
    ours = turn.reshape(-1, *shape).transpose(0, 3, 2, 1).reshape(len(turn), -1)[:, design.kept]
    m = ours.T @ z
    penalised = m[(design.penalties > 0).any(axis=0)]
    return np.linalg.slogdet(m)[1] - np.linalg.slogdet(penalised @ penalised.T)[1] / 2


def test_of_surfaces_of_curves(reference):
    record = reference("pffr_sff_sim")
    i, o = record["input"], record["output"]
    train = rows(i, "train")
    term = terms.sff("X", k=tuple(int(v) for v in np.ravel(i["k"])))
    model = FunctionalRegression([term], smoothing=np.ravel(o["sp"]))
    model.fit({"X": i["X"][train], "Y": i["Y"][train]}, grids={"X": np.ravel(i["s"]), "Y": np.ravel(i["t"])})
    constant = of_coordinates(model.fitted_.fit.form.designs[-1], o["smooths"][1])
    assert constant < -4
    assert model.criterion_ + constant == pytest.approx(one(o["score"]), abs=1e-6)


@pytest.mark.parametrize("rule", ["simpson", "trapezoidal"])
def test_of_surfaces_of_numbers(reference, rule):
    record = reference("pfr_af_dti")
    i, o = record["input"], record["output"][rule]
    k = tuple(int(v) for v in np.ravel(i["k"]))
    term = terms.af("X", k=k, rule={"simpson": "simpson_legacy"}.get(rule, "trapezoid"))
    model = ScalarRegression([term], smoothing=np.ravel(o["sp"]))
    model.fit({"X": i["X"], "y": np.ravel(i["y"]).astype(float)}, grids={"X": np.ravel(i["argvals"])})
    constant = of_coordinates(model.fitted_.fit.form.designs[-1], o["smooths"][0])
    assert model.criterion_ + constant == pytest.approx(one(o["score"]), abs=1e-8)
