"""Weighted sums of the long form, as products, are those of its rows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fdadp import terms
from fdadp.functional.tables.curve_sample import Curves
from fdadp.solve.form import weighted_least_squares
from fdadp.solve.form.long_form_design import LongForm
from fdadp.solve.form.weighted_least_squares import (
    GridRows,
    LongRows,
    Observed,
    Remembered,
    rows_on_grid,
    weighted_system,
)
from fdadp.terms.numbers.scalar_linear import Intercept, MeanCurve
from fdadp.terms.records import Records, TrainingSummary

S, T = np.linspace(0, 1, 13), np.linspace(0, 1, 9)

MODELS = {
    "same at all t": [terms.ff("X"), terms.linear("x")],
    "some vary with t": [terms.concurrent("Z"), terms.ff("X", limits="s<=t"), terms.linear("x", constant=True)],
}


def records(n=11, seed=0):
    rng = np.random.default_rng(seed)
    curves = {"X": Curves(rng.normal(size=(n, S.size)), S), "Z": Curves(rng.normal(size=(n, T.size)), T)}
    return Records(n, {**curves, "x": rng.normal(size=n)})


def form_of(specs, data, t=T):
    seen = TrainingSummary.of([data])
    mean = [Intercept(), MeanCurve(k=6)] if t is not None else [Intercept()]
    return LongForm(tuple(spec.fixed(seen, t) for spec in [*mean, *specs]), np.zeros(1) if t is None else t)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("at_a_time", [weighted_least_squares.AT_A_TIME, 500])
def test_products_stand_for_rows(model, at_a_time, monkeypatch):
    monkeypatch.setattr(weighted_least_squares, "AT_A_TIME", at_a_time)
    data = records()
    form = form_of(MODELS[model], data)
    fast = rows_on_grid(form, form.features(data))
    assert isinstance(fast, GridRows)
    rng = np.random.default_rng(1)
    weights, beta = rng.uniform(size=(data.n, T.size)), rng.normal(size=form.size)
    matrix = rng.normal(size=(form.size, form.size))
    matrix += matrix.T
    rows = form.rows(data).reshape(-1, form.size)
    slow = LongRows(rows, weights.shape)
    assert_allclose(fast.predictor(beta), (rows @ beta).reshape(weights.shape), atol=1e-12)
    gram = rows.T @ (rows * weights.reshape(-1, 1))
    assert_allclose(fast.gram(weights), gram, atol=1e-12)
    assert_allclose(slow.gram(weights), gram, atol=1e-12)
    assert_allclose(fast.cross(weights), rows.T @ weights.ravel(), atol=1e-12)
    assert_allclose(slow.cross(weights), rows.T @ weights.ravel(), atol=1e-12)
    leverages = np.einsum("ij,jk,ik->i", rows, matrix, rows).reshape(weights.shape)
    assert_allclose(fast.leverages(matrix), leverages, atol=1e-11)
    assert_allclose(slow.leverages(matrix), leverages, atol=1e-11)


def test_blocks_add_up_and_rows_without_weight_do_not_count():
    data = records()
    form = form_of(MODELS["same at all t"], data)
    rng = np.random.default_rng(2)
    y, offset, weights = rng.normal(size=(3, data.n, T.size))
    weights = np.maximum(weights, 0)
    y[weights == 0] = np.nan

    def blocks():
        for part in (slice(0, 4), slice(4, None)):
            yield Observed(rows_on_grid(form, form.features(data[part])), y[part], weights[part], offset[part])

    found = weighted_system(blocks())
    used = weights.ravel() > 0
    rows = form.rows(data).reshape(-1, form.size)[used] * np.sqrt(weights.ravel()[used])[:, None]
    right = ((y - offset) * np.sqrt(weights)).ravel()[used]
    assert found.n_rows == used.sum() < used.size
    assert_allclose(found.gram, rows.T @ rows, atol=1e-12)
    assert_allclose(found.cross, rows.T @ right, atol=1e-12)
    assert_allclose(found.total, right @ right)


@pytest.mark.parametrize(("limit", "reads"), [(weighted_least_squares.REMEMBERED, 1), (10, 3)])
def test_blocks_are_remembered_where_they_fit(limit, reads, monkeypatch):
    monkeypatch.setattr(weighted_least_squares, "REMEMBERED", limit)
    seen = []

    def read():
        seen.append(1)
        for _ in range(2):
            one = np.ones((3, 1))
            yield Observed(LongRows(one, one.shape), one, one, one)

    blocks = Remembered(read)
    assert [len(list(blocks)) for _ in range(3)] == [2, 2, 2]
    assert len(seen) == reads
