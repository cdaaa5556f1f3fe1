"""REML of two levels from sums: equal to the dense normal law, identified where it says so, k by BIC."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from repeated_tools import Dense, curves_of_persons, draw, sums_of

from fdadp.errors import IdentificationWarning, InputError
from fdadp.repeated.person_sums import PersonPass, smooth_functions
from fdadp.repeated.reml_search import choose_functions, level_covariances, moment_covariances, warn_of_rough_rows
from fdadp.repeated.two_level_model import deviance, deviance_and_gradient, gls

# ---- the dense law


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_value_and_gls_are_those_of_the_dense_law(seed, rank):
    law, C = draw(np.random.default_rng(seed), rank=rank)
    s = sums_of(law, C)
    for restricted in (True, False):
        want = law.deviance(C, restricted)
        assert deviance(s, law.G, law.R, restricted=restricted) == pytest.approx(want, rel=1e-12)
    B, V = gls(s, law.G, law.R)
    want_b, want_v = law.fixed(C)
    np.testing.assert_allclose(B, want_b, atol=1e-12 * np.abs(want_b).max())
    np.testing.assert_allclose(V, want_v, atol=1e-12 * np.abs(want_v).max())


@pytest.mark.parametrize("restricted", [True, False])
@pytest.mark.parametrize("rank", [1, 3])
def test_gradients_are_those_of_the_dense_law(rank, restricted):
    law, C = draw(np.random.default_rng(7), rank=rank)
    value, d_g, d_r = deviance_and_gradient(sums_of(law, C), law.G, law.R, restricted=restricted)
    assert value == pytest.approx(law.deviance(C, restricted), rel=1e-12)
    V, F, y = law.V, law.design, C.ravel()
    W = np.linalg.inv(V)
    r = y - F @ np.linalg.solve(F.T @ W @ F, F.T @ W @ y)
    left = W - np.outer(W @ r, W @ r)
    if restricted:
        left -= W @ F @ np.linalg.solve(F.T @ W @ F, F.T @ W)
    k, N = 3, len(law.who)
    blocks = left.reshape(N, k, N, k)
    same = np.equal.outer(law.who, law.who)
    want_g, want_r = np.einsum("nm,nimj->ij", same, blocks), np.einsum("ninj->ij", blocks)
    np.testing.assert_allclose(d_g, want_g, atol=1e-12 * np.abs(want_g).max())
    np.testing.assert_allclose(d_r, want_r, atol=1e-12 * np.abs(want_r).max())


# ---- the search


def test_reml_has_a_gradient_of_zero_and_is_below_truth_and_start():
    c = curves_of_persons(0, 40)
    s = c.sums(8)
    found = level_covariances(s)
    value, d_g, d_r = deviance_and_gradient(s, found.G, found.R)
    assert value == pytest.approx(found.deviance)
    assert np.linalg.eigvalsh(found.G)[0] > -1e-9 and np.abs(d_r @ found.R).max() < 1e-2
    assert np.abs(d_g @ found.G).max() < 1e-2 and np.linalg.eigvalsh(d_g)[0] > -1e-3  # at the edge it points outside
    assert found.deviance <= deviance(s, *moment_covariances(s))
    low = level_covariances(s, rank=2)
    assert np.linalg.matrix_rank(low.G, tol=1e-9) == 2 and low.deviance >= found.deviance


def test_moments_are_reml_in_a_balanced_design():
    rng = np.random.default_rng(1)
    who = np.repeat(np.arange(60), 4)
    x = rng.normal(size=60)[who]
    C = rng.normal(size=(240, 2)) + 2 * rng.normal(size=(60, 2))[who] + np.outer(x, [1, -1])
    s = PersonPass(np.eye(2), 1).add(x[:, None], C, who).sums()
    G, R = moment_covariances(s)
    _, d_g, d_r = deviance_and_gradient(s, G, R)
    assert np.abs(d_g).max() < 1e-9 * 240 and np.abs(d_r).max() < 1e-9 * 240
    found = level_covariances(s)
    np.testing.assert_allclose(found.G, G, atol=1e-5)


def test_scale_and_rotation_and_order():
    c = curves_of_persons(2, 30)
    s = c.sums(5)
    found = level_covariances(s)
    scaled = replace(c, Y=100 * c.Y).sums(5)
    np.testing.assert_allclose(level_covariances(scaled).G, 1e4 * found.G, rtol=1e-4, atol=1e-4 * 1e4)
    U = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]
    turned = level_covariances(s.turned(U))
    assert turned.deviance == pytest.approx(found.deviance, abs=1e-6)
    np.testing.assert_allclose(U @ turned.G @ U.T, found.G, atol=1e-3 * np.abs(found.G).max())
    order = np.random.default_rng(1).permutation(len(c.Y))
    shuffled = replace(c, X=c.X[order], Y=c.Y[order], who=c.who[order]).sums(5)
    assert level_covariances(shuffled).deviance == pytest.approx(found.deviance, abs=1e-6)


def test_all_persons_twice_leave_maximum_likelihood_and_halve_the_covariance():
    c = curves_of_persons(3, 25)
    twice = replace(c, X=np.vstack((c.X, c.X)), Y=np.vstack((c.Y, c.Y)), who=np.concatenate((c.who, c.who + 1000)))
    one, two = c.sums(5), twice.sums(5)
    found = level_covariances(one, restricted=False)
    again = level_covariances(two, restricted=False)
    assert again.deviance == pytest.approx(2 * found.deviance, rel=1e-7)
    np.testing.assert_allclose(gls(two, found.G, found.R)[1], gls(one, found.G, found.R)[1] / 2, rtol=1e-9, atol=1e-14)


def test_a_person_split_in_two_is_another_model():
    """A mutation that must be noticed: it takes away from the covariance of persons."""
    c = curves_of_persons(4, 40, least=4)
    whole = level_covariances(c.sums(5))
    day = np.concatenate([np.arange(m) for m in np.bincount(c.who)])
    split = level_covariances(replace(c, who=2 * c.who + (day % 2)).sums(5))
    assert np.trace(split.G) != pytest.approx(np.trace(whole.G), rel=0.01)
    halves = replace(c, who=2 * c.who + (day % 2)).sums(5)
    se = [np.sqrt(np.diag(gls(sums, whole.G, whole.R)[1])) for sums in (c.sums(5), halves)]
    assert (se[1] / se[0])[:5].max() < 0.9


def test_reml_finds_both_levels_and_more_surely_than_moments_where_rows_are_unequal():
    errors = {"moments": [], "reml": []}
    for seed in range(24):
        c = curves_of_persons(100 + seed, 60, most=15)
        s = c.sums(8)
        t, root = c.t, np.sqrt(2)
        f = np.stack([np.ones(60), root * np.sin(2 * np.pi * t), root * np.cos(2 * np.pi * t)])
        truth_b = s.phi.T @ (f.T * [1, 0.5, 0.25]) @ f @ s.phi
        found = level_covariances(s)
        for name, G in (("moments", moment_covariances(s)[0]), ("reml", found.G)):
            errors[name].append(((G - truth_b) ** 2).sum() / (truth_b**2).sum())
        assert found.noise_variance == pytest.approx(0.25, rel=0.05)
    assert np.mean(errors["reml"]) < np.mean(errors["moments"]) < 0.3


# ---- what identifies R


def few_rows(beyond: int, k: int, seed: int = 0):
    """Persons of one row, and `beyond` of two rows; one feature that varies within persons."""
    rng = np.random.default_rng(seed)
    who = np.concatenate((np.arange(30), np.arange(beyond)))
    C = rng.normal(size=(who.size, k)) + rng.normal(size=(30, k))[who]
    return PersonPass(np.eye(k), 2).add(np.column_stack((rng.normal(size=30)[who], rng.normal(size=who.size))), C, who)


def test_rows_identify_their_covariance_from_k_on():
    k = 5
    with pytest.raises(
        InputError, match=r"k=5 needs at least 6 rows beyond one a person \(k and the 1 feature .* got 5"
    ):
        level_covariances(few_rows(k, k).sums())
    with pytest.warns(IdentificationWarning, match="below 11"):
        found = level_covariances(few_rows(k + 1, k).sums())
    assert np.isfinite(found.deviance) and np.linalg.eigvalsh(found.R)[0] > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        level_covariances(few_rows(2 * k + 1, k).sums())


def test_the_criterion_falls_without_end_below_k_and_has_a_minimum_from_k_on():
    k = 5
    for beyond, bounded in ((k, False), (k + 1, True)):
        s = few_rows(beyond, k).sums()
        vectors = np.linalg.eigh(s.rows_scatter)[1]
        flat = vectors[:, :1] @ vectors[:, :1].T  # the direction that rows vary along least
        G = 50 * np.eye(k)
        fall = [deviance(s, G, np.eye(k) - (1 - 10.0**-e) * flat) for e in (2, 6, 10)]
        assert (fall[2] > fall[1]) == bounded


def test_one_row_a_person_is_refused():
    c = curves_of_persons(5, 20, most=1)
    with pytest.raises(InputError, match=r"all 20 people have one row, .*errors='curve'"):
        level_covariances(replace(c, X=c.X[:, :1]).sums(5))


# ---- how many functions


def test_bic_takes_few_functions_for_smooth_curves_and_finds_the_noise():
    c = curves_of_persons(6, 100, T=90)
    chosen = choose_functions(c.sums(30))
    assert 6 <= chosen.sums.k <= 10 and not chosen.smoothed
    assert level_covariances(chosen.sums).noise_variance == pytest.approx(0.25, rel=0.02)
    assert chosen.whiteness == pytest.approx(1, abs=0.1)
    warn_of_rough_rows(chosen.whiteness, chosen.sums.k)
    assert min(chosen.bic, key=chosen.bic.get) == chosen.sums.k


def test_rough_rows_take_more_functions_and_a_warning():
    rng, T, persons = np.random.default_rng(0), 120, 80
    t = np.linspace(0, 1, T)
    root = np.linalg.cholesky(np.exp(-np.abs(t[:, None] - t) / 0.05) + 1e-10 * np.eye(T))
    who = np.repeat(np.arange(persons), 4)
    Y = rng.normal(size=(persons, 2))[who] @ np.stack((np.ones(T), t)) + rng.normal(size=(who.size, T)) @ root.T
    Y += 0.5 * rng.normal(size=Y.shape)
    s = PersonPass(smooth_functions(t, 40)[0]).add(None, Y, who).sums()
    chosen = choose_functions(s)
    assert chosen.sums.k > 15
    with pytest.warns(IdentificationWarning, match=r"vary \d\.\d\d times"):
        warn_of_rough_rows(chosen.whiteness, chosen.sums.k)


def test_smoothed_curves_keep_the_directions_that_vary():
    c = curves_of_persons(7, 40)
    few = smooth_functions(c.t, 6)[0]
    smoothed = replace(c, Y=c.Y @ few @ few.T)
    with pytest.raises(InputError, match="as smoothed curves do"):
        level_covariances(smoothed.sums(15))
    chosen = choose_functions(smoothed.sums(15))
    assert chosen.smoothed and chosen.sums.k == 6
    found, direct = level_covariances(chosen.sums), level_covariances(smoothed.sums(6))
    assert found.noise_variance == 0
    assert found.deviance == pytest.approx(direct.deviance, abs=1e-4)


def test_a_mean_outside_the_functions_is_no_noise():
    rng = np.random.default_rng(0)
    t, who = np.linspace(0, 1, 60), np.repeat(np.arange(30), 4)
    Y = np.sin(40 * t) + np.outer(rng.normal(size=30)[who], np.sin(30 * t)) * 0 + 0.5 * rng.normal(size=(120, 60))
    Y += rng.normal(size=30)[who][:, None]
    s = PersonPass(smooth_functions(t, 6)[0]).add(None, Y, who).sums()
    assert s.noise_variance() == pytest.approx(0.25, rel=0.03)


def test_no_effect_of_persons_is_least_squares():
    law, C = draw(np.random.default_rng(9))
    none = Dense(law.X, law.who, np.zeros((3, 3)), law.R)
    B, _ = gls(sums_of(law, C), none.G, none.R)
    np.testing.assert_allclose(B, np.linalg.lstsq(law.X, C, rcond=None)[0], atol=1e-12)
