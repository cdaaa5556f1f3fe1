"""Smoothing parameters of one and of several terms: no worse than grids, local searches and many random starts."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from scipy.optimize import minimize

from fdadp.functional.quadrature import quadrature_weights
from fdadp.solve.smoothing import penalized_least_squares
from fdadp.solve.smoothing.normal_equations import NormalEquations
from fdadp.solve.smoothing.penalized_least_squares import LOG_RANGE, PenalizedLeastSquares
from fdadp.solve.smoothing.smoothing_search import term_grids
from fdadp.terms._feature_rows import FeatureMap
from r_bridge.mgcv_tensor_products import TensorProduct, te_margin


def additive(seed, n_terms, n=80, basis=6):
    """Gram, cross product, total, n and penalties of Y on `n_terms` curves, each with a term of two penalties."""
    rng = np.random.default_rng(seed)
    grid = np.linspace(0, 1, 25)
    blocks, penalties, signal = [], [], np.zeros(n)
    for _ in range(n_terms):
        root = np.linalg.cholesky(
            np.exp(-(np.abs(grid[:, None] - grid) ** 2) / rng.uniform(0.02, 1)) + 1e-8 * np.eye(25)
        )
        x = rng.normal(size=(n, 25)) @ root.T + rng.normal(size=(n, 1)) * rng.choice([0, 1])
        margins = (
            te_margin(x.min(), x.max(), basis),
            te_margin(0, 1, basis),
        )
        features = FeatureMap(margins[0].basis, margins[1].basis, grid, quadrature_weights(grid))
        norm = features.row_norm(margins[0].to_basis, margins[1].to_basis)(x)
        term = TensorProduct(*margins, norm)
        blocks.append(features.rows(x) @ term.raw_rotation)
        penalties.append(term.penalties)
        f = [0 * x, x * np.cos(3 * grid), np.sin(2 * x) * grid, x**2 - x][rng.integers(4)]
        signal += f @ quadrature_weights(grid)
    z = np.hstack(blocks)
    y = signal + rng.normal(size=n) * (signal.std() + 0.01) * np.exp(rng.uniform(-3, 1))
    z, y = z - z.mean(axis=0), y - y.mean()
    return z.T @ z, z.T @ y, y @ y, n, penalties


def not_above(score, other):
    assert score <= other + 1e-6 * (1 + abs(other))


def local_search(problem, start):
    low, high = problem._centre - LOG_RANGE, problem._centre + LOG_RANGE
    found = minimize(
        lambda x: problem.reml(x)[:2], start, jac=True, method="L-BFGS-B", bounds=list(zip(low, high, strict=True))
    )
    return float(found.fun)


def full_grid(problem):
    """All 5^M points about the centre, 5 apart."""
    steps = np.array(list(itertools.product(np.arange(-2, 3) * 5.0, repeat=len(problem.penalties))))
    return problem._centre + steps


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(s, marks=pytest.mark.long) for s in range(12, 150))])
def test_one_term_is_no_worse_than_the_full_grid_with_a_local_search(seed):
    problem = PenalizedLeastSquares(*additive(seed, 1))
    (best,) = problem.optimize()
    grid = full_grid(problem)
    values = np.array([problem.reml(point)[0] for point in grid])
    not_above(best.reml, values.min())
    first = values.argmin()
    apart = np.abs(grid - grid[first]).max(axis=1) > 7.5
    second = np.flatnonzero(apart)[values[apart].argmin()]
    for start in (first, second):
        not_above(best.reml, local_search(problem, grid[start]))


@pytest.mark.parametrize("n_terms", [2, 3])
@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(s, marks=pytest.mark.long) for s in range(3, 40))])
def test_several_terms_are_no_worse_than_many_starts(n_terms, seed):
    problem = PenalizedLeastSquares(*additive(seed, n_terms, n=100, basis=5))
    (best,) = problem.optimize()
    rng = np.random.default_rng(seed)
    starts = rng.choice(full_grid(problem), 12, replace=False)
    for start in starts:
        not_above(best.reml, problem.reml(start)[0])
        not_above(best.reml, local_search(problem, start))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_two_terms_are_no_worse_than_the_full_grid_with_local_searches(seed):
    problem = PenalizedLeastSquares(*additive(seed, 2, basis=5))
    (best,) = problem.optimize()
    grid = full_grid(problem)
    values = np.array([problem.reml(point)[0] for point in grid])
    not_above(best.reml, values.min())
    for index in values.argsort()[:20]:
        not_above(best.reml, local_search(problem, grid[index]))


def test_of_several_local_minima_the_lowest_is_taken():
    several = 0
    for seed in range(40):
        problem = PenalizedLeastSquares(*additive(seed, 1, n=30, basis=5))
        ends = sorted(local_search(problem, point) for point in full_grid(problem)[[0, 4, 12, 20, 24]])
        several += ends[-1] > ends[0] + 1e-3
        not_above(problem.optimize()[0].reml, ends[0])
    assert several > 10  # else this shows nothing


def test_many_coordinates_reach_the_optimum_of_the_whole_search_with_fewer_steps(monkeypatch):
    """Their search starts at minima on the smoothest coordinates: the same optimum, or one that is hardly worse."""
    sizes, above = [], []
    triangles, few = NormalEquations._factors, penalized_least_squares.SMOOTHEST
    monkeypatch.setattr(
        NormalEquations, "_factors", lambda self, s: sizes.extend([s.shape[1]] * len(s)) or triangles(self, s)
    )
    for seed in range(12):
        problem, found = PenalizedLeastSquares(*additive(seed, 1, n=200, basis=12)), []
        for smoothest in (few, 1000):
            monkeypatch.setattr(penalized_least_squares, "SMOOTHEST", smoothest)
            sizes.clear()
            found.append((problem.optimize()[0].reml, sizes.count(132)))
        (reml, steps), (of_all, steps_of_all) = found
        above.append(reml - of_all)
        assert steps < 0.6 * steps_of_all
    assert np.median(np.abs(above)) < 1e-6
    assert max(above) < 0.1


def test_terms_stand_one_after_another():
    gram, cross, total, n, penalties = additive(0, 2)
    p = penalties[0].shape[1]
    whole = np.zeros((4, 2 * p))
    whole[:2, :p], whole[2:, p:] = penalties
    together = PenalizedLeastSquares(gram, cross, total, n, penalties)
    np.testing.assert_array_equal(together.penalties, whole)
    sp = np.array([0.1, 2.0, 30.0, 0.4])
    at, same = together.solve(sp), PenalizedLeastSquares(gram, cross, total, n, whole).solve(sp)
    np.testing.assert_array_equal(at.coefficients, same.coefficients)
    assert at.reml == same.reml


@pytest.mark.parametrize("n_terms", [1, 2, 3])
def test_the_optimum_is_stationary(n_terms):
    problem = PenalizedLeastSquares(*additive(3, n_terms, n=200))
    log_sp = np.log(problem.optimize()[0].smoothing_parameters)
    gradient = problem.reml(log_sp)[1]
    inside = np.abs(log_sp - problem._centre) < LOG_RANGE
    assert inside.any()
    np.testing.assert_allclose(gradient[inside], 0, atol=1e-6)


@pytest.mark.parametrize("sizes", [[], [0], [1], [2], [3], [2, 0, 1], [1] * 12, [2] * 6])
def test_any_number_of_penalties(sizes):
    """Terms of 0 to 3 penalties, with a coordinate that none of them touches."""
    rng = np.random.default_rng(len(sizes))
    z = rng.normal(size=(200, 4 * len(sizes) + 1))
    z -= z.mean(axis=0)
    y = z @ rng.normal(size=z.shape[1]) + rng.normal(size=200)
    penalties = [np.hstack((np.zeros((m, 1)), np.exp(rng.normal(size=(m, 3))))) for m in sizes] + [np.zeros((0, 1))]
    y -= y.mean()
    problem = PenalizedLeastSquares(z.T @ z, z.T @ y, y @ y, 200, penalties)
    for criterion in ("reml", "gcv"):
        (best,) = problem.optimize(criterion)
        assert best.smoothing_parameters.shape == (sum(sizes),)
        if criterion == "reml":
            for _ in range(20):
                not_above(best.reml, problem.solve(np.exp(problem._centre + rng.uniform(-9, 9, sum(sizes)))).reml)
    if not sum(sizes):
        np.testing.assert_allclose(best.coefficients, np.linalg.lstsq(z, y, rcond=None)[0], rtol=1e-9)
        assert best.edf_total == pytest.approx(1 + z.shape[1], abs=1e-9)


def test_derivatives_of_five_penalties():
    gram, cross, total, n, penalties = additive(1, 2)
    one = np.linspace(0, 1, gram.shape[0] - penalties[0].shape[1])[None]
    problem = PenalizedLeastSquares(gram, cross, total, n, [penalties[0], np.vstack((penalties[1], one))])
    at, h = problem._centre + np.random.default_rng(0).normal(size=5), 1e-4
    for score in (problem.reml, problem.gcv):
        value, gradient, hessian = score(at)
        sides = [[score(at + sign * h * e) for sign in (1, -1)] for e in np.eye(5)]
        numeric = [(up[0] - down[0]) / (2 * h) for up, down in sides]
        np.testing.assert_allclose(gradient, numeric, atol=1e-6 * (1 + abs(value)))
        numeric = [(up[1] - down[1]) / (2 * h) for up, down in sides]
        np.testing.assert_allclose(hessian, numeric, atol=1e-6 * (1 + abs(value)))


def test_grids_grow_with_the_number_of_terms():
    assert [len(grid) for grid in term_grids([2, 1, 3, 0])] == [25, 7, 75]
    assert sum(len(grid) for grid in term_grids([2] * 6)) == 150
    for grid in term_grids([2, 2]):
        assert np.abs(grid[0]).sum() == 0
        assert (np.abs(grid[:, :2]).sum() == 0) != (np.abs(grid[:, 2:]).sum() == 0)


def test_twelve_penalties_take_no_grid_of_all():
    """5^12 points would take a day; this takes about half a second."""
    problem = PenalizedLeastSquares(*additive(0, 6, n=300, basis=6))
    start = time.process_time()
    problem.optimize()
    assert time.process_time() - start < 30
