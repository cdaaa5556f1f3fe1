"""The last solve from triangles: on paper the same as from sums of products, with twice the digits."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp import terms
from fdadp.functional.curves import Curves
from fdadp.functional.records import Records, Seen
from fdadp.solve.long_form import LongForm
from fdadp.solve.long_sums import LongSums
from fdadp.solve.penalized import PenalizedLeastSquares
from fdadp.solve.triangles import refined, triangle_of
from fdadp.terms.intercept import Intercept, MeanCurve


def model(specs, columns, y, t):
    """Long form, rows (features, response), long-form rows and the problem."""
    records = Records(len(y), columns)
    seen = Seen.of(lambda: iter([records]))
    form = LongForm(tuple(spec.fixed(seen, t) for spec in [Intercept(), MeanCurve(), *specs]), t)
    rows = np.hstack([*form.features(records), y])
    system = LongSums.of(form, records, y).system(form)
    problem = PenalizedLeastSquares(
        system.gram, system.cross, system.total, system.n_rows, form.penalties, intercept=False
    )
    return form, rows, form.rows(records).reshape(-1, form.size), problem


def simulated(seed=0, n=40):
    rng = np.random.default_rng(seed)
    s, t = np.linspace(0, 1, 25), np.linspace(0, 2, 15)
    x = rng.normal(size=(n, 4)) @ np.stack([np.cos(k * np.pi * s) for k in range(4)])
    y = x[:, :15] * np.sin(t) + rng.normal(size=(n, 15))
    return {"X": Curves(x, s), "z": rng.normal(size=n)}, y, t


def test_triangles_merge():
    rows = np.random.default_rng(0).normal(size=(50, 6))
    whole = triangle_of(rows)
    parts = triangle_of(triangle_of(rows[20:]), triangle_of(rows[15:20], triangle_of(rows[:15])))
    np.testing.assert_allclose(whole.T @ whole, rows.T @ rows, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.abs(parts), np.abs(whole), atol=1e-12)
    np.testing.assert_array_equal(np.tril(parts, -1), 0)


@pytest.mark.parametrize("scale", [None, 2.0])
def test_same_as_from_products_of_a_harmless_design(scale):
    form, rows, _, problem = model([terms.ff("X"), terms.linear("z")], *simulated())
    problem = PenalizedLeastSquares(
        problem.gram, problem.cross, problem.total, problem.n, form.penalties, intercept=False, scale=scale
    )
    (best,) = problem.optimize()
    again = refined(problem, best, triangle_of(rows), form)
    for name in ("coefficients", "inverse", "edf", "rss", "noise_variance", "scale"):
        ours, before = getattr(again, name), getattr(best, name)
        np.testing.assert_allclose(ours, before, rtol=1e-7, atol=1e-8 * np.abs(before).max())
    assert (again.reml, again.edf_total) == (best.reml, pytest.approx(best.edf_total))


def test_more_digits_than_products_have():
    """Smoothing parameters far apart beside features that are nearly dependent, against QR of all rows."""
    columns, y, t = simulated(1)
    form, rows, long, problem = model([terms.sff("X")], columns, y, t)
    sp = np.array([1e-6, 1e-12, 1e6, 1e-10])
    before = problem.solve(sp)
    after = refined(problem, before, triangle_of(rows), form)
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
    form, rows, long, problem = model([term], {"X": Curves(i["X"][train], s)}, i["Y"][train], t)
    triangle = None
    for start in range(0, len(rows), 10):
        triangle = triangle_of(rows[start : start + 10], triangle)
    found = refined(problem, problem.solve(np.ravel(o["sp"])), triangle, form)
    size = np.abs(o["fitted"]).max()
    np.testing.assert_allclose(long @ found.coefficients, np.ravel(o["fitted"]), atol=1e-12 * size)
    np.testing.assert_allclose(found.edf_total, float(o["edf_total"][0]), rtol=1e-9)
    np.testing.assert_allclose(found.noise_variance, float(o["sig2"][0]), rtol=1e-11)
