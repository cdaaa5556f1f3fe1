"""The last solve from triangles: on paper the same as from sums of products, with twice the digits."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from fdadp import FunctionalRegression, terms
from fdadp.functional.tables.curve_sample import Curves
from fdadp.solve.fit import additive_fit
from fdadp.solve.fit.additive_fit import Triangle, refined
from fdadp.solve.form.long_form_design import LongForm, LongSums
from fdadp.solve.smoothing.penalized_least_squares import PenalizedLeastSquares
from fdadp.terms.numbers.scalar_linear import Intercept, MeanCurve
from fdadp.terms.records import Records, TrainingSummary


def model(specs, columns, y, t):
    """Long form, its rows and the problem."""
    records = Records(len(y), columns)
    seen = TrainingSummary.of([records])
    form = LongForm(tuple(spec.fixed(seen, t) for spec in [Intercept(), MeanCurve(), *specs]), t)
    system = LongSums.of(form, form.features(records), y).system(form)
    problem = PenalizedLeastSquares(
        system.gram, system.cross, system.total, system.n_rows, form.penalties, intercept=False
    )
    return form, form.rows(records).reshape(-1, form.size), problem


def simulated(seed=0, n=40):
    rng = np.random.default_rng(seed)
    s, t = np.linspace(0, 1, 25), np.linspace(0, 2, 15)
    x = rng.normal(size=(n, 4)) @ np.stack([np.cos(k * np.pi * s) for k in range(4)])
    y = x[:, :15] * np.sin(t) + rng.normal(size=(n, 15))
    return {"X": Curves(x, s), "z": rng.normal(size=n)}, y, t


def triangle_of(form, columns, y, sizes=None):
    """Merged from blocks."""
    whole, ends = Records(len(y), columns), np.cumsum(sizes or [len(y)])
    parts = [slice(end - size, end) for size, end in zip(sizes or [len(y)], ends, strict=True)]
    return functools.reduce(Triangle.merge, [Triangle.of(form, form.features(whole[part]), y[part]) for part in parts])


def test_triangles_merge():
    columns, y, _ = simulated()
    fine = np.linspace(0, 2, 90)  # more points than functions along t: something of the response lies beyond them
    y = y[:, np.arange(90) // 6] + np.random.default_rng(1).normal(size=(len(y), 90))
    form, *_ = model([terms.ff("X"), terms.linear("z")], columns, y, fine)
    whole, parts = triangle_of(form, columns, y), triangle_of(form, columns, y, [3, 20, 17])
    rows = np.hstack([*form.features(Records(len(y), columns)), y @ form.directions])
    for triangle in (whole, parts):
        np.testing.assert_allclose(triangle.factor.T @ triangle.factor, rows.T @ rows, rtol=1e-10, atol=1e-10)
        np.testing.assert_array_equal(np.tril(triangle.factor, -1), 0)
    left = y - y @ form.directions @ form.directions.T
    assert (left**2).sum() > 100
    np.testing.assert_allclose([whole.beyond, parts.beyond], (left**2).sum(), rtol=1e-10)


@pytest.mark.parametrize("scale", [None, 2.0])
def test_same_as_from_products_of_a_harmless_design(scale):
    columns, y, t = simulated()
    form, _, problem = model([terms.ff("X"), terms.linear("z")], columns, y, t)
    problem = PenalizedLeastSquares(
        problem.gram, problem.cross, problem.total, problem.n, form.penalties, intercept=False, scale=scale
    )
    (best,) = problem.optimize()
    again = refined(problem, best, triangle_of(form, columns, y), form)
    for name in ("coefficients", "inverse", "edf", "rss", "noise_variance", "scale"):
        ours, before = getattr(again, name), getattr(best, name)
        np.testing.assert_allclose(ours, before, rtol=1e-7, atol=1e-8 * np.abs(before).max())
    assert (again.reml, again.edf_total) == (best.reml, pytest.approx(best.edf_total))


def test_more_digits_than_products_have():
    """Smoothing parameters far apart beside features that are nearly dependent, against QR of all rows."""
    columns, y, t = simulated(1)
    form, long, problem = model([terms.sff("X")], columns, y, t)
    sp = np.array([1e-6, 1e-12, 1e6, 1e-10])
    before = problem.solve(sp)
    after = refined(problem, before, triangle_of(form, columns, y), form)
    keep = problem.identified
    d = long[:, keep]
    stacked = np.vstack((d, np.diag(np.sqrt(sp @ problem.penalties[:, keep]))))
    right = np.concatenate((y.ravel(), np.zeros(keep.sum())))
    q, r = np.linalg.qr(stacked)
    expected = d @ np.linalg.solve(r, q.T @ right)
    errors = [np.abs(long @ found.coefficients - expected).max() / np.abs(expected).max() for found in (before, after)]
    assert errors[1] < 1e-11
    assert errors[1] < errors[0] / 10
    np.testing.assert_allclose(after.rss, ((y.ravel() - long @ after.coefficients) ** 2).sum(), rtol=1e-12)


def test_surfaces_of_curves_at_refunds_smoothing_parameters(reference):
    """Fitted values of sff to the digits that refund recorded, from triangles of blocks."""
    record = reference("pffr_sff_sim")
    i, o = record["input"], record["output"]
    train, s, t = np.ravel(i["train"]).astype(int) - 1, np.ravel(i["s"]), np.ravel(i["t"])
    term = terms.sff("X", k=tuple(int(v) for v in np.ravel(i["k"])))
    columns, y = {"X": Curves(i["X"][train], s)}, i["Y"][train]
    form, long, problem = model([term], columns, y, t)
    triangle = triangle_of(form, columns, y, [10, 12, len(y) - 22])
    found = refined(problem, problem.solve(np.ravel(o["sp"])), triangle, form)
    size = np.abs(o["fitted"]).max()
    np.testing.assert_allclose(long @ found.coefficients, np.ravel(o["fitted"]), atol=1e-12 * size)
    np.testing.assert_allclose(found.edf_total, float(o["edf_total"][0]), rtol=1e-9)
    np.testing.assert_allclose(found.noise_variance, float(o["sig2"][0]), rtol=1e-11)


def test_a_fit_takes_the_triangle_where_products_have_lost_digits(monkeypatch):
    """As at smoothing parameters far apart; a harmless fit does not pass over the records again."""
    columns, y, t = simulated(1)
    data, taken = {"X": columns["X"].values, "Y": y}, []
    monkeypatch.setattr(additive_fit, "refined", lambda *given: taken.append(given) or refined(*given))
    grids = {"X": columns["X"].grid, "Y": t}
    FunctionalRegression([terms.ff("X")]).fit(data, grids=grids)
    assert not taken
    sp = np.array([1e-6, 1e-12, 1e6, 1e-10])
    fit = FunctionalRegression([terms.sff("X")], smoothing=sp).fit(data, grids=grids)
    assert len(taken) == 1
    form, long, problem = model([terms.sff("X")], columns, y - y.mean(), t)
    expected = refined(problem, problem.solve(sp), triangle_of(form, columns, y - y.mean()), form)
    means = (long @ expected.coefficients).reshape(y.shape) + y.mean()
    np.testing.assert_allclose(fit.fitted_values_, means, rtol=1e-9)
    assert fit.sigma2_ == pytest.approx(expected.noise_variance, rel=1e-12)
