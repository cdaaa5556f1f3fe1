"""Generalised least squares of curves with gaps, weights or points of their own, beside the matrices it stands for."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from test_weighted import MODELS, T, form_of, records

from fdadp import terms
from fdadp.errors import InputError
from fdadp.functional.splines.bsplines import BSplines
from fdadp.responses import PointwiseResponse
from fdadp.solve.errors.gls import SmoothErrors, curves_system, smooth_errors
from fdadp.solve.errors.leave_one_out_residuals import Residuals
from fdadp.solve.fit.observations import Observations
from fdadp.solve.form.long_form_design import LongForm
from fdadp.terms.records import Records

ERRORS = SmoothErrors(
    BSplines.uniform(0, 1, 7), np.random.default_rng(0).normal(size=(7, 2)), np.array([2.0, 0.5]), 0.3, 1.7
)


def observed(data, where, seed=1):
    """Responses with weights and offsets: with gaps on the grid, or at points of their own."""
    rng = np.random.default_rng(seed)
    if where == "grid":
        shape, points = (data.n, T.size), None
        y = np.where(rng.uniform(size=shape) < 0.3, np.nan, rng.normal(size=shape))
        y[4] = np.nan
    else:
        record = rng.choice(np.setdiff1d(np.arange(data.n), [4]), size=80)
        points = PointwiseResponse.of(record, rng.uniform(size=80), rng.normal(size=80), data.n)
        y, shape = points.y, (80,)
    weights = np.where(rng.uniform(size=shape) < 0.1, 0.0, rng.uniform(0.5, 2, size=shape))
    return Observations(data, y, weights, rng.normal(size=shape), points)


def dense(form, data, made):
    """Rows of all entries, the record of each, and the precision as one matrix."""
    if made.points is None:
        record, t = np.repeat(np.arange(data.n), T.size), np.tile(T, data.n)
        rows = form.rows(data).reshape(-1, form.size)
    else:
        record, t = made.points.record, made.points.t
        rows = form.rows_at(data, record, t)
    smooth, weights = ERRORS.splines.design(t) @ ERRORS.loadings, made.used.ravel()
    inverse = np.zeros((t.size, t.size))
    for i in range(data.n):
        own = np.flatnonzero((record == i) & (weights > 0))
        covariance = (smooth[own] * ERRORS.sizes) @ smooth[own].T + ERRORS.white * np.eye(own.size)
        root = np.sqrt(weights[own])
        inverse[np.ix_(own, own)] = ERRORS.variance * root[:, None] * np.linalg.inv(covariance) * root
    return rows, record, inverse


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("where", ["grid", "points"])
def test_sums_are_those_of_matrices(model, where, monkeypatch):
    monkeypatch.setattr("fdadp.terms.records.RECORDS_AT_A_TIME", 3)
    data = records()
    form, made = form_of(MODELS[model], data), observed(data, where)
    precision = ERRORS.precision(made, form.t)
    rows, record, inverse = dense(form, data, made)
    y = np.where(made.used > 0, made.y - made.offset, 0.0).ravel()
    found = curves_system(form, made, precision)
    assert_allclose(found.gram, rows.T @ inverse @ rows, atol=1e-10 * np.abs(found.gram).max())
    assert_allclose(found.cross, rows.T @ inverse @ y, atol=1e-10 * np.abs(found.gram).max())
    assert_allclose(found.total, y @ inverse @ y)
    seen = made.used.ravel() > 0
    assert found.n_rows == seen.sum()
    assert precision.log_det == pytest.approx(np.linalg.slogdet(inverse[np.ix_(seen, seen)])[1])
    left = Residuals(data, y.reshape(made.y.shape), made.used, made.points, precision)
    each = np.array([rows[record == i].T @ (inverse @ y)[record == i] for i in range(data.n)])
    assert_allclose(left.scores(form), each, atol=1e-10 * np.abs(each).max())
    which = np.array([7, 2, 4, 9])  # in any order, one of them without observations
    grams = np.zeros((data.n, form.size, form.size))
    for part, own in left.grams(form, which):
        grams[part] = own
    for i in which:
        own = record == i
        expected = rows[own].T @ inverse[np.ix_(own, own)] @ rows[own]
        assert_allclose(grams[i], expected, atol=1e-10 * np.abs(found.gram).max())


@pytest.mark.parametrize("where", ["gaps", "points", "weights"])
def test_smooth_and_white_errors_are_told_apart(where):
    n, rng, grid = 300, np.random.default_rng(2), np.linspace(0, 1, 15)
    data = Records(n, {"z": rng.normal(size=n)})
    form = LongForm(form_of([terms.linear("z")], data).designs, grid)

    def made(smooth):
        weights = rng.uniform(0.5, 2, size=(n, 15)) if where == "weights" else np.ones((n, 15))
        t = rng.uniform(size=(n, 15)) if where == "points" else np.tile(grid, (n, 1))
        waves = np.stack([np.ones(t.shape), 2 * t - 1], axis=2)
        errors = np.einsum("ntk,nk->nt", waves, smooth * rng.normal(size=(n, 2))) + 0.5 * rng.normal(size=t.shape)
        y = data.numbers("z")[:, None] * t + errors / np.sqrt(weights)
        gone = rng.uniform(size=y.shape) < (0.0 if where == "weights" else 0.5)
        if where != "points":
            return Observations(data, np.where(gone, np.nan, y), weights if where == "weights" else None)
        record = np.repeat(np.arange(n), 15)[~gone.ravel()]
        points = PointwiseResponse.of(record, t[~gone], y[~gone], n)
        return Observations(data, points.y, None, None, points)

    found = smooth_errors(form, made(1.0))
    assert found.sizes[:-2].sum() < 0.03 * found.sizes[-2:].sum()
    waves = np.stack([np.ones(15), 2 * grid - 1])
    smooth = found.splines.design(grid) @ found.loadings
    assert np.abs((smooth * found.sizes) @ smooth.T - waves.T @ waves).mean() < 0.2  # of 1.37 at the mean point
    assert found.white == pytest.approx(0.25, rel=0.15)
    alone = smooth_errors(form, made(0.0))
    assert alone.variance - alone.white < 0.03 * alone.variance
    assert alone.white == pytest.approx(0.25, rel=0.1)


def test_too_few_pairs_of_points():
    data = Records(20, {"z": np.arange(20.0)})
    form = form_of([terms.linear("z")], data)
    alone = PointwiseResponse.of(np.arange(20), np.linspace(0, 1, 20), np.arange(20.0), 20)
    with pytest.raises(InputError, match="8 curves or more with two observations, got 20 and 0"):
        smooth_errors(form, Observations(data, alone.y, None, None, alone))
