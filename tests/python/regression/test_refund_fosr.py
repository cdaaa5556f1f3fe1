"""fosr's standard errors, and its second, weighted fit: from the terms and the solver, with refund's covariances."""

from __future__ import annotations

import numpy as np
import pytest
from refund_cases import far, one

from fdadp import FunctionalRegression, terms
from fdadp.solve.smoothing.penalized_least_squares import PenalizedLeastSquares
from fdadp.terms.records import Records


@pytest.fixture
def recorded(reference):
    record = reference("fosr_dti")
    i = record["input"]
    columns = {"case": i["X"][:, 1], "female": i["X"][:, 2]}
    return columns, i["Y"], np.ravel(i["argvals"]), one(i["fixed_lambda"]), record["output"]


def first_fit(columns, y, t, smoothing):
    """The fit with independent errors, its rows (n, T, p), and the covariance of residuals about their mean curve."""
    model = FunctionalRegression([terms.fosr(("case", "female"))], intercept=False, smoothing=smoothing)
    model.fit({**columns, "Y": y}, grids={"Y": t})
    rows = model.fitted_.fit.form.rows(Records(len(y), columns))
    residuals = y - model.fitted_values_
    about = residuals - residuals.mean(axis=0)
    return model, rows.reshape(len(y), t.size, -1), about.T @ about / len(y)


def curves_of(model, coefficients, covariance):
    """Estimated curves (T, 3) and their standard errors."""
    b = model.fitted_.fit.form.designs[0].along.design(model.t_)
    blocks = covariance.reshape(3, b.shape[1], 3, b.shape[1])
    variances = [np.einsum("tp,pq,tq->t", b, blocks[j, :, j], b) for j in range(3)]
    return b @ coefficients.reshape(3, -1).T, np.sqrt(variances).T


def test_standard_errors_of_least_squares(recorded):
    columns, y, t, fixed, output = recorded
    model, rows, covariance = first_fit(columns, y, t, [fixed])
    meat = np.einsum("itp,tu,iuq->pq", rows, covariance, rows, optimize=True)
    inverse = model.fitted_.fit.inverse
    estimates, errors = curves_of(model, model.fitted_.fit.coefficients, inverse @ meat @ inverse)
    assert far(estimates, output["ols_fixed"]["est"]) < 1e-11
    assert far(errors, output["ols_fixed"]["se"]) < 1e-11


def test_generalised_least_squares(recorded):
    """Weighted by the inverse of the first fit's covariance; `lambda` and `edf` of the record are the first fit's."""
    columns, y, t, _, output = recorded
    gls = output["gls"]
    model, rows, covariance = first_fit(columns, y, t, "reml")
    assert model.smoothing_parameters_[0] == pytest.approx(one(gls["lambda"]), rel=1e-5)
    assert model.edf_ == pytest.approx(one(gls["edf"]), rel=1e-6)
    weights = np.linalg.inv(covariance)
    weighted = np.einsum("tu,iuq->itq", weights, rows)
    gram = np.einsum("itp,itq->pq", rows, weighted, optimize=True)
    cross, total = np.einsum("itq,it->q", weighted, y), np.einsum("it,tu,iu->", y, weights, y)
    problem = PenalizedLeastSquares(gram, cross, total, y.size, model.fitted_.fit.form.penalties, intercept=False)
    (second,) = problem.optimize("reml")
    estimates, errors = curves_of(model, second.coefficients, second.noise_variance * second.inverse)
    assert far(estimates, gls["est"]) < 1e-8  # at smoothing parameters that either found by itself
    assert far(errors, gls["se"]) < 1e-8
