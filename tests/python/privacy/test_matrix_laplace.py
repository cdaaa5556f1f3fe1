"""Matrix Laplace noise: its laws, its exact draws, and sums of rank-one matrices with a bounded nuclear norm."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from matrix_tools import SHAPES, cohort, degrees_off_by, exact, exact_draws, functionals, matrices, normals, pair
from scipy import stats

from fdadp.errors import PrivacyError
from fdadp.privacy import Budget, Cohort, SeededNoise
from fdadp.privacy.noise import _matrix_noise
from fdadp.privacy.noise._matrix_noise import MatrixLaplace, Pair

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
    for wrong in ({"weights": np.ones((3, 2))}, {"bits": 20}):
        with pytest.raises(PrivacyError, match="weights and bits must be left out"):
            c.sum_outer(pair, clip=1.0, share=0.5, name="s", norm="nuclear", **wrong)
    with pytest.raises(PrivacyError, match="norm must be"):
        c.sum_outer(pair, clip=1.0, share=0.5, name="s", norm="operator")
    with pytest.raises(PrivacyError, match="clip must be"):
        c.sum_outer(pair, clip=0.0, share=0.5, name="s", norm="nuclear")
    other = Cohort((f, r), budget=Budget(1.0, 1e-6), noise=SeededNoise(0), n=5)
    with pytest.raises(PrivacyError, match="share must be 1"):
        other.sum_outer(pair, clip=1.0, share=0.5, name="s", norm="nuclear")
    with pytest.raises(PrivacyError, match="share must be 1"):
        other.second_moment(lambda x: x[0], clip=1.0, share=0.5, name="s", norm="nuclear")
    with pytest.raises(PrivacyError, match="norm must be 'nuclear'"):
        c.second_moment(lambda x: x[0], clip=1.0, share=0.5, name="s", norm=2)
    assert (c.reads, c.budget.spent, other.reads, other.budget.spent) == (0, 0.0, 0, 0.0)


# ------------------------------------------------------------------ laws


@pytest.mark.parametrize("draw", [normals, exact_draws])
def test_one_column_is_spherical_and_one_entry_is_laplace(draw):
    lengths = np.linalg.norm(draw(MatrixLaplace(5, 1), 800), axis=1)
    assert stats.kstest(lengths, stats.gamma(5).cdf).pvalue > 1e-4
    for law in (MatrixLaplace(1, 1), MatrixLaplace(1, 1, symmetric=True)):
        assert stats.kstest(draw(law, 800)[:, 0], stats.laplace.cdf).pvalue > 1e-4


def same_law(law, draw, draws):
    """Largest distance, in standard errors, from products of Gaussian matrices (two samples)."""
    rng = np.random.default_rng(99)
    nu = law.rows + (1 if law.symmetric else law.columns)
    A, B = rng.standard_normal((4000, nu, law.rows)), rng.standard_normal((4000, nu, law.columns))
    right = A.transpose(0, 2, 1) @ B
    if law.symmetric:
        right = (right + right.transpose(0, 2, 1)) / 2
    one, other = functionals(matrices(law, draws, draw=draw)), functionals(right)
    error = np.hypot(one.std(axis=0) / math.sqrt(len(one)), other.std(axis=0) / math.sqrt(len(other)))
    return np.abs((one.mean(axis=0) - other.mean(axis=0)) / error).max()


@pytest.mark.statistics
@pytest.mark.parametrize("law", SHAPES, ids=str)
def test_the_law_is_that_of_a_product_of_gaussian_matrices(law):
    assert same_law(law, normals, 4000) < 4
    assert same_law(law, exact_draws, 400) < 4


@pytest.mark.parametrize("law", SHAPES, ids=str)
def test_integers_are_the_noise_that_the_factors_make(law):
    """In their places, also where the matrix is wider than high."""
    for drawn in (law.draw(2.0**40), law.draw_floats(2.0**40, np.random.default_rng(0))):
        made = law.noise(drawn.factors)
        made = made[np.triu_indices(law.rows)] if law.symmetric else made.ravel()
        np.testing.assert_allclose(np.array(drawn.integers, dtype=float) / 2.0**40, made, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("exactly", "draws", "off"), [(False, 3000, 0.1), (True, 150, 0.2)])
@pytest.mark.parametrize("law", SHAPES, ids=str)
def test_rows_and_columns_are_alike(law, exactly, draws, off):
    """Degrees of Bartlett's triangle in another order leave the sum of squares as it is, and rows are not alike."""
    bits = random.Random(0).getrandbits
    one = (lambda law, draws: [law.draw(2.0**30, bits).integers for _ in range(draws)]) if exactly else normals
    squares = (matrices(law, draws, draw=lambda *a: np.array(one(*a)) / 2.0 ** (30 * exactly)) ** 2).mean(axis=0)
    for of_each in (squares.mean(axis=0), squares.mean(axis=1)):
        np.testing.assert_allclose(of_each, squares.mean(), rtol=off)


