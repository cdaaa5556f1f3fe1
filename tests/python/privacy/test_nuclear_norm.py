"""Privacy of sums of a bounded nuclear norm: sensitivity on the integers, losses, one release of a whole budget."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from matrix_tools import SHAPES, degrees_off_by, exact, functionals, matrices, nuclear, pair
from scipy import stats

from fdadp.errors import PrivacyError
from fdadp.learners import DPPCA
from fdadp.privacy import Budget, Cohort, SeededNoise, TapeNoise
from fdadp.privacy.kernel._exact_sums import rank_one_sum
from fdadp.privacy.noise._matrix_noise import MatrixLaplace
from fdadp.privacy.replayed_loss import losses
from fdadp.privacy.rows._vault import Vault


def test_canaries_attain_the_sensitivity_and_the_frobenius_norm_is_smaller():
    """Someone exchanged, z for y orthogonal to it; and a person with orthogonal rows."""
    f, r = np.eye(3)[:2] * 9, np.eye(3)[[0, 2]]
    one, sensitivity = exact(f[:1], r[:1], adjacency="replace")
    other, _ = exact(f[1:], r[1:], adjacency="replace", n=1)
    assert sensitivity == 2 * 4.0**18
    assert nuclear(one - other) == pytest.approx(sensitivity, rel=3e-5) and nuclear(one - other) <= sensitivity
    assert np.linalg.norm(one - other) < 0.72 * sensitivity
    f = np.eye(3) * [9.0, 5.0, 7.0]
    whole, sensitivity = exact(f, np.eye(3), groups=[1, 1, 1], n=1)
    assert sensitivity == 4.0**18
    assert nuclear(whole) == pytest.approx(sensitivity, rel=3e-5) and nuclear(whole) <= sensitivity
    assert np.linalg.norm(whole) < 0.58 * sensitivity


def test_a_persons_rows_are_each_clipped_then_averaged():
    rng = np.random.default_rng(4)
    f, r = rng.standard_normal((7, 3)), rng.standard_normal((7, 2))
    f[6] = np.nan
    total, _ = exact(f, r, groups=[0, 0, 0, 1, 1, 2, 2], n=3)
    clipped = np.minimum(1, 4 / (np.linalg.norm(f, axis=1) * np.linalg.norm(r, axis=1)))
    wanted = np.einsum("n,nj,nk->jk", (clipped / [3, 3, 3, 2, 2, 2, 2])[:6], f[:6], r[:6])
    np.testing.assert_allclose(total * 4.0 / 4.0**18, wanted, atol=1e-4)


def largest_step(bits, entrywise):
    """Largest nuclear norm of a row's integers over 4^bits, of 200 rows of 17 × 6."""
    rng = np.random.default_rng(5)
    worst = 0.0
    for _ in range(200):
        f, r = rng.standard_normal((1, 17)), rng.standard_normal((1, 6))
        if entrywise:
            M = np.outer(f, r)
            q = np.trunc(M / np.linalg.norm(M) * 4.0**bits * (1 - 1e-12))
        else:
            q = rank_one_sum(Vault((f, r)), lambda rows, m: rows, 17, 6, clip=1e-3, bits=bits).reshape(17, 6)
        worst = max(worst, nuclear(q) / 4.0**bits)
    return worst


def test_the_bound_holds_on_the_integers_and_not_if_entries_were_truncated():
    """At 8 bits, where it shows: at 36 the violation is below 10⁻⁹."""
    assert 0.9 < largest_step(4, entrywise=False) <= 1 + 1e-12
    assert largest_step(4, entrywise=True) > 1.01


@pytest.mark.statistics
@pytest.mark.parametrize("more", [0, 1, -1])
@pytest.mark.parametrize("law", SHAPES[:3], ids=str)
def test_losses_by_alignment_are_those_of_the_law(monkeypatch, law, more):
    """The step e that is left given the rest has density exp(-|e|): |e| is Gamma, and the mean of exp(-loss) 1."""
    degrees_off_by(monkeypatch, more)
    rng = np.random.default_rng(6)
    f, r = (v / np.linalg.norm(v) for v in (rng.standard_normal(law.rows), rng.standard_normal(law.columns)))
    short, long = (r, f) if law.rows >= law.columns else (f, r)
    values, lengths = [], []
    for _ in range(4000):
        N, T = law.draw_floats(1.0, rng).factors
        Q = np.linalg.qr(np.column_stack([short, np.eye(len(short))]))[0]
        turned = np.linalg.qr(T.T @ np.roll(Q, -1, axis=1))  # f on the last row: T'U = Q R, so U'T = R'Q'
        e = turned[1][-1, -1] * (N @ turned[0][:, -1]) * np.sign(Q[:, 0] @ short)
        value, bound = law.loss(np.outer(f, r), (N, T))
        assert bound == pytest.approx(1.0) and abs(value) <= 1 + 1e-9
        assert value == pytest.approx(np.linalg.norm(e - long) - np.linalg.norm(e), abs=1e-9)
        values.append(value)
        lengths.append(np.linalg.norm(e))
    p = stats.kstest(lengths, stats.gamma(len(long)).cdf).pvalue
    assert p > 1e-4 if more == 0 else p < 1e-6
    ratio = np.exp(-np.array(values))
    assert more or abs(ratio.mean() - 1) < 4 * ratio.std() / math.sqrt(4000)


