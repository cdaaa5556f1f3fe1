"""REML's search over the walls between its minima."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from fdadp.solve.smoothing import penalized_least_squares
from fdadp.solve.smoothing.smoothing_search import _jumps, minima, with_jumps

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"
BOUNDS = np.full(3, -25.0), np.full(3, 25.0)
TILT = np.array([-0.3, 0.3, 0.0])


def two_wells(points, of):
    """``(u² - 16)²/64 + tilt u + v² + w²/4``: wells at u = ±4, of which the tilt makes one the lower."""
    u = points[:, 0]
    value = (u**2 - 16) ** 2 / 64 + TILT[of] * u + points[:, 1] ** 2 + points[:, 2] ** 2 / 4
    gradient = np.stack((u * (u**2 - 16) / 16 + TILT[of], 2 * points[:, 1], points[:, 2] / 2), axis=1)
    hessian = np.zeros((len(u), 3, 3))
    hessian[:, 0, 0], hessian[:, 1, 1], hessian[:, 2, 2] = (3 * u**2 - 16) / 16, 2, 0.5
    return value, gradient, hessian


def beyond(point, k, bounds):
    points = np.vstack((point, _jumps(point, bounds)))
    return points, two_wells(points, np.full(len(points), k))[0]


def test_jumps_lead_to_the_lower_of_two_wells():
    found = minima(two_wells, [[np.array([-5.0, 1, 1])]] * 3, BOUNDS, 1e-9)
    assert all(ends[0][0] < -3 for ends in found)
    after = with_jumps(two_wells, beyond, found, BOUNDS, 1e-9)
    assert after[0][0][0] > 3  # the right well is the lower one of the first function
    assert len(after[0]) == 2
    np.testing.assert_array_equal(after[0][1], found[0][0])
    for k in (1, 2):  # not lower, or as low
        assert after[k] is found[k]
    np.testing.assert_allclose(two_wells(after[0][0][None], np.zeros(1, int))[1], 0, atol=1e-6)


def test_jumps_stay_within_bounds():
    narrow = np.array([-5.0, -1, -1]), np.array([2.0, 1, 1])
    found = minima(two_wells, [[np.array([-5.0, 1, 1])]], narrow, 1e-9)
    (ends,) = with_jumps(two_wells, beyond, found, narrow, 1e-9)
    assert ends is found[0]


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.delitem(sys.modules, "jumps", raising=False)
    import jumps

    return jumps


def test_jumps_find_a_lower_score(script):
    """A model whose starts all lead to a higher minimum."""
    one = script.problem(script.MODELS["ff, 8 x 8, re, x"], 39)
    without, with_them = (script.optimum(jumps)(one) for jumps in (False, True))
    assert with_them < without - 0.1
    assert with_them <= script.from_random_points(one) + 1e-6 * (1 + abs(with_them))


def test_many_coordinates_are_jumped_on_the_smoothest_ones(script, monkeypatch):
    """245 coefficients, of which the search is rehearsed on 144: it ends no higher than from many starts.

    Of all coefficients a lower minimum beside the end is looked for at once.
    """
    one, sizes = script.problem([script.terms.ff("X", k=(15, 15))], 0), []
    right = penalized_least_squares.with_jumps
    monkeypatch.setattr(
        penalized_least_squares,
        "with_jumps",
        lambda score, *rest, **how: sizes.append(len(score.__self__.normal.gram)) or right(score, *rest, **how),
    )
    (best,) = one.optimize()
    assert sizes == [144, 245]
    other = script.from_random_points(one)
    assert best.reml <= other + 1e-6 * (1 + abs(other))


@pytest.mark.long
def test_script_of_the_decision_runs(script, capsys):
    found = script.main(["--problems", "2"])
    assert len(found) == 3 * len(script.MODELS)
    assert "and jumps" in capsys.readouterr().out


@pytest.mark.parametrize("alike", [0.0, 0.9, 1.0])
def test_points_that_move_one_term_have_the_values_of_the_whole(alike):
    """Terms that share much, or all, of what they explain; light and heavy penalties; two terms moved too."""
    rng = np.random.default_rng(3)
    features = rng.normal(size=(300, 4, 6))
    features[:, 1] = alike * features[:, 0] + (1 - alike) * features[:, 1]
    features, y = features.reshape(300, 24), rng.normal(size=(300, 2))
    penalties = [np.stack([np.arange(6.0), np.arange(6.0)[::-1]]) for _ in range(4)]
    fit = penalized_least_squares.PenalizedLeastSquares(
        features.T @ features, features.T @ y, (y * y).sum(axis=0), 300, penalties, intercept=False
    )
    of, centre = fit._criteria, fit._centre
    for shift in (-12.0, 0.0, 12.0):
        about = centre + shift * (np.arange(8) % 3 == 0)
        moves = np.concatenate([np.kron(np.eye(8), [[-5.0], [5.0]]), np.zeros((1, 8)), np.ones((2, 8))])
        points = about + moves
        np.testing.assert_allclose(of.reml_values(points, about), of.reml_values(points), rtol=1e-9)


def test_penalties_that_are_on_nothing_print_nothing(capfd):
    """A penalty of zeros, as of values that no row has, moves no coordinate: LAPACK complained of a matrix of none."""
    rng = np.random.default_rng(4)
    features, y = rng.normal(size=(60, 6)), rng.normal(size=(60, 1))
    penalties = [np.stack([np.arange(3.0), np.zeros(3)]), np.ones((1, 3))]
    fit = penalized_least_squares.PenalizedLeastSquares(
        features.T @ features, features.T @ y, (y * y).sum(axis=0), 60, penalties, intercept=False
    )
    of, about = fit._criteria, np.zeros(3)
    points = about + np.linspace(-2.0, 2.0, 5)[:, None] * [0.0, 1.0, 0.0]
    np.testing.assert_allclose(of.reml_values(points, about), of.reml_values(about[None]).repeat(5, axis=0), rtol=1e-12)
    assert capfd.readouterr() == ("", "")
