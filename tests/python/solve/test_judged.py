"""Where errors depend along curves, the lowest minimum of REML may be the wrong one: which is taken instead."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp import FunctionalRegression, terms
from fdadp.regression.fit_in_memory import read_spec
from fdadp.regression.reading.training_rows import read_rows
from fdadp.solve.errors.gls import JUDGES, judging_system
from fdadp.solve.fit.observations import fit_terms
from fdadp.solve.form.families_by_name import family_of
from fdadp.solve.smoothing.penalized_least_squares import PenalizedLeastSquares
from fdadp.solve.smoothing.smoothing_search import newton

GAUSSIAN = family_of("gaussian")
T = np.linspace(0, 1, 41)
WAVES = np.stack([np.ones(T.size)] + [np.sqrt(2) * f(k * np.pi * T) for k in (2, 4) for f in (np.sin, np.cos)], 1)
SURFACE = 2 * np.sin(np.pi * T[:, None]) * np.cos(np.pi * T) + T[:, None] * T
MODEL = [terms.ff("X", k=(7, 7), m=((2, 2), (2, 2)))]
GRIDS = {"X": T, "Y": T}


def curves(smooth, n=60, seed=0):
    """Five components of X, a smooth surface, and errors of three waves that a surface may be taken for."""
    rng = np.random.default_rng([seed, n])
    x = rng.normal(size=(n, 5)) * [1, 0.8, 0.6, 0.4, 0.3] @ WAVES.T + 0.2 * rng.normal(size=(n, T.size))
    weights = np.full(T.size, T[1])
    weights[[0, -1]] /= 2
    errors = rng.normal(size=(n, 3)) * [1, 0.7, 0.5] @ WAVES[:, :3].T / np.sqrt(1.74)
    white = rng.normal(size=(n, T.size))
    return {"X": x, "Y": (x * weights) @ SURFACE + 0.5 * (np.sqrt(smooth) * errors + np.sqrt(1 - smooth) * white)}


def off(model):
    """Root mean squared error of the surface."""
    frame = model.coef("ff(X)", at={"s": T, "t": T}).sort_values(["s", "t"])
    return float(np.sqrt(np.mean((frame["value"].to_numpy().reshape(T.size, -1) - SURFACE) ** 2)))


def trained(model, data):
    """Terms on their bases, and observations."""
    settings = model.fitted_.settings
    rows = read_rows(read_spec(settings, data, None, GRIDS)[1], settings)[0]
    return model.fitted_.fit.form, rows.observed


def lowest(model, data):
    """The fit that the search ends in when it takes errors as independent."""
    return fit_terms(*trained(model, data), GAUSSIAN, "reml")


@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "gaps"])
def test_errors_that_look_like_a_surface_are_not_taken_for_one(gaps):
    data = curves(0.8)
    if gaps:
        data["Y"][np.random.default_rng(1).uniform(size=data["Y"].shape) < 0.2] = np.nan
    model = FunctionalRegression(MODEL).fit(data, grids=GRIDS)
    below = lowest(model, data)
    wild = FunctionalRegression(MODEL, smoothing=below.smoothing_parameters).fit(data, grids=GRIDS)
    assert below.criterion < model.criterion_ - 1
    assert off(model) < 0.6 < 2 < off(wild)


def test_where_errors_are_independent_the_lowest_minimum_is_taken():
    data = curves(0.0)
    model = FunctionalRegression(MODEL).fit(data, grids=GRIDS)
    assert model.criterion_ == pytest.approx(lowest(model, data).criterion, abs=1e-9)


def test_chunks_choose_as_the_table_does():
    data = curves(0.8)
    whole = FunctionalRegression(MODEL).fit(data, grids=GRIDS)
    parts = [{name: column[rows] for name, column in data.items()} for rows in (slice(0, 13), slice(13, None))]
    chunked = FunctionalRegression(MODEL).fit_chunks(parts, grids=GRIDS)
    np.testing.assert_allclose(chunked.smoothing_parameters_, whole.smoothing_parameters_, rtol=1e-5)
    assert off(chunked) == pytest.approx(off(whole), rel=1e-5)


def test_nothing_above_the_minimum_that_other_programs_find():
    """Neither of a judge that sees no effect at all, nor of the problem itself."""
    data = curves(0.8)
    form, observed = trained(FunctionalRegression(MODEL).fit(data, grids=GRIDS), data)
    system = observed.below(observed.level).system(form)

    def problem(cross):
        return PenalizedLeastSquares(system.gram, cross, system.total, system.n_rows, form.penalties, intercept=False)

    own = problem(system.cross)
    bounds = own._centre - 25, own._centre + 25
    (usual,), _ = newton(own._criteria.reml, own._centre[None], np.array([0]), bounds, 1e-6)
    shift = own.reml(own._centre)[0] - own._criteria.reml_values(own._centre[None])[0, 0]
    (hostile,), (plain,), (itself,) = (own.optimize("reml", j) for j in (problem(0 * system.cross), None, own))
    assert plain.reml < hostile.reml < usual + shift + 1e-6
    assert itself.reml == pytest.approx(plain.reml, abs=1e-9)


def test_many_curves_and_points_are_judged_by_a_part_of_them():
    data = curves(0.8, n=2 * JUDGES + 1)
    model = FunctionalRegression(MODEL).fit(data, grids=GRIDS)
    form, observed = trained(model, data)
    system = judging_system(form, observed, GAUSSIAN, "reml")
    assert system is not None and system.n_rows == JUDGES * T.size
    assert judging_system(form, observed, GAUSSIAN, "gcv") is None
    assert off(model) < 0.2
