"""What a clip takes from gradients is put back, as far as the public prior knows it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fdadp import AdditiveFunctionOnFunction, Privacy, simulate_affr
from fdadp.private.release import dp_aff
from fdadp.private.release.dp_aff import Rounds, left_by_clip


@pytest.mark.parametrize("clip", [0.4, 1.0, 2.0])
def test_what_a_clip_leaves_of_one_normal_number(clip):
    """E[min(1, c/|r|) r²] = P(|r| < c), by Stein's identity."""
    exact = math.erf(clip / math.sqrt(2))
    assert left_by_clip(np.full((1, 1), 3.0), 3 * clip) == pytest.approx(exact, abs=0.02)


def test_all_is_left_by_a_wide_clip_and_little_by_a_tight_one():
    spreads = np.outer([1.0, 0.8, 0.5], [1.0, 0.3])
    assert left_by_clip(spreads, 1e9) == 1.0
    norm = np.sqrt((spreads**2).sum())
    shares = [left_by_clip(spreads, share * norm) for share in (0.01, 0.4, 0.8, 1.6)]
    assert shares[0] < 0.02 and (np.diff(shares) > 0).all() and shares[-1] < 1


def test_clipped_gradients_of_normal_features_measure_the_coefficients():
    rng, theta = np.random.default_rng(0), np.array([[0.2, -0.1], [0.3, 0.0], [-0.2, 0.1], [0.1, 0.2]])
    features = np.hstack((np.ones((50_000, 1)), rng.normal(size=(50_000, 3))))
    residuals = features @ theta + rng.normal(size=(50_000, 2)) * [0.8, 0.5]
    spreads = np.tile(residuals.std(axis=0), (4, 1))
    clip = 0.6 * np.sqrt((spreads**2).sum())
    norms = np.linalg.norm(features, axis=1) * np.linalg.norm(residuals, axis=1)
    total = (features * np.minimum(1, clip / norms)[:, None]).T @ residuals
    unit = len(features) * left_by_clip(spreads, clip)
    target, _ = Rounds(np.ones((4, 2)), 0.03).add(total, 1.0, np.zeros((4, 2)), unit)
    found = (target * theta).sum() / (theta**2).sum()
    assert 0.9 < found < 1.1 and found * left_by_clip(spreads, clip) < 0.65  # what it would be if nothing were put back


@pytest.mark.filterwarnings("ignore::fdadp.errors.FdadpWarning")
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_fits_put_it_back(delta, monkeypatch):
    sim = simulate_affr(1, 300, np.random.default_rng(3), n_points=31)
    privacy, bounds = Privacy(1.0, delta, n=300, random_state=1), {"X": (-4.5, 4.5), "Y": (-8, 8)}

    def size():
        model = AdditiveFunctionOnFunction(privacy=privacy, bounds=bounds, progress=False).fit(sim.X, sim.Y)
        predicted = model.predict(sim.X).data_matrix
        return np.std(predicted - predicted.mean(axis=0))

    with_what_was_clipped = size()
    monkeypatch.setattr(dp_aff, "left_by_clip", lambda *_, **__: 1.0)
    assert with_what_was_clipped > 1.02 * size()
