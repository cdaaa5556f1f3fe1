"""Random slopes of persons: the dense normal law, gradients, the model without slopes, lmer."""

from __future__ import annotations

import numpy as np
import pytest
from repeated_tools import draw

from fdadp.errors import InputError
from fdadp.repeated.levels import deviance
from fdadp.repeated.person_sums import PersonPass
from fdadp.repeated.search import LevelCovariances, level_covariances
from fdadp.repeated.slopes import slope_covariances, slope_deviance_and_gradient, slope_effects, slope_sums


def persons(seed: int, rank: int = 6, intercept: bool = True):
    """A law of q = 2, k = 3 with two features, and its covariance written out."""
    rng = np.random.default_rng(seed)
    law, C = draw(rng, rank=3)
    a = rng.normal(size=(6, rank))
    G = a @ a.T
    one = PersonPass(np.eye(3), 2 if intercept else 3, intercept=intercept, cross=True)
    sums = one.add(law.X[:, 1:] if intercept else law.X, C, law.who).sums()
    Z = law.X[:, [0, 2]]
    N = len(law.who)
    rows = np.kron(Z, np.eye(3)).reshape(N, 3, 6)
    V = np.einsum("nis,st,mjt->nimj", rows, G, rows) * np.equal.outer(law.who, law.who)[:, None, :, None]
    V = V.reshape(3 * N, 3 * N) + np.kron(np.eye(N), law.R)
    return law, C, G, slope_sums(sums, (0, 2)), V, rows


@pytest.mark.parametrize("rank", [2, 6])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("restricted", [True, False])
def test_value_and_gradients_are_those_of_the_dense_law(rank, intercept, restricted):
    law, C, G, s, V, rows = persons(rank, rank, intercept)
    value, d_g, d_r = slope_deviance_and_gradient(s, G, law.R, restricted=restricted)
    F = np.kron(law.X - s.sums.shift_x, np.eye(3))
    y, W = (C - s.sums.shift_y).ravel(), np.linalg.inv(V)
    gram = F.T @ W @ F
    beta = np.linalg.solve(gram, F.T @ W @ y)
    r = y - F @ beta
    want = np.linalg.slogdet(V)[1] + r @ W @ r + (np.linalg.slogdet(gram)[1] if restricted else 0)
    assert value == pytest.approx(want, rel=1e-11)
    left = W - np.outer(W @ r, W @ r)
    if restricted:
        left -= W @ F @ np.linalg.solve(gram, F.T @ W)
    N = len(law.who)
    blocks = left.reshape(N, 3, N, 3)
    want_r = np.einsum("ninj->ij", blocks)
    same = np.equal.outer(law.who, law.who)
    want_g = np.einsum("nis,nm,nimj,mjt->st", rows, same, blocks, rows, optimize=True)
    np.testing.assert_allclose(d_g, want_g, atol=1e-10 * np.abs(want_g).max())
    np.testing.assert_allclose(d_r, want_r, atol=1e-10 * np.abs(want_r).max())
    found = slope_effects(s, LevelCovariances(G, law.R, 0.0, 0.0))
    np.testing.assert_allclose(found.fixed.ravel(), beta, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(found.covariance, np.linalg.inv(gram), rtol=1e-8, atol=1e-11)
    for i, person in enumerate(s.sums.ids):
        own = law.who == person
        stacked = rows[own].reshape(-1, 6)
        at = np.repeat(own, 3)
        b = G @ stacked.T @ np.linalg.solve(V[np.ix_(at, at)], r[at])
        np.testing.assert_allclose(found.effects[i].ravel(), b, atol=1e-9 * max(np.abs(b).max(), 1))


def test_only_the_constant_is_the_model_of_two_levels():
    law, C = draw(np.random.default_rng(8))
    sums = PersonPass(np.eye(3), 2, cross=True).add(law.X[:, 1:], C, law.who).sums()
    s = slope_sums(sums, (0,))
    assert slope_deviance_and_gradient(s, law.G, law.R)[0] == pytest.approx(deviance(sums, law.G, law.R), rel=1e-12)
    assert len(s.designs) == len(sums.sizes)


def test_reml_finds_slopes_and_repeated_designs_are_counted_once():
    rng, people, k = np.random.default_rng(1), 150, 2
    who = np.repeat(np.arange(people), 6)
    week = np.tile(np.arange(6) / 5, people)
    L = np.linalg.cholesky(np.array([[1, 0, 0.4, 0], [0, 0.5, 0, 0.2], [0.4, 0, 0.8, 0], [0, 0.2, 0, 0.4]]))
    b = rng.normal(size=(people, 4)) @ L.T
    C = np.outer(week, [1, -1]) + b[who, :2] + week[:, None] * b[who, 2:] + 0.5 * rng.normal(size=(who.size, k))
    sums = PersonPass(np.eye(k), 1, cross=True).add(week[:, None], C, who).sums()
    s = slope_sums(sums, (0, 1))
    assert len(s.designs) == 1
    found = slope_covariances(s)
    _, d_g, d_r = slope_deviance_and_gradient(s, found.G, found.R)
    assert np.abs(d_g @ found.G).max() < 1e-2 and np.abs(d_r @ found.R).max() < 1e-2
    np.testing.assert_allclose(found.G, L @ L.T, atol=0.35)
    np.testing.assert_allclose(found.R, 0.25 * np.eye(k), atol=0.05)
    assert found.deviance < level_covariances(sums).deviance - 50
    effects = slope_effects(s, found).effects[sums.ids.get_indexer(np.arange(people))]
    assert np.corrcoef(effects[:, 1, 0], b[:, 2])[0, 1] > 0.7


def test_what_slopes_need_is_said():
    law, C = draw(np.random.default_rng(2))
    with pytest.raises(InputError, match="cross=True"):
        slope_sums(PersonPass(np.eye(3), 2).add(law.X[:, 1:], C, law.who).sums(), (0, 1))
    rng, who = np.random.default_rng(0), np.repeat(np.arange(9), 2)
    two = PersonPass(np.eye(3), 1, cross=True).add(rng.normal(size=(18, 1)), rng.normal(size=(18, 3)), who).sums()
    with pytest.raises(InputError, match=r"k=3 needs at least 3 rows beyond those that 2 random functions .* got 0"):
        slope_sums(two, (0, 1))