@pytest.mark.statistics
@pytest.mark.parametrize("more", [-1, 1])
@pytest.mark.parametrize("law", SHAPES, ids=str)
def test_other_degrees_are_seen(monkeypatch, law, more):
    degrees_off_by(monkeypatch, more)
    assert same_law(law, normals, 8000) > 5
    lengths = np.linalg.norm(normals(MatrixLaplace(5, 1), 4000), axis=1)
    assert stats.kstest(lengths, stats.gamma(5).cdf).pvalue < 1e-4


@pytest.mark.statistics
def test_sds_on_the_diagonal_and_off_it():
    z = matrices(SHAPES[3], 4000)
    on = np.eye(4, dtype=bool)
    assert z[:, on].std() == pytest.approx(SHAPES[3].sd, rel=0.03)
    assert z[:, ~on].std() == pytest.approx(SHAPES[3].sd / math.sqrt(2), rel=0.03)
    assert np.mean(matrices(SHAPES[0], 4000) ** 2) == pytest.approx(8, rel=0.05)


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_second_moments_have_the_sds_that_they_state(delta):
    """Off the diagonal 1/√2 of that on it, with Gaussian noise too."""
    rows, moments = np.zeros((3, 4)), []
    for seed in range(400):
        c = Cohort(rows, budget=Budget(1.0, delta), n=3, noise=SeededNoise(seed))
        moment, sd = c.second_moment(lambda r: r[0], clip=2.0, share=0.5, name="m")
        np.testing.assert_array_equal(moment, moment.T)
        moments.append(moment / sd)
    spread, on = np.std(moments, axis=0), np.eye(4, dtype=bool)
    np.testing.assert_allclose(spread[on], 1, rtol=0.2)
    np.testing.assert_allclose(spread[~on], math.sqrt(0.5), rtol=0.2)


# ------------------------------------------------------------------ exactness


class Ideal:
    """Uniform numbers of many bits, handed out as asked for: first bits to `source`, the next ones by their prefix."""

    def __init__(self, seed):
        self.rng, self.numbers = np.random.default_rng(seed), []

    def __call__(self, bits):
        self.numbers.append(int.from_bytes(self.rng.bytes(4096 // 8), "big"))
        return self.numbers[-1] >> (4096 - bits)

    def extend(self, uniforms, _):
        bits = uniforms.bits
        found = [[x for x in self.numbers if x >> (4096 - bits) == k] for k in uniforms.known]
        uniforms.known = [x >> (4096 - 2 * bits) for (x,) in found]
        uniforms.bits *= 2


@pytest.mark.parametrize("law", SHAPES, ids=str)
def test_noise_is_rounded_as_the_ideal_noise_is(monkeypatch, law):
    """However few bits are known at first: those of 64 leave an error of 2^8 at this scale, and all are asked for."""
    found = []
    for bits in (64, 1024):
        monkeypatch.setattr(_matrix_noise, "NORMAL_BITS", bits)
        ideal = Ideal(3)
        monkeypatch.setattr(_matrix_noise.Uniforms, "extend", lambda self, source: source.extend(self, source))
        found.append(law.draw(2.0**40, ideal).integers)
    assert found[0] == found[1]


def test_bits_that_come_later_decide_whether_a_pair_is_inside_the_circle():
    """By its first 256 bits one here is inside by 2^-256; it is outside by 2^-510."""
    last, middle = 2**256 - 1, 2**255
    given = iter([last, middle, *[2**bits - 1 for bits in (256, 512, 1024) for _ in range(2)], middle + 2**254, middle])
    assert Pair.draw(lambda bits: next(given)).known == [middle + 2**254, middle]


@pytest.mark.parametrize("noise", [2**62, 2**63 - 1, 2**63, 2**70 + 5, -(2**63), -(2**63) - 7])
def test_what_is_released_is_a_function_of_the_sum_also_where_noise_is_beyond_64_bits(noise):
    """Noise that is cut off before it is added (to 2^62, say) gives the exact sums away where it is."""
    one, other = (
        _matrix_noise.add_wrapped(np.array([0]), [noise + 1]),
        _matrix_noise.add_wrapped(np.array([1]), [noise]),
    )
    assert one == other
    assert one != _matrix_noise.add_wrapped(np.array([0]), [noise])


def test_forced_uniform_numbers_give_noise_beyond_64_bits():
    numbers = iter([2**193, 2**255 + 2**224, 2**255])
    (noise,) = MatrixLaplace(1, 1).draw(2.0**57, lambda bits: next(numbers)).integers
    assert noise == pytest.approx(2.0**57 * math.sqrt(126 * math.log(2)) * math.sqrt(124 * math.log(2)), rel=1e-6)
    assert noise > 2**63