def test_noise_that_is_not_of_its_factors_is_refused_in_a_replay():
    f, r = np.ones((5, 3)), np.ones((5, 2))
    tapes = []
    for data in ((f, r), (f[1:], r[1:])):
        tape = TapeNoise(tape=tapes[0] if tapes else None)
        c = Cohort(data, budget=Budget(1.0), noise=tape, adjacency="add-remove")
        c.sum_outer(pair, clip=1.0, share=0.5, name="s", norm="nuclear")
        c.second_moment(lambda x: x[0], clip=1.0, share=0.5, name="m")
        tapes.append(tape.entries)
    each = losses(*tapes)
    assert [x.change for x in each] == pytest.approx([1, 1], rel=3e-5)
    assert all(abs(x.loss) <= x.spent * (1 + 1e-12) <= x.amount * (1 + 1e-9) for x in each)
    for k in range(2):
        halved = dataclasses.replace(tapes[0][k], factors=tuple(a / 2 for a in tapes[0][k].factors))
        with pytest.raises(PrivacyError, match="not what its factors make"):
            losses([halved], [tapes[1][k]])


def seen_from_outside(law, M, draws, seed):
    """Largest lower bound on the loss for M, over thresholds of two statistics of what is released."""
    here, there = (matrices(law, draws, seed=seed + k) + k * M for k in range(2))
    worst = -math.inf
    for statistic in (lambda z: np.einsum("nij,ij->n", z, M) / np.linalg.norm(M), lambda z: functionals(z)[:, 1]):
        one, other = statistic(there), statistic(here)
        for t in np.quantile(one, [0.5, 0.8, 0.95]):
            p = stats.beta.ppf(0.001, (one > t).sum(), (one <= t).sum() + 1)
            q = stats.beta.ppf(0.999, (other > t).sum() + 1, (other <= t).sum())
            worst = max(worst, math.log(p / q))
    return worst


@pytest.mark.statistics
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize("law", [MatrixLaplace(2, 2), MatrixLaplace(2, 2, symmetric=True)], ids=str)
@pytest.mark.parametrize("draws", [10_000, pytest.param(300_000, marks=pytest.mark.long)])
def test_black_box_audit(law, epsilon, draws):
    M = np.outer([0.6, 0.8], [0.6, 0.8]) * epsilon
    assert 0.4 * epsilon < seen_from_outside(law, M, draws, seed=7) <= epsilon
    assert seen_from_outside(law, 2 * M, draws, seed=8) > epsilon  # half of the noise


# ------------------------------------------------------------------ one release of a whole budget


def components(d=4, **settings):
    X = np.random.default_rng(0).standard_normal((200, d))
    return DPPCA(**{"epsilon": 1.0, "delta": 1e-6, "data_norm": 3.0, "random_state": 0, **settings}).fit(X)


def test_a_whole_budget_is_spent_on_the_quieter_law_and_the_ledger_says_so():
    found = components()
    (entry,) = found.ledger_.releases
    assert (entry.norm, entry.epsilon, entry.delta, entry.mu, entry.rho) == ("nuclear", 1.0, 0.0, None, None)
    assert entry.cost == "epsilon 1, pure (better than asked)" and entry.cost in str(found.ledger_)
    assert found.ledger_.mu is None and found.ledger_.private
    assert (found.ledger_.epsilon, found.ledger_.delta) == (1.0, 1e-6)
    # the same noise as of a pure budget, and none that is left
    np.testing.assert_allclose(found.components_, components(delta=None).components_, rtol=1e-6)
    assert found.privacy_spent_["spent"] == 1.0
    assert entry.sd < 9.25 * 4.22


@pytest.mark.parametrize(
    ("settings", "norm"),
    [
        ({"d": 11}, "nuclear"),  # 1.3 · 13 < (ε/μ)² = 17.8
        ({"d": 12}, "L2"),
        ({"d": 5, "adjacency": "replace", "n": 200}, "L2"),  # Gaussian noise grows by √2 only
        ({"d": 4, "adjacency": "replace", "n": 200}, "nuclear"),
        ({"d": 4, "mechanism": "power"}, "L2"),  # several releases
    ],
    ids=str,
)
def test_the_rule_is_public(settings, norm):
    assert {r.norm for r in components(**settings).ledger_.releases} == {norm}


def test_part_of_a_budget_is_never_spent_so():
    budget = Budget(1.0, 1e-6)
    model = components(n=200, budget=budget, dataset="rows")
    assert model.ledger_.releases[0].norm == "nuclear"
    with pytest.raises(PrivacyError, match="left"):
        components(n=200, budget=budget, dataset="rows")
    rows = np.zeros((5, 2))
    half = Cohort(rows, budget=Budget(1.0, 1e-6), share=0.5, n=5, noise=SeededNoise(0))
    assert not half.pure_is_quieter(1.0)
    used = Cohort(rows, budget=Budget(1.0, 1e-6), n=5, noise=SeededNoise(0))
    assert used.pure_is_quieter(17.8) and not used.pure_is_quieter(17.9)
    used.sum(lambda r: r[0], clip=1.0, share=0.1, name="s")
    assert not used.pure_is_quieter(1.0)
    assert not Cohort(rows, budget=Budget(1.0), n=5, noise=SeededNoise(0)).pure_is_quieter(1.0)
