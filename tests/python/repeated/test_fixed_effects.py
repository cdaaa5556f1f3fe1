"""Mean curves of repeated curves: the dense law with bases of their own, smoothing, errors by person, both slopes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from repeated_tools import curves_of_persons, draw, sums_of

from fdadp.errors import InputError
from fdadp.functional.splines.bsplines import BSplines
from fdadp.repeated.fixed_effects import (
    MeanTerm,
    degrees_of_freedom,
    fixed_effects,
    normal_of_terms,
    slopes_within_and_between,
    spline_levels,
    terms_on,
    varying,
)
from fdadp.repeated.person_sums import PersonPass, smooth_functions
from fdadp.repeated.reml_search import LevelCovariances, level_covariances
from fdadp.repeated.two_level_model import deviance, gls

T = 12
GRID = np.linspace(0, 1, T)


def dense_curves(seed: int, rank: int, intercept: bool = True):
    """Curves (N, T) of a law with k = 3, three bases that reach outside Φ, and everything written out."""
    rng = np.random.default_rng(seed)
    law, _ = draw(rng, rank=rank)
    phi = np.linalg.qr(rng.normal(size=(T, 3)))[0]
    Y = 5 + rng.normal(size=(len(law.who), T))
    levels = LevelCovariances(law.G, law.R, 0.7, 0.0)
    terms = [MeanTerm(np.eye(3)[:, [a]], rng.normal(size=(T, r)), np.zeros((0, r))) for a, r in enumerate((3, 2, 4))]
    one = PersonPass(phi, 2 if intercept else 3, intercept=intercept, cross=True)
    sums = one.add(law.X[:, 1:] if intercept else law.X, Y, law.who).sums()
    features = law.X - sums.shift_x
    F = np.hstack([np.kron(features @ t.mix, t.along) for t in terms])
    same = np.equal.outer(law.who, law.who)
    V = np.kron(same, phi @ law.G @ phi.T)
    V = V + np.kron(np.eye(len(law.who)), phi @ law.R @ phi.T + 0.7 * (np.eye(T) - phi @ phi.T))
    return law, sums, levels, terms, F, V, Y


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("rank", [1, 3])
def test_normal_equations_of_three_bases_are_those_of_the_dense_law(rank, intercept):
    _, sums, levels, terms, F, V, Y = dense_curves(rank, rank, intercept)
    found = normal_of_terms(sums, levels, terms)
    gram, right = F.T @ np.linalg.solve(V, F), F.T @ np.linalg.solve(V, Y.ravel())
    np.testing.assert_allclose(found.gram, gram, atol=1e-12 * np.abs(gram).max())
    np.testing.assert_allclose(found.right, right, atol=1e-12 * np.abs(right).max())
    assert found.total == pytest.approx(Y.ravel() @ np.linalg.solve(V, Y.ravel()), rel=1e-12)
    effects = fixed_effects(sums, levels, terms)
    np.testing.assert_allclose(effects.coefficients, np.linalg.solve(gram, right), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(effects.covariance, np.linalg.inv(gram), rtol=1e-8, atol=1e-10)


def test_a_smoothed_fit_is_that_of_the_dense_law_at_its_parameters():
    _, sums, levels, terms, F, V, Y = dense_curves(5, 3)
    rng = np.random.default_rng(0)
    terms = [replace(term, penalties=rng.uniform(0.5, 2, (1, term.size))) for term in terms]
    sp = np.array([0.3, 2.0, 7.0])
    effects = fixed_effects(sums, levels, terms, smoothing_parameters=sp)
    S = np.diag(np.concatenate([lam * term.penalties[0] for lam, term in zip(sp, terms, strict=True)]))
    A = F.T @ np.linalg.solve(V, F) + S
    np.testing.assert_allclose(effects.coefficients, np.linalg.solve(A, F.T @ np.linalg.solve(V, Y.ravel())), rtol=1e-9)
    np.testing.assert_allclose(effects.covariance, np.linalg.inv(A), rtol=1e-8, atol=1e-12)


def test_on_phi_without_penalties_it_is_generalised_least_squares():
    law, C = draw(np.random.default_rng(3))
    s = sums_of(law, C)
    effects = fixed_effects(s, LevelCovariances(law.G, law.R, 0.0, 0.0))
    B, V = gls(s, law.G, law.R)
    np.testing.assert_allclose(effects.on_phi(), B, rtol=1e-10)
    np.testing.assert_allclose(effects.covariance, V, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(effects.standard_errors().ravel(), np.sqrt(np.diag(V)), rtol=1e-9)
    low, high = effects.interval(0.9)
    np.testing.assert_allclose((low + high) / 2, effects.curves(), atol=1e-12)


def test_smoothing_by_reml_straightens_a_line_and_keeps_a_wave():
    c = curves_of_persons(0, 80)
    c = replace(c, Y=c.Y - c.X[:, 1:] * c.beta[2] + c.X[:, 1:] * np.sin(6 * c.t))
    s = c.sums(12)
    roughness = smooth_functions(c.t, 12)[1]
    levels = level_covariances(s)
    rough = fixed_effects(s, levels)
    smooth = fixed_effects(s, levels, terms_on(s, roughness))
    assert smooth.edf < rough.edf == pytest.approx(36)
    line = smooth.curves()[1]  # 0.4 t
    np.testing.assert_allclose(np.diff(line, 2), 0, atol=2e-3)
    assert np.corrcoef(smooth.curves()[2], np.sin(6 * c.t))[0, 1] > 0.98
    assert smooth.standard_errors()[1].mean() < rough.standard_errors()[1].mean()


def test_terms_outside_the_functions_need_noise_there():
    _, sums, levels, terms, *_ = dense_curves(1, 3)
    with pytest.raises(InputError, match="no noise outside"):
        fixed_effects(sums, replace(levels, noise_variance=0.0), terms)
    with pytest.raises(InputError, match="within the k functions"):
        fixed_effects(sums, levels, terms, se="person")


# ---- degrees of freedom and errors by person


def test_degrees_of_freedom_follow_how_features_vary():
    rng, who = np.random.default_rng(0), np.repeat(np.arange(12), 6)
    X = np.column_stack((rng.normal(size=12)[who], np.tile(np.arange(6.0), 12), rng.normal(size=72)))
    s = PersonPass(np.eye(2), 3).add(X, rng.normal(size=(72, 2)), who).sums()
    within, between = varying(s)
    assert within.tolist() == [False, False, True, True] and between.tolist() == [False, True, False, True]
    assert degrees_of_freedom(s).tolist() == [10, 10, 72 - 12 - 2, 10]


def test_the_sandwich_is_that_of_persons_scores():
    law, C = draw(np.random.default_rng(11))
    s = PersonPass(np.eye(3), 2, cross=True).add(law.X[:, 1:], C, law.who).sums()
    levels = LevelCovariances(law.G, law.R, 0.0, 0.0)
    effects = fixed_effects(s, levels, se="person")
    X = law.X - s.shift_x
    B, V = law.__class__(X, law.who, law.G, law.R).fixed(C)
    total = np.zeros_like(V)
    for i in np.unique(law.who):
        rows = law.who == i
        n = rows.sum()
        F = np.kron(X[rows], np.eye(3))
        own = np.kron(np.ones((n, n)), law.G) + np.kron(np.eye(n), law.R)
        score = F.T @ np.linalg.solve(own, (C[rows] - X[rows] @ B).ravel())
        total += np.outer(score, score)
    persons = len(np.unique(law.who))
    want = V @ total @ V * persons / (persons - 2)  # the constant and the feature of the person
    np.testing.assert_allclose(effects.covariance, want, atol=1e-11 * np.abs(want).max())
    with pytest.raises(InputError, match="cross=True"):
        fixed_effects(replace(s, cross=None), levels, se="person")


# ---- confounding


def confounded(carries: float, seed: int = 0):
    """A feature whose mean carries the person's effect; the slope within persons is 0."""
    rng, t = np.random.default_rng(seed), np.linspace(0, 1, 30)
    who = np.repeat(np.arange(150), 5)
    b = rng.normal(size=150)
    x = carries * b[who] + rng.normal(size=150)[who] + rng.normal(size=who.size)
    Y = b[who][:, None] * (1 + t) + 0.5 * rng.normal(size=(who.size, 1)) + 0.5 * rng.normal(size=(who.size, 30))
    return PersonPass(smooth_functions(t, 4)[0], 1).add(x[:, None], Y, who).sums()


