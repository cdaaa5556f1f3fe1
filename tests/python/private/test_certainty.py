"""What is known of the coefficients of a private fit once the size of its residuals is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from fdadp import Privacy, ScalarRegression
from fdadp.functional.quadrature import quadrature_weights
from fdadp.private.denoise.empirical_bayes import posteriors
from fdadp.private.release.dp_aff import Clipped, Rounds

S = np.linspace(0, 1, 40)


@pytest.mark.parametrize("sd", [0.5, 3.0])
@pytest.mark.parametrize("at", [0.3, 0.8, 2.0])
def test_of_a_constant_clipping_is_hubers_estimator(sd, at):
    found = Clipped.of(np.ones((1, 1)), np.array([[sd**2]]), at * sd)
    inside = 2 * norm.cdf(at) - 1
    spread = inside - 2 * at * norm.pdf(at) + 2 * at**2 * norm.sf(at)
    assert found.slope[0, 0] == pytest.approx(inside, rel=0.06)
    assert found.variance[0, 0] == pytest.approx(sd**2 * spread, rel=0.06)


def test_without_a_clip_gradients_count_in_full_and_weights_matter_only_with_one():
    weights = np.array([[1.0, 0.5], [0.8, 0.4], [0.1, 0.05]])
    residual = np.diag([2.0, 0.3])
    free = Clipped.of(weights, residual, 1e9)
    np.testing.assert_allclose(free.slope, 1.0, rtol=0.12)
    np.testing.assert_allclose(free.variance, np.broadcast_to([2.0, 0.3], (3, 2)), rtol=0.12)
    clipped = Clipped.of(weights, residual, 0.7)
    assert (clipped.slope < free.slope).all() and (clipped.variance / clipped.slope**2 > [1.9, 0.28]).all()
    assert (clipped.slope[:, 0] < clipped.slope[:, 1]).all()  # of the output whose residuals make gradients long
    np.testing.assert_allclose(Clipped.of(3 * weights, residual, 2.1).slope, clipped.slope)


def cohort(n, seed):
    """A curve acts on a number by a wave and a bump; the public range of the number is far too wide."""
    rng = np.random.default_rng([seed, n])
    x = rng.normal(0, 0.6, (n, 1)) * np.ones(S.size)
    for length, size in ((0.3, 0.7), (0.08, 0.4)):
        covariance = np.exp(-0.5 * ((S[:, None] - S) / length) ** 2) + 1e-8 * np.eye(S.size)
        x = x + size * rng.normal(size=x.shape) @ np.linalg.cholesky(covariance).T
    mean = (x * quadrature_weights(S)) @ (2 * np.sin(2 * np.pi * S) + 1.2 * np.exp(-((S - 0.7) ** 2) / 0.02))
    return {"X": x, "w": rng.normal(size=n), "y": mean + 0.45 * rng.normal(size=n)}, mean


def test_standard_errors_of_numbers_hold_what_clipped_gradients_do_not_know():
    inside, error, known = [], [], []
    for seed in range(46, 52):
        data, mean = cohort(1000, seed)
        privacy = Privacy(1.0, 1e-6, n=1000, random_state=seed)
        bounds = {"X": (-5, 5), "w": (-4, 4), "y": (-8, 8)}
        model = ScalarRegression("y ~ lf(X) + w", privacy=privacy, bounds=bounds).fit(data, grids={"X": S})
        off, se = model.predict(data) - mean, model.predict_se(data)
        inside.append((np.abs(off) < 1.96 * se).mean())
        error.append((off**2).mean())
        known.append((se**2).mean())
    assert np.mean(inside) > 0.87  # .817 where residuals were guessed and gradients taken to count in full
    assert np.mean(error) < 1.65 * np.mean(known)  # 1.97 times


def test_gradients_that_were_divided_by_what_clips_leave_say_the_same():
    """Both are taken into account once: of the same releases the covariance does not depend on where it was done."""
    rng = np.random.default_rng(4)
    theta, total = rng.normal(size=(3, 2)), rng.normal(size=(3, 2))
    found = []
    for left in (1.0, 0.6):
        over, rounds = Clipped.of(np.ones((3, 2)), np.eye(2), 1.5, left), Rounds(np.ones((3, 2)), 1e-12)
        rounds.add(total, 0.1, np.zeros((3, 2)), 50 * left)
        rounds.add(0.5 * total, 0.1, theta, 50 * left)
        slope = over.slope[0, 0]
        y, v, a = rounds.together(theta, slope * np.eye(3))
        sampling = {"residual": over.variance[0] / over.slope[0], "slopes": np.ones(2)}
        shares, energy = np.array([0.7, 0.3]), np.array([2.0, 1.0])
        found.append(posteriors(y, v, a, rounds.active, shares, energy, 50.0, **sampling)[:2])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
