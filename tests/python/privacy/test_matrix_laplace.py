"""Matrix Laplace noise: its laws, its exact draws, and sums of rank-one matrices with a bounded nuclear norm."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fdadp.errors import PrivacyError
from fdadp.privacy import Budget, Cohort, SeededNoise, TapeNoise
from fdadp.privacy._matrix_laplace import MatrixLaplace


def pair(rows):
    return rows[0], rows[1]


def cohort(f, r, epsilon=1.0, noise=None, **options):
    return Cohort((f, r), budget=Budget(epsilon), noise=noise or SeededNoise(0), **{"n": len(f), **options})


def exact(f, r, **options):
    """Integers that are summed."""
    tape = TapeNoise()
    c = cohort(f, r, noise=tape, **options)
    c.sum_outer(pair, clip=4.0, share=1.0, name="s", norm="nuclear")
    return np.array(tape.entries[0].exact).reshape(f.shape[1], r.shape[1]), tape.entries[0].sensitivity


# ------------------------------------------------------------------ release


@pytest.mark.parametrize("adjacency", ["zero-out", "add-remove", "replace"])
def test_release_is_the_clipped_sum_with_noise_of_the_sd_that_it_states(adjacency):
    rng = np.random.default_rng(0)
    f, r = rng.standard_normal((300, 4)), rng.standard_normal((300, 3))
    length = np.linalg.norm(f, axis=1) * np.linalg.norm(r, axis=1)
    truth = np.einsum("n,nj,nk->jk", np.minimum(1, 4 / length), f, r)
    known = {} if adjacency == "add-remove" else {"n": 300}
    off = []
    for seed in range(400):
        c = Cohort((f, r), budget=Budget(0.5), noise=SeededNoise(seed), adjacency=adjacency, **known)
        value, sd = c.sum_outer(lambda x: x[0], lambda x: x[1], clip=4.0, share=0.25, name="s", norm="nuclear")
        off.append(value - truth)
    assert sd == pytest.approx(4 / 0.125 * math.sqrt(7) * (2 if adjacency == "replace" else 1), rel=1e-6)
    assert np.std(off) == pytest.approx(sd, rel=0.05)
    assert abs(np.mean(off)) < 4 * sd / math.sqrt(4800)
    entry = c.ledger.releases[0]
    assert (entry.norm, entry.size) == ("nuclear", 12)
    assert entry.noise.startswith("matrix Laplace (product of Gaussians)")
    assert entry.epsilon == pytest.approx(0.125)


def test_rows_that_have_no_product_add_nothing():
    rng = np.random.default_rng(1)
    f, r = rng.standard_normal((6, 3)), rng.standard_normal((6, 2))
    whole, _ = exact(f, r)
    bad = [(np.nan, 1), (np.inf, 1), (1, -np.inf), (0, 1), (1, 0), (1e200, 1e200), (1e-200, 1e-200), (1e308, 1)]
    for left, right in bad:
        more_f, more_r = np.vstack([f, np.full((1, 3), left)]), np.vstack([r, np.full((1, 2), right)])
        np.testing.assert_array_equal(exact(more_f, more_r, n=7)[0], whole)


def test_rounding_is_to_nearest_and_within_the_bound():
    """Of many rows of one sign, where truncation would add up to half a step a factor."""
    rng = np.random.default_rng(2)
    f, r = rng.uniform(0.1, 1, (20000, 5)), rng.uniform(0.1, 1, (20000, 3))
    total, sensitivity = exact(f, r)
    assert sensitivity == 4.0**18
    off = (total * 4.0 / 4.0**18 - f.T @ r) / 4.0
    assert np.abs(off).max() < 20 * math.sqrt(20000) * 2.0**-18  # truncation: 20000 · 2^-19 (1/√5 + 1/√3), 17 times it


def test_bad_calls_are_refused_before_the_read():
    f, r = np.ones((5, 3)), np.ones((5, 2))
    c = cohort(f, r)
    for wrong in ({"weights": np.ones((3, 2))}, {"bits": 20}, {"per_person": "sum"}):
        with pytest.raises(PrivacyError, match="weights, per_person and bits must be left out"):
            c.sum_outer(pair, clip=1.0, share=0.5, name="s", norm="nuclear", **wrong)
    with pytest.raises(PrivacyError, match="norm must be"):
        c.sum_outer(pair, clip=1.0, share=0.5, name="s", norm="operator")
    with pytest.raises(PrivacyError, match="clip must be"):
        c.sum_outer(pair, clip=0.0, share=0.5, name="s", norm="nuclear")
    other = Cohort((f, r), budget=Budget(1.0, 1e-6), noise=SeededNoise(0), n=5)
    with pytest.raises(PrivacyError, match="budget in pure epsilon"):
        other.sum_outer(pair, clip=1.0, share=0.5, name="s", norm="nuclear")
    assert (c.reads, c.budget.spent, other.reads, other.budget.spent) == (0, 0.0, 0, 0.0)


# ------------------------------------------------------------------ laws


def normals(law, draws, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([law.draw_floats(2.0**30, rng).integers for _ in range(draws)], dtype=float) / 2.0**30


def exact_draws(law, draws):
    return np.array([law.draw(2.0**30).integers for _ in range(draws)], dtype=float) / 2.0**30


@pytest.mark.parametrize("draw", [normals, exact_draws])
def test_one_column_is_spherical_and_one_entry_is_laplace(draw):
    lengths = np.linalg.norm(draw(MatrixLaplace(5, 1), 800), axis=1)
    assert stats.kstest(lengths, stats.gamma(5).cdf).pvalue > 1e-4
    for law in (MatrixLaplace(1, 1), MatrixLaplace(1, 1, symmetric=True)):
        assert stats.kstest(draw(law, 800)[:, 0], stats.laplace.cdf).pvalue > 1e-4
