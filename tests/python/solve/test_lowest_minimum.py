"""Fits of different kinds end in the lowest minimum of REML that Newton's search finds from many random points."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp import AdditiveFunctionOnFunction, FunctionalRegression, load_canadian_weather, simulate_affr
from fdadp.solve.smoothing import penalized_least_squares
from fdadp.solve.smoothing.penalized_least_squares import LOG_RANGE, PenalizedLeastSquares
from fdadp.solve.smoothing.smoothing_search import newton

T = np.linspace(0, 1, 31)
POINTS, RANGE, ABOVE = 16, 8.0, 1e-3


def surface(n, seed):
    """An additive surface, whose responses on eigenfunctions are searched each for itself."""
    people = simulate_affr(1 + seed % 3, n, np.random.default_rng([7, seed]), n_points=31)
    x, y = (np.ascontiguousarray(curves.data_matrix[..., 0]) for curves in (people.X, people.Y))
    return lambda: AdditiveFunctionOnFunction(progress=False, n_basis_x=6, n_basis_s=6).fit(x, y)


def regression(formula, data):
    return lambda: FunctionalRegression(formula, progress=False, errors="curve").fit(data, grids={"X": T, "Y": T})


def weather():
    """Log rain from temperature, every twelfth day."""
    data = load_canadian_weather()
    x, y = (np.ascontiguousarray(curves.data_matrix[:, ::12, 0]) for curves in (data.X, data.Y))
    return regression("Y ~ ff(X) + C(region)", {"X": x, "Y": y, "region": data.stations["region"].to_numpy(object)})


def numbers(terms, n, seed, formula=None):
    """Smooth functions of numbers, half of which have an effect, and of a curve."""
    rng = np.random.default_rng([terms, n, seed])
    z = rng.normal(size=(terms, n))
    y = sum(np.sin(z[k])[:, None] * (1 + k % 3 * T) for k in range(0, terms, 2))
    y = y + rng.normal(size=(n, 31)) + rng.normal(size=(n, 1))
    data = {"Y": y, "X": rng.normal(size=(n, 31)).cumsum(axis=1) / 5} | {f"z{k}": z[k] for k in range(terms)}
    return regression(formula or "Y ~ " + " + ".join(f"s(z{k})" for k in range(terms)), data)


FITS = {
    "surface 60, 4": lambda: surface(60, 4),
    "surface 120, 7": lambda: surface(120, 7),
    "surface 60, 3": lambda: surface(60, 3),
    "weather": weather,
    "two terms": lambda: numbers(2, 30, 1),
    "three terms": lambda: numbers(3, 60, 1),
    "ff and a number": lambda: numbers(1, 60, 2, "Y ~ ff(X, k=(8, 8)) + s(z0)"),
}


def above_the_lowest(fit, monkeypatch):
    """By how much the criterion of each response is above the lowest end of searches from random points."""
    caught, right = [], PenalizedLeastSquares.optimize

    def optimize(self, *args):
        caught.append((self, right(self, *args)))
        return caught[-1][1]

    monkeypatch.setattr(PenalizedLeastSquares, "optimize", optimize)
    model = fit()
    problem, found = caught[-1]
    criteria, count = problem._criteria, len(found)
    if isinstance(model, FunctionalRegression):
        assert model.criterion_ == pytest.approx(found[0].reml, abs=1e-6)
    starts = problem._centre + np.random.default_rng(0).uniform(-RANGE, RANGE, (POINTS, len(problem._centre)))
    bounds = problem._centre - LOG_RANGE, problem._centre + LOG_RANGE
    which = np.repeat(np.arange(count), POINTS)
    ends, _ = newton(criteria.reml, np.tile(starts, (count, 1)), which, bounds, 1e-9 * criteria.dof)
    lowest = ends.reshape(count, POINTS).min(axis=1)
    return np.array(
        [one.reml - end - problem._reml_of_unit(k) for k, (one, end) in enumerate(zip(found, lowest, strict=True))]
    )


@pytest.mark.parametrize("name", FITS)
def test_no_random_start_leads_lower(name, monkeypatch):
    assert above_the_lowest(FITS[name](), monkeypatch).max() < ABOVE


@pytest.mark.parametrize("name", [name for name in FITS if name != "weather"])
def test_a_search_from_one_start_would_be_found_out(name, monkeypatch):
    """These fits have several minima: from the middle alone the search ends in a higher one."""
    monkeypatch.setattr(penalized_least_squares, "starts_of", lambda _, k, centre, *rest, **how: [[centre]] * k)
    monkeypatch.setattr(penalized_least_squares, "with_jumps", lambda _, beyond, found, *rest, **how: found)
    assert above_the_lowest(FITS[name](), monkeypatch).max() > 10 * ABOVE