def test_both_slopes_differ_where_a_feature_carries_the_person():
    s = confounded(1.0)
    (found,) = slopes_within_and_between(s, level_covariances(s))
    assert found.column == 1 and found.p_value < 1e-6
    assert np.abs(found.within).max() < 0.1 and found.between.mean() > 0.5
    p_values = []
    for seed in range(30):
        s = confounded(0.0, seed)
        p_values.append(slopes_within_and_between(s, level_covariances(s))[0].p_value)
    assert 0.25 < np.mean(p_values) < 0.75 and np.mean(np.array(p_values) < 0.1) < 0.3


def test_no_slopes_to_compare_where_features_vary_one_way():
    c = curves_of_persons(1, 30)
    s = replace(c, X=c.X[:, :1]).sums(5)
    assert slopes_within_and_between(s, level_covariances(s)) == []


# ---- coverage, in a reduced form


def test_bands_know_that_rows_of_a_person_belong_together():
    held, alone = [], []
    for seed in range(24):
        c = curves_of_persons(500 + seed, 40, most=7, least=7)
        s = c.sums(8)
        truth = c.beta + np.zeros_like(c.beta)
        truth[0] = c.beta[0] + s.shift_x[1:] @ c.beta[1:]
        for levels, out in ((level_covariances(s), held), (level_covariances(s), alone)):
            levels = levels if out is held else replace(levels, G=np.zeros_like(levels.G), R=levels.R + levels.G)
            low, high = fixed_effects(s, levels).interval()
            out.append(((low < truth) & (truth < high)).mean(axis=1))
    assert (np.mean(held, axis=0) > 0.90).all() and (np.mean(held, axis=0) < 0.99).all()
    assert np.mean(alone, axis=0)[1] < 0.8  # rows as independent persons


