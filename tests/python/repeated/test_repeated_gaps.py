"""Rows with gaps: the dense normal law and its gradients, sums without gaps, curves that were partly seen."""

from __future__ import annotations

import numpy as np
import pytest
from repeated_tools import curves_of_persons, draw

from fdadp.errors import InputError
from fdadp.repeated.gaps import gap_covariances, gap_fit, gap_rows
from fdadp.repeated.levels import deviance, gls
from fdadp.repeated.person_sums import PersonPass, smooth_functions
from fdadp.repeated.search import level_covariances

T, NOISE = 9, 0.6


def partly_seen(seed: int, rank: int, share: float):
    rng = np.random.default_rng(seed)
    law, _ = draw(rng, rank=rank)
    phi = np.linalg.qr(rng.normal(size=(T, 3)))[0]
    Y = rng.normal(size=(len(law.who), T))
    Y[rng.uniform(size=Y.shape) < share] = np.nan
    Y[np.isnan(Y).all(axis=1), 0] = 1.0
    Y[: len(Y) // 3] = np.nan_to_num(Y[: len(Y) // 3], nan=0.3)  # complete rows among them
    return law, phi, Y


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("share", [0.0, 0.4])
def test_value_gradients_and_effects_are_those_of_the_dense_law(rank, share):
    law, phi, Y = partly_seen(rank, rank, share)
    K = law.R
    found = gap_fit(gap_rows(phi, law.X, Y, law.who), law.G, K, NOISE)
    seen = np.isfinite(Y).ravel()
    same, N = np.equal.outer(law.who, law.who), len(law.who)
    P = np.kron(np.eye(N), phi)[seen]
    V = P @ (np.kron(same, law.G) + np.kron(np.eye(N), K)) @ P.T + NOISE * np.eye(seen.sum())
    F, y, W = P @ np.kron(law.X, np.eye(3)), Y.ravel()[seen], np.linalg.inv(V)
    gram = F.T @ W @ F
    beta = np.linalg.solve(gram, F.T @ W @ y)
    r = y - F @ beta
    want = np.linalg.slogdet(V)[1] + r @ W @ r + np.linalg.slogdet(gram)[1]
    assert found.deviance == pytest.approx(want, rel=1e-11)
    np.testing.assert_allclose(found.fixed.ravel(), beta, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(found.covariance, np.linalg.inv(gram), rtol=1e-8, atol=1e-11)
    left = W - W @ F @ np.linalg.solve(gram, F.T @ W) - np.outer(W @ r, W @ r)
    blocks = (P.T @ left @ P).reshape(N, 3, N, 3)
    want_g, want_k = np.einsum("nm,nimj->ij", same, blocks), np.einsum("ninj->ij", blocks)
    np.testing.assert_allclose(found.d_g, want_g, atol=1e-10 * np.abs(want_g).max())
    np.testing.assert_allclose(found.d_k, want_k, atol=1e-10 * np.abs(want_k).max())
    assert found.d_noise == pytest.approx(np.trace(left), rel=1e-9)
    Z = P @ np.kron(np.equal.outer(law.who, np.unique(law.who)), np.eye(3))
    b = np.kron(np.eye(len(np.unique(law.who))), law.G) @ Z.T @ W @ r
    np.testing.assert_allclose(found.effects.ravel(), b, atol=1e-10 * np.abs(b).max())


def test_without_gaps_it_is_the_fit_from_sums():
    c = curves_of_persons(0, 40, T=40)
    phi = smooth_functions(c.t, 5)[0]
    X = np.column_stack((np.ones(len(c.X)), c.X))
    sums = PersonPass(phi, 3, intercept=False).add(X, c.Y, c.who).sums()
    at = level_covariances(sums)
    found = gap_fit(gap_rows(phi, X, c.Y, c.who), at.G, at.R - at.noise_variance * np.eye(5), at.noise_variance)
    outside = sums.n_rows * 35 * np.log(at.noise_variance) + sums.energy / at.noise_variance
    assert found.deviance == pytest.approx(deviance(sums, at.G, at.R) + outside, rel=1e-9)
    np.testing.assert_allclose(found.fixed, gls(sums, at.G, at.R)[0], rtol=1e-6, atol=1e-8)
    again, _ = gap_covariances(phi, X, c.Y, c.who, c.t)
    assert again.noise_variance == pytest.approx(at.noise_variance, rel=0.02)
    np.testing.assert_allclose(again.G, at.G, atol=0.03 * np.abs(at.G).max())


@pytest.mark.parametrize("kind", ["blocks", "random"])
def test_gaps_leave_both_levels_to_be_found(kind):
    c = curves_of_persons(1, 80, T=40)
    rng = np.random.default_rng(0)
    if kind == "blocks":
        off = (np.arange(40) - rng.integers(0, 40, len(c.Y))[:, None]) % 40 < 12
        off[::2] = False
    else:
        off = rng.uniform(size=c.Y.shape) < 0.6
    phi = smooth_functions(c.t, 6)[0]
    X = np.column_stack((np.ones(len(c.X)), c.X))
    levels, fit = gap_covariances(phi, X, np.where(off, np.nan, c.Y), c.who, c.t)
    whole = level_covariances(PersonPass(phi, 3, intercept=False).add(X, c.Y, c.who).sums())
    assert levels.noise_variance == pytest.approx(0.25, rel=0.12)
    assert np.trace(levels.G) == pytest.approx(np.trace(whole.G), rel=0.15)
    assert np.abs(fit.d_g @ levels.G).max() < 0.05 * len(c.Y)
    b = fit.effects @ phi.T
    assert np.corrcoef(b.ravel(), c.b.ravel())[0, 1] > 0.85


def test_a_row_without_a_value_is_refused():
    with pytest.raises(InputError, match="got none in row 1"):
        gap_rows(np.eye(3), np.ones((2, 1)), np.array([[1, 2, 3], [np.nan] * 3]), np.array([0, 0]))
