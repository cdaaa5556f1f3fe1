"""Normal equations with a precision along curves, and the covariance that it is the inverse of."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp import terms
from fdadp.functional.tables.curve_sample import Curves
from fdadp.solve.errors.gls import precision_system, smooth_errors, working_covariance
from fdadp.solve.fit.observations import Observations
from fdadp.solve.form.long_form_design import LongForm
from fdadp.terms.numbers.scalar_linear import Intercept, MeanCurve
from fdadp.terms.records import Records, TrainingSummary

T = np.linspace(0, 1, 15)


def form_and_records(specs, n=40, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4)) @ np.stack([np.cos(k * np.pi * T) for k in range(4)])
    records = Records(n, {"X": Curves(x, T), "z": rng.normal(size=n)})
    seen = TrainingSummary.of([records])
    return LongForm(tuple(spec.fixed(seen, T) for spec in specs), T), records, rng


SAME = [Intercept(), MeanCurve(k=8), terms.ff("X"), terms.linear("z")]


@pytest.mark.parametrize("specs", [SAME, [*SAME, terms.concurrent("X")]], ids=["same", "varying"])
def test_precision_system_is_that_of_the_rows(specs):
    form, records, rng = form_and_records(specs)
    y = rng.normal(size=(records.n, T.size))
    root = rng.normal(size=(T.size, T.size))
    precision = root @ root.T
    found = precision_system(form, Observations(records, y), precision)
    rows = form.rows(records)
    gram = np.einsum("ntp,tu,nuq->pq", rows, precision, rows, optimize=True)
    cross = np.einsum("ntp,tu,nu->p", rows, precision, y, optimize=True)
    assert np.allclose(found.gram, gram, rtol=1e-10, atol=1e-9 * np.abs(gram).max())
    assert np.allclose(found.cross, cross, rtol=1e-9, atol=1e-9 * np.abs(cross).max())
    assert found.total == pytest.approx(np.einsum("nt,tu,nu->", y, precision, y))
    assert found.n_rows == y.size


@pytest.mark.parametrize("specs", [SAME, [*SAME, terms.concurrent("X")]], ids=["same", "varying"])
def test_smooth_and_white_errors_are_told_apart(specs):
    form, records, rng = form_and_records(specs, n=400)
    waves = np.stack([np.ones(T.size), 2 * T - 1])
    mean = records.numbers("z")[:, None] * T
    white = 0.5 * rng.normal(size=(records.n, T.size))
    found = working_covariance(form, form.features(records), mean + white + rng.normal(size=(records.n, 2)) @ waves)
    truth = waves.T @ waves + 0.25 * np.eye(T.size)
    inverse = np.linalg.inv(truth) * np.trace(truth) / T.size
    assert found.n_smooth == 2
    assert found.variance == pytest.approx(np.trace(truth) / T.size, rel=0.15)
    assert np.abs(found.precision - inverse).max() < 0.1 * np.abs(inverse).max()
    alone = working_covariance(form, form.features(records), mean + white)
    assert alone.n_smooth == 0
    assert np.allclose(alone.precision, np.eye(T.size), atol=1e-12)


def smooth_and_white(n, more=(), seed=0):
    form, records, rng = form_and_records([*SAME, *more], n=n, seed=seed)
    level, slope = rng.normal(size=(2, n, 1))
    return form, records, level + slope * (2 * T - 1) + 0.3 * rng.normal(size=(n, T.size))


@pytest.mark.parametrize("more", [[], [terms.concurrent("X")]], ids=["same", "varying"])
def test_a_precision_without_each_curve(more):
    """What it does to the scores of the others is, to first order, what learning it from them does."""
    form, records, y = smooth_and_white(150, more)
    whole, residuals = working_covariance(form, form.features(records), y), y - y.mean(axis=0)
    scores = lambda values: form.scores(records, values.reshape(y.shape))  # noqa: E731
    pulls = whole.learned.pulls(scores, residuals.ravel(), np.arange(150))
    exact = []
    for i in range(20):
        others = np.arange(150) != i
        again = working_covariance(form, form.features(records[others]), y[others])
        units = whole.learned.precision.factor / again.learned.precision.factor
        change = again.precision * units - whole.precision
        exact.append(form.scores(records[others], residuals[others] @ change).sum(axis=0))
    assert np.linalg.norm(pulls[:20] - exact) < 0.15 * np.linalg.norm(exact)


def test_without_clusters_of_curves():
    """Of several curves at once it is their sum, less what they do to each other."""
    form, records, y = smooth_and_white(60)
    learned, residuals = working_covariance(form, form.features(records), y).learned, y - y.mean(axis=0)
    scores = lambda values: form.scores(records, values.reshape(y.shape))  # noqa: E731
    clusters = np.arange(60) // 3
    pulls, change = learned.pulls(scores, residuals.ravel(), clusters), learned.changes()[:3].sum(axis=0)
    known = learned.precision.variance * np.linalg.inv(_covariance(learned))
    functions = learned.functions[: T.size]
    moved = -known @ functions @ change @ functions.T @ known / learned.precision.factor
    expected = form.scores(records[np.arange(3, 60)], residuals[3:] @ moved).sum(axis=0)
    assert np.allclose(pulls[0], expected, rtol=1e-8, atol=1e-10 * np.abs(pulls).max())


def _covariance(learned):
    phi = learned.precision.loadings[: T.size]
    return (phi * learned.precision.sizes) @ phi.T + learned.precision.white * np.eye(T.size)


def test_the_same_curves_as_points_of_their_own():
    form, records, y = smooth_and_white(120)
    residuals = (y - y.mean(axis=0)).ravel()
    scores = lambda values: form.scores(records, values.reshape(y.shape))  # noqa: E731
    on_grid = working_covariance(form, form.features(records), y).learned
    observed = Observations(records, y, np.ones_like(y))
    found = smooth_errors(form, observed)
    at_points = found.learned(observed, T, found.precision(observed, T))
    one, other = (each.pulls(scores, residuals, np.arange(120)) for each in (on_grid, at_points))
    assert np.linalg.norm(one - other) < 0.2 * np.linalg.norm(one)