@pytest.mark.statistics
@pytest.mark.parametrize(("persons", "rows"), [(8, 20), (20, 7), (40, 7), (200, 7)])
def test_coverage_of_fixed_effects(persons, rows):
    held = []
    for seed in range(100):
        c = curves_of_persons(2000 + seed, persons, most=rows, least=rows)
        s = c.sums(8)
        truth = c.beta.copy()
        truth[0] = c.beta[0] + s.shift_x[1:] @ c.beta[1:]
        low, high = fixed_effects(s, level_covariances(s)).interval()
        held.append(((low < truth) & (truth < high)).mean(axis=1))
    print(persons, rows, np.mean(held, axis=0).round(3))
    assert (np.mean(held, axis=0) > 0.925).all()


def days_that_hang_together(seed: int):
    """A trend over 7 days of 60 persons, errors of days with a correlation of .6."""
    rng, t = np.random.default_rng(seed), np.linspace(0, 1, 20)
    who, day = np.repeat(np.arange(60), 7), np.tile(np.linspace(-1, 1, 7), 60)
    e = rng.normal(size=(60, 7))
    for j in range(1, 7):
        e[:, j] = 0.6 * e[:, j - 1] + 0.8 * e[:, j]
    Y = np.outer(day, t) + np.outer(e.ravel(), 1 + t) + rng.normal(size=60)[who][:, None]
    Y += 0.3 * rng.normal(size=Y.shape)
    return PersonPass(smooth_functions(t, 4)[0], 1, cross=True).add(day[:, None], Y, who).sums(), t


def test_errors_by_person_hold_where_days_hang_together():
    held = {"model": [], "person": []}
    for seed in range(60):
        s, t = days_that_hang_together(seed)
        levels = level_covariances(s)
        for se, out in held.items():
            low, high = fixed_effects(s, levels, se=se).interval()
            out.append(((low[1] < t) & (t < high[1])).mean())
    assert np.mean(held["model"]) < 0.88 < 0.9 < np.mean(held["person"])


# ---- penalised persons


def test_splines_of_persons_and_white_errors_are_found_together():
    c = curves_of_persons(5, 60)
    Y = c.beta[0] + c.X @ c.beta[1:] + c.b[c.who] + 0.5 * np.random.default_rng(0).normal(size=c.Y.shape)
    splines = BSplines.uniform(0, 1, 8)
    B, S = splines.design(c.t), splines.difference_penalty(2)
    phi, X = np.linalg.qr(B)[0], np.column_stack((np.ones(len(Y)), c.X))
    sums = PersonPass(phi, 3, intercept=False).add(X, Y, c.who).sums()
    levels, fixed = spline_levels(sums, terms_on(sums), B, S)
    assert levels.noise_variance == pytest.approx(0.25, rel=0.03)
    assert np.trace(levels.G) == pytest.approx(np.trace(level_covariances(sums).G), rel=0.2)
    np.testing.assert_allclose(fixed.on_phi(), gls(sums, levels.G, levels.R)[0], atol=1e-8)

    def criterion(G, noise):
        """Without penalties of mean curves: the restricted likelihood of two levels, and of points outside."""
        outside = sums.n_rows * (60 - 8) * np.log(noise) + sums.energy / noise
        return deviance(sums, G, noise * np.eye(8)) + outside

    assert levels.deviance == pytest.approx(criterion(levels.G, levels.noise_variance), rel=1e-9)
    for factor in (0.95, 1.05):
        assert criterion(levels.G, factor * levels.noise_variance) > levels.deviance
        assert criterion(factor * levels.G, levels.noise_variance) > levels.deviance
    with pytest.raises(InputError, match="span the functions"):
        spline_levels(c.sums(9), terms_on(c.sums(9)), B, S)
