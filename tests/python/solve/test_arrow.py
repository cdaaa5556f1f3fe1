"""Blocks that share nothing but a border: the same solutions as without them, in a part of the time."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp.solve.smoothing.normal_equations import NormalEquations, in_blocks, worth
from fdadp.solve.smoothing.penalized_least_squares import PenalizedLeastSquares
from fdadp.solve.smoothing.smoothing_search import apart


def by_level(levels, size, shared, n=600, seed=0):
    """Features of a level each, of all, shuffled; a response; and penalties: two a level, one of what is shared."""
    rng = np.random.default_rng(seed)
    level = rng.integers(0, levels, n)
    own = rng.normal(size=(n, size))
    z = np.hstack([own * (level == which)[:, None] for which in range(levels)] + [rng.normal(size=(n, shared))])
    y = np.sin(own[:, 0] * (1 + level)) + z[:, -1] + rng.normal(size=n)
    shape = np.exp(rng.normal(size=(2, size)))
    penalties = np.hstack((np.kron(np.eye(levels), shape), np.zeros((2 * levels, shared))))
    last = np.concatenate((np.zeros(levels * size), np.arange(shared)))
    order = rng.permutation(z.shape[1])
    return z[:, order], y, np.vstack((penalties, last))[:, order], order


def test_blocks_are_found_whatever_the_order():
    z, _, _, order = by_level(10, 30, 6)
    found, blocks = in_blocks(z.T @ z)
    assert sorted(found) == list(range(306))
    assert {int(p) for p in order[found][blocks[-1].stop :]} == set(range(300, 306))
    assert [len(set(order[found][own] // 30)) for own in blocks] == [1] * 10


@pytest.mark.parametrize("shared", [0, 1])
def test_without_a_border_one_coordinate_stands_for_it(shared):
    z = by_level(10, 30, shared)[0]
    _, blocks = in_blocks(z.T @ z)
    assert blocks[-1].stop == len(z.T) - 1


def test_halves_that_share_nothing_are_two_blocks_and_solved_as_such():
    rng = np.random.default_rng(2)
    half = np.arange(300) % 5 < 3
    z = rng.normal(size=(900, 300)) * (half == (np.arange(900) % 2 == 0)[:, None])
    gram, cross = z.T @ z, z.T @ rng.normal(size=(900, 2))
    order, blocks = in_blocks(gram)
    assert [len(set(half[order[own]])) for own in blocks] == [1, 1]
    gram, cross = gram[np.ix_(order, order)], cross[order]
    plain, quick = NormalEquations(gram, cross), NormalEquations(gram, cross, blocks=blocks)
    heavy = rng.uniform(size=300)
    for expected, found in zip(*(of.inverses(heavy[None], np.array([1])) for of in (plain, quick)), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-10)
    assert [len(set(half[order[own]])) for own, _ in quick.parts] == [1, 1]
    assert plain.parts == [(slice(None), plain)]
    whole, which = plain.inverses(heavy[None], np.array([1])), np.array([1])
    for own, part in quick.parts:
        beta, _, _, inverse = part.inverses(heavy[None, own], which)
        np.testing.assert_allclose(beta, whole[0][:, own], atol=1e-10)
        np.testing.assert_allclose(inverse, whole[3][:, own, own], atol=1e-10)
    own = np.arange(40, 90)
    for of in (plain, quick):
        left, explained, log_det = of.of_some(own, heavy)
        rest, log_rest = left.explained(heavy[None, own])
        whole, log_whole = plain.explained(heavy[None])
        np.testing.assert_allclose(rest + explained, whole, rtol=1e-10)
        np.testing.assert_allclose(log_rest + log_det, log_whole, rtol=1e-10)


def test_dense_and_small_matrices_have_no_blocks():
    rng = np.random.default_rng(0)
    assert in_blocks(rng.normal(size=(200, 200)))[1] == ()
    order, blocks = in_blocks(np.eye(60))
    assert blocks == ()
    np.testing.assert_array_equal(order, np.arange(60))
    assert not worth((), 500)


def test_solutions_are_those_without_blocks():
    z, y, penalties, _ = by_level(10, 30, 6)
    order, blocks = in_blocks(z.T @ z)
    gram, cross = (z.T @ z)[np.ix_(order, order)], (z.T @ np.column_stack((y, y**2)))[order]
    plain, quick = NormalEquations(gram, cross), NormalEquations(gram, cross, blocks=blocks)
    heavy = np.exp(np.random.default_rng(1).uniform(-9, 9, (4, len(penalties)))) @ penalties[:, order]
    heavy += 1e-6
    for expected, found in zip(plain.explained(heavy), quick.explained(heavy), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10)
    which = np.array([0, 1, 0, 1])
    (_, _, expected_log, expected), (beta, explained, log_det, inverse) = (
        of.inverses(heavy, which) for of in (plain, quick)
    )
    roots, halves, _ = quick.roots(heavy, which)
    np.testing.assert_allclose(inverse, expected, atol=1e-10 * np.abs(expected).max())
    np.testing.assert_allclose(log_det, expected_log, rtol=1e-10)
    np.testing.assert_allclose(roots.swapaxes(1, 2) @ roots, inverse, atol=1e-10 * np.abs(expected).max())
    solved = np.linalg.solve(gram + np.diag(heavy[1]), cross[:, 1])
    np.testing.assert_allclose(halves[1] @ roots[1], solved, atol=1e-8 * np.abs(solved).max())
    np.testing.assert_allclose(beta[1], solved, atol=1e-8 * np.abs(solved).max())
    np.testing.assert_allclose(explained[1], cross[:, 1] @ solved, rtol=1e-8)


def test_what_blocks_cannot_tell_is_solved_without_them():
    """Coordinates of one level that are nearly the same: their factor has lost too many digits."""
    z, y, penalties, _ = by_level(10, 30, 6)
    first = np.flatnonzero(penalties[0] > 0)
    z[:, first[1]] = z[:, first[0]] * (1 + 1e-7)
    problem = PenalizedLeastSquares(z.T @ z, z.T @ y, y @ y, len(z), penalties, intercept=False)
    sp = np.full(len(penalties), 1e-9)
    assert not problem.firm(sp)
    stacked = np.vstack((z, np.sqrt(np.diag(sp @ penalties))))
    expected = np.linalg.lstsq(stacked, np.concatenate((y, np.zeros(z.shape[1]))), rcond=None)[0]
    np.testing.assert_allclose(z @ problem.solve(sp).coefficients, z @ expected, atol=1e-5)


def test_the_search_finds_what_it_finds_without_blocks(monkeypatch):
    z, y, penalties, _ = by_level(8, 36, 4)
    found = []
    for blocks in (True, False):
        if not blocks:
            monkeypatch.setattr("fdadp.solve.smoothing.normal_equations.worth", lambda blocks, p: False)
        problem = PenalizedLeastSquares(z.T @ z, z.T @ y, y @ y, len(z), [penalties], intercept=False)
        assert bool(problem._criteria.normal.blocks) == blocks
        found.append(problem.optimize()[0])
    assert found[0].reml == pytest.approx(found[1].reml, abs=1e-6)
    np.testing.assert_allclose(z @ found[0].coefficients, z @ found[1].coefficients, atol=1e-4)


def test_penalties_of_parts_of_a_term_are_told_apart():
    _, _, penalties, _ = by_level(10, 30, 6)
    assert apart(penalties, [20, 1]) == [2] * 10 + [1]
    assert apart(np.ones((3, 4)), [3]) == [3]
    assert apart(np.eye(3), [1, 2, 0]) == [1, 1, 1, 0]
    assert apart(np.array([[1, 1, 0], [0, 0, 1], [0, 1, 0]]), [3]) == [3]
    assert apart(np.zeros((0, 4)), [0, 0]) == [0, 0]
