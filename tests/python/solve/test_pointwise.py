"""Responses at points of their own: the sums are those of the rows of all observations."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from test_weighted import MODELS, T, form_of, records

from fdadp import terms
from fdadp.responses import PointwiseResponse
from fdadp.solve.form import weighted_least_squares as pointwise
from fdadp.solve.form.weighted_least_squares import observed_at_points, pointwise_system, weighted_system
from fdadp.terms.records import TrainingSummary
from fdadp.terms.spec import TermDesign


def response(n=11, size=70, seed=3):
    rng = np.random.default_rng(seed)
    record = rng.choice(np.setdiff1d(np.arange(n), [4]), size=size)  # one record was never observed
    return PointwiseResponse.of(record, rng.uniform(size=size), rng.normal(size=size), n)


def long_rows(form, data, seen):
    """Rows of the long form at all points of all records, of which those of the observations are taken."""
    points, place = np.unique(seen.t, return_inverse=True)
    return form.rows(data, points)[seen.record, place]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("at_a_time", [2000, 3])
def test_sums_are_those_of_the_rows(model, at_a_time, monkeypatch):
    monkeypatch.setattr(pointwise, "CURVES_AT_A_TIME", at_a_time)
    monkeypatch.setattr(pointwise, "NUMBERS_AT_A_TIME", 500 * at_a_time)
    data, seen = records(), response()
    form = form_of(MODELS[model], data, np.append(seen.t, T))
    rng = np.random.default_rng(5)
    weights, offset = rng.uniform(size=seen.y.size), rng.normal(size=seen.y.size)
    weights[::7] = 0
    found = pointwise_system(form, data, seen, weights, offset)
    rows, right = long_rows(form, data, seen), seen.y - offset
    assert_allclose(found.gram, rows.T @ (rows * weights[:, None]), atol=1e-11)
    assert_allclose(found.cross, rows.T @ (weights * right), atol=1e-11)
    assert_allclose(found.total, weights @ right**2)
    assert found.n_rows == (weights > 0).sum()
    blocks = list(observed_at_points(form, data, seen, weights, offset))
    assert (len(blocks) > 1) == (at_a_time == 3)
    assert_allclose(weighted_system(blocks).gram, found.gram, atol=1e-11)


@pytest.mark.parametrize("term", [terms.concurrent("Z"), terms.ff("X", limits="s<t"), terms.ff("X")])
def test_features_of_single_observations(term):
    data, seen = records(), response()
    design = term.fixed(TrainingSummary.of([data]), np.append(seen.t, T))
    found = design.features_at(data, seen.record, seen.t)
    points, place = np.unique(seen.t, return_inverse=True)
    features = design.features(data, points)
    expected = features[seen.record, place] if features.ndim == 3 else features[seen.record]
    assert_allclose(found, expected, atol=1e-13)
    assert_allclose(TermDesign.features_at(design, data, seen.record, seen.t), expected, atol=1e-13)
    shuffled = np.random.default_rng(0).permutation(seen.t.size)
    assert_allclose(design.features_at(data, seen.record[shuffled], seen.t[shuffled]), expected[shuffled], atol=1e-13)


@pytest.mark.parametrize("model", MODELS)
def test_predictors_are_rows_times_coefficients(model):
    data, seen = records(), response()
    form = form_of(MODELS[model], data, np.append(seen.t, T))
    beta = np.random.default_rng(6).normal(size=form.size)
    found = form.predictor_at(data, seen.record, seen.t, beta)
    assert_allclose(found, form.rows_at(data, seen.record, seen.t) @ beta, atol=1e-12)
