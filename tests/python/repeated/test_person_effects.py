"""Effects of persons and predictions of rows: the dense law, intervals, shares of variance, tests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from repeated_tools import curves_of_persons, draw, sums_of

from fdadp.errors import InputError
from fdadp.repeated.fixed_effects import fixed_effects
from fdadp.repeated.icc_and_tests import icc, icc_curve, successive_correlation, variance_table
from fdadp.repeated.person_effects import RepeatedFit
from fdadp.repeated.reml_search import LevelCovariances, level_covariances


def fit_of(law, C) -> RepeatedFit:
    s, levels = sums_of(law, C), LevelCovariances(law.G, law.R, 0.0, 0.0)
    return RepeatedFit(s, levels, fixed_effects(s, levels))


def fitted(c, k: int = 8) -> RepeatedFit:
    s = c.sums(k)
    levels = level_covariances(s)
    return RepeatedFit(s, levels, fixed_effects(s, levels))


# ---- the dense law


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("seed", range(2))
def test_effects_and_their_joint_covariance_are_those_of_the_dense_law(seed, rank):
    law, C = draw(np.random.default_rng(20 + seed), rank=rank)
    model = fit_of(law, C)
    b, joint = law.effects(C)
    np.testing.assert_allclose(model.effects(), b, atol=1e-12 * np.abs(b).max())
    q, k = joint.shape[0] - b.size, 3
    for i, n in enumerate(model.sums.counts):
        at = slice(q + i * k, q + (i + 1) * k)
        found = model.effect_covariance(model.sums.means[i, :3], int(n))
        np.testing.assert_allclose(found, joint[at, at], atol=1e-12 * np.abs(joint[at, at]).max())
        # A new row of this person: mean curve and effect together, and its own error.
        x = np.array([1.0, 0.5, -1.0])
        F = np.hstack((np.kron(x, np.eye(k)), np.eye(k)))
        pick = np.r_[np.arange(q), np.arange(q + i * k, q + (i + 1) * k)]
        want = F @ joint[np.ix_(pick, pick)] @ F.T
        of_row = model.variances(x[None], model.sums.means[i : i + 1], np.array([n]))[0]
        np.testing.assert_allclose(of_row, np.diag(want + law.R), rtol=1e-11)
        of_curve = model.variances(x[None], model.sums.means[i : i + 1], np.array([n]), row=False)[0]
        np.testing.assert_allclose(of_curve, np.diag(want), rtol=1e-10, atol=1e-13)
    new = model.variances(x[None])[0]
    F = np.kron(x, np.eye(k))
    np.testing.assert_allclose(new, np.diag(F @ joint[:q, :q] @ F.T + law.G + law.R), rtol=1e-11)


def test_a_new_person_with_rows_is_predicted_as_one_of_the_fit():
    c = curves_of_persons(0, 30)
    model = fitted(c)
    rows = c.who == 3
    v = model.means_of(c.X[rows], c.Y[rows])
    np.testing.assert_allclose(
        model.effects(v.mean(axis=0)[None], np.array([rows.sum()])), model.effects()[[3]], rtol=1e-8
    )
    x = model.features(c.X[rows])
    curves = model.predict(x, np.repeat(v.mean(axis=0)[None], len(x), 0), np.full(len(x), rows.sum()))
    population = model.predict(x)
    np.testing.assert_allclose(
        curves - population, np.tile(model.effects()[3] @ model.sums.phi.T, (len(x), 1)), atol=1e-10
    )
    low, high = model.interval(x)
    assert (low < population).all() and (population < high).all()


def test_no_effect_of_persons_shrinks_all_to_nothing():
    law, C = draw(np.random.default_rng(4))
    model = fit_of(replace(law, G=np.zeros((3, 3))), C)
    assert np.abs(model.effects()).max() == 0 and np.abs(model.levels.posterior(3)).max() == 0


def test_effects_are_near_the_truth_and_rows_are_explained():
    c = curves_of_persons(1, 60, least=3)
    model = fitted(c)
    b = model.effects()[model.sums.ids.get_indexer(np.arange(60))] @ model.sums.phi.T
    assert np.sqrt(((b - c.b) ** 2).mean()) < 0.6 * c.b.std()
    v = model.means_of(c.X, c.Y)
    own = model.row_effects(v, model.effects()[c.who]) @ model.sums.phi.T
    left = c.Y - c.beta[0] - c.X @ c.beta[1:] - c.b[c.who]
    assert ((left - own) ** 2).mean() < 0.6 * (left**2).mean()


# ---- intervals, in a reduced form


def inside(low, high, truth) -> float:
    return float(((low < truth) & (truth < high)).mean())


def new_rows(rng, t, n: int):
    f = np.sqrt(2) * np.stack([np.cos(np.pi * t), np.sin(2 * np.pi * t), np.cos(3 * np.pi * t)])
    return (rng.normal(size=(n, 3)) * np.sqrt([0.8, 0.4, 0.2])) @ f + 0.5 * rng.normal(size=(n, len(t)))


def covers(seeds, persons: int, most: int):
    """Shares held of the curve of a person, a new row of them, of a new person with two rows, of a new person."""
    held = []
    for seed in seeds:
        c = curves_of_persons(seed, persons + 10, most=most, least=2)
        known = c.who < persons
        model = fitted(replace(c, X=c.X[known], Y=c.Y[known], who=c.who[known]))
        s = model.sums
        at = s.ids.get_indexer(np.arange(persons))
        x0 = np.tile(model.features(np.zeros((1, 2))), (persons, 1))
        truth = c.beta[0] + c.b[:persons]
        own = inside(*model.interval(x0, s.means[at], s.counts[at], row=False), truth)
        rng = np.random.default_rng(seed + 9000)
        row = inside(*model.interval(x0, s.means[at], s.counts[at]), truth + new_rows(rng, c.t, persons))
        new = c.who >= persons
        two = [np.flatnonzero(c.who == i)[:2] for i in range(persons, persons + 10)]
        means = np.stack([model.means_of(c.X[r], c.Y[r]).mean(axis=0) for r in two])
        of_new = c.beta[0] + c.b[persons:]
        seen = inside(*model.interval(x0[:10], means, np.full(10, 2)), of_new + new_rows(rng, c.t, 10))
        unseen = inside(*model.interval(model.features(c.X[new])), c.Y[new])
        held.append((own, row, seen, unseen))
    return np.mean(held, axis=0)


def test_intervals_hold_in_a_few_runs():
    found = covers(range(12), 60, 5)
    assert (found > 0.90).all() and (found < 0.99).all(), found


@pytest.mark.statistics
@pytest.mark.parametrize(("persons", "most"), [(40, 7), (200, 13)])
def test_coverage_of_prediction_intervals(persons, most):
    found = covers(range(100, 180), persons, most)
    print(persons, most, found.round(3))
    assert (found > 0.92).all() and (found < 0.98).all(), found


# ---- shares, and tests


def test_icc_is_the_share_between_persons():
    c = curves_of_persons(2, 400)
    model = fitted(c)
    assert icc(model.sums.phi, model.levels) == pytest.approx(1.75 / 3.15, abs=0.05)
    assert icc(model.sums.phi, model.levels, noise=True) == pytest.approx(1.75 / 3.40, abs=0.05)
    curve = icc_curve(model.sums.phi, model.levels)
    t = c.t
    between = 1 + np.sin(2 * np.pi * t) ** 2 + 0.5 * np.cos(2 * np.pi * t) ** 2
    rows = 1.6 * np.cos(np.pi * t) ** 2 + 0.8 * np.sin(2 * np.pi * t) ** 2 + 0.4 * np.cos(3 * np.pi * t) ** 2
    np.testing.assert_allclose(curve, between / (between + rows), atol=0.1)
    assert (icc_curve(model.sums.phi, model.levels, noise=True) < curve).all()
    table = variance_table(model.sums.phi, model.levels, {"person": model.levels.G})
    np.testing.assert_allclose(table["variance"], [1.75, 1.4, 0.25], rtol=0.15)
    assert table["share"].sum() == pytest.approx(1)


@pytest.mark.parametrize(("rho", "low", "high"), [(0.0, -0.08, 0.08), (0.6, 0.3, 0.65)])
def test_successive_rows_tell_whether_they_are_independent(rho, low, high):
    rng = np.random.default_rng(0)
    who, values = np.repeat(np.arange(200), 7), np.empty((1400, 3))
    for i in range(200):
        e = rng.normal(size=(7, 3))
        for j in range(1, 7):
            e[j] = rho * e[j - 1] + np.sqrt(1 - rho**2) * e[j]
        values[who == i] = e + rng.normal(size=3)
    assert low < successive_correlation(values, who) < high
    with pytest.raises(InputError, match="two rows"):
        successive_correlation(values[:3], np.arange(3))
